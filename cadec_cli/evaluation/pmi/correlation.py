"""How two columns of numbers go together: correlation, quadrants, and who is far off."""

from dataclasses import dataclass

import numpy as np

from cadec_cli.arrays import Floats

# The median absolute deviation of a normal distribution times this is its standard deviation.
_MAD_TO_DEVIATION = 1.4826


def pearson(x: Floats, y: Floats) -> float:
    """Pearson's R; NaN where it is not defined: fewer than two points, or a column that does not vary."""
    if len(x) < 2:
        return float("nan")
    x, y = x - x.mean(), y - y.mean()
    spread = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / spread if spread > 0 else float("nan")


def spearman(x: Floats, y: Floats) -> float:
    """Spearman's ρ: Pearson's R of the ranks."""
    return pearson(ranks(x), ranks(y))


def ranks(values: Floats) -> Floats:
    """The rank of every value, from 1; equal ones share the mean of theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    means: Floats = (last - (counts - 1) / 2)[inverse]
    return means


@dataclass(frozen=True)
class Quadrants:
    """How many points have which signs, (x, y); points on an axis are in none."""

    both_positive: int
    only_y_positive: int
    both_negative: int
    only_x_positive: int


def quadrants(x: Floats, y: Floats) -> Quadrants:
    """Count the points of each quadrant."""
    return Quadrants(
        both_positive=int(((x > 0) & (y > 0)).sum()),
        only_y_positive=int(((x < 0) & (y > 0)).sum()),
        both_negative=int(((x < 0) & (y < 0)).sum()),
        only_x_positive=int(((x > 0) & (y < 0)).sum()),
    )


def excesses(x: Floats, y: Floats) -> Floats:
    """How far y − x is above its median, in robust standard deviations (from the MAD): (points,).

    Where more than half of the differences are the same there is no such unit, and no excess.
    """
    differences = y - x
    if not len(differences):
        return differences
    above: Floats = differences - np.median(differences)
    deviation = _MAD_TO_DEVIATION * float(np.median(np.abs(above)))
    return above / deviation if deviation > 0 else np.zeros_like(above)
