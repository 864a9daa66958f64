"""How items get to workers and results come back, whatever the workers are.

A worker is told its task and then one item after the other, as bytes, and answers each with one message, as
bytes: `start_task` and `answer` run in the workers and make these messages. `dispatch` runs in the process
that wants the results. It decides which worker gets which item, and what to do when one is lost.
"""

from __future__ import annotations

import itertools
import pickle
import traceback
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol

from cadec_cli.parallel import ATTEMPTS, Item, Task, WorkerLostError

# What a message says: the worker has started, the result of its item, or what went wrong.
READY, DONE, FAILED = "ready", "done", "failed"
# There is no message, and there will be none.
LOST = "lost"


def start_task(pickled: bytes) -> tuple[Any, bytes]:
    """What the task calls with every item, and the message for it."""
    try:
        task: Task[Any, Any] = pickle.loads(pickled)
        return task.begin(*task.arguments), pickle.dumps((READY, None))
    except BaseException as error:  # raised again by `dispatch`
        return None, _failure(error)


def answer(work: Any, received: bytes) -> bytes:
    """The message with the result of an item."""
    try:
        return pickle.dumps((DONE, work(pickle.loads(received))))
    except BaseException as error:  # raised again by `dispatch`
        return _failure(error)


def _failure(error: BaseException) -> bytes:
    """The message with an error, as it is if it can be pickled; its traceback can't, so it is a note."""
    error.add_note(f"In a worker process:\n{''.join(traceback.format_exception(error))}")
    try:
        message = pickle.dumps((FAILED, error))
        pickle.loads(message)
    except Exception:  # whatever its class does when it is copied
        return pickle.dumps((FAILED, RuntimeError(f"{type(error).__name__}: {error}")))
    return message


@dataclass(frozen=True)
class WorkItem(Generic[Item]):
    """One item, its number, and how often it was begun."""

    number: int
    item: Item
    attempt: int = 1


class Worker(Protocol):
    """One worker: it starts as soon as it is there, and may then be given items, one at a time."""

    work_item: WorkItem[Any] | None

    def take(self, item: bytes) -> None:
        """Give it an item; if it is lost already, its answer will tell."""

    def answer(self) -> tuple[str, Any]:
        """Its message, once there is something of it; LOST and why, if it will send no more."""


class WorkerSet(Protocol):
    """All workers, and how many there may be."""

    kind: str  # what messages call them
    hint: str  # what to do if they get lost

    @property
    def workers(self) -> list[Any]:
        """Those that are there."""

    def capacity(self) -> int:
        """How many there may be."""

    def add(self) -> None:
        """Start one more."""

    def wait_for_answers(self) -> list[Any]:
        """Wait for some, and return the workers that have answered or are lost; there may be none."""

    def remove(self, worker: Any) -> None:
        """End one: nothing is left for it, it has not started yet, or it is lost."""


def dispatch(
    worker_set: WorkerSet, items: Iterable[Any], window: int | None = None
) -> Iterator[tuple[int, Any]]:
    """Yield each item's number with its result, or with the error that its workers were lost.

    Such errors end everything only where nothing else gets done either: then it is not the items. A worker
    gets an item only once it has started, so nothing waits for one that starts slowly. It gets its next item
    before its last result is yielded, so it need not wait for the caller. See `Task` for the window.
    """
    queue = _WorkQueue(items, window)
    idle: list[Any] = []  # workers that have started, and wait until the window moves on
    lost_beginners = lost_items = 0
    while True:
        starting = [one for one in worker_set.workers if one.work_item is None and one not in idle]
        waiting = len(starting) + len(idle)
        while len(worker_set.workers) < worker_set.capacity() and queue.has_more_than(waiting):
            worker_set.add()
            waiting += 1
        if not queue.has_more_than(0):
            for worker in starting:
                worker_set.remove(worker)
        if not worker_set.workers:
            if queue.has_more_than(0):
                raise WorkerLostError(f"there is no room for {worker_set.kind} any more", worker_set.hint)
            return
        for worker in worker_set.wait_for_answers():
            said, what = worker.answer()
            work_item, worker.work_item = worker.work_item, None
            if said == FAILED:
                raise what
            if said == LOST:
                worker_set.remove(worker)
                if worker in idle:
                    idle.remove(worker)
                lost_beginners += work_item is None
                _check(lost_beginners, worker_set, what)
                error = None
                if work_item is not None:
                    error = queue.put_back(work_item, worker_set, what)
                _hand_out(queue, idle, worker_set)
                if work_item is not None and error is not None:
                    lost_items += 1
                    if lost_items == ATTEMPTS:
                        raise error
                    yield work_item.number, error
                continue
            lost_beginners = 0
            idle.append(worker)
            if work_item is not None:
                lost_items = 0
                queue.finish(work_item.number)
            _hand_out(queue, idle, worker_set)
            if work_item is not None:
                yield work_item.number, what


def _hand_out(queue: _WorkQueue, idle: list[Any], worker_set: WorkerSet) -> None:
    """Give idle workers the items that can be begun; end them if there are no more."""
    while idle and (work_item := queue.pop()) is not None:
        worker = idle.pop(0)
        worker.work_item = work_item
        worker.take(pickle.dumps(work_item.item))
    if not queue.has_more_than(0):
        for worker in idle:
            worker_set.remove(worker)
        idle.clear()


class _WorkQueue:
    """Items in their order, taken one by one; those of lost workers come first."""

    def __init__(self, items: Iterable[Any], window: int | None) -> None:
        self._rest = (WorkItem(number, item) for number, item in enumerate(items))
        self._taken: deque[WorkItem[Any]] = deque()
        self._window = window
        self._first = 0  # the first item that is not done
        self._done: set[int] = set()  # those after it that are

    def has_more_than(self, count: int) -> bool:
        """Tell whether there are, looking no further than needed."""
        self._taken.extend(itertools.islice(self._rest, max(0, count + 1 - len(self._taken))))
        return len(self._taken) > count

    def pop(self) -> WorkItem[Any] | None:
        """The next item, if there is one that can be begun."""
        if not self.has_more_than(0):
            return None
        if self._window is not None and self._taken[0].number >= self._first + self._window:
            return None
        return self._taken.popleft()

    def finish(self, number: int) -> None:
        """An item is done: the window may move on."""
        self._done.add(number)
        while self._first in self._done:
            self._done.remove(self._first)
            self._first += 1

    def put_back(self, work_item: WorkItem[Any], worker_set: WorkerSet, how: str) -> WorkerLostError | None:
        """Have an item begun again; return an error if that was tried often enough."""
        if work_item.attempt == ATTEMPTS:
            self.finish(work_item.number)
            what = (
                f"item {work_item.number + 1} takes {worker_set.kind} down ({how}), {ATTEMPTS} times in a row"
            )
            return WorkerLostError(what, worker_set.hint, work_item.number)
        self._taken.appendleft(replace(work_item, attempt=work_item.attempt + 1))
        return None


def _check(lost_beginners: int, worker_set: WorkerSet, how: str) -> None:
    """Give up if workers can't even start; but while others are at work, a machine may come back."""
    if lost_beginners >= ATTEMPTS and not any(worker.work_item for worker in worker_set.workers):
        raise WorkerLostError(f"{worker_set.kind} go down before they have begun ({how})", worker_set.hint)
