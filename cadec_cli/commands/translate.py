"""`cadec translate`: documents, subtitle files and pipes, in context."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cadec_cli.commands.flags import flags_of
from cadec_cli.method.options import TranslationOptions

Bundle_ = Annotated[
    Path | None, typer.Option("--bundle", "-b", help="The bundle; else CADEC_BUNDLE, else the embedded one.")
]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
ComputeType = Annotated[str, typer.Option(help="int8, float32; on a GPU also float16, int8_float16 …")]
Threads = Annotated[int, typer.Option(help="CPU threads; 0 is all cores.", min=0)]


@flags_of("bundle's", search=TranslationOptions)
def translate(
    flags: dict[str, Any],
    inputs: Annotated[
        list[Path] | None, typer.Argument(help="Text, .jsonl, .srt, .vtt or .ass files; - is a pipe.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A file, or a directory for several; else stdout.")
    ] = None,
    bundle: Bundle_ = None,
    lines: Annotated[bool, typer.Option("--lines", help="A line is a sentence: do not split.")] = False,
    input_format: Annotated[
        str | None, typer.Option("--format", help="text, jsonl, srt, vtt or ass, whatever the file's name.")
    ] = None,
    encoding: Annotated[str, typer.Option(help="Encoding of the input, and of the output.")] = "utf-8",
    json_lines: Annotated[
        bool, typer.Option("--json", help="An object a sentence: n-best with every score.")
    ] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Show the sentence level beside it, differences coloured.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show each token's PMI with the context, as colour.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue where an interrupted translation to --output stopped.")
    ] = False,
    device: Device = "auto",
    compute_type: ComputeType = "int8",
    threads: Threads = 0,
) -> None:
    """Translate documents, each sentence in the context of those before it.

    A blank line, a long pause in a film or the end of a file ends a document. The layout stays as it is.

    Example: cadec translate film.srt -o film.ru.srt

    Example: cat letter.txt | cadec translate --compare
    """
    from cadec_cli.commands.translation_run import Display, TranslationRun

    if compare + explain + json_lines > 1 and not (compare and explain):
        raise typer.BadParameter("--json goes alone")
    if (compare or explain) and output is not None:
        raise typer.BadParameter("--compare and --explain are for the terminal, not for --output")
    if resume and output is None:
        raise typer.BadParameter("--resume needs --output, where the interrupted translation was going")
    run = TranslationRun(
        inputs=inputs or [Path("-")],
        bundle=bundle,
        flags=flags,
        lines=lines,
        input_format=input_format,
        encoding=encoding,
        device=device,
        compute_type=compute_type,
        threads=threads,
    )
    if output is not None:
        run.to_files(output, json_lines=json_lines, resume=resume)
    elif compare or explain:
        run.to_terminal(Display(compare=compare, explain=explain))
    elif json_lines:
        run.to_json()
    else:
        run.to_stdout()
