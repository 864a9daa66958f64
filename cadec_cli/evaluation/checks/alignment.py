"""Which lines of two texts belong together, told without a model.

Two lines are alike if their lengths, their final punctuation, their numbers and their names go together, and
if their words often do in the whole text. `Likeness` adds that up. `shifted_lines` looks for runs of lines
whose translations stand one line away, and `align` brings texts of different lengths together.
"""

from __future__ import annotations

import itertools
import math
import re
import statistics
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from cadec_cli.decoding.protection.defects import text_size
from cadec_cli.evaluation.checks.line_checks import words_in

_MARKS = re.compile(r"([.?!…:;,。？！؟])[\"'”’»)\]\s*]*$|$")
_SAME_MARK = {"。": ".", "？": "?", "؟": "?", "！": "!"}
_DIGITS = re.compile(r"\d+")
_STEM = 5  # letters
_MOST_WORDS = 60  # of a line

# Letters as an English reader would spell them; only the beginnings of names are compared.
_ROMAN = dict(zip("абвгдеёзийклмнопрстуфъыьэіїєґў", "abvgdeeziiklmnoprstuf y eiiegu", strict=True))
_ROMAN |= {"ж": "zh", "х": "kh", "ц": "ts", "ч": "ch", "ш": "sh", "щ": "shch", "ю": "yu", "я": "ya"}
_ROMAN |= dict(zip("αβγδεζηθικλμνξοπρσςτυφχψω", "abgdezitiklmnxoprsstyfhpo", strict=True))
_SPELT = {"ph": "f", "ck": "k", "kh": "h", "x": "ks", "w": "v", "q": "k", "th": "t", "sh": "s", "ch": "s"}
_SPELT |= {"ts": "c", "zh": "j"}


@cache
def name_key(word: str) -> str:
    """The consonants that a name begins with, alike however it is spelt; "" if they are too few to tell."""
    plain = "".join(_ROMAN.get(letter, letter) for letter in unicodedata.normalize("NFKC", word.lower()))
    plain = "".join(one for one in unicodedata.normalize("NFKD", plain) if one.isascii() and one.isalpha())
    for other, spelling in _SPELT.items():
        plain = plain.replace(other, spelling)
    plain = re.sub(r"(.)\1", r"\1", plain.replace("c", "k").replace("y", "i").replace("j", "g"))
    first, rest = plain[:1], re.sub("[aeiouh]", "", plain[1:])
    first = "a" if first and first in "aeiou" else first
    return (first + rest)[:3] if len(plain) >= 4 and rest else ""


@dataclass(frozen=True)
class _Line:
    """What is compared of a line."""

    size: int
    mark: str
    numbers: frozenset[str]
    names: frozenset[str]
    stems: frozenset[str]

    @classmethod
    def of(cls, text: str) -> _Line:
        words = words_in(text)[:_MOST_WORDS]
        found = _MARKS.search(text)
        mark = found[1] or "" if found else ""
        names = {name_key(word) for word in words if word[0].isupper()} - {""}
        stems = {word.lower()[:_STEM] for word in words if len(word) > 3}
        return cls(
            text_size(text),
            _SAME_MARK.get(mark, mark),
            frozenset(_DIGITS.findall(text)),
            frozenset(names),
            frozenset(stems),
        )

    @classmethod
    def joined(cls, lines: Sequence[_Line], places: range) -> _Line:
        """Several lines as one."""
        found = [lines[place] for place in places]
        if len(found) == 1:
            return found[0]
        sets = [
            frozenset[str]().union(*(getattr(line, part) for line in found))
            for part in ("numbers", "names", "stems")
        ]
        return cls(sum(line.size for line in found), found[-1].mark, *sets)


