"""Commands as users run them, in processes of their own: what they took, and what stood beside them.

CPU time is that of the command and of all that it started and waited for. Nothing that this process was told
about threads is handed on: a command has to know by itself how its threads wait.
"""

import contextlib
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parents[1]
LOOPS = 8
PATIENCE = 20  # seconds that a command has to stop when it is told to
THREADING = ("OMP_", "GOMP_", "KMP_", "MKL_")
# A loop ends by itself, should nobody be left to end it.
LOOP = """
import os, sys
parent = os.getppid()
sys.stdout.write("spinning"), sys.stdout.flush()
while os.getppid() == parent:
    for _ in range(1_000_000):
        pass
"""


@dataclass(frozen=True)
class Spent:
    """Seconds of CPU time, and seconds that passed."""

    cpu: float
    wall: float


@dataclass(frozen=True)
class Memory:
    """What a process had in memory at most, in MiB: all of it, and what no other process shares with it."""

    peak: float
    own: float


def cadec(*arguments: object) -> list[str]:
    """A command line of cadec, without progress bars."""
    return [sys.executable, "-m", "cadec_cli", *map(str, arguments), "--quiet"]


def environment(code: Path = ROOT) -> dict[str, str]:
    """The environment of a command that runs the code of a checkout, which need not be this one."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(THREADING)}
    return kept | {"PYTHONPATH": str(code.resolve())}


@dataclass(frozen=True)
class Running:
    """A process that was started, and what it says on standard error."""

    line: Sequence[str]
    process: "subprocess.Popen[bytes]"
    errors: IO[bytes]
    begun: float

    def ended(self) -> Spent:
        """Wait for it, and return what it took; its failure is ours."""
        _, status, usage = os.wait4(self.process.pid, 0)
        wall = time.perf_counter() - self.begun
        self.process.returncode = os.waitstatus_to_exitcode(status)
        with self.errors as errors:
            errors.seek(0)
            told = errors.read().decode(errors="replace")
        if self.process.returncode:
            raise RuntimeError(f"{' '.join(self.line)} ended with {self.process.returncode}:\n{told}")
        return Spent(_seconds(usage), wall)


@contextlib.contextmanager
def running(line: Sequence[str], code: Path = ROOT) -> Iterator[Running]:
    """A process that is not left behind, whatever happens; in a directory without code, which would win.

    Ctrl-C is ours to hear: it is told then to stop, so that it can end what it started.
    """
    with tempfile.TemporaryDirectory() as place:
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it has ended
        process = subprocess.Popen(
            line,
            env=environment(code),
            cwd=place,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
        try:
            yield Running(line, process, errors, time.perf_counter())
        finally:
            errors.close()
            if process.returncode is None:
                _stop(process)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGINT)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def spent(line: Sequence[str], code: Path = ROOT) -> Spent:
    """What a command takes."""
    with running(line, code) as started:
        return started.ended()


def spent_at_once(lines: Sequence[Sequence[str]]) -> Spent:
    """What commands take beside each other: the CPU time of all, the seconds until the last is through."""
    with contextlib.ExitStack() as stack:
        begun = time.perf_counter()
        all_running = [stack.enter_context(running(line)) for line in lines]
        cpu = sum(started.ended().cpu for started in all_running)
        return Spent(cpu, time.perf_counter() - begun)


def spent_in_turn(lines: Sequence[Sequence[str]]) -> Spent:
    """What commands take one after the other."""
    each = [spent(line) for line in lines]
    return Spent(sum(one.cpu for one in each), sum(one.wall for one in each))


def medians(jobs: Mapping[str, Callable[[], Spent]], rounds: int) -> dict[str, Spent]:
    """The median of every job; they take turns, and the first round warms up."""
    taken: dict[str, list[Spent]] = {name: [] for name in jobs}
    for number in range(rounds + 1):
        for name, job in jobs.items():
            one = job()
            if number:
                taken[name].append(one)
    return {
        name: Spent(
            statistics.median(one.cpu for one in several), statistics.median(one.wall for one in several)
        )
        for name, several in taken.items()
    }


@contextlib.contextmanager
def busy_loops(count: int = LOOPS) -> Iterator[list[int]]:
    """Processes that do nothing but keep the machine busy, as long as this lasts; yields their ids."""
    with contextlib.ExitStack() as stack:
        loops = [stack.enter_context(_loop()) for _ in range(count)]
        for loop in loops:
            assert loop.stdout is not None
            loop.stdout.read(1)  # it spins from now on
        yield [loop.pid for loop in loops]


@contextlib.contextmanager
def _loop() -> Iterator["subprocess.Popen[bytes]"]:
    silent = subprocess.DEVNULL
    line = [sys.executable, "-I", "-S", "-c", LOOP]
    with subprocess.Popen(line, stdin=silent, stdout=subprocess.PIPE, stderr=silent) as process:
        try:
            yield process
        finally:
            process.kill()


class Descendants:
    """The memory of all processes below one, looked at until it has ended.

    A process that was below it once stays in the account, whoever adopts it.
    """

    def __init__(self, process: int, seconds: float = 0.1) -> None:
        self._known: dict[int, Memory] = {}
        self._process, self._seconds = process, seconds
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> "Descendants":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def largest(self, count: int) -> list[Memory]:
        """Those of the largest peaks."""
        return sorted(self._known.values(), key=lambda memory: memory.peak, reverse=True)[:count]

    def _look(self) -> None:
        while not self._done.wait(self._seconds):
            parents = {int(path.name): _parent(int(path.name)) for path in Path("/proc").glob("[0-9]*")}
            below = {self._process} | self._known.keys()
            while more := {one for one, parent in parents.items() if parent in below} - below:
                below |= more
            for one in below & parents.keys() - {self._process}:
                if (now := memory_of(one)) is not None:
                    before = self._known.get(one, now)
                    self._known[one] = Memory(max(now.peak, before.peak), max(now.own, before.own))


def memory_of(process: int) -> Memory | None:
    """What a process has used at most so far, if it is still there."""
    told = status(process)
    if "VmHWM" not in told:
        return None
    return Memory(*(int(told[name].split()[0]) / 1024 for name in ("VmHWM", "RssAnon")))


def _parent(process: int) -> int | None:
    found = status(process).get("PPid")
    return None if found is None else int(found)


def status(process: int) -> dict[str, str]:
    """What Linux tells of a process; nothing, if it has gone."""
    try:
        lines = Path(f"/proc/{process}/status").read_text("utf-8", errors="replace").splitlines()
    except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
        return {}
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _seconds(usage: resource.struct_rusage) -> float:
    return usage.ru_utime + usage.ru_stime
