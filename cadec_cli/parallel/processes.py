"""A pool of processes on this machine, and how items get to workers of any kind and results come back.

A worker receives its task and then one item after the other, as bytes, and answers each with one message, as
bytes: `start_task` and `answer` run in the workers and make these messages. `dispatch` runs in the process
that wants the results. It decides which worker gets which item, and what to do when a worker is lost.

Processes are spawned, since forking a program that has loaded torch is not safe. Each has a pipe of its own,
so that the death of one harms no other. They ignore Ctrl-C, which a terminal sends to all processes: the
parent handles it and ends them. They end by themselves when the parent is gone.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import traceback
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import ModuleType
from typing import Any, Generic, Protocol

from cadec_cli.errors import option
from cadec_cli.parallel import (
    ATTEMPTS,
    Item,
    Result,
    Results,
    SerialPool,
    Task,
    WorkerLostError,
    WorkerPool,
    available_cores,
)

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


# Seconds that a process without work has to exit by itself.
_LEAVING = 10


class ProcessPool:
    """Processes on this machine, each with its own copy of the task's models and data.

    `set_by` is the option with which a user sets the number of workers.
    """

    def __init__(self, workers: int, set_by: str = "workers") -> None:
        if workers < 1:
            raise ValueError("a pool has at least one worker")
        self._workers = workers
        self._hint = f"perhaps memory ran out: try fewer {option(set_by)}"

    @property
    def size(self) -> int:
        """The number of workers at a time."""
        return self._workers

    def run(self, task: Task[Item, Result], items: Iterable[Item]) -> Results[Result]:
        """Yield each item's number with its result, in the order in which results arrive.

        There are never more processes than items, and a process ends as soon as no item is left for it.
        """
        with _worker_set(pickle.dumps(task), self._workers, self._hint) as worker_set:
            yield from dispatch(worker_set, items, task.window)


def local_pool(processes: int, set_by: str) -> WorkerPool:
    """Return a pool of `processes` processes: one per core for 0, this process alone for 1."""
    count = processes or available_cores()
    return SerialPool() if count == 1 else ProcessPool(count, set_by)


@dataclass(eq=False)
class _ProcessWorker:
    """One process, as the parent sees it."""

    process: SpawnProcess
    connection: Connection
    work_item: WorkItem[Any] | None = None
    has_started: bool = False

    def take(self, item: bytes) -> None:
        """Send an item; if the worker is already lost, `answer` says so."""
        with contextlib.suppress(ConnectionError):
            self.connection.send_bytes(item)

    def answer(self) -> tuple[str, Any]:
        """Return its message, also one that it sent before it died; else LOST and how it ended."""
        message = b""
        with contextlib.suppress(EOFError, OSError):  # it died between two messages, or while sending one
            message = self.connection.recv_bytes() if self.connection.poll() else b""
        if not message:
            self.end(_LEAVING)
            return LOST, _ending(self.process.exitcode)
        self.has_started = True
        found: tuple[str, Any] = pickle.loads(message)
        return found

    def end(self, patience: float) -> None:
        """Give it `patience` seconds to exit, then kill it."""
        self.connection.close()
        self.process.join(patience)
        self.process.kill()
        self.process.join()


class _ProcessWorkerSet:
    """The worker processes."""

    kind = "worker processes"

    def __init__(self, task: bytes, most: int, hint: str) -> None:
        self.hint = hint
        self.workers: list[_ProcessWorker] = []
        self.leaving: list[_ProcessWorker] = []
        self._task = task
        self._most = most

    def capacity(self) -> int:
        """Return the number of processes asked for."""
        return self._most

    def add(self) -> None:
        """Start one more process."""
        context = multiprocessing.get_context("spawn")
        with _hold_interrupts(), _hide_main_module():
            ours, theirs = context.Pipe()
            process = context.Process(target=_run_worker, args=(theirs,), daemon=True)
            process.start()
            theirs.close()  # else the pipe would stay open when the process ends
            self.workers.append(_ProcessWorker(process, ours))
        self.workers[-1].take(self._task)

    def wait_for_answers(self) -> list[_ProcessWorker]:
        """Wait until some workers have answered or died, and return them."""
        signs = [sign for worker in self.workers for sign in (worker.connection, worker.process.sentinel)]
        found = set(wait(signs))
        return [one for one in self.workers if one.connection in found or one.process.sentinel in found]

    def remove(self, worker: _ProcessWorker) -> None:
        """End a worker: it exits when its pipe is closed; one that has not started yet is killed."""
        self.leaving.append(worker)
        self.workers.remove(worker)
        worker.connection.close()
        if not worker.has_started:
            worker.process.kill()

    def end(self, patience: float) -> None:
        """Wait for the processes that are exiting, and kill all others."""
        for worker in self.workers:
            worker.process.kill()
        for worker in (*self.workers, *self.leaving):
            worker.end(patience)


@contextlib.contextmanager
def _worker_set(task: bytes, most: int, hint: str) -> Iterator[_ProcessWorkerSet]:
    """Yield a set of processes that all end with this block; after an error they are killed at once."""
    worker_set = _ProcessWorkerSet(task, most, hint)
    try:
        yield worker_set
        worker_set.end(_LEAVING)
    finally:
        with _hold_interrupts():
            worker_set.end(patience=0)


def _ending(exit_code: int | None) -> str:
    """Describe how a process ended."""
    if exit_code is not None and exit_code < 0:
        with contextlib.suppress(ValueError):
            return f"ended by {signal.Signals(-exit_code).name}"
    return f"exit code {exit_code}"


def _run_worker(connection: Connection) -> None:
    """Run in a worker process: start the task, then process items until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on systems where it can't be blocked
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    with contextlib.suppress(EOFError, ConnectionError):  # no more items, or the parent is gone
        work, message = start_task(connection.recv_bytes())
        while True:
            connection.send_bytes(message)
            message = answer(work, connection.recv_bytes())


def _end_with_the_parent() -> None:
    """End this process with its parent: a parent that was killed can't end its children."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextlib.contextmanager
def _hide_main_module() -> Iterator[None]:
    """Keep new processes from importing the program's main module, which is the command line.

    Tasks are functions of modules, so workers do not need it, and scripts need no `__main__` guard.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextlib.contextmanager
def _hold_interrupts() -> Iterator[None]:
    """Block Ctrl-C in this block; processes that are started in it ignore Ctrl-C from the beginning."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
