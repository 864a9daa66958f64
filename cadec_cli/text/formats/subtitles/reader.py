"""Subtitles: sentences that run over cues, translated whole and laid back over them.

A pause of more than seven seconds starts a new document. A sentence may run over lines and cues; a speaker's
dash or name, a change of style, a sound in brackets or a song ends it. Its translation is divided over its
cues in proportion to the source, and wrapped where the source had several lines. Times, order and number of
cues, and everything that is not text stay as they are. A sentence that is not changed keeps its tags exactly.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise

from cadec_cli.text.documents import Document, Sentence
from cadec_cli.text.formats.layout import (
    AUTO_DASH,
    DROP,
    KEEP,
    MAX_ROOM,
    USUAL_LINES,
    CueLimits,
    ShownCue,
    Source,
    SubtitleStyle,
    finish,
    take,
)
from cadec_cli.text.formats.subtitles.cue_tags import (
    ESCAPED,
    CueLine,
    Effect,
    carry_open_tags,
    dash_of,
    escape_text,
    fix_open_tags,
    keep_known_tags,
    markup_of,
    tagged_sentence_spans,
    with_dash,
)
from cadec_cli.text.formats.subtitles.cues import Cue, clock, cue_width, find_cues, shown_lines
from cadec_cli.text.formats.subtitles.sdh import drop_sdh
from cadec_cli.text.formats.subtitles.ttml import ttml_line_break, ttml_with_language
from cadec_cli.text.formats.subtitles.wrapping import Ruler, divide, join, separator, wrap
from cadec_cli.text.markup import TAGS, Tag, without_tags
from cadec_cli.text.protected.core import name_in, speaker_name
from cadec_cli.text.sentences import Span, stays_open


@dataclass(frozen=True)
class Cell:
    """Lines of one cue that share sentences, and the text around them."""

    before: str  # between the cue before and this one, if this is the first cell of its cue
    gap: str  # before it in its cue
    shown_gap: str  # the same with the dash that is wanted
    lines: tuple[str, ...]
    joints: tuple[str, ...]  # between the lines
    after: str  # the rest of the cue, if it is the last cell of it
    last: bool
    sentences: int
    wanted: Effect  # the effect that the rest of the cue relies on
    room: int  # the most lines of a translation
    cue: Cue

    def original_text(self) -> str:
        """The lines as they were."""
        return self.lines[0] + "".join(
            joint + line for joint, line in zip(self.joints, self.lines[1:], strict=True)
        )


@dataclass(frozen=True)
class CueShare:
    """The part of a sentence that is in one cell."""

    cell: int
    text: str
    width: int  # without tags


@dataclass(frozen=True)
class PlacedSentence:
    """A sentence, its tags, and the cells that it is in."""

    text: str
    tags: tuple[str, ...]
    shares: tuple[CueShare, ...]


@dataclass(frozen=True)
class SubtitleLayout:
    """A subtitle file without its sentences; with `tags`, translations have tags inside them."""

    cells: tuple[Cell, ...]
    sentences: tuple[PlacedSentence, ...]
    tail: str
    markup: str
    line_break: str
    tags: bool
    screen: SubtitleStyle
    language: str  # of the translations

    def restore(self, translations: Iterable[str]) -> Iterator[str]:
        """Yield the file with translations for sentences, cue by cue, as soon as each is complete."""
        for _, before, text in self._cues(translations):
            yield before + text
        if self.tail:
            yield self.tail

    def shown_cues(self, translations: Iterable[str]) -> Iterator[ShownCue]:
        """Yield the cues with translations for sentences as they are on the screen, each when complete."""
        for cue, _, text in self._cues(translations):
            yield ShownCue(cue.number, cue.start, cue.end, shown_lines(text, self.markup))

    def cues_of(self, sentence: int) -> frozenset[int]:
        """Return the numbers of the cues that a sentence is in."""
        return frozenset(self.cells[share.cell].cue.number for share in self.sentences[sentence].shares)

    @property
    def limits(self) -> CueLimits:
        """The limits of its cues."""
        return self.screen.limits

    def _cues(self, translations: Iterable[str]) -> Iterator[tuple[Cue, str, str]]:
        """Yield each cue with what is before it in the file, and its text."""
        before = source = shown = ""
        for cell, body in self._bodies(iter(translations)):
            before += cell.before
            source += cell.gap + cell.original_text() + cell.after
            shown += cell.shown_gap + body + cell.after
            if cell.last:
                yield cell.cue, before, self._cue(source, shown)
                before = source = shown = ""

    def _bodies(self, incoming: Iterator[str]) -> Iterator[tuple[Cell, str]]:
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
                    filled = share.cell in changed
                    complete[share.cell] = self._fill_cell(cell, texts) if filled else cell.original_text()
            # Cells are in the order of the file, sentences in the order of time.
            while shown in complete:
                yield self.cells[shown], complete.pop(shown)
                shown += 1
        finish(incoming)

    @property
    def _ruler(self) -> Ruler:
        hidden = TAGS[self.markup] if self.tags else None
        return Ruler(hidden, escaped=self.markup in ESCAPED, language=self.language)

    def _parts(self, sentence: PlacedSentence, translation: str) -> list[str]:
        """Divide a translation over the cells of its sentence, escaped for the format."""
        same = [share.text for share in sentence.shares] if translation == sentence.text else None
        weights = [share.width for share in sentence.shares]
        if not self.tags:
            parts = same or divide(" ".join(translation.split()), weights, Ruler(language=self.language))
            return [escape_text(part, self.markup) for part in parts]
        if same:
            return carry_open_tags(
                [keep_known_tags(part, sentence.tags, self.markup) for part in same], self.markup
            )
        shown = keep_known_tags(translation, sentence.tags, self.markup)
        return carry_open_tags(divide(shown, weights, self._ruler), self.markup)

    def _fill_cell(self, cell: Cell, texts: list[str]) -> str:
        """Fill a cell with translations; line breaks that are not needed are dropped, with tags in them."""
        ruler = self._ruler
        wrapped = wrap(join(texts, ruler), cell.room, self.screen.max_chars, ruler)
        more = max(0, len(wrapped) - len(cell.lines))
        joints = [*cell.joints[: len(wrapped) - 1], *[self.line_break] * more]
        if any(TAGS[self.markup].search(joint) for joint in joints):
            wrapped = carry_open_tags(wrapped, self.markup)
        shown = wrapped[0] + "".join(joint + line for joint, line in zip(joints, wrapped[1:], strict=True))
        return fix_open_tags(shown, Effect.of(cell.original_text(), self.markup), cell.wanted, self.markup)

    def _cue(self, source: str, shown: str) -> str:
        """Return a cue's text, with that of its source if both are wanted and differ."""
        where = self.screen.bilingual
        if where is None or shown == source:
            return shown
        if not TAGS[self.markup].sub("", shown).strip():
            return source
        above, below = (source, shown) if where == "above" else (shown, source)
        # Overrides of SubStation hold until the end of the cue.
        reset = r"{\r}" if self.markup == "ass" and "{" in above else ""
        return above + self.line_break + reset + below


