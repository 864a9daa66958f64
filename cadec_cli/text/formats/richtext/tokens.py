"""Tags, text and everything else of a text in HTML or XML, each with its exact characters.

HTML is read as browsers read it: nothing in it is an error. Names and attributes are found, and entities are
left as they are written; what they mean is for others. Takes linear time whatever the text is.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a token is."""

    TEXT = "text"
    START = "start tag"
    END = "end tag"
    OTHER = "other"  # a comment, a declaration, an instruction, a script: nothing to translate


@dataclass(frozen=True)
class Attribute:
    """An attribute of a tag; its value begins and ends at these positions of the tag, without quotes."""

    name: str  # in lower case in HTML
    start: int
    end: int


@dataclass(frozen=True)
class Token:
    """A piece of the text as it is written."""

    kind: Kind
    raw: str
    start: int
    name: str = ""  # of a tag, in lower case in HTML
    attributes: tuple[Attribute, ...] = ()
    empty: bool = False  # a start tag without an end tag

    def value(self, name: str) -> str | None:
        """Return the value of an attribute, entities resolved; None if the tag does not have it."""
        for one in self.attributes:
            if one.name == name:
                return html.unescape(self.raw[one.start : one.end])
        return None


def names(listed: str) -> frozenset[str]:
    """Return the names of elements in a list with spaces."""
    return frozenset(listed.split())


VOID = names("area base br col embed hr img input link meta param source track wbr")
# Elements whose content has no tags.
_RAW = names("script style textarea title xmp iframe noembed noframes")

_NAME = re.compile(r"<(/?)([A-Za-z_:\u0080-\uffff][^\s/><]*)")
_ATTRIBUTE = re.compile(
    r"[\s/]*(?:([^\s/>=][^\s/>=]*|=[^\s/>=]*)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]*)))?)"
)
_TAG_END = re.compile(r"[\s/]*>")


def tokens(text: str, *, xml: bool) -> Iterator[Token]:
    """Yield the tokens of a text; joined, they are the text."""
    place = done = 0
    while (place := text.find("<", place)) >= 0:
        found = _markup_at(text, place, xml)
        if found is None:
            place += 1
            continue
        if done < place:
            yield Token(Kind.TEXT, text[done:place], done)
        yield found
        place = done = place + len(found.raw)
        if not xml and found.kind is Kind.START and found.name in _RAW:
            end = _end_of_raw(text, place, found.name)
            if end > place:
                kind = Kind.TEXT if found.name == "title" else Kind.OTHER
                yield Token(kind, text[place:end], place)
            place = done = end
    if done < len(text):
        yield Token(Kind.TEXT, text[done:], done)


def _end_of_raw(text: str, place: int, name: str) -> int:
    closing = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(text, place)
    return closing.start() if closing else len(text)


def _markup_at(text: str, place: int, xml: bool) -> Token | None:
    """Return the tag or other markup that begins here; None if this is text."""
    if text.startswith("<!--", place):
        return _other(text, place, "-->", 4)
    if xml and text.startswith("<![CDATA[", place):
        return _other(text, place, "]]>", 9)
    if text.startswith("<?", place):
        return _other(text, place, "?>" if xml else ">", 2)
    if text.startswith("<!", place):
        close = text.find(">", place)
        subset = xml and close >= 0 and text.find("[", place, close) >= 0
        return _other(text, place, "]>" if subset else ">", 2)
    name = _NAME.match(text, place)
    if name is None:
        return _other(text, place, ">", 2) if not xml and text.startswith("</", place) else None
    return _tag(text, place, name, xml)


def _other(text: str, place: int, end: str, skip: int) -> Token:
    found = text.find(end, place + skip)
    stop = found + len(end) if found >= 0 else len(text)
    return Token(Kind.OTHER, text[place:stop], place)


def _tag(text: str, place: int, found: re.Match[str], xml: bool) -> Token:
    """Return a tag; one that has no end reaches to the end of the text, as in browsers."""
    name = found[2] if xml else found[2].lower()
    attributes: list[Attribute] = []
    position = found.end()
    while (end := _TAG_END.match(text, position)) is None:
        attribute = _ATTRIBUTE.match(text, position)
        if attribute is None or attribute.end() == position:
            return Token(Kind.OTHER, text[place:], place)
        position = attribute.end()
        if attribute.lastindex and attribute.lastindex > 1:
            start, stop = attribute.span(attribute.lastindex)
            key = attribute[1] if xml else attribute[1].lower()
            attributes.append(Attribute(key, start - place, stop - place))
    raw = text[place : end.end()]
    if found[1]:
        return Token(Kind.END, raw, place, name)
    closed = raw.endswith("/>")
    return Token(Kind.START, raw, place, name, tuple(attributes), closed if xml else name in VOID)


def root_of(found: Sequence[Token]) -> str:
    """Return the name of the outermost element; nothing if there is none."""
    return next((token.name for token in found if token.kind is Kind.START), "")


def partners(found: Sequence[Token]) -> dict[int, int]:
    """Return the number of the end tag of each start tag that has one, by the number of the start tag."""
    waiting: dict[str, list[int]] = {}
    pairs: dict[int, int] = {}
    for number, token in enumerate(found):
        if token.kind is Kind.START and not token.empty:
            waiting.setdefault(token.name, []).append(number)
        elif token.kind is Kind.END and waiting.get(token.name):
            pairs[waiting[token.name].pop()] = number
    return pairs
