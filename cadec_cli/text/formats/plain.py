"""Plain text: sentences, and the exact text between them.

A line is a paragraph, split into sentences; with `lines` a line is one sentence. Of a file that is read
whole, lines that were wrapped at a width are joined to paragraphs, and wrapped again when they are restored
(`hard_wrap`). On a stream the lines to come are not known, so none are joined there. A blank line ends a
document. Lines between two lines of ``` are code, which is not translated.

Lines end with LF, CRLF, or CR if the file has no LF at all. Knows nothing about files and encodings.
"""

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cadec_cli.errors import option
from cadec_cli.text.documents import Document, Sentence
from cadec_cli.text.formats.hard_wrap import Paragraph, fill, find_paragraphs
from cadec_cli.text.formats.layout import (
    Layout,
    Line,
    LineCutter,
    Source,
    documents_in,
    finish,
    one_line,
    take,
)
from cadec_cli.text.sentences import Span, sentence_spans, visible_span

# Settings at the head of a Markdown page, between two lines of ---.
_HEAD, _SETTING = r"\ufeff?---[ ]*\n", r"(?:[\w-]+:.*\n|[ ]+.*\n|- .*\n|#.*\n|\n)"
_FRONT_MATTER = re.compile(_HEAD + _SETTING + r"{1,60}?---[ ]*(?:\n|$)")
_OPEN_FRONT_MATTER = re.compile(_HEAD + _SETTING + r"{0,60}")  # the next lines decide
_FENCE = re.compile(r"\s{0,3}(?:```+|~~~+)[^`]*$")


@dataclass(frozen=True)
class PlainLayout:
    """The text before each sentence of a file, and after the last one; and the sentences as they were."""

    gaps: tuple[str, ...]
    sentences: tuple[str, ...]

    def restore(self, translations: Iterable[str]) -> Iterator[str]:
        """Yield the text with translations for sentences, each as soon as its translation is there."""
        incoming = iter(translations)
        for gap, sentence in zip(self.gaps[:-1], self.sentences, strict=True):
            # The text before a sentence may be shown while the sentence is still being translated.
            if gap:
                yield gap
            translation = take(incoming)
            yield translation if translation == sentence else one_line(translation)
        if self.gaps[-1]:
            yield self.gaps[-1]
        finish(incoming)


class PlainLines:
    """Reads plain text line by line; `name` is what messages call the file."""

    old_ends = True

    def __init__(self, name: str, language: str, whole_lines: bool) -> None:
        self._language, self._whole_lines = language, whole_lines
        self._number = 0
        self._in_code = self._in_header = False
        # The first lines are held back until it is known whether they are settings.
        self._head: list[tuple[str, str]] | None = []

    def read(self, text: str, end: str) -> Iterator[Line[PlainLayout]]:
        """Read the next line; the first lines are held back while they may be settings."""
        if self._head is None:
            yield self._read(text, end)
            return
        self._head.append((text, end))
        if not _OPEN_FRONT_MATTER.fullmatch(_without_cr(self._head)):
            yield from self.end()

    def end(self) -> Iterator[Line[PlainLayout]]:
        """Read the lines that are held back."""
        head, self._head = self._head or [], None
        self._in_header = self._in_header or _FRONT_MATTER.match(_without_cr(head)) is not None
        for text, end in head:
            yield self._read(text, end)

    def _read(self, text: str, end: str) -> Line[PlainLayout]:
        first = not self._number
        self._number += 1
        fence = bool(_FENCE.match(text)) or (self._in_header and text.strip("\r\ufeff ") == "---")
        self._in_header = self._in_header and (first or not fence)
        self._in_code ^= fence
        if self._in_code or fence:
            return Line((), PlainLayout((text + end,), ()))
        spans = _spans(text, self._language, self._whole_lines)
        places = [0, *(place for span in spans for place in span), len(text)]
        *gaps, last = (text[start:stop] for start, stop in zip(places[::2], places[1::2], strict=True))
        return Line(
            tuple(
                Sentence(text[start:stop], f"line {self._number}", goes_on=number > 0)
                for number, (start, stop) in enumerate(spans)
            ),
            PlainLayout((*gaps, last + end), tuple(text[start:stop] for start, stop in spans)),
            ends_before=not spans,
        )


def _without_cr(lines: Iterable[tuple[str, str]]) -> str:
    return "".join(text + end for text, end in lines).replace("\r", "")


