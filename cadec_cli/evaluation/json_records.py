"""Values of JSON records that people write: test sets of objects, in a list or one per line.

Every function returns a valid value or raises a CadecError that names the key. What the record is called, and
the file that it is in, is added by the reader of the set.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from cadec_cli.errors import CadecError
from cadec_cli.fs.read import parse_json

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
