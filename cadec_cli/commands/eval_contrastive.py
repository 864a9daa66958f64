"""`cadec eval-contrastive`: accuracy on contrastive sets, scorers side by side."""

from pathlib import Path
from typing import Annotated

import typer

from cadec_cli.commands.translate import Bundle_, Device, Threads
from cadec_cli.method.objectives import OBJECTIVES

Weight = Annotated[
    float | None, typer.Option(help="Of the D-LM's part in an objective (c-score 1, fusions 0.1).")
]
Alpha = Annotated[float, typer.Option(help="Add-alpha smoothing of the D-LM's probabilities.", min=0)]
ContextSize = Annotated[
    int | None, typer.Option(help="Target sentences before that count as context; else the bundle's.", min=0)
]
Layout = Annotated[
    str | None,
    typer.Option("--format", help="voita, contrapro, discevalmt or jsonl; else told by the content."),
]
ExactType = Annotated[
    str, typer.Option(help="float32; int8 is faster, and scores then vary by 0.01 with the batch.")
]


def eval_contrastive(
    sets: Annotated[list[Path], typer.Argument(metavar="SET", help="Contrastive sets; - is a pipe.")],
    objective: Annotated[
        list[str] | None,
        typer.Option(help=f"{', '.join(OBJECTIVES)}, or all; several times for several. \\[default: all]"),
    ] = None,
    temperature: Annotated[
        list[float] | None,
        typer.Option(help="T: flattens the D-LM's probabilities; several in one pass. \\[default: 1]"),
    ] = None,
    weight: Weight = None,
    alpha: Alpha = 0.0,
    context: ContextSize = None,
    errors: Annotated[
        int, typer.Option(help="Show so many failed groups of each scorer, tokens coloured by PMI.", min=0)
    ] = 0,
    json_lines: Annotated[bool, typer.Option("--json", help="An object a scorer and set.")] = False,
    layout: Layout = None,
    bundle: Bundle_ = None,
    device: Device = "auto",
    compute_type: ExactType = "float32",
    threads: Threads = 0,
) -> None:
    """Tell how often the true translation beats its variants, in the context of the sentences before it.

    Reads the sets of Voita et al. 2019, ContraPro, DiscEvalMT, and JSON lines of your own:

    {"source": "…", "context": ["…"], "candidates": ["…", "…"], "truth": 0, "distance": 1}

    A tie is wrong. pmi and conditional need no S-NMT.

    Example: cadec eval-contrastive deixis_dev.json lex_cohesion_dev.json

    Example: cadec eval-contrastive mine.jsonl --objective c-score --temperature 1 --temperature 4 --errors 5
    """
    import json
    import sys

    from cadec_cli import console
    from cadec_cli.bundle.opening import Bundle, find_bundle
    from cadec_cli.commands.views import contrastive as tables
    from cadec_cli.evaluation.contrastive.files import read_set
    from cadec_cli.evaluation.contrastive.scoring import (
        ContrastiveModels,
        evaluate,
        scorers,
        usable_objectives,
    )

    if json_lines and errors:
        raise typer.BadParameter("--errors is for the terminal; score-contrastive gives every score as JSON")
    if sum(str(path) == "-" for path in sets) > 1:
        raise typer.BadParameter("standard input can be read only once")
    opened = Bundle.open(find_bundle(bundle))
    chosen = usable_objectives(opened, objective or ["all"], weight)
    read = [read_set(path, layout) for path in sets]
    temperatures = list(dict.fromkeys(temperature or [1.0]))
    models = ContrastiveModels.load(
        opened,
        chosen,
        temperatures=temperatures,
        alpha=alpha,
        context=context,
        device=device,
        compute_type=compute_type,
        threads=threads,
    )
    results = []
    for one in read:
        terms = console.track(models.terms(one), one.name, total=len(one.groups), unit="groups")
        results += evaluate(one, list(terms), scorers(chosen, temperatures), errors)
    settings = tables.Settings(temperatures, alpha, models.context)
    if json_lines:
        for result in results:
            sys.stdout.write(json.dumps(tables.record(result, settings), ensure_ascii=False) + "\n")
        return
    out = tables.wide_console()
    for table in tables.accuracies(results, settings, out.width):
        out.print(table)
    for table in tables.by_distance(results, settings, out.width):
        out.print(table)
    for result in results:
        for failure in result.failures:
            out.print(tables.failure(result, failure, models, settings))
