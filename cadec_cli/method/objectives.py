"""What a search maximises: small formulas over named terms, with named weights.

    nmt           log p_NMT(ỹ | x)
    conditional   log p_LM(ỹ | c̃)      after the context
    free          log p_LM(ỹ | </s>)   without it
    back          log p_back(x̃ | y)    of the source, by a model of the other direction
    length        |y|                  in tokens
    defects       how many defects y has, each of which rules it out as a translation
    glossary      how many terms of a glossary y respects

and any further terms of the table `method.terms.TERMS`. Formulas are linear, so they hold for whole sentences
(rerank, lattice) and for single tokens (beam), for numbers and for tensors. Temperature and smoothing are
inside the LM's log-probabilities. A term that was not computed is absent, never 0.

To add an objective, write its formula and enter it in OBJECTIVES.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cadec_cli.errors import CadecError
from cadec_cli.extensions import Registry
from cadec_cli.validation import quote_value

NMT, CONDITIONAL, FREE = "nmt", "conditional", "free"
BACK, LENGTH, DEFECTS = "back", "length", "defects"
GLOSSARY = "glossary"  # also the name of its weight, which any objective has if there is a glossary
LM_TERMS = frozenset({CONDITIONAL, FREE})
LARGEST_WEIGHT = 1000
DEFECT_COST = 10_000.0  # more than any difference of scores, so that a sound hypothesis wins

# What a respected term is worth, in nats: more than most models find it unlikely. See docs/terms.md.
GLOSSARY_WEIGHT = 25.0

# (terms, weights) → score; terms are numbers, arrays or tensors of one shape.
Formula = Callable[[Mapping[str, Any], Mapping[str, float]], Any]


@dataclass(frozen=True)
class Objective:
    """A formula, the terms that it uses, and its weights."""

    name: str
    formula: Formula
    terms: tuple[str, ...]
    weights: Mapping[str, float] = field(default_factory=dict)

    def uses(self, *terms: str) -> bool:
        """Tell whether one of these terms is in the formula."""
        return any(term in self.terms for term in terms)

    @property
    def by_token(self) -> bool:
        """Tell whether single tokens can be scored, as the beam requires."""
        return all(term in (NMT, *LM_TERMS) for term in self.terms)

    @property
    def uses_lm(self) -> bool:
        """Tell whether a D-LM is needed."""
        return self.uses(*LM_TERMS)

    def score(self, terms: Mapping[str, Any]) -> Any:
        """Apply the formula."""
        return self.formula(terms, self.weights)

    def with_weights(self, weights: Mapping[str, float]) -> Objective:
        """The same formula with other weights; those not given stay as they are."""
        unknown = [name for name in weights if name not in self.weights]
        if unknown:
            raise CadecError(
                f"{self.name} has no weight {', '.join(unknown)}",
                f"it has {', '.join(self.weights) or 'none'}",
            )
        wrong = weight_misfits(weights)
        if wrong:
            raise CadecError("; ".join(wrong))
        return replace(self, weights={**self.weights, **weights})


def weight_misfits(weights: Mapping[str, float]) -> list[str]:
    """One message for each weight that is out of range."""
    return [
        f"weight must be from 0 to {LARGEST_WEIGHT}, not {name}={quote_value(weight)}"
        for name, weight in weights.items()
        if type(weight) not in (int, float) or not 0 <= weight <= LARGEST_WEIGHT
    ]


_OWN = (
    Objective("sentence", lambda t, w: t[NMT], (NMT,)),
    Objective(
        "c-score",
        lambda t, w: t[NMT] + w["lm"] * (t[CONDITIONAL] - t[FREE]),
        (NMT, CONDITIONAL, FREE),
        {"lm": 1.0},
    ),
    Objective("shallow-fusion", lambda t, w: t[NMT] + w["lm"] * t[FREE], (NMT, FREE), {"lm": 0.1}),
    Objective(
        "conditional-shallow-fusion",
        lambda t, w: t[NMT] + w["lm"] * t[CONDITIONAL],
        (NMT, CONDITIONAL),
        {"lm": 0.1},
    ),
    # Yu et al. 2020; the weights are those of the paper's authors
    Objective(
        "bayes",
        lambda t, w: t[CONDITIONAL] + w["nmt"] * t[NMT] + w["back"] * t[BACK] + w["length"] * t[LENGTH],
        (NMT, CONDITIONAL, BACK, LENGTH),
        {"nmt": 2.5, "back": 0.5, "length": 0.2},
    ),
    Objective(
        "bayes-without-context",
        lambda t, w: t[FREE] + w["nmt"] * t[NMT] + w["back"] * t[BACK] + w["length"] * t[LENGTH],
        (NMT, FREE, BACK, LENGTH),
        {"nmt": 2.5, "back": 0.5, "length": 0.2},
    ),
    Objective("pmi", lambda t, w: t[CONDITIONAL] - t[FREE], (CONDITIONAL, FREE)),
    Objective("conditional", lambda t, w: t[CONDITIONAL], (CONDITIONAL,)),
)
OBJECTIVES: Registry[Objective] = Registry("cadec.objectives", Objective, {one.name: one for one in _OWN})


def _alone(term: str) -> Formula:
    return lambda t, w: t[term]


# Each model that reads several sentences scores alone, with the term of its own name. The search of that name
# translates with it. These objectives choose nothing from lists, so other searches do not offer them.
DOCUMENT_OBJECTIVES: dict[str, Objective] = {
    name: Objective(name, _alone(name), (name,)) for name in ("doc-nmt", "2-to-2", "repair")
}


def penalise_defects(inner: Objective) -> Objective:
    """The same objective with a penalty, so that a defective hypothesis never beats a sound one."""
    return replace(
        inner,
        formula=lambda t, w: inner.formula(t, w) - DEFECT_COST * t[DEFECTS],
        terms=(*inner.terms, DEFECTS),
    )


def reward_terms(inner: Objective, weight: float) -> Objective:
    """The same objective with a reward for every term of a glossary that a hypothesis respects."""
    return replace(
        inner,
        formula=lambda t, w: inner.formula(t, w) + w[GLOSSARY] * t[GLOSSARY],
        terms=(*inner.terms, GLOSSARY),
        weights={**inner.weights, GLOSSARY: weight},
    )


def objective(name: str, weights: Mapping[str, float] | None = None) -> Objective:
    """Look up an objective by name; weights that are not given are its own."""
    if name not in OBJECTIVES:
        raise CadecError(f"no objective {name!r}", f"there are {', '.join(OBJECTIVES)}")
    return OBJECTIVES[name].with_weights(weights or {})
