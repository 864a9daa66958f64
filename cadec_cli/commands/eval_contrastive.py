"""`cadec eval-contrastive`: accuracy on contrastive sets, scorers side by side."""

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
    Force,
    MaxInput,
    Reads,
    Report,
    ScoringWorkers,
    SetLayout,
    TermOptions,
    Weight,
    contrastive_objectives,
    model_flags,
    one_of,
    temperatures,
)


@model_flags(compute_type=ExactComputeType)
def eval_contrastive(
    sets: Annotated[list[Path], typer.Argument(metavar="SET", help="Contrastive sets; - is standard input.")],
    objective: Annotated[
        list[str] | None,
        one_of(
            lambda: [*contrastive_objectives(), "all"],
            "--objective",
            help="Objective to score with: {scorers}, or all. Can be repeated. [dim]\\[default: all][/dim]",
        ),
    ] = None,
    temperature: Annotated[list[float] | None, temperatures()] = None,
    weight: Weight = None,
    term: TermOptions = None,
    alpha: Alpha = 0.0,
    context: ContextSize = None,
    reads: Reads = None,
    errors: Annotated[
        int, typer.Option(help="Show this many failed groups per scorer, tokens coloured by PMI.", min=0)
    ] = 0,
    json_lines: Annotated[
        bool, typer.Option("--json", help="Write one JSON object per scorer and set.")
    ] = False,
    report: Report = None,
    force: Force = False,
    layout: SetLayout = None,
    max_input: MaxInput = MAX_INPUT_BYTES,
    models: ModelRequest = EXACT_MODELS,
    workers: ScoringWorkers = 0,
    engine: Engine = "processes",
    address: Address = None,
) -> None:
    """Report how often the true translation beats its variants, in the context of the sentences before it.

    Reads the sets of Voita et al. 2019, ContraPro, DiscEvalMT, and JSON lines of your own:

    {"source": "…", "context": ["…"], "candidates": ["…", "…"], "truth": 0, "distance": 1}

    A tie counts as wrong. Groups whose candidates are all equal are left out and counted. pmi and conditional
    need no S-NMT. T and the weight are those that `translate` would use; the paper's tests use T = 1. A
    report has the figures and 50 failed groups per scorer and set, or as many as --errors says.

    Example: cadec eval-contrastive deixis_dev.json lex_cohesion_dev.json

    Example: cadec eval-contrastive deixis_dev.json --objective c-score --temperature 1 --weight 1

    Example: cadec eval-contrastive mine.jsonl --objective c-score --temperature 1 --temperature 4 --errors 5
    """
    import json
    import sys

    from cadec_cli.evaluation.contrastive.scoring import ContrastiveOptions, evaluate, score_sets, scorers
    from cadec_cli.evaluation.contrastive.sets import read_set
    from cadec_cli.jobs.outputs import check_outputs
    from cadec_cli.method.options import ScoringOptions
    from cadec_cli.reports.explained import SHOWN, write_contrastive_page
    from cadec_cli.terminal import console
    from cadec_cli.terminal.run_job import open_models, threads_each, worker_pool
    from cadec_cli.terminal.views import contrastive as views

    check_outputs([report], inputs=sets, force=force)
    kept = errors or (SHOWN if report is not None else 0)
    if json_lines and errors:
        raise typer.BadParameter("--errors is for the terminal; score-contrastive gives every score as JSON")
    if sum(str(path) == "-" for path in sets) > 1:
        raise typer.BadParameter("standard input can be read only once")
    pool = worker_pool(workers, engine, address, threads=models.threads, device=models.device)
    opened = open_models(models)
    temperatures = temperature or [opened.bundle.defaults.temperature]
    reading = ScoringOptions(tuple(dict.fromkeys(temperatures)), alpha)
    options = ContrastiveOptions(
        tuple(objective or ["all"]), weight, reading, context, tuple(term or ()), reads
    )
    objectives, scoring = options.models(opened)
    contrastive_sets = [read_set(path, layout, most=max_input) for path in sets]
    for contrastive_set in contrastive_sets:
        scoring.check(contrastive_set)
        if contrastive_set.left_out:
            console.note(views.left_out(contrastive_set))
    for_workers = models.for_workers(opened.bundle, threads_each(models.threads))
    asked = scorers(objectives, reading.temperatures)
    results = []
    for one, of_set in score_sets(contrastive_sets, scoring, pool, for_workers, options):
        terms = console.track(of_set, one.name, len(one.groups), "groups")
        results.append(evaluate(one, list(terms), asked, kept, scoring if kept else None))
    if report is not None:
        codes = (opened.languages.source_code, opened.languages.target_code)
        context_size = scoring.policy.sentences
        write_contrastive_page(report, results, context=context_size, kept=kept, languages=codes)
        console.note(f"report: {report}")
    settings = views.SharedSettings(reading.temperatures, alpha, scoring.policy.sentences)
    if json_lines:
        for record in views.records(results, settings):
            sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
        return
    out = views.wide_console()
    for drawn in views.everything(results, settings, out.width, failures=bool(errors)):
        out.print(drawn)
