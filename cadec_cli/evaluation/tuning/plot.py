"""Plots of a tuning run: BLEU over temperature or weight, and BLEU against contrastive accuracy.

Settings translate the same text mostly alike, so BLEU's own interval, which is wide for a short text, says
nothing of a difference between them. The plots show the difference from the sentence level, with the
interval of that difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cadec_cli.evaluation.tuning.search import Point, Setting
from cadec_cli.evaluation.tuning.trials import Tuning
from cadec_cli.plotting import save_figure
from cadec_cli.validation import showable

_PRESENT: dict[str, Any] = {
    "marker": "s", "markersize": 11, "markerfacecolor": "none", "markeredgecolor": "#222222", "linestyle": ""
}  # fmt: skip
_CHOSEN: dict[str, Any] = {"marker": "*", "markersize": 14, "color": "#d94801", "linestyle": "", "zorder": 5}
_SENTENCE_LEVEL = "#555555"


def draw_tuning(tuning: Tuning, source: str, directory: Path) -> None:
    """Draw the plots of a run on a text into a directory; none if several weights were tuned together."""
    if tuning.trial.together:
        return
    name = tuning.trial.objective
    plot_tuning(tuning, f"{name} on {source}", directory / "curve.png")
    if tuning.sets:
        plot_pareto(tuning, f"{name}: BLEU on {source}", directory / "pareto.png")


def plot_tuning(tuning: Tuning, title: str, output: Path) -> None:
    """Draw BLEU over temperature or weight, whichever has more values; one line per value of the other."""
    figure, axes = _figure((7.5, 4.5))
    axis = _Axis.of([point.setting for point in tuning.points])
    places: dict[Setting, tuple[float, float]] = {}  # where points are drawn
    for number, value in enumerate(axis.lines):
        drawn = sorted(
            (
                (axis.place(point.setting), point, above)
                for point, above in zip(tuning.points, tuning.over_level, strict=True)
                if axis.line(point.setting) == value
            ),
            key=lambda item: item[0],
        )
        heights = [above.delta for _, _, above in drawn]
        # An interval of samples need not contain the difference on the whole text.
        below = [max(0.0, above.delta - above.low) for _, _, above in drawn]
        over = [max(0.0, above.high - above.delta) for _, _, above in drawn]
        at = [place for place, _, _ in drawn]
        style = {"marker": "o", "markersize": 4, "linewidth": 1.2, "elinewidth": 0.8, "capsize": 2}
        label = f"{axis.other} {value:g}" if len(axis.lines) > 1 else "reranked"
        axes.errorbar(at, heights, yerr=[below, over], color=f"C{number % 10}", label=label, **style)
        places |= {point.setting: (place, above.delta) for place, point, above in drawn}
    axes.axhline(0, color=_SENTENCE_LEVEL, linestyle="--", linewidth=1, label="sentence level")
    _mark(axes, tuning, places)
    axes.set_xticks(range(len(axis.values)), [f"{value:g}" for value in axis.values])
    axes.set_xlabel("T (higher: the D-LM counts less)" if axis.over_temperature else "weight of the D-LM")
    axes.set_ylabel(f"BLEU − {tuning.level.bleu:.2f} (sentence level)")
    axes.set_title(
        f"{showable(title)}; bars are 95 % intervals of the difference", fontsize=10, parse_math=False
    )
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    save_figure(figure, output)


def plot_pareto(tuning: Tuning, title: str, output: Path) -> None:
    """Draw BLEU against accuracy on the contrastive sets, one colour per weight.

    Points are labelled with T / weight where there is room, the chosen and the present one first.
    """
    figure, axes = _figure((7.5, 5))
    weights = sorted({point.setting.weight for point in tuning.points})
    for number, weight in enumerate(weights):
        of_weight = [point for point in tuning.points if point.setting.weight == weight]
        label = f"weight {weight:g}" if len(weights) > 1 else "reranked"
        accuracies, bleus = _coordinates(of_weight)
        axes.plot(accuracies, bleus, "o", markersize=4, color=f"C{number % 10}", label=label)
    level = _coordinates([tuning.level])
    axes.plot(*level, "D", markersize=6, color=_SENTENCE_LEVEL, label="sentence level", linestyle="")
    axes.plot(*_coordinates(tuning.front), color="#999999", linewidth=1, zorder=1, label="Pareto front")
    _mark(axes, tuning, {point.setting: (100 * point.accuracy, point.bleu) for point in tuning.points})
    of = "mean accuracy" if len(tuning.sets) > 1 else "accuracy"
    axes.set_xlabel(f"{of} on {showable(', '.join(tuning.sets))}, %", parse_math=False)
    axes.set_ylabel("BLEU")
    axes.set_title(f"{showable(title)}; labels are T / weight", fontsize=10, parse_math=False)
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    axes.margins(0.08)
    figure.draw_without_rendering()  # fixes the positions of points in pixels
    matter = [point for point in (tuning.choice, tuning.present) if point is not None]
    _label(axes, list(dict.fromkeys([*matter, *tuning.front, *tuning.points])), tuning.level)
    save_figure(figure, output)


@dataclass(frozen=True)
class _Axis:
    """Which of temperature and weight is drawn along the axis; each value of the other has a line."""

    over_temperature: bool
    values: Sequence[float]
    lines: Sequence[float]

    @classmethod
    def of(cls, settings: Sequence[Setting]) -> _Axis:
        temperatures = sorted({setting.temperature for setting in settings})
        weights = sorted({setting.weight for setting in settings})
        if len(temperatures) >= len(weights):
            return cls(True, temperatures, weights)
        return cls(False, weights, temperatures)

    @property
    def other(self) -> str:
        return "weight" if self.over_temperature else "T"

    def line(self, setting: Setting) -> float:
        return setting.weight if self.over_temperature else setting.temperature

    def place(self, setting: Setting) -> float:
        """Values stand at equal distances, lines a little apart, so that no bar hides another."""
        value = setting.temperature if self.over_temperature else setting.weight
        aside = self.lines.index(self.line(setting)) - (len(self.lines) - 1) / 2
        return self.values.index(value) + 0.6 * aside / max(len(self.lines), 4)


def _figure(size: tuple[float, float]) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=150, layout="constrained")
    axes: Any = figure.subplots()
    axes.grid(alpha=0.3)
    return figure, axes


def _mark(axes: Any, tuning: Tuning, places: dict[Setting, tuple[float, float]]) -> None:
    """Mark the present and the chosen setting."""
    axes.plot(*zip(places[tuning.present.setting], strict=True), label="present", **_PRESENT)
    if tuning.choice is not None:
        axes.plot(*zip(places[tuning.choice.setting], strict=True), label="chosen", **_CHOSEN)


def _label(axes: Any, points: Sequence[Point], level: Point) -> None:
    """Write T / weight beside points, in their order, wherever no other point or label is in the way."""
    pixel = axes.figure.dpi / 72  # to a typographic point

    def centre(point: Point) -> Any:
        return axes.transData.transform((100 * point.accuracy, point.bleu))

    taken = [
        _Box(x - 4 * pixel, y - 4 * pixel, x + 4 * pixel, y + 4 * pixel)
        for x, y in map(centre, (level, *points))
    ]
    for point in points:
        text = f"{point.setting.temperature:g} / {point.setting.weight:g}"
        wide, high = 3.9 * len(text), 7.0
        for right, up in ((6, 4), (-6 - wide, -4 - high), (6, -4 - high), (-6 - wide, 4)):
            x, y = centre(point) + pixel * np.array((right, up))
            box = _Box(x, y, x + pixel * wide, y + pixel * high)
            if not any(box.meets(other) for other in taken):
                place = (100 * point.accuracy, point.bleu)
                axes.annotate(text, place, xytext=(right, up), textcoords="offset points", fontsize=7)
                taken.append(box)
                break


@dataclass(frozen=True)
class _Box:
    left: float
    low: float
    right: float
    high: float

    def meets(self, other: _Box) -> bool:
        apart = self.right < other.left or other.right < self.left
        return not apart and not (self.high < other.low or other.high < self.low)


def _coordinates(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    return [100 * point.accuracy for point in points], [point.bleu for point in points]
