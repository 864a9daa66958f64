"""The command line: the table of commands, and how errors become messages and exit codes.

A command's module is imported when the command is called, or when all are listed. It imports torch and other
heavy packages inside its functions, so `--help` is fast and no command waits for the imports of others.
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
from cadec_cli.terminal.app import new_app
from cadec_cli.version import __version__

# The commands by the panels of the help: each with its module in commands/ and the function there. A name
# that ends in _app is a group of commands.
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
        "eval-generative": "eval_generative:eval_generative",
        "evaluate": "evaluate:evaluate",
        "check": "check:check",
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
    """Return the app with the named commands; their modules are imported here."""
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
    """Return the app for a command line: with the command that it begins with, else with all commands."""
    return app_with(arguments[:1]) if arguments and arguments[0] in _NAMES else _whole_app()


@cache
def _whole_app() -> typer.Typer:
    return app_with(_NAMES)


def __getattr__(name: str) -> Any:
    """Make `app`, with all commands, when it is first used."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _whole_app()


def run(arguments: list[str] | None = None) -> None:
    """Run the command line and end the process: 0 done, 1 failed, 2 usage, 130 interrupted."""
    sys.exit(exit_code(arguments))


def exit_code(arguments: list[str] | None = None) -> int:
    """Run the command line, and return its exit code; an error is one red line, unless `--debug`."""
    from cadec_cli.terminal import console

    console.prepare_streams()
    arguments = _common_flags(sys.argv[1:] if arguments is None else arguments)
    message = "interrupted"
    try:
        # `obj` is how a command runs other commands.
        result: Any = _app_for(arguments)(arguments, prog_name="cadec", standalone_mode=False, obj=exit_code)
        sys.stdout.flush()
        code = result if isinstance(result, int) else 0
    except typer.Exit as exit_:
        code = exit_.exit_code
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except Interrupted as stopped:
        code, message = 130, f"interrupted: {stopped.marked_message}"
    except SystemExit as exit_:  # raised by Typer if the reader of a pipe has gone
        code = 0 if isinstance(exit_.__context__, BrokenPipeError) else int(exit_.code or 0)
        _discard_stdout()
    except BrokenPipeError:
        code = 0
        _discard_stdout()
    except Exception as error:
        code = _failure(error)
    except BaseException as error:  # a panic in Rust is not an Exception
        if type(error).__name__ != "PanicException" or console.debugging():
            raise
        panic = f"a tokenizer failed: {error}"
        code = _failure(CadecError(panic, "its tokenizer.json is damaged; get the model again"))
    if code == 130:
        console.note(message)
    return code


def _failure(error: Exception) -> int:
    """Print an error, and return the exit code for it."""
    from cadec_cli.terminal import console

    if hasattr(error, "show") and hasattr(error, "exit_code"):  # a usage error of the parser
        if hasattr(error, "message"):  # it quotes the command line
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
        # Even Path.exists() raises these.
        console.error(f"no file can have the name {error.filename}: {error.strerror}")
    elif isinstance(error, MemoryError):
        console.error("there is not enough memory for this", "give it less at a time, or a smaller model")
    else:
        console.error(f"{type(error).__name__}: {error}", "this is a bug in cadec; --debug shows where")
    return 2 if isinstance(error, UsageError) else 1


def _discard_stdout() -> None:
    """Send the rest of the output to /dev/null, so that Python's flush at exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _common_flags(arguments: list[str]) -> list[str]:
    """Remove `--quiet` and `--debug` before `--`, and set them: they are common to all commands."""
    from cadec_cli.terminal import console

    end = arguments.index("--") if "--" in arguments else len(arguments)
    before = arguments[:end]
    console.set_quiet("--quiet" in before or "-q" in before)
    console.set_debug("--debug" in before)
    return [flag for flag in before if flag not in ("--quiet", "-q", "--debug")] + arguments[end:]
