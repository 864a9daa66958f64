"""Files as everyone here reads them: compressed or not, text in an encoding, JSON. `whole_files` writes them.

Whoever reads text passes an encoding only if its user could name one with --encoding. Without, a file is
UTF-8 or an error, and the error says to convert it.
"""

import codecs
import contextlib
import gzip
import hashlib
import io
import json
import lzma
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from cadec_cli.errors import CadecError, UsageError

_WIDE_MARKS = {
    # UTF-32 first: its little-endian mark begins with that of UTF-16
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
}


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


@dataclass(frozen=True)
class WholeText:
    """All that a text file holds."""

    name: str  # what messages call the file
    text: str  # a byte order mark is kept as its first character
    encoding: str  # turns the text into the file's bytes again


def read_text(path: Path, encoding: str | None = None) -> WholeText:
    """Read a whole text file; `-` is standard input, which stays open."""
    with reading(path):
        stream = open_binary(path)
        try:
            data = stream.read()
        finally:
            if str(path) != "-":
                stream.close()
    name = name_of(path)
    return WholeText(name, *decode(data, encoding, name))


def name_of(path: Path) -> str:
    """Return what messages call a file; names that are not Unicode can be shown too."""
    return "standard input" if str(path) == "-" else str(path).encode("utf-8", "replace").decode()


def decode(data: bytes, encoding: str | None, name: str) -> tuple[str, str]:
    """Decode a file, and return with it the encoding that turns the text into the same bytes again."""
    try:
        exact = codecs.lookup("utf-8" if encoding is None else encoding).name
        if exact in ("utf-16", "utf-32"):
            marked = (
                wide for wide, mark in _WIDE_MARKS.items() if data.startswith(mark) and wide[:6] == exact
            )
            exact = next(marked, f"{exact}-le")
        elif exact == "utf-8-sig":
            exact = "utf-8"
        return data.decode(exact), exact
    except UnicodeDecodeError as error:
        guess = next((wide[:6] for wide, mark in _WIDE_MARKS.items() if data.startswith(mark)), "cp1251")
        line = data.count(b"\n", 0, error.start) + 1
        raise _not_in(encoding, f"{name}: line {line}", error, guess) from None
    except (LookupError, ValueError, TypeError):
        raise _unknown(encoding) from None


def read_lines(path: Path, encoding: str | None = None) -> Iterator[str]:
    """Yield the lines of a text file without their ends. Streams; a BOM and CR before LF are dropped."""
    with reading(path), open_binary(path) as stream:
        for number, raw in enumerate(stream, 1):
            try:
                line = raw.decode("utf-8" if encoding is None else encoding)
            except UnicodeDecodeError as error:
                raise _not_in(encoding, f"{name_of(path)}: line {number}", error, "cp1251") from None
            except (LookupError, ValueError, TypeError):
                raise _unknown(encoding) from None
            if number == 1:
                line = line.removeprefix("\ufeff")
            yield line.rstrip("\r\n")


def _not_in(encoding: str | None, where: str, error: UnicodeDecodeError, guess: str) -> CadecError:
    hint = (
        f"convert the file to UTF-8 first, e.g. with iconv -f {guess} -t utf-8"
        if encoding is None
        else f"say which encoding it is with --encoding, e.g. --encoding {guess}"
    )
    return CadecError(f"{where} is not {encoding or 'utf-8'} (byte {error.object[error.start]:#04x})", hint)


def _unknown(encoding: str | None) -> UsageError:
    return UsageError(
        f"unknown encoding: {encoding}", "give --encoding a name such as utf-8, cp1251 or latin-1"
    )


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
