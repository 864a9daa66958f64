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
