"""Pairs of `augment`: every line of target-side documents with its translation, in the layout of the input.

Line for line, as a stream. What is done is in a log beside the output, so that after a kill the lines in it
need not be made again, but for damaged ones. Which model translates, and how, is not known here.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cadec_cli.errors import CadecError, option
from cadec_cli.fs.append_log import AppendLog, LogHeader, damage_report, refuse_unfinished
from cadec_cli.fs.atomic import atomic_file
from cadec_cli.fs.locks import remove_if_unlocked
from cadec_cli.fs.paths import is_stream, sibling_path
from cadec_cli.fs.read import read_lines

# Lines translated, and written, at a time.
CHUNK = 512

Translate = Callable[[Sequence[str]], list[str]]


@dataclass(frozen=True)
class PairProgress:
    """The lines that unfinished work has: all before `lines`, but for those lost."""

    lines: int = 0
    lost: int = 0
    damage: str = ""  # what to tell the user, if the log has to be repaired


@dataclass(frozen=True)
class PairFile:
    """The output: `translation TAB line`, blank where the input is; `origin` is all that it depends on.

    Its log has a record [number, text] for every line that is done.
    """

    output: Path
    origin: Mapping[str, str]

    @property
    def part(self) -> Path:
        """The log of what is done so far."""
        return sibling_path(self.output, ".cadec-part")

    def progress(self, *, resume: bool, start_over: bool = False) -> PairProgress:
        """How much is done; unfinished work that is neither to be resumed nor removed is a CadecError."""
        if is_stream(self.output) or not self.part.is_file():
            return PairProgress()
        if start_over and not resume:
            remove_if_unlocked(self.part)
            return PairProgress()
        if not resume:
            refuse_unfinished(self.part, self._header.subject)
        with AppendLog.resume(self.part, self._header) as log:
            return _progress(log)

    def repair(self, lines: Iterable[str], translate: Translate, done: PairProgress) -> None:
        """Make the lost lines again from `lines`, the whole input; until then the log stays as it is."""
        with AppendLog.resume(self.part, self._header) as log:
            log.rewrite(_fill_gaps(log, itertools.islice(enumerate(lines), done.lines), translate))

    def write(self, chunks: Iterable[Sequence[str]], done: int = 0) -> None:
        """Append chunks of lines after the `done` ones; after the last, the output appears as a whole.

        Into a pipe they go as they come.
        """
        if is_stream(self.output):
            with atomic_file(self.output) as stream:
                for lines in chunks:
                    stream.write("".join(f"{line}\n" for line in lines).encode())
                    stream.flush()
            return
        with AppendLog.resume(self.part, self._header) as log:
            if _progress(log).lines != done:
                raise CadecError(
                    f"another process of cadec was at work on {self.part}",
                    f"run it again with {option('resume')}",
                )
            count = done
            for lines in chunks:
                for line in lines:
                    log.append([count, line])
                    count += 1
            log.sync()
            self._publish(log, count)
            log.remove()

    def _publish(self, log: AppendLog, count: int) -> None:
        """Write the lines alone, under the output's name."""
        found = 0
        with atomic_file(self.output) as target:
            for _, text in _numbered_lines(log):
                target.write(f"{text}\n".encode())
                found += 1
            if found != count:
                raise CadecError(
                    f"{log.path} is not as it was written", f"{option('resume')} makes the lost lines again"
                )

    @property
    def _header(self) -> LogHeader:
        return LogHeader("augmentation", self.origin)


def _progress(log: AppendLog) -> PairProgress:
    lines = found = 0
    damaged = int(log.header_is_damaged)
    for _, record in log.records():
        if not _is_pair(record):
            damaged += 1
        elif record[0] >= lines:
            lines, found = record[0] + 1, found + 1
    lost = lines - found
    return PairProgress(lines, lost, damage_report(log.path, damaged, lost, "line"))


def _numbered_lines(log: AppendLog) -> Iterator[tuple[int, str]]:
    """The lines of a log in ascending order; one that stands twice, or in another's place, is left out."""
    following = 0
    for _, record in log.records():
        if _is_pair(record) and record[0] >= following:
            yield record[0], record[1]
            following = record[0] + 1


def _is_pair(record: object) -> bool:
    match record:
        case [int(number), str()]:
            return number >= 0
    return False


def _fill_gaps(
    log: AppendLog, lines: Iterator[tuple[int, str]], translate: Translate
) -> Iterator[list[int | str]]:
    """The records of a log with those that are missing between them."""
    records = _numbered_lines(log)
    record = next(records, None)
    while chunk := dict(itertools.islice(lines, CHUNK)):
        known = {}
        while record is not None and record[0] in chunk:
            known[record[0]] = record[1]
            record = next(records, None)
        missing = [line for number, line in chunk.items() if number not in known]
        made = itertools.chain.from_iterable(pair_lines(missing, translate))
        for number in chunk:
            yield [number, known[number] if number in known else next(made)]


def input_lines(paths: Sequence[Path], encoding: str | None = None) -> Iterator[str]:
    """The lines of all files, a blank one after each file but the last."""
    for number, path in enumerate(paths):
        if number:
            yield ""
        yield from read_lines(path, encoding)


def pair_lines(lines: Iterable[str], translate: Translate, size: int = CHUNK) -> Iterator[list[str]]:
    """Chunks of `translation TAB line`, one at a time; blank lines stay blank."""
    return pair_in_parallel(lines, lambda chunks: map(translate, chunks), size)


def pair_in_parallel(
    lines: Iterable[str],
    translate: Callable[[Iterable[list[str]]], Iterable[list[str]]],
    size: int = CHUNK,
) -> Iterator[list[str]]:
    """The same, where `translate` gets all chunks and may begin some before others are done."""
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
