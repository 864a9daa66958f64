"""Dividing a translation over the cues and lines of its source.

Breaks fall between words, near to where the source had them, rather after punctuation, and not after an
article, a preposition or a conjunction if there is a better place. Lines are balanced, or the lower one is
longer. Knows only strings and lengths; a `Ruler` says which parts of a string are invisible, and what the
language is.
"""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from cadec_cli.text.formats.layout import LINE_WIDTH
from cadec_cli.text.formats.subtitles.function_words import function_words

# Scripts that put no space between words: kana, Han, Thai, Lao, Khmer, Burmese, full-width punctuation.
_SPACELESS = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uff00-\uffef]")
_PUNCTUATION = frozenset(",;:.!?…—–)»”。、，！？；：")
_SENTENCE_END = frozenset(".!?…。！？")
# Characters that a break may move to stand after punctuation, after a sentence, or before a function word.
_PUNCTUATION_BONUS, _SENTENCE_BONUS, _BEFORE_BONUS = 8, 10, 2
_CLINGING_COST = 16  # characters that the end of a cue may move not to part a function word from the next
_TOP_HEAVY = 1.25  # what a character counts by which the upper line is too long
_SHORT_WORD = 3
# Beyond these, lines are not balanced, which takes time quadratic in the number of words.
_MAX_BALANCED = 4
_MAX_WORDS = 500
_SHORT_WORD_COST = 3
# Signs that French puts a space before, and dashes: they stay with the word before them.
_TRAILING_SIGNS = re.compile(r"[?!:;»%…–—-]+")
_OPENING_SIGNS = re.compile(r"[«„“‘¿¡(\[–—-]+")
_DASH = re.compile(r"[–—-]")
_QUOTES = "\"'«»„“”‘’([¿¡"


@dataclass(frozen=True)
class Ruler:
    """Measures text on the screen: `hidden` parts take no room, and if `escaped`, `&lt;` is one character.

    The language, if it is known, tells which words cling to the next one.
    """

    hidden: re.Pattern[str] | None = None
    escaped: bool = False
    language: str = ""

    def visible_text(self, text: str) -> str:
        """Return a text as it is on the screen."""
        text = self.hidden.sub("", text) if self.hidden else text
        return html.unescape(text) if self.escaped else text

    def width(self, text: str) -> int:
        """Count the characters on the screen."""
        return len(self.visible_text(text))

    def words(self, text: str) -> list[str]:
        """Split into words with the space after them; single characters where the script has no spaces."""
        hidden = self.hidden.pattern if self.hidden else "(?!)"
        flags = (self.hidden.flags if self.hidden else 0) | re.DOTALL
        words: list[str] = []
        for word in re.findall(rf"(?:{hidden}|\S)+\s*", text, flags):
            if _SPACELESS.search(self.visible_text(word)):
                # Closing punctuation never begins a line.
                character = r"(?:&\w+;|.)" if self.escaped else "."
                words += re.findall(
                    rf"(?:{hidden})+$|(?:{hidden})*{character}[。、，！？；：」』）…]*\s*", word, flags
                )
            else:
                words.append(word)
        return self._with_signs(self._with_text(words))

    def _with_text(self, words: list[str]) -> list[str]:
        """Join invisible parts to the word after them, or to the last word."""
        joined: list[str] = []
        waiting = ""
        for word in words:
            waiting += word
            if self.visible_text(waiting).strip():
                joined.append(waiting)
                waiting = ""
        if waiting:
            joined[-1:] = ["".join(joined[-1:]) + waiting]
        return joined

    def _with_signs(self, words: list[str]) -> list[str]:
        """Join signs that stand alone to the word that they belong to."""
        joined: list[str] = []
        opening = before = ""
        for number, word in enumerate(words):
            shown = self.visible_text(word).strip()
            speaker = _DASH.fullmatch(shown) and before[-1:] in _SENTENCE_END
            before = shown
            opens = speaker or not joined or not _TRAILING_SIGNS.fullmatch(shown)
            if number + 1 < len(words) and opens and _OPENING_SIGNS.fullmatch(shown):
                opening += word
            elif not opening and joined and _TRAILING_SIGNS.fullmatch(shown):
                joined[-1] += word
            else:
                joined.append(opening + word)
                opening = ""
        return joined

    def clings(self, word: str) -> bool:
        """Tell whether a word, given as it is on the screen, belongs to the one after it."""
        known = function_words(self.language)
        word = word.strip().lstrip(_QUOTES).lower()
        return known is not None and (word in known or word.rstrip("’'") != word)


PLAIN = Ruler()


