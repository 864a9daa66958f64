"""What every format's reader is given and gives back: documents, and the layout that they came out of.

Knows no format, and nothing of files and encodings.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from cadec_cli.text.documents import Document
from cadec_cli.text.formats.wrapping import LINE_WIDTH

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
