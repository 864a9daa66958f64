"""The core of a sentence: the words that are translated, without the text that must stay unchanged.

    - JOHN: He is <i>really</i> nice.    →   “- JOHN: ”  He is really nice.

A sentence without a word to translate has an empty core. Text in capitals throughout, such as sounds and
shouting, is translated in lower case.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cadec_cli.text.markup import Tag
from cadec_cli.text.protected.affixes import Affixes, affixes
from cadec_cli.text.protected.spans import Span, find_spans, has_words
from cadec_cli.text.protected.tags import take_out_tags

_DESCRIBED = re.compile(r"(.{0,60}?)(\([^()]{1,60}\)|\[[^][]{1,60}\])\s+(?=\S)")


@dataclass(frozen=True)
class Core:
    """A sentence taken apart: before + text (with its tags, and in its case) + after is the sentence.

    `spans` are those parts of the text that a translation has to have as they are.
    """

    before: str
    text: str
    after: str
    tags: tuple[Tag, ...] = ()
    spans: tuple[Span, ...] = ()
    capitals: bool = False

    @classmethod
    def whole(cls, text: str) -> Core:
        """Return a core of which nothing is protected."""
        return cls("", text, "")

    def case(self, translation: str) -> str:
        """Return a translation of the text in the case of the source."""
        return translation.upper() if self.capitals else translation


def parts_of(sentence: str, *, speakers: bool = False) -> list[str]:
    """Return the parts of a sentence that are translated separately; spaces join them to the sentence.

    The cells of a table row are parts. With `speakers` (in subtitles), so are descriptions in brackets before
    what is said: “[sighs] Hello.” has two parts.
    """
    if sentence.startswith("|") and sentence.count("|") > 2:
        return re.split(r"\s(?=\|)", sentence)
    parts = []
    while speakers and (found := _after_description(sentence)):
        parts.append(sentence[: found - 1])
        sentence = sentence[found:]
    return [*parts, sentence]


def _after_description(sentence: str) -> int:
    """Return where speech begins after a description in brackets; 0 if there is no description."""
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


def core_of(sentence: str, language: str = "", *, speakers: bool = False) -> Core:
    """Take a sentence of a language apart; `speakers` says that it comes from subtitles."""
    return _core(affixes(sentence, speakers=speakers), language)


def core_between(sentence: str, before: str = "", after: str = "", language: str = "") -> Core:
    """Take a sentence apart whose affixes are known; affixes that the sentence does not have are ignored."""
    end = len(sentence) - len(after)
    if len(before) > end or not (sentence.startswith(before) and sentence.endswith(after)):
        return _core(Affixes("", sentence, ""), language)
    return _core(Affixes(before, sentence[len(before) : end], after), language)


def _core(around: Affixes, language: str) -> Core:
    before, after = around.before, around.after
    plain, tags = take_out_tags(around.inner)
    spans = find_spans(plain, language)
    if not has_words(plain, spans):
        return Core(before + around.inner + after, "", "")
    # Models know lower case better. An abbreviation in capitals stays as it is.
    letters = sum(map(str.isalpha, plain))
    described = bool(before) and letters > 3
    capitals = plain.isupper() and (described or (letters > 8 and len(plain.split()) > 2))
    text = plain.capitalize() if capitals else plain
    # Some letters become two in another case; then the positions of tags would be wrong.
    if not capitals or len(text) != len(plain):
        return Core(before, plain, after, tags, tuple(spans))
    return Core(before, text, after, tags, tuple(find_spans(text, language)), capitals=True)