_BLANK_LINE = re.compile(r"\r\n\r\n|\n\n|\r\r")
_LANGUAGE = re.compile(r"(?<=[\r\n])(Language[ \t]*:[ \t]*)[\w-]+")


def with_language(text: str, language: str) -> str:
    """Name another language in a WebVTT header, if it names one; nothing else is changed."""
    blank = _BLANK_LINE.search(text)
    header = text[: blank.start()] if blank else text
    if not header.lstrip("\ufeff").startswith("WEBVTT"):
        return text
    return _LANGUAGE.sub(lambda found: found[1] + language, header) + text[len(header) :]


def _renamed(subtitle_format: str) -> Callable[[str, str], str]:
    """Return the function that names another language in the head of a file."""
    return ttml_with_language if subtitle_format == "ttml" else with_language


PAUSE_MS = 7000

# Automatic captions have no punctuation. A sentence that would be longer than this is taken cue by cue.
_MAX_CUES = 8
_MAX_CHARACTERS = 600

_ENDED = re.compile(r"[.!?…][\"'”’»)\]]*$")
_BEGUN = re.compile(r"[\"'“‘«(\[¿¡—–-]*\s*[^\W\d_a-zа-яё]|[(\[]")
_SOUND_START = re.compile(r"[\[♪♫#]|\((?=[^\W\d_])(?!\W*[a-zа-яё])")
_SOUND_END = re.compile(r"[\]♪♫#]$|^\([^()]*\)$")


