"""Files and directories on their way to their names: beside them, under another name, until they are whole.

Each is locked by whoever writes it. The kernel frees a lock when the process ends, however it ends, so one
that nobody holds is dead for certain: the next who writes the same output removes it. Where there are no
locks, as on some network file systems, nothing is certain and everything is left alone.

How a directory takes another's place is known here too, since that may be cut short in the middle.
"""

import contextlib
import errno
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cadec_cli.errors import CadecError
from cadec_cli.places import ROOM_FOR_PARTS, name_limit, resolve_path, shorten_name

_PART, _OLD = ".part", ".old"
_ATTEMPTS = 100
# Whatever is unfinished, and whose it is.
_ANY = re.compile(rf"\.(.+)\.cadec-[0-9a-f]{{8}}({re.escape(_PART)}|{re.escape(_OLD)})", re.DOTALL)
# Two write one place at once: it was empty and is no more, or the other way round.
_TAKEN = {errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT}


@dataclass(frozen=True)
class Part:
    """Something unfinished, and the descriptor that holds its lock; spawned processes do not inherit it."""

    path: Path
    descriptor: int

    def close(self) -> None:
        """Let go of it."""
        os.close(self.descriptor)


def new_part(place: Path, *, directory: bool, mode: int) -> Part:
    """Begin a file or a directory for a place, locked; what is dead of earlier ones is removed first."""
    remove_leftovers(place)
    for _ in range(_ATTEMPTS):
        path = place.with_name(f"{_prefix(place)}{secrets.token_hex(4)}{_PART}")
        try:
            descriptor = _create_directory(path, mode) if directory else _create_file(path, mode)
        except (FileExistsError, FileNotFoundError):
            if not place.parent.is_dir():
                raise
            continue
        # Between the two another process may have taken it for dead: then it is gone.
        with contextlib.suppress(OSError, ImportError):
            _lock(descriptor, wait=True)
        if _is_at(descriptor, path):
            return Part(path, descriptor)
        os.close(descriptor)
    raise FileExistsError(f"no name is left beside {place}")


def remove_leftovers(place: Path) -> None:
    """Remove what processes that are no more have left beside a place.

    A directory that was moved out of the way, with nothing put in its place, is moved back.
    """
    restore_directory(place)
    for path in _leftovers(place):
        # Whatever stands in the way, the work that is to be done now does not depend on it.
        with contextlib.suppress(OSError, ImportError), _lock_orphan(path) as kind:
            if stat.S_ISDIR(kind) and (path.suffix != _OLD or os.path.lexists(place)):
                shutil.rmtree(path, ignore_errors=True)
            elif stat.S_ISREG(kind):
                path.unlink()


def remove_leftovers_in(directory: Path) -> None:
    """Remove, or move back, what processes that are no more have left in a directory, of whatever place."""
    names = set()
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        names = {match[1] for entry in entries if (match := _ANY.fullmatch(entry.name))}
    for name in sorted(names):
        remove_leftovers(directory / name)


def restore_directory(path: Path) -> None:
    """Move a directory back to its place that a kill left out of it, with nothing in its place.

    For those who would otherwise say that it is not there.
    """
    try:
        place = resolve_path(path)
        if os.path.lexists(place):
            return
    except (CadecError, OSError, ValueError):
        return  # no place at all: whoever reads it says so
    for old in _leftovers(place):
        with contextlib.suppress(OSError, ImportError):
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
    """A directory among the system's temporary ones, for this block; one that a kill left is removed."""
    part = new_part(Path(tempfile.gettempdir(), "cadec-scratch"), directory=True, mode=0o700)
    try:
        yield part.path
    finally:
        shutil.rmtree(part.path, ignore_errors=True)
        part.close()


def move_into_place(part: Part, place: Path) -> None:
    """Give a directory its name; another one of that name is deleted once it is out of the way."""
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
    """Replace a directory in two steps; between them, it is under a name that `remove_leftovers` knows."""
    old = new.with_suffix(_OLD)
    descriptor = os.open(place, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError, ImportError):
            _lock(descriptor, wait=False)
        place.rename(old)
        try:
            new.rename(place)
        except BaseException:
            if not place.is_dir():  # else somebody else has replaced it
                old.rename(place)
            raise
        finally:
            if place.is_dir():  # else it is all that there is
                shutil.rmtree(old, ignore_errors=True)
    finally:
        os.close(descriptor)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two names at once, so that there is no moment without either; tell whether the system can."""
    import ctypes

    system = ctypes.CDLL(None)
    names, swap = (os.fsencode(one), os.fsencode(other)), 2  # RENAME_EXCHANGE, RENAME_SWAP
    # Neither does on every file system.
    if hasattr(system, "renameat2"):  # Linux
        here = -100  # AT_FDCWD
        return bool(system.renameat2(here, names[0], here, names[1], swap) == 0)
    if hasattr(system, "renamex_np"):  # macOS
        return bool(system.renamex_np(*names, swap) == 0)
    return False


def _prefix(place: Path) -> str:
    """How the names of all unfinished things for a place begin, however long its own is."""
    return f".{shorten_name(place.name, name_limit(place.parent) - ROOM_FOR_PARTS)}.cadec-"


def _create_file(path: Path, mode: int) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)


def _create_directory(path: Path, mode: int) -> int:
    path.mkdir(mode)
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


@contextlib.contextmanager
def _lock_orphan(path: Path) -> Iterator[int]:
    """Hold the lock of something of ours, whose kind this gives; OSError if somebody else holds it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        found = os.fstat(descriptor)
        if found.st_uid != os.geteuid() or not (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)):
            raise PermissionError(f"{path} is none of ours")
        _lock(descriptor, wait=False)
        if not _is_at(descriptor, path):
            raise FileNotFoundError(f"{path} has got its name, or is gone")
        yield found.st_mode
    finally:
        os.close(descriptor)


def _lock(descriptor: int, *, wait: bool) -> None:
    """Lock it, or raise OSError; ImportError where the system has no locks."""
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_at(descriptor: int, path: Path) -> bool:
    """Tell whether a path still is what was opened."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False
