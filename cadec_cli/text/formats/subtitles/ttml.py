"""TTML (`.ttml`, `.dfxp`): the paragraphs of a document of timed text.

A `<p>` with times, of its own or of what it is in, is a cue; `<br/>` ends a line. Times may be clock times,
frames, ticks or counts of a unit; those of an element are relative to what it is in.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cadec_cli.errors import CadecError
from cadec_cli.text.formats.subtitles.cue_tags import cue_line
from cadec_cli.text.formats.subtitles.cues import Cue
from cadec_cli.text.formats.xml_text import Element, Xml, read_xml, with_attribute
from cadec_cli.text.sentences import base_language

_CLOCK = re.compile(r"(\d{1,6}):(\d{1,2}):(\d{1,2})(?:\.(\d{1,9})|:(\d{1,3})(?:\.\d{1,3})?)?$")
_COUNT = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)(h|ms|m|s|f|t)$")
_UNITS = {"h": 3_600_000.0, "m": 60_000.0, "s": 1000.0, "ms": 1.0}
_SPACE = re.compile(r"[ \t\r\n]+")
_LATEST = 360_000_000  # milliseconds: 100 hours


@dataclass(frozen=True)
class _Paragraph:
    """A paragraph with its times in milliseconds, and where its lines are."""

    start: int
    end: int
    element: Element
    lines: tuple[tuple[int, int], ...]


def ttml_cues(text: str, name: str, *, tags: bool) -> list[Cue]:
    """Find the cues with text, in order; with `tags`, tags are part of the text."""
    cues = []
    for one in _paragraphs(text, name)[1]:
        lines = [cue_line(text, first, last, "ttml", tags=tags) for first, last in one.lines]
        style = one.element.attributes.get("region", "")
        span = (one.element.inner_start, one.element.inner_end)
        cues.append(Cue(one.start, one.end, style, tuple(line for line in lines if line), span))
    return cues


def ttml_texts(text: str, name: str) -> list[tuple[int, int, str]]:
    """Return start, end and text of all cues, with styles as the tags of WebVTT."""
    xml, paragraphs = _paragraphs(text, name)
    return [(one.start, one.end, _as_vtt(xml, one.element)) for one in paragraphs]


def _paragraphs(text: str, name: str) -> tuple[Xml, list[_Paragraph]]:
    xml = read_xml(text, name)
    if xml.root.name != "tt":
        raise CadecError(f"{name} is not TTML: its root is <{xml.root.name[:60]}>")
    body = xml.root.child("body")
    found: list[_Paragraph] = []
    waiting = [(body, 0.0)] if body is not None else []
    clock = _Clock.of(xml.root)
    while waiting:
        element, begin = waiting.pop()
        start, end = clock.times(element, begin, name)
        if element.name == "p":
            if not element.empty:
                found.append(_Paragraph(round(start), round(end), element, tuple(_lines(xml, element, name))))
        else:
            waiting += [(child, start) for child in reversed(element.children)]
    return xml, found


@dataclass(frozen=True)
class _Clock:
    """How many frames and ticks a second has."""

    frames: float
    ticks: float

    @classmethod
    def of(cls, root: Element) -> "_Clock":
        values = {name.rpartition(":")[2]: value for name, value in root.attributes.items()}
        frames = _number(values.get("frameRate", ""), 30.0)
        numerator, _, denominator = values.get("frameRateMultiplier", "").replace(":", " ").partition(" ")
        frames *= _number(numerator, 1.0) / _number(denominator, 1.0)
        return cls(frames, _number(values.get("tickRate", ""), frames))

    def times(self, element: Element, begin: float, name: str) -> tuple[float, float]:
        """Return start and end of an element in something that begins at `begin`."""
        values = element.attributes
        start = begin + self._milliseconds(values.get("begin", ""), name)
        if "end" in values:
            return start, begin + self._milliseconds(values["end"], name)
        return start, start + self._milliseconds(values.get("dur", ""), name)

    def _milliseconds(self, written: str, name: str) -> float:
        written = written.strip()
        if not written:
            return 0.0
        if clock := _CLOCK.match(written):
            seconds = int(clock[1]) * 3600 + int(clock[2]) * 60 + int(clock[3])
            fraction = float(f"0.{clock[4]}") if clock[4] else int(clock[5] or 0) / self.frames
            found = (seconds + fraction) * 1000
        elif count := _COUNT.match(written):
            rate = {"f": self.frames, "t": self.ticks}.get(count[2])
            found = float(count[1]) * (1000 / rate if rate else _UNITS[count[2]])
        else:
            raise CadecError(f"{name}: {written[:60]!r} is not a time of TTML")
        return min(found, float(_LATEST))


def _number(text: str, otherwise: float) -> float:
    return (float(text) if re.fullmatch(r"\d{1,9}(?:\.\d{1,6})?", text) else 0.0) or otherwise


def _lines(xml: Xml, paragraph: Element, name: str) -> Iterator[tuple[int, int]]:
    """Yield where the lines of a paragraph are: what is between its line breaks."""
    start = paragraph.inner_start
    breaks = [element for element in paragraph.walk() if element.name == "br"]
    if any(token.kind == "cdata" for token in xml.inside(paragraph)):
        raise CadecError(f"{name} has a CDATA section in a cue", "write its text with entities such as &amp;")
    for element in breaks:
        yield start, element.start
        start = element.end
    yield start, paragraph.inner_end


def _as_vtt(xml: Xml, paragraph: Element) -> str:
    """Write the content of a paragraph as WebVTT does."""
    by_start = {element.start: element for element in paragraph.walk() if element is not paragraph}
    written = ""
    open_: list[list[str]] = [_styles(paragraph)]
    closing = [paragraph.inner_end]
    for token in xml.inside(paragraph):
        shown = xml.text[token.start : token.end]
        if token.kind in ("start", "empty"):
            element = by_start[token.start]
            if element.name == "br":
                written += "\n"
            if token.kind == "start":
                open_.append(_styles(element))
                closing.append(element.inner_end)
                written += "".join(f"<{style}>" for style in open_[-1])
        elif token.kind == "end":
            written += "".join(f"</{style}>" for style in reversed(open_.pop()))
        elif token.kind == "text":
            written += _SPACE.sub(" ", shown)
    around = open_[0]
    begin, end = "".join(f"<{one}>" for one in around), "".join(f"</{one}>" for one in reversed(around))
    return begin + "\n".join(line.strip() for line in written.split("\n")).strip() + end


_STYLES = (
    ("fontWeight", "bold", "b"),
    ("fontStyle", "italic", "i"),
    ("fontStyle", "oblique", "i"),
    ("textDecoration", "underline", "u"),
)


def _styles(element: Element) -> list[str]:
    values = {name.rpartition(":")[2]: value for name, value in element.attributes.items()}
    return [letter for name, value, letter in _STYLES if values.get(name) == value]


_ENCODING = re.compile(r"(\A\ufeff?<\?xml\s[^>]*?encoding\s*=\s*[\"'])(?!utf-?8[\"'])[\w.:-]+", re.IGNORECASE)
_LANGUAGE_TAG = re.compile(r"<(?:\w+:)?(?:tt|body|div|p)(?=[\s>])[^<>]*>")
_LANGUAGE = re.compile(r"(?<=\s)xml:lang\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")


def ttml_with_language(text: str, language: str) -> str:
    """Name another language in all that comes before the first cue: where its own was, or none.

    The file also says that it is UTF-8, as translations are.
    """
    stated: list[str] = []

    def change(match: re.Match[str]) -> str:
        found = _LANGUAGE.search(match[0])
        named = (found[1] or found[2] or "") if found else None
        is_root = not stated
        stated.append(named or "")
        same = named is not None and base_language(named) in ("", base_language(stated[0]))
        return with_attribute(match[0], "xml:lang", language) if is_root or same else match[0]

    text = _ENCODING.sub(lambda match: match[1] + "UTF-8", text, count=1)
    return _LANGUAGE_TAG.sub(change, text)


_ROOT = re.compile(r"<(\w+:)?tt[\s>]")


def ttml_line_break(text: str) -> str:
    """Return a line break with the prefix that the elements of a file have."""
    root = _ROOT.search(text)
    return f"<{root[1] or ''}br/>" if root else "<br/>"
