"""Options of a translation: how hypotheses are searched for, scored and chosen.

`DecodingDefaults` are the options that a bundle stores defaults for; `TranslationOptions` are all of them.
The fields are also keys of files and flags of commands, so their help texts are written here, once.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fsdecode
from typing import Any, TypeVar

from cadec_cli.errors import CadecError, UsageError, as_usage_error, option
from cadec_cli.method.context import ContextPolicy
from cadec_cli.method.objectives import (
    FIT,
    GLOSSARY,
    MANNER,
    NAMES,
    NMT,
    OBJECTIVES,
    OPTIONAL,
    PAIRS,
    READINGS,
    TARGET,
    TERM_WEIGHTS,
    Objective,
    objective,
    weight_misfits,
)
from cadec_cli.method.searches import LISTS, SEARCHES, STEPS, search_kind
from cadec_cli.method.terms import parse_term_options, rows_of
from cadec_cli.validation import Bound, Number, OneOf, Truth, Whole, misfits

CONTEXT_SOURCES = ("chosen", "sentence")
LONG_SENTENCES = ("split", "refuse")
AUTO = "auto"
FORMALITIES = (AUTO, "formal", "informal")
# With a formality, the beam's T is at most this: at higher temperatures the D-LM is too weak to enforce it.
FORMALITY_TEMPERATURE = 1.0

# The most hypotheses, beams and paths; memory and time grow with them.
MAX_HYPOTHESES = 1000

# The most earlier sentences that are read because they share words, and how many of a translation memory are
# read unless the options say otherwise.
MAX_RETRIEVED, FROM_MEMORY = 100, 2

# The allowed values, in files and on the command line.
_BOUNDS: Mapping[str, Bound] = {
    "search": OneOf(SEARCHES),
    "objective": OneOf(OBJECTIVES),
    "temperature": Number(0.01, 1000),
    "context": Whole(0, 1000),
    "nbest": Whole(1, MAX_HYPOTHESES),
    "beam": Whole(1, MAX_HYPOTHESES),
    "reads": OneOf(READINGS),
    "retrieve": Whole(0, MAX_RETRIEVED),
}
_MORE_BOUNDS: Mapping[str, Bound] = {
    "context_from": OneOf(CONTEXT_SOURCES),
    "long": OneOf(LONG_SENTENCES),
    "formality": OneOf(FORMALITIES),
    "paths": Whole(1, MAX_HYPOTHESES),
    "rolling": Truth(),
    "names": Truth(),
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
    rare: bool = False,
    metavar: str | None = None,
) -> Any:
    """A field that is also a flag, with its help and its choices; `kind` is its type if not the default's.

    `stored` options have defaults in a bundle. `rare` ones are listed apart. `metavar` is what help shows in
    place of the value.
    """
    metadata = {
        "help": text,
        "type": kind or type(default),
        "choices": choices,
        "stored": stored,
        "rare": rare,
        "metavar": metavar,
    }
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class DecodingDefaults:
    """The options that a bundle stores defaults for. Weights that are not given are the objective's own."""

    search: str = option_field(
        "rerank",
        "search method: " + ", ".join(f"{name} ({kind.help})" for name, kind in SEARCHES.items()),
        choices=tuple(SEARCHES),
    )
    objective: str = option_field(
        "c-score", "objective to maximise: {objectives}", choices=lambda: OBJECTIVES
    )
    weight: Mapping[str, float] = option_field(
        None,
        "weights of the objective by name, such as lm=0.5; a bare number is the D-LM's "
        "(by default 1 for c-score, 0.1 for the fusions)",
        str,
    )
    context: int = option_field(3, "number of preceding target sentences to read as context")
    temperature: float = option_field(1.0, "softmax temperature T of the D-LM; values above 1 weaken it")
    nbest: int = option_field(20, "number of hypotheses per sentence (B) for rerank and lattice")
    beam: int = option_field(
        4, f"beam size of {option('search', 'beam')}, sentence, doc-nmt, 2-to-2 and repair"
    )
    reads: str = option_field(
        TARGET,
        "what a pretrained D-LM reads: target (the translations before), pairs (these with their sources, "
        "and the current source), or both (log p of both added, the pairs' times the weight pairs)",
        choices=READINGS,
        rare=True,
    )
    retrieve: int = option_field(
        0,
        "number of earlier sentences to read, besides the last few, because they share names or other rare "
        "source words with the current one; at most so many",
    )

    def __post_init__(self) -> None:
        weights = named_weights(self.weight)
        known = OBJECTIVES.get(self.objective) if isinstance(self.objective, str) else None
        if isinstance(self.weight, int | float) and known is not None and not known.weights:
            weights = {}  # earlier bundles may have a number for an objective without weights
        object.__setattr__(self, "weight", weights)
        wrong = misfits(self, _BOUNDS) + weight_misfits(self.weight)
        if wrong:
            raise CadecError("invalid decoding options: " + "; ".join(wrong))
        # raises for weights that it does not have; a glossary's, names' and a manner's can be given to all
        objective(self.objective, _of_objective(self.weight), self.reads)