def read_subtitles(source: Source) -> tuple[tuple[Document, ...], SubtitleLayout]:
    """Read subtitles of any format; return their documents and the layout that restores them."""
    if source.screen.sdh == DROP:
        source = replace(source, content=drop_sdh(source.text, source.format, source.name))
    builder = _Builder(source.language)
    ranges = []
    for cues in _documents(find_cues(source.text, source.format, source.name, tags=source.tags)):
        first = len(builder.sentences)
        speaker, cue = "", -1
        for run in _runs(cues, source.language):
            number, line = run[0]
            # who begins to speak goes on until the end of the cue, or until a dash
            if number != cue or line.speaker:
                speaker = "" if line.speaker else cues[number].speaker
            speaker = name_in(line.visible_text) or speaker
            builder.add(run, cues, speaker)
            speaker, cue = speaker if run[-1][0] == number else cues[run[-1][0]].speaker, run[-1][0]
        if len(builder.sentences) > first:
            ranges.append((first, len(builder.sentences)))
    rooms = builder.rooms(source)
    sentences = [
        Sentence(one.text, clock(start), room=room, speaker=speaker)
        for one, start, speaker, room in zip(
            builder.sentences, builder.starts, builder.speakers, rooms, strict=True
        )
    ]
    documents = tuple(Document(tuple(sentences[first:last]), speakers=True) for first, last in ranges)
    return documents, builder.layout(source, markup_of(source.format))


def _documents(cues: list[Cue]) -> Iterator[list[Cue]]:
    current: list[Cue] = []
    latest = 0
    for cue in filter(lambda cue: cue.lines, cues):
        # Times that jump back begin another part, such as a second disc in the same file.
        if current and (cue.start - latest > PAUSE_MS or current[-1].start - cue.start > PAUSE_MS):
            yield current
            current, latest = [], 0
        current.append(cue)
        latest = max(latest, cue.end)
    if current:
        yield current


_Run = list[tuple[int, CueLine]]  # (number of the cue in its document, line)


def _runs(cues: list[Cue], language: str) -> Iterator[_Run]:
    """Group the lines of a document into stretches in which a sentence may run on."""
    run: _Run = []
    for number, cue in enumerate(cues):
        for line in cue.lines:
            if run and (_breaks(run[-1][1], line, language) or cues[run[-1][0]].style != cue.style):
                yield run
                run = []
            run.append((number, line))
    if run:
        yield run


def _breaks(before: CueLine, after: CueLine, language: str) -> bool:
    ending, beginning = before.visible_text.rstrip(), after.visible_text.lstrip()
    # A sentence ends with its line and another begins: rules for running text may see an abbreviation here.
    if _ENDED.search(ending) and _BEGUN.match(beginning) and not stays_open(ending, language):
        return True
    if after.speaker or speaker_name(beginning) or _SOUND_START.match(beginning) or _SOUND_END.search(ending):
        return True
    # A caption in capitals, such as a place or a chapter, is not the beginning of speech.
    return ending.isupper() and len(ending) > 3 and not beginning.isupper() and beginning[0].isupper()


@dataclass(frozen=True)
class _CellDraft:
    lines: list[CueLine]
    sentences: int
    cue: Cue

    @property
    def width(self) -> int:
        """The characters of its lines."""
        return sum(len(line.visible_text) for line in self.lines)

    def effect(self, text: str, markup: str, tags: bool) -> Effect:
        """Find the effect of its tags that the rest of the cue relies on.

        If translations have tags, a pair that reaches over the end of a cue is closed there.
        """
        start = self.lines[0].start
        effect = Effect.of(text[start : self.lines[-1].end], markup)
        if not tags or not (effect.opened or effect.closed):
            return effect
        first, last = self.cue.span
        alone = Effect.of(text[first:last], markup)
        elsewhere = {half.tag.start + first for half in (*alone.opened, *alone.closed)}
        return effect.without(elsewhere, start)


