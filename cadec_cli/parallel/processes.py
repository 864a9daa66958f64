"""A pool of processes on this machine.

Processes are spawned, since forking a program that has loaded torch is not safe. Each has a pipe of its own,
so that the death of one harms no other. They are deaf to Ctrl-C, which a terminal sends to all: the parent
hears it and ends them; and they end by themselves when the parent is gone.
"""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import pickle
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, Generic, Protocol

from cadec_cli.errors import option
from cadec_cli.parallel import (
    ATTEMPTS,
    Item,
    Result,
    Results,
    Task,
    WorkerLostError,
    answers,
    hold_interrupts,
    ignore_interrupts,
)
from cadec_cli.parallel.answers import FAILED, LOST, READY
from cadec_cli.terminal import console

# Handing out: which worker gets which item, and what becomes of those that were lost.


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


# Seconds that a worker without work has to leave by itself.
_LEAVING = 10


class ProcessPool:
    """Processes of this machine, each with a copy of what the task needs."""

    def __init__(self, workers: int) -> None:
        if workers < 1:
            raise ValueError("a pool has at least one worker")
        self._members = workers

    @property
    def size(self) -> int:
        """How many work at a time."""
        return self._members

    def run(self, task: Task[Item, Result], items: Iterable[Item]) -> Results[Result]:
        """Yield each item's number with what was made of it, as they are done.

        There are never more processes than items, and those for whom nothing is left end at once.
        """
        with _worker_set(pickle.dumps(task), self._members) as worker_set:
            yield from dispatch(worker_set, items)


@dataclass(eq=False)
class _ProcessWorker:
    """One process, seen from the parent."""

    process: SpawnProcess
    connection: Connection
    work_item: WorkItem[Any] | None = None
    has_started: bool = False

    def take(self, item: bytes) -> None:
        """Hand it an item; if it is lost already, its answer will tell."""
        with contextlib.suppress(ConnectionError):
            self.connection.send_bytes(item)

    def answer(self) -> tuple[str, Any]:
        """What it says; what it said before it died comes first."""
        said = b""
        with contextlib.suppress(EOFError, OSError):  # its end came between two messages, or within one
            said = self.connection.recv_bytes() if self.connection.poll() else b""
        if not said:
            self.end(_LEAVING)
            return answers.LOST, _ending(self.process.exitcode)
        self.has_started = True
        answer: tuple[str, Any] = pickle.loads(said)
        return answer

    def end(self, patience: float) -> None:
        """Let it leave by itself, but not for ever."""
        self.connection.close()
        self.process.join(patience)
        self.process.kill()
        self.process.join()


class _ProcessWorkerSet:
    """All processes that there are."""

    kind = "worker processes"
    hint = f"perhaps memory ran out: try fewer {option('workers')}"

    def __init__(self, task: bytes, most: int) -> None:
        self.workers: list[_ProcessWorker] = []
        self.leaving: list[_ProcessWorker] = []
        self._task = task
        self._most = most

    def capacity(self) -> int:
        """As many as were asked for."""
        return self._most

    def add(self) -> None:
        """Start one more process."""
        context = multiprocessing.get_context("spawn")
        with hold_interrupts():
            ours, theirs = context.Pipe()
            process = context.Process(target=_run_worker, args=(theirs,), daemon=True)
            process.start()
            theirs.close()  # else its end would not be the end of the pipe
            self.workers.append(_ProcessWorker(process, ours))
        self.workers[-1].take(self._task)

    def wait_for_answers(self) -> list[_ProcessWorker]:
        """Wait until something is heard of some, be it that they died."""
        signs = [sign for worker in self.workers for sign in (worker.connection, worker.process.sentinel)]
        heard = set(wait(signs))
        return [m for m in self.workers if m.connection in heard or m.process.sentinel in heard]

    def remove(self, worker: _ProcessWorker) -> None:
        """Let one go: the end of its pipe tells it, unless it is still about to begin."""
        self.leaving.append(worker)
        self.workers.remove(worker)
        worker.connection.close()
        if not worker.has_started:
            worker.process.kill()

    def end(self, patience: float) -> None:
        """Wait for those who are leaving, and end all others."""
        for worker in self.workers:
            worker.process.kill()
        for worker in (*self.workers, *self.leaving):
            worker.end(patience)


@contextlib.contextmanager
def _worker_set(task: bytes, most: int) -> Iterator[_ProcessWorkerSet]:
    """Processes that all end with this; at once, unless there is nothing left to do."""
    worker_set = _ProcessWorkerSet(task, most)
    try:
        yield worker_set
        worker_set.end(_LEAVING)
    finally:
        with hold_interrupts():
            worker_set.end(patience=0)


def _ending(exit_code: int | None) -> str:
    """How a process ended, in words."""
    if exit_code is not None and exit_code < 0:
        with contextlib.suppress(ValueError):
            return f"ended by {signal.Signals(-exit_code).name}"
    return f"exit code {exit_code}"


def _run_worker(connection: Connection) -> None:
    """What a process does: begin, then take item after item until there are no more."""
    ignore_interrupts()
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    console.set_quiet(True)  # the terminal is the parent's
    with contextlib.suppress(EOFError, ConnectionError):  # there is no more to do, or nobody to do it for
        work, answer = answers.start_task(connection.recv_bytes())
        while True:
            connection.send_bytes(answer)
            answer = answers.answer(work, connection.recv_bytes())


def _end_with_the_parent() -> None:
    """A parent that was killed can't end its children, and work in hand would go on for nobody."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