@dataclass(frozen=True)
class TranslationOptions(DecodingDefaults):
    """All options of a translation. The defaults are the paper's."""

    rolling: bool = option_field(
        False,
        "read as much context as fits into the D-LM, not only the last few sentences",
        stored=False,
        rare=True,
    )
    alpha: float = option_field(
        0.0, "add-alpha smoothing of the D-LM's probabilities", stored=False, rare=True
    )
    paths: int = option_field(5, f"number of paths (B′) of {option('search', 'lattice')}", stored=False)
    context_from: str = option_field(
        "chosen",
        f"with {option('search', 'beam')}: take the context from the chosen translations, or from the "
        "sentence-level ones (faster, approximate)",
        choices=CONTEXT_SOURCES,
        stored=False,
        rare=True,
    )
    long: str = option_field(
        "split",
        "how to treat sentences that are too long for the model: split or refuse them",
        choices=LONG_SENTENCES,
        stored=False,
        rare=True,
    )
    term: Mapping[str, str] = option_field(
        None,
        "option of a term that an installed package adds; can be repeated. Installed: {term_options}",
        list[str],
        stored=False,
        rare=True,
        metavar="TERM.OPTION=VALUE",
    )
    glossary: Sequence[str] = option_field(
        None,
        "file of terms and their translations (term, tab, translation; or CSV, TBX), which are respected "
        "wherever possible; can be repeated",
        list[str],
        stored=False,
        metavar="FILE",
    )
    names: bool = option_field(
        False,
        "find names that recur in a document, and keep to the rendering that most of it supports (rerank, "
        "lattice and sentence)",
        stored=False,
    )
    memory: Sequence[str] = option_field(
        None,
        "earlier translations that sentences are retrieved from: a translation memory (TMX, PO, XLIFF; or "
        "source, tab, target), or a text and its translation (SOURCE=TARGET, by lines or cues); can be "
        "repeated; "
        f"{FROM_MEMORY} sentences are retrieved unless {option('retrieve')} says otherwise",
        list[str],
        stored=False,
        metavar="FILE",
    )
    protect: bool = option_field(
        True,
        "keep URLs, numbers, code, placeholders and tags unchanged, and never choose a broken hypothesis "
        "if there is a sound one",
        stored=False,
    )
    formality: str = option_field(
        AUTO,
        f"form of address: auto (as in the context), formal or informal; with {option('search', 'beam')} the "
        f"latter two set T = {FORMALITY_TEMPERATURE:g} unless T is given",
        choices=FORMALITIES,
        stored=False,
    )

    cast: str = option_field(
        "",
        "file of the people who speak: name, gender (f or m), and whom they address formally or informally",
        str,
        stored=False,
        metavar="FILE",
    )
    about: str = option_field(
        "",
        "file about the text, such as a synopsis, in the target language: context of every sentence",
        str,
        stored=False,
        rare=True,
        metavar="FILE",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "cast", fsdecode(self.cast or ""))
        object.__setattr__(self, "about", fsdecode(self.about or ""))
        object.__setattr__(self, "term", parse_term_options(self.term))
        object.__setattr__(self, "glossary", glossary_sources(self.glossary))
        object.__setattr__(self, "memory", memory_sources(self.memory))
        if wrong := misfits(self, _MORE_BOUNDS):
            message = "; ".join(wrong).replace("context_from", "context-from")
            raise CadecError(message, "0 is no smoothing" if message.startswith("alpha") else "")
        for name in self.term:
            if not self.weighted_objective.uses(name.partition(".")[0]):
                raise UsageError(
                    f"{self.weighted_objective.name} does not use {name.partition('.')[0]}, so "
                    f"{option('term', name)} has no effect",
                    f"choose an {option('objective')} that uses it",
                )
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
        if self.glossary and search_kind(self.search).needs != LISTS:
            raise UsageError(
                f"{option('search', self.search)} can't respect a glossary",
                "rerank, lattice and sentence can, which choose from n-best lists",
            )
        if self.rolling and self.retrieve:
            raise UsageError(
                f"{option('rolling')} can't be combined with {option('retrieve', str(self.retrieve))}",
                "a rolling window reads all that fits anyway",
            )
        if self.memory and not self.retrieve:
            raise UsageError(
                f"{option('memory', self.memory[0])} has no effect with {option('retrieve', '0')}",
                "sentences of a memory are read only if they are retrieved",
            )
        if self.memory and not self.reads_context:
            raise UsageError(
                f"{option('memory', self.memory[0])} needs context, and {self.without_context} reads none",
                "rerank, lattice and beam with an objective such as c-score do",
            )
        if self.cast and not self.asks_for_manner:
            raise UsageError(
                f"{option('search', self.search)} can't follow a cast",
                "rerank, lattice and sentence can, which choose from n-best lists",
            )
        if self.about and not self.reads_context:
            raise UsageError(
                f"{option('about')} needs context, and {self.without_context} reads none",
                "rerank, lattice and beam with an objective such as c-score do",
            )
        if self.formality != AUTO and not self.reads_context and not self.asks_for_manner:
            raise UsageError(
                f"{option('formality', self.formality)} needs lists or context, and {self.without_context} "
                "has neither",
                "rerank, lattice and sentence choose from lists; beam reads context",
            )

    @property
    def reads_context(self) -> bool:
        """Tell whether the translations of the preceding sentences matter."""
        chosen = self.weighted_objective
        return chosen.reads_context or any(term.reads_context for term in rows_of(chosen))

    @property
    def without_context(self) -> str:
        """The option that prevents context from being read, for messages."""
        if search_kind(self.search).reads_context:
            return option("objective", self.objective)
        return option("search", self.search)

    @property
    def weighted_objective(self) -> Objective:
        """The objective with its weights; for a search that reads no context, the S-NMT's own score."""
        if not search_kind(self.search).reads_context:
            return objective("sentence")
        return objective(self.objective, _of_objective(self.weight), self.reads)

    @property
    def glossary_weight(self) -> float:
        """The reward for a term of the glossary that a hypothesis respects."""
        return self.weight.get(GLOSSARY, TERM_WEIGHTS[GLOSSARY])

    @property
    def names_weight(self) -> float:
        """The reward for a name that a hypothesis renders as the rest of the document does."""
        return self.weight.get(NAMES, TERM_WEIGHTS[NAMES])

    @property
    def finds_names(self) -> bool:
        """Tell whether names are found, and sentences held to their renderings: this needs lists."""
        return self.names and search_kind(self.search).needs == LISTS

    @property
    def manner_weight(self) -> float:
        """The weight of the form of address, and of the speaker's gender, that is asked for."""
        return self.weight.get(MANNER, TERM_WEIGHTS[MANNER])

    @property
    def asks_for_manner(self) -> bool:
        """Tell whether sentences are to be said in a certain way, and searched for in lists."""
        return bool(self.formality != AUTO or self.cast) and search_kind(self.search).needs == LISTS

    @property
    def policy(self) -> ContextPolicy:
        """Which context is read. A stepwise search always reads the last few sentences."""
        rolling = self.rolling and search_kind(self.search).needs != STEPS
        return ContextPolicy(self.context, rolling, retrieve=self.retrieve)

    @property
    def fits(self) -> bool:
        """Tell whether it matters how many characters the cues of a sentence have room for."""
        return self.weighted_objective.uses(FIT)

    @property
    def scoring_options(self) -> ScoringOptions:
        """How the D-LM's probabilities are read."""
        return ScoringOptions((self.temperature,), self.alpha)

    @property
    def list_size(self) -> int:
        """How many hypotheses the search needs per sentence, if it chooses from lists."""
        return int(getattr(self, search_kind(self.search).size))


