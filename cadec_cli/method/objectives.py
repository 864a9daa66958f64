"""What a search maximises: small formulas over named terms, with named weights.

    nmt           log p_NMT(ỹ | x)
    conditional   log p_LM(ỹ | c̃)      after the context
    free          log p_LM(ỹ | </s>)   without it
    back          log p_back(x̃ | y)    of the source, by a model of the other direction
    length        |y|                  in tokens
    defects       how many defects y has, each of which rules it out as a translation
    glossary      how many terms of a glossary y respects
    names         how many names in x y renders as the rest of the document does
    manner        log p(form of address, gender of the speaker | what the user asks for) − log p(…)
    address       log p(form of address of y | the sentences before) − log p(form of address of y)
    fit           minus the characters of y for which its subtitles have no room, compared with the likeliest
                  hypothesis that addresses people as y does

A D-LM of several languages can also read pairs: the sources of the sentences before and x itself, with their
translations. Read like that, its terms have names of their own:

    pairs-conditional  log p_LM(ỹ | pairs, x)    after the context
    pairs-free         log p_LM(ỹ | x)           without it

and any further terms of the table `method.terms.TERMS`. Formulas are linear, so they hold for whole sentences
(rerank, lattice) and for single tokens (beam), for numbers and for tensors. Temperature and smoothing are
inside the LM's log-probabilities. A term that was not computed is absent, never 0. A term of OPTIONAL is
added to any objective by giving it a weight.

To add an objective, write its formula and enter it in OBJECTIVES.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cadec_cli.errors import CadecError
from cadec_cli.extensions import Registry
from cadec_cli.validation import quote_value

NMT, CONDITIONAL, FREE = "nmt", "conditional", "free"
BACK, LENGTH, DEFECTS, ADDRESS = "back", "length", "defects", "address"
PAIRS_CONDITIONAL, PAIRS_FREE = "pairs-conditional", "pairs-free"
FIT = "fit"
GLOSSARY = "glossary"  # also the name of its weight, which any objective has if there is a glossary
NAMES = "names"  # likewise, with names that are found
MANNER = "manner"  # also the name of its weight, which any objective has if a manner is asked for
# What a D-LM reads: the translations before, these with their sources, or first the one and then the other.
TARGET, PAIRS, BOTH = "target", "pairs", "both"
READINGS = (TARGET, PAIRS, BOTH)
# The D-LM's terms, by what it reads: after the context, and without it.
LM_TERMS_OF = {TARGET: (CONDITIONAL, FREE), PAIRS: (PAIRS_CONDITIONAL, PAIRS_FREE)}
LM_TERMS = frozenset(term for terms in LM_TERMS_OF.values() for term in terms)
# Terms that are added to a formula, times a weight of the same name, if that weight is given.
OPTIONAL = (ADDRESS, FIT)
LARGEST_WEIGHT = 1000
DEFECT_COST = 10_000.0  # more than any difference of scores, so that a sound hypothesis wins

# What a respected term is worth, in nats: more than most models find it unlikely. See docs/terms.md.
GLOSSARY_WEIGHT = 25.0
# What is asked for is certain: see `engines.manner_term` for the scale, docs/formality.md for the figures.
MANNER_WEIGHT = 1.0
# What a name is worth that is rendered as in the rest of the document.
NAMES_WEIGHT = 20.0
TERM_WEIGHTS = {GLOSSARY: GLOSSARY_WEIGHT, NAMES: NAMES_WEIGHT, MANNER: MANNER_WEIGHT}

# What a character is worth that is too many for its cue, in nats. See docs/translating.md.
FIT_WEIGHT = 0.3
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

    @property
    def reads_context(self) -> bool:
        """Tell whether one of its terms is a D-LM's after the context."""
        return self.uses(*(after for after, _ in LM_TERMS_OF.values()))

    @property
    def readings(self) -> tuple[str, ...]:
        """What the D-LM has to read for its terms: target, pairs or both of them."""
        return tuple(reading for reading, terms in LM_TERMS_OF.items() if self.uses(*terms))

    def reading(self, reads: str) -> Objective:
        """The same objective if the D-LM reads pairs, or both; its own terms are those of the target alone.

        With both, each of its log-probabilities is the sum of two; the weight `pairs` is the second one's.
        """
        own = [term for term in self.terms if term in LM_TERMS_OF[TARGET]]
        if reads == TARGET or not own:
            return self
        renamed = dict(zip(LM_TERMS_OF[TARGET], LM_TERMS_OF[PAIRS], strict=True))
        inner = self.formula
        if reads == PAIRS:
            terms = tuple(renamed.get(term, term) for term in self.terms)
            return replace(
                self, terms=terms, formula=lambda t, w: inner({**t, **{o: t[renamed[o]] for o in own}}, w)
            )
        return replace(
            self,
            terms=(*self.terms, *(renamed[term] for term in own)),
            weights={**self.weights, PAIRS: 1.0},
            formula=lambda t, w: inner({**t, **{o: t[o] + w[PAIRS] * t[renamed[o]] for o in own}}, w),
        )

    def score(self, terms: Mapping[str, Any]) -> Any:
        """Apply the formula."""
        return self.formula(terms, self.weights)

    def with_weights(self, weights: Mapping[str, float]) -> Objective:
        """The same formula with other weights; those not given stay as they are.

        A weight of a term in OPTIONAL that the formula lacks adds the term, unless it is 0.
        """
        unknown = [name for name in weights if name not in self.weights and name not in OPTIONAL]
        if unknown:
            raise CadecError(
                f"{self.name} has no weight {', '.join(unknown)}",
                f"it has {', '.join(dict.fromkeys((*self.weights, *OPTIONAL)))}",
            )
        wrong = weight_misfits(weights)
        if wrong:
            raise CadecError("; ".join(wrong))
        added = [name for name in weights if name not in self.weights]
        same = replace(
            self,
            weights={**self.weights, **{name: weights[name] for name in weights if name not in added}},
        )
        return functools.reduce(lambda one, name: one.plus(name, weights[name]), added, same)

    def plus(self, term: str, weight: float) -> Objective:
        """The same formula with another term, times a weight of the same name; with weight 0, itself."""
        if not weight:
            return self
        inner = self.formula
        return replace(
            self,
            formula=lambda t, w: inner(t, w) + w[term] * t[term],
            terms=(*self.terms, term),
            weights={**self.weights, term: weight},
        )


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


