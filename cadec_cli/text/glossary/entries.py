"""Entries of a glossary, where they occur in a source text, and whether a translation respects them.

In the source:
- An entry is a sequence of words with what is between them. Where several entries overlap, the longest wins.
- A word in lower case matches in any case; one with capitals as it is written, or in capitals throughout.
- In English a word may have an ending (s, es, 's). In other languages it may be another form of the word by
  the rule of `word_forms.are_forms`: it may lose two letters at its end, and get three others. An exact match
  comes first.
- Scripts without spaces, and symbols, are found wherever they are.

In the translation an entry is respected if one of its targets is there, once at least. A target may have any
form by the same rule; where targets are forms of each other, no other form will do. One with capitals needs
them. The text of an entry that is kept as it is must be exactly there.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

from cadec_cli.text.protected.spans import LETTER_MARKS, Span, lost_spans
from cadec_cli.text.sentences import base_language
from cadec_cli.text.word_forms import WORD, are_forms, are_name_forms, common_beginning

KIND = "term"  # of the spans of entries that are kept as they are

# Letters that a form of a word may have instead of its last ones, and how many of those.
_MOST, _LOST = 3, 2
# Scripts that put no spaces between words, and Korean, whose particles have none before them.
_DENSE = re.compile(
    "[\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u3040-\u30ff\u3130-\u318f"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]"
)
_APOSTROPHE = re.compile("['’ʼ`]")
_POSSESSIVE = re.compile(r"['’ʼ`][sS]?(?!\w)")

# (a word of a target, a word of a translation, both in lower case) → may the second stand for the first?
FormRule = Callable[[str, str], bool]


@dataclass(frozen=True)
class Entry:
    """A term and what it is called: one of `targets`, which are names or forms of names.

    `must` marks an entry without which a translation is wrong; others are wishes. `keep` marks one that is
    not translated; its only target is its source. `name_in` is the target language of a name that was found
    in the text, a single word; its targets are forms of it, and others of its forms will do.
    """

    source: str
    targets: tuple[str, ...]
    must: bool = False
    keep: bool = False
    name_in: str | None = None

    def __str__(self) -> str:
        return f"{self.source} → {self.target}"

    @property
    def target(self) -> str:
        """The first of the targets, which stands for all of them in messages."""
        return self.targets[0]

    @cached_property
    def lists_forms(self) -> bool:
        """Tell whether some targets are forms of others, so that other forms are not meant."""
        words = [tuple(match[0].lower() for match in WORD.finditer(target)) for target in self.targets]
        return any(
            len(one) == len(other) and all(map(are_forms, one, other))
            for one, other in itertools.combinations(words, 2)
        )

    @cached_property
    def listed(self) -> re.Pattern[str]:
        """A pattern of the targets as words."""
        forms = "|".join(map(re.escape, sorted(self.targets, key=len, reverse=True)))
        return re.compile(rf"(?<![^\W_])(?:{forms})(?![^\W_]|[{LETTER_MARKS}])")

    @cached_property
    def is_form(self) -> FormRule:
        """The rule that tells whether a word may stand for one of a target."""
        if self.name_in is not None:
            return partial(are_name_forms, language=self.name_in)
        return _no_other_form if self.lists_forms else _is_form


@dataclass(frozen=True)
class Mention:
    """An entry in a source text, at characters `start` to `end`."""

    entry: Entry
    start: int
    end: int
    text: str

    @property
    def span(self) -> Span:
        """The text as a span, which no translation may change."""
        return Span(self.start, self.end, self.text, KIND)

    def rendering(self, translation: str) -> str | None:
        """Return how a translation says it; None if it does not respect the entry."""
        if self.entry.keep:
            return None if lost_spans([self.span], translation) else self.text
        if self.entry.name_in is not None:
            return self._named(translation)
        for target in self.entry.targets:
            if (found := find_form(target, translation, self.entry.is_form)) is not None:
                return translation[found[0] : found[1]]
        return None

    def _named(self, translation: str) -> str | None:
        """Return how a translation calls a name: in a form that is listed, or in another one."""
        if (found := self.entry.listed.search(translation)) is not None:
            return found[0]
        first = self.entry.target
        if first[:2] not in translation and first[:2].upper() not in translation:  # all forms begin so
            return None
        for word in _words_of(translation):
            if word.text[0].isupper() and self.entry.is_form(first.lower(), word.lower):
                return translation[word.start : word.end]
        return None


class Glossary:
    """Entries with an index, such that a hundred thousand of them cost no more than a few.

    The language is that of the source.
    """

    def __init__(self, entries: Iterable[Entry], language: str = "") -> None:
        self.entries = tuple(entries)
        self._english = base_language(language) == "en"
        self._words: dict[str, list[_Pattern]] = defaultdict(list)  # by the beginning of their first word
        self._texts: dict[str, Entry] = {}
        lengths: dict[str, set[int]] = defaultdict(set)
        for entry in self.entries:
            pattern = _Pattern.of(entry)
            if pattern is None:
                for text in (entry.source, _plain(entry.source)):
                    self._texts.setdefault(text, entry)
                    lengths[text[0]].add(len(text))
            else:
                self._words[self._key(pattern.words[0])].append(pattern)
        # For every first character, the lengths of the texts that begin with it, the longest first.
        self._lengths = {first: sorted(found, reverse=True) for first, found in lengths.items()}

    def __len__(self) -> int:
        return len(self.entries)

    def mentions(
        self, text: str, taken: Sequence[Span] = (), *, any_case: bool = False
    ) -> tuple[Mention, ...]:
        """Find the entries in a text, from left to right, outside the spans that are taken.

        With `any_case`, capitals don't count: the text has lost its own.
        """
        found = sorted(
            {*self._of_words(text, any_case), *self._of_texts(text)},
            key=lambda one: (one.start - one.end, one.loose, one.start),
        )
        free = [True] * len(text)
        for span in taken:
            free[span.start : span.end] = [False] * (span.end - span.start)
        mentions = []
        for one in found:
            if all(free[one.start : one.end]):
                free[one.start : one.end] = [False] * (one.end - one.start)
                mentions.append(Mention(one.entry, one.start, one.end, text[one.start : one.end]))
        return tuple(sorted(mentions, key=lambda mention: mention.start))

    def _key(self, word: str) -> str:
        """The key of a pattern, given its first word: letters that all forms of it begin with."""
        return word if self._english or len(word) < 3 else word[: max(3, len(word) - _MOST)]

    def _lookups(self, word: str) -> Iterable[str]:
        """The keys of all patterns that a word may begin."""
        if self._english:
            return _english_bases(word)
        return (word,) if len(word) < 3 else (word[:size] for size in range(3, len(word) + 1))

    def _of_words(self, text: str, any_case: bool) -> Iterator[_Found]:
        if not self._words:
            return
        words = _words_of(text)
        for place, word in enumerate(words):
            for key in self._lookups(word.lower):
                for pattern in self._words.get(key, ()):
                    found = pattern.match(text, words[place : place + len(pattern.words)], self, any_case)
                    if found is not None:
                        yield found

    def _of_texts(self, text: str) -> Iterator[_Found]:
        for start, first in enumerate(text):
            for length in self._lengths.get(first, ()):
                piece = text[start : start + length]
                if piece in self._texts:
                    yield _Found(start, start + length, self._texts[piece], 0)

    def looseness(self, own: str, word: str) -> int | None:
        """Tell how loosely a word in lower case matches one of an entry: 0 if exactly, None if not at all."""
        if own == word:
            return 0
        fits = own in _english_bases(word) if self._english else _is_form(own, word)
        return 1 if fits else None


@dataclass(frozen=True)
class _Word:
    start: int
    end: int
    text: str

    @cached_property
    def lower(self) -> str:
        return self.text.lower()


@dataclass(frozen=True)
class _Found:
    start: int
    end: int
    entry: Entry
    loose: int  # how many words are other forms than the entry's


@dataclass(frozen=True, eq=False)
class _Pattern:
    """The words of an entry, what is before, between and after them, and the words in lower case."""

    entry: Entry
    written: tuple[str, ...]
    words: tuple[str, ...]
    gaps: tuple[str, ...]  # one more than words

    @classmethod
    def of(cls, entry: Entry) -> _Pattern | None:
        """Return the pattern of an entry; None if it is not looked for by its words."""
        text = _plain(entry.source)
        if _DENSE.search(text) or not WORD.search(text):
            return None
        written, gaps = _words_and_gaps(text)
        return cls(entry, written, tuple(map(str.lower, written)), gaps)

    def match(self, text: str, words: Sequence[_Word], glossary: Glossary, any_case: bool) -> _Found | None:
        """Return where the pattern is if it is at these words of a text."""
        if len(words) < len(self.words):
            return None
        loose = 0
        for written, own, word in zip(self.written, self.words, words, strict=True):
            how = glossary.looseness(own, word.lower)
            if how is None or not (any_case or _has_capitals_of(written, word.text)):
                return None
            loose += how
        for gap, before, after in zip(self.gaps[1:-1], words, words[1:], strict=False):
            if not _same_gap(gap, text[before.end : after.start]):
                return None
        start = words[0].start - len(self.gaps[0])
        end = words[-1].end + len(self.gaps[-1])
        if start < 0 or text[start : words[0].start] != self.gaps[0]:
            return None
        if text[words[-1].end : end] != self.gaps[-1]:
            return None
        if not self.gaps[-1] and _goes_on(text, end):
            return None
        return _Found(start, end, self.entry, loose)


def find_form(target: str, text: str, is_form: FormRule | None = None) -> tuple[int, int] | None:
    """Return where a text has a target, or a form of it by a rule; None if it does not."""
    is_form = is_form or _is_form
    if _DENSE.search(target) or not WORD.search(target):
        for one in (target, _plain(target)):
            if (start := text.find(one)) >= 0:
                return start, start + len(one)
        return None
    target = _plain(target)
    written, gaps = _pattern_of_target(target)
    words = _words_of(text)
    exact = [own.lower() for own in written]
    best = None
    for place in range(len(words) - len(written) + 1):
        here = words[place : place + len(written)]
        if not all(
            (own == word.lower or is_form(own, word.lower)) and _has_capitals_of(shown, word.text)
            for own, shown, word in zip(exact, written, here, strict=True)
        ):
            continue
        between = zip(gaps[1:-1], here, here[1:], strict=False)
        if not all(_same_gap(gap, text[one.end : other.start]) for gap, one, other in between):
            continue
        start, end = here[0].start - len(gaps[0]), here[-1].end + len(gaps[-1])
        if start < 0 or text[start : here[0].start] != gaps[0] or text[here[-1].end : end] != gaps[-1]:
            continue
        if [word.lower for word in here] == exact:
            return start, end
        best = best or (start, end)
    return best


def has_no_spaces(text: str) -> bool:
    """Tell whether a text is in a script that does not separate words by spaces, or not all of them."""
    return bool(_DENSE.search(text))


@lru_cache(maxsize=4096)
def _pattern_of_target(target: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return _words_and_gaps(target)


@lru_cache(maxsize=256)
def _words_of(text: str) -> tuple[_Word, ...]:
    return tuple(_Word(match.start(), match.end(), _plain(match[0])) for match in WORD.finditer(text))


def _words_and_gaps(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    found = list(WORD.finditer(text))
    ends = [0, *(match.end() for match in found)]
    starts = [*(match.start() for match in found), len(text)]
    gaps = tuple(text[end:start] for end, start in zip(ends, starts, strict=True))
    return tuple(match[0] for match in found), gaps


def _no_other_form(own: str, word: str) -> bool:
    return False


def _is_form(own: str, word: str) -> bool:
    """Tell whether a word seems to be a form of an entry's, both in lower case."""
    return are_forms(own, word, _MOST) and common_beginning(own, word) >= len(own) - _LOST