@dataclass(frozen=True)
class ScoringOptions:
    """How a D-LM's probabilities are read: at which temperatures, in one pass, and with what smoothing."""

    temperatures: tuple[float, ...] = (1.0,)
    alpha: float = 0.0

    def __post_init__(self) -> None:
        if not self.temperatures or not all(0 < temperature < math.inf for temperature in self.temperatures):
            raise UsageError("a temperature must be above 0", "1 is none; the paper's beam used 8")
        if not 0 <= self.alpha < math.inf:
            raise UsageError("alpha must not be negative", "0 is no smoothing")


@as_usage_error()
def with_flags(options: Defaults, flags: Mapping[str, Any]) -> Defaults:
    """Change the options that `flags` names.

    Weights and options of terms that are not named stay, unless the objective changes; the weight of pairs,
    unless what is read changes; weights of added terms, unless the search is the beam, which scores tokens.
    With the beam, a formality lowers the temperature to `FORMALITY_TEMPERATURE`, unless one is given. From a
    memory `FROM_MEMORY` sentences are retrieved, and with a rolling window none, unless a number is given.
    """
    known = [item.name for item in dataclasses.fields(options)]
    unknown = [name for name in flags if name not in known]
    if unknown:
        raise CadecError(f"no option {', '.join(unknown)}", f"there are {', '.join(known)}")
    changed = dict(flags)
    same = changed.get("objective", options.objective) == options.objective
    kept = dict(options.weight) if same else {}
    if changed.get("reads", options.reads) != options.reads:
        kept.pop(PAIRS, None)
    search = changed.get("search", options.search)
    by_steps = search in SEARCHES and search_kind(search).needs == STEPS
    if by_steps:
        kept = {name: weight for name, weight in kept.items() if name not in OPTIONAL}
    changed["weight"] = {**kept, **named_weights(changed.get("weight"))}
    if isinstance(options, TranslationOptions):
        changed["term"] = {**(options.term if same else {}), **parse_term_options(changed.get("term"))}
    if changed.get("formality", AUTO) != AUTO and by_steps:
        changed.setdefault("temperature", min(FORMALITY_TEMPERATURE, options.temperature))
    if changed.get("rolling"):
        changed.setdefault("retrieve", 0)
    elif changed.get("memory"):
        changed.setdefault("retrieve", options.retrieve or FROM_MEMORY)
    return dataclasses.replace(options, **changed)


