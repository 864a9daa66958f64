"""Measured translations, PMI analyses and speeds as tables for people, or as plain data for programs.

Also the steps of `cadec reproduce`, and its tables.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from cadec_cli.evaluation.pmi.analysis import OutputOutliers, Panel
from cadec_cli.evaluation.quality.comparison import Evaluation
from cadec_cli.evaluation.quality.consistency import Repetition
from cadec_cli.evaluation.quality.measures import FEWEST, MeasuredFigure
from cadec_cli.evaluation.tuning.search import Decision
from cadec_cli.terminal.console import visible
from cadec_cli.terminal.views.translations import stdout_console

if TYPE_CHECKING:
    from cadec_cli.evaluation.benchmark import SpeedRatio
    from cadec_cli.evaluation.tuning.search import Point
    from cadec_cli.evaluation.tuning.trials import Tuning
    from cadec_cli.reproduction.measurements import Results
    from cadec_cli.reproduction.scales import Scale
    from cadec_cli.reproduction.steps import Step


# Words whose rendering changes, as many as are shown.
_CHANGES = 10


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
        if system.repetitions is not None:
            record["consistency"] = {
                "repetitions": len(system.repetitions),
                "changed": [dataclasses.asdict(one) for one in system.repetitions if not one.is_same],
            }
        yield record


def _record(figure: MeasuredFigure) -> dict[str, Any]:
    difference = figure.difference.record() if figure.difference is not None else None
    return {**dataclasses.asdict(figure), "difference": difference}


def show(evaluation: Evaluation) -> None:
    """Print one row per system, and below the table how the figures were obtained."""
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
        if system.repetitions is not None:
            for line in _consistency(name, system.repetitions):
                out.print(line, soft_wrap=True)


def _consistency(name: str, found: Sequence[Repetition]) -> Iterator[Text]:
    """How many words were repeated, and the first that changed."""
    changed = [one for one in found if not one.is_same]
    named = sum(one.is_name for one in found)
    counts = f"{named:,} names and {len(found) - named:,} terms again"
    yield Text(f"{name}: {counts}, {len(changed):,} of them rendered otherwise than before")
    for one in changed[:_CHANGES]:
        place = f"document {one.document + 1}, sentence {one.sentence + 1} of the text"
        words = f"{visible(one.word)}: {visible(one.before)} → {visible(one.rendering)}"
        yield Text(f"  {words}").append(f"  {place}", "dim")
    if len(changed) > _CHANGES:
        yield Text(f"  … {len(changed) - _CHANGES:,} more: --json has all", "dim")


def _names(evaluation: Evaluation) -> list[str]:
    """The names of rows: file names, or whole paths if file names are ambiguous."""
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
    """Score, difference and p, one line each."""
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


# Figures of `cadec tune` and `cadec bench` as tables.


def tuning_table(tuning: Tuning) -> Table:
    """One row per setting, the sentence level first; below them the choice and its reason."""
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
    reason = (
        tuning.decision.reason if isinstance(tuning.decision, Decision) else tuning.decision.marked_message
    )
    how = "over level: 95 % interval of the difference to the sentence level, paired bootstrap over lines"
    pareto = "; Pareto: no other is better at both BLEU and accuracy" if tuning.sets else ""
    table.caption = Text(f"{reason}\n").append(f"{how}{pareto}", "dim")
    return table


def _accuracies(point: Point) -> list[str]:
    return [f"{100 * accuracy:.1f}" for accuracy in point.accuracies]


def speed_table(ratios: Sequence[SpeedRatio]) -> Table:
    """One row per ratio; red if the ratio, or its share of the machine's limit, is below its target."""
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
    """Notes on the limit, on how fast this machine multiplies, and on ratios measured with few rows."""
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


def pmi_records(panels: Sequence[Panel], outputs: Sequence[OutputOutliers]) -> Iterator[dict[str, Any]]:
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


def show_pmi(panels: Sequence[Panel], outputs: Sequence[OutputOutliers]) -> None:
    """One row per panel, then the outliers of each output."""
    out = stdout_console()
    out.print(_pmi_table(panels))
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


def _pmi_table(panels: Sequence[Panel]) -> Table:
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


def show_steps(scale: Scale, steps: Sequence[Step], processes: int = 1) -> None:
    """Print one row per step, then the total time; minutes are for one process."""
    out = stdout_console()
    table = Table(
        "", "step", "about", "command", title=f"cadec reproduce, {scale.name}", title_justify="left"
    )
    for step in steps:
        line = step.line()
        table.add_row(
            Text("done", "green") if step.is_done else "",
            step.name,
            f"{step.minutes:,.0f} min" if step.minutes >= 0.5 else "",
            Text(_shell_line(line, processes) if line is not None else "", "dim", overflow="fold"),
        )
    out.print(table)
    left = sum(step.minutes for step in steps if not step.is_done)
    out.print(Text(f"{sum(not step.is_done for step in steps)} steps are left, about {left / 60:,.1f} hours"))
    out.print(Text(f"the whole scale: {scale.hours}", "dim"))
    sizes = {**scale.sizes, **{name: one.updates for name, one in scale.trainings.items()}}
    out.print(
        Text("--size: " + ", ".join(f"{name}={value}" for name, value in sizes.items()), "dim"),
        soft_wrap=True,
    )
    if scale.note:
        out.print(Text(scale.note, "dim"), soft_wrap=True)


def _shell_line(line: Sequence[str], processes: int) -> str:
    """A command as typed in a shell."""
    from cadec_cli.reproduction.steps import in_processes, torchrun

    if in_processes(line, processes):
        return " ".join(("torchrun", *torchrun(line, processes)[2:]))
    return " ".join(("cadec", *line))


def show_results(results: Results) -> None:
    """Print every table, with its note."""
    from cadec_cli.reproduction.report import settings_line, tables

    out = stdout_console()
    for plain in tables(results):
        table = Table(title=plain.title, title_justify="left")
        for number, heading in enumerate(plain.headings):
            table.add_column(heading, justify="right" if number else "left", overflow="fold")
        for row in plain.rows:
            table.add_row(*(Text(cell) for cell in row))
        out.print(table)
        if plain.note:
            out.print(Text(plain.note, "dim"), soft_wrap=True)
    out.print(Text(settings_line(results), "dim"), soft_wrap=True)
