"""Files and directories that appear under their names whole, or not at all.

Whatever goes wrong while writing is an error that names the place; nothing half-written is left behind.
"""

import contextlib
import errno
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from cadec_cli.errors import CadecError, WriteError

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextlib.contextmanager
def writing(path: Path, hint: str = "") -> Iterator[None]:
    """Turn whatever goes wrong while writing `path` into a WriteError that names it."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise WriteError(
                f"no space left to write {path}", hint or "free some space and run it again"
            ) from None
        raise WriteError(f"can't write {path}: {error.strerror or error}", hint) from None


@contextlib.contextmanager
def atomic_file(path: Path, hint: str = "") -> Iterator[IO[bytes]]:
    """Write a file that appears under its name only once it is complete and on disk."""
    with writing(path, hint):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        part = Path(name)
        try:
            with os.fdopen(handle, "wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            part.chmod(0o666 & ~_umask())
            part.replace(path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def atomic_directory(path: Path, hint: str = "", marker: str = "") -> Iterator[Path]:
    """Fill a directory that appears under its name only once everything in it is on disk.

    An existing directory of that name is replaced. With a marker, the name of a file that all directories of
    this kind have, one without it is somebody's own: that is an error, unless it is empty.
    """
    with writing(path, hint):
        if marker and path.is_dir() and not (path / marker).is_file() and any(path.iterdir()):
            raise CadecError(
                f"{path} exists and holds something else; it would be replaced as a whole",
                "choose a name that does not exist yet",
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
        try:
            yield part
            for file in part.rglob("*"):
                if file.is_file():
                    _fsync(file)
            part.chmod(0o777 & ~_umask())
            _take_place(part, path)
            _fsync(path.parent)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise


def _take_place(new: Path, path: Path) -> None:
    """Rename a directory over another, which is deleted only when the new one is in its place."""
    if not path.is_dir():
        new.replace(path)
        return
    old = new.with_suffix(".old")
    path.replace(old)
    try:
        new.replace(path)
    except BaseException:
        old.replace(path)
        raise
    shutil.rmtree(old, ignore_errors=True)


def write_json(path: Path, value: Any) -> None:
    """Write a value as readable JSON, whole or not at all."""
    with atomic_file(path) as stream:
        stream.write((json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
