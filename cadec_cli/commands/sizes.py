"""Sizes as people write them: 64MB, 1.5GB, 200MiB."""

import re

import typer

_UNITS = {"": 1, "B": 1, **{f"{letter}B": 1000**power for power, letter in enumerate("KMGT", 1)}}
_UNITS |= {f"{letter}IB": 1024**power for power, letter in enumerate("KMGT", 1)}
_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,3})?) ?([A-Za-z]{0,3})")


def size_in_bytes(text: str | int) -> int:
    """A size in bytes; anything else is a usage error."""
    match = _SIZE.fullmatch(str(text))
    unit = _UNITS.get(match[2].upper()) if match else None
    size = int(float(match[1]) * unit) if match and unit else 0
    if size < 1:
        raise typer.BadParameter(f"{text!r} is no size: give a number and a unit, such as 500MB or 2GB.")
    return size
