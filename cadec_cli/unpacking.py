"""Compressed files, unpacked as they are read, in bounded memory: `.xz`, `.gz` and `.zst`.

How much may come of one is for those to say who read it.
"""

import gzip
import io
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, cast

from cadec_cli.errors import CadecError

# Bytes unpacked at once: of four can come 128 KiB, so of these no more than 32 MiB.
_PACKED = 1 << 10
# What unpacking may hold in memory beside the result: `xz -9` needs 65 MiB, `zstd --ultra -22` 128 MiB.
MEMORY = 1 << 28
_ZSTD_WINDOW = 1 << 27


def _open_xz(path: Path) -> BinaryIO:
    return _frames(path, lambda: lzma.LZMADecompressor(memlimit=MEMORY), padded=lzma.LZMAError)


def _open_gzip(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path))


def _open_zstd(path: Path) -> BinaryIO:
    try:
        import zstandard
    except ImportError:
        raise CadecError(
            f"{path} is compressed with zstd, and the zstandard package is not installed",
            "pip install 'cadec[zstd]'",
        ) from None
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
    return _frames(path, decompressor.decompressobj)


def _frames(path: Path, frame: Callable[[], Any], padded: type[Exception] | tuple[()] = ()) -> BinaryIO:
    return cast(BinaryIO, io.BufferedReader(_Frames(path.open("rb"), frame, padded)))


class _Frames(io.RawIOBase):
    """The content of a compressed file, frame after frame; `frame` makes a decompressor of one.

    Unlike the libraries' own readers it can be read by lines, tells when the file is truncated, and keeps
    the limits on memory that the decompressor was made with. What follows a frame and is none, is passed
    over where it raises `padded`.
    """

    def __init__(
        self, stream: BinaryIO, frame: Callable[[], Any], padded: type[Exception] | tuple[()]
    ) -> None:
        self._stream, self._new_frame, self._padded = stream, frame, padded
        self._frame: Any = None
        self._packed = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            packed = self._packed or self._stream.read(_PACKED)
            if not packed:
                if self._frame is not None and not self._frame.eof:
                    raise EOFError("compressed file ended inside a frame")
                return 0
            if not self._unpack(packed):
                return 0
        taken = self._ready[: len(buffer)]
        buffer[: len(taken)] = taken
        self._ready = self._ready[len(taken) :]
        return len(taken)

    def _unpack(self, packed: bytes) -> bool:
        """Unpack a piece; tell whether it was part of a frame."""
        follows = self._frame is not None and self._frame.eof
        if follows and self._padded and not packed.strip(b"\0"):
            self._packed = b""
            return True
        if self._frame is None or follows:
            self._frame = self._new_frame()
        try:
            self._ready = memoryview(self._frame.decompress(packed))
        except self._padded:
            if follows:
                return False
            raise
        self._packed = self._frame.unused_data if self._frame.eof else b""
        return True

    def close(self) -> None:
        self._stream.close()
        super().close()


# What opens a file, by the end of its name.
UNPACKED: dict[str, Callable[[Path], BinaryIO]] = {".xz": _open_xz, ".gz": _open_gzip, ".zst": _open_zstd}
