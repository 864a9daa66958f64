"""Finds the few earlier sentences that share rare source words with the current one, names first.

What is indexed are words of the source, cut to their beginnings, so that most forms of a word are one. A
word is a name if it has been seen with a capital inside a sentence, and never without one; other words count
if they are long and still rare. Every word keeps the last few sentences that have it, and only so many words
are kept, so an index stays small however long the document. It depends on nothing but the sentences and
their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import Any

from cadec_cli.method.hypotheses import Ids

# Letters of a word that tell it from others; the fewest of a name, and of other words that are looked for.
_LETTERS, _NAME, _LONG = 5, 3, 5
# The last sentences that a word keeps; and how many names, and how many other words, a document remembers.
OCCURRENCES, WORDS = 4, 1000
# A sentence of more characters is too long to be worth its place in the context.
_LONGEST = 500


@dataclass(frozen=True)
class Keyword:
    """The beginning of a word in lower case, and how the word is written in a sentence.

    `capital` is True if it has one inside a sentence, False if it has none, None if its place explains it.
    """

    key: str
    capital: bool | None
    long: bool


@lru_cache(maxsize=1 << 13)
def keywords(text: str) -> tuple[Keyword, ...]:
    """The words of a source sentence that may tell it from others, each once, in their order."""
    from cadec_cli.text.words import is_unspaced, words_of  # --help should not wait for it

    found: dict[str, Keyword] = {}
    before = ""  # the letter before, in scripts without spaces
    for word in words_of(text, ""):
        if is_unspaced(word.text):
            if before:  # two letters are about a word
                found.setdefault(before + word.text, Keyword(before + word.text, False, True))
            before = word.text
            continue
        before = ""
        if len(word.text) < _NAME or not word.text[0].isalpha():
            continue
        lower = word.text.lower()
        key = lower[: _LETTERS if len(lower) > _LETTERS else _LETTERS - 1]  # Марии and Марию are one word
        capital: bool | None = word.text[0].isupper()
        if capital and (word.begins or word.text.isupper()):
            capital = None
        known = found.get(key)
        if known is not None and (known.capital is False or capital is None):
            continue
        found[key] = Keyword(key, capital, len(word.text) >= _LONG)
    return tuple(found.values())


@dataclass(frozen=True, eq=False)
class EarlierSentence:
    """A sentence that can be found again: its number, its source, and its translation.

    The translation is a text, or in the D-LM's ids.
    """

    number: int
    source: str
    ids: Ids = ()
    target: str = ""


@dataclass(frozen=True)
class Occurrences:
    """How often a word was seen, how it was written, and the last sentences that have it, oldest first."""

    count: int = 0
    with_capital: bool = False
    without: bool = False
    last: tuple[EarlierSentence, ...] = ()

    @property
    def is_name(self) -> bool:
        """Tell whether the word is a name, as far as it was seen."""
        return self.with_capital and not self.without

    def add(self, word: Keyword, sentence: EarlierSentence) -> Occurrences:
        """The same with one more sentence."""
        return Occurrences(
            self.count + 1,
            self.with_capital or word.capital is True,
            self.without or word.capital is False,
            (*self.last[1 - OCCURRENCES :], sentence),
        )


@dataclass(frozen=True, eq=False)
class EarlierSentences:
    """An index of sentences by their rare source words. It never changes: adding makes another one.

    `names` and `words` have the least recently seen first; beyond `most` of either, and an eighth more, these
    are forgotten.
    """

    count: int = 0
    names: Mapping[str, Occurrences] = field(default_factory=dict)
    words: Mapping[str, Occurrences] = field(default_factory=dict)
    most: int = WORDS

    def __bool__(self) -> bool:
        return self.count > 0

    def add(self, sentences: Iterable[tuple[str, Ids, str]]) -> EarlierSentences:
        """The index with more sentences: the source of each, and its translation in ids or as a text.

        A sentence whose source is not known, or very long, can't be found.
        """
        names, words, count = dict(self.names), dict(self.words), self.count
        for source, ids, target in sentences:
            if not source or len(source) > _LONGEST or len(target) > _LONGEST:
                continue
            sentence = EarlierSentence(count, source, ids, target)
            count += 1
            for word in keywords(source):
                seen = names.pop(word.key, None) or words.pop(word.key, None) or Occurrences()
                seen = seen.add(word, sentence)
                (names if seen.is_name else words)[word.key] = seen
            for known in (names, words):
                if len(known) > self.most + self.most // 8:  # many at once, which takes less time
                    for key in list(islice(known, len(known) - self.most)):
                        del known[key]
        return self if count == self.count else EarlierSentences(count, names, words, self.most)

    def find(self, key: str) -> Occurrences | None:
        """What is known of a word."""
        return self.names.get(key) or self.words.get(key)

    @property
    def sentences(self) -> list[EarlierSentence]:
        """All sentences that can be found, oldest first."""
        found = {one for known in (self.names, self.words) for seen in known.values() for one in seen.last}
        return sorted(found, key=lambda one: one.number)

    def to_json(self, numbers: dict[EarlierSentence, int]) -> dict[str, Any]:
        """The index as plain data; sentences are numbers, which `numbers` gives to new ones."""
        known = {
            name: [
                [key, seen.count, seen.with_capital, seen.without]
                + [numbers.setdefault(one, len(numbers)) for one in seen.last]
                for key, seen in words.items()
            ]
            for name, words in (("names", self.names), ("words", self.words))
        }
        return {"count": self.count, **known}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], sentences: Mapping[int, EarlierSentence]) -> EarlierSentences:
        """Restore an index; `sentences` are those that it has, by their numbers in the data."""
        names, words = (
            {
                str(key): Occurrences(int(count), bool(yes), bool(no), tuple(sentences[one] for one in last))
                for key, count, yes, no, *last in data[name]
            }
            for name in ("names", "words")
        )
        return cls(int(data["count"]), names, words)


NOTHING = EarlierSentences()


@dataclass(frozen=True, eq=False)
class TranslationMemory:
    """Sentences that are known before the document begins, and what encodes their translations."""

    index: EarlierSentences
    encode: Callable[[str], Ids]

    def ids(self, sentence: EarlierSentence) -> Ids:
        """A translation in the D-LM's ids."""
        return self.encode(sentence.target)


