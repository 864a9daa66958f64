"""Work in progress that belongs to one process: a second one is told, and touches nothing.

What is claimed is the very file, or directory, that the work is kept in, by a lock on it: there is nothing to
clear away, and the kernel ends a claim with its process, however that ends. Where there are no locks, as on
some network file systems, everybody's claim is granted.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from cadec_cli.errors import CadecError
from cadec_cli.fs.atomic import append_private

_POSIX = os.name == "posix"  # elsewhere directories can't be opened, nor open files removed


def open_locked(path: Path, mode: str, buffering: int = -1) -> IO[Any]:
    """Open a file that no other process may claim until it is closed; made here, it is private."""
    while True:
        refuse_special(path)
        stream = append_private(path, buffering) if mode == "ab" else path.open(mode, buffering)
        try:
            _lock(stream.fileno(), path)
            if _is_at(stream.fileno(), path):
                return stream
        except BaseException:
            stream.close()
            raise
        stream.close()  # whoever had it has just removed it


@contextlib.contextmanager
def locked_directory(path: Path) -> Iterator[None]:
    """Claim a directory that is there."""
    if not _POSIX:
        yield
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        _lock(descriptor, path)
        yield
    finally:
        os.close(descriptor)


def remove_if_unlocked(path: Path) -> None:
    """Remove what a process left behind that has ended; if it has not, that is an error."""
    with contextlib.suppress(FileNotFoundError), open_locked(path, "rb+") as stream:
        remove_locked(stream, path)


def ensure_unlocked(path: Path) -> None:
    """Refuse what another process is at."""
    with contextlib.suppress(OSError):
        open_locked(path, "rb").close()


def remove_locked(stream: IO[Any], path: Path) -> None:
    """Remove a file that is claimed here, and give up the claim: in this order, or it may be another's."""
    if not _POSIX:
        stream.close()
    path.unlink(missing_ok=True)
    stream.close()


def size_of(stream: IO[Any]) -> int:
    """How much there is in a file: what was true when it was opened, may be no more when it is claimed."""
    return os.fstat(stream.fileno()).st_size


def refuse_special(path: Path) -> None:
    """Refuse what can't be work of ours: a link would lead elsewhere, a pipe make us wait for ever."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(path.lstat().st_mode):
            raise CadecError(f"{path} is no plain file, and so no work of cadec's", "move it away")


def _lock(descriptor: int, path: Path) -> None:
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise CadecError(
            f"another process of cadec is at work on {path}", "wait until it has ended, or write elsewhere"
        ) from None
    except OSError:
        pass  # no locks here


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())  # what a link leads to is not here
    except FileNotFoundError:
        return False
