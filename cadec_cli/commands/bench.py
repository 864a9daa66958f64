"""`cadec bench`: what context costs, as ratios within one run."""

from pathlib import Path
from typing import Annotated

import typer


def bench(
    bundle: Annotated[
        Path | None, typer.Option("--bundle", "-b", help="Measure this bundle's networks instead.")
    ] = None,
    documents: Annotated[int, typer.Option(help="Documents translated in step.", min=1)] = 8,
    sentences: Annotated[int, typer.Option(help="Sentences of each.", min=1)] = 6,
    threads: Annotated[int, typer.Option(help="CPU threads; 0 is all cores.", min=0)] = 0,
    json_lines: Annotated[bool, typer.Option("--json", help="An object a figure.")] = False,
) -> None:
    """Measure scoring and translation: by default the paper's sizes, random weights, int8, B = 20, context 3.

    Run it on an idle machine. Figures are ratios, measured in turns.

    Example: cadec bench
    """
    import dataclasses
    import json
    import sys

    import torch
    from rich.table import Table
    from rich.text import Text

    from cadec_cli import console
    from cadec_cli.bundle.opening import Bundle
    from cadec_cli.commands.views.translations import stdout_console
    from cadec_cli.evaluation.benchmark import Networks, measure
    from cadec_cli.workers import available_cores

    torch.set_num_threads(threads or available_cores())
    if bundle is None:
        networks = Networks.random()
    else:
        opened = Bundle.open(bundle)
        networks = Networks.of(opened.translation_model(), opened.language_model())
    figures = measure(networks, documents=documents, sentences=sentences, note=console.note)
    if json_lines:
        for figure in figures:
            sys.stdout.write(json.dumps(dataclasses.asdict(figure)) + "\n")
        return
    table = Table("what", "speed", "ratio", "wanted", "paper", title="cadec bench", title_justify="left")
    for figure in figures:
        good = figure.ratio >= figure.wanted
        paper = f"{figure.paper:.3f}" if figure.paper is not None else ""
        ratio = Text(f"{figure.ratio:.2f}", "green" if good else "red")
        table.add_row(figure.what, figure.speed, ratio, f"≥ {figure.wanted:g}", paper)
    stdout_console().print(table)
