"""Files as everyone here needs them: compressed or not when read, whole or not at all when written."""

import contextlib
import errno
import gzip
import hashlib
import io
import json
import lzma
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from cadec_cli.errors import CadecError

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def open_binary(path: Path) -> BinaryIO:
    """Open a file for reading, decompressing `.xz`, `.gz` and `.zst`; `-` is standard input."""
    if str(path) == "-":
        return sys.stdin.buffer
    with reading(path):
        if path.suffix == ".xz":
            return cast(BinaryIO, lzma.open(path))
        if path.suffix == ".gz":
            return cast(BinaryIO, gzip.open(path))
        if path.suffix == ".zst":
            return _open_zstd(path)
        return path.open("rb")


def _open_zstd(path: Path) -> BinaryIO:
    try:
        import zstandard
    except ImportError:
        raise CadecError(
            f"{path} is compressed with zstd, and the zstandard package is not installed",
            "pip install 'cadec[zstd]'",
        ) from None
    return cast(BinaryIO, io.BufferedReader(_ZstdFrames(path.open("rb"), zstandard.ZstdDecompressor())))


class _ZstdFrames(io.RawIOBase):
    """The content of a zstd file, frame after frame.

    Unlike zstandard's own reader it can be read by lines and tells when the file is truncated.
    """

    def __init__(self, stream: BinaryIO, decompressor: Any) -> None:
        self._stream, self._decompressor = stream, decompressor
        self._frame: Any = None
        self._packed = self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            packed = self._packed or self._stream.read(1 << 14)
            if not packed:
                if self._frame is not None and not self._frame.eof:
                    raise EOFError("compressed file ended inside a frame")
                return 0
            if self._frame is None or self._frame.eof:
                self._frame = self._decompressor.decompressobj()
            self._ready = self._frame.decompress(packed)
            self._packed = self._frame.unused_data if self._frame.eof else b""
        taken = self._ready[: len(buffer)]
        buffer[: len(taken)] = taken
        self._ready = self._ready[len(taken) :]
        return len(taken)

    def close(self) -> None:
        self._stream.close()
        super().close()


def read_lines(path: Path, encoding: str = "utf-8") -> Iterator[str]:
    """Yield the lines of a text file without their ends. Streams; a BOM and CR before LF are dropped."""
    with reading(path), open_binary(path) as stream:
        for number, raw in enumerate(stream, 1):
            try:
                line = raw.decode(encoding)
            except UnicodeDecodeError as error:
                raise CadecError(
                    f"{path}: line {number} is not {encoding} (byte {error.object[error.start]:#04x})",
                    "say which encoding it is with --encoding, e.g. --encoding cp1251",
                ) from None
            except LookupError:
                raise CadecError(
                    f"unknown encoding: {encoding}", "for example utf-8, cp1251, latin-1"
                ) from None
            if number == 1:
                line = line.removeprefix("\ufeff")
            yield line.rstrip("\r\n")


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong while reading `path` into a CadecError that names it."""
    try:
        yield
    except FileNotFoundError:
        raise CadecError(f"no such file: {path}") from None
    except IsADirectoryError:
        raise CadecError(f"{path} is a directory, not a file") from None
    except PermissionError:
        raise CadecError(f"not allowed to read {path}") from None
    except (lzma.LZMAError, zlib.error, EOFError, OSError) as error:
        raise CadecError(
            f"can't read {path}: {error}", "the file may be truncated or of another format"
        ) from None
    except Exception as error:
        if type(error).__name__ != "ZstdError":
            raise
        raise CadecError(
            f"can't read {path}: {error}", "the file may be truncated or of another format"
        ) from None


@contextlib.contextmanager
def writing(path: Path, hint: str = "") -> Iterator[None]:
    """Turn whatever goes wrong while writing `path` into a CadecError that names it."""
    try:
        yield
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise CadecError(
                f"no space left to write {path}", hint or "free some space and run it again"
            ) from None
        raise CadecError(f"can't write {path}: {error.strerror or error}", hint) from None


@contextlib.contextmanager
def whole_file(path: Path, hint: str = "") -> Iterator[IO[bytes]]:
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
def whole_directory(path: Path, hint: str = "", marker: str = "") -> Iterator[Path]:
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
    with whole_file(path) as stream:
        stream.write((json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode())


def read_json(path: Path) -> Any:
    """Read a JSON file; a broken one is a CadecError."""
    with reading(path):
        raw = path.read_bytes()
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise CadecError(f"{path} is not valid JSON: {error}") from None


def sha256(path: Path) -> str:
    """Return the checksum of a file, in hexadecimal."""
    with reading(path), path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


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
