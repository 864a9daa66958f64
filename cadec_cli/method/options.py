"""How translations are searched for and chosen: what a bundle has defaults for, and what else can be said.

The fields are at once the keys of files and the flags of commands: their help texts stand here, once.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from cadec_cli.errors import CadecError, UsageError, as_usage_error, option
from cadec_cli.method.context import ContextPolicy
from cadec_cli.method.objectives import CONDITIONAL, NMT, OBJECTIVES, Objective, objective, weight_misfits
from cadec_cli.method.searches import SEARCHES, STEPS, search_kind
from cadec_cli.validation import Bound, Number, OneOf, Truth, Whole, misfits

CONTEXT_SOURCES = ("chosen", "sentence")
LONG_SENTENCES = ("split", "refuse")
AUTO = "auto"
FORMALITIES = (AUTO, "formal", "informal")
# At what temperature a formality that was asked for is heard: a flattened D-LM says too little of it.
FORMALITY_TEMPERATURE = 1.0

# Hypotheses, beams and paths: what memory and time grow with. The command line refuses more as well.
MAX_HYPOTHESES = 1000

# What is said in files as on the command line.
_BOUNDS: Mapping[str, Bound] = {
    "search": OneOf(SEARCHES),
    "objective": OneOf(OBJECTIVES),
    "temperature": Number(0.01, 1000),
    "context": Whole(0, 1000),
    "nbest": Whole(1, MAX_HYPOTHESES),
    "beam": Whole(1, MAX_HYPOTHESES),
}
_MORE_BOUNDS: Mapping[str, Bound] = {
    "context_from": OneOf(CONTEXT_SOURCES),
    "long": OneOf(LONG_SENTENCES),
    "formality": OneOf(FORMALITIES),
    "paths": Whole(1, MAX_HYPOTHESES),
    "rolling": Truth(),
    "protect": Truth(),
    "alpha": Number(0, 1e6),
}

Defaults = TypeVar("Defaults", bound="DecodingDefaults")


def option_field(
    default: Any,
    text: str,
    kind: type | None = None,
    choices: Iterable[str] | Callable[[], Iterable[str]] = (),
    stored: bool = True,
) -> Any:
    """A field that is a flag too: its help, its type where the default tells none, and what it may be.

    `stored` options have defaults in a bundle.
    """
    metadata = {"help": text, "type": kind or type(default), "choices": choices, "stored": stored}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class DecodingDefaults:
    """How a bundle is used unless its user says otherwise. Weights not given are the objective's own."""

    search: str = option_field(
        "rerank",
        "how to search: " + ", ".join(f"{name} ({kind.help})" for name, kind in SEARCHES.items()),
        choices=tuple(SEARCHES),
    )
    objective: str = option_field("c-score", "what is maximised: {objectives}", choices=lambda: OBJECTIVES)
    weight: Mapping[str, float] = option_field(
        None,
        "weights of the objective by name, as lm=0.5; a bare number is the D-LM's "
        "(c-score 1, the fusions 0.1 unless given)",
        str,
    )
    context: int = option_field(3, "number of target sentences before the current one that count as context")
    temperature: float = option_field(1.0, "softmax temperature T of the D-LM; above 1 weakens it")
    nbest: int = option_field(20, "number of hypotheses per sentence (B) for rerank and lattice")
    beam: int = option_field(
        4, f"beam size of {option('search', 'beam')}, sentence, doc-nmt, 2-to-2 and repair"
    )

    def __post_init__(self) -> None:
        weights = named_weights(self.weight)
        known = OBJECTIVES.get(self.objective) if isinstance(self.objective, str) else None
        if isinstance(self.weight, int | float) and known is not None and not known.weights:
            weights = {}  # in earlier bundles a number stands beside objectives that never looked at it
        object.__setattr__(self, "weight", weights)
        wrong = misfits(self, _BOUNDS) + weight_misfits(self.weight)
        if wrong:
            raise CadecError("invalid decoding options: " + "; ".join(wrong))
        objective(self.objective, self.weight)  # refuses weights that it does not have


