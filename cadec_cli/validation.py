"""Checks of numbers and texts from files: type, range, characters; and messages for values that do not fit.

Every input file is untrusted, so each record that is read from one has a table of bounds beside it. The
bounds are far beyond sensible values, and far below values that would fill a machine's memory. The meaning of
fields is not known here.

The functions for JSON records that people write return a valid value, or raise a CadecError that names the
key; what the record is called, and its file, is added by the reader.
"""

from __future__ import annotations

import dataclasses
import math
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cadec_cli.errors import CadecError
from cadec_cli.fs.read import parse_json

# How many characters of a wrong value are shown.
_SHOWN = 60
# How many unknown fields are named.
_MAX_UNKNOWN = 5

# Terminal commands (Cc), marks that reverse the shown text (Cf), halves of characters (Cs) and line ends
# beyond ASCII (Zl, Zp): a text without them looks on a screen as it is.
_UNSHOWABLE = ("Cc", "Cf", "Cs", "Zl", "Zp")
# Characters of Cf that Persian words and emoji need.
_JOINERS = "\u200c\u200d"


@dataclass(frozen=True)
class Whole:
    """A whole number within bounds, both included."""

    least: int
    most: int

    def allows(self, value: object) -> bool:
        """Tell whether a value is such a number; true and 1.0 are not."""
        return type(value) is int and self.least <= value <= self.most

    def __str__(self) -> str:
        return f"a whole number from {self.least} to {self.most:,}"


@dataclass(frozen=True)
class Number:
    """A number within bounds, both included unless it must be `below` the upper or `above` the lower."""

    least: float
    most: float
    below: bool = False
    above: bool = False

    def allows(self, value: object) -> bool:
        """Tell whether a value is such a number; true, NaN and infinities are not."""
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
    """One of some words. They are looked up on every check, since a table may grow."""

    words: Collection[str]

    def allows(self, value: object) -> bool:
        """Tell whether a value is one of the words."""
        return isinstance(value, str) and value in self.words

    def __str__(self) -> str:
        return f"one of {', '.join(self.words)}"


Bound = Whole | Number | Truth | OneOf


def misfits(values: Mapping[str, object] | object, bounds: Mapping[str, Bound]) -> list[str]:
    """Return a message for each field of a record or mapping that is out of bounds, with the bounds."""
    value_of: Callable[[str], object] = (
        values.__getitem__ if isinstance(values, Mapping) else lambda name: getattr(values, name)
    )
    return [
        f"{name} must be {bound}, not {quote_value(value_of(name))}"
        for name, bound in bounds.items()
        if not bound.allows(value_of(name))
    ]


def field_misfits(given: object, record: type) -> list[str]:
    """Return why a value can't be the fields of a record: not a mapping, unknown fields, missing fields."""
    if not isinstance(given, Mapping):
        return [f"{quote_value(given)} is not an object with fields"]
    known = {item.name: item for item in dataclasses.fields(record)}
    unknown = [f"{quote_value(name)} is not a known field" for name in given if name not in known]
    missing = [
        f"{name} is missing" for name, item in known.items() if name not in given and _is_required(item)
    ]
    return [*unknown[:_MAX_UNKNOWN], *missing]


def _is_required(item: dataclasses.Field[Any]) -> bool:
    return item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING


def quote_value(value: object) -> str:
    """Return a value as an error shows it: never longer than a line."""
    if isinstance(value, int) and abs(value) > 10**_SHOWN:
        return f"a number of {math.floor(math.log10(abs(value))) + 1:,} digits"  # Python may not print it
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def text_misfit(value: object, most: int) -> str | None:
    """Return why a value is not a text that can be shown in a line; None if it is one."""
    if not isinstance(value, str):
        return f"{quote_value(value)} is not text"
    if len(value) > most:
        return f"{quote_value(value)} is longer than {most:,} characters"
    if not is_showable(value):
        return f"{quote_value(value)} contains control characters"
    return None


def is_showable(text: str) -> bool:
    """Tell whether a text is one line without hidden or control characters."""
    return not any(
        unicodedata.category(character) in _UNSHOWABLE and character not in _JOINERS for character in text
    )


def showable(text: str, most: int = 200) -> str:
    """Return an untrusted text as one line that can be shown, of at most `most` characters."""
    kept = "".join(character if is_showable(character) else " " for character in text)
    return " ".join(kept.split())[:most]


Record = dict[str, Any]

_SURROGATES = re.compile(r"[\ud800-\udfff]")


def try_json(text: str) -> tuple[Any, str]:
    """Parse a text as one JSON value; return the value, or None and the reason."""
    try:
        return parse_json(text), ""
    except ValueError as error:
        return None, str(error)


def lines_of(text: str) -> Iterator[tuple[str, Any]]:
    """The values of JSON lines with their numbers, from 1; blank lines are skipped.

    A line that is not JSON gives a CadecError as its value, which `object_of` raises.
    """
    number = 0
    for place, line in enumerate(text.split("\n"), 1):
        if line.strip():
            number += 1
            record, problem = try_json(line)
            yield str(number), CadecError(f"line {place} is not valid JSON: {problem}") if problem else record


def object_of(value: Any) -> Record:
    """A value that must be an object."""
    if isinstance(value, CadecError):
        raise value
    if not isinstance(value, dict):
        raise CadecError("it is not an object")
    return value


def value_of(record: Record, key: str) -> Any:
    """The value of a key that must be there."""
    if key not in record:
        raise CadecError(f"it has no “{key}”")
    return record[key]


def text_of(value: Any, key: str) -> str:
    """A value that must be text, and not blank; half characters, which can't be encoded, are replaced."""
    if not isinstance(value, str):
        raise CadecError(f"“{key}” is not text")
    if not value.strip():
        raise CadecError(f"“{key}” is empty")
    return _SURROGATES.sub("\ufffd", value)


def texts_of(record: Record, key: str) -> list[str]:
    """The value of a key that must be a list of texts, at least one."""
    value = value_of(record, key)
    if not isinstance(value, list) or not value:
        raise CadecError(f"“{key}” is not a list of sentences")
    return [text_of(text, key) for text in value]


def number_of(value: Any, key: str) -> int:
    """A value that must be a whole number."""
    if type(value) is not int:  # a bool is an int too
        raise CadecError(f"“{key}” is not a whole number")
    return value


def optional_number(record: Record, key: str) -> int | None:
    """The value of a key that may be missing, or null, and else must be a whole number."""
    value = record.get(key)
    return None if value is None else number_of(value, key)
