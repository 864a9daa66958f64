"""What all Typer apps of the command line have in common."""

from typing import Any

import typer
from typer.core import TyperGroup

EPILOG = "[dim]--quiet (-q) silences notes and progress, --debug shows tracebacks; both go anywhere.[/dim]"


class Group(TyperGroup):
    """Commands whose flags are shown without a type: a flag that is given or not takes no value."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name, if there is one."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _untyped(command, ctx)
        return command

    def get_params(self, ctx: Any) -> Any:
        """All parameters, --help too."""
        return [_plain(parameter) for parameter in super().get_params(ctx)]


def _untyped(command: Any, ctx: Any) -> None:
    for parameter in command.get_params(ctx):  # --help is made here, once, and kept
        _plain(parameter)


def _plain(parameter: Any) -> Any:
    if getattr(parameter, "is_flag", False) and parameter.metavar is None:
        parameter.metavar = ""
    return parameter


def new_app(text: str) -> typer.Typer:
    """Make an app in the project's style."""
    return typer.Typer(
        cls=Group,
        help=text,
        epilog=EPILOG,
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
