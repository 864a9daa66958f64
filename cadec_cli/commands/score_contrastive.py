"""`cadec score-contrastive`: the scores of a contrastive set's candidates, for scripts."""

from pathlib import Path
from typing import Annotated

import typer

from cadec_cli.fs.read import MAX_INPUT_BYTES
from cadec_cli.jobs.model_request import ModelRequest
from cadec_cli.terminal.flags import (
    EXACT_MODELS,
    Address,
    Alpha,
    ContextSize,
    Engine,
    ExactComputeType,
    MaxInput,
    Reads,
    ScoringWorkers,
    SetLayout,
    TermOptions,
    Weight,
    contrastive_objectives,
    model_flags,
    one_of,
)


@model_flags(compute_type=ExactComputeType)
def score_contrastive(
    set_path: Annotated[
        Path, typer.Argument(metavar="SET", help="A contrastive set, as eval-contrastive reads it.")
    ],
    objective: Annotated[
        str | None,
        one_of(
            contrastive_objectives,
            "--objective",
            help="Objective to score with: {scorers}. "
            "[dim]\\[default: c-score, else one that the bundle supports][/dim]",
            also="all",  # refused later, with its own message
        ),
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(help="Softmax temperature T of the D-LM. [dim]\\[default: the bundle's][/dim]"),
    ] = None,
    weight: Weight = None,
    term: TermOptions = None,
    alpha: Alpha = 0.0,
    context: ContextSize = None,
    reads: Reads = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Write one score per line; higher is better.")
    ] = False,
    loss: Annotated[
        bool,
        typer.Option(
            "--loss", help="Write one loss per line, lower is better, as published scripts read it."
        ),
    ] = False,
    layout: SetLayout = None,
    max_input: MaxInput = MAX_INPUT_BYTES,
    models: ModelRequest = EXACT_MODELS,
    workers: ScoringWorkers = 0,
    engine: Engine = "processes",
    address: Address = None,
) -> None:
    """Write the score of every candidate: all of group 1 in the file's order, then all of group 2, and so on.

    Writes JSON lines with every term, unless --plain or --loss. Note that scripts which look for the
    lowest loss count a tie as correct if the true candidate comes first; eval-contrastive does not. T and the
    weight are those that `translate` would use; the paper's tests use T = 1.

    Example: cadec score-contrastive deixis_dev.json --loss > deixis_dev.losses
    """
    import json
    import sys

    from cadec_cli.evaluation.contrastive.scoring import ContrastiveOptions, score_sets, scorers, term_records
    from cadec_cli.evaluation.contrastive.sets import Undecidable, judge, read_set
    from cadec_cli.method.options import ScoringOptions
    from cadec_cli.terminal import console
    from cadec_cli.terminal.run_job import open_models, threads_each, worker_pool
    from cadec_cli.terminal.views.contrastive import left_out

    if plain and loss:
        raise typer.BadParameter("--plain and --loss are two formats: choose one")
    if objective == "all":
        raise typer.BadParameter("one objective at a time; eval-contrastive compares them all")
    pool = worker_pool(workers, engine, address, threads=models.threads, device=models.device)
    opened = open_models(models)
    if objective is None:
        has_both = "c-score" if opened.bundle.has_lm else "sentence"
        objective = has_both if opened.bundle.has_translation else "pmi"
    reading = ScoringOptions(
        (opened.bundle.defaults.temperature if temperature is None else temperature,), alpha
    )
    options = ContrastiveOptions((objective,), weight, reading, context, tuple(term or ()), reads)
    objectives, scoring = options.models(opened)
    contrastive_set = read_set(set_path, layout, most=max_input)
    if contrastive_set.left_out:
        console.note(left_out(contrastive_set))
    (scorer,) = scorers(objectives, reading.temperatures)
    scoring.check(contrastive_set)
    for_workers = models.for_workers(opened.bundle, threads_each(models.threads))
    _, terms = next(score_sets([contrastive_set], scoring, pool, for_workers, options))
    if not sys.stdout.isatty():  # a bar would be drawn over the results
        terms = console.track(terms, contrastive_set.name, len(contrastive_set.groups), "groups")
    for item in contrastive_set.in_file_order(zip(contrastive_set.groups, terms, strict=True)):
        if isinstance(item, Undecidable):
            if plain or loss:  # scripts rely on positions: a missing line would shift all later lines
                sys.stdout.write("nan\n" * item.candidates)
            continue
        group, of_group = item
        scores = scorer.scores(of_group)
        judge(group, scores)  # raises an error if a score is not a number
        if plain or loss:
            sys.stdout.writelines(f"{0.0 - score if loss else float(score)}\n" for score in scores)
            continue
        for record in term_records(group, of_group, scores):
            sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
