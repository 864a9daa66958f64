"""`cadec repl`: translate sentence by sentence, in context, and have a say in it."""

from typing import Annotated, Any

import typer

from cadec_cli.commands.flags import flags_of
from cadec_cli.commands.shared_flags import (
    BundleOption,
    ComputeType,
    Device,
    SourceLanguage,
    TargetLanguage,
    Threads,
)
from cadec_cli.method.options import TranslationOptions


@flags_of("bundle's", search=TranslationOptions)
def repl(
    flags: dict[str, Any],
    bundle: BundleOption = None,
    source_language: SourceLanguage = None,
    target_language: TargetLanguage = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the last session, however it ended.")
    ] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Show the sentence-level translation alongside.")
    ] = False,
    encoding: Annotated[str, typer.Option(help="Encoding of the files that /open reads.")] = "utf-8",
    device: Device = "auto",
    compute_type: ComputeType = "int8",
    threads: Threads = 0,
) -> None:
    """Translate what you type, each sentence in the context of those before it; /help lists the commands.

    From a pipe: one translation per line, no prompts. The session is saved as you go.

    Example: cadec repl

    Example: printf 'Who are you?\\nI saw you.\\n/nbest 5\\n' | cadec repl
    """
    import sys
    import time

    from cadec_cli import console

    at_terminal = sys.stdin.isatty()
    started = time.monotonic()
    if at_terminal:
        console.note("loading …")

    from cadec_cli.bundle.loading import default_options
    from cadec_cli.commands.repl.commands import COMMANDS
    from cadec_cli.commands.repl.loop import Repl
    from cadec_cli.commands.repl.state import Autosave, resumed
    from cadec_cli.commands.repl.views import Output
    from cadec_cli.commands.wiring import open_models
    from cadec_cli.decoding.session import Direction, Session
    from cadec_cli.errors import CadecError
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
    direction = Direction(models.languages.source or "", models.languages.target, opened.manifest.identity)
    autosave = Autosave.open()
    stored = resumed(autosave, direction, models.language) if resume else None
    known = (stored.options if stored is not None else None) or default_options(opened)
    session = Session(
        models,
        with_flags(known, flags),
        direction=direction,
        documents=stored.documents if stored is not None else (),
    )
    if at_terminal:
        took = time.monotonic() - started
        console.note(
            f"{direction.source}→{direction.target}, loaded in {took:.1f} s. "
            "Type a sentence; /help lists the commands."
        )
    looping = Repl(
        session, Output(sys.stdout.isatty()), autosave, COMMANDS, compare=compare, encoding=encoding
    )
    if at_terminal:
        from cadec_cli.commands.repl.prompt import Prompt, converse

        converse(looping, Prompt(looping, autosave.directory / "repl-history"))
    else:
        looping.read(sys.stdin.buffer)
