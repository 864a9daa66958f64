"""Commands as real processes that are cheap to start: forks of one that has imported everything.

To start Python and import torch takes seconds, a fork milliseconds. Whoever forks must not have run anything
itself: threads do not come along.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

Work = Callable[[], int]
Burden = Callable[[], None]  # what is done to a process before it begins

NEEDED = (
    *("ctranslate2", "pysubs2", "sentencepiece", "sacremoses", "sentencex", "safetensors.torch", "torch"),
    *("cadec_cli.main", "cadec_cli.bundle.load", "cadec_cli.jobs.in_step"),
    *("cadec_cli.jobs.back_translation", "cadec_cli.data.preparation", "cadec_cli.training.training_run"),
    "converters.own_networks",
)


@dataclass(frozen=True)
class Ending:
    """How a process ended; without a code it was killed."""

    code: int | None
    told: str  # what it wrote to its standard streams
    seconds: float

    @property
    def killed(self) -> bool:
        """Tell whether it was."""
        return self.code is None


class Child:
    """A process that was started here."""

    def __init__(self, pid: int, streams: int) -> None:
        self._pid, self._streams, self._started = pid, streams, time.monotonic()

    def ended(self, kill_after: float | None = None) -> Ending:
        """Wait until it has ended; kill it if that takes longer than so many seconds."""
        handle = os.pidfd_open(self._pid)
        ready, _, _ = select.select([handle], [], [], kill_after)
        if not ready:
            os.kill(self._pid, signal.SIGKILL)
        os.close(handle)
        _, status = os.waitpid(self._pid, 0)
        seconds = time.monotonic() - self._started
        told = os.pread(self._streams, 1 << 24, 0).decode("utf-8", "replace")
        os.close(self._streams)
        code = os.waitstatus_to_exitcode(status)
        if code < 0 and code != -signal.SIGKILL:
            raise AssertionError(f"ended by signal {-code}:\n{told}")
        return Ending(None if code < 0 else code, told, seconds)


def start(work: Work, burdens: Sequence[Burden] = ()) -> Child:
    """Run something in a process of its own."""
    streams = os.memfd_create("streams")
    sys.stdout.flush()
    sys.stderr.flush()
    pid = _fork()
    if pid:
        return Child(pid, streams)
    code = 70
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(streams, 1)
        os.dup2(streams, 2)
        for burden in burdens:
            burden()
        code = work()
        sys.stdout.flush()
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _fork() -> int:
    for _ in range(50):
        try:
            return os.fork()
        except BlockingIOError:  # too many processes at the moment, of others
            time.sleep(0.2)
    return os.fork()


def command(arguments: Sequence[object], directory: Path, cache: Path) -> Work:
    """A command of cadec, as the shell would run it in a directory."""

    def work() -> int:
        from cadec_cli.main import exit_code

        os.chdir(directory)
        os.environ["CADEC_CACHE"] = str(cache)
        return exit_code([str(argument) for argument in arguments])

    return work


def import_once(modules: Sequence[str] = NEEDED) -> None:
    """Import what commands need, before any is started."""
    import importlib

    for name in modules:
        importlib.import_module(name)
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "threads do not survive a fork"


def import_also(modules: Sequence[str]) -> None:
    """Import what a command was seen to import, if it can be imported by itself."""
    import contextlib

    for name in modules:
        if name not in sys.modules and not name.startswith(("kills", "__")):
            with contextlib.suppress(Exception):
                import_once([name])
