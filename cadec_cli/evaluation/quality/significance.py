"""Paired bootstrap resampling (Koehn 2004) over sufficient statistics: nothing is counted twice.

A sample draws as many units (sentences, or whole documents) as there are, with replacement. All systems and
all measures see the same samples, so a difference is that of two systems on the same text.

p is two-sided. The differences Δ* of the samples, moved so that their mean is 0, stand for what chance does
to two equal systems; p is how often that is as large as what was seen:

    p = (#{ |Δ* − mean Δ*| ≥ |Δ| } + 1) / (samples + 1)

Fewer than FEWEST units are not tested: there is no p.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from cadec_cli.arrays import Floats, Ints

# Units from which there is a test. An exact paired test flips the sign of each unit's difference: of n units
# there are 2ⁿ ways, so its smallest two-sided p is 2/2ⁿ, which is below 0.05 from n = 6 on (0.031; of 5 it is
# 0.0625). With fewer, no outcome whatever can be significant, and a small p of the bootstrap comes from
# how few different samples there are: of two units, three.
FEWEST = 6
# Numbers drawn that exist at a time.
_DRAWN = 8_000_000


@dataclass(frozen=True)
class Resampling:
    """How samples are drawn. `units` has the unit of every sentence, numbered from 0."""

    units: Ints
    samples: int = 1000
    seed: int = 1

    @property
    def count(self) -> int:
        """How many units there are."""
        return int(self.units.max()) + 1

    def sums(self, statistics: Floats) -> Floats:
        """Sum the statistics (sentences, n) over every sample: (samples, n)."""
        count = self.count
        by_unit = np.zeros((count, statistics.shape[1]))
        np.add.at(by_unit, self.units, statistics)
        rng = np.random.default_rng(self.seed)
        sums = []
        for start in range(0, self.samples, step := max(1, _DRAWN // count)):
            drawn = rng.integers(count, size=(min(step, self.samples - start), count))
            times = np.stack([np.bincount(sample, minlength=count) for sample in drawn])
            sums.append(times @ by_unit)
        return np.concatenate(sums)


@dataclass(frozen=True)
class Difference:
    """How far a system is above another, with a 95 % interval; untested where there are too few units."""

    delta: float
    low: float
    high: float
    p: float | None
    wins: float | None  # the share of samples in which the system is the better one

    @property
    def significant(self) -> bool:
        """Tell whether p is below 0.05; what was not tested is not significant."""
        return self.p is not None and self.p < 0.05

    def record(self) -> dict[str, Any]:
        """As plain data; what was not computed is absent."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}


def difference(delta: float, system: Floats, baseline: Floats, *, units: int) -> Difference:
    """Compare the scores of two systems in the same samples of so many units.

    `delta` is the difference on the whole text.
    """
    deltas = system - baseline
    # Systems that are equal differ by rounding alone, which is no difference.
    deltas[np.abs(deltas) < 1e-9] = 0.0
    low, high = middle_of_samples(deltas)
    if units < FEWEST:
        return Difference(delta, low, high, None, None)
    by_chance = np.abs(deltas - deltas.mean())
    extreme = int((by_chance >= abs(delta) - 1e-9).sum())
    return Difference(delta, low, high, (extreme + 1) / (len(deltas) + 1), float((deltas > 0).mean()))


def middle_of_samples(scores: Floats) -> tuple[float, float]:
    """The middle 95 % of the samples' scores."""
    low, high = np.percentile(scores, [2.5, 97.5])
    return float(low), float(high)
