"""How translations are searched for and chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from cadec_cli.errors import CadecError
from cadec_cli.method.objectives import objective

SEARCHES = ("rerank", "lattice", "beam", "sentence")
OBJECTIVES = ("sentence", "c-score", "shallow-fusion", "conditional-shallow-fusion", "pmi", "conditional")


def option(default: Any, text: str, kind: type | None = None) -> Any:
    """A field that is a flag of the command line too: its help, and its type where the default tells none."""
    return field(default=default, metadata={"help": text, "type": kind or type(default)})


@dataclass(frozen=True)
class DecodingDefaults:
    """How a bundle is used unless its user says otherwise. A weight of None is the objective's own."""

    search: str = option("rerank", "rerank, lattice, beam, or sentence (no context)")
    objective: str = option("c-score", f"what is maximised: {', '.join(OBJECTIVES)}")
    weight: float | None = option(None, "of the D-LM's part in the objective (c-score 1, fusions 0.1)", float)
    context: int = option(3, "target sentences before the current one that count as context")
    temperature: float = option(1.0, "T: flattens the D-LM's probabilities, 1 is as they are")
    nbest: int = option(20, "B: hypotheses a sentence for rerank and lattice")
    beam: int = option(4, "beam of --search beam and sentence")

    def __post_init__(self) -> None:
        wrong = []
        if self.search not in SEARCHES:
            wrong.append(f"search must be one of {', '.join(SEARCHES)}, not {self.search!r}")
        if self.objective not in OBJECTIVES:
            wrong.append(f"objective must be one of {', '.join(OBJECTIVES)}, not {self.objective!r}")
        if self.weight is not None and not (_is_number(self.weight) and 0 <= self.weight <= 1000):
            wrong.append(f"weight must be from 0 to 1000, not {self.weight!r}")
        if not (_is_number(self.temperature) and 0.01 <= self.temperature <= 1000):
            wrong.append(f"temperature must be from 0.01 to 1000, not {self.temperature!r}")
        for name, least in (("context", 0), ("nbest", 1), ("beam", 1)):
            value = getattr(self, name)
            if type(value) is not int or value < least:
                wrong.append(f"{name} must be a whole number from {least}, not {value!r}")
        if wrong:
            raise CadecError("can't decode like this: " + "; ".join(wrong))


@dataclass(frozen=True)
class TranslationOptions(DecodingDefaults):
    """How to choose a translation: what a bundle has defaults for, and more. Defaults are the paper's."""

    rolling: bool = option(False, "keep all context that the D-LM has positions for, instead of the last few")
    alpha: float = option(0.0, "add-alpha smoothing of the D-LM's probabilities")
    paths: int = option(5, "B′: paths of --search lattice")
    context_from: str = option("chosen", "beam: context is what was chosen, or the sentence level's (fast)")
    long: str = option("split", "a sentence too long for the model: split or refuse")

    @property
    def rolls(self) -> bool:
        """Whether the context rolls; the C-aware beam reads the last few sentences in any case."""
        return self.rolling and self.search != "beam"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, known in (("context_from", ("chosen", "sentence")), ("long", ("split", "refuse"))):
            if getattr(self, name) not in known:
                raise CadecError(f"{name.replace('_', '-')} must be one of {', '.join(known)}")
        if self.paths < 1:
            raise CadecError("paths must be at least 1")
        if self.search == "beam" and not objective(self.objective).uses_translation:
            raise CadecError(
                f"--search beam can't maximise {self.objective}, which does not look at the source",
                "rerank can: its hypotheses are the S-NMT's",
            )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
