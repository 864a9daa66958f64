"""Checks of single pairs: what is missing, what was not translated, what was copied wrongly.

Each check takes a text and yields remarks. Only what can be told without doubt is remarked on: a number that
may be written as a word, or a name that may be spelt the same in both languages, is not.
"""

from __future__ import annotations

import difflib
import itertools
import math
import re
import statistics
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property

from cadec_cli.decoding.protection.defects import NO_TEXT, repeats_itself, text_size
from cadec_cli.evaluation.checks.findings import ERROR, HINT, WARNING, CheckedText, Remark
from cadec_cli.evaluation.checks.language_guess import common_words, other_language
from cadec_cli.text.markup import TAGS, text_tags
from cadec_cli.text.protected.spans import Span, find_spans, foreign_letter, lost_spans, scripts_of

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_TAG = re.compile(r"<[^<>]*>|\{\\[^{}]*\}")
_NO_WORDS = re.compile(rf"{_TAG.pattern}|\$\w[\w.]*|\{{[^{{}}]*\}}|%\w+%|\S+://\S+|\S+@\S+|\w*_\w*|`[^`]*`")


def words_in(text: str) -> list[str]:
    """The words of a text as they are written, without tags, placeholders and other parts that are copied."""
    return _WORD.findall(_NO_WORDS.sub(" ", text))


# ---- lines without text


def empty_lines(text: CheckedText) -> Iterator[Remark]:
    """Lines with words in the source and nothing in the translation, or the other way round."""
    for number, pair in enumerate(text.pairs):
        if number in text.misaligned:
            continue
        if not pair.target and words_in(pair.source):
            yield Remark(number, ERROR, "has no translation")
        elif not pair.source and words_in(pair.target):
            yield Remark(number, WARNING, "has no source")
        elif len(words_in(pair.source)) > 2 and not any(map(str.isalnum, pair.target)):
            yield Remark(number, ERROR, "the translation has no words", target_part=pair.target)


# ---- lines in the wrong language


def untranslated_lines(text: CheckedText) -> Iterator[Remark]:
    """Lines, or several words of one, that are the same in the translation as in the source."""
    foreign = _foreign_to_target(text)
    translated = _translated_words(text)
    for number, pair in text.aligned:
        source, target = words_in(pair.source), words_in(pair.target)
        run = _common_run(source, target)
        apart = foreign is not None and _is_foreign(foreign, run)
        lower = [word for word in run if word.islower() and len(word) > 1]
        known = any(word in translated for word in lower)
        if len(run) == len(source) == len(target):
            if len(run) < (1 if apart else 4) or len(lower) < (1 if apart else 2):
                known = False  # a name, or a word that both languages have
                if not apart or len(run) < 2 or pair.source.isupper():
                    continue
            yield Remark(number, ERROR if known else WARNING, "is not translated", pair.source, pair.target)
        elif known and ((apart and len(run) > 1) or (len(run) >= 6 and len(lower) >= 4)):
            words = " ".join(run)
            yield Remark(number, WARNING, f"“{words}” is not translated", words, words)


def _translated_words(text: CheckedText) -> frozenset[str]:
    """The words of the source that some translation does not have; words of a third language are not here."""
    found = set(common_words(text.source_language))
    for _, pair in text.aligned:
        found |= set(words_in(pair.source)) - set(words_in(pair.target))
    return frozenset(found)


def _foreign_to_target(text: CheckedText) -> re.Pattern[str] | None:
    """What is not a letter of the target language, if the source is written in another script."""
    source, target = scripts_of(text.source_language), scripts_of(text.target_language)
    return (
        foreign_letter(text.target_language) if source and target and not set(source) & set(target) else None
    )


def _is_foreign(foreign: re.Pattern[str], words: Sequence[str]) -> bool:
    letters = [letter for word in words for letter in word if letter.isalpha()]
    return bool(letters) and all(foreign.match(letter) for letter in letters)


_COMPARED = 1000  # words of a line