class Likeness:
    """How well lines of a source go with lines of a translation.

    If `paired`, line i is taken for the translation of line i in most cases: what words render each other is
    learned from that.
    """

    def __init__(self, sources: Sequence[str], targets: Sequence[str], *, paired: bool = True) -> None:
        self.sources = [_Line.of(text) for text in sources]
        self.targets = [_Line.of(text) for text in targets]
        lines = list(zip(self.sources, self.targets, strict=False)) if paired else []
        ratios = [math.log(other.size / one.size) for one, other in lines if min(one.size, other.size) > 12]
        totals = [sum(line.size for line in side) for side in (self.sources, self.targets)]
        # not far from 0, since lines of one side may be missing
        overall = max(-0.2, min(0.2, math.log(totals[1] / totals[0]))) if min(totals) else 0.0
        self.ratio = statistics.median(ratios) if len(ratios) > 10 else overall
        self.spelt = _share_names(lines) if paired else True
        self._together = _renderings(lines)

    def score(self, source: int, target: int) -> float:
        """How much more likely the two belong together than not; above 0 if they do."""
        return self._of_lines(self.sources[source], self.targets[target], own=source == target)

    def joined_score(self, sources: range, targets: range) -> float:
        """The same of lines that are put together."""
        return self._of_lines(_Line.joined(self.sources, sources), _Line.joined(self.targets, targets))

    def _of_lines(self, one: _Line, other: _Line, *, own: bool = False) -> float:
        away = abs(math.log((other.size + 4) / (one.size * math.exp(self.ratio) + 4)))
        score = max(-3.0, 0.6 - 2.0 * away)
        if one.mark != other.mark:
            score -= 1.0 if "?" in (one.mark, other.mark) else 0.3
        elif one.mark in ("?", "!", "…", ":"):
            score += 1.0
        if one.numbers and other.numbers:
            score += 2.5 if one.numbers & other.numbers else -1.5
        elif one.numbers or other.numbers:
            score -= 0.5
        if self.spelt and one.names:
            common = len(one.names & other.names)
            score += 1.6 * min(2, common) - 0.3 * min(2, len(one.names) - common)
        return score + self._by_words(one, other, least=3 if own else 2)

    def _by_words(self, one: _Line, target: _Line, *, least: int) -> float:
        """Words of the source that have a rendering, whether it is there; a line never vouches for itself."""
        hits = misses = 0
        for stem in one.stems:
            renderings = self._together.get(stem)
            if renderings is None:
                continue
            there = [count for other, count in renderings.items() if other in target.stems]
            if there and max(there) >= least:
                hits += 1
            elif not there:
                misses += 1
        return 1.3 * min(4, hits) - 0.5 * min(4, misses)


def _share_names(lines: Sequence[tuple[_Line, _Line]]) -> bool:
    """Tell whether names are spelt alike on both sides, so that a missing one means something."""
    named = [one.names & other.names for one, other in lines if one.names]
    return not named or sum(map(bool, named)) > 0.2 * len(named)


_TIED = 0.45


