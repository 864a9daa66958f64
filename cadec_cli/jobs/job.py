"""A translation job: models, options, languages, judge and preceding context, put together in one place.

Every way to translate begins here: files in step or document by document, a stream, n-best lists, a session,
a worker process. Inputs are read and outputs planned here too. Knows nothing of terminals: `note` is called
with messages for the user, `loading` is entered while a model is loaded, and `listing` is called while n-best
lists are made.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from cadec_cli.bundle.bundle import Bundle, chosen_languages
from cadec_cli.bundle.load import LoadedModels, convert_in_advance, default_options, seed_of
from cadec_cli.decoding.confidence import FLAG_BELOW, Judge
from cadec_cli.decoding.preceding_context import check_context, context_of, readable, sentences_about
from cadec_cli.decoding.protection.defects import judge_for
from cadec_cli.decoding.translation import Translation
from cadec_cli.decoding.translator import Translator, choose
from cadec_cli.engines.document_models import Drafts, RepairModel
from cadec_cli.engines.engine import Languages, silence
from cadec_cli.engines.protocols import Models, ModelSet
from cadec_cli.errors import CadecError, UsageError, option
from cadec_cli.fs.paths import is_stream
from cadec_cli.fs.read import MAX_INPUT_BYTES, is_streamed, name_of, read_errors, stream_text
from cadec_cli.jobs.by_document import BulkTranslation, DocumentWorker
from cadec_cli.jobs.done import RECORD, FinishedFiles, document_key, remove_complete
from cadec_cli.jobs.in_step import (
    FileTranslation,
    Segment,
    SideOutput,
    StreamTranslation,
    segment_maker,
    translation_settings,
)
from cadec_cli.jobs.model_request import ModelRequest
from cadec_cli.jobs.outputs import (
    OutputPlan,
    OutputRequest,
    common_journal,
    common_record,
    is_directory_of,
    is_template,
)
from cadec_cli.method.context import Context
from cadec_cli.method.hypotheses import NBest
from cadec_cli.method.options import AUTO, TranslationOptions, with_flags
from cadec_cli.method.searches import search_kind
from cadec_cli.method.terms import term_origin
from cadec_cli.parallel import JobShard, Task
from cadec_cli.text.cast import cast_origin
from cadec_cli.text.documents import Document
from cadec_cli.text.formats import (
    CHARACTERS,
    StreamedText,
    TextFile,
    format_named,
    format_of,
    read_text_file,
    stream_lines,
)
from cadec_cli.text.formats.layout import SubtitleStyle
from cadec_cli.text.glossary.reader import glossary_origin
from cadec_cli.text.name_memory import NameSample
from cadec_cli.text.translation_memory import memory_files, memory_origin, preceding_text


@dataclass(frozen=True)
class InputOptions:
    """How inputs are read; `style` is the layout of translated subtitles."""

    encoding: str | None = "utf-8"
    lines: bool = False
    format: str | None = None  # None: by the file's name
    most: int = MAX_INPUT_BYTES
    style: SubtitleStyle = field(default_factory=SubtitleStyle)
    columns: tuple[str, ...] = ()  # of tables
    retranslate: bool = False  # of catalogues: also what has a translation

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that the layout of the output depends on."""
        style = dataclasses.asdict(self.style)
        if not self.style.fit:
            del style["max_cps"]  # of the output, only what is said about it depends on this
        settings: dict[str, Any] = {
            "encoding": self.encoding,
            "lines": self.lines,
            "format": self.format,
            "screen": style,
        }
        if self.columns or self.retranslate:
            settings |= {"columns": self.columns, "retranslate": self.retranslate}
        return settings


