"""Figures of `cadec tune` and `cadec bench` as tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from cadec_cli.evaluation.benchmark import SpeedRatio
    from cadec_cli.evaluation.tuning.grid import Point


def tuning_table(name: str, level: Point, points: Sequence[Point], choice: Point | None) -> Table:
    """One row per setting, the sentence level's first."""
    table = Table("T", "weight", "BLEU", "chrF", "changed", "", title=name, title_justify="left")
    table.add_row("", "", f"{level.bleu:.2f}", f"{level.chrf:.2f}", "", "sentence level", style="dim")
    for point in points:
        colour = "green" if point.bleu >= level.bleu else "red"
        table.add_row(
            f"{point.setting.temperature:g}",
            ", ".join(f"{name} {value:g}" for name, value in point.setting.named)
            or f"{point.setting.weight:g}",
            Text(f"{point.bleu:.2f}", colour),
            f"{point.chrf:.2f}",
            f"{point.changed:.1%}",
            Text("chosen", "bold") if point is choice else "",
        )
    return table


def speed_table(ratios: Sequence[SpeedRatio]) -> Table:
    """One row per ratio, red where it is not what we want."""
    table = Table("what", "speed", "ratio", "wanted", "paper", title="cadec bench", title_justify="left")
    for measured in ratios:
        good = measured.ratio >= measured.wanted
        paper = f"{measured.paper:.3f}" if measured.paper is not None else ""
        ratio = Text(f"{measured.ratio:.2f}", "green" if good else "red")
        table.add_row(measured.what, measured.speed, ratio, f"≥ {measured.wanted:g}", paper)
    return table
