"""Locks between processes, all by `flock`.

Work in progress is locked by the file, or the directory, that it is kept in. There is nothing to clean up:
the kernel frees a lock when its process ends, however it ends. Some network file systems have no locks; each
function says what it does there.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from cadec_cli.errors import CadecError

_POSIX = os.name == "posix"  # elsewhere directories can't be opened, nor open files removed


def lock(descriptor: int, *, wait: bool) -> bool | None:
    """Lock an open file or directory until it is closed; return whether this process has the lock now.

    False: another process has it. None: the system, or this file system, has no locks.
    """
    try:
        import fcntl
    except ImportError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def is_at(descriptor: int, path: Path) -> bool:
    """Tell whether a path is still that of an open file; what a link leads to is not at the link's path."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def open_locked(path: Path, mode: str, buffering: int = -1) -> IO[Any]:
    """Open a file that no other process can lock until it is closed; "ab" creates it, private.

    A CadecError if another process has it. Without locks, every process gets it.
    """
    while True:
        refuse_special(path)
        stream = append_private(path, buffering) if mode == "ab" else path.open(mode, buffering)
        try:
            _lock_for_work(stream.fileno(), path)
            if is_at(stream.fileno(), path):
                return stream
        except BaseException:
            stream.close()
            raise
        stream.close()  # the process that had it has just removed it


@contextlib.contextmanager
def locked_directory(path: Path) -> Iterator[None]:
    """Hold the lock of an existing directory; a CadecError if another process has it."""
    if not _POSIX:
        yield
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        _lock_for_work(descriptor, path)
        yield
    finally:
        os.close(descriptor)


def remove_if_unlocked(path: Path) -> None:
    """Remove a file, if there is one; a CadecError if another process works on it."""
    with contextlib.suppress(FileNotFoundError), open_locked(path, "rb+") as stream:
        remove_locked(stream, path)


def ensure_unlocked(path: Path) -> None:
    """Raise a CadecError if another process works on a file; what can't be opened is nobody's work."""
    with contextlib.suppress(OSError):
        open_locked(path, "rb").close()


def remove_locked(stream: IO[Any], path: Path) -> None:
    """Remove a file that this process has locked, then free the lock: once freed it may be another's."""
    if not _POSIX:
        stream.close()
    path.unlink(missing_ok=True)
    stream.close()


def refuse_special(path: Path) -> None:
    """Raise a CadecError for what is no plain file: a link leads elsewhere, a pipe would never answer."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(path.lstat().st_mode):
            raise CadecError(f"{path} is no plain file, so cadec did not write it", "move it away")


def append_private(path: Path, buffering: int = -1) -> IO[bytes]:
    """Open a file for appending; if it is created here, nobody else can read it."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab", buffering)


def open_lock_file(path: Path) -> IO[str]:
    """Open a file whose only purpose is to be locked; create it if need be, readable by nobody else.

    What it holds stays. A link or a special file under its name is a CadecError: to open it would be to open
    something else. A file that may not be opened is an OSError.
    """
    # Without blocking: a FIFO or a device would make us wait before we see what it is.
    flags = os.O_RDWR | os.O_CREAT
    for name in ("O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK"):
        flags |= getattr(os, name, 0)
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError:
        if os.path.lexists(path):
            _refuse_lock_file(path, os.lstat(path))
        raise
    try:
        _refuse_lock_file(path, os.fstat(descriptor))
        return os.fdopen(descriptor, "r+")
    except BaseException:
        os.close(descriptor)
        raise


def _refuse_lock_file(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "no regular file"
        raise CadecError(f"the lock {path} is {kind}", "delete it: cadec creates it again")


def _lock_for_work(descriptor: int, path: Path) -> None:
    if lock(descriptor, wait=False) is False:
        raise CadecError(
            f"another process of cadec is at work on {path}", "wait until it has ended, or write elsewhere"
        )
