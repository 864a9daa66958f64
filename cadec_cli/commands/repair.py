"""`cadec repair`: translations of any system, made to fit each other by a DocRepair model."""

from pathlib import Path
from typing import Annotated

import typer

from cadec_cli.fs.read import MAX_INPUT_BYTES
from cadec_cli.terminal.flags import (
    BundleOption,
    ComputeType,
    Device,
    Encoding,
    Force,
    InputFormat,
    Lines,
    MaxInput,
    OutputEncoding,
    Threads,
    TranslationOutput,
)


def repair(
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(help="Translations to repair ({endings}); - is standard input."),
    ] = None,
    output: TranslationOutput = None,
    bundle: BundleOption = None,
    lines: Lines = False,
    input_format: InputFormat = None,
    encoding: Encoding = "utf-8",
    output_encoding: OutputEncoding = "utf-8",
    max_input: MaxInput = MAX_INPUT_BYTES,
    beam: Annotated[int, typer.Option(help="Beam size.", min=1)] = 4,
    json_lines: Annotated[
        bool,
        typer.Option("--json", help="One JSON object per sentence, with the n-best list and all scores."),
    ] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Show what was there alongside, differences highlighted.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted repair to --output.")
    ] = False,
    force: Force = False,
    device: Device = "auto",
    compute_type: ComputeType = "int8",
    threads: Threads = 0,
) -> None:
    """Rewrite translations, four sentences at a time, so that they fit each other.

    The input is in the target language, from whatever system. A sentence stays a sentence: where the model
    would join or drop some, they are left as they are.

    Example: cadec repair film.ru.srt --bundle en-ru -o film.repaired.srt

    Example: cadec translate talk.txt --search sentence | cadec repair --bundle en-ru > talk.ru.txt

    Example: cadec repair draft.ru.txt --compare --bundle en-ru
    """
    from cadec_cli.decoding.translator import Translator
    from cadec_cli.engines.document_models import Drafts, RepairModel
    from cadec_cli.engines.protocols import ModelSet
    from cadec_cli.jobs.in_step import FileTranslation
    from cadec_cli.method.options import TranslationOptions
    from cadec_cli.terminal.inputs import check_flags, open_models, translations_in_order, write_translations
    from cadec_cli.terminal.outputs import OutputRequest
    from cadec_cli.terminal.views import translations as views
    from cadec_cli.text.formats import read_text_file

    check_flags(
        output=output,
        resume=resume,
        json_lines=json_lines,
        for_the_terminal=["--compare"] if compare else [],
    )
    wanted = OutputRequest(output, output_encoding, json_lines, force, resume)
    paths = inputs or [Path("-")]
    opened = open_models(bundle, device=device, compute_type=compute_type, threads=threads)
    language = opened.languages.target_code
    plan = wanted.plan(paths, language, language, also_read=opened.bundle.files)
    files = [
        read_text_file(
            path,
            language=language,
            lines=lines,
            encoding=encoding,
            format=input_format,
            tags=True,
            most=max_input,
        )
        for path in paths
    ]
    files = wanted.convert(files, paths, plan, language)
    opened.bundle.path("repair")  # or say how to add one
    drafts = Drafts(opened.joined_model("repair"))
    models = ModelSet(translation=drafts, documents={"repair": RepairModel(drafts.model, drafts.as_they_are)})
    translator = Translator(models, TranslationOptions(search="repair", beam=beam), language=language)
    origin = (("bundle", opened.bundle.manifest.identity), ("compute type", compute_type), ("repair", "yes"))
    work = FileTranslation(translator, files, origin, plan)
    if not compare:
        write_translations(work, json_lines=json_lines, resume=resume)
        return
    views.show_repairs(translations_in_order(work))
