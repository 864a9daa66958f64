"""Lines that vouch for themselves, `checksum SPACE content`: one that was damaged is known, and left out.

The checksum covers a key as well, made of what the file is about, so that a line of another file does not
pass for one of this. What a line says, and what to do about one that is lost, its readers know: a content
that says what it is about can stand anywhere in a file, and twice.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

_SIZE = 8


def key_of(subject: bytes) -> bytes:
    """The key of a file that is about this."""
    return hashlib.blake2b(subject, digest_size=32).digest()


def encode_line(content: bytes, key: bytes = b"") -> bytes:
    """A line with this content, which may have no line break in it."""
    return _checksum(content, key) + b" " + content + b"\n"


def decode_line(line: bytes, key: bytes = b"") -> bytes | None:
    """The content of a line, if it is whole; a carriage return that an editor put at its end does no harm."""
    if not line.endswith(b"\n"):
        return None
    checksum, _, content = line.rstrip(b"\r\n").partition(b" ")
    return content if checksum == _checksum(content, key) else None


def damage_report(path: Path, damaged: int, lost: int | None, unit: str) -> str:
    """What a user is told of lines that are damaged, and of what is lost for it; nothing if nothing is.

    Where nobody knows what is lost, that is None.
    """
    if not damaged and not lost:
        return ""
    count = max(damaged, lost or 0)
    records = f"{count:,} damaged record{'s' if count > 1 else ''} in {path}"
    if lost is None:
        return f"{records}: no more {unit}s than that are translated again"
    if not lost:
        return f"{records}: no {unit} is lost"
    return f"{records}: {lost:,} {unit}{'s are' if lost > 1 else ' is'} translated again"


def _checksum(content: bytes, key: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_SIZE, key=key).hexdigest().encode()
