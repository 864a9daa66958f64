"""Many files, document by document: from what was said on the command line to a pool at work.

What a worker of a pool is told is plain data, since it may be another process or on another machine.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cadec_cli.parallel import Task
from cadec_cli.terminal import console
from cadec_cli.terminal.workers import ModelReference

if TYPE_CHECKING:
    from cadec_cli.bundle.bundle import Bundle
    from cadec_cli.bundle.directions import Languages
    from cadec_cli.decoding.confidence import FlaggedSentence
    from cadec_cli.jobs.by_document import BulkTranslation, DocumentWorker, ReportSegmentRecord
    from cadec_cli.jobs.done import FinishedFiles
    from cadec_cli.jobs.output_names import OutputPlan
    from cadec_cli.method.options import TranslationOptions
    from cadec_cli.parallel import WorkerPool
    from cadec_cli.parallel.shard import Shard
    from cadec_cli.terminal.inputs import InputOptions
    from cadec_cli.terminal.outputs import OutputRequest
    from cadec_cli.text.formats import TextFile


@dataclass(frozen=True)
class Instructions:
    """All that a worker needs to know to begin."""

    models: ModelReference
    options: TranslationOptions
    below: float  # which confidence is worth a flag
    json_lines: bool
    report: bool
    before: tuple[str, ...]  # the sentences before the first document of each file


def start_worker(instructions: Instructions) -> DocumentWorker:
    """Load the models, and translate document after document."""
    from cadec_cli.decoding.preceding_context import context_of
    from cadec_cli.decoding.translator import Translator
    from cadec_cli.jobs.by_document import DocumentWorker
    from cadec_cli.method.context import Context

    models = instructions.models.open()
    options, language = instructions.options, models.languages.source_code
    translator = Translator(models, options, language=language)
    judge = translator.judge(instructions.below)
    before = context_of(models, options, instructions.before) if instructions.before else Context()
    beside = None
    if instructions.report:
        from cadec_cli.reports.translations import segment_maker

        beside = segment_maker(translator, judge)
    return DocumentWorker(translator, judge, instructions.json_lines, before, beside)


@dataclass(frozen=True)
class Bulk:
    """A translation in bulk that is ready to run."""

    work: BulkTranslation
    pool: WorkerPool
    inputs: Sequence[Path]  # of this share

    def run(self, *, resume: bool, flagging: bool) -> None:
        """Translate, and tell what is worth a look if anybody wants to know."""
        from cadec_cli.terminal.views import flagged as views

        survey = self.work.survey(lambda files, total: console.track(files, "read", total, "files"))
        found: dict[int, Sequence[FlaggedSentence]] = {}
        self.work.run(
            self.pool,
            survey,
            resume=resume,
            count=lambda done, total: console.track(done, "translate", total, "sentences"),
            resumed=lambda done: console.note(f"{done:,} sentences are done already"),
            damaged=console.warn,
            doubted=found.__setitem__ if flagging else None,
        )
        if flagging:
            views.show_of_files(
                _in_order(found, survey.documents), survey.total, self.inputs, survey.documents
            )


def check_bulk(
    inputs: Sequence[Path], output: str | None, shard: Shard | None, report: Path | None, shown: Sequence[str]
) -> None:
    """Refuse what can't be done document by document."""
    from cadec_cli.fs.paths import is_stream
    from cadec_cli.terminal.outputs import STANDARD_STREAM

    asked = "--shard" if shard is not None else "--workers or --engine ray"
    if shown:
        raise typer.BadParameter(f"{' and '.join(shown)} can't be combined with {asked}")
    if output in (None, str(STANDARD_STREAM)):
        raise typer.BadParameter(f"{asked} needs --output: files, a directory or a template")
    if any(path == STANDARD_STREAM or is_stream(path) for path in inputs):
        raise typer.BadParameter(f"{asked} needs files: they are read twice, which no pipe can be")
    if shard is not None and report is not None:
        raise typer.BadParameter("--report is one page for all files, and --shard translates a part of them")


