"""Names that recur in a text, and what candidate translations make of them.

A name is a word that is written with a capital inside sentences, and never without one. It recurs if two
sentences have it. What renders a name is found by counting: a word with a capital that stands in the
translations of the name's sentences and nearly nowhere else, while no other name of the source explains it
better. Each sentence counts with all of its hypotheses, by their probability. Renderings that are forms of
one word count as one (`word_forms.are_name_forms`); of several, the one with the most probability is chosen.

Nothing but the texts is known. A name whose renderings are doubtful has none. The first sentences of a name
decide, so that a long document costs no more than a short one, and decisions stay.
"""

from __future__ import annotations

import difflib
import hashlib
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from cadec_cli.text.documents import Document
from cadec_cli.text.glossary.entries import Entry, Glossary
from cadec_cli.text.sentences import base_language
from cadec_cli.text.word_forms import are_name_forms
from cadec_cli.text.words import Word, words_of

DECISIVE = 16  # sentences of a name that decide on its rendering
_RECURS = 2
_SHORTEST, _LONGEST = 3, 40  # letters of a name
_CROWD = 20  # names in a sentence that is a list, from which nothing is learnt
_GROUPS = 24  # words that may render a name
# A rendering has this share of its probability in sentences of its name; renderings of a name have that
# share of the probability of these sentences; and a word is a name if it is so rarely in lower case.
_TIED, _COVERED, _LOWER = 0.6, 0.5, 0.1
_MOST_SENTENCES = 512  # of a sample
_PRESENT = 0.02  # a sentence has a rendering if that much of its probability has
_ALIKE = 0.6  # how similar two spellings of one name are
_UNLIKE = 4  # sentences, at least, of a name whose rendering is spelt in another way
_TAG = re.compile(r"<[^<>]*>")


def untagged_words(text: str, language: str) -> Iterator[Word]:
    """Yield the words of a sentence without its tags; elided ones are left out."""
    return (word for word in words_of(_TAG.sub(" ", text), language) if word.readings == {word.text.lower()})


@dataclass
class WordForms:
    """How words are written in a text: with a capital inside sentences, and without one."""

    inside: set[str] = field(default_factory=set)
    lower: set[str] = field(default_factory=set)

    def read(self, words: Iterable[Word]) -> None:
        """Add the words of a sentence."""
        for word in words:
            if word.text == word.text.lower():
                self.lower.add(word.text)
            elif word.capital:
                self.inside.add(word.text.lower())

    def is_name(self, word: str) -> bool:
        """Tell whether a word, in lower case, is a name."""
        return word in self.inside and word not in self.lower

    @property
    def names(self) -> set[str]:
        """All names, in lower case."""
        return self.inside - self.lower


@dataclass(frozen=True)
class FoundName:
    """A name and what it is called: a rendering in its forms, the most frequent first, and all others.

    `others` are words, in lower case, that were found in place of the rendering.
    """

    name: str
    forms: tuple[str, ...]
    others: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Hypothesis:
    weight: float
    words: frozenset[str]  # those with a capital, in lower case


@dataclass(frozen=True)
class _Sentence:
    """A sentence that was learnt: the words of its source that may be names, and its hypotheses."""

    source: frozenset[str]
    hypotheses: tuple[_Hypothesis, ...]
    sure: bool = False

    def share(self, words: frozenset[str]) -> float:
        """The probability of the hypotheses that have one of some words."""
        return sum(one.weight for one in self.hypotheses if not words.isdisjoint(one.words))


