"""Checks that look at more than one pair: names, forms of address, repeated and misaligned lines."""

from __future__ import annotations

import difflib
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from cadec_cli.evaluation.checks.alignment import Likeness, Shift, shifted_lines
from cadec_cli.evaluation.checks.findings import ERROR, HINT, WARNING, CheckedText, Remark
from cadec_cli.evaluation.checks.line_checks import plain_words, words_in
from cadec_cli.evaluation.quality.consistency import Occurrence, occurrences
from cadec_cli.text.address import addresses
from cadec_cli.text.sentences import base_language

# ---- names and terms


def renderings_that_differ(text: CheckedText) -> Iterator[Remark]:
    """Names and terms that are rendered in another way than in most places of the text."""
    whole = frozenset(text.whole)
    documents = [[number for number in document if number in whole] for document in text.documents]
    numbers = [number for document in documents for number in document]
    sources = [[text.pairs[number].source for number in document] for document in documents]
    targets = [[text.pairs[number].target for number in document] for document in documents]
    found: dict[tuple[str, int], list[Occurrence]] = defaultdict(list)
    for one in occurrences(sources, targets, text.source_language, text.target_language):
        # a term may mean something else in another document
        found[one.word, -1 if one.is_name else one.document].append(one)
    for (word, _), places in found.items():
        counts = Counter(one.rendering for one in places)
        usual, often = counts.most_common(1)[0]
        for one in places:
            if not one.is_name and not _is_said(word, text.pairs[numbers[one.sentence]].source):
                continue  # another word with the same stem
            if one.rendering != usual and not _are_parts_of_speech(one.rendering, usual):
                times = "once" if often == 1 else f"{often} times"
                yield Remark(
                    numbers[one.sentence],
                    WARNING if one.is_name else HINT,
                    f"{word} is {one.rendering} here, and {usual} elsewhere ({times})",
                    word,
                    one.rendering,
                )


def _is_said(term: str, source: str) -> bool:
    """Tell whether a form of a term is in a source: all of its letters but the last two."""
    beginning = term.lower()[: max(5, len(term) - 2)]
    return any(word.lower().startswith(beginning) for word in words_in(source))


_BEGINNING = 6  # letters


def _are_parts_of_speech(one: str, other: str) -> bool:
    """Tell whether two renderings begin with the same letters, as a name and its adjective do."""
    return one.lower()[:_BEGINNING] == other.lower()[:_BEGINNING] and len(one) > _BEGINNING


# ---- address

# The address of several people is polite in form in many languages: such lines tell nothing.
_SEVERAL = re.compile(
    r"\b(?:all|both|everyone|everybody|guys|folks|gentlemen|ladies|friends|men|people|boys|girls|kids|two|three"
    r"|yourselves|others|together|brothers|soldiers|warriors|we|us|our|lords"
    r"|your (?:\w+ )?(?:\w+[^s\W]s|kind|lot))\b",
    re.IGNORECASE,
)
_SPEECHES = re.compile(r"(?:^|\s)[-–—]\s|[«“”»\"„]")  # a line with several voices, or a quotation
_YOU = re.compile(r"\b(?:you|your|yours|yourself|thou|thee|thy|thine)\b", re.IGNORECASE)
_NAMES = {"T": "familiar", "V": "polite"}
# Languages in which the polite form is not that of several people: a change is not due to their number.
_NOT_OF_SEVERAL = frozenset({"de", "es", "it", "nl", "pl", "pt"})


def changed_address(text: CheckedText) -> Iterator[Remark]:
    """Lines whose sentences address one reader in two ways, and lines that differ from their conversation."""
    language, whole = text.target_language, frozenset(text.whole)
    severity = WARNING if base_language(language) in _NOT_OF_SEVERAL else HINT
    for document in text.documents:
        addressed: list[tuple[int, str]] = []
        for number in document:
            pair = text.pairs[number]
            if number not in whole or not _is_to_one(text, pair.source) or _SPEECHES.search(pair.target):
                continue
            forms = addresses(pair.target, language)
            if len(forms) > 1:
                yield Remark(number, severity, "address is both familiar and polite")
            addressed += ((number, form) for form in forms if len(forms) == 1)
        yield from _exceptions(addressed, severity)


def _is_to_one(text: CheckedText, source: str) -> bool:
    if base_language(text.source_language) != "en":
        return True
    return bool(_YOU.search(source)) and not _SEVERAL.search(source)


_FEW_ADDRESSED = 8


def _exceptions(addressed: Sequence[tuple[int, str]], severity: str) -> Iterator[Remark]:
    """The one line of a conversation that has another form of address than all others."""
    counts = Counter(form for _, form in addressed)
    if len(addressed) < _FEW_ADDRESSED or len(counts) < 2:
        return
    (usual, often), (rare, count) = counts.most_common(2)
    if count > 1:
        return
    for number, form in addressed:
        if form == rare:
            yield Remark(
                number,
                severity,
                f"address is {_NAMES[rare]}, and {_NAMES[usual]} in the {often} other lines of the document",
            )


# ---- repeated lines

_NEAR, _FEW_WORDS, _MANY_WORDS = 3, 4, 8
_OTHER, _COMPARED = 0.34, 1000  # share of words in common; words that are compared


def repeated_lines(text: CheckedText) -> Iterator[Remark]:
    """Lines with the same translation as an earlier line, whose sources have little in common."""
    seen: dict[tuple[str, ...], int] = {}
    places = {number: place for place, number in enumerate(text.whole)}
    for number, pair in text.aligned:
        words = tuple(plain_words(pair.target))
        earlier = seen.get(words)
        if len(words) >= 2:
            seen[words] = number
        if earlier is None:
            continue
        near = places[number] - places[earlier] <= _NEAR and text.pairs[earlier].document == pair.document
        if len(words) < (_FEW_WORDS if near else _MANY_WORDS):
            continue
        ones, others = (plain_words(one.source)[:_COMPARED] for one in (text.pairs[earlier], pair))
        if difflib.SequenceMatcher(None, ones, others, autojunk=False).ratio() < _OTHER:
            where = text.pairs[earlier].target_place
            yield Remark(number, ERROR if near else WARNING, f"is the same as {where}, of another source")


# ---- misaligned lines


def misaligned_lines(text: CheckedText) -> Iterator[Remark]:
    """Lines that do not stand beside their sources: shifted, swapped, lost, joined (see `with_shifts`)."""
    return iter(text.remarks)


def with_shifts(text: CheckedText) -> CheckedText:
    """Mark the lines whose translations stand elsewhere, so that no other check looks at them."""
    sides = [[getattr(pair, side) for pair in text.pairs] for side in ("source", "target")]
    shifts = shifted_lines(Likeness(*sides), text.documents)
    inside = frozenset(number for shift in shifts for number in range(shift.first, shift.last + 1))
    return replace(
        text, remarks=(*text.remarks, *(_shift_remark(text, shift) for shift in shifts)), misaligned=inside
    )


def _shift_remark(text: CheckedText, shift: Shift) -> Remark:
    last = text.pairs[shift.last].target_place or text.pairs[shift.last].source_place
    if shift.by == 0:
        return Remark(shift.first, ERROR, f"its translation and that of {last} seem to be swapped")
    way = "after" if shift.by > 0 else "before"
    return Remark(
        shift.first, ERROR, f"up to {last}, translations seem to stand one line {way} their sources"
    )
