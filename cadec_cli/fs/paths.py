"""Paths: where output goes, whether it can be written (checked before the work), and the user's directories.

Links are followed, as a shell follows them. A path may also name a stream: a pipe, a terminal,
`/dev/null`, or an open descriptor as in `/dev/stdout` and `>(…)`. Nothing is created here.
"""

import contextlib
import errno
import hashlib
import os
import re
import stat
from pathlib import Path
from typing import IO

from cadec_cli.errors import CadecError

# Bytes: the most for a name on almost every file system, and for a path on Linux, with the zero at its end.
NAME_LIMIT = 255
_PATH_LIMIT = 4096
_MAX_DEPTH = 200  # nested directories, which are created one by one
# Bytes that the name of an unfinished file has in addition: see `atomic`.
ROOM_FOR_PARTS = 32

_OWN_DESCRIPTOR = re.compile(r"/(?:dev/fd|proc/(?:self|thread-self)/fd)/([0-9]{1,9})")
_LINKS_IN_A_ROW = 40  # as many as Linux follows

_UNWRITABLE = {stat.S_IFBLK: "a block device", stat.S_IFSOCK: "a socket"}


def resolve_path(path: Path) -> Path:
    """Return a path with all links resolved, whether it exists or not; a cycle of links is a CadecError."""
    try:
        place = Path(os.path.realpath(path))  # Path.resolve would fail with a cycle of links
    except ValueError:  # a zero byte, or half a character
        raise CadecError(f"no file can be named {str(path)!r}") from None
    with contextlib.suppress(OSError):  # a name that is too long can't be a link
        if place.is_symlink():
            raise CadecError(f"{path} is a link that leads to itself", "name a file")
    return place


def is_stream(path: Path) -> bool:
    """Tell whether a path names a pipe, a character device or an open descriptor."""
    if _own_descriptor(path) is not None:
        return True
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def open_stream(path: Path) -> IO[bytes]:
    """Open a stream (see `is_stream`) for writing; a named pipe waits for its reader."""
    number = _own_descriptor(path)
    # A copy of the descriptor: opening its file again would overwrite the beginning of the file.
    descriptor = os.open(path, os.O_WRONLY | os.O_NOCTTY) if number is None else os.dup(number)
    return os.fdopen(descriptor, "wb")


def check_writable(path: Path, *, directory: bool = False) -> None:
    """Raise an OSError or a CadecError if it is known that this path can't be written to.

    An existing path is an error only if it is of another kind: a directory instead of a file.
    """
    if is_stream(path):
        _check_stream(path, directory)
        return
    place = resolve_path(path)
    _check_parent(place)
    with contextlib.suppress(FileNotFoundError):
        mode = place.lstat().st_mode
        if kind := _UNWRITABLE.get(stat.S_IFMT(mode)):
            raise CadecError(f"{path} is {kind}: it can't be replaced", "name a file")
        if stat.S_ISDIR(mode) and not directory:
            raise CadecError(f"{path} is a directory, not a file", "name a file in it")
        if not stat.S_ISDIR(mode) and directory:
            raise CadecError(f"{path} is a file, not a directory", "name a directory")
        if directory and place.is_mount():
            raise CadecError(
                f"{path} is a mount point: it can't be replaced",
                "name a directory in it",
            )


def shorten_name(name: str, room: int) -> str:
    """Return a name of at most `room` bytes: the name itself, or its beginning and a digest of the whole."""
    raw = os.fsencode(name)
    if len(raw) <= room:
        return name
    digest = hashlib.sha256(raw).hexdigest()[:12]
    # A character that was cut in half would not be UTF-8.
    return raw[: room - 13].decode("utf-8", "ignore") + "~" + digest


def sibling_path(path: Path, ending: str) -> Path:
    """Return the path of a file with an ending appended; a name that would be too long is shortened."""
    return path.with_name(shorten_name(path.name, NAME_LIMIT - len(ending)) + ending)


def name_limit(directory: Path) -> int:
    """Return how many bytes a file name in a directory may have."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        limit = os.pathconf(directory, "PC_NAME_MAX")
        return limit if limit > 0 else NAME_LIMIT
    return NAME_LIMIT


def _own_descriptor(path: Path) -> int | None:
    """Return the number of the open descriptor that a path stands for, following links; else None."""
    path = path.absolute()
    for _ in range(_LINKS_IN_A_ROW):
        if match := _OWN_DESCRIPTOR.fullmatch(os.path.normpath(path)):
            return int(match[1])
        try:
            path = path.parent / path.readlink()
        except (OSError, ValueError):
            return None
    return None


def _check_stream(path: Path, directory: bool) -> None:
    if directory:
        raise CadecError(f"{path} is not a directory", "name a directory")
    number = _own_descriptor(path)
    if number is None:
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, "you may not write to it")
        return
    os.fstat(number)  # an OSError if it is not open
    with contextlib.suppress(ImportError):
        import fcntl

        if fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise CadecError(f"{path} is open for reading only")


def _check_parent(place: Path) -> None:
    """Raise an OSError unless the parent directory of a path can be written to or created."""
    parent = next((above for above in place.parents if os.path.lexists(above)), place)
    if not parent.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, f"{parent} is a file, not a directory")
    limit = name_limit(parent)
    if any(len(os.fsencode(name)) > limit for name in place.relative_to(parent).parts):
        raise OSError(errno.ENAMETOOLONG, f"the name is too long: the limit is {limit} bytes")
    if len(os.fsencode(place)) + ROOM_FOR_PARTS >= _PATH_LIMIT or len(place.parts) > _MAX_DEPTH:
        raise OSError(errno.ENAMETOOLONG, "the path is too long")
    effective = os.access in os.supports_effective_ids
    if not os.access(parent, os.W_OK | os.X_OK, effective_ids=effective):
        if os.statvfs(parent).f_flag & os.ST_RDONLY:
            raise OSError(errno.EROFS, f"{parent} is on a read-only file system")
        raise PermissionError(errno.EACCES, f"you may not write to the directory {parent}")


# For users without a known home: nothing can be created or found below it.
_NOWHERE = Path(os.devnull)


def cache_directory() -> Path:
    """$CADEC_CACHE, or cadec's directory in the user's cache: everything in it can be recreated."""
    if named := os.environ.get("CADEC_CACHE"):
        return expand_user(named)
    return _xdg("XDG_CACHE_HOME", ".cache")


def data_directory() -> Path:
    """$CADEC_DATA, or cadec's directory in the user's data: models that were fetched or added by name."""
    if named := os.environ.get("CADEC_DATA"):
        return expand_user(named)
    return _xdg("XDG_DATA_HOME", ".local/share")


def state_directory() -> Path:
    """cadec's directory in the user's state: sessions and histories."""
    return _xdg("XDG_STATE_HOME", ".local/state")


def expand_user(path: str | Path) -> Path:
    """A path with ~ expanded; the home of an unknown user is a CadecError."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise CadecError(f"can't expand the ~ in {path}", "write out the directory, or set HOME") from None


def _xdg(variable: str, usual: str) -> Path:
    named = os.environ.get(variable)
    # The specification says to ignore relative paths.
    return (Path(named) if named and Path(named).is_absolute() else _home() / usual) / "cadec"


def _home() -> Path:
    """The user's home: $HOME if it is an absolute path, else the home in the system's list of users."""
    if (named := os.environ.get("HOME")) and Path(named).is_absolute():
        return Path(named)
    try:
        import pwd

        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except ImportError:
        return Path.home()
    except KeyError:  # as in many containers
        return _NOWHERE
