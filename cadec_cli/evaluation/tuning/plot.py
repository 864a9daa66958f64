"""The curve of a tuning run as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cadec_cli.evaluation.tuning.grid import Point
from cadec_cli.plotting import save_figure


def plot_tuning(
    level: Point, points: Sequence[Point], choice: Point | None, title: str, output: Path
) -> None:
    """Draw BLEU over what varies; with both temperature and weight varied, one line per weight."""
    from matplotlib.figure import Figure

    over_temperature = len({point.setting.temperature for point in points}) > 1
    figure = Figure(figsize=(6.5, 4), dpi=150, layout="constrained")
    axes: Any = figure.subplots()
    lines: dict[float, list[Point]] = {}
    for point in points:
        lines.setdefault(point.setting.weight if over_temperature else 0.0, []).append(point)
    for number, (weight, of_weight) in enumerate(sorted(lines.items())):
        of_weight.sort(key=lambda point: _place(point, over_temperature))
        axes.plot(
            [_place(point, over_temperature) for point in of_weight],
            [point.bleu for point in of_weight],
            marker="o",
            markersize=4,
            color=f"C{number % 10}",
            label=f"weight {weight:g}" if len(lines) > 1 else "reranked",
        )
    axes.axhline(level.bleu, color="#555555", linestyle="--", linewidth=1, label="sentence level")
    if choice is not None:
        place = _place(choice, over_temperature)
        axes.plot([place], [choice.bleu], "*", markersize=15, color="#d94801", label="chosen")
    values = sorted({_place(point, over_temperature) for point in points})
    if values[0] > 0 and values[-1] / values[0] > 4:
        axes.set_xscale("log")
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.minorticks_off()
    axes.set_xlabel("T (higher: the D-LM says less)" if over_temperature else "weight of the D-LM")
    axes.set_ylabel("BLEU")
    axes.set_title(title, fontsize=10, parse_math=False)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=9)
    save_figure(figure, output)


def _place(point: Point, over_temperature: bool) -> float:
    return point.setting.temperature if over_temperature else point.setting.weight
