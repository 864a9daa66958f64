"""A pool of processes on this machine.

Processes are spawned, since forking a program that has loaded torch is not safe. Each has a pipe of its own,
so that the death of one harms no other. They ignore Ctrl-C, which a terminal sends to all processes: the
parent handles it and ends them. They end by themselves when the parent is gone.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import ModuleType
from typing import Any

from cadec_cli.errors import option
from cadec_cli.parallel import Item, Result, Results, SerialPool, Task, WorkerPool, available_cores
from cadec_cli.parallel.dispatch import LOST, WorkItem, answer, dispatch, start_task

# Seconds that a process without work has to leave by itself.
_LEAVING = 10


class ProcessPool:
    """Processes of this machine, each with a copy of what the task needs.

    `set_by` is the option that a user can change their number with.
    """

    def __init__(self, workers: int, set_by: str = "workers") -> None:
        if workers < 1:
            raise ValueError("a pool has at least one worker")
        self._workers = workers
        self._hint = f"perhaps memory ran out: try fewer {option(set_by)}"

    @property
    def size(self) -> int:
        """How many work at a time."""
        return self._workers

    def run(self, task: Task[Item, Result], items: Iterable[Item]) -> Results[Result]:
        """Yield each item's number with its result, as they are done.

        There are never more processes than items, and those for which nothing is left end at once.
        """
        with _worker_set(pickle.dumps(task), self._workers, self._hint) as worker_set:
            yield from dispatch(worker_set, items, task.window)


def local_pool(processes: int, set_by: str) -> WorkerPool:
    """A pool of so many processes: of one per core for 0, and this process alone for 1."""
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
        """Give it an item; if it is lost already, its answer will tell."""
        with contextlib.suppress(ConnectionError):
            self.connection.send_bytes(item)

    def answer(self) -> tuple[str, Any]:
        """Its message; one that it sent before it died comes first."""
        message = b""
        with contextlib.suppress(EOFError, OSError):  # it died between two messages, or within one
            message = self.connection.recv_bytes() if self.connection.poll() else b""
        if not message:
            self.end(_LEAVING)
            return LOST, _ending(self.process.exitcode)
        self.has_started = True
        found: tuple[str, Any] = pickle.loads(message)
        return found

    def end(self, patience: float) -> None:
        """Let it leave by itself, but not for ever."""
        self.connection.close()
        self.process.join(patience)
        self.process.kill()
        self.process.join()


class _ProcessWorkerSet:
    """All processes that there are."""

    kind = "worker processes"

    def __init__(self, task: bytes, most: int, hint: str) -> None:
        self.hint = hint
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
        with _hold_interrupts(), _hide_main_module():
            ours, theirs = context.Pipe()
            process = context.Process(target=_run_worker, args=(theirs,), daemon=True)
            process.start()
            theirs.close()  # else its end would not be the end of the pipe
            self.workers.append(_ProcessWorker(process, ours))
        self.workers[-1].take(self._task)

    def wait_for_answers(self) -> list[_ProcessWorker]:
        """Wait until some have answered or died."""
        signs = [sign for worker in self.workers for sign in (worker.connection, worker.process.sentinel)]
        found = set(wait(signs))
        return [one for one in self.workers if one.connection in found or one.process.sentinel in found]

    def remove(self, worker: _ProcessWorker) -> None:
        """End one: it leaves when its pipe is closed, but one that has not started yet is killed."""
        self.leaving.append(worker)
        self.workers.remove(worker)
        worker.connection.close()
        if not worker.has_started:
            worker.process.kill()

    def end(self, patience: float) -> None:
        """Wait for those that are leaving, and kill all others."""
        for worker in self.workers:
            worker.process.kill()
        for worker in (*self.workers, *self.leaving):
            worker.end(patience)


@contextlib.contextmanager
def _worker_set(task: bytes, most: int, hint: str) -> Iterator[_ProcessWorkerSet]:
    """Processes that all end with this block; at once, unless nothing is left to do."""
    worker_set = _ProcessWorkerSet(task, most, hint)
    try:
        yield worker_set
        worker_set.end(_LEAVING)
    finally:
        with _hold_interrupts():
            worker_set.end(patience=0)


def _ending(exit_code: int | None) -> str:
    """How a process ended, in words."""
    if exit_code is not None and exit_code < 0:
        with contextlib.suppress(ValueError):
            return f"ended by {signal.Signals(-exit_code).name}"
    return f"exit code {exit_code}"


def _run_worker(connection: Connection) -> None:
    """What a process does: start the task, then do one item after the other until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # where it could not be held back
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    with contextlib.suppress(EOFError, ConnectionError):  # there is no more to do, or nobody to do it for
        work, message = start_task(connection.recv_bytes())
        while True:
            connection.send_bytes(message)
            message = answer(work, connection.recv_bytes())


def _end_with_the_parent() -> None:
    """End this process with its parent: one that was killed can't end its children."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextlib.contextmanager
def _hide_main_module() -> Iterator[None]:
    """Keep processes that are started from importing the program's main module, which is the command line.

    Tasks are functions of modules, so nothing in it is needed, and scripts need no guard against it.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextlib.contextmanager
def _hold_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back; processes that are started meanwhile ignore it from their first moment on."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
