"""XLIFF 1.2 and 2.x: segments that have no target get one, marked as not reviewed.

A segment with a target stays as it is, and is context for what follows; but a target whose state says that it
needs translation is translated. Inline elements come back as they were written. What is marked
`translate="no"`, notes, alternatives and everything else of the file stay. The segments of a file or group
are one document.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cadec_cli.errors import CadecError
from cadec_cli.text.documents import Document
from cadec_cli.text.formats.catalogues.catalogue import (
    CatalogueLayout,
    Entry,
    Item,
    Outcome,
    Translated,
    catalogue,
    fixed,
)
from cadec_cli.text.formats.catalogues.inline import InlineText, Role, in_utf8, inline_text
from cadec_cli.text.formats.catalogues.message import Syntax, read_message
from cadec_cli.text.formats.layout import Source
from cadec_cli.text.formats.xml_text import Element, Xml, escape_xml, read_xml, unescape_xml, with_attribute

_SYNTAX = Syntax(icu=True)
# States of a target that is no translation yet.
_UNTRANSLATED = frozenset({"new", "needs-translation", "needs-l10n", "needs-adaptation", "initial"})
_TAG_LIKE = re.compile(r"\s*</?[A-Za-z][^<>]*>\s*|(?:\\n)+|\s+")
_MARK_KIND = re.compile(r"lb|pb|image|x-br|x-hr|fmt")


def read_xliff(source: Source) -> tuple[tuple[Document, ...], CatalogueLayout]:
    """Read XLIFF; return its documents and the layout that takes their translations."""
    xml = read_xml(source.text, source.name)
    if xml.root.name != "xliff":
        raise CadecError(f"{source.name} is not XLIFF: its root is <{xml.root.name[:60]}>")
    return catalogue(source, _items(xml, source))


def _items(xml: Xml, source: Source) -> Iterator[Item]:
    language = source.screen.language
    if language:
        yield from in_utf8(xml)
    second = xml.root.attributes.get("version", "1.2").startswith("2")
    if second and language:
        yield _with_language(xml, xml.root, "trgLang", language)
    for number, file in enumerate(one for one in xml.root.children if one.name == "file"):
        if language and not second:
            yield _with_language(xml, file, "target-language", language)
        for section, unit in _units(file, str(number)):
            yield from (
                _in_segments(xml, unit, section, source) if second else _in_unit(xml, unit, section, source)
            )


def _with_language(xml: Xml, element: Element, name: str, language: str) -> Entry:
    tag = xml.text[element.start : element.inner_start]
    return fixed(element.start, element.inner_start, with_attribute(tag, name, language))


def _units(file: Element, section: str) -> Iterator[tuple[str, Element]]:
    """Yield the units that are to be translated, each with its file or group."""
    waiting = [(section, file)]
    while waiting:
        section, element = waiting.pop()
        if element.attributes.get("translate") == "no":
            continue
        if element.name in ("trans-unit", "unit"):
            yield section, element
        elif element.name in ("file", "body", "group"):
            inner = f"{section}.{element.start}" if element.name == "group" else section
            waiting += [(inner, child) for child in reversed(element.children)]


def _in_unit(xml: Xml, unit: Element, section: str, source: Source) -> Iterator[Item]:
    original = unit.child("seg-source") or unit.child("source")
    name = unit.attributes.get("resname") or unit.attributes.get("id", "")
    if original is not None:
        if source.retranslate and unit.attributes.get("approved") == "yes":
            tag = xml.text[unit.start : unit.inner_start]
            yield fixed(unit.start, unit.inner_start, with_attribute(tag, "approved", "no"))
        yield from _string(_String(xml, original, unit.child("target")), name, section, source)


def _in_segments(xml: Xml, unit: Element, section: str, source: Source) -> Iterator[Item]:
    name = unit.attributes.get("name") or unit.attributes.get("id", "")
    for segment in unit.children:
        original = segment.child("source")
        if segment.name == "segment" and original is not None:
            string = _String(xml, original, segment.child("target"), segment)
            yield from _string(string, name, section, source)


@dataclass(frozen=True)
class _String:
    """A string with its target, if it has one; in XLIFF 2, the segment has the state."""

    xml: Xml
    original: Element
    target: Element | None
    segment: Element | None = None

    @property
    def is_translated(self) -> bool:
        """Tell whether the target is a translation."""
        if self.target is None or self.target.inner_start == self.target.inner_end:
            return False
        stated = self.segment if self.segment is not None else self.target
        return stated.attributes.get("state", "") not in _UNTRANSLATED

    @property
    def span(self) -> tuple[int, int]:
        """The place that is written: the target, or where it will be; in XLIFF 2, the segment up to there."""
        target = self.target
        start, end = (target.start, target.end) if target is not None else (self.original.end,) * 2
        return (start, end) if self.segment is None else (self.segment.start, end)

    def read(self, element: Element) -> InlineText:
        """Read the string or its target."""
        preserved = element.attributes.get("xml:space") == "preserve"
        return inline_text(self.xml, element, _role, spaces=preserved)

    def write(self, content: str, outcome: Outcome) -> str:
        """Return the place with a target."""
        text, target, segment = self.xml.text, self.target, self.segment
        name = f"{self.original.prefix}:target" if self.original.prefix else "target"
        tag = f"<{name}>"
        if target is not None:
            tag = re.sub(r"\s*/>$", ">", text[target.start : target.inner_start])
        indent = re.search(r"[ \t\r\n]*$", text[: self.original.start])
        between = indent[0] if indent else ""
        before = between if target is None else ""
        if segment is None:
            tag = with_attribute(tag, "state", "needs-review-translation")
        else:
            opening = with_attribute(text[segment.start : segment.inner_start], "state", "translated")
            stop = target.start if target is not None else self.original.end
            before = opening + text[segment.inner_start : stop] + before
        written = f"{before}{tag}{content}</{name}>"
        if segment is None and outcome.confidence is not None:
            doubt = f"confidence {outcome.confidence:.2f} ({'; '.join(outcome.flags)})"
            note = name.replace("target", "note")
            written += f'{between}<{note} from="cadec">{escape_xml(doubt)}</{note}>'
        return written


def _string(string: _String, name: str, section: str, source: Source) -> Iterator[Item]:
    inline = string.read(string.original)
    if string.target is not None and string.is_translated and not source.retranslate:
        known = string.read(string.target)
        yield Translated(_without_codes(inline), _without_codes(known), name, section)
        return
    message = read_message(inline.text, source.language, _SYNTAX)
    if not message.sentences:
        return
    start, end = string.span

    def write(outcome: Outcome) -> str:
        (text,) = outcome.texts
        content = inline.raw if text == message.text else inline.write(text)
        if content is None or not outcome.complete:
            return string.xml.text[start:end]
        return string.write(content, outcome)

    yield Entry(start, end, (message,), write, name, section, fills=True)


def _without_codes(inline: InlineText) -> str:
    text = inline.text
    for stand_in in inline.codes:
        text = text.replace(stand_in, " ")
    return text.strip()


def _role(element: Element, content: str) -> Role:
    """Return the role of an inline element of either version."""
    values = element.attributes
    if values.get("mtype") == "protected" or values.get("translate") == "no":
        return Role.WORD
    if element.name in ("g", "mrk", "pc", "sub"):
        return Role.PAIR
    if element.name in ("bpt", "sc", "sm"):
        return Role.OPENS
    if element.name in ("ept", "ec", "em"):
        return Role.CLOSES
    if element.name in ("it", "bx", "ex", "cp") or element.prefix:
        return Role.MARK
    name, kind = values.get("id", ""), values.get("ctype", values.get("type", ""))
    if element.name == "x" and name.startswith("START_"):  # as Angular writes tags
        return Role.OPENS
    if element.name == "x" and name.startswith("CLOSE_"):
        return Role.CLOSES
    is_mark = bool(_MARK_KIND.match(kind)) or name.startswith(("LINE_BREAK", "TAG_"))
    return Role.MARK if is_mark or _TAG_LIKE.fullmatch(unescape_xml(content) or "x") else Role.WORD
