"""The Typer app: which commands there are, and how anything that goes wrong is reported.

A command's module is imported when the command is called, or when all are listed, and imports torch and its
like inside its functions: so --help never waits for them, and no command for what only others need.
"""

import errno
import importlib
import os
import sys
from collections.abc import Iterable
from functools import cache
from typing import Annotated, Any

import typer

from cadec_cli.errors import CadecError, Interrupted, UsageError
from cadec_cli.terminal import standard_streams
from cadec_cli.terminal.app import new_app
from cadec_cli.version import __version__

# The panel of the help, then the commands in it: each with its module in commands/, and what it is there. A
# name that ends in _app is a group of commands.
COMMANDS: dict[str, dict[str, str]] = {
    "Translate": {
        "translate": "translate:translate",
        "repl": "repl:repl",
        "rerank": "rerank:rerank",
        "beam": "beam:beam",
        "repair": "repair:repair",
    },
    "Measure": {
        "eval-contrastive": "eval_contrastive:eval_contrastive",
        "score-contrastive": "score_contrastive:score_contrastive",
        "evaluate": "evaluate:evaluate",
        "analyze": "analyze:analyze_app",
        "bench": "bench:bench",
        "reproduce": "reproduce:reproduce",
    },
    "Build": {
        "prepare": "prepare:prepare_app",
        "augment": "augment:augment_app",
        "train": "train:train_app",
        "convert": "convert:convert",
        "info": "info:info",
        "models": "models:models_app",
        "tune": "tune:tune",
    },
}
_NAMES = tuple(name for panel in COMMANDS.values() for name in panel)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cadec {__version__}")
        raise typer.Exit


def root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Options that come before the command."""


def app_with(names: Iterable[str]) -> typer.Typer:
    """The app with some of its commands only; their modules are imported here."""
    wanted = set(names)
    app = new_app(
        "[bold]cadec[/bold] turns any sentence-level translation model into a context-aware one.\n\n"
        "Results go to standard output, everything else to standard error."
    )
    app.callback()(root)
    for panel, commands in COMMANDS.items():
        for name, place in commands.items():
            if name not in wanted:
                continue
            module, _, attribute = place.partition(":")
            made = getattr(importlib.import_module(f"cadec_cli.commands.{module}"), attribute)
            if attribute.endswith("_app"):
                app.add_typer(made, name=name, rich_help_panel=panel)
            else:
                app.command(name, rich_help_panel=panel)(made)
    return app


def _app_for(arguments: list[str]) -> typer.Typer:
    """The app for a command line: with all commands, unless it begins with the one that it needs."""
    return app_with(arguments[:1]) if arguments and arguments[0] in _NAMES else _whole_app()


@cache
def _whole_app() -> typer.Typer:
    return app_with(_NAMES)


def __getattr__(name: str) -> Any:
    """Make `app`, with all commands, for whoever asks for it."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _whole_app()


def run(arguments: list[str] | None = None) -> None:
    """Run the command line and end the process: 0 done, 1 failed, 2 usage, 130 interrupted."""
    sys.exit(exit_code(arguments))


def exit_code(arguments: list[str] | None = None) -> int:
    """Run the command line; whatever goes wrong is one red line, unless --debug."""
    from cadec_cli.terminal import console

    standard_streams.prepare()
    arguments = _common_flags(sys.argv[1:] if arguments is None else arguments)
    told = "interrupted"
    try:
        # A command that runs others finds out here how.
        result: Any = _app_for(arguments)(arguments, prog_name="cadec", standalone_mode=False, obj=exit_code)
        sys.stdout.flush()
        code = result if isinstance(result, int) else 0
    except typer.Exit as exit_:
        code = exit_.exit_code
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except Interrupted as stopped:
        code, told = 130, f"interrupted: {stopped.marked_message}"
    except SystemExit as exit_:  # Typer's answer to a reader that has gone
        code = 0 if isinstance(exit_.__context__, BrokenPipeError) else int(exit_.code or 0)
        _discard_stdout()
    except BrokenPipeError:
        code = 0
        _discard_stdout()
    except Exception as error:
        code = _failure(error)
    except BaseException as error:  # Rust's panics are no Exceptions
        if type(error).__name__ != "PanicException" or console.debugging():
            raise
        told_by_rust = f"a tokenizer can't do its work: {error}"
        code = _failure(CadecError(told_by_rust, "its tokenizer.json is damaged; get the model again"))
    if code == 130:
        console.note(told)
    return code


def _failure(error: Exception) -> int:
    """Tell what went wrong, and return the exit code it stands for."""
    from cadec_cli.terminal import console

    if hasattr(error, "show") and hasattr(error, "exit_code"):  # the parser's own: a usage error
        if hasattr(error, "message"):  # it quotes what was typed
            error.message = console.visible_lines(error.message)
        error.show()
        return int(error.exit_code)
    if console.debugging():
        raise error
    if isinstance(error, CadecError):
        console.error(error.marked_message, error.marked_hint)
    elif isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        console.error("no space left to write the results")
        _discard_stdout()
    elif isinstance(error, OSError) and error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
        # Asked whether something is there, Python raises what only those who open it expect.
        console.error(f"no file can have the name {error.filename}: {error.strerror}")
    elif isinstance(error, MemoryError):
        console.error("there is not enough memory for this", "give it less at a time, or a smaller model")
    else:
        console.error(f"{type(error).__name__}: {error}", "this is a bug in cadec; --debug shows where")
    return 2 if isinstance(error, UsageError) else 1


def _discard_stdout() -> None:
    """Keep Python from complaining when it flushes, at exit, what nobody will read."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _common_flags(arguments: list[str]) -> list[str]:
    """Take --quiet and --debug out, wherever they stand before `--`: they mean the same for every command."""
    from cadec_cli.terminal import console

    end = arguments.index("--") if "--" in arguments else len(arguments)
    before = arguments[:end]
    console.set_quiet("--quiet" in before or "-q" in before)
    console.set_debug("--debug" in before)
    return [flag for flag in before if flag not in ("--quiet", "-q", "--debug")] + arguments[end:]
