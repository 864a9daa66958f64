"""Terms without context, and a function that builds an objective's terms from the table `method.terms.TERMS`.

Bayes' rule (Yu et al. 2020) needs two terms without context: log p_back(x | y), by a model of the other
direction, and |y|.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cadec_cli.engines.address_votes import forms_of
from cadec_cli.engines.protocols import AnyTerm, Models, TranslationModel
from cadec_cli.errors import CadecError, option
from cadec_cli.extensions import load
from cadec_cli.method.hypotheses import NBest
from cadec_cli.method.objectives import BACK, FIT, LENGTH, Objective
from cadec_cli.method.terms import NEEDS, rows_of, term_values
from cadec_cli.text.token_text import TokenText

_HINTS = {
    "backward": f"add one with `cadec convert BUNDLE {option('back')} REVERSE`, a bundle of the other "
    "direction"
}


@dataclass(frozen=True)
class BackwardScores:
    """log p(x̃ | y) of the source given each hypothesis, by a model of the other direction."""

    model: TranslationModel
    names: tuple[str, ...] = (BACK,)

    def terms(self, lists: Sequence[NBest]) -> list[dict[str, Any]]:
        """Score all lists in one call; a list without a source is a CadecError."""
        texts = [hypothesis.text for nbest in lists for hypothesis in nbest.hypotheses]
        sources = [nbest.source for nbest in lists for _ in nbest.hypotheses]
        for text, source in zip(texts, sources, strict=True):
            if not source:
                raise CadecError(
                    "a list has no source for the backward model to score",
                    f"lists of `cadec translate {option('json')}` have theirs; those of Moses and "
                    "Marian have none",
                )
            if not self.model.fits(text, source):
                raise CadecError(f"a translation is too long for the backward model: {text[:60]!r}…")
        scores = iter(self.model.log_probs(texts, sources))
        return [{BACK: [next(scores) for _ in nbest.hypotheses]} for nbest in lists]


@dataclass(frozen=True)
class Lengths:
    """|y| of each hypothesis, in tokens of the D-LM without its end."""

    text: TokenText
    names: tuple[str, ...] = (LENGTH,)

    def terms(self, lists: Sequence[NBest]) -> list[dict[str, Any]]:
        """Count tokens of the D-LM, even in lists that another model made."""
        return [{LENGTH: [float(len(ids)) for ids in nbest.ids_for(self.text)]} for nbest in lists]


@dataclass(frozen=True)
class Overflow:
    """How many characters fewer than the likeliest hypothesis each one has beyond the room of its cues.

    Polite forms are longer than familiar ones. So that length does not decide between them, a hypothesis is
    compared with the likeliest of those that address people as it does, which has 0. A list that knows no
    room has room for everything.
    """

    language: str  # of the hypotheses
    names: tuple[str, ...] = (FIT,)

    def terms(self, lists: Sequence[NBest]) -> list[dict[str, Any]]:
        """Count the characters that are too many."""
        return [{FIT: self._of(nbest)} for nbest in lists]

    def _of(self, nbest: NBest) -> list[float]:
        room = nbest.room
        if room is None or all(len(one.text) <= room for one in nbest.hypotheses):
            return [0.0] * len(nbest.hypotheses)
        beyond = [max(0, len(one.text) - room) for one in nbest.hypotheses]
        likeliest: dict[str | None, int] = {}
        return [
            float(likeliest.setdefault(form, count) - count)
            for form, count in zip(forms_of(nbest, self.language), beyond, strict=True)
        ]


def backward_scores(models: Models, options: Mapping[str, Any]) -> BackwardScores:
    """Build the term back."""
    assert models.backward is not None, "the table says that it is needed"
    return BackwardScores(models.backward)


def lengths(models: Models, options: Mapping[str, Any]) -> Lengths:
    """Build the term length."""
    assert models.language is not None, "the table says that it is needed"
    return Lengths(models.language.text)


def overflow(models: Models, options: Mapping[str, Any]) -> Overflow:
    """Build the term fit."""
    return Overflow(models.target_language)


def build_terms(
    models: Models,
    objective: Objective,
    given: Sequence[AnyTerm] = (),
    options: Mapping[str, str] | None = None,
) -> tuple[AnyTerm, ...]:
    """Build the terms of an objective; `options` are the options of terms as text.

    Terms that `given` computes are not looked up in the table. A missing model or option is a CadecError.
    """
    found = list(given)
    known = {name for source in given for name in source.names}
    for term in rows_of(objective):
        if term.name in known:
            continue
        for need in term.needs:
            if getattr(models, need) is None:
                raise CadecError(
                    f"{objective.name} needs {NEEDS[need]}, and this bundle has none", _HINTS.get(need, "")
                )
        found.append(load(term.build)(models, term_values(term, options or {})))
    return tuple(found)
