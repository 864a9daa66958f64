"""Dividing a translation over the cues and lines of its source.

Knows only strings and lengths. Breaks fall between words, nearest to where the source had them, rather after
punctuation than after a short word.
"""

import re
from collections.abc import Sequence
from itertools import accumulate

LINE_WIDTH = 42  # what subtitle guidelines give a line

# Scripts that put no space between words: kana, Han, Thai, Lao, Khmer, Burmese, full-width punctuation.
_SPACELESS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]")
_PUNCTUATION = frozenset(",;:.!?…—–)»”。、，！？；：")
_PUNCTUATION_BONUS = 8  # characters that a break may move to stand after punctuation
_SHORT_WORD = 3
_SHORT_WORD_COST = 3


def divide(text: str, weights: Sequence[int]) -> list[str]:
    """Divide a text into as many parts as there are weights, in proportion to them.

    Every part gets some text for as long as there are words; the last parts stay empty after that.
    """
    if len(weights) == 1:
        return [text.strip()]
    words = _words(text)
    if len(words) <= len(weights):
        return [word.strip() for word in words] + [""] * (len(weights) - len(words))
    ends = list(accumulate(map(len, words)))
    scale = ends[-1] / max(1, sum(weights))
    targets = [target * scale for target in accumulate(weights)]
    parts = []
    begin = 0
    for number, target in enumerate(targets[:-1], 1):
        last = len(words) - (len(weights) - number)  # leave a word for each part to come
        stop = min(range(begin + 1, last + 1), key=lambda end: _cost(words[end - 1], ends[end - 1], target))
        parts.append("".join(words[begin:stop]).strip())
        begin = stop
    return [*parts, "".join(words[begin:]).strip()]


def wrap(text: str, lines: int) -> list[str]:
    """Wrap a text into at most `lines` balanced lines, and only where it is too long for one."""
    if lines == 1 or len(text) <= LINE_WIDTH:
        return [text]
    wanted = min(lines, -(-len(text) // LINE_WIDTH))
    return [line for line in divide(text, [1] * wanted) if line] or [""]


def join(parts: Sequence[str]) -> str:
    """Join parts with spaces, except between characters of a script that has none."""
    joined = ""
    for part in parts:
        joined += separator(joined, part) + part
    return joined


def separator(before: str, after: str) -> str:
    """Return what stands between two texts that are read one after the other."""
    if not before or not after:
        return ""
    return "" if _SPACELESS.match(before[-1]) and _SPACELESS.match(after[0]) else " "


def _words(text: str) -> list[str]:
    """Split into words that keep the space after them; single characters where the script has no spaces."""
    words: list[str] = []
    for word in re.findall(r"\S+\s*", text):
        if _SPACELESS.search(word):
            # closing punctuation never begins a line
            words += re.findall(r".[。、，！？；：」』）…]*\s*", word, re.DOTALL)
        else:
            words.append(word)
    return words


def _cost(word: str, end: int, target: float) -> float:
    word = word.strip()
    distance = abs(end - target)
    if word[-1] in _PUNCTUATION:
        return distance - _PUNCTUATION_BONUS
    return distance + (_SHORT_WORD_COST if len(word) <= _SHORT_WORD and not _SPACELESS.search(word) else 0)
