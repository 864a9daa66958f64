"""Tags inside a sentence: taken out before it is translated, and put into the translation again.

HTML and ASS tags, Markdown's links and emphasis, emoji. Each has a place in the text without tags. Which
words of the translation a pair of tags belongs to is for others to say (`Aligned`); here is what is done with
it: every tag comes back, pairs around words, nested ones inside of each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

# (start, end) in the text without tags → (start, end) in its translation
Aligned = Callable[[int, int], tuple[int, int]]

_EMOJI = (
    "(?:[\U0001f1e6-\U0001f1ff]{2}"
    "|[0-9#*]\ufe0f?\u20e3"
    "|[\U0001f000-\U0001faff\u2600-\u2669\u266c-\u27bf\u2b00-\u2bff\u231a\u231b\u23e9-\u23fa\u00a9\u00ae\u2122]"
    "[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\u200d\U0001f000-\U0001faff\u2640\u2642\u2695\u2764]*)"
)
_TAG = re.compile(
    r"(?P<copied>```[^`]+```|`[^`\n]+`|\b\w+://\S+)"
    r"|(?P<html></?[a-zA-Z][\w:.-]*(?:\s[^<>]*|\.[^<>]*)?/?>|<!--[^<>]*-->|<![A-Za-z][^<>]*>|<\d[\d:.]*>)"
    r"|(?P<ass>\{\\[^{}]*\}|\{/?[biu]\})"
    r"|(?P<link>!?\[(?=[^\[\]\n]+\]\([^()\s]*\)))"
    r"|(?P<target>\]\([^()\s]*\))"
    r"|(?P<strong>\*\*(?=\S)|(?<=\S)\*\*|~~)"
    r"|(?P<emphasis>(?<![\w*])\*(?=[^\s*][^*\n]*\*(?![\w*]))|(?<=[^\s*])\*(?![\w*])|(?<![\w_])_(?=[^\s_][^_\n]*_(?![\w_]))"
    r"|(?<=[^\s_])_(?![\w_]))"
    rf"|(?P<emoji>(?:{_EMOJI}\s?)*{_EMOJI})"
    r"|(?P<emoticon>(?:(?<=\s)|^)(?:[:;=]['’]?-?[)(DPpO3|*]+|<3+|\^_\^|[xX]D+)(?=[\s.,!?]|$))"
)
_WORD = re.compile(r"\S+")
_HTML_NAME = re.compile(r"<(/?)\s*([a-zA-Z]\w*)")
_ASS_SWITCH = re.compile(r"\\([ibus])([01])(?!\d)|\{(/?)([biu])\}")
_SINGLE = frozenset({"br", "hr", "img", "input", "wbr"})


@dataclass(frozen=True)
class Tag:
    """A tag, where it was in the text without tags, and what it does.

    It opens or closes something, is a point of time, or a sign that is seen, such as an emoji.
    """

    place: int
    text: str
    name: str
    role: str  # open, close, point or sign


def without_tags(text: str) -> tuple[str, tuple[Tag, ...]]:
    """Take the tags out of a sentence."""
    plain = ""
    done = 0
    tags: list[Tag] = []
    for match, role_of_mark in _find_tags(text):
        plain += text[done : match.start()]
        done = match.end()
        name, role = (
            _meaning(match.lastgroup or "", match[0]) if not role_of_mark else (match[0], role_of_mark)
        )
        tags.append(Tag(len(plain), match[0], name, role))
    return plain + text[done:], tuple(tags)


def _find_tags(text: str) -> list[tuple[re.Match[str], str]]:
    """All tags; of Markdown's marks, which open and close alike, those that are pairs, with their roles."""
    found: list[tuple[re.Match[str], str]] = []
    waiting: dict[str, int] = {}  # a mark → where in the list its opening one is
    for match in _TAG.finditer(text):
        if match.lastgroup == "copied":
            continue
        role = ""
        if match.lastgroup in ("strong", "emphasis"):
            role = "close" if match[0] in waiting else "open"
            if role == "open":
                waiting[match[0]] = len(found)
            else:
                del waiting[match[0]]
        found.append((match, role))
    lonely = set(waiting.values())
    return [item for place, item in enumerate(found) if place not in lonely]


def _meaning(kind: str, tag: str) -> tuple[str, str]:
    if kind == "html" and (found := _HTML_NAME.match(tag)):
        name = found[2].lower()
        if name in _SINGLE or tag.endswith("/>"):
            return name, "point"
        return name, "close" if found[1] else "open"
    if kind == "ass" and (switch := _ASS_SWITCH.search(tag)):
        on = switch[2] == "1" if switch[1] else not switch[3]
        return f"ass {switch[1] or switch[4]}", "open" if on else "close"
    if kind in ("link", "target"):
        return "link", "open" if kind == "link" else "close"
    return tag, "sign" if kind in ("emoji", "emoticon") else "point"


@dataclass(frozen=True)
class _Insertion:
    """A tag in a translation: where, in which order among those at one place, whether with spaces."""

    place: int
    order: int
    text: str
    spaced: tuple[bool, bool] = (False, False)


def with_tags(translation: str, plain: str, tags: Sequence[Tag], aligned: Aligned) -> str:
    """Put all tags of a sentence into its translation."""
    inserted: list[_Insertion] = []
    partner = _pairs(tags)
    placed: dict[int, tuple[int, int]] = {}  # an opening tag → where its pair went
    for number, tag in enumerate(tags):
        if number in partner:
            closing = partner[number]
            start, end = aligned(tag.place, tags[closing].place)
            around = [placed[other] for other in placed if other < number and partner[other] > closing]
            if around:  # what was inside stays inside
                start, end = max(start, around[-1][0]), min(end, around[-1][1])
            start = min(start, end)
            placed[number] = (start, end)
            # at one place: what is closed before what is opened, an inner pair inside of the outer one
            if start == end:
                inserted.append(_Insertion(start, len(tags) + number, tag.text + tags[closing].text))
            else:
                inserted.append(_Insertion(start, len(tags) + number, tag.text))
                inserted.append(_Insertion(end, -number, tags[closing].text))
        elif number not in partner.values():
            place = _single_tag_position(tag, plain, translation, aligned)
            beside = (plain[: tag.place][-1:].isspace(), plain[tag.place :][:1].isspace())
            spaced = beside if tag.role == "sign" else (False, False)
            inserted.append(_Insertion(place, len(tags) + number, tag.text, spaced))
    return _insert_texts(translation, inserted)


def _pairs(tags: Sequence[Tag]) -> dict[int, int]:
    """Which opening tag is closed by which."""
    pairs = {}
    waiting: list[int] = []
    for number, tag in enumerate(tags):
        if tag.role == "open":
            waiting.append(number)
        elif tag.role == "close":
            opening = next((one for one in reversed(waiting) if tags[one].name == tag.name), None)
            if opening is not None:
                pairs[opening] = number
                waiting.remove(opening)
    return pairs


def _single_tag_position(tag: Tag, plain: str, translation: str, aligned: Aligned) -> int:
    """Where a tag without a partner goes: at an end it stays there, else it follows the words beside it."""
    if not plain[: tag.place].strip():
        return 0
    if not plain[tag.place :].strip():
        return len(translation)
    if tag.role == "open":
        return aligned(tag.place, len(plain))[0]
    if tag.role == "close":
        return aligned(0, tag.place)[1]
    # what belongs to no word stands at the edge of one, in proportion; a sign after it
    words = list(_WORD.finditer(translation))
    edges = [match.end() for match in words] + [match.start() for match in words if tag.role == "point"]
    wanted = tag.place * len(translation) / len(plain)
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
