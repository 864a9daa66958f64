"""Finding several weights of an objective together: one after the other, again and again.

The lists are made and scored once; a round tries every weight at several values with the others as they are,
and keeps what is best. It ends where a round finds nothing better.
"""

from __future__ import annotations

from collections.abc import Mapping

from cadec_cli.evaluation.reporting import CountProgress, no_progress
from cadec_cli.evaluation.tuning.choosing import choose
from cadec_cli.evaluation.tuning.grid import PreparedLists
from cadec_cli.evaluation.tuning.points import Point
from cadec_cli.evaluation.tuning.settings import Setting

# What a weight is multiplied by, to be tried; 0 is without it.
FACTORS = (0.0, 0.25, 0.5, 0.75, 1.5, 2.0, 4.0)
ROUNDS = 3


def coordinate_search(
    development: PreparedLists,
    start: Mapping[str, float],
    temperature: float = 1.0,
    *,
    rounds: int = ROUNDS,
    counted: CountProgress = no_progress,
) -> tuple[Point, list[Point]]:
    """The sentence level's figures, and those of all that was tried, in that order; the best is among them.

    BLEU never falls on the way: the start is tried too, and left only for something better.
    """
    first = _setting(temperature, start)
    level, tried = development.points([first], counted)
    best = tried[0]
    for _ in range(rounds):
        before = best
        for name, value in start.items():
            values = dict.fromkeys(factor * (best.setting.weights[name] or value) for factor in FACTORS)
            settings = [_setting(temperature, {**best.setting.weights, name: one}) for one in values]
            known = {point.setting for point in tried}
            new = [setting for setting in settings if setting not in known]
            if new:
                tried += development.points(new, counted)[1]
                best = choose("best", level, tried)
        if best.bleu <= before.bleu:
            break
    return level, tried


def _setting(temperature: float, weights: Mapping[str, float]) -> Setting:
    return Setting(temperature, named=tuple(weights.items()))
