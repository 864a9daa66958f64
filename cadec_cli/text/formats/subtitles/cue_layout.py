"""The layout of a subtitle file: cells of lines that translations fill, and the exact text around them.

A cell is the lines of one cue that share sentences. A cell whose sentences are unchanged stays as it is, byte
for byte.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cadec_cli.text.formats.layout import SubtitleStyle, finish, take
from cadec_cli.text.formats.subtitles.cue_tags import (
    Effect,
    carry_open_tags,
    escape_text,
    fix_open_tags,
    keep_known_tags,
)
from cadec_cli.text.formats.subtitles.wrapping import Ruler, divide, join, wrap
from cadec_cli.text.markup import TAGS


@dataclass(frozen=True)
class Cell:
    """Lines of one cue that share sentences, and the text around them."""

    before: str  # between the cue before and this one, if this is the first cell of its cue
    gap: str  # before it in its cue
    lines: tuple[str, ...]
    joints: tuple[str, ...]  # between the lines
    after: str  # the rest of the cue, if it is the last cell of it
    last: bool
    sentences: int
    wanted: Effect  # the effect that the rest of the cue relies on
    room: int  # the most lines of a translation

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

    def restore(self, translations: Iterable[str]) -> Iterator[str]:
        """Yield the file with translations for sentences, cue by cue, as soon as each is complete."""
        before = source = shown = ""
        for cell, body in self._bodies(iter(translations)):
            before += cell.before
            source += cell.gap + cell.original_text() + cell.after
            shown += cell.gap + body + cell.after
            if cell.last:
                yield before + self._cue(source, shown)
                before = source = shown = ""
        if self.tail:
            yield self.tail

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
        return Ruler(TAGS[self.markup] if self.tags else None, escaped=self.markup == "vtt")

    def _parts(self, sentence: PlacedSentence, translation: str) -> list[str]:
        """Divide a translation over the cells of its sentence, escaped for the format."""
        same = [share.text for share in sentence.shares] if translation == sentence.text else None
        weights = [share.width for share in sentence.shares]
        if not self.tags:
            parts = same or divide(" ".join(translation.split()), weights)
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
