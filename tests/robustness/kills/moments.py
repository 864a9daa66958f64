"""Moments at which a process is killed: some time after its start, or right before it changes a file.

Python tells what a process does to the file system: by audit events (files opened, renamed, removed), and to
a profiler (what is written and synced). So every one of these moments can be met, not only those that take
long. What libraries in C++ write is met by time alone.
"""

from __future__ import annotations

import io
import json
import os
import posix
import random
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import FrameType
from typing import Any

_AUDITED = {
    "os.rename": "rename",
    "os.remove": "remove",
    "os.mkdir": "mkdir",
    "os.rmdir": "rmdir",
    "os.truncate": "truncate",
    "os.chmod": "chmod",
    "os.link": "link",
    "os.symlink": "symlink",
    "fcntl.flock": "lock",
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_STREAMS = (io.FileIO, io.BufferedWriter, io.BufferedRandom, io.TextIOWrapper)
_STREAM_CALLS = frozenset({"write", "writelines", "truncate"})
_SYSTEM_CALLS = frozenset({"fsync", "write", "pwrite", "ftruncate", "sendfile", "copy_file_range"})

# The name of a file that is being written, until it is whole.
_UNFINISHED = (".part", ".cadec-whole")


@dataclass(frozen=True)
class Moment:
    """Right before the n-th event of a name, or so many seconds after the start."""

    event: str = ""
    number: int = 0
    seconds: float | None = None
    final: bool = False  # events are counted from where the output is written

    def __str__(self) -> str:
        when = f"after {self.seconds:.3f} s" if self.seconds is not None else f"{self.event} {self.number}"
        return when + (" of the final write" if self.final else "")


class Watch:
    """Counts what this process does to the file system from now on."""

    def __init__(self, at: Moment | None = None, *, final: bool = False) -> None:
        self.seen: Counter[str] = Counter()
        self._at = at
        self._armed = not (at.final if at is not None else final)

    def begin(self) -> None:
        """Watch; there is no way back, for audit hooks stay."""
        sys.addaudithook(self._audited)
        sys.setprofile(self._called)

    def _audited(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if flags & _WRITING and not str(path).startswith("/dev/"):
                self._armed = self._armed or str(path).endswith(_UNFINISHED)
                self._met("open")
        elif event in _AUDITED:
            self._met(_AUDITED[event])

    def _called(self, frame: FrameType, event: str, function: Any) -> None:
        if event != "c_call":
            return
        owner = getattr(function, "__self__", None)
        name = getattr(function, "__name__", "")
        if owner is posix:
            if name in _SYSTEM_CALLS:
                self._met(name)
        elif name in _STREAM_CALLS and isinstance(owner, _STREAMS) and owner not in (sys.stderr, sys.stdout):
            self._met(name)

    def _met(self, name: str) -> None:
        if not self._armed:
            return
        self.seen[name] += 1
        if self._at is not None and (self._at.event, self._at.number) == (name, self.seen[name]):
            os.kill(os.getpid(), signal.SIGKILL)


def watched(moment: Moment) -> Callable[[], None]:
    """A burden: the process kills itself at that moment."""

    def burden() -> None:
        Watch(moment).begin()

    return burden


def counting(work: Callable[[], int], report: int, *, final: bool = False) -> Callable[[], int]:
    """The same work; what it does to the file system is then written to a descriptor, as are its modules."""

    def counted() -> int:
        watch = Watch(final=final)
        watch.begin()
        code = work()
        sys.setprofile(None)
        os.write(report, json.dumps({"events": watch.seen, "modules": sorted(sys.modules)}).encode())
        return code

    return counted


@dataclass
class Moments:
    """Where a run can be killed: what an undisturbed one did, and how long the quickest one took."""

    events: dict[str, int]
    seconds: float
    final: bool = False

    def any(self, rng: random.Random) -> Moment:
        """One of them: by time or by event, and rare events as often as frequent ones."""
        if not self.final and rng.random() < 0.5:
            return Moment(seconds=rng.uniform(0, self.seconds))
        event = rng.choice(sorted(self.events))
        return Moment(event, rng.randint(1, self.events[event]), final=self.final)

    def of_every_kind(self) -> Iterable[Moment]:
        """The first and the last of every kind of event."""
        for event, count in sorted(self.events.items()):
            for number in sorted({1, count}):
                yield Moment(event, number, final=self.final)