def divide(text: str, weights: Sequence[int], ruler: Ruler = PLAIN) -> list[str]:
    """Divide a text into as many parts as there are weights, in proportion to them.

    If there are fewer words than parts, the last parts are empty.
    """
    if len(weights) == 1:
        return [text.strip()]
    words = ruler.words(text)
    if len(words) <= len(weights):
        return [word.strip() for word in words] + [""] * (len(weights) - len(words))
    ends = list(accumulate(map(ruler.width, words)))
    scale = ends[-1] / max(1, sum(weights))
    targets = [target * scale for target in accumulate(weights)]
    seen = [ruler.visible_text(word) for word in words]
    costs = [cost + _CLINGING_COST * clings for clings, cost in _break_costs(seen, ruler)]
    parts = []
    begin = 0
    for number, target in enumerate(targets[:-1], 1):
        last = len(words) - (len(weights) - number)  # leave a word for each part to come
        stop = min(range(begin + 1, last + 1), key=lambda end: costs[end] + abs(ends[end - 1] - target))
        parts.append("".join(words[begin:stop]).strip())
        begin = stop
    return [*parts, "".join(words[begin:]).strip()]


def wrap(text: str, lines: int, width: int = LINE_WIDTH, ruler: Ruler = PLAIN) -> list[str]:
    """Wrap a text into at most `lines` balanced lines, if it is too long for one.

    A line is wider than `width` only if the words leave no choice.
    """
    room = ruler.width(text)
    if lines == 1 or room <= width or not text.strip():
        return [text]
    words = ruler.words(text)
    seen = [ruler.visible_text(word) for word in words]
    most = min(lines, len(words))
    fewest = min(most, -(-room // width))
    if fewest > _MAX_BALANCED or len(words) > _MAX_WORDS:
        return divide(text, [1] * fewest, ruler)
    shown = [text]
    for count in range(fewest, min(most, _MAX_BALANCED) + 1):
        stops = _line_ends(seen, count, width, ruler)
        shown = ["".join(words[begin:stop]).strip() for begin, stop in pairwise([0, *stops])]
        if all(len(ruler.visible_text(line).strip()) <= width for line in shown):
            break
    return shown


def _line_ends(words: list[str], count: int, width: int, ruler: Ruler) -> list[int]:
    """Choose after which words lines end: least beyond the width, fewest after clinging words, least cost."""
    ends = [0, *accumulate(map(len, words))]
    target = ends[-1] / max(1, count)
    costs = _break_costs(words, ruler)
    best: dict[int, tuple[float, int, float, list[int]]] = {0: (0, 0, 0, [])}
    for line in range(1, count + 1):
        found: dict[int, tuple[float, int, float, list[int]]] = {}
        last = len(words) - (count - line)  # leave a word for each line to come
        for stop in range(line, last + 1) if line < count else [len(words)]:
            clings, cost = costs[stop] if line < count else (False, 0.0)
            if line < count:
                beyond = ends[stop] - target * line
                cost += beyond * _TOP_HEAVY if beyond > 0 else -beyond
            space = len(words[stop - 1]) - len(words[stop - 1].rstrip())
            found[stop] = min(
                (
                    over + max(0, ends[stop] - space - ends[begin] - width),
                    parted + clings,
                    total + cost,
                    [*stops, stop],
                )
                for begin, (over, parted, total, stops) in best.items()
                if begin < stop
            )
        best = found
    return best[len(words)][3]


def join(parts: Sequence[str], ruler: Ruler = PLAIN) -> str:
    """Join parts with spaces, except between characters of a script that has none."""
    joined = seen = ""
    for part in parts:
        added = ruler.visible_text(part)
        joined += separator(seen, added) + part
        seen += added
    return joined


def separator(before: str, after: str) -> str:
    """Return the separator between two consecutive texts."""
    if not before or not after:
        return ""
    return "" if _SPACELESS.match(before[-1]) and _SPACELESS.match(after[0]) else " "


def _break_costs(words: Sequence[str], ruler: Ruler) -> list[tuple[bool, float]]:
    """For a break before each word, and at the end: whether it parts words that cling, and its cost."""
    clinging = [ruler.clings(word) for word in words]
    costs: list[tuple[bool, float]] = [(False, 0.0)]
    for number, word in enumerate(map(str.strip, words), 1):
        follows = number < len(words) and clinging[number]
        cost = -float(_BEFORE_BONUS) if follows else 0.0
        if word[-1] in _PUNCTUATION:
            cost = -float(_SENTENCE_BONUS if word[-1] in _SENTENCE_END else _PUNCTUATION_BONUS)
        elif len(word) <= _SHORT_WORD and not _SPACELESS.search(word):
            cost += _SHORT_WORD_COST
        costs.append((clinging[number - 1], cost))
    return costs
