"""How items get to workers and results come back, for any kind of worker.

A worker receives its task and then one item after the other, as bytes, and answers each with one message, as
bytes: `start_task` and `answer` run in the workers and make these messages. `dispatch` runs in the process
that wants the results. It decides which worker gets which item, and what to do when a worker is lost.
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

# Kinds of messages: the worker has started, the result of its item, or an error.
READY, DONE, FAILED = "ready", "done", "failed"
# The worker will send no message any more.
LOST = "lost"


def start_task(pickled: bytes) -> tuple[Any, bytes]:
    """Start a task; return the function to call with every item, and the first message."""
    try:
        task: Task[Any, Any] = pickle.loads(pickled)
        return task.begin(*task.arguments), pickle.dumps((READY, None))
    except BaseException as error:  # raised again by `dispatch`
        return None, _failure(error)


def answer(work: Any, received: bytes) -> bytes:
    """Process an item; return the message with its result."""
    try:
        return pickle.dumps((DONE, work(pickle.loads(received))))
    except BaseException as error:  # raised again by `dispatch`
        return _failure(error)


def _failure(error: BaseException) -> bytes:
    """Return the message with an error, unchanged if it can be pickled; its traceback becomes a note."""
    error.add_note(f"In a worker process:\n{''.join(traceback.format_exception(error))}")
    try:
        message = pickle.dumps((FAILED, error))
        pickle.loads(message)
    except Exception:  # pickling or copying may fail in any way
        return pickle.dumps((FAILED, RuntimeError(f"{type(error).__name__}: {error}")))
    return message


@dataclass(frozen=True)
class WorkItem(Generic[Item]):
    """One item, its number, and how often it was tried."""

    number: int
    item: Item
    attempt: int = 1


class Worker(Protocol):
    """One worker: it starts when it is created, and then takes items one at a time."""

    work_item: WorkItem[Any] | None

    def take(self, item: bytes) -> None:
        """Send an item; if the worker is already lost, `answer` says so."""

    def answer(self) -> tuple[str, Any]:
        """Return its message, once one has begun to arrive; LOST and the reason if it will send no more."""


class WorkerSet(Protocol):
    """The workers, and how many there may be."""

    kind: str  # the workers' name in messages
    hint: str  # what to do if workers are lost

    @property
    def workers(self) -> list[Any]:
        """The present workers."""

    def capacity(self) -> int:
        """Return how many workers there may be."""

    def add(self) -> None:
        """Start one more worker."""

    def wait_for_answers(self) -> list[Any]:
        """Wait, and return the workers that have answered or are lost; the list may be empty."""

    def remove(self, worker: Any) -> None:
        """End a worker that has no more items, has not started yet, or is lost."""


def dispatch(
    worker_set: WorkerSet, items: Iterable[Any], window: int | None = None
) -> Iterator[tuple[int, Any]]:
    """Yield each item's number with its result, or with an error if its workers were lost.

    Such errors end the work only if no other item gets finished: then the items are not to blame. A worker
    gets an item only once it has started, so no item waits for a slow start. It gets its next item before its
    last result is yielded, so it need not wait for the caller. See `Task` for the window.
    """
    queue = _WorkQueue(items, window)
    idle: list[Any] = []  # workers that have started, and wait until the window moves
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
                raise WorkerLostError(f"there is no room for {worker_set.kind}", worker_set.hint)
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
    """Give idle workers the items that can be begun; end the workers if there are no more items."""
    while idle and (work_item := queue.pop()) is not None:
        worker = idle.pop(0)
        worker.work_item = work_item
        worker.take(pickle.dumps(work_item.item))
    if not queue.has_more_than(0):
        for worker in idle:
            worker_set.remove(worker)
        idle.clear()


class _WorkQueue:
    """Items in order, taken one by one; those of lost workers come first."""

    def __init__(self, items: Iterable[Any], window: int | None) -> None:
        self._rest = (WorkItem(number, item) for number, item in enumerate(items))
        self._taken: deque[WorkItem[Any]] = deque()
        self._window = window
        self._first = 0  # the first unfinished item
        self._done: set[int] = set()  # the finished items after it

    def has_more_than(self, count: int) -> bool:
        """Tell whether more than `count` items are left, taking no more of them than needed."""
        self._taken.extend(itertools.islice(self._rest, max(0, count + 1 - len(self._taken))))
        return len(self._taken) > count

    def pop(self) -> WorkItem[Any] | None:
        """Take the next item; None if none can be begun."""
        if not self.has_more_than(0):
            return None
        if self._window is not None and self._taken[0].number >= self._first + self._window:
            return None
        return self._taken.popleft()

    def finish(self, number: int) -> None:
        """Mark an item as finished, so that the window may move."""
        self._done.add(number)
        while self._first in self._done:
            self._done.remove(self._first)
            self._first += 1

    def put_back(self, work_item: WorkItem[Any], worker_set: WorkerSet, how: str) -> WorkerLostError | None:
        """Queue an item again; return an error after ATTEMPTS tries."""
        if work_item.attempt == ATTEMPTS:
            self.finish(work_item.number)
            what = (
                f"item {work_item.number + 1} takes {worker_set.kind} down ({how}), {ATTEMPTS} times in a row"
            )
            return WorkerLostError(what, worker_set.hint, work_item.number)
        self._taken.appendleft(replace(work_item, attempt=work_item.attempt + 1))
        return None


def _check(lost_beginners: int, worker_set: WorkerSet, how: str) -> None:
    """Raise an error if workers can't even start; while others are at work, a machine may come back."""
    if lost_beginners >= ATTEMPTS and not any(worker.work_item for worker in worker_set.workers):
        raise WorkerLostError(f"{worker_set.kind} die before they have started ({how})", worker_set.hint)
