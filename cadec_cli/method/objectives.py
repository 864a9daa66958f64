"""What a search maximises: small formulas over three log-probabilities.

    translation   log p_NMT(ỹ | x)
    conditional   log p_LM(ỹ | c̃)      after the context
    free          log p_LM(ỹ | </s>)   without it

Every formula is linear, so it means the same for whole sentences (rerank, lattice) and for single tokens
(beam), for numbers and for tensors. Temperature and smoothing are inside the LM's log-probabilities.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cadec_cli.errors import CadecError

# A formula: (translation, conditional, free, weight) → score; numbers or tensors of one shape.
Formula = Callable[[Any, Any, Any, float], Any]


@dataclass(frozen=True)
class Objective:
    """A formula with its weight, and which of the terms it looks at."""

    name: str
    formula: Formula
    weight: float
    uses_translation: bool
    uses_conditional: bool
    uses_free: bool

    @property
    def uses_lm(self) -> bool:
        """Tell whether a D-LM is needed at all."""
        return self.uses_conditional or self.uses_free

    def score(self, translation: Any, conditional: Any, free: Any) -> Any:
        """Apply the formula; terms it does not use may be anything."""
        return self.formula(translation, conditional, free, self.weight)


def _sentence(translation: Any, conditional: Any, free: Any, weight: float) -> Any:
    return translation


def _c_score(translation: Any, conditional: Any, free: Any, weight: float) -> Any:
    return translation + weight * (conditional - free)


def _shallow_fusion(translation: Any, conditional: Any, free: Any, weight: float) -> Any:
    return translation + weight * free


def _conditional_shallow_fusion(translation: Any, conditional: Any, free: Any, weight: float) -> Any:
    return translation + weight * conditional


def _pmi(translation: Any, conditional: Any, free: Any, weight: float) -> Any:
    return conditional - free


def _conditional(translation: Any, conditional: Any, free: Any, weight: float) -> Any:
    return conditional


# name → formula, default weight, and whether it uses the translation, the conditional, the free term
OBJECTIVES: dict[str, tuple[Formula, float, bool, bool, bool]] = {
    "sentence": (_sentence, 0.0, True, False, False),
    "c-score": (_c_score, 1.0, True, True, True),
    "shallow-fusion": (_shallow_fusion, 0.1, True, False, True),
    "conditional-shallow-fusion": (_conditional_shallow_fusion, 0.1, True, True, False),
    "pmi": (_pmi, 1.0, False, True, True),
    "conditional": (_conditional, 1.0, False, True, False),
}


def objective(name: str, weight: float | None = None) -> Objective:
    """Look an objective up by its name; the weight is the paper's unless given."""
    if name not in OBJECTIVES:
        raise CadecError(f"no objective {name!r}", f"there are {', '.join(OBJECTIVES)}")
    formula, default, translation, conditional, free = OBJECTIVES[name]
    return Objective(name, formula, default if weight is None else weight, translation, conditional, free)
