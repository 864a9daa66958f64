"""How translations are searched for and chosen."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cadec_cli.bundle_manifest import DecodingDefaults, option
from cadec_cli.decoding.objectives import objective
from cadec_cli.errors import CadecError

if TYPE_CHECKING:
    from cadec_cli.bundle import Bundle


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


def default_options(bundle: Bundle) -> TranslationOptions:
    """What the bundle's makers found best."""
    options = TranslationOptions(**dataclasses.asdict(bundle.defaults))
    return options if bundle.has_lm else dataclasses.replace(options, search="sentence")
