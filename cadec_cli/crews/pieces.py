"""What a member has in hand: an item, its number, and how often it was begun."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Generic

from cadec_cli.crews import ATTEMPTS, Item
from cadec_cli.errors import CadecError


class LostMembersError(CadecError):
    """All who began an item were lost; `number` is its own, from 0, for those who can name it."""

    def __init__(self, message: str, hint: str, number: int) -> None:
        super().__init__(message, hint)
        self.number = number


@dataclass(frozen=True)
class Piece(Generic[Item]):
    """One item of the work, on its way from the queue to what is made of it."""

    number: int
    item: Item
    attempt: int = 1

    def again(self, lost: str, hint: str) -> Piece[Item]:
        """The same for another member, now that one was lost with it; ATTEMPTS is the end of that.

        `lost` says what the members are and what became of the last one.
        """
        if self.attempt == ATTEMPTS:
            what = f"item {self.number + 1} takes {lost}, {ATTEMPTS} times in a row"
            raise LostMembersError(what, hint, self.number)
        return replace(self, attempt=self.attempt + 1)


def pieces(items: Iterable[Item]) -> Iterator[Piece[Item]]:
    """Items numbered from 0, taken one by one."""
    return (Piece(number, item) for number, item in enumerate(items))
