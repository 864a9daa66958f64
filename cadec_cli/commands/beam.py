"""`cadec beam`: the context-aware beam search as JSON lines; for people who script experiments."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cadec_cli.fs.read import MAX_INPUT_BYTES
from cadec_cli.method.options import TranslationOptions
from cadec_cli.terminal.flags import (
    BundleOption,
    ComputeType,
    Device,
    Encoding,
    Lines,
    MaxInput,
    Threads,
    flags_of,
)


@flags_of("bundle's", search=TranslationOptions)
def beam(
    flags: dict[str, Any],
    inputs: Annotated[
        list[Path], typer.Argument(help="Files to translate ({endings}); - is standard input.")
    ],
    bundle: BundleOption = None,
    lines: Lines = False,
    encoding: Encoding = "utf-8",
    max_input: MaxInput = MAX_INPUT_BYTES,
    device: Device = "auto",
    compute_type: ComputeType = "int8",
    threads: Threads = 0,
) -> None:
    """Decode with S-NMT and D-LM together, step by step; writes one JSON object per sentence.

    Token by token where both have one target vocabulary, word by word where they have two.

    Example: cadec beam talk.txt --lines --beam 8 --temperature 8 > talk.jsonl
    """
    from cadec_cli.jobs.json_output import json_bytes
    from cadec_cli.terminal.inputs import InputOptions, file_translation, translations_in_order
    from cadec_cli.terminal.outputs import write_result

    if flags.get("search", "beam") != "beam":
        raise typer.BadParameter("cadec beam is --search beam; cadec translate has the others")
    work = file_translation(
        inputs,
        bundle,
        {**flags, "search": "beam"},
        InputOptions(encoding, lines, most=max_input),
        device=device,
        compute_type=compute_type,
        threads=threads,
    )
    for piece in json_bytes(translations_in_order(work), work.judge):
        write_result(piece)