@dataclass(frozen=True)
class NameSample:
    """The names that recur in a text, in lower case, and the sentences that decide on their renderings.

    `speakers` tells that the text is that of subtitles.
    """

    names: frozenset[str] = frozenset()
    sentences: tuple[str, ...] = ()
    speakers: bool = False

    @classmethod
    def of_documents(cls, documents: Sequence[Document], language: str) -> NameSample:
        """Take a sample of the documents of one text; sentences whose translations are given don't count."""
        texts = [one.text for document in documents for one in document.sentences if not one.given]
        return cls.of(texts, language, speakers=any(document.speakers for document in documents))

    @property
    def key(self) -> str:
        """A checksum; empty if no name recurs."""
        if not self.names:
            return ""
        content = "\n".join((*sorted(self.names), "", *self.sentences))
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()

    @classmethod
    def of(cls, texts: Sequence[str], language: str, *, speakers: bool = False) -> NameSample:
        """Take a sample of a text, given as its sentences: the first ones of each name.

        Frequent names come before rare ones if there are very many.
        """
        memory = NameMemory(language)
        for text in texts:
            memory.read(text)
        of_name: dict[str, list[int]] = defaultdict(list)
        count: Counter[str] = Counter()
        for number, text in enumerate(texts):
            for name in memory.recurring(text):
                count[name] += 1
                if count[name] <= DECISIVE:
                    of_name[name].append(number)
        chosen: set[int] = set()
        names: set[str] = set()
        for name, _ in count.most_common():
            if len(chosen) >= _MOST_SENTENCES:
                break
            names.add(name)
            chosen.update(of_name[name])
        return cls(frozenset(names), tuple(texts[number] for number in sorted(chosen)), speakers)


