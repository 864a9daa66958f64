"""XML as text with places: its elements, and where each begins and ends in the file.

`safe_xml` checks that a file is well formed and harmless. Then its own text is cut at its tags, so that a
translation can be put into it and all else stays as it is.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from cadec_cli.errors import CadecError
from cadec_cli.text.safe_xml import walk_xml

MAX_PIECES = 1_500_000  # of a file, which is held in memory
_DECLARATION = re.compile(r"\A\ufeff?<\?xml[^>]*\?>")
_TOKEN = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>"
    r"|<!DOCTYPE(?:[^\[>\"']|\"[^\"]*\"|'[^']*')*(?:\[[^\]]*\]\s*)?>"
    r"|</[^>]*>|<[^>\"']*(?:\"[^\"]*\"[^>\"']*|'[^']*'[^>\"']*)*>|[^<]+",
    re.DOTALL,
)
_NAME = re.compile(r"</?([^\s/>]+)")
_ATTRIBUTE = re.compile(r"([^\s=<>\"'/]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_ENTITY = re.compile(r"&(?:#(\d{1,7})|#x([0-9a-fA-F]{1,6})|(amp|lt|gt|quot|apos));")
_UNKNOWN_ENTITY = re.compile(r"&(?!#|(?:amp|lt|gt|quot|apos);)[^;]{0,40};?")
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the file: a tag, text, a CDATA section, or something that is only kept."""

    kind: str  # start, end, empty, text, cdata, other
    start: int
    end: int


@dataclass(slots=True)
class Element:
    """An element, and where it is. The name has no prefix; an element without content ends with its tag."""

    name: str
    prefix: str
    start: int
    inner_start: int
    inner_end: int = -1
    end: int = -1
    empty: bool = False
    attributes: dict[str, str] = field(default_factory=dict)  # names with their prefixes
    children: list["Element"] = field(default_factory=list)
    first_token: int = 0  # of its content
    last_token: int = 0

    def walk(self) -> Iterator["Element"]:
        """Yield the element and all inside it, in the order of the file."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting += reversed(element.children)

    def child(self, name: str) -> "Element | None":
        """Return the first child with a name; None if there is none."""
        return next((one for one in self.children if one.name == name), None)


@dataclass(frozen=True)
class Xml:
    """A file of XML: its text, its pieces, and its root."""

    text: str
    tokens: tuple[Token, ...]
    root: Element

    def content(self, element: Element) -> str:
        """Return an element's content as it is written."""
        return self.text[element.inner_start : element.inner_end]

    def inside(self, element: Element) -> tuple[Token, ...]:
        """Return the pieces of an element's content."""
        return self.tokens[element.first_token : element.last_token]


def read_xml(text: str, name: str) -> Xml:
    """Read a file of XML; `name` is what messages call it. What is not well formed is a CadecError."""
    # The text is decoded already, whatever encoding the file declares.
    walk_xml(_DECLARATION.sub("", text).encode("utf-8", "surrogatepass"), name, "well-formed XML")
    tokens = tuple(_tokens(text, name))
    open_: list[Element] = []
    root: Element | None = None
    for number, token in enumerate(tokens):
        if token.kind in ("start", "empty"):
            element = _element(text, token)
            element.first_token = number + 1
            if open_:
                open_[-1].children.append(element)
            root = root or element
            if token.kind == "start":
                open_.append(element)
            else:
                element.inner_end = element.end = token.end
                element.last_token = element.first_token
        elif token.kind == "end":
            element = open_.pop()
            element.inner_end, element.end, element.last_token = token.start, token.end, number
    if root is None or open_:
        raise CadecError(f"{name} is not XML that can be read")
    return Xml(text, tokens, root)


def _tokens(text: str, name: str) -> Iterator[Token]:
    done = 0
    for number, match in enumerate(_TOKEN.finditer(text)):
        if match.start() != done:
            break
        if number == MAX_PIECES:
            raise CadecError(
                f"{name} has more than {MAX_PIECES:,} tags and texts", "divide it into several files"
            )
        done = match.end()
        kind = _kind(match[0])
        if kind == "text" and (unknown := _UNKNOWN_ENTITY.search(match[0])):
            raise CadecError(
                f"{name}: the entity {unknown[0]} is not one of XML", "write its character instead"
            )
        yield Token(kind, match.start(), done)
    if done != len(text):
        raise CadecError(f"{name} is not XML that can be read")


def _kind(token: str) -> str:
    if not token.startswith("<"):
        return "text"
    if token.startswith("<![CDATA["):
        return "cdata"
    if token.startswith(("<!", "<?")):
        return "other"
    if token.startswith("</"):
        return "end"
    return "empty" if token.endswith("/>") else "start"


def _element(text: str, token: Token) -> Element:
    written = text[token.start : token.end]
    found = _NAME.match(written)
    prefix, _, name = (found[1] if found else "").rpartition(":")
    attributes = {
        match[1]: unescape_xml(match[2] if match[2] is not None else match[3])
        for match in _ATTRIBUTE.finditer(written, found.end() if found else 0)
    }
    return Element(name, prefix, token.start, token.end, empty=token.kind == "empty", attributes=attributes)


def unescape_xml(text: str) -> str:
    """Return a text with its character references and the five entities of XML replaced."""
    return _ENTITY.sub(_character, text) if "&" in text else text


def _character(match: re.Match[str]) -> str:
    if match[3]:
        return _ENTITIES[match[3]]
    return chr(int(match[1]) if match[1] else int(match[2], 16))


def escape_xml(text: str) -> str:
    """Write a text so that none of it is markup; characters that XML can't have become U+FFFD."""
    text = _NOT_XML.sub("\ufffd", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def with_attribute(tag: str, name: str, value: str) -> str:
    """Return a start tag with an attribute, which it may have already."""
    written = escape_xml(value).replace('"', "&quot;")
    for match in _ATTRIBUTE.finditer(tag):
        if match[1] == name:
            return f'{tag[: match.start()]}{name}="{written}"{tag[match.end() :]}'
    end = re.search(r"\s*/?>$", tag)
    place = end.start() if end else len(tag)
    return f'{tag[:place]} {name}="{written}"{tag[place:]}'


_ROOT = re.compile(
    r"(?:\ufeff|\s|<\?[^>]*\?>|<!--(?:[^-]|-(?!->))*-->|<!DOCTYPE[^>]*>)*<(?:[\w.-]+:)?([\w.-]+)"
)
_FORMATS = {"xliff": "xliff", "tt": "ttml"}


def detect(text: str, stated: str) -> str:
    """Return the format that the root of a file shows, or else the stated one."""
    root = _ROOT.match(text[:65536])
    return _FORMATS.get(root[1], stated) if root else stated
