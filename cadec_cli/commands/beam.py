"""`cadec beam`: the context-aware beam search as JSON lines; for people who script experiments."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cadec_cli.commands.flags import flags_of
from cadec_cli.commands.translate import Bundle_, ComputeType, Device, Threads
from cadec_cli.method.options import TranslationOptions


@flags_of("bundle's", search=TranslationOptions)
def beam(
    flags: dict[str, Any],
    inputs: Annotated[list[Path], typer.Argument(help="Text or .jsonl files; - is a pipe.")],
    bundle: Bundle_ = None,
    lines: Annotated[bool, typer.Option("--lines", help="A line is a sentence: do not split.")] = False,
    encoding: Annotated[str, typer.Option(help="Encoding of the input.")] = "utf-8",
    device: Device = "auto",
    compute_type: ComputeType = "int8",
    threads: Threads = 0,
) -> None:
    """Decode with S-NMT and D-LM together, token by token; an object a sentence, with all terms.

    Example: cadec beam talk.txt --lines --beam 8 --temperature 8 > talk.jsonl
    """
    from cadec_cli.commands.translation_run import TranslationRun

    TranslationRun(
        inputs=inputs,
        bundle=bundle,
        flags={**flags, "search": "beam"},
        lines=lines,
        input_format=None,
        encoding=encoding,
        device=device,
        compute_type=compute_type,
        threads=threads,
    ).to_json()
