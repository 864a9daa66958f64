"""Lays out tries after their contexts, of several documents, as rows of a network: positions, masks, edges.

The blocks (context, trie) of several documents follow each other in one row, and each attends only to itself,
so no padding is computed. Of the logits, only the log-probabilities of a trie's edges are kept. This module
does not depend on the network or the form of its masks. It also has add-α smoothing, for the scorer and for
the beam: p ← (p + α/|V|) / (1 + α).
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cadec_cli.arrays import Bools, Floats, Ints
from cadec_cli.errors import CadecError
from cadec_cli.method.context import Context
from cadec_cli.method.options import ScoringOptions
from cadec_cli.method.trie import ScoredTrie, Trie
from cadec_cli.models.layers import Cache, lineage
from cadec_cli.models.output_layer import TokenLogProbs


def smooth(log_probs: Tensor, alpha: float, vocabulary: int) -> Tensor:
    """log p, smoothed; an α of 0 changes nothing."""
    if not alpha:
        return log_probs
    uniform = torch.tensor(alpha / vocabulary, device=log_probs.device, dtype=log_probs.dtype).log()
    return torch.logaddexp(log_probs, uniform) - math.log1p(alpha)


@dataclass(frozen=True)
class Keys:
    """Keys and values of the row that a trie was scored in."""

    row: Cache
    context: tuple[int, ...]  # the places of c̃ in that row
    root: int  # the place of the trie's root; its nodes follow

    def after(self, trie: Trie, hypothesis: int) -> Cache:
        """The keys and values of c̃ and the hypothesis."""
        return self._at([*self.context, *(self.root + node for node in trie.node_path(hypothesis)[1:])])

    def before_root(self) -> Cache:
        """The keys and values of c̃ without its last token, which is the root of the next trie."""
        return self._at(list(self.context[:-1]))

    def _at(self, places: list[int]) -> Cache:
        index = torch.tensor(places, dtype=torch.long, device=self.row.layers[0][0].device)
        return Cache([(k.index_select(2, index), v.index_select(2, index)) for k, v in self.row.layers])


@dataclass(frozen=True)
class Block:
    """One trie after its context."""

    trie: Trie
    context: Context
    new: list[int]  # tokens of c̃ that are not cached, the root last

    @classmethod
    def of(cls, trie: Trie, context: Context, start: int, boundary: int) -> Block:
        """A trie after ⟨start⟩ c1 ⟨b⟩ … ck ⟨b⟩; cached tokens are not read again."""
        tokens = context.tokens(boundary)
        tokens[0] = start
        return cls(trie, context, tokens[context.remembered :])

    @property
    def size(self) -> int:
        """The number of new tokens."""
        return len(self.new) - 1 + len(self.trie)

    def parents(self) -> Ints:
        """The parent of each new token, by its number among the new tokens; -1 if the parent is not new."""
        before = len(self.new) - 1
        return np.concatenate([np.arange(-1, before - 1), self.trie.parents + before])

    def mask(self) -> Bools:
        """The keys that each new token attends to: all cached ones, those of c̃ before it, trie ancestors."""
        return lineage(self.parents(), self.context.remembered)


def rows_of(blocks: Sequence[Block], size: int) -> Iterator[list[Block]]:
    """Group neighbouring blocks into rows of at most `size` tokens."""
    row: list[Block] = []
    taken = 0
    for block in blocks:
        if row and taken + block.size > size:
            yield row
            row, taken = [], 0
        row.append(block)
        taken += block.size
    if row:
        yield row


def distribute(blocks: Sequence[Block], size: int, cores: int) -> list[list[int]]:
    """Distribute blocks, by number, over rows of similar length; each core takes one row."""
    count = -(-sum(block.size for block in blocks) // size)
    count += -count % cores
    # The largest first, each into the row that is shortest by then.
    rows: list[tuple[int, int, list[int]]] = [(0, number, []) for number in range(min(count, len(blocks)))]
    for number in sorted(range(len(blocks)), key=lambda number: -blocks[number].size):
        taken, index, row = heapq.heappop(rows)
        row.append(number)
        heapq.heappush(rows, (taken + blocks[number].size, index, row))
    return [row for _, _, row in rows]


def in_order_of_blocks(
    rows: Sequence[Sequence[int]], scored: Iterable[Sequence[ScoredTrie]]
) -> list[ScoredTrie]:
    """Return the scored tries of rows of blocks, given by number, in the order of the blocks."""
    by_number = {
        number: trie
        for row, of_row in zip(rows, scored, strict=True)
        for number, trie in zip(row, of_row, strict=True)
    }
    return [by_number[number] for number in range(len(by_number))]


class Layout:
    """Several blocks in one row: tokens, positions, the place of each block, and the cached keys of all."""

    def __init__(self, blocks: Sequence[Block], device: torch.device) -> None:
        self.blocks = blocks
        self.device = device
        self.cached_total = sum(block.context.remembered for block in blocks)
        tokens: list[int] = []
        positions: list[int] = []
        self.roots: list[int] = []  # the place of each trie's root among the new tokens
        self.queries: list[slice] = []  # the place of each block among the new tokens
        self.held: list[slice] = []  # the place of its cached keys among all keys
        self.own: list[slice] = []  # the place of its new keys among all keys
        cached_start = start = 0
        for block in blocks:
            cached = block.context.remembered
            before = len(block.new) - 1
            self.queries.append(slice(start, start + block.size))
            self.held.append(slice(cached_start, cached_start + cached))
            self.own.append(slice(self.cached_total + start, self.cached_total + start + block.size))
            tokens += [*block.new, *block.trie.tokens[1:]]
            positions += [*range(cached, cached + before), *(cached + before + block.trie.depths)]
            self.roots.append(start + before)
            cached_start += cached
            start += block.size
        self.length = start
        self.tokens = torch.tensor([tokens], device=device)
        self.positions = torch.tensor([positions], device=device)

    def cache(self) -> Cache:
        """The cached keys of all blocks, one block after the other."""
        memories = (block.context.memory for block in self.blocks)
        caches = [memory for memory in memories if isinstance(memory, Cache) and memory.layers]
        return Cache(
            [
                (torch.cat([k for k, _ in layer], 2), torch.cat([v for _, v in layer], 2))
                for layer in zip(*(cache.layers for cache in caches), strict=True)
            ]
        )

    def edges(
        self,
        hidden: Tensor,
        log_probs: TokenLogProbs,
        chunk: int,
        vocabulary: int,
        scoring_options: ScoringOptions,
        *,
        tries_only: bool = False,
    ) -> Floats:
        """log p of the edges of all blocks, from the last layer (L, D): (temperatures, edges).

        The last layer may be that of the tries only, without contexts.
        """
        roots = self.roots
        if tries_only:
            roots = [0, *itertools.accumulate(len(block.trie) for block in self.blocks)][:-1]
        rows = [root + block.trie.edge_nodes for root, block in zip(roots, self.blocks, strict=True)]
        tokens = [block.trie.edge_tokens for block in self.blocks]
        return edge_log_probs(
            hidden,
            np.concatenate(rows),
            np.concatenate(tokens),
            log_probs,
            chunk,
            vocabulary,
            scoring_options,
        )

    def scored_tries(self, edges: Floats, cache: Cache | None) -> list[ScoredTrie]:
        """The scored trie of each block, with the row's keys if there is a cache; NaN is a CadecError."""
        if np.isnan(edges).any():
            raise CadecError("the D-LM's scores are not numbers: it is damaged", "get the bundle again")
        scored = []
        start = 0
        for index, block in enumerate(self.blocks):
            end = start + len(block.trie.edge_nodes)
            root = self.cached_total + self.roots[index]
            held = self.held[index]
            context = (*range(held.start, held.stop), *range(root - len(block.new) + 1, root + 1))
            memory = Keys(cache, context, root) if cache is not None else None
            scored.append(ScoredTrie(block.trie, edges[:, start:end], memory))
            start = end
        return scored


