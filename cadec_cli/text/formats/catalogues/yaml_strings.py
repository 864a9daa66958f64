"""Strings in YAML: the catalogues of Rails and others.

Values that are prose are translated (see `prose`); keys, comments, anchors, aliases, tags and order stay.
PyYAML finds the scalars; it is only asked for its events, so that nothing is built, no tag is obeyed, and
an alias costs nothing however often it occurs. A translation is written in the style of its scalar where
that is possible, else in double quotes. If the only key of the outermost mapping is the language of the
source, it becomes that of the translation.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

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
from cadec_cli.text.formats.catalogues.message import Syntax, read_message
from cadec_cli.text.formats.catalogues.prose import is_prose
from cadec_cli.text.formats.layout import Source
from cadec_cli.text.sentences import base_language

_SYNTAX = Syntax(icu=True)
_MAX_DEPTH = 100
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)+")
_TEXT_TAGS = (None, "!", "tag:yaml.org,2002:str")
_BLOCK_HEADER = re.compile(r"[|>][^\r\n]*(?:\r\n|\n|\r)")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\x85": "\\N", "\u2028": "\\L"}
_ESCAPED = re.compile(r'[\\"\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]')


@dataclass(frozen=True)
class _Scalar:
    """A value: where it is, without its anchor, what it says, and the keys that lead to it."""

    start: int
    end: int
    text: str
    style: str  # "", ', ", | or >
    keys: tuple[str, ...]


@dataclass
class _Collection:
    """A mapping or a list that is open."""

    is_list: bool
    key: str = ""
    expects_key: bool = True
    position: int = 0


def read_yaml(source: Source) -> tuple[tuple[Document, ...], CatalogueLayout]:
    """Read the strings of a YAML file; return their documents and the layout that takes translations."""
    return catalogue(source, _items(source))


def _items(source: Source) -> Iterator[Item]:
    language = source.screen.language
    scalars, roots = _scalars(source.text, source.name)
    head = 0
    if len(roots) == 1 and _is_language(roots[0].text, source.language):
        head = 1
        if language:
            root = roots[0]
            quoted = root.style if root.style in ("'", '"') else ""
            yield fixed(root.start, root.end, f"{quoted}{language}{quoted}")
    for scalar in scalars:
        key = next((key for key in scalar.keys[::-1] if not key.isdigit()), "")
        if not is_prose(scalar.text, key):
            continue
        message = read_message(scalar.text.rstrip("\n"), source.language, _SYNTAX)
        if message.sentences:
            raw = source.text[scalar.start : scalar.end]
            end = scalar.start + len(raw.rstrip())
            section = scalar.keys[head] if len(scalar.keys) > head + 1 else ""
            write = _writer(source.text, scalar, end)
            yield Entry(scalar.start, end, (message,), write, ".".join(scalar.keys), section)


def _is_language(key: str, language: str) -> bool:
    return bool(re.fullmatch(r"[a-z]{2,3}(?:[-_]\w{2,8})*", key, re.IGNORECASE)) and (
        base_language(key) == base_language(language)
    )


def _scalars(text: str, name: str) -> tuple[list[_Scalar], list[_Scalar]]:
    """Return the values that are text, and the keys of the outermost mappings."""
    found: list[_Scalar] = []
    roots: list[_Scalar] = []
    open_: list[_Collection] = []
    import yaml

    mark = int(text.startswith("\ufeff"))
    for event in _events(text[mark:], name):
        if isinstance(event, yaml.CollectionEndEvent):
            open_.pop()
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        inner = open_[-1] if open_ else None
        is_key = inner is not None and not inner.is_list and inner.expects_key
        scalar = _scalar(text, event, mark) if isinstance(event, yaml.ScalarEvent) else None
        if inner is not None:
            if inner.is_list:
                inner.key = str(inner.position)
                inner.position += 1
            else:
                inner.expects_key = not inner.expects_key
                if is_key:
                    inner.key = scalar.text if scalar is not None else ""
        if is_key:
            if len(open_) == 1 and scalar is not None:
                roots.append(scalar)
        elif scalar is not None and event.tag in _TEXT_TAGS and _is_string(event):
            keys = tuple(one.key for one in open_)
            found.append(_Scalar(scalar.start, scalar.end, scalar.text, scalar.style, keys))
        if isinstance(event, yaml.CollectionStartEvent):
            open_.append(_Collection(isinstance(event, yaml.SequenceStartEvent)))
            if len(open_) > _MAX_DEPTH:
                raise CadecError(f"{name} is nested more than {_MAX_DEPTH} levels deep")
    return found, roots


def _scalar(text: str, event: Any, offset: int) -> _Scalar:
    start, end = event.start_mark.index + offset, event.end_mark.index + offset
    if properties := _PROPERTIES.match(text, start, end):
        start = properties.end()
    return _Scalar(start, end, event.value, event.style or "", ())


def _is_string(event: Any) -> bool:
    """Tell whether a scalar without quotes is text: not a number, a date or a truth value."""
    import yaml

    if event.style or event.tag is not None:
        return True
    resolved: str = yaml.SafeLoader("").resolve(yaml.ScalarNode, event.value, (True, False))
    return resolved == "tag:yaml.org,2002:str"


def _events(text: str, name: str) -> Iterator[Any]:
    import yaml

    loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    try:
        yield from yaml.parse(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f", line {mark.line + 1}" if mark is not None else ""
        raise CadecError(f"{name}{where} is not YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, UnicodeError, ValueError) as error:
        raise CadecError(f"{name} is not YAML: {str(error).splitlines()[0][:100]}") from None


def _writer(text: str, scalar: _Scalar, end: int) -> Callable[[Outcome], str]:
    raw = text[scalar.start : end]
    return lambda outcome: _written(outcome.texts[0], raw, scalar.style)


def _written(translation: str, raw: str, style: str) -> str:
    """Write a translation in the style of its scalar if it reads as the same text then."""
    attempt = ""
    if style == "'":
        attempt = "'" + translation.replace("'", "''") + "'"
    elif style in ("|", ">"):
        attempt = _block(translation, raw, style)
    elif not style:
        attempt = translation
    if attempt and _reads_as(attempt, translation, style):
        return attempt
    return '"' + _ESCAPED.sub(lambda match: _ESCAPES.get(match[0]) or _code(match[0]), translation) + '"'


def _code(letter: str) -> str:
    return f"\\x{ord(letter):02x}" if ord(letter) < 256 else f"\\u{ord(letter):04x}"


def _block(translation: str, raw: str, style: str) -> str:
    header = _BLOCK_HEADER.match(raw)
    if header is None:
        return ""
    end = "\r\n" if "\r\n" in header[0] else header[0][-1]
    body = raw[header.end() :]
    indents = [len(line) - len(line.lstrip(" ")) for line in body.splitlines() if line.strip()]
    indent = " " * min(indents, default=2)
    between = end if style == "|" else end * 2
    lines = [indent + line if line.strip() else "" for line in translation.split("\n")]
    return header[0] + between.join(lines)


def _reads_as(attempt: str, translation: str, style: str) -> bool:
    """Tell whether a scalar reads as a text, wherever it may stand."""
    import yaml

    block = style in ("|", ">")
    if not block and "\n" in translation:
        return False
    contexts = [f"k: {attempt}\nl: m\n"] + (
        [] if block else [f"{{k: {attempt}, l: m}}\n", f"- [{attempt}, b]\n"]
    )
    loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    try:
        for context in contexts:
            values = [e for e in yaml.parse(context, Loader=loader) if isinstance(e, yaml.ScalarEvent)]
            place, count = (0, 2) if context.startswith("-") else (1, 4)
            if len(values) != count or values[place].value.rstrip("\n") != translation.rstrip("\n"):
                return False
            if not _is_string(values[place]):
                return False
    except (yaml.YAMLError, ValueError):
        return False
    return True
