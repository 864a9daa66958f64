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
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, Generic

from cadec_cli import console
from cadec_cli.crews import Item, Result, Task
from cadec_cli.crews.pieces import Piece, pieces
from cadec_cli.workers import interrupts_held_back, leave_interrupts_to_the_parent

# What a member says: that it has begun, what it made of its piece, or what went wrong.
# The last is what silence means.
_READY, _DONE, _FAILED, _LOST = "ready", "done", "failed", "lost"

_HINT = "perhaps memory ran out: try fewer --workers"

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

    def run(self, task: Task[Item, Result], items: Iterable[Item]) -> Iterator[tuple[int, Result]]:
        """Yield each item's number with what was made of it, as they are done.

        There are never more processes than items, and those for whom nothing is left end at once.
        """
        pickled = pickle.dumps(task)
        waiting = pieces(items)
        with _staff() as staff:
            for _, piece in zip(range(self._members), waiting, strict=False):
                staff.add(pickled, piece)
            while staff.members:
                for member in staff.heard():
                    said, what = member.answer()
                    if said == _READY:
                        member.take(member.piece)
                    elif said == _FAILED:
                        raise what
                    elif said == _DONE:
                        number = member.piece.number
                        following = next(waiting, None)
                        if following is None:
                            staff.dismiss(member)
                        else:
                            member.take(following)
                        yield number, what
                    else:
                        staff.dismiss(member)
                        staff.add(pickled, member.piece.again(f"worker processes down ({what})", _HINT))


@dataclass(eq=False)
class _Member(Generic[Item]):
    """One process, seen from the parent, and what it has in hand."""

    process: SpawnProcess
    connection: Connection
    piece: Piece[Item]

    def take(self, piece: Piece[Item]) -> None:
        """Hand it a piece; if it has died, its answer will tell."""
        self.piece = piece
        with contextlib.suppress(ConnectionError):
            self.connection.send(piece.item)

    def answer(self) -> tuple[str, Any]:
        """What it says, now that there is something; what it said before it died comes first."""
        said = b""
        with contextlib.suppress(EOFError, OSError):  # its end came between two messages, or within one
            said = self.connection.recv_bytes() if self.connection.poll() else b""
        if not said:
            self.end(_LEAVING)
            return _LOST, _ending(self.process.exitcode)
        answer: tuple[str, Any] = pickle.loads(said)
        return answer

    def end(self, patience: float) -> None:
        """Let it leave by itself, but not for ever."""
        self.connection.close()
        self.process.join(patience)
        self.process.kill()
        self.process.join()


@dataclass(eq=False)
class _Staff(Generic[Item]):
    """All processes that there are."""

    members: list[_Member[Item]] = field(default_factory=list)
    leaving: list[_Member[Item]] = field(default_factory=list)

    def add(self, task: bytes, piece: Piece[Item]) -> None:
        """Start a process for a piece, which it will take when it has begun."""
        context = multiprocessing.get_context("spawn")
        with interrupts_held_back():
            ours, theirs = context.Pipe()
            process = context.Process(target=_member, args=(theirs,), daemon=True)
            process.start()
            theirs.close()  # else its end would not be the end of the pipe
            self.members.append(_Member(process, ours, piece))
        with contextlib.suppress(ConnectionError):
            ours.send_bytes(task)

    def heard(self) -> list[_Member[Item]]:
        """Wait until something is heard of some, be it that they died."""
        signs = [sign for member in self.members for sign in (member.connection, member.process.sentinel)]
        heard = set(wait(signs))
        return [m for m in self.members if m.connection in heard or m.process.sentinel in heard]

    def dismiss(self, member: _Member[Item]) -> None:
        """Let one go that has died, or for whom nothing is left: the end of its pipe tells it."""
        self.leaving.append(member)
        self.members.remove(member)
        member.connection.close()

    def see_off(self) -> None:
        """Wait for those who are leaving."""
        for member in self.leaving:
            member.end(_LEAVING)


@contextlib.contextmanager
def _staff() -> Iterator[_Staff[Any]]:
    """Processes that all end with this; at once, unless there is nothing left to do."""
    staff: _Staff[Any] = _Staff()
    try:
        yield staff
        staff.see_off()
    finally:
        with interrupts_held_back():
            for member in (*staff.members, *staff.leaving):
                member.process.kill()
            for member in (*staff.members, *staff.leaving):
                member.end(patience=0)


def _ending(exit_code: int | None) -> str:
    """How a process ended, in words."""
    if exit_code is not None and exit_code < 0:
        with contextlib.suppress(ValueError):
            return f"ended by {signal.Signals(-exit_code).name}"
    return f"exit code {exit_code}"


# What follows runs in the members.


def _member(connection: Connection) -> None:
    """What a process does: begin, then take item after item until there are no more."""
    leave_interrupts_to_the_parent()
    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    console.set_quiet(True)  # the terminal is the parent's
    with contextlib.suppress(EOFError, ConnectionError):  # there is no more to do, or nobody to do it for
        work, answer = _begun(connection.recv_bytes())
        while True:
            connection.send_bytes(answer)
            answer = _answer(work, connection.recv_bytes())


def _begun(pickled: bytes) -> tuple[Any, bytes]:
    """What the task begins with, and what to say of it."""
    try:
        task: Task[Any, Any] = pickle.loads(pickled)
        return task.begin(*task.arguments), pickle.dumps((_READY, None))
    except BaseException as error:  # the parent raises it
        return None, _failure(error)


def _answer(work: Any, received: bytes) -> bytes:
    """What was made of an item, on its way to the parent."""
    try:
        return pickle.dumps((_DONE, work(pickle.loads(received))))
    except BaseException as error:  # the parent raises it
        return _failure(error)


def _end_with_the_parent() -> None:
    """A parent that was killed can't end its children, and work in hand would go on for nobody."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _failure(error: BaseException) -> bytes:
    """An error on its way to the parent, as it is if it can travel; a traceback can't, so it is told."""
    error.add_note(f"In a worker process:\n{''.join(traceback.format_exception(error))}")
    try:
        told = pickle.dumps((_FAILED, error))
        pickle.loads(told)
    except Exception:
        return pickle.dumps((_FAILED, RuntimeError(f"{type(error).__name__}: {error}")))
    return told
