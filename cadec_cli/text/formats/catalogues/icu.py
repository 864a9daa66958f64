"""ICU messages: the arguments of a message such as `{count, plural, one {# file} other {# files}}`.

Finds the arguments and, in plurals and selects, the texts inside, which are translated. Nothing else of an
argument ever changes. What is not well formed is no ICU message, and is treated as plain text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BEGINNING = re.compile(r"\{\s*([\w.-]{1,100})\s*,\s*(plural|select|selectordinal)\s*,")
_OFFSET = re.compile(r"\s*offset\s*:\s*\d{1,9}")
_SELECTOR = re.compile(r"\s*(=\d{1,9}|[^\s{},=#|']{1,100})\s*\{")
_END = re.compile(r"\s*\}")
_MAX_DEPTH = 10


@dataclass(frozen=True)
class Argument:
    """A plural or select: where it is, and where the texts inside it are."""

    start: int
    end: int
    texts: tuple[tuple[int, int], ...]
    has_number: bool  # `#` in the texts is a number


def find_arguments(text: str) -> list[Argument]:
    """Return the outermost plurals and selects of a message, in order; none if one is not well formed."""
    found: list[Argument] = []
    done = 0
    for match in _BEGINNING.finditer(text):
        if match.start() < done:
            continue
        argument = _argument(text, match)
        if argument is None:
            return []
        found.append(argument)
        done = argument.end
    return found


def _argument(text: str, beginning: re.Match[str]) -> Argument | None:
    place = beginning.end()
    if beginning[2] != "select" and (offset := _OFFSET.match(text, place)):
        place = offset.end()
    texts = []
    selectors = set()
    while selector := _SELECTOR.match(text, place):
        end = _closing(text, selector.end())
        if end is None:
            return None
        selectors.add(selector[1])
        texts.append((selector.end(), end))
        place = end + 1
    last = _END.match(text, place)
    if last is None or "other" not in selectors:
        return None
    return Argument(beginning.start(), last.end(), tuple(texts), beginning[2] != "select")


def _closing(text: str, start: int) -> int | None:
    """Return where the brace is that closes a text; None if there is none, or too much is nested."""
    depth = 0
    for place, sign in _braces(text, start):
        if sign == "}" and not depth:
            return place
        depth += 1 if sign == "{" else -1
        if depth > 2 * _MAX_DEPTH:
            return None
    return None


_BRACE = re.compile(r"[{}]")


def _braces(text: str, start: int) -> Iterator[tuple[int, str]]:
    for match in _BRACE.finditer(text, start):
        yield match.start(), match[0]


# A straight apostrophe before these begins a quotation, in which nothing is an argument.
_QUOTING = re.compile(r"'(?=[{}#|])")


def without_quoting(translation: str) -> str:
    """Write apostrophes that would hide an argument as typographic ones: l'{name} becomes l’{name}."""
    return _QUOTING.sub("\u2019", translation)
