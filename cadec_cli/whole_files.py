"""Files and directories that appear under their names whole, or not at all.

Whatever goes wrong while writing is an error that names the place; nothing half-written is left behind. What
is replaced keeps its permissions; links stay links, and what they lead to is replaced. Into a pipe or a
device things go as they come.
"""

import contextlib
import errno
import json
import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from cadec_cli.errors import CadecError, WriteError
from cadec_cli.places import check_writable, is_stream, open_stream, resolve_path
from cadec_cli.unfinished import Part, move_into_place, new_part

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# Answers of file systems that have nothing to do for a directory that is to be written to disk.
_NO_SYNC = {errno.EINVAL, errno.EACCES, errno.EBADF, errno.ENOTSUP}


@contextlib.contextmanager
def write_errors(path: Path, hint: str = "") -> Iterator[None]:
    """Turn whatever goes wrong while writing `path` into a WriteError that names it.

    A reader that has gone away is nothing wrong, and stays a BrokenPipeError.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise WriteError(
                f"no space left to write {path}", hint or "free some space and run it again"
            ) from None
        raise WriteError(f"can't write {path}: {error.strerror or error}", hint) from None


@contextlib.contextmanager
def atomic_file(path: Path, hint: str = "", *, private: bool = False) -> Iterator[IO[bytes]]:
    """Write a file that appears under its name only once it is complete and on disk.

    If it is there already it keeps its permissions and, where that is allowed, its owner. If not, it gets the
    usual ones; a private one is for nobody else to read.
    """
    with write_errors(path, hint):
        check_writable(path)
        if is_stream(path):
            with open_stream(path) as stream:
                yield stream
            return
        place = resolve_path(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        before = _status(place)
        # On its way it is never open to more people than at the end.
        part = new_part(place, directory=False, mode=0o600 if private or before else 0o666)
        try:
            with os.fdopen(part.descriptor, "wb") as stream:
                yield stream
                stream.flush()
                if before is not None:
                    _inherit(part, before)
                os.fsync(part.descriptor)
                part.path.replace(place)
        except BaseException:
            part.path.unlink(missing_ok=True)
            raise
        _sync(place.parent)


@contextlib.contextmanager
def atomic_directory(path: Path, hint: str = "", marker: str = "") -> Iterator[Path]:
    """Fill a directory that appears under its name only once everything in it is on disk.

    An existing directory of that name is replaced, and its permissions are kept. With a marker, see
    `check_marker`.
    """
    with write_errors(path, hint):
        place = resolve_path(path)
        check_writable(path, directory=True)
        check_marker(path, marker)
        place.parent.mkdir(parents=True, exist_ok=True)
        before = _status(place)
        part = new_part(place, directory=True, mode=0o700 if before else 0o777)
        try:
            yield part.path
            for file in part.path.rglob("*"):
                if not file.is_symlink():
                    _sync(file)
            if before is not None:
                _inherit(part, before)
            _sync(part.path)
            move_into_place(part, place)
        except BaseException:
            shutil.rmtree(part.path, ignore_errors=True)
            raise
        finally:
            part.close()
        _sync(place.parent)


def check_marker(path: Path, marker: str) -> None:
    """Refuse to replace a directory of somebody's own.

    The marker is the name of a file that all directories of a kind have. One without it is of another kind,
    unless it is empty.
    """
    with write_errors(path):
        if marker and path.is_dir() and not (path / marker).is_file() and any(path.iterdir()):
            raise CadecError(
                f"{path} exists and holds something else; it would be replaced as a whole",
                "choose a name that does not exist yet",
            )


def write_json(path: Path, value: Any) -> None:
    """Write a value as readable JSON, whole or not at all."""
    with atomic_file(path) as stream:
        # A path that is not UTF-8 has halves of characters, which JSON has escapes for.
        stream.write(
            (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "backslashreplace")
        )


def append_private(path: Path, buffering: int = -1) -> IO[bytes]:
    """Open a file to go on at its end; if it is made here, nobody else can read it."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab", buffering)


def _status(place: Path) -> os.stat_result | None:
    with contextlib.suppress(FileNotFoundError):
        return place.stat()
    return None


def _inherit(part: Part, before: os.stat_result) -> None:
    """Give what is written the owner and the permissions of what it replaces, as far as the system allows."""
    mode = stat.S_IMODE(before.st_mode) & (0o7777 if stat.S_ISDIR(before.st_mode) else 0o777)
    try:
        os.fchown(part.descriptor, before.st_uid, before.st_gid)
    except OSError:
        try:
            os.fchown(part.descriptor, -1, before.st_gid)
        except OSError:  # another group than it was meant for may do what everybody may
            mode &= ~0o070 | (mode & 0o007) << 3
    with contextlib.suppress(OSError):  # a file system without permissions
        os.fchmod(part.descriptor, mode)


def _sync(path: Path) -> None:
    """Have a file, or the names in a directory, on disk."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
