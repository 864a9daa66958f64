"""Which words of a translation stand for which of the source, as far as tags need to know.

By occlusion: the source is read again without the words in question, and what becomes less likely of the
translation stands for them. Any model that scores given translations token by token can tell; where none
can, the words in proportion are taken.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import accumulate

from cadec_cli.engines.protocols import TokenScores
from cadec_cli.text.protected.core import Core
from cadec_cli.text.protected.tags import with_tags

# Nats per word that a range of words loses for each word by which its share differs from the source's.
_SHARE_COST = 0.5
_MAX_WORDS = 120  # of a translation whose ranges are all looked at
_EDGES = ".,;:!?…«»“”„\"'()—–-"

Range = tuple[int, int]


def place_tags(core: Core, translation: str, model: object) -> str:
    """A translation of a core by some model, if any, with the tags of the core in it, and in its case."""
    cased = core.case(translation)
    said = translation if len(cased) == len(translation) else cased

    @cache
    def align(start: int, end: int) -> Range:
        return _align_range(core.text, start, end, said, model)

    return with_tags(cased, core.text, core.tags, align) if core.tags else cased


def _align_range(source: str, start: int, end: int, translation: str, model: object) -> Range:
    words = [(match.start(), match.end()) for match in re.finditer(r"\S+", translation)]
    inside = source[start:end].strip()
    if not words or not inside:
        return _proportional(source, start, end, translation)
    if inside == source.strip():
        return 0, len(translation)
    there = [match.span() for match in re.finditer(re.escape(inside), translation)]
    if len(there) == 1 and _outside_code(there[0], translation) == there[0]:
        return there[0]  # a span, a name: it stands for itself
    without = " ".join((source[:start] + " " + source[end:]).split())
    if not isinstance(model, TokenScores) or not without or len(words) > _MAX_WORDS:
        return _proportional(source, start, end, translation)
    whole, occluded = model.token_log_probs([source, without], [translation, translation])
    drops = [0.0] * len(words)
    for (place, known), (_, unknown) in zip(whole, occluded, strict=True):
        drops[min(place, len(words) - 1)] += known - unknown
    first, last = _best_range(drops, len(inside.split()) / max(1, len(source.split())))
    found = _trim_punctuation(words[first][0], words[last][1], translation, inside)
    return _outside_code(found, translation)


def _outside_code(found: Range, translation: str) -> Range:
    """A range that ends nowhere inside of code, which has to stay as it is."""
    start, end = found
    for code in re.finditer(r"`[^`\n]+`", translation):
        if code.start() < start < code.end() or code.start() < end < code.end():
            start, end = min(start, code.start()), max(end, code.end())
    return start, end


def _best_range(drops: Sequence[float], share: float) -> Range:
    """The words in a row that lose most, more than the mean; about as many of all as in the source."""
    mean = sum(drops) / len(drops)
    sums = [0.0, *accumulate(drop - mean for drop in drops)]
    wanted = share * len(drops)
    ranges = [(first, last) for first in range(len(drops)) for last in range(first, len(drops))]
    return max(
        ranges,
        key=lambda one: sums[one[1] + 1] - sums[one[0]] - _SHARE_COST * abs(one[1] + 1 - one[0] - wanted),
    )


def _trim_punctuation(start: int, end: int, translation: str, inside: str) -> Range:
    """Leave punctuation at the ends outside where the source has none there."""
    if inside[-1] not in _EDGES:
        while end > start + 1 and translation[end - 1] in _EDGES:
            end -= 1
    if inside[0] not in _EDGES:
        while start < end - 1 and translation[start] in _EDGES:
            start += 1
    return start, end


def _proportional(source: str, start: int, end: int, translation: str) -> Range:
    """The nearest ends of words, in proportion."""
    ends = [0, *(match.end() for match in re.finditer(r"\S+", translation))]
    scale = len(translation) / max(1, len(source))
    first = min(ends, key=lambda place: abs(place - start * scale))
    last = min(ends, key=lambda place: abs(place - end * scale))
    while first < len(translation) and first < last and translation[first].isspace():
        first += 1
    return min(first, last), last