def _plain(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def _same_gap(one: str, other: str) -> bool:
    """Tell whether what is between two words is the same but for kinds of spaces and apostrophes."""
    if one == other:
        return True
    if one.isspace() or other.isspace():
        return one.isspace() and other.isspace()
    return _APOSTROPHE.sub("'", one).split() == _APOSTROPHE.sub("'", other).split()


def _has_capitals_of(written: str, word: str) -> bool:
    """Tell whether a form of a word has its capitals, or is in capitals throughout."""
    if written == written.lower() or (word.isupper() and len(word) > 1):
        return True
    shared = common_beginning(written.lower(), word.lower())
    return written[:shared] == word[:shared]


def _goes_on(text: str, end: int) -> bool:
    """Tell whether a word goes on after an apostrophe: “don” is not in “don't”."""
    if not _APOSTROPHE.match(text, end) or not WORD.match(text, end + 1):
        return False
    return not _POSSESSIVE.match(text, end)


def _english_bases(word: str) -> tuple[str, ...]:
    """Return the words that an English word may be a form of, itself first."""
    if len(word) < 4 or word[-1] != "s" or word.endswith("ss"):
        return (word,)
    bases = [word, word[:-1]]
    if word.endswith(("ses", "xes", "zes", "ches", "shes", "oes")):
        bases.append(word[:-2])
    if word.endswith("ies") and len(word) > 4:
        bases.append(f"{word[:-3]}y")
    if word.endswith("ves"):
        bases += [f"{word[:-3]}f", f"{word[:-3]}fe"]
    return tuple(bases)
