"""Tags in text: the one grammar that readers, translation and writers of files share.

A notation is a way to write tags: SubRip, WebVTT and SubStation Alpha have theirs, and plain text may have
HTML, overrides of SubStation, Markdown, emoji and emoticons. This module knows what tags look like in each,
and what a tag switches on or off; `subtitles.cue_tags` keeps the tags of cues in pairs.

Tags are taken out of a sentence before it is translated, and put into the translation afterwards. Which words
of the translation a pair belongs to is the caller's to say (`Aligned`). Every tag comes back: pairs around
words, inner pairs inside outer ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from cadec_cli.text.sentences import Span

# Without groups that capture: other patterns are made of these.
_OVERRIDE = r"\{\\[^{}]*\}"
_LETTER = r"\{/?[biu]\}"
_HTML = r"</?[a-zA-Z][\w:.-]*(?:\s[^<>]*|\.[^<>]*)?/?>|<!--[^<>]*-->|<![A-Za-z][^<>]*>|<\d[\d:.]*>"
# Keys of a keyboard are copied as well.
KEYS = r"<kbd>[^<>\n]*</kbd>(?:[ ]?[+-][ ]?<kbd>[^<>\n]*</kbd>)*"
# SubRip has few tags; other words between angle brackets are text.
_SUBRIP_NAMES = "b|i|u|s|em|strong|font|span|c|v|lang|ruby|rt"
_STRAY_HTML = r"</?(?:b|i|u|s|font)\b[^<>]*>"
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
    # HTML is no markup of SubStation, but files that were converted badly have it, in pairs.
    "ass": re.compile(rf"\{{[^{{}}]*\}}|{_STRAY_HTML}", re.IGNORECASE),
    "sub": re.compile(r"\{[^{}]*\}"),
    "ttml": re.compile(r"</?[a-zA-Z][^<>]*>|<!--[^<>]*-->|<\?[^<>]*\?>"),
}
# HTML that SubStation shows as text.
STRAY_HTML = re.compile(_STRAY_HTML, re.IGNORECASE)
# The tags of any text, by kind. Code and URLs are copied: nothing in them is a tag.
_TEXT_TAGS = re.compile(
    rf"(?P<copied>```[^`]+```|`[^`\n]+`|\b\w+://[^\s<>]+|{KEYS})"
    r"|(?P<badge>\[!\[[^\[\]\n]*\]\([^()\s]*\)\]\([^()\s]*\))"
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
_NAMED = re.compile(r"<(/?)\s*([^\W\d]\w*(?::\w+)?)|\{(/?)([biu])\}", re.IGNORECASE)
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
        found.append(Tag(tag, match.start(), switches, visible=kind in ("emoji", "emoticon", "badge")))
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


# (start, end) in the text without tags → (start, end) in its translation
Aligned = Callable[[int, int], tuple[int, int]]

_WORD = re.compile(r"\S+")
_LAST_WORD = re.compile(r"[^\W_]+$")
_LONGEST_WORD = 40
_FINAL = ".!?…;: \t\"'»”)"


def take_out_tags(text: str) -> tuple[str, tuple[Tag, ...]]:
    """Return a sentence without its tags, and the tags, which begin where they were taken out."""
    tags = text_tags(text)
    removed = 0
    positions = []
    for tag in tags:
        positions.append(tag.start - removed)
        removed += len(tag.text)
    taken = (replace(tag, start=start) for tag, start in zip(tags, positions, strict=True))
    return without_tags(text, tags), tuple(taken)


def proportional_range(source: str, start: int, end: int, translation: str) -> tuple[int, int]:
    """Return the range at the same proportion of the text, from the nearest ends of words."""
    ends = [0, *(match.end() for match in re.finditer(r"\S+", translation))]
    scale = len(translation) / max(1, len(source))
    first = min(ends, key=lambda place: abs(place - start * scale))
    last = min(ends, key=lambda place: abs(place - end * scale))
    while first < len(translation) and first < last and translation[first].isspace():
        first += 1
    return min(first, last), last


@dataclass(frozen=True)
class _Insertion:
    """A tag in a translation: its position, its rank among tags at the same one, and the spaces around it."""

    place: int
    order: int
    text: str
    spaced: tuple[bool, bool] = (False, False)


def with_tags(translation: str, plain: str, tags: Sequence[Tag], aligned: Aligned) -> str:
    """Put all tags of a sentence, whose text is `plain` without them, into its translation."""
    inserted: list[_Insertion] = []
    partner = _pairs(tags)
    placed: dict[int, tuple[int, int]] = {}  # an opening tag → where its pair went
    for number, tag in enumerate(tags):
        if number in partner:
            closing = partner[number]
            start, end = aligned(tag.start, tags[closing].start)
            around = [placed[other] for other in placed if other < number and partner[other] > closing]
            if around:  # an inner pair stays inside the outer one
                start, end = max(start, around[-1][0]), min(end, around[-1][1])
            start = min(start, end)
            placed[number] = (start, end)
            # At one position, tags that close come before tags that open, inner pairs inside outer ones.
            if start == end:
                inserted.append(_Insertion(start, len(tags) + number, tag.text + tags[closing].text))
            else:
                inserted.append(_Insertion(start, len(tags) + number, tag.text))
                inserted.append(_Insertion(end, -number, tags[closing].text))
        elif number not in partner.values():
            place = _single_tag_position(tag, plain, translation, aligned)
            beside = (plain[: tag.start][-1:].isspace(), plain[tag.start :][:1].isspace())
            spaced = beside if tag.visible else (False, False)
            inserted.append(_Insertion(place, len(tags) + number, tag.text, spaced))
    return _insert_texts(translation, inserted)


def _pairs(tags: Sequence[Tag]) -> dict[int, int]:
    """Return which tag closes each opening one. Of a tag that switches several things, the first counts."""
    pairs = {}
    waiting: list[int] = []
    for number, tag in enumerate(tags):
        if _opens(tag):
            waiting.append(number)
        elif tag.switches:
            opening = next((one for one in reversed(waiting) if _kind(tags[one]) == _kind(tag)), None)
            if opening is not None:
                pairs[opening] = number
                waiting.remove(opening)
    return pairs


def _opens(tag: Tag) -> bool:
    return bool(tag.switches) and tag.switches[0].on


def _kind(tag: Tag) -> tuple[bool, str]:
    """Return what the tags of a pair have in common: the kind of brackets, and what they switch."""
    return tag.text.startswith("{"), tag.switches[0].name


def _single_tag_position(tag: Tag, plain: str, translation: str, aligned: Aligned) -> int:
    """Return where a tag without a partner goes: it stays at an end, else it follows the words beside it."""
    if not plain[: tag.start].strip():
        return 0
    if not plain[tag.start :].strip():
        return len(translation)
    if _opens(tag):
        return aligned(tag.start, len(plain))[0]
    if tag.switches:
        return aligned(0, tag.start)[1]
    if not plain[tag.start :].strip(_FINAL) and not plain[tag.start - 1].isspace():
        return len(translation.rstrip(_FINAL))
    word = _LAST_WORD.search(plain[max(0, tag.start - _LONGEST_WORD) : tag.start])
    if word and not tag.visible and not plain[tag.start].isalnum():
        # It stands behind a word, as the mark of a note does.
        return aligned(tag.start - len(word[0]), tag.start)[1]
    # A tag that belongs to no word goes to the nearest edge of one, in proportion; a visible one after it.
    words = list(_WORD.finditer(translation))
    edges = [match.end() for match in words] + [match.start() for match in words if not tag.visible]
    wanted = tag.start * len(translation) / len(plain)
    return min(edges, key=lambda edge: abs(edge - wanted), default=0)


def _insert_texts(translation: str, inserted: Sequence[_Insertion]) -> str:
    written = ""
    done = 0
    for one in sorted(inserted, key=lambda item: (item.place, item.order)):
        written += translation[done : one.place]
        done = one.place
        if one.spaced[0] and written and not written[-1].isspace():
            written += " "
        written += one.text
        if one.spaced[1] and translation[one.place : one.place + 1].isalnum():
            written += " "
    return written + translation[done:]
