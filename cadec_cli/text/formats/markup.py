"""Tags inside subtitle cues: `<i>`, `<v Bob>`, `{\\an8}`; what of a line is text and what is not.

Tags (and the dash of a speaker) at the ends of a line are not part of its text and stay where they are. Tags
in the middle of a line are dropped when it is translated, for nobody knows which word of the translation
they belong to; the halves of pairs that reach over the line's end are kept, so that no tag stays open.
"""

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass

from cadec_cli.text.sentences import visible_span

_HTML_NAMES = "b|i|u|s|em|strong|font|span|c|v|lang|ruby|rt"
_TAGS = {
    "srt": re.compile(rf"</?\s*(?:{_HTML_NAMES})\b[^<>]*>|\{{\\[^{{}}]*\}}|\{{/?[biu]\}}", re.IGNORECASE),
    "vtt": re.compile(r"</?[a-z][^<>]*>|<[\d:.]+>|\{\\[^{}]*\}", re.IGNORECASE),
    "ass": re.compile(r"\{[^{}]*\}"),
}
_HTML_TAG = re.compile(r"<(/?)\s*(\w+)")
_ASS_TOGGLE = re.compile(r"\\([ibus])([01])(?!\d)")
_DASH = re.compile(r"[-–—―‐]{1,2}(?!\d)\s*")
_FIRST_LETTER = re.compile(r"[^\W_]")


@dataclass(frozen=True)
class CueLine:
    """One line of a cue: where its text is in the file, and how it reads without tags."""

    start: int
    end: int
    text: str
    speaker: bool  # a dash before it says that somebody else is speaking


def cue_line(file_text: str, start: int, end: int, markup: str) -> CueLine | None:
    """Find the text in one line of a cue; None where there is none. `markup` is srt, vtt or ass."""
    line = file_text[start:end]
    tags = list(_TAGS[markup].finditer(line))
    first, last = _without_outer_tags(line, tags)
    dash = _speaker_dash(line, first, last, markup)
    if dash:
        # tags may stand on both sides of the dash
        tags = [tag for tag in tags if tag.start() >= dash.end()]
        first, _ = _without_outer_tags(line, tags, dash.end())
    inner = [tag[0] for tag in tags if first <= tag.start() < last]
    opened, closed = unpaired(inner)
    if closed and tags and tags[0].start() < first:
        first = tags[0].start()
    if opened and tags and tags[-1].end() > last:
        last = tags[-1].end()
    text = _plain(line[first:last], markup)
    if not text:
        return None
    return CueLine(start + first, start + last, text, speaker=bool(dash))


def _speaker_dash(line: str, first: int, last: int, markup: str) -> re.Match[str] | None:
    """Find a dash that is no minus, and none after which a sentence goes on in small letters."""
    dash = _DASH.match(line, first, last)
    letter = _FIRST_LETTER.search(_TAGS[markup].sub("", line[dash.end() : last])) if dash else None
    return dash if letter and not letter[0].islower() else None


def _without_outer_tags(line: str, tags: list[re.Match[str]], start: int = 0) -> tuple[int, int]:
    first, last = visible_span(line, start, len(line))
    for tag in tags:
        if tag.start() == first:
            first = visible_span(line, tag.end(), len(line))[0]
    for tag in reversed(tags):
        if tag.end() == last and tag.start() >= first:
            last = visible_span(line, first, tag.start())[1]
    return first, max(first, last)


def _plain(text: str, markup: str) -> str:
    text = _TAGS[markup].sub("", text)
    if markup == "vtt":
        text = html.unescape(text)
    elif markup == "ass":
        text = text.replace(r"\h", " ")
    start, end = visible_span(text, 0, len(text))
    return " ".join(text[start:end].split())


def written(text: str, markup: str) -> str:
    """Write translated text so that the format does not take any of it for markup."""
    text = " ".join(text.split())
    if markup == "ass":
        return text.replace("{", "(").replace("}", ")")
    if markup == "vtt":
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("-->", "->")


def dropped_halves(text: str, markup: str) -> tuple[str, str]:
    """Return the tags of a text that were opened and not closed, and closed and not opened.

    What was closed and opened again, as between two lines in italics, counts as neither.
    """
    opened, closed = unpaired(tag[0] for tag in _TAGS[markup].finditer(text))
    for tag in list(closed):
        again = next((other for other in opened if _names(other) == _names(tag)), None)
        if again is not None:
            opened.remove(again)
            closed.remove(tag)
    return "".join(opened), "".join(closed)


def _names(tag: str) -> list[str]:
    return [name for name, _ in _meaning(tag)]


def unpaired(tags: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the opening tags that are not closed again, and the closing tags that were not opened."""
    opened: list[tuple[str, str]] = []
    closed: list[str] = []
    for tag in tags:
        for name, opens in _meaning(tag):
            names = [open_name for open_name, _ in opened]
            if opens:
                opened.append((name, tag))
            elif name in names:
                del opened[len(names) - 1 - names[::-1].index(name)]
            else:
                closed.append(tag)
    return [tag for _, tag in opened], closed


def _meaning(tag: str) -> list[tuple[str, bool]]:
    if found := _HTML_TAG.match(tag):
        return [(found[2].lower(), not found[1])] if not found[2].isdigit() else []
    return [(name, value == "1") for name, value in _ASS_TOGGLE.findall(tag)]
