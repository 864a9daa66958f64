"""Tags in text: the one grammar that readers, translation and writers of files share.

A notation is a way to write tags: SubRip, WebVTT and SubStation Alpha have theirs, and plain text may have
HTML, overrides of SubStation, Markdown, emoji and emoticons. This module knows what tags look like in each,
and what a tag switches on or off. `protected.tags` takes tags out of sentences and puts them into
translations; `subtitles.cue_tags` keeps the tags of cues in pairs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from cadec_cli.text.sentences import Span

# Without groups that capture: other patterns are made of these.
_OVERRIDE = r"\{\\[^{}]*\}"
_LETTER = r"\{/?[biu]\}"
_HTML = r"</?[a-zA-Z][\w:.-]*(?:\s[^<>]*|\.[^<>]*)?/?>|<!--[^<>]*-->|<![A-Za-z][^<>]*>|<\d[\d:.]*>"
# SubRip has few tags; other words between angle brackets are text.
_SUBRIP_NAMES = "b|i|u|s|em|strong|font|span|c|v|lang|ruby|rt"
_EMOJI = (
    "(?:[\U0001f1e6-\U0001f1ff]{2}"
    "|[0-9#*]\ufe0f?\u20e3"
    "|[\U0001f000-\U0001faff\u2600-\u2669\u266c-\u27bf\u2b00-\u2bff\u231a\u231b\u23e9-\u23fa\u00a9\u00ae\u2122]"
    "[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\u200d\U0001f000-\U0001faff\u2640\u2642\u2695\u2764]*)"
)

# The tags of subtitles, by notation.
TAGS = {
    "srt": re.compile(rf"</?\s*(?:{_SUBRIP_NAMES})\b[^<>]*>|{_OVERRIDE}|{_LETTER}", re.IGNORECASE),
    "vtt": re.compile(rf"</?[a-z][^<>]*>|<[\d:.]+>|{_OVERRIDE}", re.IGNORECASE),
    "ass": re.compile(r"\{[^{}]*\}"),
}
# The tags of any text, by kind. Code and URLs are copied: nothing in them is a tag.
_TEXT_TAGS = re.compile(
    r"(?P<copied>```[^`]+```|`[^`\n]+`|\b\w+://\S+)"
    rf"|(?P<html>{_HTML})"
    rf"|(?P<ass>{_OVERRIDE}|{_LETTER})"
    r"|(?P<link>!?\[(?=[^\[\]\n]+\]\([^()\s]*\)))"
    r"|(?P<target>\]\([^()\s]*\))"
    r"|(?P<strong>\*\*(?=\S)|(?<=\S)\*\*|~~)"
    r"|(?P<emphasis>(?<![\w*])\*(?=[^\s*][^*\n]*\*(?![\w*]))|(?<=[^\s*])\*(?![\w*])|(?<![\w_])_(?=[^\s_][^_\n]*_(?![\w_]))"
    r"|(?<=[^\s_])_(?![\w_]))"
    rf"|(?P<emoji>(?:{_EMOJI}\s?)*{_EMOJI})"
    r"|(?P<emoticon>(?:(?<=\s)|^)(?:[:;=]['’]?-?[)(DPpO3|*]+|<3+|\^_\^|[xX]D+)(?=[\s.,!?]|$))"
)
_NAMED = re.compile(r"<(/?)\s*([^\W\d]\w*)|\{(/?)([biu])\}", re.IGNORECASE)
_TOGGLE = re.compile(r"\\([ibus])([01])(?!\d)")
_SINGLE = frozenset({"br", "hr", "img", "input", "wbr"})


@dataclass(frozen=True)
class Switch:
    """One thing that a tag switches on or off, such as `i` for italics."""

    name: str
    on: bool


@dataclass(frozen=True)
class Tag:
    """A tag as it is written, where it begins, and what it does.

    Most tags switch one thing; an override of SubStation may switch several, and a point of time or a
    `<br>` switches nothing. A tag that is `visible`, such as an emoji, takes room on the screen.
    """

    text: str
    start: int
    switches: tuple[Switch, ...] = ()
    visible: bool = False

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.start + len(self.text)

    @property
    def span(self) -> Span:
        """Where it begins and ends."""
        return self.start, self.end

    @property
    def opens(self) -> bool:
        """Tell whether it only switches something on."""
        return bool(self.switches) and all(switch.on for switch in self.switches)

    @property
    def closes(self) -> bool:
        """Tell whether it only switches something off."""
        return bool(self.switches) and not any(switch.on for switch in self.switches)


def subtitle_tags(text: str, markup: str) -> list[Tag]:
    """Find the tags of a text of subtitles; `markup` is srt, vtt or ass."""
    return [Tag(match[0], match.start(), _switches(match[0])) for match in TAGS[markup].finditer(text)]


def text_tags(text: str) -> list[Tag]:
    """Find the tags of any text. Of Markdown's marks, which open and close alike, only pairs are tags."""
    found: list[Tag] = []
    waiting: dict[str, int] = {}  # a mark → the index of the one that opens
    for match in _TEXT_TAGS.finditer(text):
        tag, kind = match[0], match.lastgroup or ""
        if kind == "copied":
            continue
        switches: tuple[Switch, ...] = ()
        if kind in ("html", "ass"):
            switches = _switches(tag)
        elif kind in ("link", "target"):
            switches = (Switch("link", kind == "link"),)
        elif kind in ("strong", "emphasis"):
            switches = (Switch(tag, tag not in waiting),)
            if tag in waiting:
                del waiting[tag]
            else:
                waiting[tag] = len(found)
        found.append(Tag(tag, match.start(), switches, visible=kind in ("emoji", "emoticon")))
    lonely = set(waiting.values())
    return [tag for number, tag in enumerate(found) if number not in lonely]


def without_tags(text: str, tags: Iterable[Tag]) -> str:
    """Return a text without its tags, which are given in order."""
    plain, done = "", 0
    for tag in tags:
        plain += text[done : tag.start]
        done = tag.end
    return plain + text[done:]


def _switches(tag: str) -> tuple[Switch, ...]:
    """Return what a tag of HTML or SubStation switches."""
    if found := _NAMED.match(tag):
        name = (found[2] or found[4]).lower()
        single = name in _SINGLE or tag.endswith("/>")
        return () if single else (Switch(name, not (found[1] or found[3])),)
    toggles = _TOGGLE.findall(tag) if tag.startswith("{") else ()
    return tuple(Switch(name, value == "1") for name, value in toggles)
