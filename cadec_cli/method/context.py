"""The context of a sentence as the D-LM reads it: c̃ = ⟨b⟩ c1 ⟨b⟩ c2 ⟨b⟩ … ck ⟨b⟩, boundaries around all.

One policy decides, for every command, which preceding sentences are read. By default those are the last k,
read again each time. A rolling window holds everything since it began, and the engine's memory of that; when
the positions run out, a new window starts with the last k sentences. A seed (sentences that show how people
are addressed) stays at the head of the window throughout the document.

A document also remembers what has left the window: the policy may put a few earlier sentences before the last
k, those that share rare source words with the current one (`retrieval`).

Beside the ids that the D-LM reads, a context has its sentences as texts, each with its source, for terms and
D-LMs that read both languages. A D-LM that reads pairs has the source before each sentence, and the source of
the current one at the end: c̃ = ⟨b⟩ x1 ⟨b⟩ c1 ⟨b⟩ … xk ⟨b⟩ ck ⟨b⟩ x ⟨b⟩. A pair is one sentence of such a
context, so that what is true of sentences is true of pairs: they are counted, truncated and pinned whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

from cadec_cli.method.hypotheses import Ids, NBest
from cadec_cli.method.retrieval import NOTHING, EarlierSentences, TranslationMemory, related

# Of so many sentences terms read the lists, even if the D-LM reads fewer: that costs nothing.
SENTENCES_WITH_LISTS = 9


@dataclass(frozen=True)
class Pair:
    """A sentence of a document and its translation, as texts; a source that is not known is empty.

    `nbest` is the list that the translation was chosen from, if a policy keeps it; None if the translation is
    certain: a person's, or a text that is given as context.
    """

    source: str
    target: str
    nbest: NBest | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class Context:
    """Target sentences before the current one, oldest first, in the D-LM's ids without boundaries.

    `memory` is the engine's memory of the first `remembered` tokens of c̃ (never all: the last token is the
    root of the next trie). The first `pinned` sentences are a seed, which is truncated last. `pairs` are the
    texts of the last of the document's own sentences, and their sources. `source` is what a D-LM that reads
    pairs reads between these and the current translation, its boundaries included; None if it reads the
    target language only. `earlier` are the document's sentences before all of these, as far as it remembers
    them.
    """

    sentences: tuple[Ids, ...] = ()
    memory: object | None = None
    remembered: int = 0
    pinned: int = 0
    pairs: tuple[Pair, ...] = ()
    source: Ids | None = None
    earlier: EarlierSentences = NOTHING

    @property
    def length(self) -> int:
        """The number of tokens of c̃; without sentences, c̃ is just the boundary."""
        return 1 + sum(len(sentence) + 1 for sentence in self.sentences) + len(self.source or ())

    def tokens(self, boundary: int) -> list[int]:
        """The context as c̃."""
        tokens = [boundary]
        for sentence in self.sentences:
            tokens += [*sentence, boundary]
        return [*tokens, *(self.source or ())]

    def truncate(self, room: int) -> Context:
        """Drop whole oldest sentences until c̃ has at most `room` tokens; the boundary always stays.

        The current source is dropped last.
        """
        seed, own = self.sentences[: self.pinned], self.own
        length = self.length
        while (seed or own) and length > room:
            length -= len(own[0] if own else seed[0]) + 1
            seed, own = (seed, own[1:]) if own else (seed[1:], own)
        kept = (*seed, *own)
        source = self.source if not self.source or length <= room else ()
        if len(kept) == len(self.sentences) and source is self.source:
            return self
        pairs = _last(self.pairs, len(own))
        return Context(kept, pinned=len(seed), pairs=pairs, source=source, earlier=self.earlier)

    @property
    def own(self) -> tuple[Ids, ...]:
        """The sentences of the document itself, without the seed."""
        return self.sentences[self.pinned :]

    def last(self, count: int, texts: int = 0) -> Context:
        """The seed and the last `count` sentences after it; of their texts at least the last `texts`."""
        seed, own = self.sentences[: self.pinned], _last(self.own, count)
        pairs = _last(self.pairs, max(count, texts))
        return Context(
            (*seed, *own), pinned=self.pinned, pairs=pairs, source=self.source, earlier=self.earlier
        )

    def with_seed(self, seed: tuple[Ids, ...]) -> Context:
        """The same sentences with this seed instead of any other; memory is kept if the seed is the same."""
        if self.sentences[: self.pinned] == seed:
            return self
        return Context(
            (*seed, *self.own),
            pinned=len(seed),
            pairs=self.pairs,
            source=self.source,
            earlier=self.earlier,
        )

    def followed_by(self, sentence: Ids, memory: object | None = None, pair: Pair | None = None) -> Context:
        """The context of the next sentence; `memory` covers all of c̃ and the sentence.

        Without the sentence's texts, no earlier ones are known either.
        """
        remembered = self.length + len(sentence) if memory is not None else 0
        pairs = (*self.pairs, pair) if pair is not None else ()
        return Context(
            (*self.sentences, sentence), memory, remembered, self.pinned, pairs, earlier=self.earlier
        )

    def without_lists(self) -> Context:
        """The same sentences without the lists that they were chosen from."""
        if all(pair.nbest is None for pair in self.pairs):
            return self
        return replace(self, pairs=tuple(replace(pair, nbest=None) for pair in self.pairs))

    def without_memory(self) -> Context:
        """The same sentences without the engine's memory of them."""
        return replace(self, memory=None, remembered=0)

    def remember_all_but(self, count: int, texts: int = 0) -> Context:
        """The same as `last`; the sentences before are remembered, if their sources are known."""
        own = self.own[: len(self.own) - count] if len(self.own) > count else ()
        if not own:
            return self.last(count, texts)
        pairs = self.own_pairs[: len(own)]
        leaving = [(pair.source, ids, "") for pair, ids in zip(pairs, own, strict=True)]
        return replace(self.last(count, texts), earlier=self.earlier.add(leaving))

    @property
    def own_pairs(self) -> tuple[Pair, ...]:
        """The texts of all the document's own sentences; those that are not known are empty."""
        known = _last(self.pairs, len(self.own))
        return (*(Pair("", ""),) * (len(self.own) - len(known)), *known)


