"""Translation jobs at the command line: opened with notes, run with progress bars, their results written.

Also the pools of workers that --workers, --engine, --address and --threads ask for.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cadec_cli.decoding.confidence import FLAG_BELOW
from cadec_cli.fs.paths import is_stream
from cadec_cli.fs.read import MAX_INPUT_BYTES
from cadec_cli.jobs.outputs import STANDARD_STREAM, OutputRequest
from cadec_cli.parallel import available_cores
from cadec_cli.terminal import console
from cadec_cli.terminal.console import write_result

if TYPE_CHECKING:
    from cadec_cli.bundle.load import LoadedModels
    from cadec_cli.decoding.confidence import FlaggedSentence
    from cadec_cli.decoding.manner.outcomes import UnmetDemands
    from cadec_cli.decoding.translation import Translation
    from cadec_cli.jobs.by_document import BulkTranslation
    from cadec_cli.jobs.cue_checks import CueChecks
    from cadec_cli.jobs.in_step import FileTranslation, SideOutput, StreamTranslation, Written
    from cadec_cli.jobs.job import TranslationJob
    from cadec_cli.jobs.model_request import ModelRequest
    from cadec_cli.parallel import JobShard, WorkerPool


def open_job(
    request: ModelRequest,
    options: Mapping[str, Any],
    *,
    after: Path | None = None,
    below: float = FLAG_BELOW,
    most: int = MAX_INPUT_BYTES,
) -> TranslationJob:
    """Open the requested job, and show that it is loading; options that are None were not given."""
    from cadec_cli.jobs.job import TranslationJob

    options = {name: value for name, value in options.items() if value is not None}
    with console.loading("the bundle"):
        return TranslationJob.open(
            request,
            options,
            after=after,
            below=below,
            most=most,
            note=console.note,
            loading=console.loading,
            listing=show_listing,
        )


def open_models(request: ModelRequest) -> LoadedModels:
    """Open the requested models, and show that they are loading."""
    with console.loading("models"):
        return request.models_of(request.open_bundle(), note=console.note, loading=console.loading)


def show_listing(done: int, total: int) -> None:
    """Show how many of the next sentences have their n-best lists."""
    console.preparing("n-best", done, total)


# Flags


def check_flags(
    *, output: str | None, resume: bool, json_lines: bool, for_the_terminal: Sequence[str] = ()
) -> None:
    """Refuse flags that contradict each other; `for_the_terminal` are the flags that only show something."""
    named = " or ".join(for_the_terminal)
    if json_lines and named:
        raise typer.BadParameter(f"--json can't be combined with {named}")
    if named and output is not None:
        shows = "shows" if len(for_the_terminal) == 1 else "show"
        raise typer.BadParameter(f"--output can't be combined with {named}, which only {shows} something")
    if resume and output is None:
        raise typer.BadParameter("--resume needs --output, where the interrupted work was going")


def check_by_document(
    inputs: Sequence[Path],
    output: str | None,
    shard: JobShard | None,
    report: Path | None,
    terms: Path | None,
    shown: Sequence[str],
) -> None:
    """Refuse flags and inputs that don't work document by document."""
    asked = "--shard" if shard is not None else "--workers or --engine ray"
    if shown:
        raise typer.BadParameter(f"{' and '.join(shown)} can't be combined with {asked}")
    if output in (None, str(STANDARD_STREAM)):
        raise typer.BadParameter(f"{asked} needs --output: files, a directory or a template")
    if any(path == STANDARD_STREAM or is_stream(path) for path in inputs):
        raise typer.BadParameter(f"{asked} needs files: they are read twice, and a pipe can't be")
    if shard is not None and report is not None:
        raise typer.BadParameter("--report is one page for all files, and --shard translates a part of them")
    if shard is not None and terms is not None:
        raise typer.BadParameter("--terms is one table for all files, and --shard translates a part of them")


def check_bilingual(formats: Iterable[str], *, json_lines: bool) -> None:
    """Refuse to show two languages in formats that can't."""
    from cadec_cli.text.formats import format_named

    if json_lines:
        raise typer.BadParameter("--json can't be combined with --bilingual")
    for name in formats:
        if not format_named(name).bilingual:
            raise typer.BadParameter(f"--bilingual is for subtitles and documents, not for {name}")


def output_request(
    output: str | None, encoding: str, *, json_lines: bool, force: bool, resume: bool
) -> OutputRequest:
    """Make the request for the output from its flags; contradictory flags are refused."""
    from cadec_cli.errors import as_usage_error
    from cadec_cli.jobs.outputs import TemplateError, is_template
    from cadec_cli.text.formats.conversion import output_encoding

    wanted = OutputRequest(output, encoding, json_lines, force, resume)
    with as_usage_error():
        written = output_encoding(encoding)
    if written != "utf-8" and json_lines:
        raise typer.BadParameter("JSON lines are UTF-8", param_hint="--output-encoding")
    if not wanted.to_files and (force or resume):
        raise typer.BadParameter("--force and --resume need --output, and a file there")
    try:
        templated = is_template(output or "")
    except TemplateError as error:
        raise typer.BadParameter(str(error), param_hint="--output") from None
    if resume and not templated and is_stream(Path(output or "")):
        raise typer.BadParameter("--resume needs a file as --output: nothing is kept beside a stream")
    return wanted


def requested_outputs(
    report: Path | None,
    terms: Path | None,
    job: TranslationJob,
    inputs: Sequence[Path],
    cues: CueChecks | None = None,
) -> SideOutput | None:
    """The requested report and table of names, made along with the translation; None without any."""
    from cadec_cli.jobs.found_names import names_output
    from cadec_cli.jobs.in_step import both
    from cadec_cli.reports.explained import translation_report

    names = ["standard input" if path == STANDARD_STREAM else path.name for path in inputs]
    return both(
        None if report is None else translation_report(report, job, names, cues),
        None if terms is None else names_output(terms, names),
    )


