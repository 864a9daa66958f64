"""Files and directories that appear under their names whole, or not at all.

Until then each has a temporary name beside its final one, and is locked by the process that writes it. The
kernel frees the lock when the process ends, however it ends. So an unlocked one is a leftover, and the next
process that writes the same output removes it. On file systems without locks leftovers can't be recognised,
and stay.
"""

import contextlib
import errno
import json
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from cadec_cli.errors import CadecError, WriteError
from cadec_cli.fs.locks import is_at, lock
from cadec_cli.fs.paths import (
    ROOM_FOR_PARTS,
    check_writable,
    is_stream,
    name_limit,
    open_stream,
    resolve_path,
    shorten_name,
)

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# Errors of file systems that can't sync a directory, or need not.
_NO_SYNC = {errno.EINVAL, errno.EACCES, errno.EBADF, errno.ENOTSUP}

_PART, _OLD = ".part", ".old"
_ATTEMPTS = 100
# The name of an unfinished file or directory, which contains its final name.
_ANY = re.compile(rf"\.(.+)\.cadec-[0-9a-f]{{8}}({re.escape(_PART)}|{re.escape(_OLD)})", re.DOTALL)
# Another process writes the same directory: it has just appeared or disappeared.
_TAKEN = {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT}


@contextlib.contextmanager
def write_errors(path: Path, hint: str = "") -> Iterator[None]:
    """Turn any OSError while writing `path` into a WriteError that names it.

    A BrokenPipeError is raised as it is: the reader of a pipe has gone, which is not our failure.
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

    It gets the permissions and, where that is allowed, the owner of the file that it replaces. A new file
    gets the usual permissions; if it is `private`, other users can't read it. A pipe is written to directly.
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
        # While it is written, it is never readable by more users than at the end.
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

    An existing directory of that name is replaced, and its permissions are kept. For `marker`, see
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
    """Raise a CadecError if a directory is not empty and has no file of the name `marker`.

    Every directory of a kind has its marker. One without it holds something else, and must not be replaced.
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
        # A path that is not UTF-8 has lone surrogates, which JSON can escape.
        stream.write(
            (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "backslashreplace")
        )


@dataclass(frozen=True)
class Part:
    """An unfinished file or directory, and the descriptor that holds its lock."""

    path: Path
    descriptor: int

    def close(self) -> None:
        """Free the lock."""
        os.close(self.descriptor)


def new_part(place: Path, *, directory: bool, mode: int) -> Part:
    """Create an unfinished file or directory beside `place`, locked; leftovers are removed first."""
    remove_leftovers(place)
    for _ in range(_ATTEMPTS):
        path = place.with_name(f"{_prefix(place)}{secrets.token_hex(4)}{_PART}")
        try:
            descriptor = _create_directory(path, mode) if directory else _create_file(path, mode)
        except (FileExistsError, FileNotFoundError):
            if not place.parent.is_dir():
                raise
            continue
        # Before it was locked, another process may have taken it for a leftover and removed it.
        lock(descriptor, wait=True)
        if is_at(descriptor, path):
            return Part(path, descriptor)
        os.close(descriptor)
    raise FileExistsError(f"no free name beside {place}")


def remove_leftovers(place: Path) -> None:
    """Remove the leftovers of killed processes beside a file or directory.

    A directory that was moved out of the way, and never replaced, is moved back.
    """
    restore_directory(place)
    for path in _leftovers(place):
        # A failure here is harmless: the present work does not depend on it.
        with contextlib.suppress(OSError), _lock_orphan(path) as kind:
            if stat.S_ISDIR(kind) and (path.suffix != _OLD or os.path.lexists(place)):
                shutil.rmtree(path, ignore_errors=True)
            elif stat.S_ISREG(kind):
                path.unlink()


def remove_leftovers_in(directory: Path) -> None:
    """Remove or move back all leftovers of killed processes in a directory."""
    names = set()
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        names = {match[1] for entry in entries if (match := _ANY.fullmatch(entry.name))}
    for name in sorted(names):
        remove_leftovers(directory / name)


def restore_directory(path: Path) -> None:
    """Move a directory back that was moved out of the way by a process that was then killed.

    Call it before saying that a directory does not exist.
    """
    try:
        place = resolve_path(path)
        if os.path.lexists(place):
            return
    except (CadecError, OSError, ValueError):
        return  # an impossible path: the error comes when it is read
    for old in _leftovers(place):
        with contextlib.suppress(OSError):
            if old.suffix == _OLD:
                with _lock_orphan(old):
                    if not os.path.lexists(place):
                        old.rename(place)


