"""The context of a sentence as the D-LM reads it: c̃ = ⟨b⟩ c1 ⟨b⟩ c2 ⟨b⟩ … ck ⟨b⟩, boundaries around all.

One policy decides, for every command, which of the sentences before are read. The last k sentences, read anew
each time; or, rolling, everything since the window began, with what the engine remembers of it; when the
positions run out, the window begins anew with the last k sentences. A seed, that is sentences which say how
people are to be addressed, stays at the head of the window, however far a document goes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cadec_cli.method.hypotheses import Ids


@dataclass(frozen=True, eq=False)
class Context:
    """Target sentences before the current one, oldest first, in the D-LM's ids without boundaries.

    `memory` is an engine's own, of the first `remembered` tokens of c̃ (never all: its last token is the root
    of the next trie). The first `pinned` sentences are a seed: others go before they do.
    """

    sentences: tuple[Ids, ...] = ()
    memory: object | None = None
    remembered: int = 0
    pinned: int = 0

    @property
    def length(self) -> int:
        """Tokens of c̃; of no sentences, just the boundary."""
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
        """The last sentences only, after the seed."""
        own = self.own[-count:] if count else ()
        return Context((*self.sentences[: self.pinned], *own), pinned=self.pinned)

    def with_seed(self, seed: tuple[Ids, ...]) -> Context:
        """The same after this seed and no other; what is remembered of it stays if it has it already."""
        if self.sentences[: self.pinned] == seed:
            return self
        return Context((*seed, *self.own), pinned=len(seed))

    def followed_by(self, sentence: Ids, memory: object | None = None) -> Context:
        """The context of the next sentence; `memory` is of all of this c̃ and the sentence."""
        remembered = self.length + len(sentence) if memory is not None else 0
        return replace(self, sentences=(*self.sentences, sentence), memory=memory, remembered=remembered)

    def without_memory(self) -> Context:
        """The same sentences, nothing remembered of them."""
        return Context(self.sentences, pinned=self.pinned)


@dataclass(frozen=True)
class ContextPolicy:
    """How much of what stands before a sentence is read, and what is read before all that."""

    sentences: int = 3
    rolling: bool = False
    seed: tuple[Ids, ...] = ()

    def read(self, before: Context, room: int) -> Context:
        """What the D-LM reads of the sentences before: as far as it counts, and c̃ has `room` tokens."""
        whole = before.with_seed(self.seed)
        if self.rolling and whole.length <= room:
            return whole
        return whole.last(self.sentences).truncate(room)

    def trim(self, before: Context) -> Context:
        """What has to be kept for the sentences to come: nothing older will ever be read."""
        return before if self.rolling else before.last(max(self.sentences, 1))

    def future(self, before: Context) -> tuple[Ids, ...]:
        """All that the sentences to come depend on."""
        return before.own if self.rolling else before.last(self.sentences).own


def room(positions: int, longest: int) -> int:
    """Tokens of context before a sentence of so many tokens; the boundary always fits."""
    return positions - min(longest, positions - 1)
