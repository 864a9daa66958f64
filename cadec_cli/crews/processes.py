"""A pool of processes on this machine.

Processes are spawned, since forking a program that has loaded torch is not safe. Each has a pipe of its own,
so that the death of one harms no other. They are deaf to Ctrl-C, which a terminal sends to all: the parent
hears it and ends them; and they end by themselves when the parent is gone.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from cadec_cli import console
from cadec_cli.crews import Item, Result, Results, Task, answers
from cadec_cli.crews.handing_out import WorkItem, dispatch
from cadec_cli.workers import hold_interrupts, ignore_interrupts

# Seconds that a worker without work has to leave by itself.
_LEAVING = 10


class ProcessPool:
    """Processes of this machine, each with a copy of what the task needs."""

    def __init__(self, workers: int) -> None:
        if workers < 1:
            raise ValueError("a crew has at least one worker")
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
    hint = "perhaps memory ran out: try fewer --workers"

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
