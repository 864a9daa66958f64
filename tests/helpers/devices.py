"""Devices to write to in tests, which nobody would miss.

Root could replace the system's own, and whoever runs these tests on code that does so would lose them.
"""

import os
import stat
from pathlib import Path

import pytest

_NUMBERS = {"null": (1, 3), "full": (1, 7)}


def device(directory: Path, name: str) -> Path:
    """A `null` or `full` of our own; the system's for those who can't harm it."""
    if os.geteuid() != 0:
        return Path("/dev", name)
    path = directory / name
    try:
        os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(*_NUMBERS[name]))
        path.open("rb").close()  # a file system may be mounted so that devices are dead
    except PermissionError:
        pytest.skip("no devices can be made here")
    return path
