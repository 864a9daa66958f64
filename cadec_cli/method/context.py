"""The context of a sentence as the D-LM reads it: c̃ = ⟨b⟩ c1 ⟨b⟩ c2 ⟨b⟩ … ck ⟨b⟩, boundaries around all.

One policy decides, for every command, which preceding sentences are read. By default those are the last k,
read again each time. A rolling window holds everything since it began, and the engine's memory of that; when
the positions run out, a new window starts with the last k sentences. A seed (sentences that show how people
are addressed) stays at the head of the window throughout the document.

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
    target language only.
    """

    sentences: tuple[Ids, ...] = ()
    memory: object | None = None
    remembered: int = 0
    pinned: int = 0
    pairs: tuple[Pair, ...] = ()
    source: Ids | None = None

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
        return Context(kept, pinned=len(seed), pairs=_last(self.pairs, len(own)), source=source)

    @property
    def own(self) -> tuple[Ids, ...]:
        """The sentences of the document itself, without the seed."""
        return self.sentences[self.pinned :]

    def last(self, count: int) -> Context:
        """The seed and the last `count` sentences after it."""
        seed, own = self.sentences[: self.pinned], _last(self.own, count)
        return Context((*seed, *own), pinned=self.pinned, pairs=_last(self.pairs, count), source=self.source)

    def with_seed(self, seed: tuple[Ids, ...]) -> Context:
        """The same sentences with this seed instead of any other; memory is kept if the seed is the same."""
        if self.sentences[: self.pinned] == seed:
            return self
        return Context((*seed, *self.own), pinned=len(seed), pairs=self.pairs, source=self.source)

    def followed_by(self, sentence: Ids, memory: object | None = None, pair: Pair | None = None) -> Context:
        """The context of the next sentence; `memory` covers all of c̃ and the sentence.

        Without the sentence's texts, no earlier ones are known either.
        """
        remembered = self.length + len(sentence) if memory is not None else 0
        pairs = (*self.pairs, pair) if pair is not None else ()
        return Context((*self.sentences, sentence), memory, remembered, self.pinned, pairs)

    def without_lists(self) -> Context:
        """The same sentences without the lists that they were chosen from."""
        if all(pair.nbest is None for pair in self.pairs):
            return self
        return replace(self, pairs=tuple(replace(pair, nbest=None) for pair in self.pairs))

    def without_memory(self) -> Context:
        """The same sentences without the engine's memory of them."""
        return Context(self.sentences, pinned=self.pinned, pairs=self.pairs, source=self.source)

    def part(self, read: Context, seed: tuple[Ids, ...] = ()) -> Context:
        """The sentences of this context that `read` has, in pairs or not, as translations alone."""
        whole = self.with_seed(seed)
        sentences = (*_last(whole.sentences[: whole.pinned], read.pinned), *_last(whole.own, len(read.own)))
        return Context(sentences, pinned=read.pinned, pairs=_last(self.pairs, len(read.own)))


@dataclass(frozen=True)
class ContextPolicy:
    """How many preceding sentences are read, and which seed is read before them, with its known sources.

    With `lists`, contexts keep the lists that their sentences were chosen from, for terms that read them.
    `seed_pairs` are the seed for terms that read texts.
    """

    sentences: int = 3
    rolling: bool = False
    seed: tuple[Ids, ...] = ()
    lists: bool = False
    seed_sources: tuple[str, ...] = ()
    seed_pairs: tuple[Pair, ...] = ()

    def read(self, before: Context, room: int) -> Context:
        """The part of the preceding sentences that the D-LM reads, at most `room` tokens of c̃."""
        whole = before.with_seed(self.seed)
        if self.rolling and whole.length <= room:
            return whole
        return whole.last(self.sentences).truncate(room)

    def read_pairs(
        self, before: Context, room: int, before_target: Callable[[str], Ids], source: str
    ) -> Context:
        """What a D-LM that reads pairs reads before a translation of `source`.

        These are the same sentences with their sources, and then `source`. `before_target` returns what it
        reads between two translations, given the second one's source, which is empty if it is not known. No
        engine remembers any of it.
        """
        whole = before.with_seed(self.seed)
        pairs = zip(self.sources(whole), whole.sentences, strict=True)
        sentences = tuple((*before_target(x), *ids) for x, ids in pairs)
        in_pairs = Context(sentences, pinned=whole.pinned, source=before_target(source))
        return replace(self, seed=sentences[: whole.pinned]).read(in_pairs, room)

    def sources(self, context: Context) -> tuple[str, ...]:
        """The sources of all sentences of a context that has the seed; unknown ones are empty."""
        own = tuple(pair.source for pair in _last(context.pairs, len(context.own)))
        seed = _last(self.seed_sources, context.pinned)
        return (*_padding(seed, context.pinned), *seed, *_padding(own, len(context.own)), *own)

    def trim(self, before: Context) -> Context:
        """Drop the sentences and lists that no later sentence will read."""
        kept = before if self.rolling else before.last(max(self.sentences, 1))
        return kept if self.lists else kept.without_lists()

    def pairs(self, before: Context) -> tuple[Pair, ...]:
        """The sentences that terms read as texts: the seed and the last few, however many the D-LM reads."""
        known = before if self.lists else before.without_lists()
        return (*self.seed_pairs, *_last(known.pairs, self.sentences))

    def future(self, before: Context) -> tuple[Ids, ...]:
        """The preceding sentences that later choices depend on."""
        return before.own if self.rolling else before.last(self.sentences).own


Item = TypeVar("Item")


def _padding(known: tuple[str, ...], count: int) -> tuple[str, ...]:
    return ("",) * (count - len(known))


def _last(items: tuple[Item, ...], count: int) -> tuple[Item, ...]:
    return items[-count:] if count else ()


def room(positions: int, longest: int) -> int:
    """How many tokens of context fit before a sentence of `longest` tokens; the boundary always does."""
    return positions - min(longest, positions - 1)
