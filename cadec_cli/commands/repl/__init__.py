"""`cadec repl`: translates sentence by sentence, in context; choices can be corrected."""

from typing import Annotated, Any

import typer

from cadec_cli.fs.read import MAX_INPUT_BYTES
from cadec_cli.jobs.model_request import ModelRequest
from cadec_cli.method.options import TranslationOptions
from cadec_cli.terminal.flags import MODELS, After, MaxInput, flags_of, model_flags


@flags_of("bundle's", search=TranslationOptions)
@model_flags()
def repl(
    flags: dict[str, Any],
    models: ModelRequest = MODELS,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue the last session, however it ended; in a pipe, the last piped one.",
        ),
    ] = False,
    after: After = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Show the sentence-level translation alongside.")
    ] = False,
    encoding: Annotated[str, typer.Option(help="Encoding of the files that /open reads.")] = "utf-8",
    max_input: MaxInput = MAX_INPUT_BYTES,
) -> None:
    """Translate typed sentences, each in the context of those before it; /help lists the commands.

    From a pipe it writes one translation per line and no prompts. A blank line ends a document. If a line
    fails, the rest is still translated and the exit code is 1. The session is saved as you go; a pipe leaves
    the session of the terminal alone.

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

    from cadec_cli.commands.repl.autosave import Autosave, load_saved
    from cadec_cli.commands.repl.commands import COMMANDS
    from cadec_cli.commands.repl.lines import Repl
    from cadec_cli.commands.repl.views import Output
    from cadec_cli.method.options import with_flags
    from cadec_cli.session.session import Direction, Session
    from cadec_cli.terminal.run_job import open_job

    job = open_job(models, flags, after=after, most=max_input)
    job.check_translates()
    before = job.sentences_before
    languages = job.languages
    direction = Direction(languages.source or "", languages.target, job.bundle.manifest.identity)
    autosave = Autosave.open(pipe=not at_terminal)
    stored = load_saved(autosave, direction, job.models.reader) if resume else None
    options = job.options
    if stored is not None and stored.options is not None:
        memory = {"memory": job.options.memory} if job.options.memory else {}  # may come from --after
        options = with_flags(stored.options, flags | memory)
    session = Session(
        job.models,
        options,
        direction=direction,
        documents=stored.documents if stored is not None else (),
        after=stored.after if stored is not None and after is None else before,
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
