"""What is done to a valid file: bytes, numbers and JSON values replaced, moved, doubled and left out.

Every mutation is a list of small steps that hypothesis draws, and so takes away again one by one when it
looks for the smallest input that fails.
"""

import copy
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import strategies as st

from tests.robustness.fuzz.packing import is_json

_SCALE = 1 << 16

NUMBERS = (b"1" + b"0" * 18, b"-1", b"0", b"NaN", b"9" * 400, b"1e999", b"0.5", b"2147483648", b"7" * 5000)

SNIPPETS = (
    *(b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\\ud800", b"\x1b[31m", b"\x07", b"\x7f"),
    *(b"\r", b"\n", b"\r\n", b"\n\n", b"\xc2\x85", b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"\t", b" ", b"\x0b"),
    *(b'"', b"'", b"{", b"}", b"[", b"]", b"<", b">", b"&", b"&#x110000;", b"|||", b"-->", b":", b",", b"\\"),
    *(b"[" * 3000, b'{"a":' * 2000, b"<i>" * 500, b"a" * 5000, b" " * 5000, b"\n" * 3000, b"null", b"true"),
    *("\u0661\u0662".encode(), "\u202e".encode(), "é".encode("latin-1"), "\U0001f600".encode(), b"../", b"/"),
)

# Stand in for what json.dumps can't write, or what would be slow to make again and again.
_DEEP, _LONG = "\ue000deep\ue000", "\ue000long\ue000"
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 10**18, -(10**18), 10**400, 0.5, 1e308, float("nan"), float("inf")),
    *("", "a", "0", "../up", "/abs", "a\nb", "\x1b[31mred", "\x00", "\ud800", "\u202e", "x" * 3000, _LONG),
    *([], {}, [[]], [None], {"": None}, {"a": 1}, [0] * 2000, ["a", "b"], _DEEP),
)

Change = Callable[[bytes, int, int, int], bytes]


def _flip(data: bytes, at: int, _: int, value: int) -> bytes:
    changed = data[at : at + 1] or b"\x00"
    return data[:at] + bytes([changed[0] ^ (1 << value % 8)]) + data[at + 1 :]


def _put(data: bytes, at: int, _: int, value: int) -> bytes:
    return data[:at] + bytes([value % 256]) + data[at + 1 :]


def _delete(data: bytes, at: int, other: int, _: int) -> bytes:
    return data[:at] + data[at + 1 + other % 40 :]


def _insert(data: bytes, at: int, _: int, value: int) -> bytes:
    return data[:at] + SNIPPETS[value % len(SNIPPETS)] + data[at:]


def _double(data: bytes, at: int, other: int, value: int) -> bytes:
    span = data[min(at, other) : max(at, other)]
    return data[:at] + span * (1 + value % 3) + data[at:]


def _truncate(data: bytes, at: int, _: int, __: int) -> bytes:
    return data[:at]


def _cut(data: bytes, at: int, other: int, _: int) -> bytes:
    return data[: min(at, other)] + data[max(at, other) :]


def _renumber(data: bytes, at: int, _: int, value: int) -> bytes:
    found = re.compile(rb"-?\d+(?:\.\d+)?").search(data, at) or re.search(rb"\d+", data)
    if found is None:
        return data
    return data[: found.start()] + NUMBERS[value % len(NUMBERS)] + data[found.end() :]


def _move_line(data: bytes, at: int, other: int, _: int) -> bytes:
    lines = data.split(b"\n")
    line = lines.pop(at % len(lines))
    lines.insert(other % (len(lines) + 1), line)
    return b"\n".join(lines)


_CHANGES: tuple[Change, ...] = (
    *(_flip, _put, _delete, _insert, _insert, _double, _truncate, _cut, _renumber, _renumber, _move_line),
)
# Numbers that are drawn are often 0 or small ones: here they mean places all over the file.
_PLACE = st.integers(0, _SCALE - 1).map(lambda drawn: (drawn * 40_503 + 20_021) % _SCALE)
_STEPS = st.lists(
    st.tuples(st.integers(0, len(_CHANGES) - 1), _PLACE, _PLACE, st.integers(0, 255)), min_size=1, max_size=4
)
_JSON_STEPS = st.lists(
    st.tuples(st.integers(0, 3), _PLACE, st.integers(0, len(VALUES) - 1)), min_size=1, max_size=2
)


def damaged_bytes(data: bytes) -> st.SearchStrategy[bytes]:
    """The file with some of its bytes changed, without regard for what they mean."""

    def apply(steps: list[tuple[int, int, int, int]]) -> bytes:
        made = data
        for change, at, other, value in steps:
            size = len(made) + 1
            made = _CHANGES[change](made, at * size // _SCALE, other * size // _SCALE, value)
        return made

    return _STEPS.map(apply)


def damaged_json(data: bytes) -> st.SearchStrategy[bytes]:
    """JSON, or lines of it, in which values have another type or size, or are missing, or there twice."""
    whole = is_json(data)
    lines = [data] if whole else data.split(b"\n")
    places = [number for number, line in enumerate(lines) if line.strip() and is_json(line)]

    def apply(drawn: tuple[int, list[tuple[int, int, int]]]) -> bytes:
        chosen, steps = drawn
        changed = list(lines)
        number = places[chosen % len(places)]
        value = json.loads(lines[number])
        for change, at, replacement in steps:
            value = _changed(value, change, at, VALUES[replacement])
        changed[number] = _written(value, indent=2 if whole and b"\n" in data.strip() else None)
        return b"\n".join(changed)

    return st.tuples(_PLACE, _JSON_STEPS).map(apply)


def has_json(data: bytes) -> bool:
    """Tell whether there is JSON to change."""
    return is_json(data) or any(line.strip() and is_json(line) for line in data.split(b"\n", 5)[:5])


def _changed(value: Any, change: int, at: int, replacement: Any) -> Any:
    replacement = copy.deepcopy(replacement)
    places = list(_places(value))
    if not places:
        return replacement
    parent, key = places[at * len(places) // _SCALE]
    if change == 1:
        del parent[key]
    elif change == 2 and isinstance(parent, dict):
        parent[replacement if isinstance(replacement, str) else f"{key}s"] = copy.deepcopy(parent[key])
    elif change == 2:
        parent.append(copy.deepcopy(parent[key]))
    else:
        parent[key] = replacement
    return value


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Everything inside a value: (list or object, index or key). Of long lists, the first ones."""
    if isinstance(value, dict):
        for key, below in list(value.items())[:200]:
            yield value, key
            yield from _places(below)
    elif isinstance(value, list):
        for index, below in enumerate(value[:20]):
            yield value, index
            yield from _places(below)


def _written(value: Any, indent: int | None) -> bytes:
    text = json.dumps(value, indent=indent)
    deep, long = "[" * 100_000 + "]" * 100_000, "1" * 5000
    return text.replace(json.dumps(_DEEP), deep).replace(json.dumps(_LONG), long).encode()
