"""`cadec score-contrastive`: the scores of a contrastive set's candidates, for scripts."""

from pathlib import Path
from typing import Annotated

import typer

from cadec_cli.commands.eval_contrastive import Alpha, ContextSize, ExactType, Layout, Weight
from cadec_cli.commands.translate import Bundle_, Device, Threads
from cadec_cli.method.objectives import OBJECTIVES


def score_contrastive(
    contrastive_set: Annotated[
        Path, typer.Argument(metavar="SET", help="A contrastive set, as eval-contrastive reads it.")
    ],
    objective: Annotated[
        str | None,
        typer.Option(help=f"{', '.join(OBJECTIVES)}. [dim](c-score, or what the bundle can do)[/dim]"),
    ] = None,
    temperature: Annotated[float, typer.Option(help="T: flattens the D-LM's probabilities.")] = 1.0,
    weight: Weight = None,
    alpha: Alpha = 0.0,
    context: ContextSize = None,
    plain: Annotated[bool, typer.Option("--plain", help="One score a line, higher is better.")] = False,
    loss: Annotated[
        bool, typer.Option("--loss", help="One loss a line, lower is better, as published scripts read it.")
    ] = False,
    layout: Layout = None,
    bundle: Bundle_ = None,
    device: Device = "auto",
    compute_type: ExactType = "float32",
    threads: Threads = 0,
) -> None:
    """Write the score of every candidate: all of group 1 in the file's order, then all of group 2, and so on.

    JSON lines with every term, unless --plain or --loss. Mind that scripts which take the least loss count a
    tie as right wherever the true candidate stands first; eval-contrastive does not.

    Example: cadec score-contrastive deixis_dev.json --loss > deixis_dev.losses
    """
    import json
    import sys

    from cadec_cli import console
    from cadec_cli.bundle.opening import Bundle, find_bundle
    from cadec_cli.evaluation.contrastive.files import read_set
    from cadec_cli.evaluation.contrastive.groups import judge
    from cadec_cli.evaluation.contrastive.scoring import (
        ContrastiveModels,
        scorers,
        term_records,
        usable_objectives,
    )

    if plain and loss:
        raise typer.BadParameter("--plain and --loss are two formats: choose one")
    if objective == "all":
        raise typer.BadParameter("one objective at a time; eval-contrastive compares them all")
    opened = Bundle.open(find_bundle(bundle))
    if objective is None:
        objective = "pmi" if not opened.has_translation else "c-score" if opened.has_lm else "sentence"
    chosen = usable_objectives(opened, [objective], weight)
    read = read_set(contrastive_set, layout)
    models = ContrastiveModels.load(
        opened,
        chosen,
        temperatures=[temperature],
        alpha=alpha,
        context=context,
        device=device,
        compute_type=compute_type,
        threads=threads,
    )
    (scorer,) = scorers(chosen, [temperature])
    terms = models.terms(read)
    if not sys.stdout.isatty():  # a bar would be drawn over the results
        terms = console.track(terms, read.name, total=len(read.groups), unit="groups")
    for group, one in zip(read.groups, terms, strict=True):
        scores = scorer.scores(one)
        judge(group, scores)  # refuses what is no number
        if plain or loss:
            sys.stdout.writelines(f"{0.0 - score if loss else float(score)}\n" for score in scores)
            continue
        for record in term_records(group, one, scores):
            sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
