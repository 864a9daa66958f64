"""Where cadec keeps things between runs (the XDG specification), and locks between those who share them.

It knows places, not what is kept there.
"""

import contextlib
import os
import stat
from pathlib import Path
from typing import IO

from cadec_cli.errors import CadecError

# Below it nothing can be made or found. A user of whom no home is known has no cache, and none is made up.
_NOWHERE = Path(os.devnull)


def cache_directory() -> Path:
    """$CADEC_CACHE, or cadec's place in the user's cache: what is there can be made again."""
    if named := os.environ.get("CADEC_CACHE"):
        return expand_user(named)
    return _xdg("XDG_CACHE_HOME", ".cache")


def data_directory() -> Path:
    """$CADEC_DATA, or cadec's place among the user's data: models that were fetched or added by name."""
    if named := os.environ.get("CADEC_DATA"):
        return expand_user(named)
    return _xdg("XDG_DATA_HOME", ".local/share")


def state_directory() -> Path:
    """cadec's place among the user's state, where sessions and histories are kept."""
    return _xdg("XDG_STATE_HOME", ".local/state")


def open_lock(path: Path) -> IO[str]:
    """Open a file that is there only to be locked; make it if need be, readable by nobody else.

    Whatever it holds stays. A link or a special file under its name is a CadecError: to open it would be to
    open something else. A file that may not be opened is an OSError, as everywhere.
    """
    # Without blocking: a FIFO or a device would make us wait before we see what it is.
    flags = os.O_RDWR | os.O_CREAT
    for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK"):
        flags |= getattr(os, name, 0)
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError:
        if os.path.lexists(path):
            _refuse_special(path, os.lstat(path))
        raise
    try:
        _refuse_special(path, os.fstat(descriptor))
        return os.fdopen(descriptor, "r+")
    except BaseException:
        os.close(descriptor)
        raise


def _refuse_special(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "no regular file"
        raise CadecError(f"the lock {path} is {kind}", "delete it: cadec makes it anew")


def expand_user(path: str | Path) -> Path:
    """A path with ~ for what it stands for; that of a user who is not there is a CadecError."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise CadecError(f"nobody knows which directory the ~ in {path} is", "name it, or set HOME") from None


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
    return (Path(named) if named and Path(named).is_absolute() else _home() / usual) / "cadec"


def _home() -> Path:
    """The user's home, by $HOME if that can be one, else by the system's list of users."""
    if (named := os.environ.get("HOME")) and Path(named).is_absolute():
        return Path(named)
    try:
        import pwd

        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except ImportError:
        return Path.home()
    except KeyError:  # as in many containers
        return _NOWHERE
