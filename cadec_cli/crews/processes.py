"""A crew of processes on this machine.

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
from cadec_cli.crews.handing_out import Piece, hand_out
from cadec_cli.workers import interrupts_held_back, leave_interrupts_to_the_parent

# Seconds that a member without work has to leave by itself.
_LEAVING = 10


class Processes:
    """Processes of this machine, each with a copy of what the task needs."""

    def __init__(self, members: int) -> None:
        if members < 1:
            raise ValueError("a crew has at least one member")
        self._members = members

    @property
    def members(self) -> int:
        """How many work at a time."""
        return self._members

    def run(self, task: Task[Item, Result], items: Iterable[Item]) -> Results[Result]:
        """Yield each item's number with what was made of it, as they are done.

        There are never more processes than items, and those for whom nothing is left end at once.
        """
        with _staff(pickle.dumps(task), self._members) as staff:
            yield from hand_out(staff, items)


@dataclass(eq=False)
class _Member:
    """One process, seen from the parent."""

    process: SpawnProcess
    connection: Connection
    piece: Piece[Any] | None = None
    begun: bool = False

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
        self.begun = True
        answer: tuple[str, Any] = pickle.loads(said)
        return answer

    def end(self, patience: float) -> None:
        """Let it leave by itself, but not for ever."""
        self.connection.close()
        self.process.join(patience)
        self.process.kill()
        self.process.join()


class _Staff:
    """All processes that there are."""

    kind = "worker processes"
    hint = "perhaps memory ran out: try fewer --workers"

    def __init__(self, task: bytes, most: int) -> None:
        self.members: list[_Member] = []
        self.leaving: list[_Member] = []
        self._task = task
        self._most = most

    def room(self) -> int:
        """As many as were asked for."""
        return self._most

    def add(self) -> None:
        """Start one more process."""
        context = multiprocessing.get_context("spawn")
        with interrupts_held_back():
            ours, theirs = context.Pipe()
            process = context.Process(target=_member, args=(theirs,), daemon=True)
            process.start()
            theirs.close()  # else its end would not be the end of the pipe
            self.members.append(_Member(process, ours))
        self.members[-1].take(self._task)

    def heard(self) -> list[_Member]:
        """Wait until something is heard of some, be it that they died."""
        signs = [sign for member in self.members for sign in (member.connection, member.process.sentinel)]
        heard = set(wait(signs))
        return [m for m in self.members if m.connection in heard or m.process.sentinel in heard]

    def dismiss(self, member: _Member) -> None:
        """Let one go: the end of its pipe tells it, unless it is still about to begin."""
        self.leaving.append(member)
        self.members.remove(member)
        member.connection.close()
        if not member.begun:
            member.process.kill()

    def end(self, patience: float) -> None:
        """Wait for those who are leaving, and end all others."""
        for member in self.members:
            member.process.kill()
        for member in (*self.members, *self.leaving):
            member.end(patience)


@contextlib.contextmanager
def _staff(task: bytes, most: int) -> Iterator[_Staff]:
    """Processes that all end with this; at once, unless there is nothing left to do."""
    staff = _Staff(task, most)
    try:
        yield staff
        staff.end(_LEAVING)
    finally:
        with interrupts_held_back():
            staff.end(patience=0)


def _ending(exit_code: int | None) -> str:
    """How a process ended, in words."""
    if exit_code is not None and exit_code < 0:
        with contextlib.suppress(ValueError):
            return f"ended by {signal.Signals(-exit_code).name}"
    return f"exit code {exit_code}"


def _member(connection: Connection) -> None:
    """What a process does: begin, then take item after item until there are no more."""
    leave_interrupts_to_the_parent()
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    console.set_quiet(True)  # the terminal is the parent's
    with contextlib.suppress(EOFError, ConnectionError):  # there is no more to do, or nobody to do it for
        work, answer = answers.begun(connection.recv_bytes())
        while True:
            connection.send_bytes(answer)
            answer = answers.answer(work, connection.recv_bytes())


def _end_with_the_parent() -> None:
    """A parent that was killed can't end its children, and work in hand would go on for nobody."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
