"""What travels between the stages of decoding: candidate translations with their scores.

Text is the currency between models. Ids are private to an engine, but two models may have one vocabulary:
then the second takes the ids of the first, which may cut a text into pieces as nobody else would.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

Ids = tuple[int, ...]


class TokenText(Protocol):
    """How a model writes text: as the ids of its vocabulary."""

    @property
    def identity(self) -> str:
        """Two vocabularies with the same identity have the same ids."""
        ...

    @property
    def boundary(self) -> int:
        """The id that ends a sentence, and stands between two of them."""
        ...

    @property
    def vocabulary(self) -> Sequence[str]:
        """All tokens, in the order of their ids."""
        ...

    def encode(self, text: str) -> list[int]:
        """A sentence as ids, without the boundary."""
        ...

    def decode(self, ids: Sequence[int]) -> str:
        """Ids as a sentence."""
        ...

    def display_tokens(self, ids: Sequence[int]) -> list[str]:
        """Each token as a person reads it, a space where a word begins."""
        ...


@dataclass(frozen=True)
class Hypothesis:
    """One candidate translation; `log_prob` is log p(ỹ | x), summed, the end of the sentence included.

    `defects` is how many defects were found in the text; None if it was not checked.
    """

    text: str
    log_prob: float
    ids: Ids = ()  # in the vocabulary that the list names, without the boundary
    defects: int | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class NBest:
    """The hypotheses of one sentence, the S-NMT's best first; none for an empty sentence.

    What stands before and after the translated words, such as a speaker's name, is no part of hypotheses.
    """

    source: str
    hypotheses: tuple[Hypothesis, ...]
    vocabulary: str = ""  # the identity of the vocabulary that wrote the ids; empty where there are none
    before: str = ""
    after: str = ""

    def wrap(self, text: str) -> str:
        """A translation between what stands around it."""
        return self.before + text + self.after

    def ids_for(self, text: TokenText) -> tuple[Ids, ...]:
        """The hypotheses in a vocabulary: as they are if it is their own, else from their text."""
        if self.vocabulary and self.vocabulary == text.identity:
            return tuple(hypothesis.ids for hypothesis in self.hypotheses)
        return tuple(tuple(text.encode(hypothesis.text)) for hypothesis in self.hypotheses)
