"""Training examples that reach over sentence boundaries: sentences joined, and sentences in their context.

Both need corpora with documents; no passage and no context reaches beyond its document.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cadec_cli.arrays import Ints
from cadec_cli.data.batches import Batch, SentencePairs, WeightedShard, pad_rows
from cadec_cli.data.shards import Shard, Tokens
from cadec_cli.errors import CadecError
from cadec_cli.text.subwords import BOS, EOS


class JoinedSentences(SentencePairs):
    """Pairs of passages: each sentence with up to `sentences` − 1 before it, both sides likewise.

    A passage is x1 BOS x2 … EOS: the separator of two sentences is the token that a target begins with.
    """

    def __init__(self, shards: Sequence[WeightedShard], max_length: int, sentences: int) -> None:
        if sentences < 1:
            raise CadecError(f"a passage can't have {sentences} sentences")
        self._count = sentences
        self._firsts: dict[Shard, Ints] = {}
        super().__init__(shards, max_length)

    def measure(self, shard: Shard) -> Ints:
        """Lengths of the passages that end with each sentence."""
        self._firsts[shard] = first_before(shard, self._count - 1)
        firsts = self._firsts[shard]
        return np.stack([side.ends - side.starts[firsts] for side in shard.sides], axis=1)

    def tokens_of(self, shard: Shard, sentence: int) -> tuple[Tokens, Tokens]:
        """The passage that ends with a sentence."""
        first = int(self._firsts[shard][sentence])
        source, target = (_join_tokens(side.between(first, sentence)) for side in shard.sides)
        return source, target


class PairsInContext(SentencePairs):
    """Examples for the DocTransformer: sentence pairs, with up to `sentences` of the source before each."""

    def __init__(
        self, shards: Sequence[WeightedShard], max_length: int, sentences: int, max_context: int
    ) -> None:
        if sentences < 1 or max_context < 1:
            raise CadecError("a DocTransformer without context is an S-NMT", "train it with `train nmt`")
        self._count, self._most = sentences, max_context
        self._firsts: dict[Shard, Ints] = {}
        super().__init__(shards, max_length)

    def measure(self, shard: Shard) -> Ints:
        """Lengths of source and target; those of the contexts are stored."""
        self._firsts[shard] = first_before(shard, self._count)
        return super().measure(shard)

    def lengths(self) -> Ints:
        """Source, context and target lengths, EOS included."""
        source, target = super().lengths().T
        context = self._of_located([self._context_lengths(shard)[:, None] for shard in self._shards])
        return np.stack([source, context[:, 0], target], axis=1)

    def _context_lengths(self, shard: Shard) -> Ints:
        starts = shard.sides[0].starts
        lengths: Ints = np.minimum(starts - starts[self._firsts[shard]], self._most)
        return lengths

    def context_of(self, shard: Shard, sentence: int) -> Tokens:
        """The source sentences before a sentence, each with its EOS; a long context is cut at its start."""
        first = int(self._firsts[shard][sentence])
        return shard.sides[0].between(first, sentence - 1)[-self._most :]

    def batch(self, examples: Ints) -> Batch:
        """source (B, S), context (B, C), target (B, T); the first and the last as for the S-NMT."""
        plain = super().batch(examples)
        source, target = plain.inputs
        contexts = [self.context_of(*place) for place in self.locate(examples)]
        if not any(map(len, contexts)):
            return Batch((source, source.new_zeros(len(source), 1), target), plain.labels)
        return Batch((source, pad_rows(contexts), target), plain.labels)


def first_before(shard: Shard, sentences: int) -> Ints:
    """For each sentence, the first sentence of its context, which stays within the document."""
    document_starts = np.concatenate([[np.int64(0)], shard.document_ends[:-1]])
    sizes = np.diff(shard.document_ends, prepend=np.int64(0))
    firsts: Ints = np.maximum(np.repeat(document_starts, sizes), np.arange(len(shard)) - sentences)
    return firsts


def _join_tokens(tokens: Tokens) -> Tokens:
    joined = tokens.copy()
    joined[:-1][joined[:-1] == EOS] = BOS
    return joined
