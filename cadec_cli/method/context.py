"""The context of a sentence as the D-LM reads it: c̃ = ⟨b⟩ c1 ⟨b⟩ c2 ⟨b⟩ … ck ⟨b⟩, boundaries around all.

One policy decides, for every command, which preceding sentences are read. By default those are the last k,
read again each time. A rolling window holds everything since it began, and the engine's memory of that; when
the positions run out, a new window starts with the last k sentences. A seed (sentences that show how people
are addressed) stays at the head of the window throughout the document.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cadec_cli.method.hypotheses import Ids


@dataclass(frozen=True, eq=False)
class Context:
    """Target sentences before the current one, oldest first, in the D-LM's ids without boundaries.

    `memory` is the engine's memory of the first `remembered` tokens of c̃ (never all: the last token is the
    root of the next trie). The first `pinned` sentences are a seed, which is truncated last.
    """

    sentences: tuple[Ids, ...] = ()
    memory: object | None = None
    remembered: int = 0
    pinned: int = 0

    @property
    def length(self) -> int:
        """The number of tokens of c̃; without sentences, c̃ is just the boundary."""
        return 1 + sum(len(sentence) + 1 for sentence in self.sentences)

    def tokens(self, boundary: int) -> list[int]:
        """The context as c̃."""
        tokens = [boundary]
        for sentence in self.sentences:
            tokens += [*sentence, boundary]
        return tokens

    def truncate(self, room: int) -> Context:
        """Drop whole oldest sentences until c̃ has at most `room` tokens; the boundary always stays."""
        seed, own = self.sentences[: self.pinned], self.own
        length = self.length
        while (seed or own) and length > room:
            length -= len(own[0] if own else seed[0]) + 1
            seed, own = (seed, own[1:]) if own else (seed[1:], own)
        kept = (*seed, *own)
        return self if len(kept) == len(self.sentences) else Context(kept, pinned=len(seed))

    @property
    def own(self) -> tuple[Ids, ...]:
        """The sentences of the document itself, without the seed."""
        return self.sentences[self.pinned :]

    def last(self, count: int) -> Context:
        """The seed and the last `count` sentences after it."""
        own = self.own[-count:] if count else ()
        return Context((*self.sentences[: self.pinned], *own), pinned=self.pinned)

    def with_seed(self, seed: tuple[Ids, ...]) -> Context:
        """The same sentences with this seed instead of any other; memory is kept if the seed is the same."""
        if self.sentences[: self.pinned] == seed:
            return self
        return Context((*seed, *self.own), pinned=len(seed))

    def followed_by(self, sentence: Ids, memory: object | None = None) -> Context:
        """The context of the next sentence; `memory` covers all of c̃ and the sentence."""
        remembered = self.length + len(sentence) if memory is not None else 0
        return replace(self, sentences=(*self.sentences, sentence), memory=memory, remembered=remembered)

    def without_memory(self) -> Context:
        """The same sentences without the engine's memory of them."""
        return Context(self.sentences, pinned=self.pinned)


@dataclass(frozen=True)
class ContextPolicy:
    """How many preceding sentences are read, and which seed is read before them."""

    sentences: int = 3
    rolling: bool = False
    seed: tuple[Ids, ...] = ()

    def read(self, before: Context, room: int) -> Context:
        """The part of the preceding sentences that the D-LM reads, at most `room` tokens of c̃."""
        whole = before.with_seed(self.seed)
        if self.rolling and whole.length <= room:
            return whole
        return whole.last(self.sentences).truncate(room)

    def trim(self, before: Context) -> Context:
        """Drop the sentences that no later sentence will read."""
        return before if self.rolling else before.last(max(self.sentences, 1))

    def future(self, before: Context) -> tuple[Ids, ...]:
        """The preceding sentences that later choices depend on."""
        return before.own if self.rolling else before.last(self.sentences).own


def room(positions: int, longest: int) -> int:
    """How many tokens of context fit before a sentence of `longest` tokens; the boundary always does."""
    return positions - min(longest, positions - 1)