def options_as_data(options: DecodingDefaults) -> dict[str, Any]:
    """Options as plain data. What earlier versions did not know is left out while it is as it always was.

    That is what the D-LM reads, if it is the target, names that are not looked for, and an absent glossary,
    memory, cast or text about the text.
    """
    usual = {
        **{"reads": TARGET, "retrieve": 0, "glossary": (), "memory": (), "names": False},
        **{"cast": "", "about": ""},
    }
    data = dataclasses.asdict(options)
    return {name: value for name, value in data.items() if name not in usual or value != usual[name]}


def options_record(options: TranslationOptions) -> dict[str, Any]:
    """Options as plain data, for files. Options of terms are left out if there are none."""
    return {name: value for name, value in options_as_data(options).items() if name != "term" or value}


def glossary_sources(given: Any) -> tuple[str, ...]:
    """Glossaries as `text.glossary.reader` reads them: of files by name, and of mappings of terms."""
    if given is None:
        return ()
    return tuple(map(_glossary_source, [given] if isinstance(given, str | PathLike | Mapping) else given))


def _glossary_source(given: Any) -> str:
    if not isinstance(given, Mapping):
        return fsdecode(given)
    from cadec_cli.text.glossary.reader import glossary_lines  # --help should not wait for it

    return glossary_lines(given)


def memory_sources(given: Any) -> tuple[str, ...]:
    """Memories as `text.translation_memory` reads them: files by name, and pairs of sentences."""
    if given is None:
        return ()
    if isinstance(given, str | PathLike):
        return (fsdecode(given),)
    given = list(given)
    if all(isinstance(one, str | PathLike) for one in given):
        return tuple(map(fsdecode, given))
    from cadec_cli.text.translation_memory import memory_lines  # --help should not wait for it

    return (memory_lines(given),)


def _of_objective(weights: Mapping[str, float]) -> dict[str, float]:
    """Weights without those that a glossary and names have with any objective."""
    return {name: weight for name, weight in weights.items() if name not in TERM_WEIGHTS}


def named_weights(given: Any) -> dict[str, float]:
    """Weights by name, from `lm=0.5,back=1`, a number (the D-LM's weight), a mapping, or None."""
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
            raise CadecError(
                f"{part!r} is not a weight", "give a number, or names with numbers: lm=0.5"
            ) from None
    return weights
