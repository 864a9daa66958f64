"""Consistency of names and terms in a translation, without a reference.

Of every source word that recurs in a document it is asked each time: is it rendered as it was the last time?
Nothing but the two texts is known, so a rendering is found by counting: it is a stem of the target language
whose sentences nearly all have the word in their source, and no other word of the source explains it better.
What is doubtful is not counted: a sentence without a known rendering, or with several. The figure is
therefore of the clear cases, and says nothing of the others.

Forms of a word that differ in their last letters only have one stem, since languages inflect. Names are words
that are written with a capital inside sentences, and never without one; other words are terms.
"""

from __future__ import annotations

import difflib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cadec_cli.text.name_memory import WordForms, untagged_words
from cadec_cli.text.word_forms import are_forms

# A rendering has so many sentences at least, and this share of them has the word in the source. The
# renderings of a word are found in this share of the word's sentences.
_FEWEST, _TIED, _COVERED = 2, 0.8, 0.5
# Letters of a name or a term. With so many documents, a term occurs in this share of them at most.
_NAME, _TERM, _DOCUMENTS, _SPREAD = 3, 5, 4, 0.25
_ALIKE = 0.7  # a name that is spelt so similarly to a rendering is another rendering

Documents = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Repetition:
    """A word that occurs again in a document, with its rendering here and the last time."""

    word: str
    is_name: bool
    document: int  # from 0
    sentence: int  # of the whole text, from 0
    rendering: str
    before: str

    @property
    def is_same(self) -> bool:
        """Tell whether the word is rendered as it was the last time."""
        return self.rendering == self.before


def repetitions(
    sources: Documents, translations: Documents, source_language: str = "", target_language: str = ""
) -> list[Repetition]:
    """The repeated words whose renderings are known, in the order of the text."""
    found = []
    last: dict[tuple[int, str], Occurrence] = {}
    for one in occurrences(sources, translations, source_language, target_language):
        before = last.get((one.document, one.word))
        last[one.document, one.word] = one
        if before is not None:
            found.append(
                Repetition(one.word, one.is_name, one.document, one.sentence, one.rendering, before.rendering)
            )
    return found


@dataclass(frozen=True)
class Occurrence:
    """A name or term in a sentence, with its rendering, which is shown in its most frequent form."""

    word: str
    is_name: bool
    document: int  # from 0
    sentence: int  # of the whole text, from 0
    rendering: str


def occurrences(
    sources: Documents, translations: Documents, source_language: str = "", target_language: str = ""
) -> Iterator[Occurrence]:
    """The names and terms whose renderings are known, wherever they occur, in the order of the text."""
    documents = [number for number, document in enumerate(sources) for _ in document]
    source = _Side.of((text for document in sources for text in document), source_language)
    target = _Side.of((text for document in translations for text in document), target_language)
    renderings = _renderings(source, target, documents)
    for number, document in enumerate(documents):
        for word in sorted(source.sentences[number] & renderings.keys()):
            clear = {renderings[word][stem] for stem in target.sentences[number] & renderings[word].keys()}
            if len(clear) == 1:
                (rendering,) = clear
                name = source.shown[word], word in source.names
                yield Occurrence(*name, document, number, target.shown[rendering])


@dataclass(frozen=True)
class _Side:
    """One side of a text: the stems of every sentence, and those that are names."""

    sentences: tuple[frozenset[str], ...]
    names: frozenset[str]
    shown: Mapping[str, str]  # the most frequent form of every stem

    @classmethod
    def of(cls, texts: Iterable[str], language: str) -> _Side:
        words = [list(untagged_words(text, language)) for text in texts]
        forms = Counter(word.text for sentence in words for word in sentence)
        written = WordForms()
        for sentence in words:
            written.read(sentence)
        names = written.names
        stem_of = {**_stems({form.lower() for form in forms} - names), **_stems(names)}
        shown: dict[str, str] = {}
        for form in sorted(forms, key=lambda form: (-forms[form], form != form.lower(), form)):
            shown.setdefault(stem_of[form.lower()], form)
        return cls(
            tuple(frozenset(stem_of[word.text.lower()] for word in sentence) for sentence in words),
            frozenset(stem_of[name] for name in names),
            shown,
        )

    @cached_property
    def places(self) -> dict[str, frozenset[int]]:
        """The sentences that every stem is in."""
        found: dict[str, set[int]] = defaultdict(set)
        for number, stems in enumerate(self.sentences):
            for stem in stems:
                found[stem].add(number)
        return {stem: frozenset(places) for stem, places in found.items()}


