"""Tags inside subtitle cues: `<i>`, `<v Bob>`, `{\\an8}`; what of a line is text and what is not.

Tags (and the dash of a speaker) at the ends of a line are not part of its text and stay where they are. Tags
in the middle of a line are part of it if whoever reads it asks for them (see `inline`), and are left out
otherwise, for nobody knows then which word of the translation they belong to. The halves of pairs that reach
over the line's end are kept either way, so that no tag stays open.
"""

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass

from cadec_cli.text.sentences import Span, visible_span

_HTML_NAMES = "b|i|u|s|em|strong|font|span|c|v|lang|ruby|rt"
TAGS = {
    "srt": re.compile(rf"</?\s*(?:{_HTML_NAMES})\b[^<>]*>|\{{\\[^{{}}]*\}}|\{{/?[biu]\}}", re.IGNORECASE),
    "vtt": re.compile(r"</?[a-z][^<>]*>|<[\d:.]+>|\{\\[^{}]*\}", re.IGNORECASE),
    "ass": re.compile(r"\{[^{}]*\}"),
}
_NAMED_TAG = re.compile(r"<(/?)\s*([^\W\d]\w*)|\{(/?)([biu])\}", re.IGNORECASE)
_UNPAIRED_NAMES = frozenset({"br"})
_ASS_TOGGLE = re.compile(r"\\([ibus])([01])(?!\d)")
_DASH = re.compile(r"[-–—―‐]{1,2}(?!\d)\s*")
_FIRST_LETTER = re.compile(r"[^\W_]")


@dataclass(frozen=True)
class CueLine:
    """One line of a cue: where its text is in the file, how it reads, and where in that tags are."""

    start: int
    end: int
    text: str
    speaker: bool  # a dash before it says that somebody else is speaking
    tags: tuple[Span, ...] = ()

    @property
    def visible_text(self) -> str:
        """The text as it is on the screen."""
        return without(self.text, self.tags)


@dataclass(frozen=True)
class Half:
    """What one tag opens or closes; a tag of ASS may do several things, each is a half of its own."""

    name: str
    opens: bool
    tag: str
    start: int  # of the tag


def inline_tags(text: str, subtitle_format: str) -> list[Span]:
    """Return where the tags of a format are in a text; formats that are no subtitles have none."""
    tags = TAGS.get(markup_of(subtitle_format))
    return [tag.span() for tag in tags.finditer(text)] if tags else []


def markup_of(subtitle_format: str) -> str:
    """Return whose tags a format has: SSA's are those of ASS."""
    return "ass" if subtitle_format == "ssa" else subtitle_format


def without(text: str, tags: Iterable[Span]) -> str:
    """Leave the tags out of a text."""
    seen, done = "", 0
    for start, end in tags:
        seen += text[done:start]
        done = end
    return seen + text[done:]


def cue_line(file_text: str, start: int, end: int, markup: str, *, tags: bool = False) -> CueLine | None:
    """Find the text in one line of a cue; None where there is none. `markup` is srt, vtt or ass."""
    line = file_text[start:end]
    found = list(TAGS[markup].finditer(line))
    first, last = _without_outer_tags(line, found)
    dash = _speaker_dash(line, first, last, markup)
    if dash:
        # tags may stand on both sides of the dash
        found = [tag for tag in found if tag.start() >= dash.end()]
        first, _ = _without_outer_tags(line, found, dash.end())
    first, last = _with_other_halves(found, first, last)
    inner = [tag.span() for tag in found if first <= tag.start() < last]
    text, places = _read(line, inner, first, last, markup)
    seen = without(text, places)
    begin, stop = visible_span(seen, 0, len(seen))
    if begin == stop:
        return None
    if not tags:
        text, places = " ".join(seen[begin:stop].split()), ()
    return CueLine(start + first, start + last, text, speaker=bool(dash), tags=places)


def _speaker_dash(line: str, first: int, last: int, markup: str) -> re.Match[str] | None:
    """Find a dash that is no minus, and none after which a sentence goes on in small letters."""
    dash = _DASH.match(line, first, last)
    letter = _FIRST_LETTER.search(TAGS[markup].sub("", line[dash.end() : last])) if dash else None
    return dash if letter and not letter[0].islower() else None


def _without_outer_tags(line: str, tags: list[re.Match[str]], start: int = 0) -> Span:
    first, last = visible_span(line, start, len(line))
    for tag in tags:
        if tag.start() == first:
            first = visible_span(line, tag.end(), len(line))[0]
    for tag in reversed(tags):
        if tag.end() == last and tag.start() >= first:
            last = visible_span(line, first, tag.start())[1]
    return first, max(first, last)


def _with_other_halves(tags: list[re.Match[str]], first: int, last: int) -> Span:
    """Take in outer tags as far as they are opened or closed inside of the text."""
    for tag in reversed([tag for tag in tags if tag.start() < first]):
        _, closed = unpaired_tags(one for one in tags if first <= one.start() < last)
        wanted = {half.name for half in closed}
        if any(half.name in wanted for half in meaning(tag[0]) if half.opens):
            first = tag.start()
    for tag in [tag for tag in tags if tag.end() > last]:
        opened, _ = unpaired_tags(one for one in tags if first <= one.start() < last)
        wanted = {half.name for half in opened}
        if any(half.name in wanted for half in meaning(tag[0]) if not half.opens):
            last = tag.end()
    return first, last


def _read(line: str, tags: list[Span], first: int, last: int, markup: str) -> tuple[str, tuple[Span, ...]]:
    """Return the text of a line with its tags as they are written, and where they are in it."""
    text = ""
    places = []
    for start, end in [*tags, (last, last)]:
        between = _plain(line[first:start], markup)
        text += between.lstrip() if not text or text.endswith(" ") else between
        if start < end:
            places.append((len(text), len(text) + end - start))
            text += line[start:end]
        first = end
    return text.rstrip(), tuple(places)


def _plain(text: str, markup: str) -> str:
    if markup == "vtt":
        text = html.unescape(text)
    elif markup == "ass":
        text = text.replace(r"\h", " ")
    return re.sub(r"\s+", " ", text)


def escape_text(text: str, markup: str) -> str:
    """Write translated text so that the format does not take any of it for markup."""
    if markup == "ass":
        return text.replace("{", "(").replace("}", ")")
    if markup == "vtt":
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("-->", "->")


def unpaired_tags(tags: Iterable[re.Match[str]]) -> tuple[list[Half], list[Half]]:
    """Return what is opened and not closed again, and what is closed and was not opened."""
    opened: list[Half] = []
    closed: list[Half] = []
    for tag in tags:
        for half in meaning(tag[0], tag.start()):
            names = [open_half.name for open_half in opened]
            if half.opens:
                opened.append(half)
            elif half.name in names:
                del opened[len(names) - 1 - names[::-1].index(half.name)]
            else:
                closed.append(half)
    return opened, closed


def meaning(tag: str, start: int = 0) -> list[Half]:
    """Return what a tag opens and closes: nothing, if it is none of a pair."""
    if found := _NAMED_TAG.match(tag):
        name = (found[2] or found[4]).lower()
        return [] if name in _UNPAIRED_NAMES else [Half(name, not (found[1] or found[3]), tag, start)]
    return [Half(name, value == "1", tag, start) for name, value in _ASS_TOGGLE.findall(tag)]
