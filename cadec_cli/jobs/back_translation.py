"""Target-side documents to pseudo-parallel ones: every line translated back, documents parted as they were.

Line for line, as a stream: what is done is in a file beside the output, so that after a kill the lines in it
need not be made again, but for damaged ones. Which model translates, and how, is not known here.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from cadec_cli.errors import CadecError, option
from cadec_cli.fs.atomic import atomic_file, write_errors
from cadec_cli.fs.locks import ensure_unlocked, open_locked, size_of
from cadec_cli.fs.paths import is_stream, sibling_path
from cadec_cli.fs.read import read_errors, read_lines
from cadec_cli.jobs.records import damage_report, decode_line, encode_line, key_of

# Lines translated, and written, at a time.
CHUNK = 512
_EARLIER = b"# cadec back-translation "  # how format 1 begins
HINT = f"what is done so far is kept; {option('resume')} continues it"

Translate = Callable[[Sequence[str]], list[str]]


@dataclass(frozen=True)
class PairProgress:
    """The lines that unfinished work has: all before `lines`, but for those lost."""

    lines: int = 0
    lost: int = 0
    damage: str = ""  # what a user should be told, if the file has to be mended


@dataclass(frozen=True)
class PairFile:
    """The output: `translation TAB line`, blank where the input is; `origin` is all that it depends on.

    What is done so far is in checked lines, each with its number.
    """

    output: Path
    origin: Mapping[str, str]

    @property
    def part(self) -> Path:
        """What is done so far."""
        return sibling_path(self.output, ".cadec-part")

    def progress(self, *, resume: bool) -> PairProgress:
        """How much is done; unfinished work is gone on with only if that is asked for."""
        if is_stream(self.output) or not self.part.is_file():
            return PairProgress()
        ensure_unlocked(self.part)
        return self._read_progress(resume=resume)

    def _read_progress(self, *, resume: bool) -> PairProgress:
        if not resume:
            raise CadecError(
                f"{self.part} holds unfinished work",
                f"{option('resume')} continues it; delete it to begin anew",
            )
        with read_errors(self.part), self.part.open("rb") as stream:
            first = stream.readline()
            if first.endswith(b"\n"):
                header_is_whole = self._check_header(first)
                records = _Records(stream, self._key)
                for _ in records:
                    pass
        headers = (encode_line(self._header), _EARLIER)
        if not first.endswith(b"\n") and any(header.startswith(first) for header in headers):
            os.truncate(self.part, 0)  # killed before there was anything
            return PairProgress()
        if not first.endswith(b"\n") or not (header_is_whole or records.end):
            raise CadecError(f"{self.part} is damaged: what it belongs to can't be told", "delete it")
        if not (lost := records.next - records.found) and header_is_whole:
            os.truncate(self.part, records.end or len(first))
        damaged = records.damaged + (not header_is_whole)
        return PairProgress(records.next, lost, damage_report(self.part, damaged, lost, "line"))

    def repair(self, lines: Iterable[str], translate: Translate, done: PairProgress) -> None:
        """Make again what was lost of the lines so far; what is there stays until all of it is."""
        numbered = itertools.islice(enumerate(lines), done.lines)
        with (
            read_errors(self.part),
            open_locked(self.part, "rb") as stream,
            atomic_file(self.part, HINT) as target,
        ):
            stream.readline()
            records = iter(_Records(stream, self._key))
            target.write(encode_line(self._header))
            record = next(records, None)
            while chunk := dict(itertools.islice(numbered, CHUNK)):
                known = {}
                while record is not None and record[0] in chunk:
                    known[record[0]] = record[1]
                    record = next(records, None)
                missing = [line for number, line in chunk.items() if number not in known]
                made = (line.encode() for lines in pair_lines(missing, translate) for line in lines)
                for number in chunk:
                    text = known[number] if number in known else next(made)
                    target.write(encode_line(b"%d %s" % (number, text), self._key))

    def write(self, chunks: Iterable[Sequence[str]], done: int = 0) -> None:
        """Append chunks of lines after those that are done; the last one makes it whole.

        Into a pipe they go as they come.
        """
        if is_stream(self.output):
            with atomic_file(self.output) as stream:
                for lines in chunks:
                    stream.write("".join(f"{line}\n" for line in lines).encode())
                    stream.flush()
            return
        numbers = itertools.count(done)
        with write_errors(self.output, HINT), open_locked(self.part, "ab") as stream:
            if (self._read_progress(resume=True).lines if size_of(stream) else 0) != done:
                raise CadecError(f"another process of cadec was at work on {self.part}", HINT)
            if not size_of(stream):
                stream.write(encode_line(self._header))
                stream.flush()
            for lines in chunks:
                contents = (f"{next(numbers)} {line}".encode() for line in lines)
                stream.write(b"".join(encode_line(content, self._key) for content in contents))
                stream.flush()
            os.fsync(stream.fileno())
            self._is_wanted(next(numbers))  # before it may be another's

    def _is_wanted(self, count: int) -> None:
        """The lines alone, under the output's name."""
        with self.part.open("rb") as stream, atomic_file(self.output) as target:
            stream.readline()
            records = _Records(stream, self._key)
            for _, text in records:
                target.write(text + b"\n")
            if records.found != count:
                raise CadecError(
                    f"{self.part} is not as it was written", f"{option('resume')} makes the lost lines again"
                )
        self.part.unlink()

    @property
    def _header(self) -> bytes:
        digest = hashlib.sha256(json.dumps(dict(self.origin), sort_keys=True).encode())
        return f"cadec back-translation 2 {digest.hexdigest()}".encode()

    @property
    def _key(self) -> bytes:
        return key_of(self._header)

    def _check_header(self, line: bytes) -> bool:
        """Refuse what other work has left; tell whether the header is whole."""
        content = decode_line(line)
        if content == self._header:
            return True
        if content is None and not line.startswith(_EARLIER):
            return False
        raise CadecError(
            f"{self.part} was made of other files, or with other options",
            "give the same ones, or delete it to begin anew",
        )