def edge_log_probs(
    hidden: Tensor,
    rows: Ints,
    tokens: Ints,
    log_probs: TokenLogProbs,
    chunk: int,
    vocabulary: int,
    scoring_options: ScoringOptions,
) -> Floats:
    """log p of `tokens` after the positions `rows` of (L, D): (temperatures, edges).

    `log_probs` is never asked for more than `chunk` rows.
    """
    if not len(rows):
        return np.empty((len(scoring_options.temperatures), 0))
    # Edges in the order of their rows, so that a chunk of logits serves all edges that start in it.
    order = np.argsort(rows, kind="stable")
    used, places = np.unique(rows[order], return_inverse=True)
    starts = range(0, len(used), chunk)
    bounds = [*np.searchsorted(places, starts), len(rows)]
    own, labels = (torch.from_numpy(each).to(hidden.device) for each in (places, tokens[order]))
    found = []
    for start, first, last in zip(starts, bounds[:-1], bounds[1:], strict=True):
        chosen = log_probs(
            hidden[_index(used[start : start + chunk], hidden.device)],
            own[first:last] - start,
            labels[first:last],
            scoring_options.temperatures,
        )
        found.append(smooth(chosen, scoring_options.alpha, vocabulary))
    made = np.empty((len(scoring_options.temperatures), len(rows)))
    made[:, order] = torch.cat(found, 1).double().cpu().numpy()
    return made


def _index(numbers: Ints, device: torch.device) -> Tensor | slice:
    """Rising numbers as an index: a slice, which copies nothing, if they are consecutive."""
    first, last = int(numbers[0]), int(numbers[-1])
    if last - first + 1 == len(numbers):
        return slice(first, last + 1)
    return torch.from_numpy(numbers).to(device)
