"""Reading files: compressed or not, as text in an encoding, line by line, as a stream, as JSON.

Pass an encoding only where the user could name one. Without it, only UTF-8 is accepted, and the error for
other files says to convert them.

A small compressed file can become larger than memory. So the bytes of a file that is read whole are counted
while it is decompressed, and a file above a limit is refused; so is a single line of a file read by lines.
"""

import codecs
import contextlib
import hashlib
import io
import json
import lzma
import os
import select
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

from cadec_cli.errors import CadecError, UsageError, option

# Compressed bytes read at a time: four of them can become 128 KiB, so a block becomes at most 32 MiB.
_PACKED = 1 << 10
# Bytes of memory for decompressing, without its result: `xz -9` needs 65 MiB, `zstd --ultra -22` 128 MiB.
MEMORY = 1 << 28
_ZSTD_WINDOW = 1 << 27
_GZIP_ONLY = 31  # for zlib, which would also accept its own formats


@dataclass(frozen=True)
class _Format:
    """How frames of a format begin, how to decompress one, and how many zeros may follow it."""

    name: str
    beginnings: tuple[bytes, ...]  # all of the same length
    frame: Callable[[], Any]
    padding: int  # zeros may follow in multiples of it; 0: none


def _open_xz(path: Path) -> BinaryIO:
    def frame() -> Any:
        return lzma.LZMADecompressor(format=lzma.FORMAT_XZ, memlimit=MEMORY)

    return _frames(path, _Format("xz", (b"\xfd7zXZ\0",), frame, padding=4))


def _open_gzip(path: Path) -> BinaryIO:
    def frame() -> Any:
        return zlib.decompressobj(wbits=_GZIP_ONLY)

    return _frames(path, _Format("gzip", (b"\x1f\x8b",), frame, padding=1))


def _open_zstd(path: Path) -> BinaryIO:
    try:
        import zstandard
    except ImportError:
        raise CadecError(
            f"{path} is compressed with zstd, and the zstandard package is not installed",
            "pip install 'cadec[zstd]'",
        ) from None
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    skippable = (bytes([first, 0x2A, 0x4D, 0x18]) for first in range(0x50, 0x60))  # these frames have no text
    beginnings = (zstandard.FRAME_HEADER, *skippable)
    return _frames(path, _Format("zstd", beginnings, decompressor.decompressobj, padding=0))


def _frames(path: Path, form: _Format) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(_Frames(path.open("rb"), form)))


class _Frames(io.RawIOBase):
    """The content of a compressed file, frame after frame.

    Unlike the libraries' own readers it can be read line by line, notices when the file is truncated or has
    something else at its end, and keeps the memory limits of its decompressor.
    """

    def __init__(self, stream: BinaryIO, form: _Format) -> None:
        self._stream, self._format = stream, form
        self._frame: Any = None
        self._packed = b""  # compressed bytes read beyond the frame
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            within = self._frame is not None and not self._frame.eof
            if not within and not self._begin_frame():
                return 0
            packed = self._packed or self._stream.read(_PACKED)
            if not packed:
                raise EOFError("it ends too early")
            self._ready = memoryview(self._frame.decompress(packed))
            self._packed = self._frame.unused_data if self._frame.eof else b""
        taken = self._ready[: len(buffer)]
        buffer[: len(taken)] = taken
        self._ready = self._ready[len(taken) :]
        return len(taken)

    def _begin_frame(self) -> bool:
        """Go to the next frame; return False if there is none. A file without any frame is an error."""
        padded = self._frame is not None and self._format.padding
        if padded and self._skip_zeros() % padded:
            raise OSError(f"zeros that are not padding follow its {self._format.name} data")
        length = len(self._format.beginnings[0])
        while len(self._packed) < length and (more := self._stream.read(_PACKED)):
            self._packed += more
        if not self._packed.startswith(self._format.beginnings):
            if self._packed:
                where = "it is not" if self._frame is None else "other data follow the part"
                raise OSError(f"{where} compressed with {self._format.name}")
            if self._frame is None:
                raise EOFError("it is empty, so it is not a compressed file")
            return False
        self._frame = self._format.frame()
        return True

    def _skip_zeros(self) -> int:
        """Skip zeros, and return how many there were."""
        count = 0
        while packed := self._packed or self._stream.read(_PACKED):
            self._packed = packed.lstrip(b"\0")
            count += len(packed) - len(self._packed)
            if self._packed:
                break
        return count

    def close(self) -> None:
        self._stream.close()
        super().close()


# Functions that open a compressed file, by its suffix.
UNPACKED: dict[str, Callable[[Path], BinaryIO]] = {".xz": _open_xz, ".gz": _open_gzip, ".zst": _open_zstd}