@dataclass
class _Builder:
    """Collects the sentences of a file and the cells they are in."""

    language: str
    sentences: list[PlacedSentence] = field(default_factory=list)  # cells are numbered as they are found
    starts: list[int] = field(default_factory=list)  # of each sentence, in milliseconds
    speakers: list[str] = field(default_factory=list)  # of each sentence; empty where that is not known
    cells: list[_CellDraft] = field(default_factory=list)

    def add(self, run: _Run, cues: list[Cue], speaker: str) -> None:
        """Split a stretch of lines into sentences, and its lines into cells."""
        text = seen = ""
        places: list[Span] = []
        tags: list[Tag] = []
        for _, line in run:
            text += separator(seen, line.visible_text)
            seen = line.visible_text
            tags += [replace(tag, start=len(text) + tag.start) for tag in line.tags]
            places.append((len(text), len(text) + len(line.text)))
            text += line.text
        spans = _limit_spans(tagged_sentence_spans(text, tags, self.language), run, places)
        shares: list[list[CueShare]] = [[] for _ in spans]
        for first, last in _cell_ranges(run, places, spans):
            begin, stop = places[first][0], places[last][1]
            inside = _overlapping(spans, begin, stop)
            for number in inside:
                start, end = max(spans[number][0], begin), min(spans[number][1], stop)
                inner = [replace(tag, start=tag.start - start) for tag in _inside(tags, start, end)]
                width = len(without_tags(text[start:end], inner).strip())
                shares[number].append(CueShare(len(self.cells), text[start:end].strip(), width))
            lines = [line for _, line in run[first : last + 1]]
            self.cells.append(_CellDraft(lines, len(inside), cues[run[first][0]]))
        for (start, end), found in zip(spans, shares, strict=True):
            own = tuple(tag.text for tag in _inside(tags, start, end))
            self.sentences.append(PlacedSentence(text[start:end], own, tuple(found)))
            self.speakers.append(speaker)
            self.starts.append(cues[run[_overlapping(places, start, end)[0]][0]].start)

    def rooms(self, source: Source) -> list[float | None]:
        """Return the room of each sentence, if that is asked for: its shares of all its cues' together.

        A cue has room for what its lines hold, and for what can be read in its time.
        """
        screen = source.screen
        if not screen.fit:
            return [None] * len(self.sentences)
        widths = [cell.sentences - 1 for cell in self.cells]  # the spaces between sentences
        for share in (share for sentence in self.sentences for share in sentence.shares):
            widths[share.cell] += share.width
        of_cells: dict[int, float] = {}  # for each character of the source
        by_cue: dict[Span, list[int]] = {}
        for number, cell in enumerate(self.cells):
            by_cue.setdefault(cell.cue.span, []).append(number)
        for numbers in by_cue.values():
            cells = [self.cells[number] for number in numbers]
            cue, width = cells[0].cue, sum(widths[number] for number in numbers)
            seconds = max(0, cue.end - cue.start) / 1000
            shown = cue_width(source.text, cue, markup_of(source.format))
            beside = shown - sum(cell.width for cell in cells)  # dashes and the like
            in_time = max(0.0, screen.max_cps * seconds - beside) if screen.max_cps else float("inf")
            for number, lines in zip(numbers, _rooms(cells, screen.max_lines), strict=True):
                in_lines = lines * min(screen.max_chars, MAX_ROOM) / max(1, widths[number])
                of_cells[number] = min(in_lines, in_time / max(1, width), MAX_ROOM)
        return [
            min(MAX_ROOM, sum(of_cells[share.cell] * share.width for share in sentence.shares))
            for sentence in self.sentences
        ]

    def layout(self, source: Source, markup: str) -> SubtitleLayout:
        """Cut the file's text at the cells found."""
        text, screen = source.text, source.screen
        language = screen.language or source.language
        dash = "" if screen.dash == KEEP else screen.dash
        dash = dash_of(language) if dash == AUTO_DASH else dash
        order = sorted(range(len(self.cells)), key=lambda number: self.cells[number].lines[0].start)
        rank = {number: position for position, number in enumerate(order)}
        cells: list[Cell] = []
        done = 0
        for (first, last), numbers in groupby(order, key=lambda number: self.cells[number].cue.span):
            found = [self.cells[number] for number in numbers]
            before, done = text[done:first], first
            for position, (one, room) in enumerate(zip(found, _rooms(found, screen.max_lines), strict=True)):
                start, end = one.lines[0].start, one.lines[-1].end
                ends_cue = position == len(found) - 1
                gap, speaks = text[done:start], one.lines[0].speaker
                cells.append(
                    Cell(
                        before=before if position == 0 else "",
                        gap=gap,
                        shown_gap=with_dash(gap, dash, markup) if dash and speaks else gap,
                        lines=tuple(text[line.start : line.end] for line in one.lines),
                        joints=tuple(text[line.end : other.start] for line, other in pairwise(one.lines)),
                        after=text[end:last] if ends_cue else "",
                        last=ends_cue,
                        sentences=one.sentences,
                        wanted=one.effect(text, markup, source.tags),
                        room=room,
                        cue=one.cue,
                    )
                )
                done = last if ends_cue else end
        tail = text[done:]
        if screen.language and cells:
            renamed = _renamed(source.format)
            cells[0] = replace(cells[0], before=renamed(cells[0].before, screen.language))
        elif screen.language:
            tail = _renamed(source.format)(tail, screen.language)
        laid = tuple(
            replace(
                sentence, shares=tuple(replace(share, cell=rank[share.cell]) for share in sentence.shares)
            )
            for sentence in self.sentences
        )
        line_break = _line_break(text, markup)
        return SubtitleLayout(tuple(cells), laid, tail, markup, line_break, source.tags, screen, language)


