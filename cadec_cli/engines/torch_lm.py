"""Our D-LM in torch: scores of whole tries for reranking, and steps token by token for the C-aware beam.

Both score after a context and without one, for many documents in one pass. Shapes: B sentences, K live
hypotheses of each, Z streams (one or two), V vocabulary.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from cadec_cli.engines.growing_trees import NextTokens, Trees
from cadec_cli.engines.threads import Cores, cores_for, is_small
from cadec_cli.engines.trie_rows import Block, Layout, distribute, in_order_of_blocks, smooth
from cadec_cli.method.context import Context
from cadec_cli.method.objectives import CONDITIONAL, FREE
from cadec_cli.method.options import ScoringOptions
from cadec_cli.method.trie import ScoredTrie, Trie
from cadec_cli.models.doclm import DocumentLM
from cadec_cli.models.layers import Part, RoomyCache
from cadec_cli.models.output_layer import all_log_probs, output_log_probs
from cadec_cli.text.token_text import TokenText

# Tokens of contexts read in one row: small products are slow, large rows take memory.
STEP_ROW = 640


class LMSteps:
    """The D-LM's two streams, after the context and without it, of all sentences as one batch.

    A row holds the context of a sentence and, after it, all its live hypotheses in both streams as a tree: a
    step appends a node for each hypothesis, and a mask lets every node attend to its ancestors. So nothing is
    reordered or copied when beams change, and a context is held once for all hypotheses. Every context starts
    with the boundary, which is all that the free stream reads. A sentence without context has the same scores
    in both streams: its PMI is exactly 0.
    """

    def __init__(
        self,
        lm: DocumentLM,
        contexts: Sequence[Sequence[int]],
        terms: Sequence[str],
        scoring_options: ScoringOptions,
    ) -> None:
        if len(scoring_options.temperatures) != 1:
            raise ValueError("a beam is read at one temperature")
        self.lm = lm
        self.reading = scoring_options
        self.terms = [term for term in (CONDITIONAL, FREE) if term in terms]
        self.device = lm.embedding.weight.device
        if CONDITIONAL not in self.terms:
            contexts = [context[:1] for context in contexts]
        lengths = torch.tensor([len(context) for context in contexts], device=self.device)
        self._alike = lengths == 1  # (B) True where both streams are the same
        own = [lengths]
        if len(self.terms) == 2 and not self._alike.all():
            own.append(torch.ones_like(lengths))
        self._lengths = torch.stack(own, 1)  # (B, Z) tokens of the context that each stream reads
        hidden, cache, starts = self._read(contexts)
        slots = torch.arange(int(lengths.max()), device=self.device)  # (S)
        self._context = slots < self._lengths[:, :, None]  # (B, Z, S)
        first = starts[: len(contexts), None]  # (B, 1) the start of each context in the row
        self._hidden = hidden[first + self._lengths - 1]  # (B, Z·K, D) after the newest tokens
        self._cache = cache.laid_out(first + torch.where(slots < lengths[:, None], slots, 0))
        # (B, Z·K, nodes)
        self._ancestors = torch.zeros(*self._lengths.shape, 0, dtype=torch.bool, device=self.device)
        self._depth = 0

    def _read(self, contexts: Sequence[Sequence[int]]) -> tuple[Tensor, RoomyCache, Tensor]:
        """Read contexts one after the other in one row, each attending to itself: no padding is computed.

        Returns the last layer (all tokens, D), a cache of one row, and where in it each context starts.
        """
        cache = RoomyCache()
        hidden = []
        starts = [0, *itertools.accumulate(map(len, contexts))]
        first = 0
        while first < len(contexts):
            end = max(first + 1, bisect.bisect_right(starts, starts[first] + STEP_ROW) - 1)
            hidden.append(self._read_row(contexts[first:end], cache))
            first = end
        return torch.cat(hidden), cache, torch.tensor(starts, device=self.device)

    def _read_row(self, contexts: Sequence[Sequence[int]], cache: RoomyCache) -> Tensor:
        seen = cache.length
        parts = []
        start = 0
        for context in contexts:
            end = start + len(context)
            in_line = np.arange(-1, len(context) - 1)
            parts.append(Part(slice(start, end), slice(0, 0), slice(seen + start, seen + end), in_line))
            start = end
        tokens = torch.tensor([[token for context in contexts for token in context]], device=self.device)
        places = torch.tensor([[place for one in contexts for place in range(len(one))]], device=self.device)
        return self.lm.hidden_states(tokens, places, tuple(parts), cache)[0]

    def log_probs(self) -> dict[str, Tensor]:
        """log p of every next token, (B·K, V), by term."""
        streams = self._lengths.size(1)
        # Streams before sentences: logits are many megabytes, and can be split without a copy.
        hidden = torch.stack(self._hidden.chunk(streams, 1))  # (Z, B, K, D)
        log_probs = all_log_probs(self.lm.output, hidden, self.reading.temperatures[0])
        log_probs = smooth(log_probs, self.reading.alpha, log_probs.size(-1))
        if streams == 2 and self._alike.any():
            log_probs[1, self._alike] = log_probs[0, self._alike]
        return {
            term: log_probs[min(stream, streams - 1)].flatten(0, 1) for stream, term in enumerate(self.terms)
        }

    def step(self, tokens: Tensor, parents: Tensor) -> None:
        """Append a node for each token (B, K) to the nodes numbered by `parents`."""
        width = tokens.size(1)
        streams = self._lengths.size(1)
        each = torch.stack(self._ancestors.chunk(streams, 1), 1)  # (B, Z, K, nodes)
        index = parents[:, None, :, None].expand(-1, streams, -1, each.size(3))
        before = each.gather(2, index).flatten(1, 2)
        itself = torch.eye(streams * width, dtype=torch.bool, device=self.device)
        self._ancestors = torch.cat([before, itself.expand(len(tokens), -1, -1)], 2)
        context = self._context[:, :, None].expand(-1, -1, width, -1).flatten(1, 2)
        mask = torch.cat([context, self._ancestors], 2)  # (B, Z·K, S + nodes)
        positions = (self._lengths + self._depth).repeat_interleave(width, 1)
        self._depth += 1
        self._hidden = self.lm.hidden_states(tokens.repeat(1, streams), positions, mask, self._cache)

    def keep(self, sentences: Tensor) -> None:
        """Continue with these sentences only, in rising order."""
        self._alike = self._alike[sentences]
        self._lengths = self._lengths[sentences]
        self._context = self._context[sentences]
        self._ancestors = self._ancestors[sentences]
        self._cache = self._cache.rows(sentences)


# Positions of one row: small products are slow, large rows take memory.
ROW = 960
# The most tries worth scoring at once where all but one are guesses: of eight, the last is right in one case
# of five.
TRIES = 8
# The most rows of logits (rows × vocabulary) in memory at a time.
LOGIT_ROWS = 128


class TorchLanguageModel:
    """Our D-LM with its text."""

    def __init__(self, network: DocumentLM, text: TokenText) -> None:
        self.network = network
        self.text = text
        self.positions = network.config.positions
        self._cores, self._small = Cores(), is_small(self)

    @property
    def batch_size(self) -> int:
        """One trie per core; with very many cores, a large network is as fast with a single trie."""
        cores = cores_for(self)
        return min(cores, TRIES) if self._small or cores <= TRIES else 1

    def steps(
        self, contexts: Sequence[Sequence[int]], terms: Sequence[str], scoring_options: ScoringOptions
    ) -> LMSteps:
        """Begin to step after some contexts."""
        return LMSteps(self.network, contexts, terms, scoring_options)

    def trees(
        self, contexts: Sequence[Context], terms: Sequence[str], scoring_options: ScoringOptions
    ) -> Trees:
        """Begin to read beginnings after some contexts."""
        boundary = self.text.boundary
        before = {
            CONDITIONAL: [[context.tokens(boundary)] for context in contexts],
            FREE: [[[boundary]] for _ in contexts],
        }
        return Trees(
            lambda tokens, positions, seen, cache: self.network.hidden_states(
                tokens, positions, seen[None], cache
            )[0],
            NextTokens.of_logits(self.network.logits),
            {term: before[term] for term in before if term in terms},
            positions=self.positions,
            scoring_options=scoring_options,
            device=next(self.network.parameters()).device,
            cache=RoomyCache(),
        )

    def score(
        self,
        tries: Sequence[Trie],
        contexts: Sequence[Context],
        scoring_options: ScoringOptions,
        *,
        remember: bool = False,
    ) -> list[ScoredTrie]:
        """Score each trie after its context, which must fit."""
        boundary = self.text.boundary
        blocks = [
            Block.of(trie, context, boundary, boundary) for trie, context in zip(tries, contexts, strict=True)
        ]
        cores = cores_for(self)
        rows = distribute(blocks, ROW, cores)

        def score_row(row: list[int]) -> list[ScoredTrie]:
            return self._score_row([blocks[number] for number in row], scoring_options, remember)

        made = self._cores.map(score_row, rows, small=self._small) if cores > 1 else map(score_row, rows)
        return in_order_of_blocks(rows, made)

    @torch.inference_mode()  # inference mode is per thread
    def _score_row(
        self, blocks: Sequence[Block], scoring_options: ScoringOptions, remember: bool
    ) -> list[ScoredTrie]:
        layout = Layout(blocks, next(self.network.parameters()).device)
        cache = layout.cache()
        hidden = self.network.hidden_states(layout.tokens, layout.positions, _parts(layout), cache)[0]
        # (nodes of all tries, D)
        edges = layout.edges(
            *(
                hidden,
                output_log_probs(self.network.output),
                LOGIT_ROWS,
                self.network.config.vocabulary,
                scoring_options,
            ),
            tries_only=True,
        )
        return layout.scored_tries(edges, cache if remember else None)


def _parts(layout: Layout) -> tuple[Part, ...]:
    """The parts of a row: each context, and each trie; only tries are asked for."""
    parts = []
    for block, queries, held, own in zip(layout.blocks, layout.queries, layout.held, layout.own, strict=True):
        before = len(block.new) - 1
        root = queries.start + before
        parents = block.parents()
        if before:
            read = slice(own.start, own.start + before)
            parts.append(Part(slice(queries.start, root), held, read, parents[:before], asked=False))
        parts.append(Part(slice(root, queries.stop), held, own, parents))
    return tuple(parts)
