"""`cadec repl`: translate sentence by sentence, in context, and have a say in it."""

from typing import Annotated, Any

import typer

from cadec_cli.commands.flags import flags_of
from cadec_cli.commands.translate import Bundle_, ComputeType, Device, Threads
from cadec_cli.method.options import TranslationOptions


@flags_of("bundle's", search=TranslationOptions)
def repl(
    flags: dict[str, Any],
    bundle: Bundle_ = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the last session, however it ended.")
    ] = False,
    compare: Annotated[
        bool, typer.Option("--compare", help="Show the sentence level beside every translation.")
    ] = False,
    encoding: Annotated[str, typer.Option(help="Encoding of the files that /open reads.")] = "utf-8",
    device: Device = "auto",
    compute_type: ComputeType = "int8",
    threads: Threads = 0,
) -> None:
    """Translate what you type, each sentence in the context of those before it; /help lists the commands.

    From a pipe: a translation a line for every sentence, no prompts. The session is saved as you go.

    Example: cadec repl

    Example: printf 'Who are you?\\nI saw you.\\n/nbest 5\\n' | cadec repl
    """
    import dataclasses
    import sys
    import time

    from cadec_cli import console

    at_terminal = sys.stdin.isatty()
    started = time.monotonic()
    if at_terminal:
        console.note("loading …")

    from cadec_cli.bundle.loading import default_options
    from cadec_cli.bundle.opening import Bundle, find_bundle
    from cadec_cli.commands.repl.commands import Repl
    from cadec_cli.commands.repl.state import Autosave, resumed
    from cadec_cli.commands.repl.views import Output
    from cadec_cli.decoding.session import Session

    opened = Bundle.open(find_bundle(bundle))
    autosave = Autosave.open()
    stored = resumed(autosave, opened) if resume else None
    known = (stored.options if stored is not None else None) or default_options(opened)
    session = Session(
        opened,
        dataclasses.replace(known, **flags),
        device=device,
        compute_type=compute_type,
        threads=threads,
        documents=stored.documents if stored is not None else (),
    )
    if at_terminal:
        direction = f"{opened.source_language}→{opened.target_language}"
        took = time.monotonic() - started
        console.note(f"{direction}, loaded in {took:.1f} s. Type a sentence; /help lists the commands.")
    looping = Repl(session, Output(sys.stdout.isatty()), autosave, compare=compare, encoding=encoding)
    if at_terminal:
        from cadec_cli.commands.repl.prompt import Prompt, converse

        converse(looping, Prompt(looping, autosave.directory / "repl-history"))
    else:
        looping.read(sys.stdin.buffer)
