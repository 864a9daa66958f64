"""A checked append log: what is done so far, on disk, so that Ctrl-C, a crash or a full disk loses nothing.

A log is a file of lines, `checksum SPACE content`, where the content is JSON. The first line is the header:
what the log is of, the version of the format, and everything that the outcome of the work depends on. Every
other line is a record. Its checksum is keyed with the header, so a line of other work never passes for one
of this. A damaged line is recognised and left out. One process at a time has a log open.

What a record says, and what it costs to lose one, its users know: journals and done documents of
translations, pairs of `augment`, sessions of the REPL.
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
FULL_DISK_HINT = f"free some space and run it again with {option('resume')}: nothing that was done is lost"
START_OVER_HINT = f"start over with {option('force')}"

_CHECKSUM_BYTES = 8
_BLOCK = 1 << 16  # bytes that are searched at once
_LONGEST_HEADER = 1 << 20


@dataclass(frozen=True)
class LogHeader:
    """What a log is of, and everything that the outcome of the work depends on; `origin` is plain data."""

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
    """Where in a file a line is."""

    start: int
    length: int


class AppendLog:
    """A log that is open for appending, and locked until it is closed.

    `header_is_damaged` tells that the first line was not as it was written; what follows it was.
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
        """Start a log; one that is there already belongs to unfinished work, which is a CadecError."""
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
        """Open a log again, or start it where there is none or where it was killed before it had a header.

        A CadecError if it belongs to other work, was written by another version, or if nothing in it tells
        what it belongs to. A last line that was cut short is removed.
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
        """Every line after the header, with its position and its record; None for a damaged one."""
        with read_errors(self.path), self.path.open("rb") as stream:
            stream.readline()
            yield from _scan(stream, self.header)

    def append(self, record: Any) -> LinePosition:
        """Add a record; return its position."""
        return self._write(self.header.encode(record))

    def read(self, position: LinePosition) -> Any:
        """The record at a position; None if it is no longer what was written there."""
        with read_errors(self.path), self.path.open("rb") as stream:
            return self.header.decode(_line_at(stream, position))

    def keep(self, positions: Iterable[LinePosition]) -> list[LinePosition]:
        """Drop all records but those at these positions, in their order; return where each is then."""
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
        """Replace all records by others, which may be made of these: the old ones stay until then."""
        self._replace(map(self.header.encode, records))

    def sync(self) -> None:
        """Wait until everything that was appended is on disk."""
        with write_errors(self.path, FULL_DISK_HINT):
            os.fsync(self._stream.fileno())

    def remove(self) -> None:
        """Remove the log: the work is finished."""
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
                self._truncate(0)  # killed before there was anything
                self._write(self.header.line)
                return
            whole = first.endswith(b"\n") and check_header(self.path, first, self.header)
            if not whole and all(record is None for _, record in _scan(stream, self.header)):
                raise CadecError(
                    f"{self.path} is damaged: what it belongs to can't be told",
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
        """Write the file again, with these lines after the header; it is locked without a break."""
        with atomic_file(self.path, FULL_DISK_HINT) as target:
            target.write(self.header.line)
            for line in lines:
                target.write(line)
            # The process that writes a file holds its lock, and a copy of the descriptor goes on holding it.
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
    """Close a log if what is done with it here fails: it is to stay open otherwise."""
    try:
        yield
    except BaseException:
        log.close()
        raise


def refuse_unfinished(path: Path, subject: str = "translation") -> None:
    """Raise a CadecError where there is a log: work that can be resumed, or that another process is doing."""
    ensure_unlocked(path)
    if os.path.lexists(path):
        raise _unfinished_error(path, subject)


def write_log(path: Path, header: LogHeader, records: Iterable[Any], *, private: bool = False) -> None:
    """Write a log as a whole, or not at all; nobody else can read a private one."""
    with atomic_file(path, private=private) as stream:
        stream.write(header.line)
        for record in records:
            stream.write(header.encode(record))


def read_log(path: Path, header: LogHeader, longest: int) -> Iterator[Any]:
    """The records of a log that nobody is writing, None for a damaged one; see `AppendLog.resume` for errors.

    A line of more than `longest` bytes is damaged, and never in memory as a whole.
    """
    with read_errors(path), path.open("rb") as stream:
        check_header(path, stream.readline(longest), header)
        for _, record in _scan(stream, header, longest):
            yield record


def read_header(path: Path, subject: str) -> LogHeader | None:
    """The header of a log; None if the file is no log of this subject, or its header is damaged.

    That of another version is a CadecError.
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
    """What to tell a user of damaged lines, and of what is lost with them; "" if there is nothing to tell.

    `lost` is None where it is not known.
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


def check_header(path: Path, line: bytes, header: LogHeader) -> bool:
    """Tell whether a first line is this header, undamaged; raise a CadecError if it is another one."""
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
    """A line with this content, which may have no line break in it."""
    return _checksum(content, key) + b" " + content + b"\n"


def decode_line(line: bytes, key: bytes = b"") -> bytes | None:
    """The content of a line, None if it is damaged; a carriage return that an editor added does no harm."""
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
    """The lines from where a stream stands; one that was cut short, or is too long, is not among them."""
    start = stream.tell()
    for line in iter(partial(stream.readline, longest), b""):
        if line.endswith(b"\n"):
            yield LinePosition(start, len(line)), header.decode(line)
        start += len(line)


def _end_of_lines(stream: IO[bytes]) -> int:
    """Where the last line of a file ends that has an end."""
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
    # A buffer would try again, on closing, what a full disk refused.
    return open_locked(path, "ab", buffering=0)


def _version_error(path: Path) -> CadecError:
    return CadecError(f"{path} was written by another version of cadec", START_OVER_HINT)


def _unfinished_error(path: Path, subject: str) -> CadecError:
    return CadecError(
        f"there is an unfinished {subject}: {path}",
        f"continue it with {option('resume')}, or {START_OVER_HINT}",
    )
