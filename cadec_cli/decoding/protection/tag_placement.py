"""Putting the tags of a source around the right words of its translation.

The words are found by occlusion: the source is scored again without the words between two tags, and the words
of the translation that become less likely are their translation. This needs a model that scores given
translations token by token; without one, positions are taken in proportion.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import accumulate

from cadec_cli.engines.protocols import TokenScores
from cadec_cli.text.markup import proportional_range, with_tags
from cadec_cli.text.protected.core import Core
from cadec_cli.text.punctuation import restore_marks

# Cost, in nats, of each word by which a range is longer or shorter than its share of the source.
_SHARE_COST = 0.5
_MAX_WORDS = 120  # of a translation; all ranges of its words are compared
_EDGES = ".,;:!?…«»“”„\"'()—–-"

Range = tuple[int, int]


def place_tags(core: Core, translation: str, model: object, language: str = "") -> str:
    """Return a translation of a core with the core's tags, in its case, and with marks of its kind.

    The model finds the words of the tags. The language is the target's; without one, marks stay as they are.
    """
    if language:
        translation = restore_marks(core.text, translation, language)
    cased = core.case(translation)
    said = translation if len(cased) == len(translation) else cased

    @cache
    def align(start: int, end: int) -> Range:
        return align_range(core.text, start, end, said, model)

    return with_tags(cased, core.text, core.tags, align) if core.tags else cased


def align_range(source: str, start: int, end: int, translation: str, model: object) -> Range:
    """Return where a translation says what the source says from `start` to `end`."""
    words = [(match.start(), match.end()) for match in re.finditer(r"\S+", translation)]
    inside = source[start:end].strip()
    if not words or not inside:
        return proportional_range(source, start, end, translation)
    if inside == source.strip():
        return 0, len(translation)
    there = [match.span() for match in re.finditer(re.escape(inside), translation)]
    if len(there) == 1 and _outside_code(there[0], translation) == there[0]:
        return there[0]  # a span or a name, which is copied
    without = " ".join((source[:start] + " " + source[end:]).split())
    if not isinstance(model, TokenScores) or not without or len(words) > _MAX_WORDS:
        return proportional_range(source, start, end, translation)
    whole, occluded = model.token_log_probs([source, without], [translation, translation])
    drops = [0.0] * len(words)
    for (place, known), (_, unknown) in zip(whole, occluded, strict=True):
        drops[min(place, len(words) - 1)] += known - unknown
    first, last = _best_range(drops, len(inside.split()) / max(1, len(source.split())))
    found = _trim_punctuation(words[first][0], words[last][1], translation, inside)
    return _outside_code(found, translation)


def _outside_code(found: Range, translation: str) -> Range:
    """Extend a range that begins or ends inside code, because code must not be changed."""
    start, end = found
    for code in re.finditer(r"`[^`\n]+`", translation):
        if code.start() < start < code.end() or code.start() < end < code.end():
            start, end = min(start, code.start()), max(end, code.end())
    return start, end


def _best_range(drops: Sequence[float], share: float) -> Range:
    """Return the range of words that loses most above the mean, with about the given share of all words."""
    mean = sum(drops) / len(drops)
    sums = [0.0, *accumulate(drop - mean for drop in drops)]
    wanted = share * len(drops)
    ranges = [(first, last) for first in range(len(drops)) for last in range(first, len(drops))]
    return max(
        ranges,
        key=lambda one: sums[one[1] + 1] - sums[one[0]] - _SHARE_COST * abs(one[1] + 1 - one[0] - wanted),
    )


def _trim_punctuation(start: int, end: int, translation: str, inside: str) -> Range:
    """Leave out punctuation at the ends of a range, unless the source has punctuation there."""
    if inside[-1] not in _EDGES:
        while end > start + 1 and translation[end - 1] in _EDGES:
            end -= 1
    if inside[0] not in _EDGES:
        while start < end - 1 and translation[start] in _EDGES:
            start += 1
    return start, end
