"""The two records that all of text is about: a document is an ordered list of sentences."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Sentence:
    """One sentence as the reader found it, without the white space around it."""

    text: str


@dataclass(frozen=True)
class Document:
    """Sentences that are read together, in order; the context of each is what stands before it."""

    sentences: tuple[Sentence, ...]

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
