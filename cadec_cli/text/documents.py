"""The two records that all of text is about: a document is an ordered list of sentences.

And how lines become documents, wherever a blank line stands between them. Knows nothing of files.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Sentence:
    """One sentence as the reader found it, without the white space around it.

    `place` is where a person finds it in the file: a line, a time. It is no part of what the sentence is.
    """

    text: str
    place: str = field(default="", compare=False)


@dataclass(frozen=True)
class Document:
    """Sentences that are read together, in order; the context of each is what stands before it.

    With `speakers` it is of subtitles, where a name before a colon says who is speaking.
    """

    sentences: tuple[Sentence, ...]
    speakers: bool = False

    @classmethod
    def of(cls, texts: Iterable[str]) -> "Document":
        """Make a document of plain strings."""
        return cls(tuple(Sentence(text) for text in texts))

    @property
    def texts(self) -> tuple[str, ...]:
        """The sentences as plain strings."""
        return tuple(sentence.text for sentence in self.sentences)

    def __len__(self) -> int:
        return len(self.sentences)


def is_blank(line: str) -> bool:
    """Tell whether a line has nothing but white space in it."""
    return not line.strip()


def documents_of(items: Iterable[T], ends: Callable[[T], bool]) -> Iterator[Iterator[T]]:
    """Cut lines, or what was made of them, into documents: runs between items that end one.

    The items that end a document, such as blank lines, belong to none; several in a row are one boundary.
    Nothing is held in memory, so a document has to be read before the next one is asked for.
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
