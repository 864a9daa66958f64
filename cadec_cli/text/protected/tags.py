"""Tags inside a sentence: taken out before it is translated, and put into the translation afterwards.

Every tag of a text (see `markup`) has a position in the text without tags. Which words of the translation a
pair of tags belongs to is the caller's to say (`Aligned`). Every tag comes back: pairs around words, inner
pairs inside outer ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cadec_cli.text.markup import Tag, text_tags, without_tags

# (start, end) in the text without tags → (start, end) in its translation
Aligned = Callable[[int, int], tuple[int, int]]

_WORD = re.compile(r"\S+")


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
