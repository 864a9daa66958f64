"""Write docs/cli.md, the command reference, from the help of the commands themselves.

    python docs/tools/make_cli.py

The page depends on the help texts alone, not on a terminal's width or colours. A test fails when it is out
of date.
"""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from cadec_cli.main import app
from cadec_cli.terminal.flags import fill_help

PAGE = Path(__file__).parents[1] / "cli.md"
INTRODUCTION = """\
# Command reference

This page holds the help of every command. It is written by `python docs/tools/make_cli.py`: to change
it, change the help texts in the code and run the script.

- Results go to standard output. Everything else goes to standard error.
- `--quiet` (`-q`) silences notes and progress bars, `--debug` shows tracebacks. Both work with every command.
- `--help` (`-h`) shows a command's help, `--version` the version of cadec.
- `-` stands for standard input.
- Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
"""


def reference() -> str:
    """The whole page: an index, then the commands by the panels of `cadec --help`."""
    panels: dict[str, list[tuple[str, Any]]] = {}
    root: Any = typer.main.get_command(app)
    for first in root.commands.values():
        panels.setdefault(first.rich_help_panel, []).extend(_commands(first, (first.name,)))
    index = [
        f"| [`cadec {name}`](#{_anchor(name)}) | {_cell(_paragraphs(command)[0])} |"
        for commands in panels.values()
        for name, command in commands
    ]
    parts = [INTRODUCTION, "\n".join(["| command | what it does |", "|---|---|", *index, ""])]
    for panel, commands in panels.items():
        parts += [f"## {panel}\n", *(_section(name, command) for name, command in commands)]
    return "\n".join(parts)


# Commands are click's, or those of the click that newer versions of typer bring along.
def _commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", None)
    if below is None:
        fill_help(command)
        yield " ".join(path), command
        return
    for name, one in below.items():
        yield from _commands(one, (*path, name))


def _section(name: str, command: Any) -> str:
    context = command.context_class(command, info_name=f"cadec {name}")
    usage = " ".join(command.get_usage(context).split()).removeprefix("Usage: ")
    examples = [
        text.removeprefix("Example: ") for text in _paragraphs(command) if text.startswith("Example: ")
    ]
    prose = [text for text in _paragraphs(command) if not text.startswith("Example: ")]
    lines = [f"### cadec {name}\n", f"    {usage}\n", *(f"{_wrapped(text)}\n" for text in prose)]
    if examples:
        lines += ["```sh", *examples, "```\n"]
    for panel, records in itertools.groupby(_records(command, context), key=lambda record: record[0]):
        lines += [f"| {panel} | |", "|---|---|"]
        lines += [f"| `{_cell(names)}` | {_cell(text)} |" for _, names, text in records]
        lines.append("")
    return "\n".join(lines)


def _records(command: Any, context: Any) -> list[tuple[str, str, str]]:
    """Panel, names and help of every parameter; panels in the order in which they first come."""
    found = []
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None:
            kind = "argument" if parameter.param_type_name == "argument" else "option"
            found.append((getattr(parameter, "rich_help_panel", None) or kind, *record))
    panels = list(dict.fromkeys(panel for panel, _, _ in found))
    return sorted(found, key=lambda record: panels.index(record[0]))


def _paragraphs(command: Any) -> list[str]:
    return [" ".join(text.split()) for text in _plain(command.help or "").split("\n\n")]


def _wrapped(text: str) -> str:
    """Lines of a reasonable length, never broken within a word."""
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > 115:
            lines.append(line)
            line = ""
        line = f"{line} {word}".strip()
    return "\n".join([*lines, line])


def _cell(text: str) -> str:
    return " ".join(_plain(text).split()).replace("|", r"\|")


def _plain(text: str) -> str:
    """Text without Rich's markup, of which help has nothing but dim, bold and escaped brackets."""
    return re.sub(r"\[/?(?:dim|bold)\]", "", text).replace(r"\[", "[")


def _anchor(name: str) -> str:
    return f"cadec {name}".replace(" ", "-")


if __name__ == "__main__":
    PAGE.write_text(reference(), "utf-8")
