"""The context of a sentence as the D-LM reads it: c̃ = </s> c1 </s> c2 </s> … ck </s>.

Two policies. `last`: the last k sentences, read anew each time. `rolling`: everything since the window began,
with the keys and values of what was read before; when the positions run out, the window begins anew with the
last k sentences.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from cadec_cli.text.specials import EOS

POLICIES = ("last", "rolling")

Ids = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Context:
    """Target sentences before the current one, oldest first, in the D-LM's ids without EOS.

    `cache` holds keys and values of the first `cached` tokens of c̃ (never all: its last token is the
    root of the next trie).
    """

    sentences: tuple[Ids, ...] = ()
    cache: Any | None = None
    cached: int = 0

    @property
    def tokens(self) -> list[int]:
        """The context as c̃; of no sentences, just the boundary."""
        tokens = [EOS]
        for sentence in self.sentences:
            tokens += [*sentence, EOS]
        return tokens

    def fitted(self, room: int) -> Context:
        """Drop whole oldest sentences until c̃ has at most `room` tokens; the boundary always stays."""
        sentences = self.sentences
        length = 1 + sum(len(sentence) + 1 for sentence in sentences)
        while sentences and length > room:
            length -= len(sentences[0]) + 1
            sentences = sentences[1:]
        return self if len(sentences) == len(self.sentences) else Context(sentences)

    def last(self, count: int) -> Context:
        """The last sentences only."""
        return Context(self.sentences[-count:] if count else ())

    def followed_by(self, sentence: Ids, cache: Any | None = None) -> Context:
        """The context of the next sentence; `cache` holds all of this c̃ and the sentence."""
        cached = len(self.tokens) + len(sentence) if cache is not None else 0
        return replace(self, sentences=(*self.sentences, sentence), cache=cache, cached=cached)
