"""Strings in JSON: the catalogues of web programs (`en.json`), and ARB of Flutter.

In plain JSON, values that are prose are translated (see `prose`), wherever they are in objects and lists.
Keys, numbers, order and spacing stay, also if a key occurs twice. The strings under one key of the
outermost object are one document, and those directly in it are one. In ARB, keys that begin with `@`
describe others and stay; `@@locale` becomes the language of the translation, and the file is one document.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cadec_cli.errors import CadecError
from cadec_cli.text.documents import Document
from cadec_cli.text.formats.catalogues.catalogue import (
    CatalogueLayout,
    Entry,
    Item,
    Outcome,
    catalogue,
    fixed,
)
from cadec_cli.text.formats.catalogues.message import Syntax, is_text, read_message
from cadec_cli.text.formats.catalogues.prose import is_prose
from cadec_cli.text.formats.layout import Source

_SYNTAX = Syntax(icu=True)
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[^\s"\[\]{},:]+', re.DOTALL)
_MAX_DEPTH = 100
_SURROGATES = re.compile(r"[\ud800-\udfff]")


@dataclass(frozen=True)
class JsonString:
    """A value that is a string: where it is, quotes included, and the keys and positions that lead to it."""

    start: int
    end: int
    text: str
    keys: tuple[str, ...]


def json_strings(text: str, name: str) -> Iterator[JsonString]:
    """Yield all values that are strings, in order; a text that is not JSON is a CadecError."""
    check_json(text, name)
    keys: list[str] = []  # of all that is open, by depth
    in_list: list[bool] = []
    waiting = ""  # a string, until it is known whether it is a key
    start = end = 0

    def value() -> JsonString:
        return JsonString(start, end, json.loads(waiting, strict=False), tuple(keys))

    for match in _TOKEN.finditer(text):
        token = match[0]
        if token == ":":
            keys[-1] = json.loads(waiting, strict=False)
            waiting = ""
            continue
        if waiting:
            yield value()
            waiting = ""
        if token[0] == '"':
            waiting, start, end = token, match.start(), match.end()
        elif token in "{[":
            in_list.append(token == "[")
            keys.append("0" if token == "[" else "")
        elif token in "}]":
            in_list.pop()
            keys.pop()
        elif token == "," and in_list[-1]:
            keys[-1] = str(int(keys[-1]) + 1)
    if waiting:
        yield value()


def check_json(text: str, name: str) -> None:
    """Refuse a text that is not JSON, or is nested too deeply. Numbers may have any size."""
    try:
        json.JSONDecoder(parse_int=str, parse_float=str, strict=False).decode(text)
    except RecursionError:
        raise _deep(name) from None
    except json.JSONDecodeError as error:
        raise CadecError(
            f"{name}, line {error.lineno} is not JSON: {error.msg}",
            "JSON has no comments and no commas after the last value; "
            "a file with one object per line is .jsonl",
        ) from None
    depth = deepest = 0
    for match in _TOKEN.finditer(text):
        token = match[0]
        if token in ("{", "["):
            depth += 1
            deepest = max(deepest, depth)
        elif token in ("}", "]"):
            depth -= 1
    if deepest > _MAX_DEPTH:
        raise _deep(name)


def _deep(name: str) -> CadecError:
    return CadecError(f"{name} is nested more than {_MAX_DEPTH} levels deep")


def read_json(source: Source) -> tuple[tuple[Document, ...], CatalogueLayout]:
    """Read the strings of a JSON file; return their documents and the layout that takes translations."""

    def section(keys: tuple[str, ...]) -> str:
        return f".{keys[0]}" if len(keys) > 1 else ""

    def wanted(string: JsonString) -> bool:
        if any(key.startswith(("@", "$")) for key in string.keys):
            return False
        return is_prose(string.text, next((key for key in string.keys[::-1] if not key.isdigit()), ""))

    return _read(source, wanted, section)


def read_arb(source: Source) -> tuple[tuple[Document, ...], CatalogueLayout]:
    """Read the messages of an ARB file; return its document and the layout that takes its translation."""

    def wanted(string: JsonString) -> bool:
        return len(string.keys) == 1 and not string.keys[0].startswith("@") and is_text(string.text)

    return _read(source, wanted, lambda keys: "")


def _read(
    source: Source, wanted: Callable[[JsonString], bool], section: Callable[[tuple[str, ...]], str]
) -> tuple[tuple[Document, ...], CatalogueLayout]:
    return catalogue(source, _items(source, wanted, section))


def _items(
    source: Source, wanted: Callable[[JsonString], bool], section: Callable[[tuple[str, ...]], str]
) -> Iterator[Item]:
    text, mark = source.text, int(source.text.startswith("\ufeff"))
    language = source.screen.language
    for string in json_strings(text[mark:], source.name):
        start, end = string.start + mark, string.end + mark
        original = text[start:end]
        if string.keys == ("@@locale",):
            if language:
                yield fixed(start, end, _quoted(language.replace("-", "_"), original))
            continue
        if not wanted(string):
            continue
        message = read_message(string.text, source.language, _SYNTAX)
        if message.sentences:
            place = ".".join(string.keys)
            yield Entry(start, end, (message,), _writer(original), place, section(string.keys))


def _writer(original: str) -> Callable[[Outcome], str]:
    return lambda outcome: _quoted(outcome.texts[0], original)


def _quoted(text: str, original: str) -> str:
    """Write a string; one that was written in ASCII, with escapes for letters, stays so."""
    only_ascii = original.isascii() and re.search(r"\\u[0-9a-fA-F]{4}", original) is not None
    written = json.dumps(text, ensure_ascii=only_ascii or _SURROGATES.search(text) is not None)
    return written.replace("/", "\\/") if "\\/" in original else written
