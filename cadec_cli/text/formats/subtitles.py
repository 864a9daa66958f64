"""Subtitles: sentences that run over cues, translated whole and laid back over them.

A pause of more than seven seconds starts a new document. A sentence may run over lines and cues; a speaker's
dash, a change of style, a sound in brackets or a song ends it. Its translation is divided over its cues in
proportion to the source, and wrapped where the source had several lines. Times, order, number of cues, and
everything that is not text stay as they are; where a sentence comes back unchanged, so does its markup (see
`markup`).
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from cadec_cli.text.documents import Document
from cadec_cli.text.formats.cues import Cue, detect, find_cues
from cadec_cli.text.formats.layout import Source, finish, take
from cadec_cli.text.formats.markup import CueLine, dropped_halves, written
from cadec_cli.text.formats.wrapping import divide, join, separator, wrap
from cadec_cli.text.sentences import Span, sentence_spans

PAUSE_MS = 7000

# Captions made by machines have no punctuation: what would be one endless sentence is then taken cue by cue.
_MOST_CUES = 8
_MOST_CHARACTERS = 600

_SOUND_START = re.compile(r"[\[♪♫#]|\((?=[^\W\d_])(?!\W*[a-zа-яё])")
_SOUND_END = re.compile(r"[\]♪♫#]$|^\([^()]*\)$")


@dataclass(frozen=True)
class _Cell:
    """Lines of one cue that share sentences: what stands before them, themselves, what is between them."""

    gap: str
    lines: tuple[str, ...]
    joints: tuple[str, ...]
    sentences: int

    def unchanged(self) -> str:
        return self.lines[0] + "".join(
            joint + line for joint, line in zip(self.joints, self.lines[1:], strict=True)
        )

    def filled(self, text: str, markup: str) -> str:
        """Put a translation in; line breaks that are no longer needed go, and tags inside with them."""
        wrapped = wrap(text, len(self.lines))
        used = len(wrapped) - 1
        dropped = self.lines[0]
        for position, line in enumerate(self.lines[1:]):
            dropped += (self.joints[position] if position >= used else "") + line
        opened, closed = dropped_halves(dropped, markup)
        shown = written(wrapped[0], markup)
        for joint, line in zip(self.joints, wrapped[1:], strict=False):
            shown += joint + written(line, markup)
        return opened + shown + closed


@dataclass(frozen=True)
class _Share:
    """The part of a sentence that stands in one cell."""

    cell: int
    text: str


@dataclass(frozen=True)
class _LaidSentence:
    text: str
    shares: tuple[_Share, ...]


@dataclass(frozen=True)
class SubtitleLayout:
    """A subtitle file without its sentences."""

    cells: tuple[_Cell, ...]
    sentences: tuple[_LaidSentence, ...]
    tail: str
    markup: str

    def restore(self, translations: Iterable[str]) -> Iterator[str]:
        """Yield the file with translations for sentences, cue by cue, as soon as each is complete."""
        incoming = iter(translations)
        waiting: dict[int, list[str]] = {}
        changed: set[int] = set()
        complete: dict[int, str] = {}
        shown = 0
        for sentence in self.sentences:
            translation = take(incoming)
            if translation == sentence.text:
                parts = [share.text for share in sentence.shares]
            else:
                parts = divide(" ".join(translation.split()), [len(share.text) for share in sentence.shares])
                changed.update(share.cell for share in sentence.shares)
            for share, part in zip(sentence.shares, parts, strict=True):
                cell = self.cells[share.cell]
                texts = waiting.setdefault(share.cell, [])
                texts.append(part)
                if len(texts) == cell.sentences:
                    del waiting[share.cell]
                    body = (
                        cell.filled(join(texts), self.markup) if share.cell in changed else cell.unchanged()
                    )
                    complete[share.cell] = cell.gap + body
            # cells come in the order of the file, sentences in the order of time
            while shown in complete:
                yield complete.pop(shown)
                shown += 1
        if self.tail:
            yield self.tail
        finish(incoming)


def read_subtitles(source: Source) -> tuple[tuple[Document, ...], SubtitleLayout]:
    """Read subtitles of any format into documents and the layout."""
    subtitle_format = detect(source.text, source.format)
    builder = _Builder(source.language)
    documents = []
    for cues in _documents(find_cues(source.text, subtitle_format, source.name)):
        first = len(builder.sentences)
        for run in _runs(cues):
            builder.add(run)
        if len(builder.sentences) > first:
            documents.append(Document.of(sentence for sentence, _ in builder.sentences[first:]))
    markup = "ass" if subtitle_format == "ssa" else subtitle_format
    return tuple(documents), builder.layout(source.text, markup)


def _documents(cues: list[Cue]) -> Iterator[list[Cue]]:
    current: list[Cue] = []
    latest = 0
    for cue in filter(lambda cue: cue.lines, cues):
        # times that jump back belong to another part, such as a second disc put into the same file
        if current and (cue.start - latest > PAUSE_MS or current[-1].start - cue.start > PAUSE_MS):
            yield current
            current, latest = [], 0
        current.append(cue)
        latest = max(latest, cue.end)
    if current:
        yield current


_Run = list[tuple[int, CueLine]]  # (number of the cue in its document, line)


def _runs(cues: list[Cue]) -> Iterator[_Run]:
    """Group the lines of a document into stretches in which a sentence may run on."""
    run: _Run = []
    for number, cue in enumerate(cues):
        for line in cue.lines:
            if run and (_breaks(run[-1][1], line) or cues[run[-1][0]].style != cue.style):
                yield run
                run = []
            run.append((number, line))
    if run:
        yield run


def _breaks(before: CueLine, after: CueLine) -> bool:
    if after.speaker or _SOUND_START.match(after.text) or _SOUND_END.search(before.text):
        return True
    # a caption in capitals, such as a place or a chapter, is no beginning of what is said next
    return (
        before.text.isupper()
        and len(before.text) > 3
        and not after.text.isupper()
        and after.text[0].isupper()
    )


@dataclass
class _Builder:
    """Collects the sentences of a file and the cells they stand in."""

    language: str
    sentences: list[tuple[str, list[tuple[int, str]]]] = field(default_factory=list)
    cells: list[tuple[list[CueLine], int]] = field(default_factory=list)  # (lines, how many sentences)

    def add(self, run: _Run) -> None:
        """Split a stretch of lines into sentences, and its lines into cells."""
        text = ""
        places: list[Span] = []
        for _, line in run:
            text += separator(text, line.text)
            places.append((len(text), len(text) + len(line.text)))
            text += line.text
        spans = _bounded(sentence_spans(text, self.language), run, places)
        added: list[tuple[str, list[tuple[int, str]]]] = [(text[start:end], []) for start, end in spans]
        for first, last in _cell_ranges(run, places, spans):
            begin, stop = places[first][0], places[last][1]
            inside = _overlapping(spans, begin, stop)
            for number in inside:
                start, end = spans[number]
                added[number][1].append((len(self.cells), text[max(start, begin) : min(end, stop)].strip()))
            self.cells.append(([line for _, line in run[first : last + 1]], len(inside)))
        self.sentences += added

    def layout(self, text: str, markup: str) -> SubtitleLayout:
        """Cut the file's text at the cells found."""
        order = sorted(range(len(self.cells)), key=lambda number: self.cells[number][0][0].start)
        rank = {number: position for position, number in enumerate(order)}
        cells = []
        done = 0
        for number in order:
            lines, sentences = self.cells[number]
            joints = [text[one.end : other.start] for one, other in pairwise(lines)]
            bodies = tuple(text[line.start : line.end] for line in lines)
            cells.append(_Cell(text[done : lines[0].start], bodies, tuple(joints), sentences))
            done = lines[-1].end
        laid = tuple(
            _LaidSentence(sentence, tuple(_Share(rank[cell], part) for cell, part in shares))
            for sentence, shares in self.sentences
        )
        return SubtitleLayout(tuple(cells), laid, text[done:], markup)


