"""What takes seconds to make is made once per test run, however many processes run the tests.

It lies in a directory that all of them see, and nobody changes it afterwards: a test that wants to makes a
copy.
"""

import fcntl
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

Make = Callable[[], object]


def run_directory(factory: pytest.TempPathFactory, name: str) -> Path:
    """A directory that belongs to the test run, not to one of its processes."""
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    directory = base / "made-once" / name
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def make_once(directory: Path, parts: Mapping[str, Make]) -> None:
    """Make all parts that are not made yet: first those that no other process has begun, then wait for it."""
    begun = [name for name, make in parts.items() if not _made(directory, name, make, wait=False)]
    for name in begun:
        _made(directory, name, parts[name], wait=True)


def _made(directory: Path, name: str, make: Make, *, wait: bool) -> bool:
    """Make a part unless it is there; without waiting, False says that another process is at it."""
    done = directory / f".{name}.done"
    with (directory / f".{name}.lock").open("w") as lock:  # the kernel frees it, whatever becomes of us
        try:
            fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        if not done.exists():
            make()
            done.touch()
    return True
