"""Handing out: which member gets which item, and what becomes of those that were lost.

Knows nothing of where members are: that is the staff's.
"""

from __future__ import annotations

import itertools
import pickle
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol

from cadec_cli.crews import ATTEMPTS, Item, LostMembersError
from cadec_cli.crews.answers import FAILED, LOST, READY


@dataclass(frozen=True)
class Piece(Generic[Item]):
    """One item of the work, its number, and how often it was begun."""

    number: int
    item: Item
    attempt: int = 1


class Member(Protocol):
    """One of the staff: it begins as soon as it is there, and may then be given pieces."""

    piece: Piece[Any] | None

    def take(self, item: bytes) -> None:
        """Hand it an item; if it is lost already, its answer will tell."""

    def answer(self) -> tuple[str, Any]:
        """What it says, now that something was heard of it; LOST with how, if it will say no more."""


class Staff(Protocol):
    """Members, and where there is room for them."""

    kind: str  # what members are, in a message
    hint: str  # what to do if they get lost

    @property
    def members(self) -> list[Any]:
        """Those who are here."""

    def room(self) -> int:
        """How many there may be."""

    def add(self) -> None:
        """Let one more begin."""

    def heard(self) -> list[Any]:
        """Those of whom something is heard, after a wait; there may be none."""

    def dismiss(self, member: Any) -> None:
        """Let one go: for whom nothing is left, who has not begun yet, or who is lost."""


def hand_out(staff: Staff, items: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """Yield each item's number with what was made of it, or the error that it takes members down.

    Such errors end all only where nothing else gets done either: then it is not the items. A member gets a
    piece only when it has begun, so that nothing waits for one that is slow to begin; and its next piece
    before its last is shown to anyone, so that it need not wait for them.
    """
    waiting = _Waiting(items)
    lost_beginners = lost_items = 0
    while True:
        beginning = [member for member in staff.members if member.piece is None]
        while len(staff.members) < staff.room() and waiting.are_more_than(len(beginning)):
            staff.add()
            beginning.append(staff.members[-1])
        if not waiting.are_more_than(0):
            for member in beginning:
                staff.dismiss(member)
        if not staff.members:
            if waiting.are_more_than(0):
                raise LostMembersError(f"there is no room for {staff.kind} any more", staff.hint)
            return
        for member in staff.heard():
            said, what = member.answer()
            piece = member.piece
            if said == FAILED:
                raise what
            if said == LOST:
                staff.dismiss(member)
                lost_beginners += piece is None
                _check(lost_beginners, staff, what)
                if piece is not None and (error := waiting.put_back(piece, staff, what)) is not None:
                    lost_items += 1
                    if lost_items == ATTEMPTS:
                        raise error
                    yield piece.number, error
                continue
            lost_beginners = 0
            lost_items = 0 if said != READY else lost_items
            member.piece = waiting.next()
            if member.piece is None:
                staff.dismiss(member)
            else:
                member.take(pickle.dumps(member.piece.item))
            if said != READY:
                assert piece is not None
                yield piece.number, what


class _Waiting:
    """Items in their order, taken one by one; those of lost members come first."""

    def __init__(self, items: Iterable[Any]) -> None:
        self._rest = (Piece(number, item) for number, item in enumerate(items))
        self._taken: deque[Piece[Any]] = deque()

    def are_more_than(self, count: int) -> bool:
        """Tell whether there are, looking no further than needed."""
        self._taken.extend(itertools.islice(self._rest, max(0, count + 1 - len(self._taken))))
        return len(self._taken) > count

    def next(self) -> Piece[Any] | None:
        """The next piece, if there is one."""
        return self._taken.popleft() if self.are_more_than(0) else None

    def put_back(self, piece: Piece[Any], staff: Staff, how: str) -> LostMembersError | None:
        """Have a piece begun again, unless that was tried before: then it is what takes members down."""
        if piece.attempt == ATTEMPTS:
            what = f"item {piece.number + 1} takes {staff.kind} down ({how}), {ATTEMPTS} times in a row"
            return LostMembersError(what, staff.hint, piece.number)
        self._taken.appendleft(replace(piece, attempt=piece.attempt + 1))
        return None


def _check(lost_beginners: int, staff: Staff, how: str) -> None:
    """Do not try for ever what can't even begin; but while others are at work, a machine may come back."""
    if lost_beginners >= ATTEMPTS and not any(member.piece for member in staff.members):
        raise LostMembersError(f"{staff.kind} go down before they have begun ({how})", staff.hint)