@dataclass(frozen=True)
class ContextPolicy:
    """How many preceding sentences are read, and which seed is read before them, with its known sources.

    With `lists`, contexts keep the lists that their sentences were chosen from, for terms that read them, and
    keep more of them than the D-LM reads sentences.
    `seed_pairs` are the seed for terms that read texts. `retrieve` is how many earlier sentences are read at
    most because they share rare source words with the current one: those of
    `translation_memory`, which is known before the document begins, and those of the document that have left
    the window. A rolling window reads none.
    """

    sentences: int = 3
    rolling: bool = False
    seed: tuple[Ids, ...] = ()
    lists: bool = False
    seed_sources: tuple[str, ...] = ()
    seed_pairs: tuple[Pair, ...] = ()
    retrieve: int = 0
    translation_memory: TranslationMemory | None = None

    def read(self, before: Context, room: int, source: str = "") -> Context:
        """The part of the preceding sentences that the D-LM reads before a translation of `source`.

        It has at most `room` tokens of c̃. What is retrieved comes after the seed, and is truncated first.
        """
        whole = before.with_seed(self.seed)
        if self.rolling and whole.length <= room:
            return whole
        return self._window(whole, source).truncate(room)

    def _window(self, whole: Context, source: str) -> Context:
        """The seed, what is retrieved for a source, and the last sentences, however long they are."""
        if not self.retrieve or self.rolling or not source:
            return whole.last(self.sentences)
        known = self.trim(whole)
        window = known.last(self.sentences)
        last, memory = window.own_pairs, self.translation_memory
        indexes = [known.earlier] if memory is None else [memory.index, known.earlier]
        found = related(source, self.retrieve, indexes, [pair.source for pair in last])
        retrieved = [
            (memory.ids(one) if memory is not None and not number else one.ids, one) for number, one in found
        ]
        retrieved = [(ids, one) for ids, one in retrieved if ids and ids not in window.own]
        seed = window.sentences[: window.pinned]
        return Context(
            (*seed, *(ids for ids, _ in retrieved), *window.own),
            pinned=window.pinned,
            pairs=(*(Pair(one.source, one.target) for _, one in retrieved), *last),
            source=window.source,
        )

    def read_pairs(
        self, before: Context, room: int, before_target: Callable[[str], Ids], source: str
    ) -> Context:
        """What a D-LM that reads pairs reads before a translation of `source`.

        These are the same sentences with their sources, and then `source`. `before_target` returns what it
        reads between two translations, given the second one's source, which is empty if it is not known. No
        engine remembers any of it.
        """
        whole = before.with_seed(self.seed)
        if not self.rolling:
            whole = self._window(whole, source)
        pairs = zip(self.sources(whole), whole.sentences, strict=True)
        sentences = tuple((*before_target(x), *ids) for x, ids in pairs)
        in_pairs = Context(sentences, pinned=whole.pinned, source=before_target(source))
        if self.rolling and in_pairs.length > room:
            in_pairs = in_pairs.last(self.sentences)
        return in_pairs.truncate(room)

    def translations(self, before: Context, read: Context, source: str = "") -> Context:
        """The sentences of `read`, which this policy has made of `before`, in pairs or not, without pairs."""
        whole = before.with_seed(self.seed)
        if not self.rolling:
            whole = self._window(whole, source)
        sentences = (*_last(whole.sentences[: whole.pinned], read.pinned), *_last(whole.own, len(read.own)))
        return Context(sentences, pinned=read.pinned, pairs=_last(whole.pairs, len(read.own)))

    def sources(self, context: Context) -> tuple[str, ...]:
        """The sources of all sentences of a context that has the seed; unknown ones are empty."""
        own = tuple(pair.source for pair in _last(context.pairs, len(context.own)))
        seed = _last(self.seed_sources, context.pinned)
        return (*_padding(seed, context.pinned), *seed, *_padding(own, len(context.own)), *own)

    def trim(self, before: Context) -> Context:
        """Drop the sentences and lists that no later sentence will read; remember the others."""
        if self.rolling:
            kept = before
        elif self.retrieve:
            kept = before.remember_all_but(max(self.sentences, 1), self._texts)
        else:
            kept = before.last(max(self.sentences, 1), self._texts)
        return kept if self.lists else kept.without_lists()

    def pairs(self, before: Context) -> tuple[Pair, ...]:
        """The sentences that terms read as texts: the seed and the last few, however many the D-LM reads."""
        known = before if self.lists else before.without_lists()
        return (*self.seed_pairs, *_last(known.pairs, self._texts))

    @property
    def _texts(self) -> int:
        """How many sentences terms read as texts: more than the D-LM, if they read lists."""
        return max(self.sentences, SENTENCES_WITH_LISTS) if self.lists and self.sentences else self.sentences

    def future(self, before: Context) -> tuple[Ids, ...]:
        """The preceding sentences that later choices depend on, apart from retrieved ones."""
        return before.own if self.rolling else before.last(self.sentences).own


Item = TypeVar("Item")


def _padding(known: tuple[str, ...], count: int) -> tuple[str, ...]:
    return ("",) * (count - len(known))


def _last(items: tuple[Item, ...], count: int) -> tuple[Item, ...]:
    return items[-count:] if count else ()


def room(positions: int, longest: int) -> int:
    """How many tokens of context fit before a sentence of `longest` tokens; the boundary always does."""
    return positions - min(longest, positions - 1)