@dataclass(frozen=True)
class TranslationOptions(DecodingDefaults):
    """How to choose a translation: what a bundle has defaults for, and more. Defaults are the paper's."""

    rolling: bool = option_field(
        False, "keep all context that the D-LM has positions for, not only the last few", stored=False
    )
    alpha: float = option_field(0.0, "add-alpha smoothing of the D-LM's probabilities", stored=False)
    paths: int = option_field(5, f"number of paths (B′) of {option('search', 'lattice')}", stored=False)
    context_from: str = option_field(
        "chosen",
        f"with {option('search', 'beam')}: take the context from chosen translations, or from "
        "sentence-level ones "
        "(faster, approximate)",
        choices=CONTEXT_SOURCES,
        stored=False,
    )
    long: str = option_field(
        "split",
        "what to do with sentences too long for the model: split or refuse",
        choices=LONG_SENTENCES,
        stored=False,
    )

    protect: bool = option_field(
        True,
        "keep URLs, numbers, code, placeholders and tags as they are, and never choose a broken hypothesis "
        "where there is a sound one",
        stored=False,
    )
    formality: str = option_field(
        AUTO,
        f"how people are addressed: auto (as the context has it), formal or informal; the latter two mean "
        f"T = {FORMALITY_TEMPERATURE:g} unless T is given",
        choices=FORMALITIES,
        stored=False,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if wrong := misfits(self, _MORE_BOUNDS):
            told = "; ".join(wrong).replace("context_from", "context-from")
            raise CadecError(told, "0 is no smoothing" if told.startswith("alpha") else "")
        if search_kind(self.search).needs == STEPS and not self.weighted_objective.uses(NMT):
            raise CadecError(
                f"{option('search', self.search)} can't maximise {self.objective}, which does not "
                "look at the source",
                "rerank can: its hypotheses are the S-NMT's",
            )
        if search_kind(self.search).needs == STEPS and not self.weighted_objective.by_token:
            raise CadecError(
                f"{option('search', self.search)} can't maximise {self.objective}, which scores whole "
                "sentences",
                "rerank and lattice can",
            )
        if self.formality != AUTO and not self.reads_context:
            raise UsageError(
                f"{option('formality', self.formality)} is a matter of context, and "
                f"{self.without_context} reads none",
                "rerank, lattice and beam with an objective such as c-score do",
            )

    @property
    def reads_context(self) -> bool:
        """Tell whether what stands before, in the target language, makes a difference."""
        return self.weighted_objective.uses(CONDITIONAL)

    @property
    def without_context(self) -> str:
        """Which of the options it is that reads no context."""
        kind = search_kind(self.search)
        return (
            f"{option('objective', self.objective)}"
            if kind.reads_context
            else f"{option('search', self.search)}"
        )

    @property
    def weighted_objective(self) -> Objective:
        """The objective with its weights; without context, that is the S-NMT's own score."""
        if not search_kind(self.search).reads_context:
            return objective("sentence")
        return objective(self.objective, self.weight)

    @property
    def policy(self) -> ContextPolicy:
        """What is read as context; a stepped search reads the last few sentences in any case."""
        return ContextPolicy(self.context, self.rolling and search_kind(self.search).needs != STEPS)

    @property
    def scoring_options(self) -> ScoringOptions:
        """How the D-LM's probabilities are read."""
        return ScoringOptions((self.temperature,), self.alpha)

    @property
    def list_size(self) -> int:
        """How many hypotheses a list has, if the search is to choose from lists."""
        return int(getattr(self, search_kind(self.search).size))


@dataclass(frozen=True)
class ScoringOptions:
    """How a D-LM's probabilities are read: at which temperatures, all in one pass, and how smoothed."""

    temperatures: tuple[float, ...] = (1.0,)
    alpha: float = 0.0

    def __post_init__(self) -> None:
        if not self.temperatures or not all(0 < temperature < math.inf for temperature in self.temperatures):
            raise UsageError("a temperature must be above 0", "1 is none; the paper's beam used 8")
        if not 0 <= self.alpha < math.inf:
            raise UsageError("alpha must not be negative", "0 is no smoothing")


@as_usage_error()
def with_flags(options: Defaults, flags: Mapping[str, Any]) -> Defaults:
    """Options with what was asked for; of weights, those not named stay, unless the objective is another.

    Whoever asks for a formality means it: the temperature then is no higher than it takes to be heard.
    """
    known = [item.name for item in dataclasses.fields(options)]
    unknown = [name for name in flags if name not in known]
    if unknown:
        raise CadecError(f"no option {', '.join(unknown)}", f"there are {', '.join(known)}")
    changed = dict(flags)
    kept = options.weight if changed.get("objective", options.objective) == options.objective else {}
    changed["weight"] = {**kept, **named_weights(changed.get("weight"))}
    if changed.get("formality", AUTO) != AUTO:
        changed.setdefault("temperature", min(FORMALITY_TEMPERATURE, options.temperature))
    return dataclasses.replace(options, **changed)


def named_weights(given: Any) -> dict[str, float]:
    """Weights by name: `lm=0.5,back=1`, a number (the D-LM's), a mapping, or nothing."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return dict(given)
    if not isinstance(given, str):
        return {"lm": given}
    weights: dict[str, float] = {}
    for part in given.split(","):
        name, separator, value = part.rpartition("=")
        try:
            weights[name.strip() if separator else "lm"] = float(value)
        except ValueError:
            raise CadecError(f"no weight: {part!r}", "give a number, or names with numbers: lm=0.5") from None
    return weights
