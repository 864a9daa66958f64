"""`cadec repair`: makes a system's translations consistent with each other, by a DocRepair model."""

from pathlib import Path
from typing import Annotated

import typer

from cadec_cli.fs.read import MAX_INPUT_BYTES
from cadec_cli.jobs.model_request import ModelRequest
from cadec_cli.terminal.flags import (
    MODELS,
    Encoding,
    Force,
    InputFormat,
    Lines,
    MaxInput,
    OutputEncoding,
    TranslationOutput,
    model_flags,
)


@model_flags("source_language", "target_language")
def repair(
    inputs: Annotated[
        list[Path] | None,
        typer.Argument(help="Translations to repair ({endings}); - is standard input."),
    ] = None,
    output: TranslationOutput = None,
    models: ModelRequest = MODELS,
    lines: Lines = False,
    input_format: InputFormat = None,
    encoding: Encoding = "utf-8",
    output_encoding: OutputEncoding = "utf-8",
    max_input: MaxInput = MAX_INPUT_BYTES,
    beam: Annotated[int, typer.Option(help="Beam size.", min=1)] = 4,
    json_lines: Annotated[
        bool,
        typer.Option(
            "--json", help="Write one JSON object per sentence, with the n-best list and all scores."
        ),
    ] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Show the input alongside, differences highlighted.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted repair to --output.")
    ] = False,
    force: Force = False,
) -> None:
    """Rewrite translations, four sentences at a time, so that they fit each other.

    The input is in the target language and may come from any system. Every sentence stays one sentence: if
    the model would join or drop some, they are left unchanged.

    Example: cadec repair film.ru.srt --bundle en-ru -o film.repaired.srt

    Example: cadec translate talk.txt --search sentence | cadec repair --bundle en-ru > talk.ru.txt

    Example: cadec repair draft.ru.txt --compare --bundle en-ru
    """
    from cadec_cli.jobs.job import InputOptions, TranslationJob
    from cadec_cli.terminal import console, run_job
    from cadec_cli.terminal.views import translations as views

    run_job.check_flags(
        output=output,
        resume=resume,
        json_lines=json_lines,
        for_the_terminal=["--compare"] if compare else [],
    )
    outputs = run_job.output_request(
        output, output_encoding, json_lines=json_lines, force=force, resume=resume
    )
    with console.loading("the bundle"):
        job = TranslationJob.open_repair(models, beam, note=console.note, loading=console.loading)
    reading = InputOptions(encoding, lines, input_format, max_input)
    work = job.translation_of(inputs or [Path("-")], reading, outputs)
    if not compare:
        run_job.write_translations(work, json_lines=json_lines, resume=resume)
        return
    views.show_repairs(run_job.translations_in_order(work))