def _rooms(cells: list[_CellDraft], most: int | None) -> list[int]:
    """Return how many lines each cell of a cue may take: `most` in all; None is as many as usual, or as now.

    A positioned line gets no second one, which would move it.
    """
    if most is None:
        own = sum(len(cell.lines) for cell in cells)
        most = own if cells[0].cue.positioned else max(USUAL_LINES, own)
    rooms = [1] * len(cells)
    longest = max(cells, key=lambda cell: sum(len(line.visible_text) for line in cell.lines))
    for _ in range(most - len(cells)):
        wanting = [number for number, cell in enumerate(cells) if rooms[number] < len(cell.lines)]
        rooms[wanting[0] if wanting else cells.index(longest)] += 1
    return rooms


_LINE_BREAKS = {"ass": r"\N", "sub": "|"}


def _line_break(text: str, markup: str) -> str:
    if markup == "ttml":
        return ttml_line_break(text)
    if markup in _LINE_BREAKS:
        return _LINE_BREAKS[markup]
    found = re.search(r"\r\n|\n|\r", text)
    return found[0] if found else "\n"


def _inside(tags: list[Tag], start: int, end: int) -> list[Tag]:
    """Return the tags in a stretch of text."""
    first = bisect_right(tags, start, key=lambda tag: tag.end)
    return tags[first : bisect_left(tags, end, lo=first, key=lambda tag: tag.start)]


def _limit_spans(spans: list[Span], run: _Run, places: list[Span]) -> list[Span]:
    """Split sentences that are too long into one per cue."""
    bounded: list[Span] = []
    for start, end in spans:
        parts: dict[int, Span] = {}
        for line in _overlapping(places, start, end):
            cue, (first, last) = run[line][0], places[line]
            begin = parts[cue][0] if cue in parts else max(first, start)
            parts[cue] = (begin, min(last, end))
        endless = len(parts) > _MAX_CUES or (len(parts) > 1 and end - start > _MAX_CHARACTERS)
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
    """Return the indices of the spans that overlap start:end; spans are in order and do not overlap."""
    first = bisect_right(spans, start, key=lambda span: span[1])
    return range(first, bisect_left(spans, end, lo=first, key=lambda span: span[0]))
