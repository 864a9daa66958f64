"""A checked append log: the work done so far, on disk, so that Ctrl-C, a crash or a full disk loses nothing.

A log is a file of lines, `checksum SPACE content`, where the content is JSON. The first line is the header:
the subject of the log, the version of the format, and everything that the outcome of the work depends on.
Every other line is a record. Its checksum is keyed with the header, so a record of other work is never
accepted. A damaged line is recognised and left out. One process at a time has a log open.

The meaning of records, and the cost of losing one, is up to the users of a log: journals and done documents
of translations, pairs of `augment`, sessions of the REPL.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from cadec_cli.errors import CadecError, option
from cadec_cli.fs.atomic import atomic_file, write_errors
from cadec_cli.fs.locks import ensure_unlocked, open_locked, remove_locked
from cadec_cli.fs.read import check_name, read_errors

FORMAT_VERSION = 5
FULL_DISK_HINT = f"free some space and run it again with {option('resume')}: no finished work is lost"
START_OVER_HINT = f"start over with {option('force')}"

_CHECKSUM_BYTES = 8
_BLOCK = 1 << 16  # bytes searched at a time
_LONGEST_HEADER = 1 << 20


@dataclass(frozen=True)
class LogHeader:
    """A log's subject, and in `origin`, as plain data, everything that the outcome of the work depends on."""

    subject: str  # as messages name it: "there is an unfinished translation"
    origin: Mapping[str, Any]

    @cached_property
    def content(self) -> bytes:
        """The header as it is written."""
        return json.dumps({"format": FORMAT_VERSION, "log": self.subject, **self.origin}).encode()

    @cached_property
    def line(self) -> bytes:
        """The first line of a log with this header."""
        return encode_line(self.content)

    @cached_property
    def key(self) -> bytes:
        """The key of the checksums of all its records."""
        return hashlib.blake2b(self.content, digest_size=32).digest()

    def encode(self, record: Any) -> bytes:
        """A record as a line of a log with this header."""
        return encode_line(json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass"), self.key)

    def decode(self, line: bytes) -> Any:
        """The record of a line; None if the line is damaged or of another log."""
        content = decode_line(line, self.key)
        return None if content is None else _parse(content)


@dataclass(frozen=True)
class LinePosition:
    """The position of a line in a file, in bytes."""

    start: int
    length: int


class AppendLog:
    """A log that is open for appending, and locked until it is closed.

    `header_is_damaged` is True if the first line is damaged but later lines are not.
    """

    def __init__(self, path: Path, stream: IO[bytes], header: LogHeader) -> None:
        self.path = path
        self.header = header
        self.header_is_damaged = False
        self._header_is_exact = True
        self._stream = stream
        self._end = os.fstat(stream.fileno()).st_size

    @classmethod
    def begin(cls, path: Path, header: LogHeader) -> AppendLog:
        """Start a log; a CadecError if there is one already, of unfinished work."""
        refuse_unfinished(path, header.subject)
        with write_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            log = cls(path, _open(path), header)
        if log._end:  # another process was quicker
            log.close()
            raise _unfinished_error(path, header.subject)
        try:
            log._write(header.line)
        except BaseException:
            log.remove()
            raise
        return log

    @classmethod
    def resume(cls, path: Path, header: LogHeader) -> AppendLog:
        """Open a log again; start one if there is none, or if it was killed before it had a header.

        A CadecError if the log belongs to other work, was written by another version, or is too damaged to
        tell. A last line that was cut short is removed.
        """
        if not os.path.lexists(path):
            return cls.begin(path, header)
        with read_errors(path):
            log = cls(path, _open(path), header)
        try:
            log._check_header()
        except BaseException:
            log.close()
            raise
        return log

    def records(self) -> Iterator[tuple[LinePosition, Any]]:
        """Yield the position and the record of every line after the header, None for a damaged record."""
        with read_errors(self.path), self.path.open("rb") as stream:
            stream.readline()
            yield from _scan(stream, self.header)

    def append(self, record: Any) -> LinePosition:
        """Add a record; return its position."""
        return self._write(self.header.encode(record))

    def read(self, position: LinePosition) -> Any:
        """Return the record at a position; None if it was damaged since it was written."""
        with read_errors(self.path), self.path.open("rb") as stream:
            return self.header.decode(_line_at(stream, position))

    def keep(self, positions: Iterable[LinePosition]) -> list[LinePosition]:
        """Drop all records but those at these positions, in this order; return their new positions."""
        kept = list(positions)
        moved, end = [], len(self.header.line)
        for position in kept:
            moved.append(LinePosition(end, position.length))
            end += position.length
        if kept == moved and self._header_is_exact:
            self._truncate(end)
        else:
            with read_errors(self.path), self.path.open("rb") as stream:
                self._replace(_line_at(stream, position) for position in kept)
        return moved

    def rewrite(self, records: Iterable[Any]) -> None:
        """Replace all records. The new ones may be computed from the old ones, which stay until the end."""
        self._replace(map(self.header.encode, records))

    def sync(self) -> None:
        """Wait until everything that was appended is on disk."""
        with write_errors(self.path, FULL_DISK_HINT):
            os.fsync(self._stream.fileno())

    def remove(self) -> None:
        """Remove the log after the work is finished."""
        remove_locked(self._stream, self.path)

    def close(self) -> None:
        """Close the log, so that the work can be resumed."""
        self._stream.close()

    def __enter__(self) -> AppendLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_header(self) -> None:
        with read_errors(self.path), self.path.open("rb") as stream:
            first = stream.readline()
            if not first.endswith(b"\n") and self.header.line.startswith(first):
                self._truncate(0)  # killed before there was a complete header
                self._write(self.header.line)
                return
            whole = first.endswith(b"\n") and check_header(self.path, first, self.header)
            if not whole and all(record is None for _, record in _scan(stream, self.header)):
                raise CadecError(
                    f"{self.path} is damaged: can't tell which work it belongs to",
                    f"delete it, or {START_OVER_HINT}",
                )
            self.header_is_damaged, self._header_is_exact = not whole, first == self.header.line
            self._truncate(_end_of_lines(stream))

    def _truncate(self, end: int) -> None:
        if end != self._end:
            with write_errors(self.path, FULL_DISK_HINT):
                os.truncate(self.path, end)
            self._end = end

    def _replace(self, lines: Iterable[bytes]) -> None:
        """Write the file again, with these lines after the header; it stays locked throughout."""
        with atomic_file(self.path, FULL_DISK_HINT) as target:
            target.write(self.header.line)
            for line in lines:
                target.write(line)
            # The process that writes a file holds its lock, and a copy of the descriptor keeps it.
            copy = os.fdopen(os.dup(target.fileno()), "ab", buffering=0)
        self._stream.close()
        self._stream = copy
        self._end = os.fstat(copy.fileno()).st_size
        self.header_is_damaged, self._header_is_exact = False, True

    def _write(self, line: bytes) -> LinePosition:
        position = LinePosition(self._end, len(line))
        with write_errors(self.path, FULL_DISK_HINT):
            while line:
                line = line[self._stream.write(line) :]
        self._end += position.length
        return position


@contextlib.contextmanager
def close_on_error(log: AppendLog) -> Iterator[None]:
    """Close a log if this block fails; else it stays open."""
    try:
        yield
    except BaseException:
        log.close()
        raise


def refuse_unfinished(path: Path, subject: str = "translation") -> None:
    """Raise a CadecError if there is a log: its work can be resumed, or another process is doing it."""
    ensure_unlocked(path)
    if os.path.lexists(path):
        raise _unfinished_error(path, subject)


def write_log(path: Path, header: LogHeader, records: Iterable[Any], *, private: bool = False) -> None:
    """Write a log whole or not at all; other users can't read a private one."""
    with atomic_file(path, private=private) as stream:
        stream.write(header.line)
        for record in records:
            stream.write(header.encode(record))


def read_log(path: Path, header: LogHeader, longest: int) -> Iterator[Any]:
    """Yield the records of a log that no process is writing, None for a damaged one.

    For errors see `AppendLog.resume`. A line of more than `longest` bytes counts as damaged, and is never in
    memory as a whole.
    """
    with read_errors(path), path.open("rb") as stream:
        check_header(path, stream.readline(longest), header)
        for _, record in _scan(stream, header, longest):
            yield record


def read_header(path: Path, subject: str) -> LogHeader | None:
    """Return a log's header; None if the file is not a log of this subject, or its header is damaged.

    A header of another version is a CadecError.
    """
    check_name(path)
    with read_errors(path), path.open("rb") as stream:
        content = decode_line(stream.readline(_LONGEST_HEADER))
    if content is None:
        return None
    found = _parse(content)
    if not isinstance(found, dict) or found.pop("format", None) != FORMAT_VERSION:
        raise _version_error(path)
    return LogHeader(subject, found) if found.pop("log", None) == subject else None


def damage_report(path: Path, damaged: int, lost: int | None, unit: str) -> str:
    """Return a message about damaged lines and the units lost with them; "" if there is no damage.

    `lost` is None if the number of lost units is not known.
    """
    if not damaged and not lost:
        return ""
    count = max(damaged, lost or 0)
    records = f"{count:,} damaged record{'s' if count > 1 else ''} in {path}"
    if lost is None:
        return f"{records}: at most as many {unit}s are translated again"
    if not lost:
        return f"{records}: no {unit} is lost"
    return f"{records}: {lost:,} {unit}{'s are' if lost > 1 else ' is'} translated again"


def check_header(path: Path, line: bytes, header: LogHeader) -> bool:
    """Tell whether a first line is this header, undamaged; a CadecError if it is another header."""
    content = decode_line(line)
    if content == header.content:
        return True
    # Early formats had no checksums; any other line without one is damaged.
    found = _parse(line if content is None else content)
    version = found.get("format") if isinstance(found, dict) else None
    if content is None and version in (None, FORMAT_VERSION):
        return False
    if version != FORMAT_VERSION:
        raise _version_error(path)
    wanted = json.loads(header.content)
    other = [key for key in {**wanted, **found} if found.get(key) != wanted.get(key)]
    raise CadecError(
        f"{path} belongs to another {header.subject}, which differs in: {', '.join(other)}",
        f"resume with the same input and options, or {START_OVER_HINT}",
    )


def encode_line(content: bytes, key: bytes = b"") -> bytes:
    """Return a line with this content, which must not contain a line break."""
    return _checksum(content, key) + b" " + content + b"\n"


def decode_line(line: bytes, key: bytes = b"") -> bytes | None:
    """Return the content of a line, None if it is damaged; an editor's carriage return is ignored."""
    if not line.endswith(b"\n"):
        return None
    checksum, _, content = line.rstrip(b"\r\n").partition(b" ")
    return content if checksum == _checksum(content, key) else None


def _checksum(content: bytes, key: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_CHECKSUM_BYTES, key=key).hexdigest().encode()


def _parse(content: bytes) -> Any:
    try:
        return json.loads(content.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None


def _scan(stream: IO[bytes], header: LogHeader, longest: int = -1) -> Iterator[tuple[LinePosition, Any]]:
    """Yield the lines from a stream's position on, except those that were cut short or are too long."""
    start = stream.tell()
    for line in iter(partial(stream.readline, longest), b""):
        if line.endswith(b"\n"):
            yield LinePosition(start, len(line)), header.decode(line)
        start += len(line)


def _end_of_lines(stream: IO[bytes]) -> int:
    """Return the position after the last line break of a file."""
    end = stream.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - _BLOCK)
        stream.seek(start)
        if (found := stream.read(end - start).rfind(b"\n")) >= 0:
            return start + found + 1
        end = start
    return 0


def _line_at(stream: IO[bytes], position: LinePosition) -> bytes:
    stream.seek(position.start)
    return stream.read(position.length)


def _open(path: Path) -> IO[bytes]:
    # On closing, a buffer would try again to write the bytes that a full disk refused.
    return open_locked(path, "ab", buffering=0)


def _version_error(path: Path) -> CadecError:
    return CadecError(f"{path} was written by another version of cadec", START_OVER_HINT)


def _unfinished_error(path: Path, subject: str) -> CadecError:
    return CadecError(
        f"there is an unfinished {subject}: {path}",
        f"continue it with {option('resume')}, or {START_OVER_HINT}",
    )
