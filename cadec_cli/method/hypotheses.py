"""What travels between the stages of decoding: candidate translations with their scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Hypothesis:
    """One candidate translation; `log_prob` is log p(ỹ | x), summed, the end of the sentence included."""

    text: str
    ids: tuple[int, ...]  # in the S-NMT's target vocabulary, without EOS
    log_prob: float


@dataclass(frozen=True)
class NBest:
    """The hypotheses of one sentence, the S-NMT's best first; none for an empty sentence."""

    source: str
    hypotheses: tuple[Hypothesis, ...]


class NBestSource(Protocol):
    """Where n-best lists come from: a translation model, or lists that somebody else made."""

    def generate(self, sentences: Sequence[str], count: int) -> list[NBest]:
        """At most `count` hypotheses for every sentence."""
        ...

    def fits(self, sentence: str) -> bool:
        """Tell whether a sentence can be translated whole."""
        ...

    def split(self, sentence: str) -> list[str]:
        """Cut a sentence that does not fit."""
        ...

    def encode(self, sentence: str) -> list[int]:
        """A sentence in the source vocabulary."""
        ...


class GivenLists:
    """N-best lists that are there already. A sentence is named by its place in them: "0", "1", …"""

    def __init__(self, lists: Sequence[NBest]) -> None:
        self._lists = lists

    def generate(self, sentences: Sequence[str], count: int) -> list[NBest]:
        """The lists of these places."""
        lists = [self._lists[int(place)] for place in sentences]
        return [NBest(nbest.source, nbest.hypotheses[:count]) for nbest in lists]

    def fits(self, sentence: str) -> bool:
        """They have been translated: everything fits."""
        return True

    def split(self, sentence: str) -> list[str]:
        """Nothing is split."""
        return [sentence]

    def encode(self, sentence: str) -> list[int]:
        """There is no source vocabulary."""
        return []
