"""Command lines that stand in texts and recipes, held against the commands there are."""

import re
from typing import Any

import typer

from cadec_cli.main import app
from cadec_cli.terminal.flags import fill_help


# Commands are click's, or those of the click that newer versions of typer bring along.
def _commands(command: Any, path: tuple[str, ...] = ()) -> dict[str, Any]:
    below = getattr(command, "commands", None)
    if below is None:
        return {" ".join(path): command}
    return {k: v for name, one in below.items() for k, v in _commands(one, (*path, name)).items()}


KNOWN = _commands(typer.main.get_command(app))
for _command in KNOWN.values():
    fill_help(_command)


def command_of(line: str) -> str:
    """The command of a line, as in: train lm."""
    words = line.partition("cadec ")[2].split()
    return " ".join(words[:2]) if " ".join(words[:2]) in KNOWN else words[0]


def unknown_options(line: str) -> set[str]:
    """Options of a line that its command does not have."""
    known = {
        name
        for parameter in KNOWN[command_of(line)].params
        for name in (*parameter.opts, *parameter.secondary_opts)
    }
    return {word for word in line.partition("cadec ")[2].split() if re.match(r"--?[a-zA-Z]", word)} - known
