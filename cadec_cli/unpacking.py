"""Compressed files, unpacked as they are read, in bounded memory: `.xz`, `.gz` and `.zst`.

A file may have several frames, one after the other, and padding where its format has such a thing. Whatever
else there is, and whatever is missing, is an error: nothing of a file is passed over in silence.

How much may come of one is for those to say who read it.
"""

import io
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from cadec_cli.errors import CadecError

# Bytes unpacked at once: of four can come 128 KiB, so of these no more than 32 MiB.
_PACKED = 1 << 10
# What unpacking may hold in memory beside the result: `xz -9` needs 65 MiB, `zstd --ultra -22` 128 MiB.
MEMORY = 1 << 28
_ZSTD_WINDOW = 1 << 27
_GZIP_ONLY = 31  # for zlib, which has formats of its own


@dataclass(frozen=True)
class _Format:
    """How frames begin, what unpacks one, and in what multiples zeros may follow one; 0 is none at all."""

    name: str
    beginnings: tuple[bytes, ...]  # all of one length
    frame: Callable[[], Any]
    padding: int


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
    skippable = (bytes([first, 0x2A, 0x4D, 0x18]) for first in range(0x50, 0x60))  # of no text, as it says
    beginnings = (zstandard.FRAME_HEADER, *skippable)
    return _frames(path, _Format("zstd", beginnings, decompressor.decompressobj, padding=0))


def _frames(path: Path, form: _Format) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(_Frames(path.open("rb"), form)))


class _Frames(io.RawIOBase):
    """The content of a compressed file, frame after frame.

    Unlike the libraries' own readers it can be read by lines, tells when the file is truncated or has
    something else at its end, and keeps the limits on memory that the decompressor was made with.
    """

    def __init__(self, stream: BinaryIO, form: _Format) -> None:
        self._stream, self._format = stream, form
        self._frame: Any = None
        self._packed = b""  # read, and after the frame
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
        """Go to the next frame, if there is one; the first there has to be."""
        padded = self._frame is not None and self._format.padding
        if padded and self._skip_zeros() % padded:
            raise OSError(f"zeros follow its {self._format.name} data that are no padding")
        length = len(self._format.beginnings[0])
        while len(self._packed) < length and (more := self._stream.read(_PACKED)):
            self._packed += more
        if not self._packed.startswith(self._format.beginnings):
            if self._packed:
                where = "it is not" if self._frame is None else "something else follows what is"
                raise OSError(f"{where} compressed with {self._format.name}")
            if self._frame is None:
                raise EOFError("it is empty, which no compressed file is")
            return False
        self._frame = self._format.frame()
        return True

    def _skip_zeros(self) -> int:
        """Pass over zeros, and tell how many there were."""
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


# What opens a file, by the end of its name.
UNPACKED: dict[str, Callable[[Path], BinaryIO]] = {".xz": _open_xz, ".gz": _open_gzip, ".zst": _open_zstd}
