"""Text that is read line by line: what a line has to say, and where documents begin and end.

A file and a pipe are read by the same readers; all they remember is what the lines to come depend on. Knows
no format.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from cadec_cli.text.documents import Document, Sentence
from cadec_cli.text.formats.layout import Layout

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
