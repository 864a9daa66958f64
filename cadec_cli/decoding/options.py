"""How translations are searched for and chosen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cadec_cli.decoding.objectives import OBJECTIVES, objective
from cadec_cli.errors import CadecError

if TYPE_CHECKING:
    from cadec_cli.bundle import Bundle


def _option(default: Any, text: str, kind: type | None = None) -> Any:
    return field(default=default, metadata={"help": text, "type": kind or type(default)})


SEARCHES = ("rerank", "lattice", "beam", "sentence")


@dataclass(frozen=True)
class TranslationOptions:
    """How to choose a translation; the defaults are the paper's."""

    search: str = _option("rerank", "rerank, lattice, beam, or sentence (no context)")
    objective: str = _option("c-score", f"what is maximised: {', '.join(OBJECTIVES)}")
    weight: float | None = _option(
        None, "of the D-LM's part in the objective (c-score 1, fusions 0.1)", float
    )
    context: int = _option(3, "target sentences before the current one that count as context")
    rolling: bool = _option(
        False, "keep all context that the D-LM has positions for, instead of the last few"
    )
    temperature: float = _option(1.0, "T: flattens the D-LM's probabilities, 1 is as they are")
    alpha: float = _option(0.0, "add-alpha smoothing of the D-LM's probabilities")
    nbest: int = _option(20, "B: hypotheses a sentence for rerank and lattice")
    beam: int = _option(4, "beam of --search beam and sentence")
    paths: int = _option(5, "B′: paths of --search lattice")
    context_from: str = _option("chosen", "beam: context is what was chosen, or the sentence level's (fast)")
    long: str = _option("split", "a sentence too long for the model: split or refuse")

    def __post_init__(self) -> None:
        choices = {
            "search": SEARCHES,
            "context_from": ("chosen", "sentence"),
            "long": ("split", "refuse"),
        }
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise CadecError(f"{name.replace('_', '-')} must be one of {', '.join(known)}")
        for name in ("nbest", "beam", "paths"):
            if getattr(self, name) < 1:
                raise CadecError(f"{name} must be at least 1")
        if self.context < 0:
            raise CadecError("context can't be negative", "0 is none; the paper's is 3")
        if not self.temperature > 0:
            raise CadecError("the temperature must be above 0", "1 is none")
        chosen = objective(self.objective, self.weight)
        if self.search == "beam" and not chosen.uses_translation:
            raise CadecError(
                f"--search beam can't maximise {self.objective}, which does not look at the source",
                "rerank can: its hypotheses are the S-NMT's",
            )


def default_options(bundle: Bundle) -> TranslationOptions:
    """What the bundle's makers found best."""
    defaults = bundle.defaults
    return TranslationOptions(
        search=defaults.search if bundle.has_lm else "sentence",
        objective=defaults.objective,
        weight=defaults.weight,
        context=defaults.context,
        temperature=defaults.temperature,
        nbest=defaults.nbest,
        beam=defaults.beam,
    )
