"""The settings of a tuning run: a bundle's present one, and those that are tried beside it.

For the C-score, temperature and weight are tried together: a higher weight at a higher temperature is a
different trade-off from a temperature alone. This module knows nothing of models or figures.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from cadec_cli.errors import CadecError, option
from cadec_cli.method import objectives
from cadec_cli.method.options import DecodingDefaults

# Tried by default: for the C-score, every weight at every temperature; for the fusions, which the paper does
# not T-scale, the weights alone.
TEMPERATURES: tuple[float, ...] = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
WEIGHTS = (0.5, 1.0, 2.0, 4.0)
FUSION_WEIGHTS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)


@dataclass(frozen=True)
class Setting:
    """A temperature and the D-LM's weight, or an objective's weights by name."""

    temperature: float
    weight: float = 1.0
    named: tuple[tuple[str, float], ...] = ()  # if there are several

    def __str__(self) -> str:
        """The setting as messages show it."""
        weights = ", ".join(f"{name} {value:g}" for name, value in self.named) or f"weight {self.weight:g}"
        return f"T = {self.temperature:g}, {weights}"

    @property
    def weights(self) -> dict[str, float]:
        """All weights by name."""
        return dict(self.named) or {"lm": self.weight}

    @property
    def strength(self) -> tuple[float, float]:
        """The key to sort settings by the influence of the D-LM.

        A temperature divides the logits, so roughly weight / T counts; among equals, the larger weight.
        """
        return (self.weight / self.temperature, self.weight)

    @property
    def flags(self) -> tuple[str, ...]:
        """The setting as flags of `translate` and `convert`."""
        weights = ",".join(f"{name}={value:g}" for name, value in self.named) or f"{self.weight:g}"
        return "--temperature", f"{self.temperature:g}", "--weight", weights


@dataclass(frozen=True)
class Trial:
    """The settings to try for an objective; the present setting is always among them."""

    objective: str
    present: Setting
    settings: tuple[Setting, ...]
    together: bool = False  # several weights, tuned one after the other from the first setting on

    @property
    def temperatures(self) -> tuple[float, ...]:
        """All temperatures at which the D-LM is read."""
        return tuple(dict.fromkeys(setting.temperature for setting in self.settings))


def trial_of(
    defaults: DecodingDefaults,
    name: str,
    temperatures: Sequence[float] = (),
    weights: Sequence[float] = (),
    protocol: str = "best",
    fixed: float | None = None,
) -> Trial:
    """The settings to try for an objective; given temperatures or weights replace the default ones.

    For the C-score, if only one of the two is given, the other stays as it is in the bundle. `fixed` is the
    only temperature at which the D-LM can be read, if there is one: it replaces the default temperatures.
    """
    formula = objectives.objective(name)
    if not formula.weights:
        tunable = [name for name, known in objectives.OBJECTIVES.items() if known.weights]
        raise CadecError(f"{name} has nothing to tune", f"these have: {', '.join(tunable)}")
    present = present_setting(defaults, name)
    usual, several = 1.0, TEMPERATURES
    if fixed is not None:
        usual, several = fixed, (fixed,)
        present = dataclasses.replace(present, temperature=fixed)
    if present.named:
        if weights or protocol != "best" or len(temperatures) > 1:
            raise CadecError(
                f"the weights of {name} are found together, by BLEU and at one temperature",
                f"leave out {option('weight')} and {option('protocol')}, and give one "
                f"{option('temperature')} at most",
            )
        start = dataclasses.replace(present, temperature=(*temperatures, usual)[0])
        return Trial(name, present, tuple(dict.fromkeys((start, present))), together=True)
    if name != "c-score":
        temperatures, weights = temperatures or (usual,), weights or FUSION_WEIGHTS
    elif not temperatures and not weights:
        temperatures, weights = several, WEIGHTS
    tried = [
        Setting(temperature, weight)
        for weight in weights or (present.weight,)
        for temperature in temperatures or (present.temperature,)
    ]
    first = () if present in tried else (present,)
    return Trial(name, present, tuple(dict.fromkeys((*first, *tried))))


def present_setting(defaults: DecodingDefaults, name: str) -> Setting:
    """The setting an objective has now; its weights are the bundle's if it is the bundle's objective."""
    own = defaults.weight if name == defaults.objective else {}
    weights = objectives.objective(name, own).weights
    if weights.keys() == {"lm"}:
        return Setting(defaults.temperature, weights["lm"])
    return Setting(defaults.temperature, named=tuple(weights.items()))


def changed_defaults(
    defaults: DecodingDefaults, name: str, setting: Setting, context: int | None, nbest: int | None
) -> DecodingDefaults:
    """A bundle's defaults with the setting found, and with the objective, context and n-best of the run."""
    stays = name == defaults.objective and setting == present_setting(defaults, name)
    return dataclasses.replace(
        defaults,
        objective=name,
        weight=defaults.weight if stays else setting.weights,
        temperature=setting.temperature,
        context=defaults.context if context is None else context,
        nbest=nbest or defaults.nbest,
    )