_WIDE_MARKS = {
    # UTF-32 first: its little-endian mark begins with that of UTF-16
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
}
_TOLD_BY_MARK = ("utf-16", "utf-32")  # each has two byte orders
_MAX_MARK_LENGTH = 4
_BLOCK = 1 << 16  # bytes read from a stream at a time

# The most bytes of a text that is read whole, unless the user sets another limit: a hundred novels.
MAX_INPUT_BYTES = 64_000_000
MAX_LINE_LENGTH = 16_000_000  # bytes; no corpus has such a line, so a file with one is not text in lines
_MAX_JSON = 1_000_000_000
_MAX_JSON_DEPTH = 100  # nested objects and lists

_CHUNK = 1 << 20


def open_binary(path: Path) -> BinaryIO:
    """Open a file for reading, decompressing `.xz`, `.gz` and `.zst`; `-` is standard input."""
    if str(path) == "-":
        return sys.stdin.buffer
    with read_errors(path):
        check_name(path)
        unpacked = UNPACKED.get(path.suffix)
        return unpacked(path) if unpacked is not None else path.open("rb")


@dataclass(frozen=True)
class WholeText:
    """The content of a text file."""

    name: str  # the file's name in messages
    text: str  # a byte order mark stays as its first character
    encoding: str  # encodes the text to the file's exact bytes


def read_text(path: Path, encoding: str | None = None, *, most: int = MAX_INPUT_BYTES) -> WholeText:
    """Read a whole text file of `most` bytes at most; `-` is standard input, which stays open."""
    name = name_of(path)
    return WholeText(name, *decode(read_data(path, most=most), encoding, name))


def read_data(path: Path, *, most: int = MAX_INPUT_BYTES) -> bytes:
    """Read the bytes of a whole file, decompressed, of `most` bytes at most; `-` is standard input."""
    with read_errors(path):
        stream = open_binary(path)
        try:
            return _read_bounded(stream, most, path)
        finally:
            if str(path) != "-":
                stream.close()


def _read_bounded(stream: BinaryIO, most: int, path: Path, hint: str = "") -> bytes:
    """Return all bytes of a stream; at most the limit and one chunk are ever in memory."""
    data = bytearray()
    while chunk := stream.read(_CHUNK):
        data += chunk
        if len(data) > most:
            raise too_large(path, most, hint)
    return bytes(data)


def too_large(path: Path, most: int, hint: str = "") -> CadecError:
    """Return the error for a file that is above the limit."""
    packed = ", decompressed," if path.suffix in (".gz", ".xz", ".zst") else ""
    return CadecError(
        f"{name_of(path)}{packed} is larger than {size_name(most)}",
        hint
        or f"to read it nevertheless, raise the limit: {option('max-input', size_name(_enough(path, most)))}",
    )


def _enough(path: Path, most: int) -> int:
    """Return a limit that is large enough for a file if its size is known, else twice the limit."""
    packed = str(path) == "-" or path.suffix in UNPACKED
    with contextlib.suppress(OSError):
        if not packed and (size := path.stat().st_size) > most:
            step = int("1" + "0" * (len(str(size)) - 2)) if size >= 100 else 1
            return size + -size % step
    return 2 * most


def size_name(size: int) -> str:
    """Return a number of bytes as users write it: 64MB."""
    for unit, count in (("GB", 10**9), ("MB", 10**6), ("kB", 1000)):
        if size >= count and size % (count // 10 or 1) == 0:
            return f"{size / count:g}{unit}"
    return f"{size}B"


def name_of(path: Path) -> str:
    """Return a file's name for messages, with replacements for bytes that are not Unicode."""
    return "standard input" if str(path) == "-" else str(path).encode("utf-8", "replace").decode()


def decode(data: bytes, encoding: str | None, name: str) -> tuple[str, str]:
    """Decode a file; return its text, and the encoding that gives exactly the same bytes."""
    try:
        exact = _exact(encoding, data)
        return data.decode(exact), exact
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _not_in(encoding, f"{name}: line {line}", error, _guess(data)) from None
    except (LookupError, ValueError, TypeError):
        raise _unknown(encoding) from None


def _exact(encoding: str | None, start: bytes) -> str:
    """Return the encoding that gives a file's exact bytes.

    Its start may have a byte order mark, which tells the encoding where UTF-8 is expected.
    """
    exact = codecs.lookup("utf-8" if encoding is None else encoding).name
    if exact in _TOLD_BY_MARK:
        marked = (wide for wide, mark in _WIDE_MARKS.items() if start.startswith(mark) and wide[:6] == exact)
        return next(marked, f"{exact}-le")
    exact = "utf-8" if exact == "utf-8-sig" else exact
    return (marked_encoding(start) or exact) if exact == "utf-8" else exact


def marked_encoding(start: bytes) -> str | None:
    """Return the encoding that a byte order mark of UTF-16 or UTF-32 tells; None without one."""
    return next((wide for wide, mark in _WIDE_MARKS.items() if start.startswith(mark)), None)


def _begins_mark(start: bytes) -> bool:
    """Tell whether a byte order mark may have begun."""
    return any(mark.startswith(start) for mark in _WIDE_MARKS.values())


def _guess(start: bytes) -> str:
    """Guess an encoding for a hint, when a file is not in the one that was named."""
    return (marked_encoding(start) or "cp1251")[:6]


def is_streamed(path: Path) -> bool:
    """Tell whether reading may have to wait for more: standard input, if it is a pipe or a terminal."""
    if str(path) != "-" or sys.stdin is None:
        return False
    try:
        return not stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode)
    except OSError:
        return True  # not a real file