def bulk_translation(
    inputs: Sequence[Path],
    bundle: Path | None,
    flags: Mapping[str, Any],
    reading: InputOptions,
    *,
    pool: WorkerPool | None,
    shard: Shard | None,
    wanted: OutputRequest,
    device: str,
    compute_type: str,
    threads: int,
    source_language: str | None,
    target_language: str | None,
    after: Path | None,
    below: float,
    report: Path | None,
) -> Bulk | None:
    """The translation that was asked for, ready to run; none, and a note, where nothing is left to do.

    `threads` are those of each worker.
    """
    from cadec_cli.bundle.bundle import Bundle
    from cadec_cli.bundle.directions import chosen_languages
    from cadec_cli.bundle.find import find_bundle, is_embedded
    from cadec_cli.bundle.load import convert_in_advance, default_options
    from cadec_cli.decoding.preceding_context import check_context, readable
    from cadec_cli.errors import CadecError
    from cadec_cli.jobs.by_document import BulkTranslation
    from cadec_cli.jobs.done import remove_complete
    from cadec_cli.jobs.in_step import translation_settings
    from cadec_cli.method.options import with_flags
    from cadec_cli.parallel import SerialPool
    from cadec_cli.terminal.inputs import check_bilingual, origin_of, read_context

    pool = pool or SerialPool()
    with console.loading("the bundle"):
        opened = Bundle.open(find_bundle(bundle))
    if not opened.has_translation:
        raise CadecError(f"{opened.directory} has no S-NMT and can't translate")
    languages = chosen_languages(opened, source_language, target_language)
    options = with_flags(default_options(opened), flags)
    own, plan, record = _shard_of(inputs, wanted, shard, languages)
    if not own:
        console.note(f"there is nothing to do: none of the {len(inputs)} files is in part {shard}")
        return None
    if report is not None and plan.has(report):
        raise typer.BadParameter("the translation and its report can't be one file", param_hint="--report")
    before: tuple[str, ...] = ()
    if after is not None:
        check_context(options)
        before = readable(
            options, read_context(after, languages, most=reading.most), opened.context_positions
        )

    def read(number: int) -> TextFile:
        file = reading.file(number, own[number], languages, options)
        part = plan.part([number], plan.journal)
        (prepared,) = wanted.convert([file], [own[number]], part, languages.target_code)
        if reading.screen.bilingual:
            check_bilingual([prepared.format])
        return prepared

    instructions = Instructions(
        ModelReference(
            None if is_embedded(opened.directory) else opened.directory.absolute(),
            opened.manifest.identity,
            source_language,
            target_language,
            device,
            compute_type,
            threads,
        ),
        options,
        below,
        wanted.json_lines,
        report is not None,
        before,
    )
    way = translation_settings(
        origin_of(opened, languages, options, compute_type),
        options,
        json_lines=wanted.json_lines,
        report=report is not None,
        below=below,
    )
    work = BulkTranslation(
        plan,
        read,
        Task(start_worker, (instructions,)),
        way,
        wanted.json_lines,
        before,
        wanted.force,
        _report(report, opened, options, languages, own),
        # A report is one page about all files, and none of them is finished without it.
        _finished_files(record, way, reading, wanted, before) if wanted.resume and report is None else None,
        own,
    )
    if not wanted.force:
        left = work.unfinished_files()
        if not left:
            assert plan.journal is not None
            remove_complete(plan.journal, way)
            what = "the file is" if len(own) == 1 else f"all {len(own):,} files are"
            console.note(f"nothing is left to do: {what} there, as this translation wrote {_pronoun(own)}")
            return None
        work = work.only(left)
    written = work.finished.path if work.finished is not None else None
    checked = wanted.check(work.plan, [*inputs, after, *opened.files], written)
    work = dataclasses.replace(work, plan=checked)
    convert_in_advance(opened, options, compute_type, console.note)
    return Bulk(work, pool, work.inputs)


def _pronoun(files: Sequence[Path]) -> str:
    return "it" if len(files) == 1 else "them"


def _finished_files(
    record: Path,
    way: Mapping[str, Any],
    reading: InputOptions,
    wanted: OutputRequest,
    before: tuple[str, ...],
) -> FinishedFiles:
    """Where finished files are on record, or can be, with all that they depend on but the inputs."""
    from cadec_cli.jobs.done import FinishedFiles, document_key

    layout = {**reading.settings, "output encoding": wanted.encoding}
    finished = FinishedFiles(record, {**way, "layout": layout, "before": document_key((), before)})
    finished.check()
    return finished


def _shard_of(
    inputs: Sequence[Path], wanted: OutputRequest, shard: Shard | None, languages: Languages
) -> tuple[list[Path], OutputPlan, Path]:
    """The files to translate here, what they become, and where finished ones are on record.

    What is wrong with names is said of all.
    """
    from cadec_cli.fs.paths import is_stream
    from cadec_cli.fs.read import read_errors
    from cadec_cli.jobs.done import RECORD
    from cadec_cli.jobs.output_names import common_journal, common_record, is_directory_of, is_template

    assert wanted.output is not None
    plan = wanted.name(inputs, languages.source_code, languages.target_code)
    if any(map(is_stream, plan.paths)):
        raise typer.BadParameter("--workers and --shard write files", param_hint="--output")
    if shard is None:
        journal = common_journal(wanted.output, plan)
        record = common_record(wanted.output, plan, RECORD)
        return list(inputs), plan.part(range(len(inputs)), journal), record
    if not (is_template(wanted.output) or is_directory_of(wanted.output, plan)):
        raise typer.BadParameter("--shard needs a directory or a template as --output")
    # By name: every job has to find the same division, in whatever order its shell lists the files.
    by_name = sorted(range(len(inputs)), key=lambda number: str(inputs[number]))
    sizes = []
    for number in by_name:
        with read_errors(inputs[number]):
            sizes.append(inputs[number].stat().st_size)
    numbers = sorted(by_name[item] for item in shard.of_sizes(sizes))
    part = f"-{shard.number}-of-{shard.of}"
    journal = common_journal(wanted.output, plan, part)
    record = common_record(wanted.output, plan, RECORD, part)
    return [inputs[number] for number in numbers], plan.part(numbers, journal), record


def _report(
    path: Path | None,
    bundle: Bundle,
    options: TranslationOptions,
    languages: Languages,
    inputs: Sequence[Path],
) -> Callable[[Iterable[ReportSegmentRecord]], None] | None:
    from cadec_cli.reports.translations import report_of_files

    if path is None:
        return None
    codes = (languages.source_code, languages.target_code)
    return report_of_files(path, options, [one.name for one in inputs], bundle=bundle.name, languages=codes)


def _in_order(
    found: Mapping[int, Sequence[FlaggedSentence]], documents: Sequence[int]
) -> list[FlaggedSentence]:
    """The doubts of all files, their documents numbered through."""
    doubts, first = [], 0
    for number, count in enumerate(documents):
        doubts += [dataclasses.replace(one, document=first + one.document) for one in found[number]]
        first += count
    return doubts
