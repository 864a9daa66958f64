"""Documents as the pieces that are translated one after the other, and waves of pieces that go together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

# Sentences whose n-best lists are made together: the first few soon, then many.
FIRST_WAVE, WAVE = 32, 256

Item = TypeVar("Item")
Other = TypeVar("Other")


class Pieces(Generic[Item]):
    """A document's pieces, texts or lists; a sentence is one of them unless it is too long for the model."""

    def __init__(self, pieces: Iterable[tuple[int, Item]]) -> None:
        numbered = list(pieces)
        self.items = [item for _, item in numbered]
        self._sentences = [number for number, _ in numbered]

    def __len__(self) -> int:
        return len(self.items)

    def with_items(self, items: Iterable[Other]) -> Pieces[Other]:
        """The same sentences, made of other things."""
        return Pieces(zip(self._sentences, items, strict=True))

    def sentence(self, piece: int) -> int:
        """The sentence that a piece belongs to."""
        return self._sentences[piece]

    def last_of_sentence(self, piece: int) -> bool:
        """Tell whether a piece is the last of its sentence."""
        return piece + 1 == len(self) or self._sentences[piece + 1] != self._sentences[piece]


@dataclass(frozen=True)
class Wave(Generic[Item]):
    """The next few pieces of every document."""

    taken: int  # pieces of each that came before
    documents: list[list[Item]]
    ends: list[bool]  # whether nothing of a document comes after

    def steps(self) -> Iterator[dict[int, Item]]:
        """The first piece of every document that has one, by its number; then the second, and so on."""
        for step in range(max(map(len, self.documents))):
            yield {number: pieces[step] for number, pieces in enumerate(self.documents) if step < len(pieces)}

    def is_last(self, number: int, step: int) -> bool:
        """Tell whether a document ends with this step of the wave."""
        return self.ends[number] and step + 1 == len(self.documents[number])


def waves(documents: Sequence[Pieces[Item]], taken: int = 0) -> Iterator[Wave[Item]]:
    """The next few pieces of every document, again and again until all are through.

    Where the waves begin depends on the documents alone, so that a translation that is taken up again meets
    the same ones.
    """
    position = 0
    size = FIRST_WAVE
    while live := sum(position < len(pieces) for pieces in documents):
        share = max(1, size // live)
        if position >= taken:
            yield Wave(
                position,
                [pieces.items[position : position + share] for pieces in documents],
                [position + share >= len(pieces) for pieces in documents],
            )
        position += share
        size = WAVE
