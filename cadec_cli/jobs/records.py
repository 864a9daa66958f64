"""Records of unfinished work, appended to a file: so that Ctrl-C, a crash or a full disk loses nothing.

Checked lines of JSON: a header that tells what the work is, with all that its outcome depends on, then one
record after the other. One process at a time has the file. What records say, and what it means that one is
lost, their readers know.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar

from cadec_cli.errors import CadecError, option
from cadec_cli.fs.atomic import atomic_file, write_errors
from cadec_cli.fs.locks import ensure_unlocked, open_locked, remove_locked, size_of
from cadec_cli.fs.read import read_errors

# Lines that vouch for themselves, `checksum SPACE content`: one that was damaged is known, and left out.


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


FORMAT_VERSION = 4
HINT = f"free some space and run it again with {option('resume')}: nothing that was translated is lost"
DAMAGED = f"delete it, or start over with {option('force')}"

_EARLIER = b'{"format": '  # how journals of earlier versions begin


@dataclass(frozen=True)
class LinePosition:
    """Where in a file a line is."""

    start: int
    length: int

    def of(self, stream: IO[bytes]) -> bytes:
        """The line."""
        stream.seek(self.start)
        return stream.read(self.length)


class WithPlaces(Protocol):
    """What was found in a file: more than this, but at least which of its lines to keep, in their order."""

    @property
    def kept_places(self) -> Sequence[LinePosition]:
        """Where they are."""


Found = TypeVar("Found", bound=WithPlaces)


class RecordFile:
    """A file of records, open for appending and claimed."""

    def __init__(self, path: Path, stream: IO[bytes], header: bytes) -> None:
        self.path = path
        self._stream = stream
        self._key = key_of(header)
        self._end = size_of(stream)

    @classmethod
    def begin(cls, path: Path, header: bytes) -> RecordFile:
        """Start a file; one that is there already belongs to unfinished work."""
        refuse_unfinished(path)
        with write_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            file = cls(path, _appending(path), header)
        if file._end:  # another process was quicker
            file.close()
            raise _unfinished_error(path)
        try:
            file._write(encode_line(header))
        except BaseException:
            file.remove()
            raise
        return file

    @classmethod
    def resume(
        cls, path: Path, header: bytes, find: Callable[[Path, bytes], Found | None]
    ) -> tuple[RecordFile, Found | None]:
        """Take a file up again with what is found in it, and nothing else; without anything, start it."""
        if not os.path.lexists(path):
            return cls.begin(path, header), None
        with read_errors(path):
            stream = _appending(path)
        try:
            if (found := find(path, header)) is not None:
                stream = _keep_lines(stream, path, encode_line(header), found.kept_places)
        except BaseException:
            stream.close()
            raise
        if found is None:  # killed before there was anything
            remove_locked(stream, path)
            return cls.begin(path, header), None
        return cls(path, stream, header), found

    def add(self, record: Mapping[str, Any]) -> LinePosition:
        """Note something, and return where that is."""
        content = json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass")
        return self._write(encode_line(content, self._key))

    def read(self, place: LinePosition) -> Any:
        """The record at a place, if it is still what was written there; else nothing."""
        with read_errors(self.path), self.path.open("rb") as stream:
            content = decode_line(place.of(stream), self._key)
        return None if content is None else parse_content(content)

    def sync(self) -> None:
        """Have on disk what was added."""
        with write_errors(self.path, HINT):
            os.fsync(self._stream.fileno())

    def remove(self) -> None:
        """It has done its work."""
        remove_locked(self._stream, self.path)

    def close(self) -> None:
        """Leave it to whoever takes it up."""
        self._stream.close()

    def _write(self, line: bytes) -> LinePosition:
        place = LinePosition(self._end, len(line))
        with write_errors(self.path, HINT):
            while line:
                line = line[self._stream.write(line) :]
        self._end += place.length
        return place


def header_content(header: Mapping[str, Any]) -> bytes:
    """What the first line says: all that the outcome depends on."""
    return json.dumps({"format": FORMAT_VERSION, **header}).encode()


def refuse_unfinished(path: Path) -> None:
    """Refuse to begin anew where a translation can be taken up, or is being made."""
    ensure_unlocked(path)
    if os.path.lexists(path):
        raise _unfinished_error(path)


def read_records(
    path: Path, stream: IO[bytes], header: bytes, take: Callable[[Any, LinePosition], bool], longest: int = -1
) -> int | None:
    """Hand all whole records to `take`, which tells whether they are its own; count the damaged lines.

    None where the file was killed before it had a header. A header of other work is refused. A damaged one is
    as well, unless some line after it has a checksum that only this header's work could have made. A line is
    damaged, and never in memory as a whole, if it has more bytes than the `longest`, where that is known.
    """
    first = stream.readline(longest)
    if not first.endswith(b"\n"):
        if encode_line(header).startswith(first) or first.startswith(_EARLIER):
            return None
        raise CadecError(f"{path} is damaged: what it belongs to can't be told", DAMAGED)
    header_is_whole = _check_header(path, first, header)
    taken, damaged = 0, int(not header_is_whole)
    for line, place in _lines(stream, longest):
        content = decode_line(line, key_of(header))
        if content is not None and take(parse_content(content), place):
            taken += 1
        else:
            damaged += 1
    if not header_is_whole and not taken:
        raise CadecError(f"{path} is damaged: what it belongs to can't be told", DAMAGED)
    return damaged


def pack_places(places: Iterable[LinePosition], header: bytes) -> Iterator[LinePosition]:
    """Where lines that were kept are, once the file is taken up again: one after the other."""
    end = len(encode_line(header))
    for place in places:
        yield LinePosition(end, place.length)
        end += place.length


def parse_content(content: bytes) -> Any:
    """What a line's content says; nothing, if it says nothing."""
    try:
        return json.loads(content.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None


def _lines(stream: IO[bytes], longest: int) -> Iterator[tuple[bytes, LinePosition]]:
    position = stream.tell()
    for line in iter(partial(stream.readline, longest), b""):
        if line.endswith(b"\n"):  # else it is too long, or was cut short by a crash or a full disk
            yield line, LinePosition(position, len(line))
        position += len(line)


def _check_header(path: Path, line: bytes, expected: bytes) -> bool:
    """Refuse a file of other work; tell whether the header is whole."""
    content = decode_line(line)
    if content == expected:
        return True
    wanted = json.loads(expected)
    found = parse_content(line if content is None else content)
    # Journals of before had no checksums; whatever else has none is a damaged one of ours.
    if not isinstance(found, dict) or (content is None and found.get("format") == wanted["format"]):
        return False
    other = [key for key in {**wanted, **found} if found.get(key) != wanted.get(key)]
    raise CadecError(
        f"{path} belongs to another translation, which differs in: {', '.join(other)}",
        f"resume with the same input and options, or start over with {option('force')}",
    )


def _unfinished_error(path: Path) -> CadecError:
    return CadecError(
        f"there is an unfinished translation: {path}",
        f"continue it with {option('resume')}, or start over with {option('force')}",
    )


def _appending(path: Path) -> IO[bytes]:
    # A buffer would try again, on closing, what a full disk refused.
    return open_locked(path, "ab", buffering=0)


def _keep_lines(claimed: IO[bytes], path: Path, header: bytes, places: Sequence[LinePosition]) -> IO[bytes]:
    """Leave only these lines of a file, and go on with it, claimed without a break.

    They are cut off where they are its beginning; else copied.
    """
    end = len(header)
    for place in places:
        if place.start != end:
            break
        end += place.length
    else:
        with read_errors(path), path.open("rb") as stream:
            begins = stream.read(len(header)) == header
        if begins:
            with write_errors(path, HINT):
                os.truncate(path, end)
            return claimed
    with read_errors(path), path.open("rb") as stream, atomic_file(path, HINT) as target:
        target.write(header)
        for place in places:
            target.write(place.of(stream))
        # Whoever writes a file holds its lock, and a copy of the descriptor goes on holding it.
        copy = os.fdopen(os.dup(target.fileno()), "ab", buffering=0)
    claimed.close()
    return copy
