"""Sentence pairs for `augment`: each line of target-side documents with its translation, line by line.

A bundle's S-NMT translates the lines as a stream: into the other language, or there and back again. Finished
lines are logged beside the output, so that a resumed run repeats only damaged ones.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cadec_cli.engines.protocols import Sampling
from cadec_cli.errors import CadecError, option
from cadec_cli.fs.append_log import AppendLog, LogHeader, damage_report, refuse_unfinished
from cadec_cli.fs.atomic import atomic_file
from cadec_cli.fs.locks import remove_if_unlocked
from cadec_cli.fs.paths import is_stream, sibling_path
from cadec_cli.fs.read import read_lines
from cadec_cli.jobs.model_request import ModelRequest

if TYPE_CHECKING:
    from cadec_cli.bundle.load import LoadedModels
    from cadec_cli.engines.protocols import TranslationModel

# How many lines are translated and written at a time.
CHUNK = 512

Translate = Callable[[Sequence[str]], list[str]]


@dataclass(frozen=True)
class PairProgress:
    """The progress of unfinished work: all lines before `lines` are done, except `lost` of them."""

    lines: int = 0
    lost: int = 0
    damage: str = ""  # what to tell the user, if the log has to be repaired


@dataclass(frozen=True)
class PairFile:
    """The output: `translation TAB line`, or a blank line for a blank one.

    `origin` is everything that it depends on. The log has a record [number, text] per finished line.
    """

    output: Path
    origin: Mapping[str, str]

    @property
    def part(self) -> Path:
        """The log of the finished lines."""
        return sibling_path(self.output, ".cadec-part")

    def progress(self, *, resume: bool, start_over: bool = False) -> PairProgress:
        """How much is done; a CadecError if there is unfinished work and neither flag is set."""
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
        """Translate the lost lines again; `lines` is the whole input. The log is replaced at the end."""
        with AppendLog.resume(self.part, self._header) as log:
            log.rewrite(_fill_gaps(log, itertools.islice(enumerate(lines), done.lines), translate))

    def write(self, chunks: Iterable[Sequence[str]], done: int = 0) -> None:
        """Append chunks of lines after the first `done`; the output appears when all are written.

        A pipe gets each chunk at once.
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
                    f"another cadec process has changed {self.part}",
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
                    f"{log.path} was changed", f"{option('resume')} translates the lost lines again"
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
    """The lines of a log in ascending order; repeated and misplaced ones are left out."""
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
    """The records of a log, with the missing ones translated and put in their places."""
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
    """Like `pair_lines`, but `translate` gets all chunks and may work on several at once."""
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


@dataclass(frozen=True)
class LineTranslation:
    """How lines are translated: into the other language, or there and back again."""

    round_trip: bool
    sample: bool
    beam: int
    seed: int
    temperature: float

    def by(self, models: LoadedModels, done: int = 0) -> Translate:
        """Return the function that translates the lines after the first `done`.

        A round trip needs a backward model; without one it is a CadecError.
        """
        if not self.round_trip:
            return self._translate_with(models.translation, done)
        reverse = models.backward
        if reverse is None:
            raise CadecError(
                f"{models.bundle.directory} has no backward model, which the round trip needs",
                "add a bundle of the other direction with `cadec convert BUNDLE --back REVERSE`",
            )
        there, back = self._translate_with(reverse, done), _sampling(models.translation).best(self.beam)
        return lambda texts: back(there(texts))

    def _translate_with(self, model: TranslationModel, done: int) -> Translate:
        able = _sampling(model)
        return able.sampler(self.seed + done, self.temperature) if self.sample else able.best(self.beam)


def _sampling(model: TranslationModel) -> Sampling:
    if not isinstance(model, Sampling):
        raise CadecError("the engine of this translation model can't make training data")
    return model


def start_line_worker(request: ModelRequest, how: LineTranslation) -> Translate:
    """Load the models in a worker process; return the function that translates lines."""
    return how.by(request.open())
