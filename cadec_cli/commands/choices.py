"""Options that take one of a few names: help shows them, the shell completes them, any other is refused.

What a command gets is a plain string, or a list of them where the option can be repeated.
"""

import difflib
import re
from collections.abc import Callable, Iterable
from typing import Any

import typer

# Names that together are longer than this would take the help's room: there the text has to tell them.
_COLUMN = 34


def one_of(
    names: Iterable[str],
    *declarations: str,
    help: str,
    also: str = "",
    panel: str | None = None,
    show_default: bool | str = True,
) -> Any:
    """An option that is one of some names, or of a form that a regular expression describes (`also`)."""
    known = tuple(names)
    return typer.Option(
        *declarations,
        help=help,
        metavar=metavar(known),
        callback=_check_choice(known, also),
        autocompletion=complete_from(known),
        rich_help_panel=panel,
        show_default=show_default,
    )


def metavar(names: tuple[str, ...]) -> str:
    """What a help shows in place of the value."""
    shown = f"<{'|'.join(names)}>"
    return shown if len(shown) <= _COLUMN else "<name>"


def complete_from(names: Iterable[str]) -> Callable[[str], list[str]]:
    """What the shell is offered for what was begun."""
    known = tuple(names)

    def complete(incomplete: str) -> list[str]:
        return [name for name in known if name.startswith(incomplete)]

    return complete


def _check_choice(names: tuple[str, ...], also: str) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        given = value if isinstance(value, list | tuple) else [] if value is None else [value]
        for one in given:
            if one not in names and not (also and re.fullmatch(also, one)):
                near = difflib.get_close_matches(one, names, n=1)
                meant = f" Did you mean {near[0]}?" if near else ""
                raise typer.BadParameter(f"{one!r} is not one of {', '.join(names)}.{meant}")
        return value

    return check