def _common_run(source: Sequence[str], target: Sequence[str]) -> Sequence[str]:
    """The longest run of words that both have, as the source writes it."""
    if not {word.lower() for word in source} & {word.lower() for word in target}:
        return ()
    ones, others = ([word.lower() for word in words[:_COMPARED]] for words in (source, target))
    match = difflib.SequenceMatcher(None, ones, others, autojunk=False).find_longest_match()
    return source[match.a : match.a + match.size]


def foreign_lines(text: CheckedText) -> Iterator[Remark]:
    """Lines that are in another language, or another script, than the translation's."""
    foreign = foreign_letter(text.target_language)
    known = _frequent_words(text)
    for number, pair in text.aligned:
        words = words_in(pair.target)
        if [word.lower() for word in words] == [word.lower() for word in words_in(pair.source)]:
            continue  # not translated: that is another check
        if foreign is not None and len([word for word in words if word[0].islower()]) >= 2:
            letters = "".join(words)
            strange = sum(bool(foreign.match(letter)) for letter in letters if letter.isalpha())
            if strange > 0.7 * len(letters):
                scripts = " or ".join(scripts_of(text.target_language))
                yield Remark(number, ERROR, f"is not in {scripts} letters", target_part=pair.target)
                continue
        if other := other_language(words, text.target_language, known):
            yield Remark(
                number, ERROR, f"seems to be {other}, not {text.target_language}", target_part=pair.target
            )


_KNOWN = 60  # words of a translation that are common


def _frequent_words(text: CheckedText) -> frozenset[str]:
    words = Counter(word.lower() for _, pair in text.aligned for word in words_in(pair.target))
    return frozenset(word for word, count in words.most_common(_KNOWN) if count >= 5)


# ---- what has to stay as it is


_COPIED = {
    **dict.fromkeys(("url", "e-mail", "placeholder", "code"), ERROR),
    **dict.fromkeys(("path", "file", "flag", "tag word", "version", "identifier", "entity"), WARNING),
}
# Numbers and names that are written differently in other languages are left to other checks.
_LOOSE = re.compile(r"\d+(?:\.\d+)?[a-z]{0,4}|[A-Z]\d|\d+\w", re.IGNORECASE)


def copied_parts(text: CheckedText) -> Iterator[Remark]:
    """URLs, e-mail addresses, placeholders, code and file names that are lost, or that were added."""
    for number, pair in text.aligned:
        spans, others = _copied(pair.source), _copied(pair.target)
        lost = lost_spans(spans, pair.target)
        added = lost_spans([span for span in others if _COPIED[span.kind] == ERROR], pair.source)
        if len(lost) == len(added) == 1:
            yield Remark(number, ERROR, f"{lost[0]} became {added[0]}", lost[0], added[0])
            continue
        for part in lost:
            severity = next(_COPIED[span.kind] for span in spans if span.required_text == part)
            yield Remark(number, severity, f"{part} is missing", part)
        for part in added:
            yield Remark(number, ERROR, f"{part} is not in the source", target_part=part)


def _copied(text: str) -> list[Span]:
    return [
        span
        for span in find_spans(_TAG.sub(" ", text))
        if span.kind in _COPIED and not _LOOSE.fullmatch(span.text)
    ]


# ---- tags


_KINDS_OF_TAGS = re.compile(r"<|\{|!?\[|\]\(")
_EMPHASIS = re.compile(r"</?(?:i|b|u|em|strong)>|\{\\?/?[ibu][01]?\}", re.IGNORECASE)


def changed_tags(text: CheckedText) -> Iterator[Remark]:
    """Tags that are lost, and tags that were added."""
    for number, pair in text.aligned:
        source, target = _tags(pair.source), _tags(pair.target)
        for tags, what in ((source - target, "missing"), (target - source, "not in the source")):
            if not tags:
                continue
            # italics are the translator's choice, unless a pair is torn
            whole = all(map(_EMPHASIS.fullmatch, tags)) and len(list(tags.elements())) % 2 == 0
            names = " ".join(tags.elements())
            verb = "is" if len(list(tags.elements())) == 1 else "are"
            parts = (names, "") if what == "missing" else ("", names)
            yield Remark(number, WARNING if whole else ERROR, f"{names} {verb} {what}", *parts)


