"""What comes out of decoding: sentences with their hypotheses, the chosen one, and in which context."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cadec_cli.method.hypotheses import Hypothesis, Ids, NBest
from cadec_cli.method.objectives import CONDITIONAL, DEFECT_COST, DEFECTS, FREE


@dataclass(frozen=True)
class Choice:
    """Which hypothesis was chosen, with the scores of all as the search saw them.

    `terms` has what was computed beside log p(y|x), one value per hypothesis; what was not is absent.
    `context` is what stood before, as far as it counts, in the D-LM's ids; its first `pinned` are a seed.
    """

    index: int
    scores: tuple[float, ...]
    terms: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    context: tuple[Ids, ...] = ()
    pinned: int = 0

    @property
    def pmi(self) -> tuple[float, ...] | None:
        """PMI of every hypothesis with the context; none where it was not computed."""
        if CONDITIONAL not in self.terms or FREE not in self.terms:
            return None
        pairs = zip(self.terms[CONDITIONAL], self.terms[FREE], strict=True)
        return tuple(conditional - free for conditional, free in pairs)

    def is_broken(self, index: int) -> bool:
        """Tell whether a hypothesis has defects, as far as anybody looked for them."""
        return DEFECTS in self.terms and self.terms[DEFECTS][index] > 0

    def shown_score(self, index: int) -> float:
        """The score without what defects cost, which nobody wants to read."""
        cost = DEFECT_COST * self.terms[DEFECTS][index] if DEFECTS in self.terms else 0.0
        return self.scores[index] + cost

    @property
    def ranking(self) -> list[int]:
        """Hypotheses by their score in context, the best first; equal ones in the S-NMT's order."""
        return sorted(range(len(self.scores)), key=lambda index: -self.scores[index])


@dataclass(frozen=True)
class TranslatedPart:
    """A piece of source text with its hypotheses and the choice; no choice where there is nothing to say.

    `placed` is the translation with the tags of the source in their places, where it has some.
    """

    nbest: NBest
    choice: Choice | None
    placed: str | None = None

    @property
    def source(self) -> str:
        """What was translated."""
        return self.nbest.source

    @property
    def hypotheses(self) -> tuple[Hypothesis, ...]:
        """What it could be."""
        return self.nbest.hypotheses

    @property
    def chosen_hypothesis(self) -> Hypothesis | None:
        """The chosen one."""
        return self.hypotheses[self.choice.index] if self.choice is not None else None

    @property
    def text(self) -> str:
        """The chosen translation; a source without anything to translate stays as it is."""
        if self.chosen_hypothesis is None:
            return self.source
        return self.nbest.wrap(self.chosen_hypothesis.text if self.placed is None else self.placed)


@dataclass(frozen=True)
class Translation:
    """A sentence translated. An over-long one has several parts, every other has one.

    `place` is where a person finds it in its file, if whoever translated it knows.
    """

    document: int
    sentence: int
    source: str
    parts: tuple[TranslatedPart, ...]
    place: str = field(default="", compare=False)

    @property
    def text(self) -> str:
        """The whole translation."""
        return " ".join(part.text for part in self.parts)


def joined_first(lists: Iterable[NBest]) -> str:
    """The first hypotheses of a sentence's parts as one text; a source without any stays as it is."""
    return " ".join(
        nbest.wrap(nbest.hypotheses[0].text) if nbest.hypotheses else nbest.source for nbest in lists
    )
