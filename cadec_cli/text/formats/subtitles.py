"""Subtitles: sentences that run over cues, translated whole and laid back over them.

A pause of more than seven seconds starts a new document. A sentence may run over lines and cues; a speaker's
dash or name, a change of style, a sound in brackets or a song ends it. Its translation is divided over its
cues in proportion to the source, and wrapped where the source had several lines. Times, order, number of
cues, and everything that is not text stay as they are; where a sentence comes back unchanged, so does its
markup (see `markup`).
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

from cadec_cli.text.affixes import speaker_name
from cadec_cli.text.documents import Document
from cadec_cli.text.formats.cues import Cue, detect, find_cues
from cadec_cli.text.formats.inline import Effect, carried, kept, mended, tagged_sentence_spans
from cadec_cli.text.formats.layout import Source, finish, take
from cadec_cli.text.formats.markup import TAGS, CueLine, markup_of, without, written
from cadec_cli.text.formats.wrapping import Ruler, divide, join, separator, wrap
from cadec_cli.text.sentences import Span

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
    wanted: Effect  # what the rest of the cue relies on

    def unchanged(self) -> str:
        return self.lines[0] + "".join(
            joint + line for joint, line in zip(self.joints, self.lines[1:], strict=True)
        )

    def filled(self, text: str, markup: str, ruler: Ruler) -> str:
        """Put a translation in; line breaks that are no longer needed go, and tags inside with them."""
        wrapped = wrap(text, len(self.lines), ruler=ruler)
        joints = self.joints[: len(wrapped) - 1]
        if any(TAGS[markup].search(joint) for joint in joints):
            wrapped = carried(wrapped, markup)
        shown = wrapped[0] + "".join(joint + line for joint, line in zip(joints, wrapped[1:], strict=True))
        return mended(shown, Effect.of(self.unchanged(), markup), self.wanted, markup)


@dataclass(frozen=True)
class _Share:
    """The part of a sentence that stands in one cell."""

    cell: int
    text: str
    width: int  # without tags


@dataclass(frozen=True)
class _LaidSentence:
    text: str
    tags: tuple[str, ...]
    shares: tuple[_Share, ...]


@dataclass(frozen=True)
class SubtitleLayout:
    """A subtitle file without its sentences; with `tags`, translations have tags inside them."""

    cells: tuple[_Cell, ...]
    sentences: tuple[_LaidSentence, ...]
    tail: str
    markup: str
    tags: bool = False

    def restore(self, translations: Iterable[str]) -> Iterator[str]:
        """Yield the file with translations for sentences, cue by cue, as soon as each is complete."""
        incoming = iter(translations)
        waiting: dict[int, list[str]] = {}
        changed: set[int] = set()
        complete: dict[int, str] = {}
        shown = 0
        for sentence in self.sentences:
            translation = take(incoming)
            if translation != sentence.text:
                changed.update(share.cell for share in sentence.shares)
            for share, part in zip(sentence.shares, self._parts(sentence, translation), strict=True):
                cell = self.cells[share.cell]
                texts = waiting.setdefault(share.cell, [])
                texts.append(part)
                if len(texts) == cell.sentences:
                    del waiting[share.cell]
                    complete[share.cell] = cell.gap + (
                        cell.filled(join(texts, self._ruler), self.markup, self._ruler)
                        if share.cell in changed
                        else cell.unchanged()
                    )
            # cells come in the order of the file, sentences in the order of time
            while shown in complete:
                yield complete.pop(shown)
                shown += 1
        if self.tail:
            yield self.tail
        finish(incoming)

    @property
    def _ruler(self) -> Ruler:
        return Ruler(TAGS[self.markup] if self.tags else None, escaped=self.markup == "vtt")

    def _parts(self, sentence: _LaidSentence, translation: str) -> list[str]:
        """Divide a translation over the cells of its sentence, and write it as the format wants it."""
        same = [share.text for share in sentence.shares] if translation == sentence.text else None
        weights = [share.width for share in sentence.shares]
        if not self.tags:
            parts = same or divide(" ".join(translation.split()), weights)
            return [written(part, self.markup) for part in parts]
        if same:
            return carried([kept(part, sentence.tags, self.markup) for part in same], self.markup)
        shown = kept(translation, sentence.tags, self.markup)
        return carried(divide(shown, weights, self._ruler), self.markup)


def read_subtitles(source: Source) -> tuple[tuple[Document, ...], SubtitleLayout]:
    """Read subtitles of any format into documents and the layout."""
    subtitle_format = detect(source.text, source.format)
    builder = _Builder(source.language)
    documents = []
    for cues in _documents(find_cues(source.text, subtitle_format, source.name, tags=source.tags)):
        first = len(builder.sentences)
        for run in _runs(cues):
            builder.add(run, cues)
        if len(builder.sentences) > first:
            documents.append(Document.of(sentence.text for sentence in builder.sentences[first:]))
    return tuple(documents), builder.layout(source.text, markup_of(subtitle_format), source.tags)


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
    ending, beginning = before.seen.rstrip(), after.seen.lstrip()
    if after.speaker or speaker_name(beginning) or _SOUND_START.match(beginning) or _SOUND_END.search(ending):
        return True
    # a caption in capitals, such as a place or a chapter, is no beginning of what is said next
    return ending.isupper() and len(ending) > 3 and not beginning.isupper() and beginning[0].isupper()


@dataclass(frozen=True)
class _FoundCell:
    lines: list[CueLine]
    sentences: int
    cue: Span  # where the cue is in the file

    def effect(self, text: str, markup: str, tags: bool) -> Effect:
        """Find what the rest of the cue relies on.

        Where translations have tags, a pair that reaches over the end of a cue is closed there.
        """
        start = self.lines[0].start
        effect = Effect.of(text[start : self.lines[-1].end], markup)
        if not tags or not (effect.opened or effect.closed):
            return effect
        first, last = self.cue
        alone = Effect.of(text[first:last], markup)
        elsewhere = {half.start + first for half in (*alone.opened, *alone.closed)}
        return effect.without(elsewhere, start)


@dataclass
class _Builder:
    """Collects the sentences of a file and the cells they stand in."""

    language: str
    sentences: list[_LaidSentence] = field(default_factory=list)  # cells are numbered as they are found
    cells: list[_FoundCell] = field(default_factory=list)

    def add(self, run: _Run, cues: list[Cue]) -> None:
        """Split a stretch of lines into sentences, and its lines into cells."""
        text = seen = ""
        places: list[Span] = []
        tags: list[Span] = []
        for _, line in run:
            text += separator(seen, line.seen)
            seen = line.seen
            tags += [(len(text) + start, len(text) + end) for start, end in line.tags]
            places.append((len(text), len(text) + len(line.text)))
            text += line.text
        spans = _bounded(tagged_sentence_spans(text, tags, self.language), run, places)
        shares: list[list[_Share]] = [[] for _ in spans]
        for first, last in _cell_ranges(run, places, spans):
            begin, stop = places[first][0], places[last][1]
            inside = _overlapping(spans, begin, stop)
            for number in inside:
                start, end = max(spans[number][0], begin), min(spans[number][1], stop)
                width = len(_seen(text, tags, start, end).strip())
                shares[number].append(_Share(len(self.cells), text[start:end].strip(), width))
            lines = [line for _, line in run[first : last + 1]]
            self.cells.append(_FoundCell(lines, len(inside), cues[run[first][0]].span))
        for (start, end), found in zip(spans, shares, strict=True):
            own = [text[tags[number][0] : tags[number][1]] for number in _overlapping(tags, start, end)]
            self.sentences.append(_LaidSentence(text[start:end], tuple(own), tuple(found)))

    def layout(self, text: str, markup: str, tags: bool) -> SubtitleLayout:
        """Cut the file's text at the cells found."""
        order = sorted(range(len(self.cells)), key=lambda number: self.cells[number].lines[0].start)
        rank = {number: position for position, number in enumerate(order)}
        cells = []
        done = 0
        for number in order:
            found = self.cells[number]
            joints = [text[one.end : other.start] for one, other in pairwise(found.lines)]
            bodies = tuple(text[line.start : line.end] for line in found.lines)
            gap = text[done : found.lines[0].start]
            wanted = found.effect(text, markup, tags)
            cells.append(_Cell(gap, bodies, tuple(joints), found.sentences, wanted))
            done = found.lines[-1].end
        laid = tuple(
            replace(
                sentence, shares=tuple(replace(share, cell=rank[share.cell]) for share in sentence.shares)
            )
            for sentence in self.sentences
        )
        return SubtitleLayout(tuple(cells), laid, text[done:], markup, tags)


def _seen(text: str, tags: list[Span], start: int, end: int) -> str:
    inside = (tags[number] for number in _overlapping(tags, start, end))
    return without(text[start:end], [(first - start, last - start) for first, last in inside])


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
