"""The PMI analysis as tables for people, or as plain data for programs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from cadec_cli.evaluation.pmi.analysis import OutputOutliers, Panel
from cadec_cli.terminal.console import visible
from cadec_cli.terminal.views.evaluation import correlation_text
from cadec_cli.terminal.views.translations import stdout_console


def records(panels: Sequence[Panel], outputs: Sequence[OutputOutliers]) -> Iterator[dict[str, Any]]:
    """One object per panel, then one per outlier."""
    for panel in panels:
        quadrants = panel.quadrants
        yield {
            "text": panel.text,
            "value": panel.value,
            "contexts": panel.contexts,
            "points": len(panel.source),
            "pearson": _number(panel.pearson),
            "spearman": _number(panel.spearman),
            "quadrants": dataclasses.asdict(quadrants) if quadrants is not None else None,
        }
    for output in outputs:
        for outlier in output.furthest:
            yield {"outlier": dataclasses.asdict(outlier)}


def _number(value: float) -> float | None:
    """JSON has no NaN."""
    return value if value == value else None


def show(panels: Sequence[Panel], outputs: Sequence[OutputOutliers]) -> None:
    """One row per panel, then the outliers of each output."""
    out = stdout_console()
    out.print(_table(panels))
    out.print(Text("R Pearson's, ρ Spearman's; signs are those of (source, target)", "dim"))
    out.print(Text("sentences without context are left out; PMI would be 0", "dim"))
    for output in outputs:
        out.print()
        listed = f", the furthest {len(output.furthest)}" if len(output.furthest) < output.count else ""
        out.print(Text(f"{visible(output.text)}: {output.count} far above the source{listed}", "bold"))
        for outlier in output.furthest:
            where = f"document {outlier.document}, sentence {outlier.sentence}"
            pmis = f"PMI source {outlier.source_pmi:+.2f}, target {outlier.target_pmi:+.2f}"
            out.print(Text(f"  {where}: {pmis}, {outlier.deviations:.1f} deviations", "yellow"))
            out.print(Text(f"    {visible(outlier.source)}", "dim"))
            out.print(Text(f"    {visible(outlier.translation)}"))


def _table(panels: Sequence[Panel]) -> Table:
    table = Table(title="do source and target go together?", title_justify="left")
    for column in ("text", "value", "contexts"):
        table.add_column(column)
    for column in ("points", "R", "ρ", "+ +", "− +", "− −", "+ −"):
        table.add_column(column, justify="right")
    for panel in panels:
        table.add_row(
            Text(visible(panel.text)),
            panel.value,
            panel.contexts,
            f"{len(panel.source):,}",
            correlation_text(panel.pearson),
            correlation_text(panel.spearman),
            *_quadrant_cells(panel),
        )
    return table


def _quadrant_cells(panel: Panel) -> list[str]:
    quadrants = panel.quadrants
    if quadrants is None:
        return [""] * 4
    counts = (
        quadrants.both_positive,
        quadrants.only_y_positive,
        quadrants.both_negative,
        quadrants.only_x_positive,
    )
    return [f"{count:,}" for count in counts]
