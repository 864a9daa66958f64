"""Whether a translation can be one at all: what is wrong with it, known ahead of any context.

Loops, signs that the source has not, bytes that are no text, a length that can't be, spans that are lost. As
a term of the objective (`penalise_defects`) it keeps a degenerate hypothesis from winning against a sound
one; where all are degenerate, the one with the fewest defects wins, and whoever reads it should be told.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from cadec_cli.decoding.confidence import FLAG_BELOW, Judge, nothing_wrong
from cadec_cli.engines.protocols import AnyTerm
from cadec_cli.method.hypotheses import NBest
from cadec_cli.method.objectives import DEFECTS
from cadec_cli.method.options import TranslationOptions
from cadec_cli.text.protected.core import core_between
from cadec_cli.text.protected.spans import lost_spans

# A run of up to so many words, at least so often in a row, is a loop.
_LOOP_WORDS, _LOOP_TIMES = 6, 4
_STUTTER = re.compile(r"(\S)\1{7,}|(\S{2,6}?)\2{4,}")
_NO_TEXT = re.compile(r"[\ufffd\ue000-\uf8ff\x00-\x08\x0e-\x1f\x7f-\x9f]|⁇|<unk>|<0x[0-9A-F]{2}>|</?s>")
# Signs that no sentence has of itself, and those of currencies, which stand beside a number.
_SIGNS = frozenset("<>[]{}|\\#@=_^`~*§♪♫♬")
_COMMON = frozenset("№°±×÷′″+-$€£₽₴¥₹")
_LONELY_MONEY = re.compile(r"(?<!\d)(?<!\d\s)[$€£₽₴¥₹](?!\s?\d)")
# Characters of a script that says more with each.
_DENSE = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_DENSITY = 3
_LONG_ENOUGH = 24  # characters from which a length tells something
_SHORTEST, _LONGEST = 0.2, 4.0


@lru_cache(maxsize=8192)  # the same lists are looked at when they are made and when they are scored
def defects(
    source: str, text: str, language: str = "", *, before: str = "", after: str = ""
) -> tuple[str, ...]:
    """Tell what is wrong with a translation of a source in a language, in words for a person.

    `before` and `after` are those parts of the source, and of the text, that were not translated.
    """
    core = core_between(source, before, after, language)
    if not core.text:
        return ()
    found = [f"{span} is missing" for span in lost_spans(list(core.spans), text)]
    if not any(map(str.isalpha, text)):
        return (*found, "has no words")
    if _repeats(text) and not _repeats(core.text):
        found.append("repeats itself")
    if _NO_TEXT.search(text) and not _NO_TEXT.search(source):
        found.append("has characters that are no text")
    foreign = sorted({sign for sign in text if sign not in source and _is_sign(sign)})
    foreign += [sign for sign in _LONELY_MONEY.findall(text) if sign not in source]
    if foreign:
        found.append(f"has {' '.join(foreign)}, which the source has not")
    if _open(text) and not _open(source):
        found.append("has a bracket or a quotation mark too many")
    ratio = _size(text) / max(1, _size(core.text))
    if ratio < _SHORTEST and _size(core.text) >= _LONG_ENOUGH:
        found.append("much shorter than the source")
    if ratio > _LONGEST and _size(text) >= _LONG_ENOUGH * 2:
        found.append("much longer than the source")
    return tuple(found)


def _is_sign(character: str) -> bool:
    if character in _SIGNS:
        return True
    symbol = not character.isalnum() and unicodedata.category(character)[0] == "S"
    return symbol and character not in _COMMON and not _NO_TEXT.match(character)


def _open(text: str) -> bool:
    """Tell whether brackets or quotation marks are opened and not closed, or the other way round."""
    pairs = (text.count(opening) != text.count(closing) for opening, closing in ("()", "[]", "«»", "{}"))
    return any(pairs) or text.count('"') % 2 == 1


def _repeats(text: str) -> bool:
    if _STUTTER.search(text):
        return True
    words = re.findall(r"\w+", text.lower())
    for size in range(1, _LOOP_WORDS + 1):
        alike = 0  # words in a row that equal the one `size` before
        for earlier, word in zip(words, words[size:], strict=False):
            alike = alike + 1 if word == earlier else 0
            if alike == size * (_LOOP_TIMES - 1):
                return True
    return False


def _size(text: str) -> int:
    return len(text) + (_DENSITY - 1) * len(_DENSE.findall(text))


@dataclass(frozen=True)
class DefectTerm:
    """How many defects each hypothesis has; the language is the source's."""

    language: str = ""
    names: tuple[str, ...] = (DEFECTS,)

    def terms(self, lists: Sequence[NBest]) -> list[dict[str, Any]]:
        """Counted from source and text alone."""
        return [
            {
                DEFECTS: [
                    float(len(defects(nbest.source, hypothesis.text, self.language)))
                    for hypothesis in nbest.hypotheses
                ]
            }
            for nbest in lists
        ]


def with_defect_term(
    extra_terms: tuple[AnyTerm, ...], options: TranslationOptions, language: str
) -> tuple[AnyTerm, ...]:
    """What is known ahead, and soundness too, if things are to be protected."""
    return (*extra_terms, DefectTerm(language)) if options.protect else extra_terms


def least_defective(nbest: NBest, language: str = "") -> int:
    """The first of the hypotheses with the fewest defects."""
    counts = [len(defects(nbest.source, one.text, language)) for one in nbest.hypotheses]
    return counts.index(min(counts))


def judge_for(options: TranslationOptions, language: str, below: float = FLAG_BELOW) -> Judge:
    """Who says which translations are worth a look: for want of soundness too, where options ask for it."""
    return Judge(below, partial(defects, language=language) if options.protect else nothing_wrong)