class NameMemory:
    """What is known of the names of one text. The languages are codes.

    `names` are those that recur in it, in lower case; None if that is found out as the text is read.
    """

    def __init__(
        self, source_language: str = "", target_language: str = "", names: frozenset[str] | None = None
    ) -> None:
        self._source, self._target = base_language(source_language), base_language(target_language)
        self._names = names
        self._forms = WordForms()
        self._count: Counter[str] = Counter()  # sentences of every word that may be a name
        self._shown: dict[str, str] = {}
        self._of_name: dict[str, list[_Sentence]] = defaultdict(list)
        self._total: dict[str, float] = defaultdict(float)  # of every word of translations, with a capital
        self._small: dict[str, float] = defaultdict(float)  # the same in lower case
        self._inside: set[str] = set()
        self._written: dict[str, Counter[str]] = defaultdict(Counter)
        self._decided: dict[str, FoundName | None] = {}
        self._final: set[str] = set()

    # Sources

    def read(self, source: str) -> None:
        """Take note of the words of a sentence; call this for every sentence of the text, in order."""
        if source.isupper():  # nothing tells names from other words
            return
        words = list(untagged_words(source, self._source))
        self._forms.read(words)
        for key, shown in {word.text.lower(): word.text for word in words if _may_be_name(word)}.items():
            self._count[key] += 1
            self._shown.setdefault(key, shown)

    def recurring(self, source: str) -> list[str]:
        """Return the names in a sentence that recur, in lower case."""
        if source.isupper():
            return []
        return [key for key in self._keys(source) if self._recurs(key)]

    def _recurs(self, key: str) -> bool:
        if self._names is not None:
            return key in self._names
        return self._count[key] >= _RECURS and self._forms.is_name(key)

    def _is_name(self, key: str) -> bool:
        return key in self._names if self._names is not None else self._forms.is_name(key)

    # Translations

    def is_decisive(self, source: str) -> bool:
        """Tell whether what becomes of a sentence matters: it may have a name that is not decided yet."""
        return any(key not in self._final for key in self._keys(source))

    def _keys(self, source: str) -> dict[str, None]:
        """The words of a sentence that may be names, in lower case; none if there are too many."""
        words = untagged_words(source, self._source)
        keys = dict.fromkeys(word.text.lower() for word in words if _may_be_name(word))
        return keys if len(keys) <= _CROWD else {}

    def learn(self, source: str, texts: Sequence[tuple[str, float]], *, sure: bool = False) -> None:
        """Learn from the translations of a sentence that was read, each with its probability.

        A sentence whose names are all decided is ignored.

        `sure` says that a person wrote or chose the translation: its rendering of a name is the right one.
        """
        keys = self._keys(source)
        if not keys or not texts or not (sure or self.is_decisive(source)):
            return
        hypotheses = []
        for text, weight in texts:
            words = list(untagged_words(text, self._target))
            capital = frozenset(word.text.lower() for word in words if _is_capital(word))
            for word in {word.text: word for word in words}.values():
                key = word.text.lower()
                if _is_capital(word):
                    self._written[key][word.text] += 1
                    if word.capital:
                        self._inside.add(key)
                elif key not in capital:
                    self._small[key] += weight
            for key in capital:
                self._total[key] += weight
            hypotheses.append(_Hypothesis(weight, capital))
        sentence = _Sentence(frozenset(keys), tuple(hypotheses), sure)
        for key in sorted(keys):
            if key not in self._final or sure:
                self._of_name[key].append(sentence)
                self._decided.pop(key, None)
                self._final.discard(key)
        for key in sorted(keys):
            if key not in self._final and len(self._of_name[key]) >= DECISIVE and self._recurs(key):
                self._decided[key] = self._decide(key)
                self._final.add(key)

    # Decisions

    def found(self, name: str) -> FoundName | None:
        """Return what a name, in lower case, is called; None if that is doubtful."""
        if not self._recurs(name):
            return None
        if name not in self._decided:
            self._decided[name] = self._decide(name)
        return self._decided[name]

    def glossary(self, source: str) -> Glossary | None:
        """Return the names in a sentence whose renderings are known; None if there is none."""
        found = [one for name in self.recurring(source) if (one := self.found(name)) is not None]
        if not found:
            return None
        return Glossary((Entry(one.name, one.forms, name_in=self._target) for one in found), self._source)

    def settle(self) -> None:
        """Decide on all names for good, and forget what no decision needs."""
        self._decided = {name: self.found(name) for name in self._count if self._recurs(name)}
        self._final = set(self._decided)
        for known in (self._of_name, self._total, self._small, self._written, self._inside):
            known.clear()

    @property
    def all(self) -> list[FoundName]:
        """All names whose renderings are known, in the order of the text."""
        found = (self.found(name) for name in self._count)
        return [one for one in found if one is not None]

    def _decide(self, name: str) -> FoundName | None:
        here = self._of_name.get(name, [])
        if len(here) < _RECURS:
            return None
        shares: dict[str, float] = defaultdict(float)
        for sentence in here:
            for one in sentence.hypotheses:
                for word in one.words:
                    shares[word] += one.weight
        groups = self._groups(shares)[:_GROUPS]
        groups = [group for group in groups if self._is_tied(name, group, shares, here)]
        renderings = _alternatives(groups, here)
        best = self._taught(name, here, renderings)
        everything: frozenset[str] = frozenset().union(*renderings)
        if best is None:
            if sum(one.share(everything) for one in here) < _COVERED * len(here):
                return None
            best = renderings[0]
            if sum(one.share(best) > _PRESENT for one in here) < _RECURS:
                return None
        forms = sorted(best, key=lambda form: (-shares[form], form))
        return FoundName(
            self._shown[name], tuple(self._shown_form(form) for form in forms), everything - best
        )

    def _groups(self, shares: Mapping[str, float]) -> list[frozenset[str]]:
        """Return the words that may render a name, forms of one word together, the most probable first."""
        groups: list[list[str]] = []
        likely = [
            word
            for word in sorted(shares, key=lambda word: (-shares[word], word))
            if len(word) > 1 and self._small.get(word, 0.0) * (1 - _LOWER) <= _LOWER * self._total[word]
        ]
        for word in likely:
            for group in groups:
                if are_name_forms(group[0], word, self._target):
                    group.append(word)
                    break
            else:
                groups.append([word])
        found = [frozenset(group) for group in groups if not self._inside.isdisjoint(group)]
        return sorted(found, key=lambda group: -sum(shares[word] for word in group))

    def _is_tied(
        self, name: str, group: frozenset[str], shares: Mapping[str, float], here: Sequence[_Sentence]
    ) -> bool:
        """Tell whether words stand in sentences of a name, and no other name explains them as well."""
        own = sum(shares[word] for word in group)
        total = sum(self._total[word] for word in group)
        if own < _TIED * total:
            return False
        beside: dict[str, float] = defaultdict(float)
        for sentence in here:
            if share := sentence.share(group):
                for other in sentence.source:
                    beside[other] += share
        others = [other for other in beside if other != name and self._is_name(other)]
        like = _likeness(name, group)
        if any(_likeness(other, group) > max(_ALIKE, like) for other in others):
            return False
        if like >= _ALIKE:
            return True
        fit = beside[name] / (total + len(here))
        return len(here) >= _UNLIKE and not any(
            beside[other] / (total + len(self._of_name.get(other, ()))) >= fit for other in others
        )

    def _taught(
        self, name: str, here: Sequence[_Sentence], renderings: Sequence[frozenset[str]]
    ) -> frozenset[str] | None:
        """Return the rendering in the last sentence that a person has translated; None if there is none.

        One that is new is spelt much like the name, or like its other renderings.
        """
        for sentence in reversed(here):
            if not sentence.sure:
                continue
            words = sentence.hypotheses[0].words
            for one in renderings:
                if not one.isdisjoint(words):
                    return one
            known = {name}.union(*renderings)
            alike = {word: _likeness(word, known) for word in sorted(words)}
            likely = max(alike, key=lambda word: alike[word], default="")
            if likely and alike[likely] >= _ALIKE:
                return frozenset({likely})
        return None

    def _shown_form(self, form: str) -> str:
        written = self._written[form]
        return max(sorted(written), key=lambda text: written[text])


