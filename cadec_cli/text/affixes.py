"""What stands around the words of a sentence and is kept as it is: marks of lists, speakers, sounds.

before + inner + after is the sentence, exactly.
"""

import re
from dataclasses import dataclass

_LEADING = re.compile(r"(?:#{1,6} |[-*•] |[A-Z]{2,}: )*")


@dataclass(frozen=True)
class Affixes:
    """A sentence and what is around it."""

    before: str
    inner: str
    after: str


def affixes(text: str, *, speakers: bool = True) -> Affixes:
    """Find what is not part of a sentence's words."""
    found = _LEADING.match(text)
    start = found.end() if found else 0
    if text[start : start + 1] == "[" and text.endswith("]"):
        return Affixes(text[: start + 1], text[start + 1 : -1], "]")
    return Affixes(text[:start], text[start:], "")