def _tags(text: str) -> Counter[str]:
    """The tags of a text, written alike; links of Markdown count by their brackets."""
    found = [tag.text for tag in text_tags(text)]
    found = [tag for tag in found if _KINDS_OF_TAGS.match(tag)]
    found += [tag for tag in TAGS["srt"].findall(text) if tag not in found and tag.startswith("{")]
    return Counter(re.sub(r"\s+", " ", tag).replace("< ", "<").replace(" >", ">") for tag in found)


# ---- numbers


_THOUSANDS = re.compile(r"(?<!\d)(?<!\d[.,])(\d{1,3}(?:[.,'’ \u00a0\u202f]\d{3})+)(?![.,]?\d)")
_HALF_DAY = re.compile(r"\b(\d{1,2})(?::\d\d)?\s*[ap]\.?m\b", re.IGNORECASE)
_ROMAN = re.compile(r"\b(?=[IVXLC])(X{0,3}|XL|L?X{0,3}|XC)(IX|IV|V?I{0,3})\b")
_OTHERWISE = frozenset(
    (
        "url",
        "e-mail",
        "placeholder",
        "code",
        "entity",
        "path",
        "file",
        "tag word",
        "flag",
        "key",
        "identifier",
    )
)
_AS_A_WORD = 20  # numbers up to this one are often written as words
_TIMES = (60, 100, 1000, 10**6, 10**9)


def changed_numbers(text: CheckedText) -> Iterator[Remark]:
    """Numbers, dates and times of the source that are others in the translation, or missing.

    Digits are compared, whatever stands between them: dates and decimals may be written in another way.
    """
    for number, pair in text.aligned:
        source, target = _numbers(pair.source), _numbers(pair.target)
        lost, added = source - target, target - source
        if lost:
            _cancel(lost, added, pair.source, pair.target)
        lost_values, added_values = sorted(lost.elements()), sorted(added.elements())
        if lost_values and added_values:
            was, is_now = (", ".join(map(str, values)) for values in (lost_values, added_values))
            yield Remark(number, ERROR, f"{was} became {is_now}", was, is_now)
        else:
            for value in lost_values:
                as_a_word = value <= _AS_A_WORD or value % 10 == 0
                severity, more = (HINT, ", at least in digits") if as_a_word else (WARNING, "")
                yield Remark(number, severity, f"{value} is missing{more}", str(value))


def _numbers(text: str) -> Counter[int]:
    """The numbers of a text by their digits; what is copied as a whole, such as a URL, is left out."""
    plain, done = "", 0
    text = _TAG.sub(" ", text)
    for span in find_spans(text):
        if span.kind in _OTHERWISE:
            plain, done = plain + text[done : span.start] + " ", span.end
    plain += text[done:]
    plain = _THOUSANDS.sub(lambda found: re.sub(r"\D", "", found[1]), plain)
    return Counter(int(digits) for digits in re.findall(r"\d+", plain) if len(digits) < 30)


def _cancel(lost: Counter[int], added: Counter[int], source: str, target: str) -> None:
    """Drop what is the same number in another notation: half days, Roman digits, thousands, decades."""
    for found in _HALF_DAY.finditer(source):
        hour = int(found[1])
        _drop(lost, added, hour, (hour + 12) % 24)
    romans = Counter(filter(None, map(_roman, _ROMAN.finditer(target))))
    for value in list(lost):
        if romans[value]:
            del lost[value]
            continue
        for other in list(added):
            scaled = any(value == other * factor or other == value * factor for factor in _TIMES)
            if scaled or (value > 1000 and value % 100 == other):
                _drop(lost, added, value, other)


def _drop(lost: Counter[int], added: Counter[int], value: int, other: int) -> None:
    both = min(lost[value], added[other])
    if both > 0:
        lost[value] -= both
        added[other] -= both
        lost += Counter()
        added += Counter()


_DIGITS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}