def _renderings(lines: Sequence[tuple[_Line, _Line]]) -> dict[str, dict[str, int]]:
    """Stems of the source with the stems of the translation that stand with them, and how often."""
    source = Counter(stem for one, _ in lines for stem in one.stems)
    target = Counter(stem for _, other in lines for stem in other.stems)
    rare = {stem for stem, count in source.items() if 3 <= count <= max(20, len(lines) // 20)}
    together: dict[str, Counter[str]] = defaultdict(Counter)
    for one, other in lines:
        for stem in one.stems & rare:
            together[stem].update(other.stems)
    found = {}
    for stem, counts in together.items():
        tied = {
            other: count
            for other, count in counts.items()
            if count >= 2 and 2 * count >= _TIED * (source[stem] + target[other])
        }
        if tied:
            found[stem] = tied
    return found


@dataclass(frozen=True)
class Shift:
    """Lines from `first` to `last` whose translations stand `by` lines later; two swapped lines have by 0."""

    first: int
    last: int
    by: int


# A run has so many lines at least, and is so much likelier than lines as they stand, in all and per line.
_RUN, _CLEAR, _EACH = 3, 9.0, 1.5
_SWAP = 6.0


def shifted_lines(likeness: Likeness, documents: Sequence[Sequence[int]]) -> list[Shift]:
    """The runs of lines that are misaligned, in order; each is within a document and none overlap."""
    found: list[Shift] = []
    for document in documents:
        runs = [
            (gain, Shift(document[first], document[last], by))
            for by in (1, -1)
            for gain, first, last in _runs(likeness, document, by)
        ]
        runs += [(gain, Shift(one, other, 0)) for gain, one, other in _swaps(likeness, document)]
        taken: set[int] = set()
        for _, shift in sorted(runs, key=lambda run: -run[0]):
            lines = set(range(shift.first, shift.last + 1))
            if not lines & taken:
                taken |= lines
                found.append(shift)
    return sorted(found, key=lambda shift: shift.first)


def _runs(likeness: Likeness, document: Sequence[int], by: int) -> Iterator[tuple[float, int, int]]:
    """Runs in which the translations `by` lines later go better with the lines than their own: gain, ends."""
    total, start = 0.0, 0
    best: tuple[float, int, int] | None = None
    for place in range(len(document) + 1):
        inside = place < len(document) and 0 <= place + by < len(document)
        gain = -math.inf
        if inside:
            line, other = document[place], document[place + by]
            gain = likeness.score(line, other) - likeness.score(line, line)
        if total + gain <= 0 or (best is not None and total + gain < best[0] - _CLEAR):
            if best is not None and _is_clear(*best):
                yield best
            total, start, best = 0.0, place + 1, None
            continue
        if total == 0:
            start = place
        total += gain
        if best is None or total > best[0]:
            best = (total, start, place)


def _is_clear(gain: float, first: int, last: int) -> bool:
    lines = last - first + 1
    return lines >= _RUN and gain >= _CLEAR and gain >= _EACH * lines


def _swaps(likeness: Likeness, document: Sequence[int]) -> Iterator[tuple[float, int, int]]:
    for one, other in itertools.pairwise(document):
        crossed = likeness.score(one, other) + likeness.score(other, one)
        gain = crossed - likeness.score(one, one) - likeness.score(other, other)
        if gain >= _SWAP and min(likeness.score(one, other), likeness.score(other, one)) > 0:
            yield gain, one, other


# Lines of source and translation that are one pair: a line of one side may have none, or two, on the other.
_STEPS = ((1, 1, 0.0), (1, 0, -2.0), (0, 1, -2.0), (2, 1, -2.0), (1, 2, -2.0))
_MARGIN = 12  # lines that the sides may be apart, beyond the difference of their lengths


def align(sources: Sequence[str], targets: Sequence[str]) -> list[tuple[range, range]]:
    """Bring two texts of different lengths together, in order: the likeliest pairs of lines."""
    likeness = Likeness(sources, targets, paired=False)
    rows, columns = len(sources), len(targets)
    apart = columns - rows
    low, high = min(0, apart) - _MARGIN, max(0, apart) + _MARGIN
    best: dict[tuple[int, int], tuple[float, int]] = {(0, 0): (0.0, -1)}
    for row in range(rows + 1):
        for column in range(max(0, row + low), min(columns, row + high) + 1):
            if (row, column) == (0, 0):
                continue
            found = (-math.inf, -1)
            for number, (down, right, cost) in enumerate(_STEPS):
                before = best.get((row - down, column - right))
                if before is None:
                    continue
                gain = cost
                if down and right:
                    gain += likeness.joined_score(range(row - down, row), range(column - right, column))
                found = max(found, (before[0] + gain, number))
            best[row, column] = found
    steps = []
    row, column = rows, columns
    while (row, column) != (0, 0):
        down, right, _ = _STEPS[best[row, column][1]]
        steps.append((range(row - down, row), range(column - right, column)))
        row, column = row - down, column - right
    return steps[::-1]