def follow_manner(inner: Objective, weight: float) -> Objective:
    """The same objective with a reward for the manner that a user asks for."""
    return inner.plus(MANNER, weight)


def reward_names(inner: Objective, weight: float) -> Objective:
    """The same objective with a reward for every name that is rendered as in the rest of the document.

    The term is absent where the source has no such name.
    """
    return replace(
        inner,
        formula=lambda t, w: inner.formula(t, w) + (w[NAMES] * t[NAMES] if NAMES in t else 0.0),
        terms=(*inner.terms, NAMES),
        weights={**inner.weights, NAMES: weight},
    )


def objective(name: str, weights: Mapping[str, float] | None = None, reads: str = TARGET) -> Objective:
    """Look up an objective by name; weights that are not given are its own."""
    if name not in OBJECTIVES:
        raise CadecError(f"no objective {name!r}", f"there are {', '.join(OBJECTIVES)}")
    return OBJECTIVES[name].reading(reads).with_weights(weights or {})


def pmi_of(terms: Mapping[str, Any]) -> Any:
    """PMI with the context, summed over what the D-LM read, from numbers or arrays; None if not computed."""
    differences = [
        terms[after] - terms[alone] for after, alone in LM_TERMS_OF.values() if {after, alone} <= terms.keys()
    ]
    return sum(differences[1:], start=differences[0]) if differences else None
