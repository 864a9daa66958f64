"""Whether two words seem to be forms of one word, by their letters alone: no dictionary is needed."""

from __future__ import annotations

import re

from cadec_cli.text.protected.spans import LETTER_MARKS

# A word: letters and digits with their marks. Apostrophes, hyphens and underscores separate words.
WORD = re.compile(rf"[^\W_](?:[^\W_]|[{LETTER_MARKS}])*")


def are_forms(one: str, other: str, most: int = 5) -> bool:
    """Tell whether two words differ in a few of their last letters only, since languages inflect.

    They share three letters or more. After three of them at most two may differ, after four or five three,
    and after more up to five, but never more than `most`. Case counts: pass words in lower case.
    """
    if one == other:
        return True
    if one[:3] != other[:3] or len(one) < 3 or len(other) < 3:
        return False
    common = common_beginning(one, other)
    rest = max(len(one), len(other)) - common
    return rest <= min(most, min(3, common - 1) if common < 6 else common - 2 if common < 8 else 5)


def common_beginning(one: str, other: str) -> int:
    """Count the letters that two words share at their beginning."""
    shared = 0
    for first, second in zip(one, other, strict=False):
        if first != second:
            break
        shared += 1
    return shared


# Languages in which a name has one form; those in which it may get an s; and endings of nouns, those that
# the forms of one word may have together.
_ONE_FORM = frozenset(("en", "fr", "es", "it", "pt", "ca", "gl", "vi", "id", "ms", "tl", "af"))
_GETS_S = frozenset(("de", "nl", "sv", "da", "no", "nb", "nn", "lb", "fy"))
_DECLENSIONS = {
    "ru": (
        frozenset(("", *"аеуыи", "ом", "ем", "ов", "ев", "ам", "ами", "ах", "ым")),
        frozenset((*"йяюеи", "ем", "ём", "ев", "ям", "ями", "ях")),
        frozenset((*"ьяюеи", "ью", "ем", "ём", "ей", "ям", "ями", "ях")),
        frozenset((*"аыиуе", "ой", "ою", "ей", "ею", "ам", "ами", "ах")),
        frozenset((*"яиюе", "ей", "ею", "ёй", "ям", "ями", "ях")),
    )
}
_VOWELS = frozenset("aeiouyàáâãäåæèéêëìíîïòóôõöøùúûüýœаеёиоуыэюяьйіїєαεηιουωάέήίόύώ")
_MOST_ADDED = 3  # letters of an ending
_STEM = 3  # letters, at least, that all forms have; fewer where the endings are known


def are_name_forms(one: str, other: str, language: str) -> bool:
    """Tell whether two spellings of a name are forms of it in a language, and not two names.

    Pass words in lower case, and the code of the language. Where names are inflected and nothing more is
    known, endings of three letters at most are added to a name, or take the place of its last vowels, two at
    most. A fleeting vowel may be lost.
    """
    if one == other:
        return True
    stem = 2 if language in _DECLENSIONS else _STEM
    if language in _ONE_FORM or one[:stem] != other[:stem]:
        return False
    short, long = sorted((one, other), key=len)
    if language in _GETS_S:
        return long in (f"{short}s", f"{short}es")
    common = common_beginning(one, other)
    if len(long) - common > _MOST_ADDED:
        return False
    ends = one[common:], other[common:]
    if any(_loses_vowel(*pair) for pair in (ends, ends[::-1])):
        return True
    if language in _DECLENSIONS:
        return any(
            {one[place:], other[place:]} <= endings
            for place in (common, common - 1)
            if place >= stem
            for endings in _DECLENSIONS[language]
        )
    return any(_VOWELS.issuperset(rest) and len(rest) <= 2 for rest in ends)


def _loses_vowel(one: str, other: str) -> bool:
    """Tell whether two ends of words are like those of Павел and Павла."""
    return (
        len(one) == 2 and one[0] in "еёоeoě" and other[:1] == one[1] and _VOWELS.issuperset(other[1:] or "-")
    )
