"""The hypotheses of a sentence merged by common prefixes, so that no prefix is scored twice.

Node 0 is the root: the boundary before the sentence. Every other node is a token after its parent. Edges have
log-probabilities. An edge leads from a node to a child, or from the last token of a hypothesis to the
boundary after it; that boundary needs no node because nothing follows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from cadec_cli.arrays import Floats, Ints


@dataclass(frozen=True)
class Trie:
    """Nodes, parents before their children, and the edges of each hypothesis."""

    tokens: Ints  # (nodes,) the root's is the boundary
    parents: Ints  # (nodes,) the root's is -1
    depths: Ints  # (nodes,) the root's is 0
    edge_nodes: Ints  # (edges,) where an edge starts
    edge_tokens: Ints  # (edges,) the token it leads to
    paths: tuple[tuple[int, ...], ...]  # per hypothesis: its edges in order, the one to the boundary last
    last_nodes: tuple[int, ...]  # per hypothesis: the node of its last token

    @classmethod
    def of(cls, hypotheses: Sequence[Sequence[int]], boundary: int, max_depth: int | None = None) -> Trie:
        """Merge hypotheses (ids without boundaries). Tokens deeper than `max_depth` are not scored."""
        tokens, parents, depths = [boundary], [-1], [0]
        nodes: dict[tuple[int, int], int] = {}  # (parent, token) → node
        edges: dict[tuple[int, int], int] = {}  # (parent, token) → edge
        paths, last_nodes = [], []
        for ids in hypotheses:
            kept = ids if max_depth is None else ids[:max_depth]
            node = 0
            path = []
            for token in kept:
                key = (node, int(token))
                path.append(edges.setdefault(key, len(edges)))
                if key not in nodes:
                    nodes[key] = len(tokens)
                    tokens.append(int(token))
                    parents.append(node)
                    depths.append(depths[node] + 1)
                node = nodes[key]
            if len(kept) == len(ids):
                path.append(edges.setdefault((node, boundary), len(edges)))
            paths.append(tuple(path))
            last_nodes.append(node)
        return cls(
            np.array(tokens),
            np.array(parents),
            np.array(depths),
            np.array([node for node, _ in edges], dtype=np.int64),
            np.array([token for _, token in edges], dtype=np.int64),
            tuple(paths),
            tuple(last_nodes),
        )

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def depth(self) -> int:
        """The number of tokens of the longest hypothesis."""
        return int(self.depths.max())

    def node_path(self, hypothesis: int) -> list[int]:
        """The nodes of a hypothesis from the root to its last token."""
        path = [self.last_nodes[hypothesis]]
        while path[-1]:
            path.append(int(self.parents[path[-1]]))
        return path[::-1]

    def totals(self, edge_scores: Floats) -> Floats:
        """Sum the scores of edges (…, edges) over each hypothesis: (…, hypotheses)."""
        lengths = np.array([len(path) for path in self.paths])
        if not len(lengths):
            return np.zeros((*edge_scores.shape[:-1], 0))
        flat = edge_scores[..., np.concatenate([np.array(path, dtype=np.int64) for path in self.paths])]
        ends = np.cumsum(lengths)
        running = np.concatenate([np.zeros((*flat.shape[:-1], 1)), flat.cumsum(-1)], axis=-1)
        totals: Floats = running[..., ends] - running[..., ends - lengths]
        return totals


class Memory(Protocol):
    """An engine's memory of the row in which it scored a trie."""

    def after(self, trie: Trie, hypothesis: int) -> object:
        """The memory of c̃ followed by one of the hypotheses."""
        ...


@dataclass(frozen=True)
class ScoredTrie:
    """log p of every edge of a trie after its context, at every temperature."""

    trie: Trie
    edges: Floats  # (temperatures, edges)
    memory: Memory | None = None  # if it was asked for

    @cached_property
    def totals(self) -> Floats:
        """log p(ỹ | c̃) of every hypothesis: (temperatures, hypotheses)."""
        return self.trie.totals(self.edges)

    def tokens(self, hypothesis: int, temperature: int = 0) -> Floats:
        """log p of every token of a hypothesis, the boundary after it last."""
        return self.edges[temperature, list(self.trie.paths[hypothesis])]

    def memory_after(self, hypothesis: int) -> object | None:
        """The memory for a context that continues with a hypothesis; None if none was kept."""
        return None if self.memory is None else self.memory.after(self.trie, hypothesis)
