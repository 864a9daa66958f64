"""`cadec eval-generative`: how often translations in context say the expected word."""

from pathlib import Path
from typing import Annotated

import typer

from cadec_cli.fs.read import MAX_INPUT_BYTES
from cadec_cli.jobs.model_request import ModelRequest
from cadec_cli.method.objectives import READINGS
from cadec_cli.method.searches import SEARCHES
from cadec_cli.terminal.flags import (
    GENERATIVE_RULES,
    MODELS,
    Address,
    Alpha,
    ContextSize,
    Engine,
    Force,
    ItemWorkers,
    MaxInput,
    Objectives,
    Report,
    Retrieved,
    TermOptions,
    list_size,
    model_flags,
    one_of,
    temperatures,
    weights,
)


@model_flags()
def eval_generative(
    sets: Annotated[list[Path], typer.Argument(metavar="SET", help="Generative sets; - is standard input.")],
    models: ModelRequest = MODELS,
    inputs: Annotated[
        list[Path] | None,
        typer.Option(
            help="File with the documents of a ctxPro set, one per line, sentences joined by <eos>. Once per "
            "such set, in their order. [dim]\\[default: NAME or ../inputs/NAME, for NAME.json][/dim]",
            metavar="FILE",
        ),
    ] = None,
    rule: Annotated[
        str,
        one_of(
            GENERATIVE_RULES,
            "--rule",
            help="How the expected form is found: words (as words, elided forms too) or ctxpro (as ctxPro's "
            "own script does, which never finds t').",
        ),
    ] = "words",
    search: Annotated[
        list[str] | None,
        one_of(
            SEARCHES,
            "--search",
            help=f"Search to translate with: {', '.join(SEARCHES)}. Can be repeated. "
            "[dim]\\[default: the bundle's][/dim]",
        ),
    ] = None,
    objective: Objectives = None,
    temperature: Annotated[list[float] | None, temperatures()] = None,
    weight: Annotated[list[str] | None, weights("Can be repeated.")] = None,
    term: TermOptions = None,
    alpha: Alpha = 0.0,
    context: ContextSize = None,
    retrieve: Retrieved = None,
    nbest: Annotated[
        list[int] | None,
        list_size(
            more="Can be repeated: lists are made in the largest size, and others are their beginnings."
        ),
    ] = None,
    reads: Annotated[
        list[str] | None,
        one_of(
            READINGS,
            "--reads",
            help="What the D-LM reads: target, pairs or both. Can be repeated. "
            "[dim]\\[default: the bundle's][/dim]",
        ),
    ] = None,
    system: Annotated[
        list[str] | None,
        typer.Option(
            help="Translations of another system: its name, and a file with one line per item. Can be "
            "repeated; with several sets, once per set and system, in the order of the sets.",
            metavar="NAME=FILE",
        ),
    ] = None,
    last_sentence: Annotated[
        bool,
        typer.Option(
            "--last-sentence",
            help="Lines of other systems are whole documents: judge the last sentence of each, as ctxPro's "
            "own script does.",
        ),
    ] = False,
    baseline: Annotated[
        str,
        typer.Option(
            help="The row to compare the others with, by its name in the table, such as that of a --system.",
            metavar="NAME",
        ),
    ] = "sentence level",
    limit: Annotated[
        int | None,
        typer.Option(help="Translate only this many items of each set, spread evenly over it.", min=1),
    ] = None,
    json_lines: Annotated[
        bool, typer.Option("--json", help="Write one JSON object per set and system.")
    ] = False,
    report: Report = None,
    force: Force = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the same evaluation after it was interrupted.")
    ] = False,
    max_input: MaxInput = MAX_INPUT_BYTES,
    workers: ItemWorkers = 0,
    engine: Engine = "processes",
    address: Address = None,
) -> None:
    """Report how often a translation says the word that only its context can tell.

    Each item is a document. All of it is translated, each sentence in the context of the translations before
    it, and its last sentence is judged. Reads the pairs of files of ctxPro (Wicks & Post 2023), and JSON
    lines of your own, where rule and reference may be missing:

    {"document": ["…", "…"], "expected": "te", "rule": "…", "reference": "…"}

    There is one row for the sentence level, one per search, objective, weight, temperature and size of lists,
    one per system, and one that tells how often any hypothesis of the n-best list says the word. Where
    references are given, and the forms of address of the language are known, the table also has the share of
    items that are addressed as in the reference: familiar (tu) or polite (vous). All rows share the n-best
    lists.

    After Ctrl-C or a crash, the same command with --resume goes on; with --force it starts over.

    Example: cadec eval-generative formality.en-fr.jsonl --bundle en-fr --limit 50

    Example: cadec eval-generative set.jsonl --objective c-score --objective pmi -T 1 -T 4

    Example: cadec eval-generative formality.json --system other=theirs.txt --baseline other --report a.html
    """
    import json
    import sys

    from cadec_cli.errors import as_usage_error
    from cadec_cli.evaluation.generative.forms import Judging
    from cadec_cli.evaluation.generative.results import check_names, evaluate, other_systems, systems_of
    from cadec_cli.evaluation.generative.run import GenerativeWork, list_sizes, rows_of
    from cadec_cli.evaluation.generative.sets import read_sets, system_files
    from cadec_cli.jobs.outputs import check_outputs
    from cadec_cli.reports.generative import SHOWN, write_generative_page
    from cadec_cli.terminal import console
    from cadec_cli.terminal.run_job import open_job, threads_each, worker_pool
    from cadec_cli.terminal.views import generative as views
    from cadec_cli.terminal.views.contrastive import wide_console

    with as_usage_error():
        files = system_files(system or (), len(sets))
    read = [*sets, *(inputs or ()), *(path for paths in files.values() for path in paths)]
    check_outputs([report], inputs=read, force=force)
    if sum(str(path) == "-" for path in read) > 1:
        raise typer.BadParameter("standard input can be read only once")
    pool = worker_pool(workers, engine, address, threads=models.threads, device=models.device)
    job = open_job(models, {"context": context, "retrieve": retrieve, "alpha": alpha})
    job.check_translates()
    with as_usage_error():
        rows = rows_of(
            job.options,
            search or (),
            objective or (),
            temperature or (),
            weight or (),
            nbest or (),
            term or (),
            reads or (),
        )
        check_names(rows, list(files), baseline)
    sizes = list_sizes(job.options, rows)
    generative_sets = read_sets(sets, inputs or (), limit, most=max_input)
    target = job.languages.target_code
    others = other_systems(files, generative_sets, target if last_sentence else None, most=max_input)
    judging = Judging(rule, target)
    results = []
    work = GenerativeWork(generative_sets, job, rows)
    with work.log(resume=resume, start_over=force, warn=console.warn) as done:
        if done is not None and (known := work.items_in(done)):
            console.note(f"{known:,} items are done already")
        translated_sets = work.translate(pool, threads_each(models.threads), done)
        for (one, of_set), of_others in zip(translated_sets, others, strict=True):
            translated = list(console.track(of_set, one.name, len(one.items), "items"))
            systems = [*systems_of(rows, translated), *of_others]
            shown = SHOWN if report is not None else 0
            results.append(
                evaluate(one, judging, translated, systems, sizes, baseline=baseline, failures=shown)
            )
            if note := views.unsayable(results[-1]):
                console.note(note)
        if report is not None:
            codes = (job.languages.source_code, target)
            write_generative_page(report, results, job.options, languages=codes)
            console.note(f"report: {report}")
    if json_lines:
        for record in views.records(results):
            sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
        return
    out = wide_console()
    for table in views.everything(results, job.options):
        out.print(table)
