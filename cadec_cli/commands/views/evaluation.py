"""Measured translations as a table for people, or as plain data for programs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from cadec_cli.commands.views.translations import stdout_console
from cadec_cli.console import visible
from cadec_cli.evaluation.quality.evaluation import Evaluation
from cadec_cli.evaluation.quality.measures import MeasuredFigure
from cadec_cli.evaluation.quality.significance import FEWEST


def records(evaluation: Evaluation) -> Iterator[dict[str, Any]]:
    """One object per system."""
    signatures = {measure.name: measure.signature for measure in evaluation.measures}
    for system in evaluation.systems:
        record: dict[str, Any] = {
            "system": system.name,
            "part": system.part,
            "sentences": evaluation.sentences,
            "documents": evaluation.documents,
            "resampling": dataclasses.asdict(evaluation.sampling),
            "figures": {
                name: {**_record(figure), "signature": signatures[name]}
                for name, figure in system.figures.items()
            },
        }
        if system.source_pmi is not None:
            record["source_pmi"] = {
                name: value if value == value else None  # JSON has no NaN
                for name, value in dataclasses.asdict(system.source_pmi).items()
            }
        yield record


def _record(figure: MeasuredFigure) -> dict[str, Any]:
    difference = figure.difference.record() if figure.difference is not None else None
    return {**dataclasses.asdict(figure), "difference": difference}


def show(evaluation: Evaluation) -> None:
    """One row per system, and under the table how the figures were obtained."""
    out = stdout_console()
    names = _names(evaluation)
    out.print(_table(evaluation, names))
    sampling = evaluation.sampling
    notes = [
        f"{evaluation.sentences:,} sentences, {evaluation.documents:,} documents; "
        f"± is half of the 95 % interval, {sampling.samples:,} samples by {sampling.by}, seed {sampling.seed}"
    ]
    if len(names) > 1:
        tested = any(
            figure.difference is not None and figure.difference.p is not None
            for system in evaluation.systems
            for figure in system.figures.values()
        )
        test = (
            "p of the paired bootstrap, two-sided"
            if tested
            else f"no test: it takes {FEWEST} {sampling.by}s or more"
        )
        notes.append(f"Δ is {names[0]} less the row; {test}")
    notes += [f"{measure.name}  {measure.signature}" for measure in evaluation.measures]
    for note in notes:
        out.print(Text(note, "dim"), soft_wrap=True)
    for name, system in zip(names, evaluation.systems, strict=True):
        if system.script_line is not None:
            out.print(Text(f"{name}: {system.script_line}"), soft_wrap=True)


def _names(evaluation: Evaluation) -> list[str]:
    """What rows are called: the files' names, with their directories only where those tell them apart."""
    paths = [system.name for system in evaluation.systems]
    names = [Path(path).name for path in paths]
    return [visible(name) for name in (names if len(set(names)) == len(names) else paths)]


def _table(evaluation: Evaluation, names: list[str]) -> Table:
    table = Table(title="cadec evaluate", title_justify="left", show_lines=len(names) > 1)
    table.add_column("system", overflow="fold")
    for measure in evaluation.measures:
        table.add_column(measure.name, justify="right", no_wrap=True)
    if any(system.source_pmi is not None for system in evaluation.systems):
        table.add_column("PMI, source's", justify="right", no_wrap=True)
    for name, system in zip(names, evaluation.systems, strict=True):
        cells = [Text(name), *(_cell(system.figures.get(measure.name)) for measure in evaluation.measures)]
        if (correlation := system.source_pmi) is not None:
            cells.append(
                Text(f"R {correlation_text(correlation.pearson)}\nρ {correlation_text(correlation.spearman)}")
            )
        table.add_row(*cells)
    return table


def _cell(figure: MeasuredFigure | None) -> Text:
    """Score, difference and p, a line each."""
    if figure is None:
        return Text()
    text = Text(f"{figure.score:.2f}").append(f" ±{(figure.high - figure.low) / 2:.2f}", "dim")
    if (difference := figure.difference) is not None:
        style = ("green" if difference.delta > 0 else "red") if difference.significant else ""
        text.append(f"\nΔ {difference.delta:+.2f}", style)
        text.append(f" ±{(difference.high - difference.low) / 2:.2f}", "dim")
        if difference.p is not None:
            text.append(f"\np {difference.p:.3f}", style)
    return text


def correlation_text(correlation: float) -> str:
    """A correlation with its sign; a dash where it is not defined."""
    return f"{correlation:+.3f}" if correlation == correlation else "–"
