"""Plain text: sentences, and exactly what stands between them.

A line is a paragraph, split into sentences; with `lines` a line is one sentence. Lines are never joined,
because hard-wrapped lines can't be told from poems, lists and headings, and joining them would lose the line
breaks that have to be put back. A blank line ends a document.

Lines end with LF, CRLF, or CR where the file has no LF at all. Knows nothing of files and encodings.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cadec_cli.text.documents import Document
from cadec_cli.text.sentences import Span, sentence_spans, visible_span


@dataclass(frozen=True)
class PlainLayout:
    """The text before each sentence of a file, and after the last one."""

    gaps: tuple[str, ...]

    def restore(self, translations: Iterable[str]) -> Iterator[str]:
        """Yield the text with translations for sentences, as soon as each translation is there."""
        incoming = iter(translations)
        for gap in self.gaps[:-1]:
            # what stands before a sentence may be shown while the sentence is still being translated
            if gap:
                yield gap
            yield one_line(take(incoming))
        if self.gaps[-1]:
            yield self.gaps[-1]
        finish(incoming)


def read_plain(text: str, *, language: str, lines: bool = False) -> tuple[tuple[Document, ...], PlainLayout]:
    """Read plain text into documents and the layout that puts it together again."""
    end_of_line = "\n" if "\n" in text else "\r"
    documents: list[Document] = []
    current: list[str] = []
    gaps: list[str] = []
    done = 0
    start = 0
    for line in text.split(end_of_line):
        spans = _spans(line, language, lines)
        if not spans and current:
            documents.append(Document.of(current))
            current = []
        for first, last in spans:
            gaps.append(text[done : start + first])
            done = start + last
            current.append(line[first:last])
        start += len(line) + 1
    if current:
        documents.append(Document.of(current))
    return tuple(documents), PlainLayout((*gaps, text[done:]))


def _spans(line: str, language: str, whole: bool) -> list[Span]:
    if not whole:
        return sentence_spans(line, language)
    start, end = visible_span(line, 0, len(line))
    return [(start, end)] if start < end else []


def one_line(translation: str) -> str:
    """Replace line breaks, which would give the output more lines than the input has."""
    return re.sub(r"\r*\n\s*", " ", translation) if "\n" in translation else translation


def take(translations: Iterator[str]) -> str:
    """Return the next translation; that there is none is a mistake of the caller, not of the user."""
    for translation in translations:
        return translation
    raise ValueError("fewer translations than sentences")


def finish(translations: Iterator[str]) -> None:
    """Make sure that every translation was used."""
    for _ in translations:
        raise ValueError("more translations than sentences")
