"""Formats that hold others: what is inside can be damaged while the outside stays whole."""

import gzip
import io
import json
import lzma
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Packing:
    """The part that is damaged, and the whole with another part in its place."""

    take: Callable[[bytes], bytes]
    put: Callable[[bytes, bytes], bytes]


def _header(data: bytes) -> bytes:
    return data[8 : 8 + struct.unpack("<Q", data[:8])[0]]


def _with_header(data: bytes, header: bytes) -> bytes:
    size = struct.unpack("<Q", data[:8])[0]
    return struct.pack("<Q", len(header)) + header + data[8 + size :]


# The JSON that names a safetensors file's tensors.
SAFETENSORS = Packing(_header, _with_header)

GZIP = Packing(gzip.decompress, lambda _, inside: gzip.compress(inside, 1, mtime=0))
XZ = Packing(lzma.decompress, lambda _, inside: lzma.compress(inside, preset=0))


def member(ending: str) -> Packing:
    """The first file of a zip archive (.npz, .pt) whose name ends so."""

    def name_in(archive: zipfile.ZipFile) -> str:
        return next(name for name in archive.namelist() if name.endswith(ending))

    def take(data: bytes) -> bytes:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.read(name_in(archive))

    def put(data: bytes, inside: bytes) -> bytes:
        made = io.BytesIO()
        with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(made, "w") as written:
            for one in archive.namelist():
                written.writestr(one, inside if one == name_in(archive) else archive.read(one))
        return made.getvalue()

    return Packing(take, put)


def is_json(data: bytes) -> bool:
    """Tell whether a whole file is one JSON value."""
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True
