"""`cadec analyze`: what the models say of texts, as figures for a paper."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cadec_cli.commands.app import new_app
from cadec_cli.commands.translate import Device, Threads

if TYPE_CHECKING:
    from cadec_cli.evaluation.pmi.analysis import Analysis, Outlier, Panel

analyze_app = new_app("Look into what the models say of texts.")


@analyze_app.command("pmi")
def pmi(
    source: Annotated[
        Path, typer.Argument(metavar="SRC", help="Source sentences, a blank line between documents.")
    ],
    target: Annotated[
        Path, typer.Argument(metavar="TGT", help="Their translations by people, line by line.")
    ],
    source_lm: Annotated[
        Path, typer.Option(help="A bundle whose D-LM is of the source language.", show_default=False)
    ],
    target_lm: Annotated[
        Path, typer.Option(help="A bundle whose D-LM is of the target language.", show_default=False)
    ],
    outputs: Annotated[
        list[Path] | None,
        typer.Option("--outputs", help="A model's translations of SRC; a panel each. Can be repeated."),
    ] = None,
    figure: Annotated[
        Path | None, typer.Option("--output", "-o", help="The figure: a .png, .pdf or .svg file.")
    ] = None,
    points: Annotated[Path | None, typer.Option("--csv", help="Write every point into this file.")] = None,
    outliers: Annotated[
        int, typer.Option(help="How many of each output's outliers to list at most.", min=0)
    ] = 10,
    context: Annotated[int, typer.Option(help="Sentences of context.", min=1)] = 3,
    seed: Annotated[int, typer.Option(help="Of the random contexts.", min=0)] = 1,
    encoding: Annotated[str, typer.Option(help="Encoding of the texts.")] = "utf-8",
    json_lines: Annotated[
        bool, typer.Option("--json", help="An object a panel, then an object an outlier.")
    ] = False,
    device: Device = "auto",
    threads: Threads = 0,
) -> None:
    """Compare PMI of source sentences and of their translations: with true contexts, and with random ones.

    PMI tells how much likelier the sentences before make a sentence. Four panels: PMI and log p(y | context),
    each with true and with random contexts; then one panel an output. First sentences of documents have no
    context and are left out. Outliers are translations whose PMI is above their source's by 3 robust standard
    deviations more than usual.

    Example: cadec analyze pmi dev.en dev.ru --source-lm lm-en --target-lm en-ru -o pmi.pdf --csv points.csv

    Example: cadec analyze pmi dev.en dev.ru --source-lm lm-en --target-lm en-ru --outputs ours.ru -o pmi.png
    """
    from cadec_cli import console
    from cadec_cli.evaluation.aligned import read_aligned
    from cadec_cli.evaluation.pmi.analysis import analyse
    from cadec_cli.evaluation.pmi.figure import check_figure, draw_panels
    from cadec_cli.evaluation.pmi.scores import TextScorer

    if figure is not None:
        check_figure(figure)
    source_text, target_text, *output_texts = read_aligned([source, target, *(outputs or [])], encoding)
    source_model, target_model = (
        TextScorer.open(path, device=device, threads=threads) for path in (source_lm, target_lm)
    )
    analysis = analyse(
        source_model, target_model, source_text, target_text, output_texts, context=context, seed=seed
    )
    found = {id(panel): analysis.outliers(panel, outliers) for panel in analysis.output_panels}
    if figure is not None:
        draw_panels(analysis.panels, figure, source=source_model.language, target=target_model.language)
        console.note(f"figure: {figure}")
    if points is not None:
        analysis.write_points(points)
        console.note(f"points: {points}")
    if json_lines:
        _print_json(analysis, found)
    else:
        _print_tables(analysis, found)


def _print_json(analysis: Analysis, found: dict[int, list[Outlier]]) -> None:
    import dataclasses
    import json
    import sys

    records: list[dict[str, Any]] = []
    for panel in analysis.panels:
        counted = panel.quadrants
        records.append(
            {
                "text": panel.text,
                "value": panel.value,
                "contexts": panel.contexts,
                "points": len(panel.source),
                "pearson": _number(panel.pearson),
                "spearman": _number(panel.spearman),
                "quadrants": dataclasses.asdict(counted) if counted is not None else None,
            }
        )
    records += [{"outlier": dataclasses.asdict(outlier)} for some in found.values() for outlier in some]
    sys.stdout.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def _number(value: float) -> float | None:
    """JSON has no NaN."""
    return value if value == value else None


def _print_tables(analysis: Analysis, found: dict[int, list[Outlier]]) -> None:
    from rich.table import Table
    from rich.text import Text

    from cadec_cli.commands.views.translations import stdout_console
    from cadec_cli.console import visible

    out = stdout_console()
    table = Table(title="do source and target go together?", title_justify="left")
    for column in ("text", "value", "contexts"):
        table.add_column(column)
    for column in ("points", "R", "ρ", "+ +", "− +", "− −", "+ −"):
        table.add_column(column, justify="right")
    for panel in analysis.panels:
        table.add_row(
            Text(visible(panel.text)),
            panel.value,
            panel.contexts,
            f"{len(panel.source):,}",
            _shown(panel.pearson),
            _shown(panel.spearman),
            *_quadrant_cells(panel),
        )
    out.print(table)
    out.print(Text("R Pearson's, ρ Spearman's; signs are those of (source, target)", "dim"))
    out.print(Text("sentences without context are left out; PMI would be 0", "dim"))
    for panel in analysis.output_panels:
        listed = found[id(panel)]
        many = int((panel.excesses > _far()).sum())
        out.print()
        shown = f", the furthest {len(listed)}" if len(listed) < many else ""
        out.print(Text(f"{visible(panel.text)}: {many} far above the source{shown}", "bold"))
        for one in listed:
            where = f"document {one.document}, sentence {one.sentence}"
            pmis = f"PMI source {one.source_pmi:+.2f}, target {one.target_pmi:+.2f}"
            out.print(Text(f"  {where}: {pmis}, {one.deviations:.1f} deviations", "yellow"))
            out.print(Text(f"    {visible(one.source)}", "dim"))
            out.print(Text(f"    {visible(one.translation)}"))


def _far() -> float:
    from cadec_cli.evaluation.pmi.analysis import FAR

    return FAR


def _shown(value: float) -> str:
    return f"{value:+.3f}" if value == value else "–"


def _quadrant_cells(panel: Panel) -> list[str]:
    counted = panel.quadrants
    if counted is None:
        return [""] * 4
    return [
        f"{count:,}"
        for count in (
            counted.both_positive,
            counted.only_y_positive,
            counted.both_negative,
            counted.only_x_positive,
        )
    ]