def stream_text(encoding: str | None = None) -> "TextStream":
    """Return standard input as text that can be read as it arrives; the caller limits how much it keeps."""
    stream = sys.stdin.buffer
    # The buffer would wait until it is full, so read without it.
    return TextStream(getattr(stream, "raw", stream), name_of(Path("-")), encoding)


class TextStream:
    """Text that arrives piece by piece; together the pieces are the text that `decode` returns."""

    def __init__(self, stream: io.RawIOBase | BinaryIO, name: str, encoding: str | None = None) -> None:
        self.name = name
        self._stream, self._wanted = stream, encoding
        try:
            self.encoding = _exact(encoding, b"")
            self._by_mark = codecs.lookup(encoding or "utf-8").name in _TOLD_BY_MARK
            "".encode(self.encoding)  # fails for rot13 and the like, which are not text encodings
        except (LookupError, ValueError, TypeError):
            raise _unknown(encoding) from None
        self._decoder: codecs.IncrementalDecoder | None = None
        self._held = self._start = b""
        self._lines = 0  # line breaks in the bytes read so far
        self._ended = False
        self._failure: CadecError | None = None

    def waiting(self) -> bool:
        """Tell whether `read` would return at once."""
        if self._ended or self._failure is not None:
            return True
        try:
            return bool(select.select([self._stream.fileno()], [], [], 0)[0])
        except io.UnsupportedOperation:
            return True  # the stream is in memory
        except (OSError, ValueError):
            return False

    def read(self) -> str:
        """Wait for more text and return it; "" at the end. Text before an error is returned first."""
        while True:
            if self._failure is not None:
                raise self._failure
            if self._ended:
                return ""
            data = self._bytes()
            self._ended = not data
            if text := self._decode(data):
                return text

    def _bytes(self) -> bytes:
        with read_errors(Path(self.name)):
            while (data := self._stream.read(_BLOCK)) is None:
                select.select([self._stream.fileno()], [], [])  # the pipe is non-blocking
            return data

    def _decode(self, data: bytes) -> str:
        self._lines += data.count(b"\n")
        if self._decoder is None:
            data = self._held + data
            if not self._ended and len(data) < _MAX_MARK_LENGTH and (self._by_mark or _begins_mark(data)):
                self._held = data
                return ""
            self.encoding = _exact(self._wanted, data)
            self._decoder = codecs.getincrementaldecoder(self.encoding)()
        self._start = (self._start + data)[:_MAX_MARK_LENGTH]
        before = self._decoder.getstate()
        try:
            return self._decoder.decode(data, self._ended)
        except UnicodeDecodeError as error:
            line = self._lines - error.object.count(b"\n", error.start) + 1
            where = f"{self.name}: line {line}"
            self._complete_mark()
            self._failure = _not_in(self._wanted, where, error, _guess(self._start))
            self._decoder.setstate(before)
            return self._decoder.decode(data[: max(0, error.start - len(before[0]))])

    def _complete_mark(self) -> None:
        """Read more while the start may be an incomplete byte order mark, which `_guess` needs."""
        while _begins_mark(self._start) and len(self._start) < _MAX_MARK_LENGTH:
            if not (more := self._bytes()):
                return
            self._start += more


def read_lines(path: Path, encoding: str | None = None, *, most: int | None = None) -> Iterator[str]:
    """Yield the lines of a text file without line breaks; a byte order mark is dropped.

    A file of more than `most` bytes is a CadecError; pass a limit if you keep all lines.
    """
    size = 0
    with read_errors(path), open_binary(path) as stream:
        for number, raw in enumerate(iter(partial(stream.readline, MAX_LINE_LENGTH + 1), b""), 1):
            size += len(raw)
            if most is not None and size > most:
                raise too_large(path, most)
            if len(raw) > MAX_LINE_LENGTH:
                raise CadecError(
                    f"{name_of(path)}: line {number} is longer than {size_name(MAX_LINE_LENGTH)}",
                    "is it text, with a line break after every line?",
                )
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
        else f"say which encoding it is with {option('encoding')}, e.g. {option('encoding', guess)}"
    )
    return CadecError(f"{where} is not {encoding or 'utf-8'} (byte {error.object[error.start]:#04x})", hint)


