"""Sentences and documents, the two records that every reader makes. Knows nothing about files.

Also how a sequence of lines is cut into documents at blank lines.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Sentence:
    """One sentence without the white space around it.

    `place` is where a person finds it in the file, such as a line number or a time; `speaker` is who says it,
    if the file tells; `goes_on` says that it is in one line with the sentence before it. Sentences that
    differ only in these are equal. `given` is its translation, if the file has one: it is not translated
    again, and only read as the context of the sentences that follow. `room` is how many characters its
    translation may have to fit its cues; None if nobody asked, or if it is not from subtitles.
    """

    text: str
    place: str = field(default="", compare=False)
    given: str = ""
    room: float | None = None
    speaker: str = field(default="", compare=False)
    goes_on: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Document:
    """Sentences in order; the context of each is those before it.

    In a document with `speakers`, that is of subtitles, a name before a colon says who is speaking.
    """

    sentences: tuple[Sentence, ...]
    speakers: bool = False

    @classmethod
    def of(cls, sentences: "Document | Iterable[str | Sentence]", *, speakers: bool = False) -> "Document":
        """Make a document of sentences or plain strings; a document is returned as it is."""
        if isinstance(sentences, Document):
            return sentences
        return cls(
            tuple(Sentence(one) if isinstance(one, str) else one for one in sentences), speakers=speakers
        )

    @property
    def texts(self) -> tuple[str, ...]:
        """The sentences as plain strings."""
        return tuple(sentence.text for sentence in self.sentences)

    @property
    def speaker_names(self) -> tuple[str, ...]:
        """Who says each sentence, as far as the file tells beside its text; empty if it tells nothing."""
        names = tuple(sentence.speaker for sentence in self.sentences)
        return names if any(names) else ()

    @property
    def given(self) -> dict[int, str]:
        """The translations that are given, by the numbers of their sentences."""
        return {number: one.given for number, one in enumerate(self.sentences) if one.given}

    @property
    def rooms(self) -> tuple[float | None, ...]:
        """The room of each sentence; empty if none is known."""
        rooms = tuple(sentence.room for sentence in self.sentences)
        return rooms if any(room is not None for room in rooms) else ()

    def __len__(self) -> int:
        return len(self.sentences)


def is_blank(line: str) -> bool:
    """Tell whether a line has nothing but white space in it."""
    return not line.strip()


def documents_of(items: Iterable[T], ends: Callable[[T], bool]) -> Iterator[Iterator[T]]:
    """Cut lines, or items made of lines, into documents, at the items for which `ends` is true.

    Such an item, for example a blank line, belongs to no document; several in a row are one boundary. Nothing
    is held in memory, so read each document before you ask for the next one.
    """
    for is_end, run in itertools.groupby(items, key=ends):
        if not is_end:
            yield run


def document_lines(documents: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield documents as text: one sentence per line, a blank line between documents.

    Each piece is one sentence with its line end. Documents without sentences leave no trace.
    """
    begun = False
    for document in documents:
        first = begun
        for sentence in document:
            yield f"\n{sentence}\n" if first else f"{sentence}\n"
            first, begun = False, True