@dataclass(frozen=True)
class WrappedLayout:
    """A paragraph that was wrapped: its lines as they were, and how to wrap a translation."""

    original: str
    gaps: tuple[str, ...]  # around and between its sentences, when it is one line
    sentences: tuple[str, ...]
    begin: str  # before the first line
    rest: str  # before the others
    width: int
    line_end: str
    last_end: str

    def restore(self, translations: Iterable[str]) -> Iterator[str]:
        """Yield the paragraph when all of its translations are there; one without changes as it was."""
        incoming = iter(translations)
        texts = tuple(take(incoming) for _ in self.sentences)
        finish(incoming)
        if texts == self.sentences:
            yield self.original
            return
        whole = "".join(gap + one_line(text) for gap, text in zip(self.gaps, (*texts, ""), strict=True))
        lines = fill(whole, width=self.width, begin=self.begin, rest=self.rest)
        yield self.line_end.join(lines) + self.last_end


@dataclass(frozen=True)
class PartsLayout:
    """Parts of a file, one after the other."""

    parts: tuple[PlainLayout | WrappedLayout, ...]
    notes: tuple[str, ...] = ()

    def restore(self, translations: Iterable[str]) -> Iterator[str]:
        """Yield the parts with translations for their sentences, each as early as possible."""
        incoming = iter(translations)
        for part in self.parts:
            yield from part.restore(itertools.islice(incoming, len(part.sentences)))
        finish(incoming)


def read_plain(source: Source) -> tuple[tuple[Document, ...], Layout]:
    """Read plain text; return its documents and the layout that restores it."""
    reader = PlainLines(source.name, source.language, source.lines)
    cutter = LineCutter(old_ends=reader.old_ends)
    cut = [*cutter.cut(source.text), *cutter.end()]
    lines = [line for text, end in cut for line in reader.read(text, end)]
    lines += reader.end()
    if source.lines:
        return tuple(documents_in(lines)), _joined_layout(line.layout for line in lines)
    paragraphs = find_paragraphs(
        [text if line.sentences else None for (text, _), line in zip(cut, lines, strict=True)]
    )
    notes = (_remark(paragraphs),) if paragraphs else ()
    whole: list[Line[PlainLayout | WrappedLayout]] = []
    done = 0
    for paragraph in paragraphs:
        whole += lines[done : paragraph.first]
        done = paragraph.last + 1
        whole.append(_wrapped_line(paragraph, cut[paragraph.first : done], source.language))
    whole += lines[done:]
    parts: list[PlainLayout | WrappedLayout] = []
    waiting: list[PlainLayout] = []
    for line in whole:
        if isinstance(line.layout, PlainLayout):
            waiting.append(line.layout)
            continue
        parts += [_joined_layout(waiting), line.layout]
        waiting = []
    return tuple(documents_in(whole)), PartsLayout((*parts, _joined_layout(waiting)), notes)


def _remark(paragraphs: list[Paragraph]) -> str:
    """Say which lines were joined."""
    lines = sum(paragraph.last - paragraph.first + 1 for paragraph in paragraphs)
    were = "1 paragraph" if len(paragraphs) == 1 else f"{len(paragraphs):,} paragraphs"
    return (
        f"{lines:,} lines are taken for {were}, wrapped at about {paragraphs[0].width} characters; "
        f"{option('lines')} takes every line for a sentence"
    )


def _wrapped_line(paragraph: Paragraph, cut: list[tuple[str, str]], language: str) -> Line[WrappedLayout]:
    """Return a paragraph of several lines as one line."""
    text = paragraph.text
    spans = sentence_spans(text, language)
    places = [0, *(place for span in spans for place in span), len(text)]
    gaps = tuple(text[start:stop] for start, stop in zip(places[::2], places[1::2], strict=True))
    sentences = tuple(
        Sentence(text[start:stop], f"line {paragraph.line_at(start) + 1}") for start, stop in spans
    )
    layout = WrappedLayout(
        original="".join(line + end for line, end in cut),
        gaps=gaps,
        sentences=tuple(sentence.text for sentence in sentences),
        begin=paragraph.begin,
        rest=paragraph.rest,
        width=paragraph.width,
        line_end=_whole_end(*cut[0]),
        last_end=_whole_end(*cut[-1]),
    )
    return Line(sentences, layout)


def _whole_end(text: str, end: str) -> str:
    """Return the end of a line with its CR, if it has one."""
    return "\r" + end if text.endswith("\r") else end


def _joined_layout(layouts: Iterable[PlainLayout]) -> PlainLayout:
    """Join the layouts of lines that follow each other."""
    gaps: list[str] = []
    sentences: list[str] = []
    between: list[str] = []  # since the last sentence
    for layout in layouts:
        sentences += layout.sentences
        for gap in layout.gaps[:-1]:
            gaps.append("".join((*between, gap)))
            between = []
        between.append(layout.gaps[-1])
    return PlainLayout((*gaps, "".join(between)), tuple(sentences))


def _spans(line: str, language: str, whole: bool) -> list[Span]:
    if not whole:
        return sentence_spans(line, language)
    start, end = visible_span(line, 0, len(line))
    return [(start, end)] if start < end else []
