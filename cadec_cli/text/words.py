"""The words of a text, as its language writes them.

Punctuation parts words. An elided form is a form of the whole word: French *t'* may stand for *te*. In
scripts without spaces, every letter counts as a word.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cadec_cli.text.sentences import base_language

# What is written before an apostrophe, and the words that it stands for.
_ELISIONS: dict[str, dict[str, str]] = {
    "fr": {
        **{"c": "ce", "d": "de", "j": "je", "jusqu": "jusque", "l": "le la", "lorsqu": "lorsque", "m": "me"},
        **{"n": "ne", "puisqu": "puisque", "qu": "que", "quelqu": "quelque", "quoiqu": "quoique"},
        **{"s": "se si", "t": "te"},
    },
    "it": {
        **{"all": "allo alla", "c": "ci", "d": "di", "dall": "dallo dalla", "dell": "dello della"},
        **{"gl": "gli", "l": "lo la", "m": "mi", "nell": "nello nella", "quell": "quello quella"},
        **{"quest": "questo questa", "s": "si", "sull": "sullo sulla", "t": "ti", "un": "una", "v": "vi"},
    },
}
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u02bc": "'", "\uff07": "'"})
# Scripts without spaces between words, of which every letter counts as a word; then letters and digits, with
# the marks that follow them, such as vowel signs: these are no letters to `re`.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"


def _ranges(codes: Iterable[int]) -> str:
    """Characters in ascending order as ranges for a regular expression, which compiles them much faster."""
    runs = itertools.groupby(enumerate(codes), key=lambda item: item[1] - item[0])
    ends = [(run[0][1], run[-1][1]) for run in (list(items) for _, items in runs)]
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ends)


_MARKS = _ranges(code for code in range(0x300, 0x2000) if unicodedata.category(chr(code)) in ("Mn", "Mc"))
_WORD = re.compile(rf"([{_UNSPACED}][{_MARKS}]*|(?:(?![{_UNSPACED}])[^\W_][{_MARKS}]*)+)('?)")
# Between two words: the second one begins a sentence or a quotation.
_BEGINS = re.compile(r"[.!?…:\"«»„“”\n–—]|(?:^|\s)-")
_LETTER = re.compile(rf"[{_UNSPACED}]")


@dataclass(frozen=True)
class Word:
    """A word as it is written, and in lower case the words that it may stand for, itself among them."""

    text: str
    readings: frozenset[str]
    begins: bool = False  # a sentence or a quotation begins with it

    @property
    def capital(self) -> bool:
        """Tell whether it has a capital that is not due to the beginning of a sentence."""
        return self.text[0].isupper() and not self.begins


def words_of(text: str, language: str) -> Iterator[Word]:
    """The words of a text, as the language writes them."""
    text = unicodedata.normalize("NFC", text).translate(_APOSTROPHES)
    elisions = _ELISIONS.get(base_language(language), {})
    end = 0
    for number, match in enumerate(_WORD.finditer(text)):
        word = match[1].lower()
        whole = elisions.get(word, "") if match[2] else ""
        readings = {f"{word}'", *whole.split()} if whole else {word}
        begins = number == 0 or _BEGINS.search(text[end : match.start()]) is not None
        yield Word(match[1], frozenset(readings), begins)
        end = match.end()


def is_unspaced(word: str) -> bool:
    """Tell whether a word is a letter of a script without spaces."""
    return _LETTER.match(word) is not None
