"""The arguments and results of a format's reader, and the parts that line readers share. Knows no format.

A reader gets a `Source` and returns documents with a `Layout`: everything in the file but its sentences.
Formats that are read line by line have one `LineReader` for files and pipes; it keeps only the state that
later lines depend on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, runtime_checkable

from cadec_cli.text.documents import Document, Sentence

LINE_WIDTH = 42  # characters per line of subtitles that guidelines recommend
USUAL_LINES = 2  # lines per cue that they allow
MAX_CPS = 17.0  # characters per second that they allow, at most, in most languages
AUTO_DASH = "auto"
KEEP, DROP = "keep", "drop"  # what is done with descriptions of sounds and names of speakers
MAX_ROOM = 1_000_000  # characters; no cue has room for more

# The line ends of str.splitlines: other programs, and people, see a new line there.
_BREAKS = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]\s*")


@dataclass(frozen=True)
class ShownCue:
    """A cue as it is on the screen: its number in the file, its times in milliseconds, and its lines."""

    number: int
    start: int
    end: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class CueLimits:
    """The most that a cue may have; a speed of 0 and None are no limit."""

    max_cps: float = 0
    max_chars: int | None = None
    max_lines: int | None = None


@dataclass(frozen=True)
class SubtitleStyle:
    """How translated subtitles are to look.

    With `fit`, sentences know how many characters their cues have room for: in their lines, and at the
    reading speed. A speed of 0 is no limit.
    """

    max_chars: int = LINE_WIDTH  # per line, where words permit
    max_lines: int | None = None  # per cue; None: two, or as many as the cue has
    max_cps: float = MAX_CPS  # characters per second
    bilingual: str | None = None  # where the source is shown: above or below the translation
    language: str | None = None  # of the translation, for headers that name one
    sdh: str = KEEP  # what the hard of hearing need; or drop it
    dash: str = KEEP  # before what a speaker says; or auto, the language's, or the dash itself
    fit: bool = False

    @property
    def limits(self) -> CueLimits:
        """The limits of cues. Two languages at once have none: viewers read one of them."""
        return CueLimits() if self.bilingual else CueLimits(self.max_cps, self.max_chars, self.max_lines)


@dataclass(frozen=True)
class Source:
    """The content of a file, and how to read it."""

    content: str | bytes  # bytes if the format is binary
    name: str  # of the file, for messages
    format: str  # the name of the format
    language: str
    lines: bool = False  # a line is a sentence and is not split
    tags: bool = False  # tags inside a line are part of its sentence, and translations have them too
    screen: SubtitleStyle = SubtitleStyle()
    columns: tuple[str, ...] = ()  # of tables: which are translated, by name or number
    retranslate: bool = False  # what a catalogue has a translation of is translated again

    @property
    def text(self) -> str:
        """The content of a file in a text format."""
        assert isinstance(self.content, str), f"{self.format} is a binary format"
        return self.content

    @property
    def data(self) -> bytes:
        """The content of a file in a binary format."""
        assert isinstance(self.content, bytes), f"{self.format} is a text format"
        return self.content


class Layout(Protocol):
    """All of a text file but its sentences."""

    def restore(self, translations: Iterable[str]) -> Iterator[str]:
        """Yield the file's text with the translations of all sentences, each piece as early as possible."""
        ...


class BinaryLayout(Protocol):
    """All of a binary file but its sentences."""

    def restore(self, translations: Iterable[str]) -> Iterator[bytes]:
        """Yield the file's bytes with the translations of all sentences."""
        ...


@runtime_checkable
class CueLayout(Layout, Protocol):
    """All of a subtitle file but its sentences. Sentences are counted through the whole file."""

    @property
    def limits(self) -> CueLimits:
        """The limits of its cues."""
        ...

    def shown_cues(self, translations: Iterable[str]) -> Iterator[ShownCue]:
        """Yield the cues with the translations of all sentences, each as soon as it is complete."""
        ...

    def cues_of(self, sentence: int) -> frozenset[int]:
        """Return the numbers of the cues that a sentence is in."""
        ...


Reader = Callable[[Source], tuple[tuple[Document, ...], Layout | BinaryLayout]]


def one_line(translation: str) -> str:
    """Replace line breaks of all kinds by spaces, so that the output has as many lines as the input."""
    return translation if translation.isprintable() else _BREAKS.sub(" ", translation)


class RatedText(str):
    """A translation with its confidence: a string to all layouts but those that write confidences down.

    `confidence` is None if it was not computed; `flags` says why it is low, and is empty if it isn't.
    """

    confidence: float | None
    flags: tuple[str, ...]

    @classmethod
    def of(cls, text: str, confidence: float | None, flags: Iterable[str] = ()) -> RatedText:
        """Return a translation with its confidence."""
        rated = cls(text)
        rated.confidence, rated.flags = confidence, tuple(flags)
        return rated


def take(translations: Iterator[str]) -> str:
    """Return the next translation; a missing one is a ValueError, as the caller is at fault."""
    for translation in translations:
        return translation
    raise ValueError("fewer translations than sentences")


def finish(translations: Iterator[str]) -> None:
    """Raise a ValueError if translations are left over."""
    for _ in translations:
        raise ValueError("more translations than sentences")


LineLayout = TypeVar("LineLayout", bound=Layout, covariant=True)


@dataclass(frozen=True)
class Line(Generic[LineLayout]):
    """A line as read: its sentences, its layout, and whether a document ends before or after it."""

    sentences: tuple[Sentence, ...]
    layout: LineLayout
    ends_before: bool = False
    ends_after: bool = False


class LineReader(Protocol):
    """Reads the lines of one file, in order."""

    @property
    def old_ends(self) -> bool:
        """Tell whether lines may end with CR, in a text that has no LF."""
        ...

    def read(self, text: str, end: str) -> Iterable[Line[Layout]]:
        """Read the next line, given its text and its end; return the lines that are now certain."""
        ...

    def end(self) -> Iterable[Line[Layout]]:
        """Return the lines that were still uncertain, as there are no more lines."""
        ...


# (the stream's name for messages, its language, whether a line is a sentence) → a reader
LineReaders = Callable[[str, str, bool], LineReader]


class LineCutter:
    """Cuts text that comes in pieces into lines. A line ends with LF.

    With `old_ends` it ends with CR if the whole text has no LF.
    """

    def __init__(self, *, old_ends: bool = False) -> None:
        self._old_ends = old_ends
        self._open: list[str] = []

    def cut(self, text: str) -> Iterator[tuple[str, str]]:
        """Add a piece of text, and yield the lines that are now complete, each with its end."""
        if "\n" not in text:
            self._open.append(text)
            return
        self._old_ends = False
        *complete, rest = "".join((*self._open, text)).split("\n")
        self._open = [rest]
        for line in complete:
            yield line, "\n"

    def end(self) -> Iterator[tuple[str, str]]:
        """Yield the lines that are left when there is no more text."""
        rest = "".join(self._open)
        self._open = []
        *complete, last = rest.split("\r") if self._old_ends else [rest]
        for line in complete:
            yield line, "\r"
        if last:
            yield last, ""


def documents_in(lines: Iterable[Line[Layout]]) -> Iterator[Document]:
    """Group the sentences of lines into documents."""
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