class _Records:
    """The numbered lines of a file that are whole and in their order, from where a stream stands."""

    def __init__(self, stream: IO[bytes], key: bytes) -> None:
        self._stream, self._key = stream, key
        self.found = self.damaged = 0
        self.next = 0  # the number after the last one
        self.end = 0  # where the last one ends; 0 where there is none

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        position = self._stream.tell()
        for line in self._stream:
            position += len(line)
            content = decode_line(line, self._key)
            number, _, text = (content or b"").partition(b" ")
            if content is None or not number.isdigit() or len(number) > 18:
                self.damaged += line.endswith(b"\n")  # else it was cut short by a crash or a full disk
            elif int(number) >= self.next:  # before that, it stands twice or in another's place
                self.next = int(number) + 1
                self.found += 1
                self.end = position
                yield int(number), text


def input_lines(paths: Sequence[Path], encoding: str | None = None) -> Iterator[str]:
    """The lines of all files, a blank one after each file but the last."""
    for number, path in enumerate(paths):
        if number:
            yield ""
        yield from read_lines(path, encoding)


def pair_lines(lines: Iterable[str], translate: Translate, size: int = CHUNK) -> Iterator[list[str]]:
    """Chunks of lines with their translations before them; blank ones stay blank."""
    return pair_in_parallel(lines, lambda chunks: map(translate, chunks), size)


def pair_in_parallel(
    lines: Iterable[str],
    translate: Callable[[Iterable[list[str]]], Iterable[list[str]]],
    size: int = CHUNK,
) -> Iterator[list[str]]:
    """The same, where all chunks are translated by one who may begin some before others are done."""
    begun: deque[list[str]] = deque()

    def chunks() -> Iterator[list[str]]:
        stream = iter(lines)
        while chunk := list(itertools.islice(stream, size)):
            begun.append([" ".join(line.split()) for line in chunk])
            yield [text for text in begun[-1] if text]

    for translations in translate(chunks()):
        found = iter(translations)
        yield [f"{_one_line(next(found))}\t{text}" if text else "" for text in begun.popleft()]


def _one_line(text: str) -> str:
    return " ".join(text.split())