# Running


def translations_in_order(work: FileTranslation | StreamTranslation) -> Iterator[Translation]:
    """Yield translations as they come; no progress bar if results go to a terminal: it would overlap."""
    return work.in_order() if sys.stdout.isatty() else work.in_order(_track)


def _track(translations: Iterable[Translation], total: int | None) -> Iterable[Translation]:
    return console.track(translations, "translate", total, "sentences")


def write_translations(
    work: FileTranslation | StreamTranslation,
    *,
    json_lines: bool,
    resume: bool = False,
    flagging: bool = False,
    written: Written = lambda number, file, texts: None,
    unmet: UnmetDemands | None = None,
) -> list[FlaggedSentence]:
    """Write files in their layout, or JSON lines, to the requested output; return the flagged sentences.

    On standard output, sentences are flagged only with `flagging`: the list of a stream may never end.
    `written` is called with each file that is complete; `unmet` counts the sentences that are not as
    demanded.
    """
    from cadec_cli.decoding.confidence import FlagCollector
    from cadec_cli.errors import Interrupted
    from cadec_cli.jobs.in_step import FileTranslation

    if isinstance(work, FileTranslation) and work.plan is not None:
        flagged = work.to_files(
            json_lines=json_lines,
            resume=resume,
            track=_track,
            resumed=_note_resumed,
            damaged=console.warn,
            written=written,
        )
        if unmet is not None:
            unmet.add_flagged(flagged)
        return flagged
    flags = FlagCollector(work.judge)
    done = 0

    def count_done(translations: Iterable[Translation]) -> Iterator[Translation]:
        nonlocal done
        for translation in translations:
            yield translation
            done += 1  # the next one is asked for when this one has been written

    in_order = translations_in_order(work)
    in_order = in_order if unmet is None else unmet.watch(in_order)
    translations = count_done(flags.watch(in_order) if flagging else in_order)
    pieces = (work.json_lines if json_lines else work.restore)(translations, written)
    try:
        for piece in pieces:
            write_result(piece)
        for _ in translations:
            pass  # the layout takes as many as it has places for; a report is written after the last one
    except KeyboardInterrupt:
        if not isinstance(work, FileTranslation):
            were = "sentence was" if work.sentences == 1 else "sentences were"
            raise Interrupted(f"{work.sentences:,} {were} written") from None
        raise Interrupted(
            f"{done:,} of {work.sentences:,} sentences were written; with --output, --resume could continue"
        ) from None
    return flags.found


def note_unmet(unmet: UnmetDemands | None) -> None:
    """Say how many sentences are not as demanded."""
    for flag, count in unmet.found.most_common() if unmet is not None else ():
        sentences = "sentence is" if count == 1 else "sentences are"
        console.note(f"{count:,} {sentences} {flag}; --flag lists {'it' if count == 1 else 'them'}")


def write_by_document(
    work: BulkTranslation,
    pool: WorkerPool,
    *,
    resume: bool,
    flagging: bool,
    written: Written,
    unmet: UnmetDemands | None = None,
) -> None:
    """Have a pool translate; with `flagging`, list the flagged sentences."""
    from cadec_cli.terminal.views.translations import show_flagged_of_files

    survey = work.survey(lambda files, total: console.track(files, "read", total, "files"))
    found: dict[int, Sequence[FlaggedSentence]] = {}

    def doubted(number: int, flagged: Sequence[FlaggedSentence]) -> None:
        if flagging:
            found[number] = flagged
        if unmet is not None:
            unmet.add_flagged(flagged)

    work.run(
        pool,
        survey,
        resume=resume,
        count=lambda done, total: console.track(done, "translate", total, "sentences"),
        resumed=_note_resumed,
        damaged=console.warn,
        doubted=doubted if flagging or unmet is not None else None,
        written=written,
    )
    if flagging:
        in_order: list[FlaggedSentence] = []
        first = 0
        for number, count in enumerate(survey.documents):  # documents are numbered through all files
            in_order += [dataclasses.replace(one, document=first + one.document) for one in found[number]]
            first += count
        show_flagged_of_files(in_order, survey.total, work.inputs, survey.documents)


def _note_resumed(sentences: int) -> None:
    console.note(f"{sentences:,} sentences are done already")


_PER_CORE = 2


def worker_pool(
    workers: int, engine: str, address: str | None, *, threads: int = 0, device: str = "auto"
) -> WorkerPool | None:
    """Make the requested pool; None if this process is to do all the work itself.

    Workers are started when the pool gets its first task.
    """
    if engine == "ray":
        from cadec_cli.parallel.ray import RayPool

        if device.startswith("cuda:"):
            raise typer.BadParameter("Ray gives each worker its own GPU: use --device cuda")
        cores = threads_each(threads)
        return RayPool(workers, address, cores=cores, gpus=1 if device == "cuda" else 0)
    if address is not None:
        raise typer.BadParameter("--address is for a Ray cluster: add --engine ray")
    if not workers:
        return None
    from cadec_cli.parallel.processes import ProcessPool

    # Each worker has a copy of the models in memory, and only as many as there are cores can run at a time.
    most = _PER_CORE * available_cores()
    if workers > most:
        console.note(f"{most:,} workers are enough for the cores of this machine, instead of {workers:,}")
    return ProcessPool(min(workers, most))


def threads_each(threads: int) -> int:
    """The number of threads per worker: one, unless more are requested.

    Dividing the cores among workers would make this depend on their number, and float32 scores with it.
    """
    return threads or 1
