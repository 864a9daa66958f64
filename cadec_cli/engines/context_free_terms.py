"""Terms that depend on no context: how likely the source is after a translation, and how long that is.

Bayes' rule (Yu et al. 2020) asks for both: log p_back(x | y) by a model of the other direction, and |y|.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cadec_cli.engines.protocols import ContextFreeTerm, Models, TranslationModel
from cadec_cli.errors import CadecError, option
from cadec_cli.method.hypotheses import NBest, TokenText
from cadec_cli.method.objectives import BACK, LENGTH, Objective


@dataclass(frozen=True)
class BackwardScores:
    """log p(x̃ | y) of the source after each hypothesis, by a model that translates the other way."""

    model: TranslationModel
    names: tuple[str, ...] = (BACK,)

    def terms(self, lists: Sequence[NBest]) -> list[dict[str, Any]]:
        """All lists in one call."""
        texts = [hypothesis.text for nbest in lists for hypothesis in nbest.hypotheses]
        sources = [nbest.source for nbest in lists for _ in nbest.hypotheses]
        for text, source in zip(texts, sources, strict=True):
            if not source:
                raise CadecError(
                    "a list has no source, which the backward model would score",
                    f"lists of `cadec translate {option('json')}` have theirs; those of Moses and "
                    "Marian have none",
                )
            if not self.model.fits(text, source):
                raise CadecError(f"a translation is too long for the backward model: {text[:60]!r}…")
        scores = iter(self.model.log_probs(texts, sources))
        return [{BACK: [next(scores) for _ in nbest.hypotheses]} for nbest in lists]


@dataclass(frozen=True)
class Lengths:
    """|y| of each hypothesis: tokens of the D-LM, its end not counted."""

    text: TokenText
    names: tuple[str, ...] = (LENGTH,)

    def terms(self, lists: Sequence[NBest]) -> list[dict[str, Any]]:
        """Counted in the D-LM's tokens, whoever wrote the list."""
        return [{LENGTH: [float(len(ids)) for ids in nbest.ids_for(self.text)]} for nbest in lists]


def context_free_terms(
    models: Models, objective: Objective, given: Sequence[ContextFreeTerm] = ()
) -> tuple[ContextFreeTerm, ...]:
    """What computes the terms of an objective ahead of any context; a model that is missing is an error.

    Whatever is given computes its terms itself.
    """
    found: list[ContextFreeTerm] = list(given)
    own = {name for source in given for name in source.names}
    if objective.uses(BACK) and BACK not in own:
        if models.backward is None:
            raise CadecError(
                f"{objective.name} needs a backward model, and this bundle has none",
                f"add one with `cadec convert BUNDLE {option('back')} REVERSE`, a bundle of the other "
                "direction",
            )
        found.append(BackwardScores(models.backward))
    if objective.uses(LENGTH) and LENGTH not in own and models.language is not None:
        found.append(Lengths(models.language.text))
    return tuple(found)