@dataclass(frozen=True)
class TranslationJob:
    """Models and options of a translation; models are loaded when they are first used.

    `after` has the target sentences that precede the first document of each file, or is a file with them.
    Confidences below `below` are flagged. With `drafts` the inputs are translations, which the bundle's
    DocRepair model makes consistent.
    """

    request: ModelRequest
    bundle: Bundle
    languages: Languages
    options: TranslationOptions
    after: Path | tuple[str, ...] = ()
    below: float = FLAG_BELOW
    drafts: bool = False
    most: int = MAX_INPUT_BYTES  # bytes of `after`
    note: Callable[[str], None] = silence
    loading: Callable[[str], AbstractContextManager[Any]] = nullcontext
    listing: Callable[[int, int], None] = lambda done, total: None

    @classmethod
    def open(
        cls,
        request: ModelRequest,
        options: Mapping[str, Any] | TranslationOptions | None = None,
        *,
        after: Path | Sequence[str] | None = None,
        below: float = FLAG_BELOW,
        most: int = MAX_INPUT_BYTES,
        note: Callable[[str], None] = silence,
        loading: Callable[[str], AbstractContextManager[Any]] = nullcontext,
        listing: Callable[[int, int], None] = lambda done, total: None,
    ) -> TranslationJob:
        """Open a job with the requested models; options that they can't serve are a CadecError.

        `options` is complete, or a mapping of those that differ from the bundle's defaults. If `after` is a
        translation memory, it is added to their `memory`.
        """
        search = options.search if isinstance(options, TranslationOptions) else (options or {}).get("search")
        bundle = request.open_bundle(for_lm=search not in ("sentence", "repair"))
        languages = chosen_languages(bundle, request.source_language, request.target_language)
        if not isinstance(options, TranslationOptions):
            options = with_flags(default_options(bundle), options or {})
        if isinstance(after, Path):
            text, memory = preceding_text(after)
            if memory:
                options = with_flags(options, {"memory": (*options.memory, *memory)})
            after = text
        before = after if isinstance(after, Path) else tuple(after or ())
        return cls(
            request,
            bundle,
            languages,
            options,
            before,
            below,
            most=most,
            note=note,
            loading=loading,
            listing=listing,
        )

    @classmethod
    def open_repair(
        cls,
        request: ModelRequest,
        beam: int,
        *,
        note: Callable[[str], None] = silence,
        loading: Callable[[str], AbstractContextManager[Any]] = nullcontext,
    ) -> TranslationJob:
        """Open a job that repairs translations with the bundle's DocRepair model, by beam search."""
        options = TranslationOptions(search="repair", beam=beam)
        opened = cls.open(request, options, note=note, loading=loading)
        target = opened.languages.target
        return dataclasses.replace(opened, languages=Languages(target, target), drafts=True)

    @cached_property
    def loaded(self) -> LoadedModels:
        """The bundle's models."""
        return self.request.models_of(self.bundle, note=self.note, loading=self.loading)

    @cached_property
    def models(self) -> Models:
        """The models that translate: the bundle's, or the one that repairs drafts."""
        if not self.drafts:
            return self.loaded
        self.bundle.path("repair")  # raises an error that says how to add one
        drafts = Drafts(self.loaded.joined_model("repair"))
        return ModelSet(drafts, documents={"repair": RepairModel(drafts.model, drafts.as_they_are)})

    @cached_property
    def translator(self) -> Translator:
        """Models and options, ready to translate."""
        return Translator(
            self.models,
            self.options,
            language=self.languages.source_code,
            target_language=self.languages.target_code,
            listing=self.listing,
        )

    @cached_property
    def judge(self) -> Judge:
        """The judge that says how far translations can be trusted."""
        return judge_for(self.options, self.languages.source_code, self.below)  # needs no model

    @cached_property
    def sentences_before(self) -> tuple[str, ...]:
        """The target sentences that precede the first document of each file."""
        if not self.after:
            return ()
        check_context(self.options)
        if not isinstance(self.after, Path):
            return self.after
        file = read_text_file(self.after, language=self.languages.target_code, most=self.most)
        sentences = tuple(text for document in file.documents for text in document.texts)
        if not sentences:
            raise CadecError(f"{self.after} has no sentences to use as context")
        return sentences

    @cached_property
    def before(self) -> Context:
        """`sentences_before` as the context of the first document of each file."""
        sentences = self.sentences_before
        return context_of(self.models, self.options, sentences) if sentences else Context()

    @property
    def origin(self) -> tuple[tuple[str, str], ...]:
        """What the result depends on besides the text and the options."""
        origin = [("bundle", self.bundle.manifest.identity), ("compute type", self.request.compute_type)]
        if self.languages != chosen_languages(self.bundle):
            origin.append(("languages", str(self.languages)))
        if self.options.formality != AUTO:
            seed = seed_of(self.bundle, self.languages, self.options.formality)
            origin.append(("seed", "\n".join(seed)))
        if self.drafts:
            origin.append(("repair", "yes"))
        origin += [*term_origin(self.options.term), *glossary_origin(self.options.glossary)]
        origin += memory_origin(self.options.memory)
        origin += cast_origin(self.options.cast)
        if self.options.about:
            origin.append(("about", "\n".join(sentences_about(self.options, self.languages.target_code))))
        return tuple(origin)

    def check_translates(self) -> None:
        """Refuse a bundle that can only score."""
        if not self.bundle.has_translation and not self.drafts:
            raise CadecError(f"{self.bundle.directory} has no S-NMT and can't translate")

    def sample_names(self, documents: Sequence[Document]) -> NameSample | None:
        """Return the names that recur in the documents of a file; None if nobody asked for them."""
        if not self.options.finds_names:
            return None
        return NameSample.of_documents(documents, self.languages.source_code)

    # Inputs

    def read(self, path: Path, inputs: InputOptions, note: Callable[[str], None] | None = None) -> TextFile:
        """Read one of the inputs; what is said about how it was read goes to `note`, or the job's own."""
        target = None if self.drafts else self.languages.target_code
        file = read_text_file(
            path,
            language=self.languages.source_code,
            lines=inputs.lines,
            encoding=inputs.encoding,
            format=inputs.format,
            tags=self.options.protect,
            screen=dataclasses.replace(self._style(inputs), language=target),
            columns=inputs.columns,
            retranslate=inputs.retranslate,
            most=inputs.most,
        )
        for remark in file.notes:
            (note or self.note)(f"{name_of(path)}: {remark}")
        return file

    def _style(self, inputs: InputOptions) -> SubtitleStyle:
        """The layout of translated subtitles; sentences know their room if that matters to the search."""
        return dataclasses.replace(inputs.style, fit=self.options.fits)

    def _is_streamed(self, paths: Sequence[Path], inputs: InputOptions) -> bool:
        """Tell whether to translate the input as it arrives: one pipe, in a format read line by line."""
        alone = len(paths) == 1 and str(self.after) != "-" and not self.drafts
        if not alone or not is_streamed(paths[0]):
            return False
        return format_named(inputs.format or format_of(paths[0])).lines is not None

    # Running

    def translation_of(
        self,
        paths: Sequence[Path],
        inputs: InputOptions,
        outputs: OutputRequest,
        *,
        side_output: SideOutput | None = None,
        before: Context | None = None,
    ) -> FileTranslation | StreamTranslation:
        """Prepare files to be translated in step: check, read and plan first, load the models last.

        Input from a pipe to standard output is not read yet, if its format allows streaming. `before` is the
        context of the first document of each file; None means the job's own.
        """
        self.check_translates()
        codes = self.languages.source_code, self.languages.target_code
        read = [self.after if isinstance(self.after, Path) else None, *self.bundle.files]
        read += memory_files(self.options.memory)
        plan = outputs.plan(paths, *codes, also_read=read)
        _check_side_output(plan, side_output)
        if plan is None and self._is_streamed(paths, inputs):
            return self._stream(inputs, outputs, side_output, before)
        files = outputs.convert([self.read(path, inputs) for path in paths], paths, plan, codes[1])
        _check_style(files, inputs)
        before = self.before if before is None else before
        return FileTranslation(self.translator, files, self.origin, plan, self.below, before, side_output)

    def _stream(
        self,
        inputs: InputOptions,
        outputs: OutputRequest,
        side_output: SideOutput | None,
        before: Context | None,
    ) -> StreamTranslation:
        stream = stream_text(inputs.encoding)
        input_format = inputs.format or "text"
        text = StreamedText(
            stream_lines(
                stream,
                input_format,
                language=self.languages.source_code,
                lines=inputs.lines,
                whole_documents=not search_kind(self.options.search).is_greedy,
                most_held=max(inputs.most, CHARACTERS),
                any_text=inputs.format is not None,
                note=self.note,
            )
        )
        file = TextFile((), text, stream.encoding, input_format)
        written = outputs.convert_stream(file, self.languages.target_code)
        before = self.before if before is None else before
        return StreamTranslation(self.translator, text, written, self.below, before, side_output)

    def by_document(
        self,
        paths: Sequence[Path],
        inputs: InputOptions,
        outputs: OutputRequest,
        *,
        shard: JobShard | None = None,
        threads: int = 0,
        side_output: SideOutput | None = None,
    ) -> BulkTranslation | None:
        """Prepare files to be translated document by document, by workers with `threads` threads each.

        With a shard, only its part of the files is translated. Returns None, with a note, if nothing is left
        to do. No model is loaded here; the workers load them.
        """
        self.check_translates()
        own, plan, record = self._part(paths, outputs, shard)
        if not own:
            self.note(f"there is nothing to do: none of the {len(paths)} files is in part {shard}")
            return None
        _check_side_output(plan, side_output)
        before = readable(self.options, self.sentences_before, self.bundle.context_positions)

        said: set[str] = set()

        def note_once(remark: str) -> None:  # files are read twice
            if remark not in said:
                said.add(remark)
                self.note(remark)

        def read(number: int) -> TextFile:
            part = plan.part([number], plan.journal)
            file = self.read(own[number], inputs, note_once)
            files = outputs.convert([file], [own[number]], part, self.languages.target_code)
            _check_style(files, inputs)
            return files[0]

        settings = translation_settings(
            self.origin,
            self.options,
            json_lines=outputs.json_lines,
            beside=side_output.name if side_output is not None else "",
            below=self.below,
        )
        instructions = WorkerInstructions(
            self.request.for_workers(self.bundle, threads),
            self.options,
            before,
            self.below,
            outputs.json_lines,
            side_output.segment if side_output is not None else None,
            explains=side_output is None or side_output.explains,
        )
        finished = None
        if outputs.resume and side_output is None:  # a side output covers all files, finished or not
            of_inputs = dataclasses.replace(inputs, style=self._style(inputs)).settings
            layout = {**of_inputs, "output encoding": outputs.encoding}
            outcome = {**settings, "layout": layout, "before": document_key((), before)}
            finished = FinishedFiles(record, outcome)
            finished.check()
        work = BulkTranslation(
            plan,
            read,
            Task(start_worker, (instructions,)),
            settings,
            outputs.json_lines,
            before,
            outputs.force,
            side_output.write if side_output is not None else None,
            finished,
            own,
            self.sample_names,
        )
        if not outputs.force:
            left = work.unfinished_files()
            if not left:
                assert plan.journal is not None
                remove_complete(plan.journal, settings)
                what, it = ("the file is", "it") if len(own) == 1 else (f"all {len(own):,} files are", "them")
                self.note(f"nothing is left to do: {what} there, as this translation wrote {it}")
                return None
            work = work.only(left)
        after = self.after if isinstance(self.after, Path) else None
        checked = outputs.check(
            work.plan,
            [*paths, after, *memory_files(self.options.memory), *self.bundle.files],
            finished.path if finished is not None else None,
        )
        convert_in_advance(self.bundle, self.options, self.request.compute_type, self.note)
        return dataclasses.replace(work, plan=checked)

    def _part(
        self, paths: Sequence[Path], outputs: OutputRequest, shard: JobShard | None
    ) -> tuple[list[Path], OutputPlan, Path]:
        """The files to translate here, the plan for them, and where finished ones are recorded.

        Names are checked for all files, not only for those of the shard.
        """
        assert outputs.output is not None
        plan = outputs.name(paths, self.languages.source_code, self.languages.target_code)
        if any(map(is_stream, plan.paths)):
            raise UsageError(f"{option('workers')} and {option('shard')} write files, not pipes or devices")
        numbers, part = list(range(len(paths))), ""
        if shard is not None:
            if not (is_template(outputs.output) or is_directory_of(outputs.output, plan)):
                raise UsageError(f"{option('shard')} needs a directory or a template as {option('output')}")
            numbers, part = _shard_numbers(paths, shard), f"-{shard.number}-of-{shard.of}"
        journal = common_journal(outputs.output, plan, part)
        record = common_record(outputs.output, plan, RECORD, part)
        return [paths[number] for number in numbers], plan.part(numbers, journal), record

    def choose(self, documents: Sequence[Sequence[NBest]]) -> Iterator[Translation]:
        """Choose from given n-best lists; yield translations document by document."""
        chosen = choose(
            documents,
            self.models,
            self.options,
            contexts=[self.before, *(Context() for _ in documents[1:])],
            language=self.languages.source_code,
            target_language=self.languages.target_code,
            placing=lambda: self.models.translation if self.bundle.has_translation else None,
        )
        return iter(sorted(chosen, key=lambda one: (one.document, one.sentence)))


