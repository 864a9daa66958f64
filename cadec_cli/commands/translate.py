"""`cadec translate`: documents, subtitle files and pipes, in context."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cadec_cli.decoding.confidence import FLAG_BELOW
from cadec_cli.fs.read import MAX_INPUT_BYTES
from cadec_cli.jobs.model_request import ModelRequest
from cadec_cli.method.objectives import FIT, FIT_WEIGHT
from cadec_cli.method.options import TranslationOptions, named_weights
from cadec_cli.terminal.flags import (
    MODELS,
    Address,
    After,
    Encoding,
    Engine,
    Force,
    InputFormat,
    Lines,
    MaxInput,
    OutputEncoding,
    Report,
    ShardOption,
    TranslationOutput,
    Workers,
    flags_of,
    model_flags,
    one_of,
)
from cadec_cli.text.formats.layout import AUTO_DASH, DROP, KEEP, MAX_CPS

_SUBTITLES = "Subtitles"
_CATALOGUES = "Tables and catalogues of strings"


@flags_of("bundle's", search=TranslationOptions)
@model_flags()
def translate(
    flags: dict[str, Any],
    inputs: Annotated[
        list[Path] | None, typer.Argument(help="Files to translate ({endings}); - is standard input.")
    ] = None,
    output: TranslationOutput = None,
    models: ModelRequest = MODELS,
    after: After = None,
    lines: Lines = False,
    input_format: InputFormat = None,
    encoding: Encoding = "utf-8",
    output_encoding: OutputEncoding = "utf-8",
    max_input: MaxInput = MAX_INPUT_BYTES,
    json_lines: Annotated[
        bool,
        typer.Option(
            "--json", help="Write one JSON object per sentence, with the n-best list and all scores."
        ),
    ] = False,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare", help="Show the sentence-level translation alongside, differences highlighted."
        ),
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show which tokens the context made likelier or less likely.")
    ] = False,
    flag: Annotated[
        bool,
        typer.Option("--flag", help="List doubtful sentences on stderr, with reasons."),
    ] = False,
    flag_below: Annotated[
        float | None,
        typer.Option(
            help="Confidence below which --flag and --json mark a sentence. "
            f"[dim]\\[default: {FLAG_BELOW}][/dim]",
            min=0,
            max=1,
            show_default=False,
        ),
    ] = None,
    report: Report = None,
    terms: Annotated[
        Path | None,
        typer.Option(
            "--terms",
            help="Also write the names that were found, with their renderings, as a table that "
            "--glossary reads. Implies --names.",
            metavar="FILE.tsv",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted translation to --output.")
    ] = False,
    force: Force = False,
    max_chars: Annotated[
        int | None,
        typer.Option(
            help="Characters per line of subtitles. [dim]\\[default: 42][/dim]",
            min=1,
            show_default=False,
            rich_help_panel=_SUBTITLES,
        ),
    ] = None,
    max_lines: Annotated[
        int | None,
        typer.Option(
            help="Lines per cue. [dim]\\[default: 2, or as many as the cue has][/dim]",
            min=1,
            max=100,
            show_default=False,
            rich_help_panel=_SUBTITLES,
        ),
    ] = None,
    max_cps: Annotated[
        float,
        typer.Option(
            help="Characters per second above which a cue is reported as too fast to read; 0 reports none.",
            min=0,
            rich_help_panel=_SUBTITLES,
        ),
    ] = MAX_CPS,
    fit: Annotated[
        bool,
        typer.Option(
            "--fit",
            help="Where a cue would be too fast or too long, prefer a shorter translation that is nearly as "
            "good. --weight fit=1 prefers it more.",
            rich_help_panel=_SUBTITLES,
        ),
    ] = False,
    sdh: Annotated[
        str,
        one_of(
            (KEEP, DROP),
            "--sdh",
            help="Keep or drop what only the hard of hearing need: sounds in brackets, speakers' names, "
            "music signs. Cues of which nothing is left are removed.",
            panel=_SUBTITLES,
        ),
    ] = KEEP,
    dash: Annotated[
        str,
        one_of(
            (KEEP, AUTO_DASH),
            "--dash",
            help="Dash before what a speaker says: as in the source, as in the target language, or the one "
            "given, such as '– '.",
            also=r"[-–—―‐]{1,2} ?",
            panel=_SUBTITLES,
        ),
    ] = KEEP,
    bilingual: Annotated[
        str | None,
        one_of(
            ("above", "below"),
            "--bilingual",
            help="Show the source too, above or below the translation of every cue or paragraph.",
            panel=_SUBTITLES,
            show_default=False,
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="Columns of a table to translate, by name or number: 'title,text'. 'en=fr' fills the empty "
            "cells of fr with translations of en.",
            show_default=False,
            rich_help_panel=_CATALOGUES,
        ),
    ] = None,
    retranslate: Annotated[
        bool,
        typer.Option(
            "--retranslate",
            help="Translate again what a file has a translation of (.po, .xlf, tables with 'en=fr').",
            rich_help_panel=_CATALOGUES,
        ),
    ] = False,
    workers: Workers = 0,
    engine: Engine = "processes",
    address: Address = None,
    shard: ShardOption = None,
) -> None:
    """Translate documents, each sentence in the context of those before it.

    A blank line, a long pause in a film or the end of a file ends a document. The layout is kept. What a
    catalogue of strings has a translation of stays, and is read as context.

    Text and JSON lines from a pipe are translated as they arrive: line by line, or document by document if
    the search looks ahead (lattice and the document models). Subtitles, and everything written with -o, are
    read whole first.

    With --workers, many files are translated in parallel, document by document, and each file is written as
    soon as it is complete. --shard gives each of several jobs its part of the files. The output is the same
    for any number of workers and shards. --resume recognises finished documents by their content, so you may
    rename or add files.

    Example: cadec translate film.srt -o film.ru.srt

    Example: cadec translate *.en.srt -o '{stem}.{to}.vtt'

    Example: cat letter.txt | cadec translate --compare

    Example: cadec translate film.srt -o film.ru.srt --flag --report film.html

    Example: cadec translate app.pot -o app.ru.po

    Example: cadec translate products.csv --columns name,description -o products.ru.csv

    Example: cadec translate films/*.srt -o out/ --workers 4 --shard 2/8 --resume
    """
    import sys

    from cadec_cli.decoding.confidence import FlagCollector
    from cadec_cli.decoding.explain import ExplainedTranslation
    from cadec_cli.decoding.manner.outcomes import UnmetDemands
    from cadec_cli.errors import UsageError
    from cadec_cli.jobs.cue_checks import CueChecks
    from cadec_cli.jobs.in_step import StreamTranslation
    from cadec_cli.jobs.job import InputOptions
    from cadec_cli.jobs.outputs import check_outputs
    from cadec_cli.method.searches import search_kind
    from cadec_cli.parallel import SerialPool
    from cadec_cli.terminal import console, run_job
    from cadec_cli.terminal.run_job import threads_each, worker_pool
    from cadec_cli.terminal.views import translations as views
    from cadec_cli.terminal.views.cues import report_cues
    from cadec_cli.text.formats import format_of
    from cadec_cli.text.formats.layout import LINE_WIDTH, SubtitleStyle

    terminal = [flag for flag, given in (("--compare", compare), ("--explain", explain)) if given]
    run_job.check_flags(output=output, resume=resume, json_lines=json_lines, for_the_terminal=terminal)
    if report is not None and report.suffix.lower() not in (".html", ".htm"):
        raise typer.BadParameter("a report is an .html file", param_hint="--report")
    # else --force is for the files beside the output alone
    of_output = force and (output is not None or (report is None and terms is None))
    outputs = run_job.output_request(
        output, output_encoding, json_lines=json_lines, force=of_output, resume=resume
    )
    paths = inputs or [Path("-")]
    pool = worker_pool(workers, engine, address, threads=models.threads, device=models.device)
    by_document = pool is not None or shard is not None
    if by_document:
        run_job.check_by_document(paths, output, shard, report, terms, terminal)
    check_outputs([report, terms], inputs=[*paths, after], force=force)
    if terms is not None and not flags.setdefault("names", True):
        raise UsageError("--terms needs --names")
    if bilingual:
        run_job.check_bilingual([input_format or format_of(path) for path in paths], json_lines=json_lines)
    cues = CueChecks()
    style = SubtitleStyle(
        max_chars=max_chars or LINE_WIDTH,
        max_lines=max_lines,
        max_cps=max_cps,
        bilingual=bilingual,
        sdh=sdh,
        dash=dash,
    )
    asked_columns = tuple(name.strip() for name in (columns or "").split(",") if name.strip())
    if columns is not None and not asked_columns:
        raise typer.BadParameter("it names no column", param_hint="--columns")
    reading = InputOptions(
        encoding, lines, input_format, max_input, style, columns=asked_columns, retranslate=retranslate
    )
    flagging = flag or flag_below is not None
    if fit:
        flags["weight"] = {FIT: FIT_WEIGHT, **named_weights(flags.get("weight"))}
    job = run_job.open_job(
        models, flags, after=after, below=FLAG_BELOW if flag_below is None else flag_below, most=max_input
    )
    if terms is not None and not job.options.finds_names:
        raise UsageError(
            f"--terms writes names, and --search {job.options.search} finds none",
            "rerank, lattice and sentence do",
        )
    if fit and not job.options.fits:
        raise UsageError(
            f"--search {job.options.search} chooses the likeliest translation, however long",
            "--fit needs --search rerank or lattice; with --objective sentence they read no context",
        )
    unmet = UnmetDemands() if job.options.asks_for_manner else None
    side_output = run_job.requested_outputs(report, terms, job, paths, cues)
    if by_document:
        threads = threads_each(models.threads) if pool else models.threads
        bulk = job.by_document(paths, reading, outputs, shard=shard, threads=threads, side_output=side_output)
        if bulk is not None:
            run_job.write_by_document(
                bulk,
                pool or SerialPool(),
                resume=resume,
                flagging=flagging,
                written=cues.look,
                unmet=unmet,
            )
            report_cues(cues, bulk.inputs, list_all=flagging)
            run_job.note_unmet(unmet)
        return
    if explain and not job.options.weighted_objective.uses_lm:
        raise UsageError(
            f"--search {job.options.search} uses no D-LM, so there is nothing to explain",
            "leave out --explain",
        )
    work = job.translation_of(paths, reading, outputs, side_output=side_output)
    if isinstance(work, StreamTranslation) and sys.stdin.isatty():
        by_line = search_kind(job.options.search).is_greedy
        ends = "" if by_line else "a blank line ends a document, "
        console.note(f"type your text; {ends}Ctrl-D ends the input")
    if not terminal:
        found = run_job.write_translations(
            work, json_lines=json_lines, resume=resume, flagging=flagging, written=cues.look, unmet=unmet
        )
        run_job.note_unmet(unmet)
        if flagging:
            views.show_flagged(found, work, paths)
        report_cues(cues, paths, list_all=flagging)
        return
    watched = FlagCollector(work.judge)
    shown = (
        ExplainedTranslation(
            translation,
            job.translator.sentence_level_of(translation) if compare else None,
            [job.translator.explain(part) for part in translation.parts] if explain else [],
        )
        for translation in watched.watch(run_job.translations_in_order(work))
    )
    views.show(shown, compare=compare)
    if flagging:
        views.show_flagged(watched.found, work, paths)
