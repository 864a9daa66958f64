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
