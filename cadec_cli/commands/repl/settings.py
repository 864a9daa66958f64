"""The options of a translation as `/set` names, shows and reads them."""

from __future__ import annotations

import dataclasses
import difflib
import math
from typing import Any

from cadec_cli.errors import CadecError
from cadec_cli.method.options import TranslationOptions, with_flags

# The temperature is T, as in the formula.
_SHORT = {"temperature": "T"}
_FIELDS = {
    _SHORT.get(item.name, item.name.replace("_", "-")): item
    for item in dataclasses.fields(TranslationOptions)
}
NAMES = tuple(_FIELDS)
# What a value can be, where that is a list.
VALUES: dict[str, tuple[str, ...]] = {
    name: ("on", "off") if item.metadata["type"] is bool else item.metadata["choices"]
    for name, item in _FIELDS.items()
    if item.metadata["type"] is bool or item.metadata["choices"]
}


def rows(options: TranslationOptions) -> list[tuple[str, str, str]]:
    """Name, value and meaning of every option."""
    return [
        (name, _format_value(getattr(options, item.name), name, options), item.metadata["help"])
        for name, item in _FIELDS.items()
    ]


def with_option(options: TranslationOptions, name: str, value: str) -> TranslationOptions:
    """The options with one of them set; a name or a value that can't be is one CadecError."""
    known = {own.lower(): own for own in NAMES} | _SHORT
    own = known.get(name.lower().replace("_", "-"))
    if own is None:
        near = difflib.get_close_matches(name.lower(), known, 1)
        meant = f"did you mean {known[near[0]]}? " if near else ""
        raise CadecError(f"no option {name!r}", f"{meant}there are {', '.join(NAMES)}")
    item = _FIELDS[own]
    if item.name == "weight" and value.lower() == "default":
        return dataclasses.replace(options, weight={})
    return with_flags(options, {item.name: _read(own, item, value)})


def _read(name: str, item: dataclasses.Field[Any], value: str) -> Any:
    kind = item.metadata["type"]
    if kind is bool:
        if value.lower() not in ("on", "off"):
            raise CadecError(f"{name} is on or off, not {value!r}")
        return value.lower() == "on"
    if name in VALUES and value not in VALUES[name]:
        near = difflib.get_close_matches(value, VALUES[name], 1)
        hint = f"did you mean {near[0]}?" if near else ""
        raise CadecError(f"{name} is one of {', '.join(VALUES[name])}, not {value!r}", hint)
    try:
        read = kind(value)
    except ValueError:
        read = None
    if read is None or (kind is float and not math.isfinite(read)):
        wanted = {int: "a whole number", float: "a number"}[kind]
        raise CadecError(f"{name} needs {wanted}, not {value!r}")
    return read


def _format_value(value: Any, name: str, options: TranslationOptions) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if name == "weight":
        weights = ", ".join(f"{key}={number:g}" for key, number in options.weighted_objective.weights.items())
        return weights if value and weights else f"{weights or 'none'} (default)"
    return f"{value:g}" if isinstance(value, float) else str(value)
