"""`cadec repl`: translate sentence by sentence, in context, and have a say in it."""

from typing import Annotated, Any

import typer

from cadec_cli.fs.read import MAX_INPUT_BYTES
from cadec_cli.method.options import TranslationOptions
from cadec_cli.terminal.flags import (
    After,
    BundleOption,
    ComputeType,
    Device,
    MaxInput,
    SourceLanguage,
    TargetLanguage,
    Threads,
    flags_of,
)

# `cadec repl`: the loop, its commands, its prompt, its state.


@flags_of("bundle's", search=TranslationOptions)
def repl(
    flags: dict[str, Any],
    bundle: BundleOption = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue the last session, however it ended; in a pipe, the last one of a pipe.",
        ),
    ] = False,
    after: After = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Show the sentence-level translation alongside.")
    ] = False,
    encoding: Annotated[str, typer.Option(help="Encoding of the files that /open reads.")] = "utf-8",
    max_input: MaxInput = MAX_INPUT_BYTES,
    device: Device = "auto",
    compute_type: ComputeType = "int8",
    threads: Threads = 0,
) -> None:
    """Translate what you type, each sentence in the context of those before it; /help lists the commands.

    From a pipe: one translation per line, no prompts; a blank line ends a document, and if a line fails, the
    rest is done all the same and the exit code is 1. The session is saved as you go, a pipe's apart.

    Example: cadec repl

    Example: printf 'Who are you?\\nI saw you.\\n/nbest 5\\n' | cadec repl
    """
    import sys
    import time

    from cadec_cli.terminal import console

    at_terminal = sys.stdin.isatty()
    started = time.monotonic()
    if at_terminal:
        console.note("loading …")

    from cadec_cli.bundle.load import default_options
    from cadec_cli.commands.repl.autosave import Autosave, load_saved
    from cadec_cli.commands.repl.commands import COMMANDS
    from cadec_cli.commands.repl.loop import Repl
    from cadec_cli.commands.repl.views import Output
    from cadec_cli.decoding.preceding_context import context_of
    from cadec_cli.errors import CadecError
    from cadec_cli.method.options import with_flags
    from cadec_cli.session.session import Direction, Session
    from cadec_cli.terminal.inputs import open_models, read_context

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
    direction = Direction(models.languages.source or "", models.languages.target, opened.manifest.identity)
    options = with_flags(default_options(opened), flags)
    if after is not None:
        context_of(models, options, [])  # or say why nothing before could count
    autosave = Autosave.open(pipe=not at_terminal)
    stored = load_saved(autosave, direction, models.reader) if resume else None
    if stored is not None and stored.options is not None:
        options = with_flags(stored.options, flags)
    before = stored.after if stored is not None else ()
    session = Session(
        models,
        options,
        direction=direction,
        documents=stored.documents if stored is not None else (),
        after=before if after is None else read_context(after, models.languages, most=max_input),
    )
    if at_terminal:
        took = time.monotonic() - started
        console.note(
            f"{direction.source}→{direction.target}, loaded in {took:.1f} s. "
            "Type a sentence; /help lists the commands."
        )
    looping = Repl(
        session,
        Output(sys.stdout.isatty()),
        autosave,
        COMMANDS,
        compare=compare,
        encoding=encoding,
        max_input=max_input,
    )
    if at_terminal:
        from cadec_cli.commands.repl.prompt import Prompt, converse

        converse(looping, Prompt(looping, autosave.directory / "repl-history"))
    elif not looping.read(sys.stdin.buffer):
        raise typer.Exit(1)
