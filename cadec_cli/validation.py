"""What a number or a text from a file may be: its type, its range, its characters; and what to say otherwise.

Files come from anywhere, so a table of bounds stands beside every record that is read from one. They are far
beyond all that makes sense and far below what fills a machine's memory. What a field means is not known here.
"""

from __future__ import annotations

import dataclasses
import math
import unicodedata
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

# How much of a value that is not what it should be is shown.
_SHOWN = 60
# How many fields that nobody knows are named.
_MAX_UNKNOWN = 5

# Commands to a terminal (Cc), marks that turn around what is shown (Cf), halves of characters (Cs) and ends
# of lines that are none in ASCII (Zl, Zp): whoever shows a text without them shows it as it is.
_UNSHOWABLE = ("Cc", "Cf", "Cs", "Zl", "Zp")
# Of Cf, what Persian words and emoji are written with.
_JOINERS = "\u200c\u200d"


@dataclass(frozen=True)
class Whole:
    """A whole number within bounds, both included."""

    least: int
    most: int

    def allows(self, value: object) -> bool:
        """Tell whether a value is such a number; true and 1.0 are none."""
        return type(value) is int and self.least <= value <= self.most

    def __str__(self) -> str:
        return f"a whole number from {self.least} to {self.most:,}"


@dataclass(frozen=True)
class Number:
    """A number within bounds, both included unless it has to be `below` the upper or `above` the lower."""

    least: float
    most: float
    below: bool = False
    above: bool = False

    def allows(self, value: object) -> bool:
        """Tell whether a value is such a number; true, NaN and what is infinite are none."""
        if type(value) not in (int, float):
            return False
        assert isinstance(value, int | float)
        return (
            self.least <= value <= self.most
            and not (self.below and value == self.most)
            and not (self.above and value == self.least)
        )

    def __str__(self) -> str:
        lower = f"above {self.least:g}" if self.above else f"from {self.least:g}"
        return f"a number {lower} to {'below ' if self.below else ''}{self.most:,g}"


@dataclass(frozen=True)
class Truth:
    """True or false."""

    def allows(self, value: object) -> bool:
        """Tell whether a value is one of the two; 0 and 1 are not."""
        return type(value) is bool

    def __str__(self) -> str:
        return "true or false"


@dataclass(frozen=True)
class OneOf:
    """One of some words; those of a table are looked up when they are asked for, as it may grow."""

    words: Collection[str]

    def allows(self, value: object) -> bool:
        """Tell whether a value is one of them."""
        return isinstance(value, str) and value in self.words

    def __str__(self) -> str:
        return f"one of {', '.join(self.words)}"


Bound = Whole | Number | Truth | OneOf


def misfits(values: Mapping[str, object] | object, bounds: Mapping[str, Bound]) -> list[str]:
    """What is wrong with the fields of a record or of a mapping, in words: each with what it may be."""
    value_of: Callable[[str], object] = (
        values.__getitem__ if isinstance(values, Mapping) else lambda name: getattr(values, name)
    )
    return [
        f"{name} must be {bound}, not {quote_value(value_of(name))}"
        for name, bound in bounds.items()
        if not bound.allows(value_of(name))
    ]


def field_misfits(given: object, record: type) -> list[str]:
    """Why something can't be the fields of a record by name: others, or some that have no default missing."""
    if not isinstance(given, Mapping):
        return [f"{quote_value(given)} is no object with fields"]
    known = {item.name: item for item in dataclasses.fields(record)}
    unknown = [f"{quote_value(name)} is no field" for name in given if name not in known]
    missing = [
        f"{name} is missing" for name, item in known.items() if name not in given and _is_required(item)
    ]
    return [*unknown[:_MAX_UNKNOWN], *missing]


def _is_required(item: dataclasses.Field[Any]) -> bool:
    return item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING


def quote_value(value: object) -> str:
    """A value as an error shows it: no longer than a line, whatever it is."""
    if isinstance(value, int) and abs(value) > 10**_SHOWN:
        return f"one of {math.floor(math.log10(abs(value))) + 1:,} digits"  # which Python may refuse to write
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def text_misfit(value: object, most: int) -> str | None:
    """Why something is no text that can be shown in a line; None where it is one."""
    if not isinstance(value, str):
        return f"{quote_value(value)} is no text"
    if len(value) > most:
        return f"{quote_value(value)} is longer than {most:,} characters"
    if not is_showable(value):
        return f"{quote_value(value)} holds control characters"
    return None


def is_showable(text: str) -> bool:
    """Tell whether a text is one line that means what is seen of it."""
    return not any(
        unicodedata.category(character) in _UNSHOWABLE and character not in _JOINERS for character in text
    )


def showable(text: str, most: int = 200) -> str:
    """A text that somebody wrote elsewhere, as one line that can be shown."""
    kept = "".join(character if is_showable(character) else " " for character in text)
    return " ".join(kept.split())[:most]
