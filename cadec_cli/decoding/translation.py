"""The result of decoding: sentences with their hypotheses, the choice among them, and its context."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cadec_cli.decoding.units import Unit
from cadec_cli.method.context import Context
from cadec_cli.method.hypotheses import Hypothesis, Ids, NBest
from cadec_cli.method.objectives import DEFECT_COST, DEFECTS, LM_TERMS_OF


@dataclass(frozen=True)
class Choice:
    """The index of the chosen hypothesis, with the scores of all hypotheses as the search saw them.

    `terms` has the terms that were computed beside log p(y|x), one value per hypothesis. `context` has the
    sentences that the D-LM read before this one, in its ids; the first `pinned` of them are a seed. If it
    read pairs, `sources` are their sources; those that are not known are empty.
    """

    index: int
    scores: tuple[float, ...]
    terms: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    context: tuple[Ids, ...] = ()
    pinned: int = 0
    sources: tuple[str, ...] = ()

    @property
    def read(self) -> Context:
        """The context that the D-LM read."""
        return Context(self.context, pinned=self.pinned)

    @property
    def pmi(self) -> tuple[float, ...] | None:
        """PMI of every hypothesis with the context, summed over what was read; None if not computed."""
        known = [names for names in LM_TERMS_OF.values() if all(name in self.terms for name in names)]
        if not known:
            return None
        differences = (
            [after - alone for after, alone in zip(*(self.terms[name] for name in names), strict=True)]
            for names in known
        )
        return tuple(map(sum, zip(*differences, strict=True)))

    def is_broken(self, index: int) -> bool:
        """Tell whether defects were found in a hypothesis; False if it was not checked."""
        return DEFECTS in self.terms and self.terms[DEFECTS][index] > 0

    def shown_score(self, index: int) -> float:
        """Return the score without the penalty for defects, as people want to read it."""
        cost = DEFECT_COST * self.terms[DEFECTS][index] if DEFECTS in self.terms else 0.0
        return self.scores[index] + cost

    @property
    def ranking(self) -> list[int]:
        """Hypotheses by their score in context, the best first; equal ones in the S-NMT's order."""
        return sorted(range(len(self.scores)), key=lambda index: -self.scores[index])


@dataclass(frozen=True)
class TranslatedPart:
    """A piece of source text with its hypotheses and the choice; None where there is nothing to translate.

    `placed` is the chosen hypothesis with the tags and in the case of the source, if it has tags or is in
    capitals; or the translation that was given, if nothing was chosen. `unit` is None for a part that was
    read from a file.
    """

    nbest: NBest
    choice: Choice | None
    placed: str | None = None
    unit: Unit | None = field(default=None, compare=False, repr=False)

    @property
    def source(self) -> str:
        """The piece of source text."""
        return self.nbest.source

    @property
    def hypotheses(self) -> tuple[Hypothesis, ...]:
        """The hypotheses, in the order of the S-NMT."""
        return self.nbest.hypotheses

    @property
    def chosen_hypothesis(self) -> Hypothesis | None:
        """The chosen hypothesis; None where there is nothing to translate."""
        return self.hypotheses[self.choice.index] if self.choice is not None else None

    @property
    def text(self) -> str:
        """The translation; a source with nothing to translate is copied."""
        if self.chosen_hypothesis is None:
            return self.source if self.placed is None else self.placed
        return self.nbest.wrap(self.chosen_hypothesis.text if self.placed is None else self.placed)


@dataclass(frozen=True)
class Translation:
    """A translated sentence. Most have one part; a sentence that was cut has several.

    `place` is where a person finds the sentence in its file; empty if it comes from no file.
    """

    document: int
    sentence: int
    source: str
    parts: tuple[TranslatedPart, ...]
    place: str = field(default="", compare=False)

    @property
    def text(self) -> str:
        """The translation of the whole sentence."""
        return " ".join(part.text for part in self.parts)


def join_first_hypotheses(lists: Iterable[NBest]) -> str:
    """Join the first hypotheses of a sentence's parts; a source without hypotheses is copied."""
    return " ".join(
        nbest.wrap(nbest.hypotheses[0].text) if nbest.hypotheses else nbest.source for nbest in lists
    )
