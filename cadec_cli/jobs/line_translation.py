"""Lines translated by a bundle's S-NMT alone: back, or there and back again; what makes training data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cadec_cli.engines.protocols import Sampling
from cadec_cli.errors import CadecError
from cadec_cli.jobs.model_request import ModelRequest

if TYPE_CHECKING:
    from cadec_cli.bundle.load import LoadedModels
    from cadec_cli.engines.protocols import TranslationModel

Translate = Callable[[Sequence[str]], list[str]]


@dataclass(frozen=True)
class LineTranslation:
    """How lines are translated: into the other language, or there and back again."""

    round_trip: bool
    sample: bool
    beam: int
    seed: int
    temperature: float

    def by(self, models: LoadedModels, done: int = 0) -> Translate:
        """What translates lines after the first `done` of them; a round trip needs a backward model."""
        if not self.round_trip:
            return self._translate_with(models.translation, done)
        reverse = models.backward
        if reverse is None:
            raise CadecError(
                f"{models.bundle.directory} has no backward model, which begins the round trip",
                "add one with `cadec convert BUNDLE --back REVERSE`, a bundle of the other direction",
            )
        there, back = self._translate_with(reverse, done), _sampling(models.translation).best(self.beam)
        return lambda texts: back(there(texts))

    def _translate_with(self, model: TranslationModel, done: int) -> Translate:
        able = _sampling(model)
        return able.sampler(self.seed + done, self.temperature) if self.sample else able.best(self.beam)


def _sampling(model: TranslationModel) -> Sampling:
    if not isinstance(model, Sampling):
        raise CadecError("the engine of this translation model can't make training data")
    return model


def start_line_worker(request: ModelRequest, how: LineTranslation) -> Translate:
    """Load the models in a worker process; what comes back translates lines."""
    return how.by(request.open())
