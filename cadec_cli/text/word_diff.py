"""Which words of two versions of a sentence differ, for terminals and for HTML reports."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Stretch:
    """A stretch of a sentence; all of its words are in the other version too, or none of them."""

    text: str
    changed: bool


def changed_words(before: str, after: str) -> tuple[list[Stretch], list[Stretch]]:
    """Split both versions into stretches; joined, these are the sentences.

    The space after a stretch belongs to it.
    """
    old, new = before.split(" "), after.split(" ")
    codes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    left = [_stretch(old, first, last, tag != "equal") for tag, first, last, _, _ in codes if last > first]
    right = [_stretch(new, first, last, tag != "equal") for tag, _, _, first, last in codes if last > first]
    return left, right


def _stretch(words: Sequence[str], first: int, last: int, changed: bool) -> Stretch:
    return Stretch(" ".join(words[first:last]) + " " * (last < len(words)), changed)
