"""`cadec eval-contrastive`: accuracy on contrastive sets, scorers side by side."""

from pathlib import Path
from typing import Annotated

import typer

from cadec_cli.fs.read import MAX_INPUT_BYTES
from cadec_cli.terminal.flags import (
    Address,
    Alpha,
    BundleOption,
    ContextSize,
    Device,
    Engine,
    ExactComputeType,
    Force,
    MaxInput,
    Report,
    ScoringWorkers,
    SetLayout,
    SourceLanguage,
    TargetLanguage,
    Threads,
    Weight,
    contrastive_objectives,
    one_of,
)


def eval_contrastive(
    sets: Annotated[list[Path], typer.Argument(metavar="SET", help="Contrastive sets; - is standard input.")],
    objective: Annotated[
        list[str] | None,
        one_of(
            lambda: [*contrastive_objectives(), "all"],
            "--objective",
            help="What to score with: {scorers}, or all. Can be repeated. [dim]\\[default: all][/dim]",
        ),
    ] = None,
    temperature: Annotated[
        list[float] | None,
        typer.Option(
            help="Softmax temperature T of the D-LM; several are computed in one pass. "
            "[dim]\\[default: the bundle's][/dim]"
        ),
    ] = None,
    weight: Weight = None,
    alpha: Alpha = 0.0,
    context: ContextSize = None,
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
    bundle: BundleOption = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    device: Device = "auto",
    compute_type: ExactComputeType = "float32",
    threads: Threads = 0,
    workers: ScoringWorkers = 0,
    engine: Engine = "processes",
    address: Address = None,
) -> None:
    """Report how often the true translation beats its variants, in the context of the sentences before it.

    Reads the sets of Voita et al. 2019, ContraPro, DiscEvalMT, and JSON lines of your own:

    {"source": "…", "context": ["…"], "candidates": ["…", "…"], "truth": 0, "distance": 1}

    A tie counts as wrong. Groups whose candidates are all equal are left out and counted. pmi and conditional
    need no S-NMT. T and the weight are those that `translate` would use; the paper's tests are at T = 1. A
    report has the figures and 50 failed groups per scorer and set, or as many as --errors.

    Example: cadec eval-contrastive deixis_dev.json lex_cohesion_dev.json

    Example: cadec eval-contrastive deixis_dev.json --objective c-score --temperature 1 --weight 1

    Example: cadec eval-contrastive mine.jsonl --objective c-score --temperature 1 --temperature 4 --errors 5
    """
    import itertools
    import json
    import sys

    from cadec_cli.evaluation.contrastive.results import evaluate
    from cadec_cli.evaluation.contrastive.scoring import scorers
    from cadec_cli.evaluation.contrastive.set_files import read_set
    from cadec_cli.method.options import ScoringOptions
    from cadec_cli.reports.contrastive import SHOWN, write_contrastive_page
    from cadec_cli.terminal import console
    from cadec_cli.terminal.inputs import contrastive_models, open_models
    from cadec_cli.terminal.outputs import check_outputs
    from cadec_cli.terminal.views import contrastive as views
    from cadec_cli.terminal.workers import (
        ContrastiveOptions,
        model_reference,
        score_sets,
        threads_each,
        worker_pool,
    )

    check_outputs([report], inputs=sets, force=force)
    kept = errors or (SHOWN if report is not None else 0)
    if json_lines and errors:
        raise typer.BadParameter("--errors is for the terminal; score-contrastive gives every score as JSON")
    if sum(str(path) == "-" for path in sets) > 1:
        raise typer.BadParameter("standard input can be read only once")
    pool = worker_pool(workers, engine, address, threads=threads, device=device)
    opened = open_models(
        bundle,
        device=device,
        compute_type=compute_type,
        threads=threads,
        source_language=source_language,
        target_language=target_language,
    )
    temperatures = temperature or [opened.bundle.defaults.temperature]
    reading = ScoringOptions(tuple(dict.fromkeys(temperatures)), alpha)
    named = tuple(objective or ["all"])
    objectives, models = contrastive_models(opened, named, weight, reading, context)
    contrastive_sets = [read_set(path, layout, most=max_input) for path in sets]
    for contrastive_set in contrastive_sets:
        models.check(contrastive_set)
        if contrastive_set.left_out:
            console.note(views.left_out(contrastive_set))
    same = model_reference(
        opened,
        device=device,
        compute_type=compute_type,
        threads=threads_each(threads),
    )
    flags = ContrastiveOptions(named, weight, reading, context)
    all_terms = score_sets(contrastive_sets, models, pool, same, flags)
    results = []
    for contrastive_set in contrastive_sets:
        total = len(contrastive_set.groups)
        of_set = itertools.islice(all_terms, total)
        terms = console.track(of_set, contrastive_set.name, total, "groups")
        asked = scorers(objectives, reading.temperatures)
        results.append(evaluate(contrastive_set, list(terms), asked, kept, models if kept else None))
    if report is not None:
        codes = (opened.languages.source_code, opened.languages.target_code)
        context_size = models.policy.sentences
        write_contrastive_page(report, results, context=context_size, kept=kept, languages=codes)
        console.note(f"report: {report}")
    settings = views.SharedSettings(reading.temperatures, alpha, models.policy.sentences)
    if json_lines:
        for record in views.records(results, settings):
            sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
        return
    out = views.wide_console()
    for drawn in views.everything(results, settings, out.width, failures=bool(errors)):
        out.print(drawn)
