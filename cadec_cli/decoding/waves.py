"""Waves: the next few items of every document, prepared in one batch.

The items are units, n-best lists, texts or passages: whatever a search reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

# Items of all documents together. The first wave is small, so that the first translations appear soon.
FIRST_WAVE, WAVE = 32, 256

Item = TypeVar("Item")
Other = TypeVar("Other")


@dataclass(frozen=True)
class Wave(Generic[Item]):
    """The next few items of every document."""

    taken: int  # items of each document in the waves before
    documents: list[list[Item]]
    ends: list[bool]  # for each document, whether this is the end of it

    def __iter__(self) -> Iterator[tuple[int, Item]]:
        """Yield all items with the numbers of their documents, document by document."""
        return ((number, item) for number, items in enumerate(self.documents) for item in items)

    def map(self, batch: Callable[[list[Item]], Iterable[Other]]) -> Wave[Other]:
        """Return the wave with other items, made of all items in one call; `batch` keeps their order."""
        made = iter(batch([item for _, item in self]))
        return Wave(self.taken, [[next(made) for _ in items] for items in self.documents], self.ends)

    def steps(self) -> Iterator[dict[int, Item]]:
        """Yield the first item of every document that has one, by document number; then the second; …"""
        for step in range(max(map(len, self.documents))):
            yield {number: items[step] for number, items in enumerate(self.documents) if step < len(items)}

    def is_last(self, number: int, step: int) -> bool:
        """Tell whether a document ends with this step of the wave."""
        return self.ends[number] and step + 1 == len(self.documents[number])


def waves(documents: Sequence[Sequence[Item]], taken: int = 0) -> Iterator[Wave[Item]]:
    """Yield wave after wave until all documents are used up; those before `taken` are skipped.

    Where waves begin depends on the lengths of the documents alone, so that a resumed translation meets the
    same waves.
    """
    position = 0
    size = FIRST_WAVE
    while live := sum(position < len(items) for items in documents):
        share = max(1, size // live)
        if position >= taken:
            yield Wave(
                position,
                [list(items[position : position + share]) for items in documents],
                [position + share >= len(items) for items in documents],
            )
        position += share
        size = WAVE