def related(
    source: str, count: int, indexes: Sequence[EarlierSentences], read: Iterable[str] = ()
) -> list[tuple[int, EarlierSentence]]:
    """The sentences that say most about a source: at most `count`, each with the number of its index.

    They come in the order of the indexes, and then of their documents. Each has a rare word of the source
    that neither the ones before have, nor one of the sources `read`, which are read anyway. The one with the
    most names is taken first, then the one with the rarest words, then the newest.
    """
    covered = {word.key for text in read for word in keywords(text)}
    total = sum(index.count for index in indexes)
    names: set[str] = set()
    weights: dict[str, float] = {}
    having: dict[tuple[int, EarlierSentence], list[str]] = {}
    for word in keywords(source):
        seen = [index.find(word.key) for index in indexes]
        times = sum(one.count for one in seen if one is not None)
        if word.key in covered or not times:
            continue
        lower = word.capital is False or any(one.without for one in seen if one is not None)
        capital = word.capital is True or any(one.with_capital for one in seen if one is not None)
        if capital and not lower:
            names.add(word.key)
        elif not word.long or times > 2 + math.isqrt(total) // 4:
            continue
        weights[word.key] = 1 / times
        for number, known in enumerate(seen):
            for sentence in known.last if known is not None else ():
                having.setdefault((number, sentence), []).append(word.key)
    found: list[tuple[int, EarlierSentence]] = []
    while weights and len(found) < count:
        best = max(
            having,
            key=lambda one: (
                len([key for key in having[one] if key in names and key in weights]),
                sum(weights.get(key, 0.0) for key in having[one]),
                (one[0], one[1].number),
            ),
        )
        found.append(best)
        for key in having.pop(best):
            weights.pop(key, None)
        having = {one: keys for one, keys in having.items() if any(key in weights for key in keys)}
    return sorted(found, key=lambda one: (one[0], one[1].number))