def _stems(words: Iterable[str]) -> dict[str, str]:
    """The stem of every word: the first in the alphabet of all words that are forms of each other."""
    stem_of: dict[str, str] = {}
    by_beginning: dict[str, list[str]] = defaultdict(list)
    for word in sorted(words):
        group = by_beginning[word[:3]]
        stem_of[word] = next((stem_of[other] for other in reversed(group) if are_forms(word, other)), word)
        group.append(word)
    return stem_of


def _renderings(source: _Side, target: _Side, documents: Sequence[int]) -> dict[str, dict[str, str]]:
    """The stems that render each name and term; those with the same value count as the same rendering.

    No two stems of one word are ever in the same sentence. Stems of a term that begin alike are the same:
    they may be forms with other vowels, or parts of speech. Names are taken as they are spelt.
    """
    explained: dict[str, list[str]] = defaultdict(list)
    for stem, places in target.places.items():
        if len(places) >= _FEWEST and (word := _explanation(places, source)) is not None:
            explained[word].append(stem)
    taken = {stem for stems in explained.values() for stem in stems}
    count = len(set(documents))
    renderings = {}
    for word, stems in explained.items():
        is_name = word in source.names
        spread = len({documents[place] for place in source.places[word]}) / count
        if len(word) < (_NAME if is_name else _TERM) or (
            not is_name and count >= _DOCUMENTS and spread > _SPREAD
        ):
            continue
        kept = _alternatives([stem for stem in stems if not is_name or stem in target.names], target)
        if is_name and kept:
            kept += _misspellings(word, kept, taken, source, target)
        here = source.places[word]
        if len(here & frozenset().union(*(target.places[stem] for stem in kept))) >= _COVERED * len(here):
            beginnings: dict[str, str] = {}
            for stem in kept:
                beginnings.setdefault(stem[:2], stem)
            renderings[word] = {stem: stem if is_name else beginnings[stem[:2]] for stem in kept}
    return renderings


def _explanation(places: frozenset[int], source: _Side) -> str | None:
    """The source word that fits best to the sentences of a target stem; None if there is none, or several."""
    together = Counter(word for place in places for word in source.sentences[place])
    fits = {
        word: 2 * both / (len(places) + len(source.places[word]))
        for word, both in together.items()
        if both >= _FEWEST and both >= _TIED * len(places)
    }
    best = max(fits.values(), default=0.0)
    words = [word for word, fit in fits.items() if fit == best]
    return words[0] if len(words) == 1 else None


def _alternatives(stems: Iterable[str], target: _Side) -> list[str]:
    """The most frequent stems, without any that shares a sentence with another: parts of one rendering."""
    kept: list[str] = []
    for stem in sorted(stems, key=lambda stem: (-len(target.places[stem]), stem)):
        if not any(target.places[stem] & target.places[other] for other in kept):
            kept.append(stem)
    return kept


def _misspellings(word: str, kept: Sequence[str], taken: set[str], source: _Side, target: _Side) -> list[str]:
    """Names that are spelt much like a rendering, where the word has none of its renderings."""
    found = {
        stem
        for place in source.places[word]
        if not target.sentences[place] & set(kept)
        for stem in target.sentences[place] & target.names
        if stem not in taken and difflib.SequenceMatcher(None, stem, kept[0]).ratio() >= _ALIKE
    }
    return sorted(found)