def _leftovers(place: Path) -> list[Path]:
    own = re.compile(re.escape(_prefix(place)) + f"[0-9a-f]{{8}}({re.escape(_PART)}|{re.escape(_OLD)})")
    with contextlib.suppress(OSError), os.scandir(place.parent) as entries:
        return sorted(Path(entry.path) for entry in entries if own.fullmatch(entry.name))
    return []


@contextlib.contextmanager
def scratch_directory() -> Iterator[Path]:
    """A temporary directory for this block; if the process is killed, the next one removes it."""
    part = new_part(Path(tempfile.gettempdir(), "cadec-scratch"), directory=True, mode=0o700)
    try:
        yield part.path
    finally:
        shutil.rmtree(part.path, ignore_errors=True)
        part.close()


def move_into_place(part: Part, place: Path) -> None:
    """Give a directory its final name; an existing one is moved out of the way and deleted."""
    for attempt in range(_ATTEMPTS):
        try:
            if not place.is_dir():
                part.path.rename(place)
            elif _exchange(part.path, place):
                shutil.rmtree(part.path, ignore_errors=True)
            else:
                _replace_in_two_steps(part.path, place)
            return
        except OSError as error:
            if error.errno not in _TAKEN or attempt == _ATTEMPTS - 1:
                raise


def _replace_in_two_steps(new: Path, place: Path) -> None:
    """Replace a directory by two renames; between them it has a name that `remove_leftovers` recognises."""
    old = new.with_suffix(_OLD)
    descriptor = os.open(place, os.O_RDONLY)
    try:
        lock(descriptor, wait=False)
        place.rename(old)
        try:
            new.rename(place)
        except BaseException:
            if not place.is_dir():  # else another process has replaced it
                old.rename(place)
            raise
        finally:
            if place.is_dir():  # else the old one is the only copy
                shutil.rmtree(old, ignore_errors=True)
    finally:
        os.close(descriptor)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two directories in one step, so that both names always exist; return whether that worked."""
    import ctypes

    system = ctypes.CDLL(None)
    names, swap = (os.fsencode(one), os.fsencode(other)), 2  # RENAME_EXCHANGE, RENAME_SWAP
    # Neither works on every file system.
    if hasattr(system, "renameat2"):  # Linux
        here = -100  # AT_FDCWD
        return bool(system.renameat2(here, names[0], here, names[1], swap) == 0)
    if hasattr(system, "renamex_np"):  # macOS
        return bool(system.renamex_np(*names, swap) == 0)
    return False


def _prefix(place: Path) -> str:
    """Return the start of the names of a path's unfinished files, however long its own name is."""
    return f".{shorten_name(place.name, name_limit(place.parent) - ROOM_FOR_PARTS)}.cadec-"


def _create_file(path: Path, mode: int) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)


def _create_directory(path: Path, mode: int) -> int:
    path.mkdir(mode)
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


@contextlib.contextmanager
def _lock_orphan(path: Path) -> Iterator[int]:
    """Lock an unfinished file or directory of this user; yield its mode.

    An OSError if a process may still be writing it, which is also assumed where there are no locks.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        found = os.fstat(descriptor)
        if found.st_uid != os.geteuid() or not (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)):
            raise PermissionError(f"{path} belongs to another user, or is a special file")
        if not lock(descriptor, wait=False):
            raise BlockingIOError(f"{path} may be another process's")
        if not is_at(descriptor, path):
            raise FileNotFoundError(f"{path} was renamed or removed")
        yield found.st_mode
    finally:
        os.close(descriptor)


def _status(place: Path) -> os.stat_result | None:
    with contextlib.suppress(FileNotFoundError):
        return place.stat()
    return None


def _inherit(part: Part, before: os.stat_result) -> None:
    """Give a new file or directory the owner and permissions of the one it replaces, as far as allowed."""
    mode = stat.S_IMODE(before.st_mode) & (0o7777 if stat.S_ISDIR(before.st_mode) else 0o777)
    try:
        os.fchown(part.descriptor, before.st_uid, before.st_gid)
    except OSError:
        try:
            os.fchown(part.descriptor, -1, before.st_gid)
        except OSError:  # it has another group, which gets only the permissions that everybody has
            mode &= ~0o070 | (mode & 0o007) << 3
    with contextlib.suppress(OSError):  # a file system without permissions
        os.fchmod(part.descriptor, mode)


def _sync(path: Path) -> None:
    """Wait until a file, or the list of names in a directory, is on disk."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
