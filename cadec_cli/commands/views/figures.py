"""Figures of `cadec tune` and `cadec bench` as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from cadec_cli.console import visible
from cadec_cli.evaluation.tuning.choosing import Decision

if TYPE_CHECKING:
    from cadec_cli.evaluation.benchmark import SpeedRatio
    from cadec_cli.evaluation.tuning.points import Point
    from cadec_cli.evaluation.tuning.run import Tuning


def tuning_table(tuning: Tuning) -> Table:
    """One row per setting, the sentence level's first; below them what is taken, and why."""
    title = f"{tuning.trial.objective}, {len(tuning.points)} settings"
    table = Table("T", "weight", "BLEU", "over level", "chrF", "changed", title=title)
    table.title_justify = table.caption_justify = "left"
    table.columns[3].no_wrap = True
    for name in tuning.sets:
        table.add_column(Text(visible(name), overflow="fold"))
    table.add_column("")
    level = tuning.level
    figures = (f"{level.bleu:.2f}", "", f"{level.chrf:.2f}", "")
    table.add_row("", "", *figures, *_accuracies(level), "sentence level", style="dim")
    for point, over_level in zip(tuning.points, tuning.over_level, strict=True):
        setting, sure = point.setting, over_level.significant
        colour = ("green" if over_level.delta > 0 else "red") if sure else ""
        table.add_row(
            f"{setting.temperature:g}",
            ", ".join(f"{name} {value:g}" for name, value in setting.named) or f"{setting.weight:g}",
            Text(f"{point.bleu:.2f}", colour),
            Text(f"{over_level.low:+.2f}…{over_level.high:+.2f}", colour or "dim"),
            f"{point.chrf:.2f}",
            f"{point.changed:.1%}",
            *_accuracies(point),
            Text(", ".join(tuning.remarks(point)), "bold" if point is tuning.choice else ""),
        )
    reason = tuning.decision.reason if isinstance(tuning.decision, Decision) else tuning.decision.message
    how = "over level: 95 % interval of the difference to the sentence level, paired bootstrap over lines"
    pareto = "; Pareto: no other is better at both BLEU and accuracy" if tuning.sets else ""
    table.caption = Text(f"{reason}\n").append(f"{how}{pareto}", "dim")
    return table


def _accuracies(point: Point) -> list[str]:
    return [f"{100 * accuracy:.1f}" for accuracy in point.accuracies]


def speed_table(ratios: Sequence[SpeedRatio]) -> Table:
    """One row per ratio, red where it, or its share of the machine's limit, is not what we want."""
    columns = ("what", "speed", "ratio", "wanted", "of limit", "wanted", "paper")
    table = Table(*columns, title="cadec bench", title_justify="left", caption_justify="left")
    for measured in ratios:
        paper = f"{measured.paper:.3f}" if measured.paper is not None else ""
        table.add_row(
            measured.what,
            measured.speed,
            *_compare_with_target(measured.ratio, measured.wanted),
            *(
                _compare_with_target(reached.share, reached.wanted)
                if (reached := measured.reached)
                else ("", "")
            ),
            paper,
        )
    table.caption = Text("\n".join(_limit_notes(ratios)), "dim")
    return table


def _compare_with_target(figure: float, wanted: float) -> tuple[Text, str]:
    return Text(f"{figure:.2f}", "green" if figure >= wanted else "red"), f"≥ {wanted:g}"


def _limit_notes(ratios: Sequence[SpeedRatio]) -> list[str]:
    """What the limit is, how fast this machine multiplies, and whose rows are few."""
    limits = {one.what: one.reached for one in ratios if one.reached is not None}
    if not limits:
        return []
    notes = [
        "of limit: the time of n-best lists and of the linears' products alone, "
        "at the rate measured in this run, over the time taken"
    ]
    for what, reached in limits.items():
        limit = reached.limit
        operations = ", ".join(f"{count / 1e9:,.0f} G {name}" for name, count in limit.operations.items())
        note = f"{what.split(' / ')[0]}: {limit.products:.2f} s for {operations}"
        if limit.lists:
            note += f", {limit.lists:.2f} s for lists"
        note += f", of {reached.seconds:.2f} s"
        if reached.many_rows is not None:
            share = reached.many_rows.share(reached.seconds)
            note += f"; at the rate of the few rows it has (of that with many rows: {share:.2f})"
        notes.append(note)
    return notes + [_spending(one.what, one.spent) for one in ratios if one.spent is not None]


def _spending(what: str, spent: Mapping[str, float]) -> str:
    return f"{what.split(' / ')[0]}: " + ", ".join(f"{name} {share:.0%}" for name, share in spent.items())