def _check_side_output(plan: OutputPlan | None, side_output: SideOutput | None) -> None:
    if plan is not None and side_output is not None and any(map(plan.has, side_output.paths)):
        raise UsageError(f"the translation and its {side_output.name.removeprefix('a ')} can't be one file")


def _check_style(files: Iterable[TextFile], inputs: InputOptions) -> None:
    """Refuse to show two languages in a format that can't."""
    for file in files:
        if inputs.style.bilingual and not format_named(file.format).bilingual:
            raise UsageError(f"{option('bilingual')} is for subtitles and documents, not for {file.format}")


def _shard_numbers(paths: Sequence[Path], shard: JobShard) -> list[int]:
    """The numbers of a shard's files; they do not depend on the order in which files are listed."""
    by_name = sorted(range(len(paths)), key=lambda number: str(paths[number]))
    sizes = []
    for number in by_name:
        with read_errors(paths[number]):
            sizes.append(paths[number].stat().st_size)
    return sorted(by_name[item] for item in shard.of_sizes(sizes))


@dataclass(frozen=True)
class WorkerInstructions:
    """A job as plain data: everything that a worker on any machine needs to run it."""

    models: ModelRequest
    options: TranslationOptions
    after: tuple[str, ...]
    below: float
    json_lines: bool = False
    segment: Segment | None = None  # of a side output
    explains: bool = True


def start_worker(instructions: WorkerInstructions) -> DocumentWorker:
    """Open the job in a worker process; return the function that translates a document."""
    job = TranslationJob.open(
        instructions.models, instructions.options, after=instructions.after, below=instructions.below
    )
    segment = instructions.segment
    return DocumentWorker(
        job.translator,
        job.judge,
        instructions.json_lines,
        job.before,
        segment_maker(segment, job.translator, job.judge, explains=instructions.explains)
        if segment is not None
        else None,
    )