def _roman(found: re.Match[str]) -> int:
    values = [_DIGITS[letter] for letter in found[0]]
    return sum(-one if one < other else one for one, other in itertools.pairwise([*values, 0]))


# ---- lengths


_LONG_ENOUGH = 24  # characters of the source
_MANY_LINES = 20
_USUAL_SPREAD = 0.25
_FAR, _FACTOR = 4.5, 1.9  # robust deviations, and at least this factor
_ENDED = re.compile(r"[.!?…。！？।؟][\"'”’»)\]\s*]*$")


class Lengths:
    """How long the translations of a text are for their sources."""

    def __init__(self, text: CheckedText) -> None:
        self._ratios = [
            self.ratio(pair.source, pair.target)
            for _, pair in text.aligned
            if text_size(pair.source) >= _LONG_ENOUGH
        ]

    @staticmethod
    def ratio(source: str, target: str) -> float:
        """The logarithm of a translation's length over its source's."""
        source, target = _TAG.sub("", source), _TAG.sub("", target)
        return math.log(max(1, text_size(target)) / max(1, text_size(source)))

    @cached_property
    def usual(self) -> float:
        """The usual ratio; as long as the source, if there are too few lines to tell."""
        return statistics.median(self._ratios) if len(self._ratios) >= _MANY_LINES else 0.0

    @cached_property
    def spread(self) -> float:
        """How far ratios are from the usual one, as a standard deviation that outliers do not change."""
        if len(self._ratios) < _MANY_LINES:
            return _USUAL_SPREAD
        away = statistics.median(abs(ratio - self.usual) for ratio in self._ratios)
        return max(0.12, 1.4826 * away)

    def deviations(self, source: str, target: str) -> float:
        """How many deviations a translation is too long (above 0) or too short."""
        here = self.spread * math.sqrt(1 + 40 / max(1, text_size(source)))
        return (self.ratio(source, target) - self.usual) / here


def odd_lengths(text: CheckedText) -> Iterator[Remark]:
    """Translations that are much longer or shorter than those of the other lines, or that break off."""
    lengths = Lengths(text)
    for number, pair in text.aligned:
        if text_size(pair.source) < _LONG_ENOUGH and text_size(pair.target) < 2 * _LONG_ENOUGH:
            continue
        away = lengths.deviations(pair.source, pair.target)
        times = math.exp(lengths.ratio(pair.source, pair.target) - lengths.usual)
        if abs(away) >= _FAR and max(times, 1 / times) >= _FACTOR:
            much = f"{times:.1f} times as long" if times > 1 else f"{times:.0%} as long"
            yield Remark(number, WARNING, f"{much} as usual for its source")
        elif away < -1.5 and _ENDED.search(pair.source) and pair.target[-1].isalpha():
            yield Remark(number, WARNING, "seems to break off", target_part=pair.target[-40:])


# ---- damage


def damaged_lines(text: CheckedText) -> Iterator[Remark]:
    """Loops, characters that are not text, and brackets that are not closed."""
    for number, pair in text.aligned:
        if repeats_itself(pair.target) and not repeats_itself(pair.source):
            yield Remark(number, ERROR, "repeats itself")
        found = NO_TEXT.search(pair.target)
        if found and not NO_TEXT.search(pair.source):
            shown = f"U+{ord(found[0]):04X}" if len(found[0]) == 1 else found[0]
            yield Remark(number, ERROR, f"has {shown}, which is not text", target_part=found[0])
        for opening, closing in ("()", "[]", "{}"):
            balance = pair.target.count(opening) - pair.target.count(closing)
            if balance and pair.source.count(opening) == pair.source.count(closing):
                lone = opening if balance > 0 else closing
                yield Remark(number, WARNING, f"has a {lone} without its partner", target_part=lone)


def plain_words(text: str) -> list[str]:
    """The words of a text in lower case, without accents, to compare texts that should differ."""
    return [
        "".join(one for one in unicodedata.normalize("NFKD", word) if not unicodedata.combining(one)).lower()
        for word in words_in(text)
    ]
