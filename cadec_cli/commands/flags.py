"""Command-line flags made of option dataclasses, so that an option is described in one place only."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_type_hints

import typer

from cadec_cli.commands.choices import one_of


def flags_of(source: str = "", **panels: type[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command a flag for every field of some dataclasses; it gets those given as a dict `flags`.

    Each dataclass's flags stand in a help panel of their own, named by the keyword. `source` is what a flag
    that is not given comes from before its default counts: "bundle's" reads as [default: the bundle's, else
    20]. Fields without a default are not a user's to choose, and get no flag.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        parameters = [p for p in inspect.signature(command).parameters.values() if p.name != "flags"]
        hints = {
            name: hint
            for name, hint in get_type_hints(command, include_extras=True).items()
            if name != "flags"
        }
        names = []
        for panel, kind in panels.items():
            for item in dataclasses.fields(kind):
                if item.default is dataclasses.MISSING:
                    continue
                annotation = _flag(item, panel.replace("_", " ").capitalize(), source)
                names.append(item.name)
                hints[item.name] = annotation
                parameters.append(
                    inspect.Parameter(
                        item.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation
                    )
                )

        def run(**arguments: Any) -> None:
            given = {name: value for name in names if (value := arguments.pop(name)) is not None}
            command(**arguments, flags=given)

        run.__name__, run.__doc__ = command.__name__, command.__doc__
        # inspect reads this attribute; the type of functions does not have it
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = hints
        return run

    return decorate


def _flag(item: "dataclasses.Field[Any]", panel: str, source: str) -> Any:
    kind = item.metadata.get("type", type(item.default))
    name = "--" + item.name.replace("_", "-")
    declaration = f"{name}/--no-{name[2:]}" if kind is bool else name
    text = _sentence(item.metadata["help"])
    if item.default is not None:
        default = item.default
        if kind is bool:
            default = "on" if item.default else "off"
        if not item.metadata.get("stored", True):
            source = ""
        # The backslash keeps the help from reading the bracket as markup.
        text += f" [dim]\\[default: {f'the {source}, else ' if source else ''}{default}][/dim]"
    if names := item.metadata.get("choices", ()):
        also = item.metadata.get("also", "")
        return Annotated[
            str | None, one_of(names, declaration, help=text, also=also, panel=panel, show_default=False)
        ]
    return Annotated[
        kind | None, typer.Option(declaration, help=text, rich_help_panel=panel, show_default=False)
    ]


def _sentence(text: str) -> str:
    """A help text as a sentence; where options are listed in a table, it is a phrase."""
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "…")) else ".")
