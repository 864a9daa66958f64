"""The common base of all Typer apps of the command line.

For all commands, numbers have an upper limit, and paths must not be empty: a shell variable that is not set
is an empty path, which Python takes for the current directory.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import typer
from typer.core import TyperGroup

from cadec_cli.method.options import MAX_HYPOTHESES
from cadec_cli.terminal.flags import fill_help

EPILOG = "[dim]--quiet (-q) silences notes and progress, --debug shows tracebacks, in any position.[/dim]"

# The largest values of some parameters; that of all others is _MOST.
_LIMITS = {
    **dict.fromkeys(("threads", "processes"), 1024),
    **dict.fromkeys(("nbest", "beam", "paths"), MAX_HYPOTHESES),
    "samples": 1_000_000,
    "seed": 2**63 - 1,
    "max_input": 2**63 - 1,
}
_MOST = 10**9


class Group(TyperGroup):
    """Commands whose flags are shown without a type: a flag that is given or not takes no value."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command with a name; None if there is none."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _relax_parameters(command, ctx)
            command.help = _join_lines(command.help or "")
            vars(command)["format_help"] = partial(_format_help, command, command.format_help)
        return command

    def get_params(self, ctx: Any) -> Any:
        """Return all parameters, including --help."""
        return [_plain(parameter) for parameter in super().get_params(ctx)]


def _format_help(command: Any, format_help: Callable[[Any, Any], None], ctx: Any, formatter: Any) -> None:
    """Show the help with all lists filled in, and no name cut where a terminal has 80 columns."""
    fill_help(command)
    # the two names of a flag leave too little room for the text
    pairs = [(one, one.secondary_opts, one.help) for one in command.params if one.secondary_opts]
    for one, (negative, *_), text in pairs:
        one.secondary_opts, one.help = [], f"{text} Turn it off with {negative}."
    try:
        format_help(ctx, formatter)
    finally:
        for one, negatives, text in pairs:
            one.secondary_opts, one.help = negatives, text


def _join_lines(text: str) -> str:
    """Make one line of every paragraph: where lines end is up to the terminal."""
    return "\n\n".join(" ".join(paragraph.split("\n")) for paragraph in text.split("\n\n"))


def _relax_parameters(command: Any, ctx: Any) -> None:
    for parameter in command.get_params(ctx):  # --help is made here, once, and kept
        _plain(parameter)


def _plain(parameter: Any) -> Any:
    if getattr(parameter, "is_flag", False) and parameter.metavar is None:
        parameter.metavar = ""
    if "process_value" not in vars(parameter):
        parameter.process_value = partial(_process_checked, parameter, parameter.process_value)
    return parameter


def _process_checked(parameter: Any, process: Callable[[Any, Any], Any], ctx: Any, given: Any) -> Any:
    """Process the value of a parameter; refuse an empty path or a number that is too large."""
    if not ctx.resilient_parsing and _is_path(parameter) and "" in _several(given):
        raise typer.BadParameter("the path must not be empty.", ctx, parameter)
    value = process(ctx, given)
    most = _LIMITS.get(parameter.name, _MOST)
    if any(isinstance(one, int) and abs(one) > most for one in _several(value)):
        raise typer.BadParameter(f"the value is more than {most:,}.", ctx, parameter)
    return value


def _several(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else [value]


def _is_path(parameter: Any) -> bool:
    """Tell whether a parameter takes a file, a directory or a template for names."""
    kind = parameter.bare_type() if hasattr(parameter, "bare_type") else parameter.type.name
    return "path" in kind.lower() or parameter.name == "output"


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
