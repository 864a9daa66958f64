"""Documents as the pieces that are translated one after the other, and waves of pieces that go together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

# Sentences whose n-best lists are made together: the first few soon, then many.
FIRST_WAVE, WAVE = 32, 256


class Units:
    """A document's pieces; a sentence is one of them unless it is too long for the model."""

    def __init__(self, pieces: Iterable[tuple[int, str]]) -> None:
        numbered = list(pieces)
        self.texts = [text for _, text in numbered]
        self._owner = [number for number, _ in numbered]

    def sentence(self, unit: int) -> int:
        """The sentence that a piece belongs to."""
        return self._owner[unit]

    def last_of_sentence(self, unit: int) -> bool:
        """Tell whether a piece is the last of its sentence."""
        return unit + 1 == len(self._owner) or self._owner[unit + 1] != self._owner[unit]


def waves(documents: Sequence[Units], taken: int = 0) -> Iterator[tuple[int, list[list[str]]]]:
    """The next few texts of every document, again and again until all are through.

    Yields how many were taken before, and the texts. Where the waves begin depends on the documents alone,
    so that a translation that is taken up again meets the same ones.
    """
    position = 0
    size = FIRST_WAVE
    while live := sum(position < len(units.texts) for units in documents):
        share = max(1, size // live)
        if position >= taken:
            yield position, [units.texts[position : position + share] for units in documents]
        position += share
        size = WAVE
