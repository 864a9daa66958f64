"""The core of a sentence: what of it is translated, and what stands around it and comes back as it was.

    - JOHN: He is <i>really</i> nice.    →   “- JOHN: ”  He is really nice.

A sentence without a word to translate has an empty core. Sounds and shouting, in capitals throughout, are
read in small letters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from cadec_cli.text.protected.affixes import Affixes, affixes
from cadec_cli.text.protected.spans import Span, find_spans, has_words
from cadec_cli.text.protected.tags import Tag, without_tags

_DESCRIBED = re.compile(r"(.{0,60}?)(\([^()]{1,60}\)|\[[^][]{1,60}\])\s+(?=\S)")


@dataclass(frozen=True)
class Core:
    """A sentence taken apart: before + text (with its tags, and in its case) + after is the sentence."""

    before: str
    text: str
    after: str
    tags: tuple[Tag, ...] = ()
    spans: tuple[Span, ...] = ()
    capitals: bool = False

    def case(self, translation: str) -> str:
        """A translation of the text in the case of the source."""
        return translation.upper() if self.capitals else translation


def parts_of(sentence: str, *, speakers: bool = False) -> list[str]:
    """A sentence of subtitles, and before it what is said of it in brackets: “[sighs] Hello.” is two parts.

    The cells of a table's row are parts of it, in any text. Put together with spaces they are the sentence.
    """
    if sentence.startswith("|") and sentence.count("|") > 2:
        return re.split(r"\s(?=\|)", sentence)
    parts = []
    while speakers and (found := _after_description(sentence)):
        parts.append(sentence[: found - 1])
        sentence = sentence[found:]
    return [*parts, sentence]


def _after_description(sentence: str) -> int:
    """Where what is said begins after a description in brackets; 0 where there is none."""
    found = _DESCRIBED.match(sentence)
    if (
        found
        and affixes(found[1] + "x", speakers=True).inner == "x"
        and sum(map(str.isalpha, found[2])) > 2
        and sentence[found.end() - 1] == " "
        and not sentence[found.end() - 2].isspace()
    ):
        return found.end()
    return 0


@lru_cache(maxsize=8192)
def core_of(sentence: str, language: str = "", *, speakers: bool = False) -> Core:
    """Take a sentence of a language apart; `speakers` says that it is one of subtitles."""
    return _core(affixes(sentence, speakers=speakers), language)


@lru_cache(maxsize=8192)
def core_between(sentence: str, before: str = "", after: str = "", language: str = "") -> Core:
    """Take a sentence apart of which it is known what stands around it; without that, nothing does."""
    end = len(sentence) - len(after)
    if len(before) > end or not (sentence.startswith(before) and sentence.endswith(after)):
        return _core(Affixes("", sentence, ""), language)
    return _core(Affixes(before, sentence[len(before) : end], after), language)


def _core(around: Affixes, language: str) -> Core:
    before, after = around.before, around.after
    plain, tags = without_tags(around.inner)
    spans = find_spans(plain, language)
    if not has_words(plain, spans):
        return Core(before + around.inner + after, "", "")
    # Sounds and shouting are read in small letters, which models know better; an abbreviation is neither.
    letters = sum(map(str.isalpha, plain))
    described = bool(before) and letters > 3
    capitals = plain.isupper() and (described or (letters > 8 and len(plain.split()) > 2))
    text = plain.capitalize() if capitals else plain
    if len(text) != len(plain):  # some letters are two in another case: tags would lose their places
        capitals, text = False, plain
    return Core(before, text, after, tags, () if capitals else tuple(spans), capitals)
