"""What comes out of decoding: sentences with their hypotheses and the one that was chosen."""

from __future__ import annotations

from dataclasses import dataclass

from cadec_cli.decoding.search.lattice import Choice
from cadec_cli.method.hypotheses import Hypothesis


@dataclass(frozen=True)
class Chosen:
    """A piece of source text with its hypotheses and the one that was chosen.

    `choice` has the scores of all, and log p of every token under the D-LM where it was used.
    """

    source: str
    hypotheses: tuple[Hypothesis, ...]
    choice: Choice | None

    @property
    def text(self) -> str:
        """The chosen translation; a source without anything to translate stays as it is."""
        return self.hypotheses[self.choice.index].text if self.choice is not None else self.source


@dataclass(frozen=True)
class Translation:
    """A sentence translated. An over-long one has several parts, every other one."""

    document: int
    sentence: int
    source: str
    parts: tuple[Chosen, ...]

    @property
    def text(self) -> str:
        """The whole translation."""
        return " ".join(part.text for part in self.parts)

    @property
    def sentence_level(self) -> str:
        """What the S-NMT alone would have said, where hypotheses are its own: not after a C-aware beam."""
        return " ".join(part.hypotheses[0].text if part.hypotheses else part.source for part in self.parts)
