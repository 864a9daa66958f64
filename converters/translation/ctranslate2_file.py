"""What CTranslate2's model.bin says of its weights: names, shapes, and whether all of them are numbers."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from cadec_cli.errors import CadecError
from cadec_cli.files import read_errors

# Older ones say less of their variables.
_OLDEST_VERSION = 4

_FLOATS = {0: "float32", 4: "float16"}
_BFLOAT16 = 5


@dataclass(frozen=True)
class StoredModel:
    """A model on disk: what CTranslate2 calls it, and the shapes of its variables."""

    name: str
    shapes: Mapping[str, tuple[int, ...]]


def read_stored(path: Path) -> StoredModel:
    """Look through a model.bin; one that is damaged, or holds values that are no numbers, is a CadecError."""
    try:
        with read_errors(path), path.open("rb") as stream:
            return _read(stream, path)
    except (struct.error, UnicodeDecodeError, ValueError):
        raise CadecError(
            f"{path} is no model of CTranslate2's, or it is cut short", "download or convert it again"
        ) from None


def _read(stream: BinaryIO, path: Path) -> StoredModel:
    length = os.fstat(stream.fileno()).st_size
    version = _number(stream, "I")
    if not _OLDEST_VERSION <= version < 1000:
        raise CadecError(
            f"{path} is of CTranslate2's format {version}, which can't be read",
            "convert the original with a newer CTranslate2",
        )
    name = _text(stream)
    _number(stream, "I")  # the revision of the specification
    shapes: dict[str, tuple[int, ...]] = {}
    wrong = []
    for _ in range(_number(stream, "I")):
        variable = _text(stream)
        shapes[variable] = tuple(_number(stream, "I") for _ in range(_number(stream, "B")))
        kind, size = _number(stream, "B"), _number(stream, "I")
        if size > length - stream.tell():  # before any memory is taken for it
            raise ValueError("it ends early")
        data = stream.read(size)
        if not _finite(data, kind):
            wrong.append(variable)
    for _ in range(_number(stream, "I")):
        alias, variable = _text(stream), _text(stream)
        if variable in shapes:
            shapes[alias] = shapes[variable]
    if wrong:
        raise CadecError(f"{path} holds NaN or infinite values in {', '.join(wrong[:5])}")
    return StoredModel(name, shapes)


def _finite(data: bytes, kind: int) -> bool:
    if kind in _FLOATS:
        return bool(np.isfinite(np.frombuffer(data, _FLOATS[kind])).all())
    if kind == _BFLOAT16:
        exponents = np.frombuffer(data, np.uint16) & 0x7F80
        return bool((exponents != 0x7F80).all())
    return True


def _number(stream: BinaryIO, form: str) -> int:
    value: int = struct.unpack(f"<{form}", stream.read(struct.calcsize(f"<{form}")))[0]
    return value


def _text(stream: BinaryIO) -> str:
    size = _number(stream, "H")
    data = stream.read(size)
    if len(data) != size:
        raise ValueError("it ends early")
    return data.rstrip(b"\0").decode("utf-8")
