"""Handing out: which worker gets which item, and what becomes of those that were lost.

Knows nothing of where workers are: that is the set's.
"""

from __future__ import annotations

import itertools
import pickle
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol

from cadec_cli.crews import ATTEMPTS, Item, WorkerLostError
from cadec_cli.crews.answers import FAILED, LOST, READY


@dataclass(frozen=True)
class WorkItem(Generic[Item]):
    """One item of the work, its number, and how often it was begun."""

    number: int
    item: Item
    attempt: int = 1


class Worker(Protocol):
    """One of the set: it begins as soon as it is there, and may then be given pieces."""

    work_item: WorkItem[Any] | None

    def take(self, item: bytes) -> None:
        """Hand it an item; if it is lost already, its answer will tell."""

    def answer(self) -> tuple[str, Any]:
        """What it says, now that something was heard of it; LOST with how, if it will say no more."""


class WorkerSet(Protocol):
    """Members, and where there is room for them."""

    kind: str  # what workers are, in a message
    hint: str  # what to do if they get lost

    @property
    def workers(self) -> list[Any]:
        """Those who are here."""

    def capacity(self) -> int:
        """How many there may be."""

    def add(self) -> None:
        """Let one more begin."""

    def wait_for_answers(self) -> list[Any]:
        """Those of whom something is heard, after a wait; there may be none."""

    def remove(self, worker: Any) -> None:
        """Let one go: for whom nothing is left, who has not begun yet, or who is lost."""


def dispatch(worker_set: WorkerSet, items: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """Yield each item's number with what was made of it, or the error that it takes workers down.

    Such errors end all only where nothing else gets done either: then it is not the items. A worker gets a
    piece only when it has begun, so that nothing waits for one that is slow to begin; and its next piece
    before its last is shown to anyone, so that it need not wait for them.
    """
    waiting = _WorkQueue(items)
    lost_beginners = lost_items = 0
    while True:
        beginning = [worker for worker in worker_set.workers if worker.work_item is None]
        while len(worker_set.workers) < worker_set.capacity() and waiting.has_more_than(len(beginning)):
            worker_set.add()
            beginning.append(worker_set.workers[-1])
        if not waiting.has_more_than(0):
            for worker in beginning:
                worker_set.remove(worker)
        if not worker_set.workers:
            if waiting.has_more_than(0):
                raise WorkerLostError(f"there is no room for {worker_set.kind} any more", worker_set.hint)
            return
        for worker in worker_set.wait_for_answers():
            said, what = worker.answer()
            piece = worker.work_item
            if said == FAILED:
                raise what
            if said == LOST:
                worker_set.remove(worker)
                lost_beginners += piece is None
                _check(lost_beginners, worker_set, what)
                if piece is not None and (error := waiting.put_back(piece, worker_set, what)) is not None:
                    lost_items += 1
                    if lost_items == ATTEMPTS:
                        raise error
                    yield piece.number, error
                continue
            lost_beginners = 0
            lost_items = 0 if said != READY else lost_items
            worker.work_item = waiting.pop()
            if worker.work_item is None:
                worker_set.remove(worker)
            else:
                worker.take(pickle.dumps(worker.work_item.item))
            if said != READY:
                assert piece is not None
                yield piece.number, what


class _WorkQueue:
    """Items in their order, taken one by one; those of lost workers come first."""

    def __init__(self, items: Iterable[Any]) -> None:
        self._rest = (WorkItem(number, item) for number, item in enumerate(items))
        self._taken: deque[WorkItem[Any]] = deque()

    def has_more_than(self, count: int) -> bool:
        """Tell whether there are, looking no further than needed."""
        self._taken.extend(itertools.islice(self._rest, max(0, count + 1 - len(self._taken))))
        return len(self._taken) > count

    def pop(self) -> WorkItem[Any] | None:
        """The next piece, if there is one."""
        return self._taken.popleft() if self.has_more_than(0) else None

    def put_back(self, work_item: WorkItem[Any], worker_set: WorkerSet, how: str) -> WorkerLostError | None:
        """Have a piece begun again, unless that was tried before: then it is what takes workers down."""
        if work_item.attempt == ATTEMPTS:
            what = (
                f"item {work_item.number + 1} takes {worker_set.kind} down ({how}), {ATTEMPTS} times in a row"
            )
            return WorkerLostError(what, worker_set.hint, work_item.number)
        self._taken.appendleft(replace(work_item, attempt=work_item.attempt + 1))
        return None


def _check(lost_beginners: int, worker_set: WorkerSet, how: str) -> None:
    """Do not try for ever what can't even begin; but while others are at work, a machine may come back."""
    if lost_beginners >= ATTEMPTS and not any(worker.work_item for worker in worker_set.workers):
        raise WorkerLostError(f"{worker_set.kind} go down before they have begun ({how})", worker_set.hint)