# Letters of other scripts, for comparing spellings.
_LATIN = dict(
    zip(
        "абвгдеёжзийклмнопрстуфхцчшщъыьэюяіїєґ" + "αβγδεζηθικλμνξοπρσςτυφχψω",
        (
            *("a", "b", "v", "g", "d", "e", "e", "j", "z", "i", "y", "k", "l", "m", "n", "o", "p", "r", "s"),
            *("t", "u", "f", "h", "c", "ch", "sh", "sh", "", "y", "", "e", "u", "ia", "i", "i", "e", "g"),
            *("a", "b", "g", "d", "e", "z", "i", "th", "i", "k", "l", "m", "n", "x", "o", "p", "r", "s", "s"),
            *("t", "u", "f", "h", "ps", "o"),
        ),
        strict=True,
    )
)


@lru_cache(4096)
def _in_latin(word: str) -> str:
    letters = unicodedata.normalize("NFD", word)
    return "".join(_LATIN.get(letter, letter) for letter in letters if not unicodedata.combining(letter))


def _likeness(name: str, group: Iterable[str]) -> float:
    """Tell how similar a name is to the most similar one of some words, from 0 to 1."""
    return max(alikeness(name, word) for word in group)


@lru_cache(65536)
def alikeness(one: str, other: str) -> float:
    """Tell how similar two words are, by their letters in Latin script, from 0 to 1."""
    return difflib.SequenceMatcher(None, _in_latin(one), _in_latin(other), autojunk=False).ratio()


def _may_be_name(word: Word) -> bool:
    return len(word.text) >= _SHORTEST and _is_capital(word)


def _is_capital(word: Word) -> bool:
    return word.text[0].isupper() and len(word.text) <= _LONGEST


def _alternatives(groups: Sequence[frozenset[str]], here: Sequence[_Sentence]) -> list[frozenset[str]]:
    """Leave out groups that share hypotheses with a better one: parts of one rendering."""
    kept: list[frozenset[str]] = []
    for group in groups:
        together = sum(
            one.weight
            for sentence in here
            for one in sentence.hypotheses
            if not group.isdisjoint(one.words) and any(not group_.isdisjoint(one.words) for group_ in kept)
        )
        if together <= _LOWER * sum(sentence.share(group) for sentence in here):
            kept.append(group)
    return kept


def misspelt(text: str, found: FoundName, language: str, known: frozenset[str] = frozenset()) -> list[str]:
    """Return words of a translation that seem to stand for a name's rendering, the likeliest first.

    These are words with a capital, other renderings of the name, and words that are spelt much like it. Words
    in `known`, in lower case, render other names.
    """
    own = found.forms[0].lower()
    likeness: dict[str, float] = {}
    for word in untagged_words(text, language):
        key = word.text.lower()
        if not _is_capital(word) or key in known:
            continue
        alike = max(alikeness(key, own), alikeness(key, found.name.lower()))
        if key in found.others:
            likeness[word.text] = 1 + alike
        elif alike >= _ALIKE:
            likeness[word.text] = alike
    return sorted(likeness, key=lambda word: -likeness[word])
