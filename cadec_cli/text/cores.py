"""The core of a sentence: what of it is translated, and what stands around it and comes back as it was.

    - JOHN: He is <i>really</i> nice.    →   “- JOHN: ”  He is really nice.

A sentence without a word to translate has an empty core. Sounds in capitals are read in small letters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from cadec_cli.text.affixes import affixes
from cadec_cli.text.spans import Span, find_spans, has_words
from cadec_cli.text.tags import Tag, without_tags


@dataclass(frozen=True)
class Core:
    """A sentence taken apart: before + text (with its tags) + after is the sentence."""

    before: str
    text: str
    after: str
    tags: tuple[Tag, ...] = ()
    spans: tuple[Span, ...] = ()
    capitals: bool = False

    def case(self, translation: str) -> str:
        """A translation of the text in the case of the source."""
        return translation.upper() if self.capitals else translation


@lru_cache(maxsize=8192)
def core_of(sentence: str, language: str = "", speakers: bool = True) -> Core:
    """Take a sentence of a language apart."""
    around = affixes(sentence, speakers=speakers)
    plain, tags = without_tags(around.inner)
    spans = find_spans(plain, language)
    if not has_words(plain, spans):
        return Core(sentence, "", "")
    before, after = around.before, around.after
    capitals = bool(before) and plain.isupper() and sum(map(str.isalpha, plain)) > 3
    text = plain.capitalize() if capitals else plain
    return Core(before, text, after, tags, () if capitals else tuple(spans), capitals)
