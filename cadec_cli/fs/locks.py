"""Locks between processes, all by `flock`.

A process locks the file or directory that it works on. There is nothing to clean up:
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
    """Tell whether an open file is still at a path; a link at the path is not followed."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def open_locked(path: Path, mode: str, buffering: int = -1) -> IO[Any]:
    """Open a file and lock it until it is closed; "ab" creates it, readable by this user only.

    A CadecError if another process has the lock. Where there are no locks, every process can open it.
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
        stream.close()  # the process that had the lock has just removed the file


@contextlib.contextmanager
def locked_directory(path: Path) -> Iterator[None]:
    """Hold the lock of an existing directory; a CadecError if another process has the lock."""
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
    """Raise a CadecError if another process works on a file; one that can't be opened counts as unlocked."""
    with contextlib.suppress(OSError):
        open_locked(path, "rb").close()


def remove_locked(stream: IO[Any], path: Path) -> None:
    """Remove a file that this process has locked, then free the lock: then others may lock that path."""
    if not _POSIX:
        stream.close()
    path.unlink(missing_ok=True)
    stream.close()


def refuse_special(path: Path) -> None:
    """Raise a CadecError unless a path is a plain file: a link leads elsewhere, a pipe would block."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(path.lstat().st_mode):
            raise CadecError(f"{path} is not a plain file, so cadec did not write it", "move it away")


def append_private(path: Path, buffering: int = -1) -> IO[bytes]:
    """Open a file for appending; if it is created here, other users can't read it."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab", buffering)


def open_lock_file(path: Path) -> IO[str]:
    """Open a file whose only purpose is to be locked; create it if need be, readable by this user only.

    Its content is kept. A link or a special file of that name is a CadecError, since opening it would open
    something else. A file that may not be opened is an OSError.
    """
    # Without blocking: opening a FIFO or a device could wait for ever, before its kind is checked.
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
        kind = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "not a regular file"
        raise CadecError(f"the lock {path} is {kind}", "delete it: cadec creates it again")


def _lock_for_work(descriptor: int, path: Path) -> None:
    if lock(descriptor, wait=False) is False:
        raise CadecError(
            f"another process of cadec is at work on {path}", "wait until it has ended, or write elsewhere"
        )
