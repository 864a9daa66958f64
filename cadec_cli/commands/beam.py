"""`cadec beam`: the context-aware beam search as JSON lines; for people who script experiments."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cadec_cli.fs.read import MAX_INPUT_BYTES
from cadec_cli.jobs.model_request import ModelRequest
from cadec_cli.method.options import TranslationOptions
from cadec_cli.terminal.flags import MODELS, Encoding, Lines, MaxInput, flags_of, model_flags


@flags_of("bundle's", search=TranslationOptions)
@model_flags("source_language", "target_language")
def beam(
    flags: dict[str, Any],
    inputs: Annotated[
        list[Path], typer.Argument(help="Files to translate ({endings}); - is standard input.")
    ],
    models: ModelRequest = MODELS,
    lines: Lines = False,
    encoding: Encoding = "utf-8",
    max_input: MaxInput = MAX_INPUT_BYTES,
) -> None:
    """Decode with S-NMT and D-LM together, step by step; writes one JSON object per sentence.

    It steps token by token if both models share a target vocabulary, and word by word if they do not.

    Example: cadec beam talk.txt --lines --beam 8 --temperature 8 > talk.jsonl
    """
    from cadec_cli.jobs.job import InputOptions
    from cadec_cli.jobs.outputs import OutputRequest
    from cadec_cli.terminal import run_job

    if flags.get("search", "beam") != "beam":
        raise typer.BadParameter("cadec beam uses --search beam; cadec translate has the other searches")
    job = run_job.open_job(models, {**flags, "search": "beam"})
    reading = InputOptions(encoding, lines, most=max_input)
    work = job.translation_of(inputs, reading, OutputRequest(None, json_lines=True))
    run_job.write_translations(work, json_lines=True)