def _unknown(encoding: str | None) -> UsageError:
    return UsageError(
        f"unknown encoding: {encoding}", f"give {option('encoding')} a name such as utf-8, cp1251 or latin-1"
    )


@contextlib.contextmanager
def read_errors(path: Path) -> Iterator[None]:
    """Turn any error while reading or decompressing `path` into a CadecError that names it."""
    try:
        yield
    except FileNotFoundError:
        raise CadecError(f"no such file: {path}") from None
    except IsADirectoryError:
        raise CadecError(f"{path} is a directory, not a file") from None
    except PermissionError:
        raise CadecError(f"not allowed to read {path}") from None
    except lzma.LZMAError as error:
        if str(error) == "Memory usage limit exceeded":
            raise _unpacking_needs(path) from None
        raise CadecError(
            f"can't read {path}: {error}", "the file may be truncated or of another format"
        ) from None
    except OSError as error:
        # An error without errno comes from the decompressor, not from the system.
        hint = "" if error.errno else "the file may be truncated or of another format"
        raise CadecError(f"can't read {path}: {error.strerror or error}", hint) from None
    except (zlib.error, EOFError) as error:
        raise CadecError(
            f"can't read {path}: {error}", "the file may be truncated or of another format"
        ) from None
    except Exception as error:
        if type(error).__name__ != "ZstdError":
            raise
        if "too much memory" in str(error):
            raise _unpacking_needs(path) from None
        raise CadecError(
            f"can't read {path}: {error}", "the file may be truncated or of another format"
        ) from None


def _unpacking_needs(path: Path) -> CadecError:
    return CadecError(
        f"{name_of(path)} needs more than {MEMORY >> 20} MiB of memory to decompress",
        "decompress it with xz or zstd first, if you trust it",
    )


def check_name(path: Path) -> None:
    """Raise a CadecError for a name that no file can have."""
    try:
        possible = "\0" not in str(path) and bool(os.fsencode(path))
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise CadecError(f"no file can have the name {name_of(path)}")


def read_json(path: Path, *, strict: bool = False) -> Any:
    """Read a JSON file; a broken one is a CadecError.

    With `strict`, duplicate keys, NaN and Infinity are errors, too.
    """
    with read_errors(path):
        check_name(path)
        with path.open("rb") as stream:
            raw = _read_bounded(
                stream, _MAX_JSON, path, "no JSON file of cadec is that large: is this the right file?"
            )
    try:
        return parse_json(raw, strict=strict)
    except ValueError as error:
        raise CadecError(f"{path} is not valid JSON: {error}") from None


def parse_json(text: str | bytes, *, strict: bool = False) -> Any:
    """Parse a JSON text; a ValueError says why it is invalid, or that it is nested too deeply."""
    deep = f"it is nested more than {_MAX_JSON_DEPTH} levels deep"
    try:
        if strict:
            value = json.loads(text, object_pairs_hook=_each_once, parse_constant=_no_number)
        else:
            value = json.loads(text)
    except RecursionError:
        raise ValueError(deep) from None
    # Copying or writing the value must not overflow the stack either.
    raw = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    brackets = raw.count(b"[") + raw.count(b"{")
    if brackets > _MAX_JSON_DEPTH and _depth(value) > _MAX_JSON_DEPTH:
        raise ValueError(deep)
    return value


def _depth(value: Any) -> int:
    """Return how deeply objects and lists are nested."""
    level, depth = [value], 0
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [inner for item in level for inner in (item.values() if isinstance(item, dict) else item)]
    return depth


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate key")
    return found


def _no_number(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON number")


# Bytes that are read at once for a checksum. Between two blocks a thread needs Python's lock, and may have to
# wait for it as long as a block of this size takes.
_CHECKSUM_BLOCK = 16 << 20


def sha256(path: Path) -> str:
    """Return the SHA-256 checksum of a file, in hexadecimal. Other threads can run meanwhile."""
    digest = hashlib.sha256()
    with read_errors(path), path.open("rb", buffering=0) as stream:
        block = memoryview(bytearray(min(_CHECKSUM_BLOCK, path.stat().st_size + 1)))
        while count := stream.readinto(block):
            digest.update(block[:count])
    return digest.hexdigest()
