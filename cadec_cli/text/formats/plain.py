"""Plain text: sentences, and the exact text between them.

A line is a paragraph, split into sentences; with `lines` a line is one sentence. Lines are never joined,
because hard-wrapped lines can't be told from poems, lists and headings, and joining them would lose the line
breaks that have to be put back. A blank line ends a document. Lines between two lines of ``` are code, which
is not translated.

Lines end with LF, CRLF, or CR if the file has no LF at all. Knows nothing about files and encodings.
"""

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cadec_cli.text.documents import Document, Sentence
from cadec_cli.text.formats.layout import Line, LineCutter, Source, documents_in, finish, one_line, take
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


def read_plain(source: Source) -> tuple[tuple[Document, ...], PlainLayout]:
    """Read plain text; return its documents and the layout that restores it."""
    reader = PlainLines(source.name, source.language, source.lines)
    cutter = LineCutter(old_ends=reader.old_ends)
    cut = itertools.chain(cutter.cut(source.text), cutter.end())
    lines = [line for text, end in cut for line in reader.read(text, end)]
    lines += reader.end()
    gaps: list[str] = []
    sentences = [sentence.text for line in lines for sentence in line.sentences]
    between: list[str] = []  # since the last sentence
    for line in lines:
        for gap in line.layout.gaps[:-1]:
            gaps.append("".join((*between, gap)))
            between = []
        between.append(line.layout.gaps[-1])
    return tuple(documents_in(lines)), PlainLayout((*gaps, "".join(between)), tuple(sentences))


def _spans(line: str, language: str, whole: bool) -> list[Span]:
    if not whole:
        return sentence_spans(line, language)
    start, end = visible_span(line, 0, len(line))
    return [(start, end)] if start < end else []