def _bounded(spans: list[Span], run: _Run, places: list[Span]) -> list[Span]:
    """Take a sentence that never seems to end cue by cue."""
    bounded: list[Span] = []
    for start, end in spans:
        parts: dict[int, Span] = {}
        for line in _overlapping(places, start, end):
            cue, (first, last) = run[line][0], places[line]
            begin = parts[cue][0] if cue in parts else max(first, start)
            parts[cue] = (begin, min(last, end))
        endless = len(parts) > _MOST_CUES or (len(parts) > 1 and end - start > _MOST_CHARACTERS)
        bounded += parts.values() if endless else [(start, end)]
    return bounded


def _cell_ranges(run: _Run, places: list[Span], spans: list[Span]) -> Iterator[Span]:
    """Yield first and last line of each cell: within a cue, lines that a sentence holds together."""
    first = 0
    for line in range(1, len(run) + 1):
        if line < len(run) and run[line][0] == run[line - 1][0]:
            edge = places[line][0]
            around = _overlapping(spans, edge - 1, edge + 1)
            if any(spans[number][0] < edge < spans[number][1] for number in around):
                continue
        yield first, line - 1
        first = line


def _overlapping(spans: list[Span], start: int, end: int) -> range:
    """Return which of the spans, in order and apart from each other, share something with start:end."""
    first = bisect_right(spans, start, key=lambda span: span[1])
    return range(first, bisect_left(spans, end, lo=first, key=lambda span: span[0]))
