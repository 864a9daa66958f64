"""From what was said on the command line to models and files: the same for every command that translates."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cadec_cli.fs.read import MAX_INPUT_BYTES
from cadec_cli.terminal import console
from cadec_cli.terminal.outputs import write_result
from cadec_cli.text.formats.layout import SubtitleStyle

if TYPE_CHECKING:
    from cadec_cli.bundle.bundle import Bundle
    from cadec_cli.bundle.directions import Languages
    from cadec_cli.bundle.load import LoadedModels
    from cadec_cli.decoding.confidence import FlaggedSentence
    from cadec_cli.decoding.translation import Translation
    from cadec_cli.decoding.translator import Translator
    from cadec_cli.evaluation.contrastive.scoring import ContrastiveModels
    from cadec_cli.jobs.in_step import FileTranslation, SideOutput
    from cadec_cli.jobs.streaming import StreamTranslation
    from cadec_cli.method.context import Context
    from cadec_cli.method.objectives import Objective
    from cadec_cli.method.options import ScoringOptions, TranslationOptions
    from cadec_cli.terminal.outputs import OutputRequest
    from cadec_cli.text.formats import RestoreCallback, TextFile


# How inputs are read: what was said of it on the command line, the same for all that translate files.


@dataclass(frozen=True)
class InputOptions:
    """What was said; `on_restore` gives, for the number of an input, who is told what becomes of it."""

    encoding: str
    lines: bool = False
    format: str | None = None  # by its name, if none is given
    most: int = MAX_INPUT_BYTES
    screen: SubtitleStyle = field(default_factory=SubtitleStyle)
    on_restore: Callable[[int], RestoreCallback] | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """All that the layout of what is written depends on."""
        screen = dataclasses.asdict(self.screen)
        return {"encoding": self.encoding, "lines": self.lines, "format": self.format, "screen": screen}

    def file(self, number: int, path: Path, languages: Languages, options: TranslationOptions) -> TextFile:
        """One of the inputs, read."""
        from cadec_cli.text.formats import read_text_file

        return read_text_file(
            path,
            language=languages.source_code,
            lines=self.lines,
            encoding=self.encoding,
            format=self.format,
            tags=options.protect,
            screen=dataclasses.replace(self.screen, language=languages.target_code),
            restored=None if self.on_restore is None else self.on_restore(number),
            most=self.most,
        )


def open_models(
    bundle: Path | None,
    *,
    device: str,
    compute_type: str,
    threads: int,
    source_language: str | None = None,
    target_language: str | None = None,
) -> LoadedModels:
    """The models of the bundle that was named, or of the default one; for its languages, unless given."""
    from cadec_cli.bundle.bundle import Bundle
    from cadec_cli.bundle.find import find_bundle
    from cadec_cli.bundle.load import load_models

    with console.loading("models"):
        opened = Bundle.open(find_bundle(bundle))
        return load_models(
            opened,
            source_language=source_language,
            target_language=target_language,
            device=device,
            compute_type=compute_type,
            threads=threads,
            note=console.note,
            loading=console.loading,
        )


def file_translation(
    inputs: Sequence[Path],
    bundle: Path | None,
    flags: Mapping[str, Any],
    reading: InputOptions,
    *,
    device: str,
    compute_type: str,
    threads: int,
    source_language: str | None = None,
    target_language: str | None = None,
    wanted: OutputRequest | None = None,
    explain: bool = False,
    after: Path | None = None,
) -> FileTranslation | StreamTranslation:
    """The inputs, read, and the translator that was asked for; models are loaded when all else is right.

    What comes on a pipe and goes to standard output is not read yet, if its format allows that.
    """
    from cadec_cli.bundle.load import default_options
    from cadec_cli.decoding.translator import Translator
    from cadec_cli.errors import CadecError, UsageError
    from cadec_cli.jobs.in_step import FileTranslation
    from cadec_cli.method.options import with_flags

    models = open_models(
        bundle,
        device=device,
        compute_type=compute_type,
        threads=threads,
        source_language=source_language,
        target_language=target_language,
    )
    opened = models.bundle
    if not opened.has_translation:
        raise CadecError(f"{opened.directory} has no S-NMT and can't translate")
    options = with_flags(default_options(opened), flags)
    if explain and not options.weighted_objective.uses_lm:
        raise UsageError(
            f"--search {options.search} asks no D-LM, so there is nothing to explain", "leave out --explain"
        )
    source, target = models.languages.source_code, models.languages.target_code
    plan = None
    if wanted is not None:
        plan = wanted.plan(inputs, source, target, also_read=[after, *opened.files])
    if plan is None and _streams(inputs, reading.format, after):
        return _stream_translation(
            Translator(models, options, language=source),
            reading,
            before=initial_context(after, models, options, reading.most),
            wanted=wanted,
            target=target,
        )
    files = [reading.file(number, path, models.languages, options) for number, path in enumerate(inputs)]
    if wanted is not None:
        files = wanted.convert(files, inputs, plan, target)
    if reading.screen.bilingual:
        check_bilingual(file.format for file in files)
    origin = origin_of(opened, models.languages, options, compute_type)
    before = initial_context(after, models, options, reading.most)
    translator = Translator(models, options, language=source)
    return FileTranslation(translator, files, origin, plan, before=before)


def origin_of(
    bundle: Bundle, languages: Languages, options: TranslationOptions, compute_type: str
) -> tuple[tuple[str, str], ...]:
    """What an outcome depends on besides the text and the options."""
    from cadec_cli.bundle.directions import chosen_languages
    from cadec_cli.bundle.load import seed_of
    from cadec_cli.method.options import AUTO

    origin = [("bundle", bundle.manifest.identity), ("compute type", compute_type)]
    if languages != chosen_languages(bundle):
        origin.append(("languages", str(languages)))
    if options.formality != AUTO:
        origin.append(("seed", "\n".join(seed_of(bundle, languages, options.formality))))
    return tuple(origin)


def _streams(inputs: Sequence[Path], input_format: str | None, after: Path | None) -> bool:
    """Tell whether to translate an input as it comes: there is nothing else to read, and no need to wait."""
    from cadec_cli.fs.read import is_streamed
    from cadec_cli.text.formats import format_named, format_of

    alone = len(inputs) == 1 and (after is None or str(after) != "-")
    if not alone or not is_streamed(inputs[0]):
        return False
    return format_named(input_format or format_of(inputs[0])).lines is not None


def _stream_translation(
    translator: Translator,
    reading: InputOptions,
    *,
    before: Context,
    wanted: OutputRequest | None,
    target: str,
) -> StreamTranslation:
    import sys

    from cadec_cli.fs.read import stream_text
    from cadec_cli.jobs.streaming import StreamTranslation
    from cadec_cli.method.searches import search_kind
    from cadec_cli.text.formats import TextFile
    from cadec_cli.text.formats.stream import CHARACTERS, StreamedText, stream_lines

    stream = stream_text(reading.encoding)
    input_format = reading.format or "text"
    by_line = search_kind(translator.options.search).is_greedy
    if sys.stdin.isatty():
        console.note(
            "type away; " + ("" if by_line else "a blank line ends a document, ") + "Ctrl-D ends it all"
        )
    text = StreamedText(
        stream_lines(
            stream,
            input_format,
            language=translator.language,
            lines=reading.lines,
            whole_documents=not by_line,
            most_held=max(reading.most, CHARACTERS),
        )
    )
    file = TextFile((), text, stream.encoding, input_format)
    if wanted is not None:
        file = wanted.convert_stream(file, target)
    return StreamTranslation(translator, text, file, before=before)


def initial_context(
    after: Path | None, models: LoadedModels, options: TranslationOptions, most: int
) -> Context:
    """The context of the first document of each file: what --after names, if it names something."""
    from cadec_cli.decoding.preceding_context import context_of
    from cadec_cli.method.context import Context

    if after is None:
        return Context()
    return context_of(models, options, read_context(after, models.languages, most=most))


def read_context(after: Path, languages: Languages, *, most: int = MAX_INPUT_BYTES) -> list[str]:
    """The sentences of a file in the target language that comes before what is translated."""
    from cadec_cli.errors import CadecError
    from cadec_cli.text.formats import read_text_file

    file = read_text_file(after, language=languages.target_code, most=most)
    sentences = [text for document in file.documents for text in document.texts]
    if not sentences:
        raise CadecError(f"{after} has no sentences that could come before")
    return sentences


def track_translations(translations: Iterable[Translation], total: int | None) -> Iterable[Translation]:
    """Draw how far a translation is."""
    return console.track(translations, "translate", total, "sentences")


def check_flags(
    *, output: str | None, resume: bool, json_lines: bool, for_the_terminal: Sequence[str] = ()
) -> None:
    """Refuse flags that contradict each other; `for_the_terminal` are those that only show something."""
    import typer

    named = " or ".join(for_the_terminal)
    if json_lines and named:
        raise typer.BadParameter(f"--json can't be combined with {named}")
    if named and output is not None:
        shows = "shows" if len(for_the_terminal) == 1 else "show"
        raise typer.BadParameter(f"--output can't be combined with {named}, which only {shows} something")
    if resume and output is None:
        raise typer.BadParameter("--resume needs --output, where the interrupted work was going")


def check_bilingual(formats: Iterable[str], *, json_lines: bool = False) -> None:
    """Refuse to show two languages in what has no cues."""
    import typer

    from cadec_cli.text.formats import format_named

    if json_lines:
        raise typer.BadParameter("--json can't be combined with --bilingual")
    for name in formats:
        if not format_named(name).has_cues:
            raise typer.BadParameter(f"--bilingual is for subtitles, not for {name}")


def translations_in_order(
    work: FileTranslation | StreamTranslation, companion: SideOutput | None = None
) -> Iterator[Translation]:
    """Translations as they come; a progress bar would be drawn over results on a terminal."""
    import sys

    translations = work.in_order() if sys.stdout.isatty() else work.in_order(track_translations)
    return translations if companion is None else companion.attach(translations)


def write_translations(
    work: FileTranslation | StreamTranslation,
    *,
    json_lines: bool,
    resume: bool,
    companion: SideOutput | None = None,
    flagging: bool = False,
) -> list[FlaggedSentence]:
    """Write files in their layout, or JSON lines, to where they are wanted; returns what is worth a look.

    On standard output that is looked for only with `flagging`: the list of a stream may never end.
    """
    from cadec_cli.decoding.confidence import FlagCollector
    from cadec_cli.errors import Interrupted
    from cadec_cli.jobs.in_step import FileTranslation
    from cadec_cli.jobs.json_output import json_bytes

    if isinstance(work, FileTranslation) and work.plan is not None:
        return work.to_files(
            json_lines=json_lines,
            resume=resume,
            track=track_translations,
            resumed=lambda done: console.note(f"{done:,} sentences are done already"),
            damaged=console.warn,
            companion=companion,
        )
    doubts = FlagCollector(work.judge)
    done = 0

    def count_done(translations: Iterable[Translation]) -> Iterator[Translation]:
        nonlocal done
        for translation in translations:
            yield translation
            done += 1  # whoever asks for another one has written this

    in_order = translations_in_order(work, companion)
    translations = count_done(doubts.watch(in_order) if flagging else in_order)
    try:
        for piece in json_bytes(translations, work.judge) if json_lines else work.restore(translations):
            write_result(piece)
        for _ in translations:
            pass  # the layout takes as many as it has places for; the companion waits for the end
    except KeyboardInterrupt:
        if not isinstance(work, FileTranslation):
            were = "sentence was" if work.sentences == 1 else "sentences were"
            raise Interrupted(f"{work.sentences:,} {were} written") from None
        raise Interrupted(
            f"{done:,} of {work.sentences:,} sentences were written; with --output, --resume could go on"
        ) from None
    return doubts.found


def contrastive_models(
    opened: LoadedModels,
    names: Sequence[str],
    weight: str | None,
    scoring_options: ScoringOptions,
    context: int | None,
) -> tuple[list[Objective], ContrastiveModels]:
    """The objectives that were named, and a bundle's models as far as those need them.

    The bundle's own objective has the bundle's weights, as in translating; those given go before them.
    """
    from cadec_cli.engines.context_free_terms import build_terms
    from cadec_cli.errors import as_usage_error
    from cadec_cli.evaluation.contrastive.scoring import ContrastiveModels, Wording, usable_objectives
    from cadec_cli.method.context import ContextPolicy
    from cadec_cli.method.objectives import NMT, objective
    from cadec_cli.method.options import named_weights

    bundle = opened.bundle
    with as_usage_error():
        weights = named_weights(weight)
    objectives = usable_objectives(
        names,
        weights,
        has_translation=bundle.has_translation,
        has_lm=bundle.has_lm,
        has_backward=bundle.has_backward,
        documents=bundle.document_kinds,
        own=objective(bundle.defaults.objective, bundle.defaults.weight),
        where=f"the bundle {bundle.directory}",
    )
    models = ContrastiveModels(
        opened.translation if any(chosen.uses(NMT) for chosen in objectives) else None,
        opened.language if any(chosen.uses_lm for chosen in objectives) else None,
        scoring_options,
        ContextPolicy(bundle.defaults.context if context is None else context),
        Wording(opened.languages.source_code, opened.languages.target_code),
        tuple({one.names: one for chosen in objectives for one in build_terms(opened, chosen)}.values()),
        {chosen.name: model for chosen in objectives if (model := opened.document(chosen.name)) is not None},
    )
    return objectives, models


def requested_report(
    path: Path | None, work: FileTranslation | StreamTranslation, inputs: Sequence[Path]
) -> SideOutput | None:
    """The report that was asked for, if one was: it is made along with the translation."""
    from cadec_cli.bundle.load import LoadedModels
    from cadec_cli.reports.translations import report_side_output

    models = work.translator.models
    if path is None or not isinstance(models, LoadedModels):
        return None
    names = ["standard input" if str(name) == "-" else name.name for name in inputs]
    codes = (models.languages.source_code, models.languages.target_code)
    return report_side_output(path, work, names, bundle=models.bundle.name, languages=codes)
