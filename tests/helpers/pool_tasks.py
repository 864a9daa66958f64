"""What the tests give pools to do, where every process can import it."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from cadec_cli.errors import CadecError, UsageError

NEVER = 300.0  # seconds that a test does not last


class StubbornError(Exception):
    """An error that can't be unpickled."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first} {second}")


def powers(exponent: int) -> Callable[[int], int]:
    """Powers of numbers; a negative one is an error."""
    if exponent < 0:
        raise UsageError(f"{exponent} is no exponent", "take another")

    def power(base: int) -> int:
        if base < 0:
            raise CadecError(f"{base} is negative", "leave it out")
        return int(base**exponent)

    return power


def raising(error: BaseException) -> Callable[[int], int]:
    """Raise the same for every item."""

    def work(item: int) -> int:
        raise error

    return work


def stubborn() -> Callable[[int], int]:
    """Raise what can't travel."""

    def work(item: int) -> int:
        raise StubbornError("no", "way")

    return work


def deadly(directory: Path, fatal: int, times: int) -> Callable[[int], tuple[int, bytes]]:
    """Double numbers; the process dies of one of them, as often as is asked for."""

    def work(item: int) -> tuple[int, bytes]:
        if item == fatal:
            for attempt in range(times):
                mark = directory / f"died-{attempt}"
                if not mark.exists():
                    mark.touch()
                    os.kill(os.getpid(), signal.SIGKILL)
        return item, str(2 * item).encode() * 1000

    return work


def stillborn(directory: Path) -> Callable[[int], int]:
    """Die before anything is done, and leave a mark each time."""
    (directory / f"died-{os.getpid()}").touch()
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def told(directory: Path) -> Callable[[float], float]:
    """Leave a mark with the process's number, then sleep."""
    (directory / str(os.getpid())).touch()

    def work(seconds: float) -> float:
        time.sleep(seconds)
        return seconds

    return work
