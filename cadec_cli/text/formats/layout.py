"""Text that is read line by line: what a line has to say, and where documents begin and end.

A file and a pipe are read by the same readers; all they remember is what the lines to come depend on. Knows
no format.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from cadec_cli.text.documents import Document, Sentence
from cadec_cli.text.formats.subtitles.wrapping import LINE_WIDTH

# What every format's reader is given and gives back: documents, and the layout that they came out of.


# Those of str.splitlines: other programs, and people, see a line end there.
_BREAKS = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]\s*")


@dataclass(frozen=True)
class SubtitleStyle:
    """How translated subtitles are to look."""

    max_chars: int = LINE_WIDTH  # of a line, where words permit
    max_lines: int | None = None  # of a cue; None: as many as it has
    bilingual: str | None = None  # where the source stands: above or below the translation
    language: str | None = None  # of the translation, for headers that name one


@dataclass(frozen=True)
class Source:
    """The text of a file, and how to read it."""

    text: str
    name: str  # of the file, for messages
    format: str  # one of READERS, as the file's name or the user says; the content may know better
    language: str
    lines: bool = False  # a line is a sentence: only plain text has lines that need splitting
    tags: bool = False  # tags inside a line of subtitles are part of its sentence, and translations have them
    screen: SubtitleStyle = SubtitleStyle()


class Layout(Protocol):
    """All of a file but its sentences."""

    def restore(self, translations: Iterable[str]) -> Iterator[str]:
        """Yield the file's text with the translations of all sentences, in order, as early as they allow."""
        ...


Reader = Callable[[Source], tuple[tuple[Document, ...], Layout]]


def one_line(translation: str) -> str:
    """Replace whatever ends a line for anybody, which would give the output more lines than the input has."""
    return translation if translation.isprintable() else _BREAKS.sub(" ", translation)


def take(translations: Iterator[str]) -> str:
    """Return the next translation; that there is none is a mistake of the caller, not of the user."""
    for translation in translations:
        return translation
    raise ValueError("fewer translations than sentences")


def finish(translations: Iterator[str]) -> None:
    """Make sure that every translation was used."""
    for _ in translations:
        raise ValueError("more translations than sentences")


LineLayout = TypeVar("LineLayout", bound=Layout, covariant=True)


@dataclass(frozen=True)
class Line(Generic[LineLayout]):
    """A line as read: its sentences, all else of it, and whether a document ends before it or after it."""

    sentences: tuple[Sentence, ...]
    layout: LineLayout
    ends_before: bool = False
    ends_after: bool = False


class LineReader(Protocol):
    """Reads the lines of one file, in order."""

    def read(self, text: str, end: str) -> Iterable[Line[Layout]]:
        """Read the next line, without and with its end; some may have to wait for lines to come."""
        ...

    def end(self) -> Iterable[Line[Layout]]:
        """Read what has been waiting: there are no more lines."""
        ...


class LineCutter:
    """Cuts text into lines, wherever its pieces begin and end; the end of a line is LF.

    With `old_ends` it is CR if there is no LF in all of the text.
    """

    def __init__(self, *, old_ends: bool = False) -> None:
        self._old_ends = old_ends
        self._open: list[str] = []

    def cut(self, text: str) -> Iterator[tuple[str, str]]:
        """The lines that are complete with another piece of text, each with its end."""
        if "\n" not in text:
            self._open.append(text)
            return
        self._old_ends = False
        *complete, rest = "".join((*self._open, text)).split("\n")
        self._open = [rest]
        for line in complete:
            yield line, "\n"

    def end(self) -> Iterator[tuple[str, str]]:
        """What is left when there is no more text."""
        rest = "".join(self._open)
        self._open = []
        *complete, last = rest.split("\r") if self._old_ends else [rest]
        for line in complete:
            yield line, "\r"
        if last:
            yield last, ""


def documents_in(lines: Iterable[Line[Layout]]) -> Iterator[Document]:
    """The documents that lines are made of."""
    current: list[Sentence] = []
    for line in lines:
        if line.ends_before and current:
            yield Document(tuple(current))
            current = []
        current += line.sentences
        if line.ends_after and current:
            yield Document(tuple(current))
            current = []
    if current:
        yield Document(tuple(current))
