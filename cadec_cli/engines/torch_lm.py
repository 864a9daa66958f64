"""Scores of whole tries under the D-LM, after a context and without one, for many documents in one pass.

The blocks (context, trie) of several documents stand one after the other in one row of the network, and each
attends to itself alone: no padding is ever computed. Of the logits only what is needed is kept: the
log-sum-exp of a row and the logits of its children.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from cadec_cli.errors import CadecError
from cadec_cli.method.context import Context
from cadec_cli.method.trie import Floats, Trie
from cadec_cli.models.doclm import DocumentLM
from cadec_cli.models.layers import Cache, Part

# Positions of one row: small products are slow, large rows take memory.
ROW = 640
# Rows of logits (rows × vocabulary) that exist at a time.
LOGIT_ROWS = 128


@dataclass(frozen=True)
class ScoredTrie:
    """log p of every edge of a trie after its context, for every temperature."""

    trie: Trie
    edges: Floats  # (temperatures, edges)
    _keys: Cache | None = None  # of the row it was scored in
    _cached: tuple[int, ...] = ()  # where in that row c̃ stands
    _nodes: int = 0  # where in that row the root's first child would stand, less one

    @cached_property
    def totals(self) -> Floats:
        """log p(ỹ | c̃) of every hypothesis: (temperatures, hypotheses)."""
        return self.trie.totals(self.edges)

    def tokens(self, hypothesis: int, temperature: int = 0) -> Floats:
        """log p of every token of a hypothesis, its EOS last."""
        return self.edges[temperature, list(self.trie.paths[hypothesis])]

    def cache_after(self, hypothesis: int) -> Cache | None:
        """Keys and values of c̃ and the hypothesis, to go on from."""
        if self._keys is None:
            return None
        path = [self._nodes + node for node in self.trie.node_path(hypothesis)[1:]]
        index = torch.tensor([*self._cached, *path], device=self._keys.layers[0][0].device)
        return Cache([(k.index_select(2, index), v.index_select(2, index)) for k, v in self._keys.layers])


class LMScorer:
    """A D-LM with the temperatures and the smoothing that its probabilities are read with."""

    def __init__(
        self,
        model: DocumentLM,
        *,
        temperatures: Sequence[float] = (1.0,),
        alpha: float = 0.0,
        keep_keys: bool = False,
    ) -> None:
        if not temperatures or not all(temperature > 0 for temperature in temperatures):
            raise CadecError("a temperature must be above 0", "1 is none; the paper's beam used 8")
        if not alpha >= 0:
            raise CadecError("alpha must not be negative", "0 is no smoothing")
        self.model = model
        self.temperatures = tuple(temperatures)
        self.alpha = alpha
        self.keep_keys = keep_keys
        self.positions = model.config.positions

    def trie(self, hypotheses: Sequence[Sequence[int]]) -> Trie:
        """Merge hypotheses; what does not fit the D-LM's positions even without context is not scored."""
        return Trie.of(hypotheses, self.positions - 1)

    def fitted(self, context: Context, trie: Trie) -> Context:
        """The context as far as it fits before the trie: whole oldest sentences are dropped."""
        return context.fitted(self.positions - trie.depth)

    def free(self, tries: Sequence[Trie]) -> list[ScoredTrie]:
        """Score tries without context: log p(ỹ | </s>)."""
        return self.score(tries, [Context()] * len(tries))

    @torch.inference_mode()
    def score(self, tries: Sequence[Trie], contexts: Sequence[Context]) -> list[ScoredTrie]:
        """Score each trie after its context, which must fit (`fitted`)."""
        scored: list[ScoredTrie] = []
        for blocks in _rows([_Block(trie, context) for trie, context in zip(tries, contexts, strict=True)]):
            scored += self._score_row(blocks)
        return scored

    def _score_row(self, blocks: list[_Block]) -> list[ScoredTrie]:
        device = next(self.model.parameters()).device
        layout = _Layout(blocks, device)
        hidden = self.model.hidden(layout.tokens, layout.positions, layout.mask, layout.cache)[0]  # (L, D)
        rows = np.concatenate([layout.roots[i] + b.trie.edge_nodes for i, b in enumerate(blocks)])
        tokens = np.concatenate([b.trie.edge_tokens for b in blocks])
        edges = self._edges(hidden, torch.from_numpy(rows).to(device), torch.from_numpy(tokens).to(device))
        scored = []
        start = 0
        for index, block in enumerate(blocks):
            end = start + len(block.trie.edge_nodes)
            keys = layout.cache if self.keep_keys else None
            root = layout.cached_total + layout.roots[index]
            held = (*layout.held[index], *range(root - len(block.new) + 1, root + 1))
            scored.append(ScoredTrie(block.trie, edges[:, start:end], keys, held, root))
            start = end
        return scored

    def _edges(self, hidden: Tensor, rows: Tensor, tokens: Tensor) -> Floats:
        """log p of `tokens` after the positions `rows`: (temperatures, edges)."""
        result = torch.empty(len(self.temperatures), len(rows), device=hidden.device)
        # Edges in the order of their rows, so that a chunk of logits serves all edges that start in it.
        used, inverse = torch.unique(rows, return_inverse=True)
        order = torch.argsort(inverse)
        bounds = torch.searchsorted(
            inverse[order], torch.arange(0, len(used) + LOGIT_ROWS, LOGIT_ROWS, device=rows.device)
        )
        for chunk, start in enumerate(range(0, len(used), LOGIT_ROWS)):
            logits = self.model.logits(hidden[used[start : start + LOGIT_ROWS]]).float()  # (rows, V)
            edges = order[bounds[chunk] : bounds[chunk + 1]]
            own = inverse[edges] - start
            chosen = logits[own, tokens[edges]]
            for index, temperature in enumerate(self.temperatures):
                scaled = logits if temperature == 1 else logits / temperature
                log_probs = chosen / temperature - scaled.logsumexp(-1)[own]
                if self.alpha:
                    share = self.alpha / logits.size(-1)
                    log_probs = ((log_probs.exp() + share) / (1 + self.alpha)).log()
                result[index, edges] = log_probs
        return result.double().cpu().numpy()


@dataclass(frozen=True)
class _Block:
    trie: Trie
    context: Context

    @property
    def new(self) -> list[int]:
        """Tokens of c̃ that are not cached, the root last."""
        return self.context.tokens[self.context.cached :]

    @property
    def size(self) -> int:
        return len(self.new) - 1 + len(self.trie)

    def mask(self) -> npt.NDArray[np.bool_]:
        """What each new token may attend to: all that is cached, what is new of c̃, ancestors in the trie."""
        cached, before = self.context.cached, len(self.new) - 1
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
        self.cached_total = sum(block.context.cached for block in blocks)
        tokens, positions, parts = [], [], []
        self.roots: list[int] = []  # where each trie's root stands among the new tokens
        self.held: list[range] = []  # where each block's cached keys stand
        cached_start = start = 0
        for block in blocks:
            cached = block.context.cached
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
        caches = [block.context.cache for block in blocks if block.context.cache is not None]
        self.cache = Cache(
            [
                (torch.cat([k for k, _ in layer], 2), torch.cat([v for _, v in layer], 2))
                for layer in zip(*(cache.layers for cache in caches), strict=True)
            ]
        )
