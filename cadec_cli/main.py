"""The Typer app: which commands there are, and how anything that goes wrong is told.

Command modules import torch and its like inside their functions, so that --help never waits for them.
"""

import os
import sys
from typing import Annotated, Any

import typer

from cadec_cli import __version__
from cadec_cli.commands.app import new_app
from cadec_cli.commands.prepare import prepare_app
from cadec_cli.commands.train import train_app
from cadec_cli.errors import CadecError

app = new_app(
    "[bold]cadec[/bold] turns any sentence-level translation model into a context-aware one.\n\n"
    "Results go to standard output, everything else to standard error."
)
app.add_typer(prepare_app, name="prepare")
app.add_typer(train_app, name="train")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cadec {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Options that come before the command."""


def run(arguments: list[str] | None = None) -> None:
    """Run the command line and end the process: 0 done, 1 failed, 2 usage, 130 interrupted."""
    sys.exit(exit_code(arguments))


def exit_code(arguments: list[str] | None = None) -> int:
    """Run the command line; whatever goes wrong is one red line, unless --debug."""
    from cadec_cli import console

    arguments = _common_flags(sys.argv[1:] if arguments is None else arguments)
    try:
        result: Any = app(arguments, prog_name="cadec", standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except typer.Exit as exit_:
        return exit_.exit_code
    except (KeyboardInterrupt, typer.Abort):
        console.error("interrupted")
        return 130
    except BrokenPipeError:
        # The reader has gone; keep Python from complaining when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if console.debugging():
            raise
        if isinstance(error, CadecError):
            console.error(error.message, error.hint)
            return 1
        if hasattr(error, "show") and hasattr(error, "exit_code"):  # the parser's own: a usage error
            error.show()
            return int(error.exit_code)
        console.error(f"{type(error).__name__}: {error}", "this is a bug in cadec; --debug shows where")
        return 1


def _common_flags(arguments: list[str]) -> list[str]:
    """Take --quiet and --debug out, wherever they stand before `--`: they mean the same for every command."""
    from cadec_cli import console

    end = arguments.index("--") if "--" in arguments else len(arguments)
    before = arguments[:end]
    console.set_quiet("--quiet" in before or "-q" in before)
    console.set_debug("--debug" in before)
    return [flag for flag in before if flag not in ("--quiet", "-q", "--debug")] + arguments[end:]
