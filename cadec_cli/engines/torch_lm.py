"""Scores of whole tries under the D-LM, after a context and without one, for many documents in one pass.

The blocks (context, trie) of several documents stand one after the other in one row of the network, and each
attends to itself alone: no padding is ever computed. Of the logits only what is needed is kept: the
log-sum-exp of a row and the logits of its children.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cadec_cli.arrays import Bools, Floats
from cadec_cli.engines.smoothing import smoothed
from cadec_cli.engines.torch_lm_steps import LMSteps
from cadec_cli.method.context import Context
from cadec_cli.method.hypotheses import TokenText
from cadec_cli.method.options import Reading
from cadec_cli.method.trie import ScoredTrie, Trie
from cadec_cli.models.doclm import DocumentLM
from cadec_cli.models.layers import Cache, Part

# Positions of one row: small products are slow, large rows take memory.
ROW = 640
# Rows of logits (rows × vocabulary) that exist at a time.
LOGIT_ROWS = 128


@dataclass(frozen=True)
class _Keys:
    """Keys and values of the row that a trie was scored in."""

    row: Cache
    context: tuple[int, ...]  # where in that row c̃ stands
    root: int  # and the trie's root, which its nodes follow

    def after(self, trie: Trie, hypothesis: int) -> Cache:
        """Those of c̃ and the hypothesis."""
        path = [self.root + node for node in trie.node_path(hypothesis)[1:]]
        index = torch.tensor([*self.context, *path], device=self.row.layers[0][0].device)
        return Cache([(k.index_select(2, index), v.index_select(2, index)) for k, v in self.row.layers])


class TorchLanguageModel:
    """Our D-LM with its text."""

    def __init__(self, network: DocumentLM, text: TokenText) -> None:
        self.network = network
        self.text = text
        self.positions = network.config.positions

    def steps(self, contexts: Sequence[Sequence[int]], terms: Sequence[str], reading: Reading) -> LMSteps:
        """Begin to step after some contexts."""
        return LMSteps(self.network, contexts, terms, reading)

    @torch.inference_mode()
    def score(
        self,
        tries: Sequence[Trie],
        contexts: Sequence[Context],
        reading: Reading,
        *,
        remember: bool = False,
    ) -> list[ScoredTrie]:
        """Score each trie after its context, which must fit."""
        boundary = self.text.boundary
        blocks = [
            _Block(trie, context, context.tokens(boundary)[context.remembered :])
            for trie, context in zip(tries, contexts, strict=True)
        ]
        scored: list[ScoredTrie] = []
        for row in _rows(blocks):
            scored += self._score_row(row, reading, remember)
        return scored

    def _score_row(self, blocks: list[_Block], reading: Reading, remember: bool) -> list[ScoredTrie]:
        device = next(self.network.parameters()).device
        layout = _Layout(blocks, device)
        hidden = self.network.hidden(layout.tokens, layout.positions, layout.mask, layout.cache)[0]  # (L, D)
        rows = np.concatenate([layout.roots[i] + b.trie.edge_nodes for i, b in enumerate(blocks)])
        tokens = np.concatenate([b.trie.edge_tokens for b in blocks])
        edges = self._edges(
            hidden, torch.from_numpy(rows).to(device), torch.from_numpy(tokens).to(device), reading
        )
        scored = []
        start = 0
        for index, block in enumerate(blocks):
            end = start + len(block.trie.edge_nodes)
            root = layout.cached_total + layout.roots[index]
            context = (*layout.held[index], *range(root - len(block.new) + 1, root + 1))
            memory = _Keys(layout.cache, context, root) if remember else None
            scored.append(ScoredTrie(block.trie, edges[:, start:end], memory))
            start = end
        return scored

    def _edges(self, hidden: Tensor, rows: Tensor, tokens: Tensor, reading: Reading) -> Floats:
        """log p of `tokens` after the positions `rows`: (temperatures, edges)."""
        result = torch.empty(len(reading.temperatures), len(rows), device=hidden.device)
        # Edges in the order of their rows, so that a chunk of logits serves all edges that start in it.
        used, inverse = torch.unique(rows, return_inverse=True)
        order = torch.argsort(inverse)
        bounds = torch.searchsorted(
            inverse[order], torch.arange(0, len(used) + LOGIT_ROWS, LOGIT_ROWS, device=rows.device)
        )
        for chunk, start in enumerate(range(0, len(used), LOGIT_ROWS)):
            logits = self.network.logits(hidden[used[start : start + LOGIT_ROWS]]).float()  # (rows, V)
            edges = order[bounds[chunk] : bounds[chunk + 1]]
            own = inverse[edges] - start
            chosen = logits[own, tokens[edges]]
            for index, temperature in enumerate(reading.temperatures):
                scaled = logits if temperature == 1 else logits / temperature
                log_probs = chosen / temperature - scaled.logsumexp(-1)[own]
                result[index, edges] = smoothed(log_probs, reading.alpha, logits.size(-1))
        return result.double().cpu().numpy()


@dataclass(frozen=True)
class _Block:
    trie: Trie
    context: Context
    new: list[int]  # tokens of c̃ that are not remembered, the root last

    @property
    def size(self) -> int:
        return len(self.new) - 1 + len(self.trie)

    def mask(self) -> Bools:
        """What each new token may attend to: all that is cached, what is new of c̃, ancestors in the trie."""
        cached, before = self.context.remembered, len(self.new) - 1
        mask = np.ones((self.size, cached + self.size), dtype=np.bool_)
        mask[:before, cached : cached + before] = np.tri(before, dtype=np.bool_)
        mask[:before, cached + before :] = False
        mask[before:, cached + before :] = self.trie.ancestors()
        return mask


def _rows(blocks: list[_Block]) -> Iterator[list[_Block]]:
    """Put neighbours together up to the size of a row."""
    row: list[_Block] = []
    size = 0
    for block in blocks:
        if row and size + block.size > ROW:
            yield row
            row, size = [], 0
        row.append(block)
        size += block.size
    if row:
        yield row


class _Layout:
    """Several blocks in one row: tokens, positions, who sees what, and the cached keys of all of them."""

    def __init__(self, blocks: list[_Block], device: torch.device) -> None:
        self.cached_total = sum(block.context.remembered for block in blocks)
        tokens, positions, parts = [], [], []
        self.roots: list[int] = []  # where each trie's root stands among the new tokens
        self.held: list[range] = []  # where each block's cached keys stand
        cached_start = start = 0
        for block in blocks:
            cached = block.context.remembered
            before = len(block.new) - 1
            held = slice(cached_start, cached_start + cached)
            own = slice(self.cached_total + start, self.cached_total + start + block.size)
            mask = torch.from_numpy(block.mask()).to(device)
            parts.append(Part(slice(start, start + block.size), held, own, mask))
            tokens += [*block.new[:-1], *block.trie.tokens]
            positions += [*range(cached, cached + before), *(cached + before + block.trie.depths)]
            self.roots.append(start + before)
            self.held.append(range(held.start, held.stop))
            cached_start += cached
            start += block.size
        self.mask = tuple(parts)
        self.tokens = torch.tensor([tokens], device=device)
        self.positions = torch.tensor([positions], device=device)
        caches = [block.context.memory for block in blocks if isinstance(block.context.memory, Cache)]
        self.cache = Cache(
            [
                (torch.cat([k for k, _ in layer], 2), torch.cat([v for _, v in layer], 2))
                for layer in zip(*(cache.layers for cache in caches), strict=True)
            ]
        )
