"""Where cadec keeps things between runs (the XDG specification), and locks between those who share them.

It knows places, not what is kept there.
"""

import contextlib
import os
from pathlib import Path
from typing import IO


def cache_directory() -> Path:
    """$CADEC_CACHE, or cadec's place in the user's cache: what is there can be made again."""
    if named := os.environ.get("CADEC_CACHE"):
        return Path(named).expanduser()
    return _xdg("XDG_CACHE_HOME", ".cache")


def data_directory() -> Path:
    """$CADEC_DATA, or cadec's place among the user's data: models that were fetched or added by name."""
    if named := os.environ.get("CADEC_DATA"):
        return Path(named).expanduser()
    return _xdg("XDG_DATA_HOME", ".local/share")


def state_directory() -> Path:
    """cadec's place among the user's state, where sessions and histories are kept."""
    return _xdg("XDG_STATE_HOME", ".local/state")


def lock(file: IO[str], *, wait: bool) -> bool:
    """Lock an open file until it is closed, against other processes; tell whether nobody else has it.

    The kernel frees the lock when the process ends, however it ends. Where the system has no locks the
    answer is yes; where the file system refuses them, as some network file systems do, it is no.
    """
    try:
        import fcntl
    except ImportError:
        return True
    with contextlib.suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _xdg(variable: str, usual: str) -> Path:
    named = os.environ.get(variable)
    # The specification says to ignore relative paths.
    return (Path(named) if named and Path(named).is_absolute() else Path.home() / usual) / "cadec"
