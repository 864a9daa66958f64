"""`cadec analyze`: analyses of texts by the models, as figures for a paper."""

from pathlib import Path
from typing import Annotated

import typer

from cadec_cli.fs.read import MAX_INPUT_BYTES
from cadec_cli.terminal.app import new_app
from cadec_cli.terminal.flags import Device, Force, MaxInput, Report, Threads

analyze_app = new_app("Analyse texts with the models.")


@analyze_app.command("pmi")
def pmi(
    source: Annotated[
        Path,
        typer.Argument(metavar="SRC", help="Source sentences, one per line, a blank line between documents."),
    ],
    target: Annotated[Path, typer.Argument(metavar="TGT", help="Their human translations, line by line.")],
    source_lm: Annotated[
        Path, typer.Option(help="A bundle with a D-LM of the source language.", show_default=False)
    ],
    target_lm: Annotated[
        Path, typer.Option(help="A bundle with a D-LM of the target language.", show_default=False)
    ],
    outputs: Annotated[
        list[Path] | None,
        typer.Option(
            "--outputs",
            help="A system's translations of SRC, shown in a panel of their own. Can be repeated.",
        ),
    ] = None,
    figure: Annotated[
        Path | None, typer.Option("--output", "-o", help="The figure: a .png, .pdf or .svg file.")
    ] = None,
    points: Annotated[Path | None, typer.Option("--csv", help="Write every point to this file.")] = None,
    report: Report = None,
    force: Force = False,
    outliers: Annotated[int, typer.Option(help="List at most this many outliers per output.", min=0)] = 10,
    context: Annotated[
        int, typer.Option(help="Number of preceding sentences that count as context.", min=1)
    ] = 3,
    seed: Annotated[int, typer.Option(help="Random seed for the random contexts.", min=0)] = 1,
    encoding: Annotated[str, typer.Option(help="Encoding of the texts.")] = "utf-8",
    max_input: MaxInput = MAX_INPUT_BYTES,
    json_lines: Annotated[
        bool, typer.Option("--json", help="Write one JSON object per panel, then one per outlier.")
    ] = False,
    device: Device = "auto",
    threads: Threads = 0,
) -> None:
    """Compare PMI of source sentences and of their translations: with true contexts, and with random ones.

    PMI says how much likelier the context makes a sentence. Four panels show PMI and log p(y | context),
    each with true and with random contexts; then one panel per output. First sentences of documents have no
    context and are left out. Outliers are translations whose PMI is above their source's by 3 robust standard
    deviations more than usual.

    Example: cadec analyze pmi dev.en dev.ru --source-lm lm-en --target-lm en-ru -o pmi.pdf --csv points.csv

    Example: cadec analyze pmi dev.en dev.ru --source-lm lm-en --target-lm en-ru --outputs ours.ru -o pmi.png
    """
    import json
    import sys

    from cadec_cli.evaluation.aligned import read_aligned
    from cadec_cli.evaluation.pmi.analysis import TextScorer, analyse
    from cadec_cli.jobs.outputs import check_outputs
    from cadec_cli.reports.pmi import check_figure, draw_panels
    from cadec_cli.terminal import console
    from cadec_cli.terminal.console import progress_bar
    from cadec_cli.terminal.views import evaluation as views

    if figure is not None:
        check_figure(figure)
    paths = [source, target, *(outputs or [])]
    check_outputs([figure, points, report], inputs=paths, force=force)
    source_text, target_text, *output_texts = read_aligned(paths, encoding, console.warn, most=max_input)
    source_model, target_model = (
        TextScorer.open(path, device=device, threads=threads) for path in (source_lm, target_lm)
    )
    analysis = analyse(
        source_model,
        target_model,
        source_text,
        target_text,
        output_texts,
        context=context,
        seed=seed,
        counted=progress_bar,
    )
    if figure is not None:
        draw_panels(
            analysis.reference_panels,
            analysis.output_panels,
            figure,
            source=source_model.language,
            target=target_model.language,
        )
        console.note(f"figure: {figure}")
    if points is not None:
        analysis.write_points(points)
        console.note(f"points: {points}")
    furthest = analysis.outliers(outliers)
    if report is not None:
        from cadec_cli.reports.pmi import write_pmi_page

        write_pmi_page(report, analysis, furthest, source=source_model.language, target=target_model.language)
        console.note(f"report: {report}")
    if json_lines:
        for record in views.pmi_records(analysis.panels, furthest):
            sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
    else:
        views.show_pmi(analysis.panels, furthest)
