"""`cadec prepare …`: prepares corpora for training."""

import contextlib
from pathlib import Path
from typing import Annotated, Any

import typer

from cadec_cli.commands.prepare_opensubtitles import opensubtitles
from cadec_cli.data.cleaning import CleaningOptions
from cadec_cli.errors import CadecError, UsageError
from cadec_cli.jobs.outputs import check_outputs
from cadec_cli.terminal.app import new_app
from cadec_cli.terminal.flags import Force, flags_of

prepare_app = new_app("Prepare corpora for training.")
prepare_app.command("opensubtitles")(opensubtitles)


@prepare_app.command("text")
@flags_of("", cleaning=CleaningOptions)
def text(
    inputs: Annotated[
        list[Path],
        typer.Argument(help="Text or tab-separated files, also .xz, .gz or .zst; - is standard input."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Directory to write the prepared corpus to.")
    ],
    pipeline: Annotated[
        list[str],
        typer.Option(
            "--pipeline",
            "-p",
            help="Text pipeline of a language; give two for parallel text. For a D-LM, also a pretrained "
            "language model (a directory, a GGUF file, hf:NAME), or a bundle, to use its S-NMT's target "
            "tokenizer.",
        ),
    ],
    flags: dict[str, Any],
    language: Annotated[
        str | None,
        typer.Option("--language", "-l", help="Language of the text, if a pretrained model is to read it."),
    ] = None,
    columns: Annotated[
        str, typer.Option(help="Columns of tab-separated files, one per pipeline, counted from 1, e.g. 2,3.")
    ] = "",
    lines: Annotated[
        bool,
        typer.Option("--lines", help="Every line is one sentence; otherwise lines are split into sentences."),
    ] = False,
    documents: Annotated[
        bool,
        typer.Option(
            help="Blank lines separate documents; with --no-documents every line is its own document."
        ),
    ] = True,
    placeholders: Annotated[
        bool,
        typer.Option(
            "--placeholders",
            help="Add each pair whose sides share a number, a URL or the like once more, with placeholders "
            "for them, so that the S-NMT learns to copy these.",
        ),
    ] = False,
    dev_output: Annotated[
        Path | None, typer.Option(help="Hold out some documents, and write them here.")
    ] = None,
    dev_every: Annotated[
        int, typer.Option(help="With --dev-output: hold out every n-th document.", min=2)
    ] = 100,
    encoding: Annotated[str, typer.Option(help="Encoding of the input.")] = "utf-8",
    processes: Annotated[int, typer.Option(help="Number of processes; 0 is one per core.", min=0)] = 0,
    force: Force = False,
) -> None:
    """Tokenise and encode text into memory-mapped shards.

    One pipeline makes a monolingual corpus, for D-LMs; two make a parallel one, from two aligned files or
    from columns.

    Example: cadec prepare text plays.txt.xz -p pipelines/ru -o data/plays

    Example: cadec prepare text plays.txt.xz -p hf:google/gemma-3-270m -l ru -o data/plays-gemma

    Example: cadec prepare text pairs.tsv.xz --columns 2,3 -p pipelines/en -p pipelines/ru -o data/pairs
    """
    from cadec_cli.bundle.corpus_text import corpus_text
    from cadec_cli.data.corpora import rows
    from cadec_cli.data.preparation import (
        PreparationOptions,
        check_placeholders,
        count_documents,
        prepare,
    )
    from cadec_cli.data.shards import SideInfo, writing_shard
    from cadec_cli.terminal import console

    if len(pipeline) > 2:
        raise UsageError("one pipeline for monolingual text, two for parallel text; not more")
    check_outputs([output, dev_output], inputs=[*inputs, *pipeline], force=force, directories=True)
    chosen_columns = _column_numbers(columns)
    texts = [corpus_text(given, language) for given in pipeline]
    sides = [SideInfo.of(load()) for load in texts]
    if len(sides) == 2 and any(side.text != "pipeline" for side in sides):
        raise UsageError("parallel text is prepared with text pipelines, not with pretrained models")
    if placeholders:
        check_placeholders([load() for load in texts])
    options = PreparationOptions(
        split=not lines,
        documents=documents,
        dev_every=dev_every if dev_output else 0,
        processes=processes,
        placeholders=placeholders,
    )
    if dev_output and not any(str(path) == "-" for path in inputs):  # files can be read twice
        first = rows(inputs, languages=len(sides), columns=chosen_columns, encoding=encoding)
        found = count_documents(first, dev_every, documents=documents)
        if found < dev_every:
            raise _too_few(found, dev_every)
    read = rows(inputs, languages=len(sides), columns=chosen_columns, encoding=encoding)
    with contextlib.ExitStack() as stack:
        writer = stack.enter_context(writing_shard(output, sides))
        dev_writer = stack.enter_context(writing_shard(dev_output, sides)) if dev_output else None
        with console.progress("rows") as bar:
            task = bar.add_task("prepare", total=None)
            for counts in prepare(read, texts, CleaningOptions(**flags), options, writer, dev_writer):
                bar.update(task, completed=counts["rows"])
        if not writer.sentences:
            raise CadecError("nothing is left to write", "is the input empty, or the cleaning too strict?")
        if dev_writer is not None and not dev_writer.sentences:
            if writer.documents < dev_every:
                raise _too_few(writer.documents, dev_every)
            raise CadecError("nothing is left of the documents held out", "is the cleaning too strict?")
    for name, part in ((output, writer), (dev_output, dev_writer)):
        if part is not None:
            tokens = " and ".join(f"{count:,}" for count in part.token_counts)
            console.note(
                f"{name}: {part.documents:,} documents, {part.sentences:,} sentences, {tokens} tokens"
            )
    left_out = {reason: count for reason, count in counts.items() if reason not in ("kept", "rows")}
    if left_out:
        console.note(
            "left out: " + ", ".join(f"{count:,} {reason}" for reason, count in sorted(left_out.items()))
        )


def _too_few(found: int, dev_every: int) -> CadecError:
    held_out = f"--dev-every {dev_every} holds out one in {dev_every}"
    have = "there is only 1 document" if found == 1 else f"there are only {found} documents"
    if found < 2:
        hint = "a blank line ends a document; with --no-documents every line is one"
    else:
        hint = f"give --dev-every {found} or less; a blank line ends a document"
    return CadecError(f"nothing would be held out for --dev-output: {have}, and {held_out}", hint)


def _column_numbers(text: str) -> tuple[int, ...]:
    try:
        columns = tuple(int(part) for part in text.split(",")) if text else ()
    except ValueError:
        columns = (0,)
    if any(column < 1 for column in columns):
        raise typer.BadParameter(f"{text!r} is not a list of column numbers", param_hint="--columns")
    return columns
