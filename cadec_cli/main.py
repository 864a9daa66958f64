"""The Typer app: which commands there are, and how anything that goes wrong is reported.

Command modules import torch and its like inside their functions, so that --help never waits for them.
"""

import errno
import os
import sys
from typing import Annotated, Any

import typer

from cadec_cli.commands import standard_streams
from cadec_cli.commands.analyze import analyze_app
from cadec_cli.commands.app import new_app
from cadec_cli.commands.augment import augment_app
from cadec_cli.commands.beam import beam
from cadec_cli.commands.bench import bench
from cadec_cli.commands.convert import convert
from cadec_cli.commands.eval_contrastive import eval_contrastive
from cadec_cli.commands.evaluate import evaluate
from cadec_cli.commands.info import info
from cadec_cli.commands.models import models_app
from cadec_cli.commands.prepare import prepare_app
from cadec_cli.commands.repair import repair
from cadec_cli.commands.repl.command import repl
from cadec_cli.commands.reproduce import reproduce
from cadec_cli.commands.rerank import rerank
from cadec_cli.commands.score_contrastive import score_contrastive
from cadec_cli.commands.train import train_app
from cadec_cli.commands.translate import translate
from cadec_cli.commands.tune import tune
from cadec_cli.errors import CadecError, Interrupted, UsageError
from cadec_cli.version import __version__

app = new_app(
    "[bold]cadec[/bold] turns any sentence-level translation model into a context-aware one.\n\n"
    "Results go to standard output, everything else to standard error."
)
_TRANSLATE, _MEASURE, _BUILD = "Translate", "Measure", "Build"
app.command("translate", rich_help_panel=_TRANSLATE)(translate)
app.command("repl", rich_help_panel=_TRANSLATE)(repl)
app.command("rerank", rich_help_panel=_TRANSLATE)(rerank)
app.command("beam", rich_help_panel=_TRANSLATE)(beam)
app.command("repair", rich_help_panel=_TRANSLATE)(repair)
app.command("eval-contrastive", rich_help_panel=_MEASURE)(eval_contrastive)
app.command("score-contrastive", rich_help_panel=_MEASURE)(score_contrastive)
app.command("evaluate", rich_help_panel=_MEASURE)(evaluate)
app.add_typer(analyze_app, name="analyze", rich_help_panel=_MEASURE)
app.command("bench", rich_help_panel=_MEASURE)(bench)
app.command("reproduce", rich_help_panel=_MEASURE)(reproduce)
app.add_typer(prepare_app, name="prepare", rich_help_panel=_BUILD)
app.add_typer(augment_app, name="augment", rich_help_panel=_BUILD)
app.add_typer(train_app, name="train", rich_help_panel=_BUILD)
app.command("convert", rich_help_panel=_BUILD)(convert)
app.command("info", rich_help_panel=_BUILD)(info)
app.add_typer(models_app, name="models", rich_help_panel=_BUILD)
app.command("tune", rich_help_panel=_BUILD)(tune)


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

    standard_streams.prepare()
    arguments = _common_flags(sys.argv[1:] if arguments is None else arguments)
    told = "interrupted"
    try:
        # A command that runs others finds out here how.
        result: Any = app(arguments, prog_name="cadec", standalone_mode=False, obj=exit_code)
        sys.stdout.flush()
        code = result if isinstance(result, int) else 0
    except typer.Exit as exit_:
        code = exit_.exit_code
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except Interrupted as stopped:
        code, told = 130, f"interrupted: {stopped}"
    except SystemExit as exit_:  # Typer's answer to a reader that has gone
        code = 0 if isinstance(exit_.__context__, BrokenPipeError) else int(exit_.code or 0)
        _forget_stdout()
    except BrokenPipeError:
        code = 0
        _forget_stdout()
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
    from cadec_cli import console

    if hasattr(error, "show") and hasattr(error, "exit_code"):  # the parser's own: a usage error
        if hasattr(error, "message"):  # it quotes what was typed
            error.message = console.visible_lines(error.message)
        error.show()
        return int(error.exit_code)
    if console.debugging():
        raise error
    if isinstance(error, CadecError):
        console.error(error.message, error.hint)
    elif isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        console.error("no space left to write the results")
        _forget_stdout()
    elif isinstance(error, OSError) and error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
        # Asked whether something is there, Python raises what only those who open it expect.
        console.error(f"no file can have the name {error.filename}: {error.strerror}")
    elif isinstance(error, MemoryError):
        console.error("there is not enough memory for this", "give it less at a time, or a smaller model")
    else:
        console.error(f"{type(error).__name__}: {error}", "this is a bug in cadec; --debug shows where")
    return 2 if isinstance(error, UsageError) else 1


def _forget_stdout() -> None:
    """Keep Python from complaining when it flushes, at exit, what nobody will read."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _common_flags(arguments: list[str]) -> list[str]:
    """Take --quiet and --debug out, wherever they stand before `--`: they mean the same for every command."""
    from cadec_cli import console

    end = arguments.index("--") if "--" in arguments else len(arguments)
    before = arguments[:end]
    console.set_quiet("--quiet" in before or "-q" in before)
    console.set_debug("--debug" in before)
    return [flag for flag in before if flag not in ("--quiet", "-q", "--debug")] + arguments[end:]
