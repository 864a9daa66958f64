"""Beginnings of sentences after their contexts, read by a language model as they grow, for a beam over words.

All contexts and beginnings form one tree of tokens. A shared prefix is read once, and its keys are kept. New
nodes are one row of the network and attend only to their ancestors.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cadec_cli.engines.trie_rows import smooth
from cadec_cli.errors import CadecError, option
from cadec_cli.method.hypotheses import Ids
from cadec_cli.method.options import ScoringOptions
from cadec_cli.models.layers import Cache
from cadec_cli.models.output_layer import TokenLogProbs

# The last layer (L, D) of a row, given tokens (1, L), positions (1, L), a mask (L, S + L) and a cache of S.
Hidden = Callable[[Tensor, Tensor, Tensor, Cache], Tensor]


@dataclass(frozen=True)
class NextTokens:
    """What a network says of the tokens that can come next, after rows of its last layer."""

    log_probs: Callable[[Tensor, float], Tensor]  # (rows, D) and a temperature → (rows, N)
    tokens: Tensor | None = None  # the ids of these N tokens, rising; None: all there are
    others: TokenLogProbs | None = None  # log p of any other token, if not all are there

    @classmethod
    def of_logits(cls, logits: Callable[[Tensor], Tensor]) -> NextTokens:
        """All tokens, from a function of the last layer to their logits: (rows, D) → (rows, V)."""

        def log_probs(hidden: Tensor, temperature: float) -> Tensor:
            return torch.log_softmax(logits(hidden).float().div_(temperature), -1)

        return cls(log_probs)

    def places(self, tokens: Sequence[int]) -> list[int | None]:
        """The column of each token, or None."""
        if self.tokens is None:
            return list(tokens)
        wanted = torch.tensor(tokens, device=self.tokens.device)
        found = torch.searchsorted(self.tokens, wanted).clamp_(max=len(self.tokens) - 1)
        same = self.tokens[found] == wanted
        return [place if known else None for place, known in zip(found.tolist(), same.tolist(), strict=True)]


# The most rows of logits in memory at a time.
LOGIT_ROWS = 24


@dataclass(frozen=True)
class Beginning:
    """The model's scores for the beginning of a sentence."""

    total: float  # log p of its tokens
    following: Tensor  # (N) log p of the tokens that can come next: `LanguageTrees.places` tells which


class Trees:
    """The contexts of some sentences, by term, and the beginnings that were read after them.

    A term may have several contexts for a sentence: then it is the mean of log p after each of them. Tokens
    beyond the model's positions are not scored.
    """

    def __init__(
        self,
        hidden: Hidden,
        next_tokens: NextTokens,
        contexts: Mapping[str, Sequence[Sequence[Sequence[int]]]],  # by term and sentence, each of them c̃
        *,
        positions: int,
        scoring_options: ScoringOptions,
        device: torch.device,
        cache: Cache,
    ) -> None:
        if len(scoring_options.temperatures) != 1:
            raise ValueError("a beam is read at one temperature")
        self._hidden, self._next = hidden, next_tokens
        self._contexts = contexts
        self._positions, self._reading, self._device = positions, scoring_options, device
        self._cache = cache
        self._children: list[dict[int, int]] = [{}]  # by node; node 0 is the root, before all tokens
        self._seen: list[list[int]] = [[]]  # by node: the places in the row of its ancestors and itself
        self._read: list[Tensor] = []  # the last layer (D), by place
        self._following: dict[int, Tensor] = {}  # log p of every next token, by node, for reuse
        self._edges: dict[int, float] = {}  # log p of a node after its parent

    @torch.inference_mode()
    def read(self, beginnings: Sequence[tuple[int, Ids]]) -> list[dict[str, Beginning]]:
        """The scores of beginnings, given as (number of the sentence, ids), by term."""
        wanted = [
            {
                term: [(context, self._fitting(number, ids)) for context in of_sentences[number]]
                for term, of_sentences in self._contexts.items()
            }
            for number, ids in beginnings
        ]
        paths = {
            (tuple(context), ids): None for one in wanted for pairs in one.values() for context, ids in pairs
        }
        nodes = self._grow([(*context, *ids) for context, ids in paths])
        places = {path: own[len(path[0]) :] for path, own in zip(paths, nodes, strict=True)}
        self._compute([(path[1], own) for path, own in places.items()])
        scored = {path: self._beginning(own) for path, own in places.items()}
        self._following = {own[-1]: self._following[own[-1]] for own in places.values()}
        answers = []
        for (_, whole), one in zip(beginnings, wanted, strict=True):
            answer = {}
            for term, pairs in one.items():
                found = [scored[tuple(context), ids] for context, ids in pairs]
                cut = any(len(ids) < len(whole) for _, ids in pairs)
                answer[term] = _mean(found, cut)
            answers.append(answer)
        return answers

    def _fitting(self, number: int, ids: Ids) -> Ids:
        longest = max(len(context) for one in self._contexts.values() for context in one[number])
        return ids[: max(0, self._positions - longest)]

    def _grow(self, paths: Sequence[Sequence[int]]) -> list[list[int]]:
        """The nodes of each path, the root first; the network reads new ones now."""
        tokens: list[int] = []
        depths: list[int] = []
        new: list[int] = []
        all_nodes = []
        for path in paths:
            node, nodes = 0, [0]
            for depth, token in enumerate(path):
                child = self._children[node].get(token)
                if child is None:
                    child = len(self._children)
                    self._children[node][token] = child
                    self._children.append({})
                    self._seen.append([*self._seen[node], child - 1])
                    tokens.append(token)
                    depths.append(depth)
                    new.append(child)
                node = child
                nodes.append(node)
            all_nodes.append(nodes)
        if new:
            before = len(self._read)
            seen = torch.zeros(len(new), before + len(new), dtype=torch.bool)
            for row, node in enumerate(new):
                seen[row, self._seen[node]] = True
            device = self._device
            places = torch.tensor([depths], device=device)
            hidden = self._hidden(torch.tensor([tokens], device=device), places, seen.to(device), self._cache)
            self._read += list(hidden.unbind())
        return all_nodes

    def _compute(self, paths: Sequence[tuple[Ids, Sequence[int]]]) -> None:
        """Compute the missing scores: the row after each path, and the new edges along it."""
        edges: dict[int, dict[int, int]] = {}  # parent → node → token
        ends = {nodes[-1] for _, nodes in paths}
        for ids, nodes in paths:
            for token, (parent, node) in zip(ids, itertools.pairwise(nodes), strict=True):
                if node not in self._edges:
                    edges.setdefault(parent, {})[node] = token
        missing = [node for node in {*edges, *ends} if node not in self._following]
        for parent in edges.keys() - set(missing):
            self._take(edges[parent], self._following[parent], parent)
        for first in range(0, len(missing), LOGIT_ROWS):  # rows may be a megabyte each
            nodes = missing[first : first + LOGIT_ROWS]
            made = self._next.log_probs(self._last_layer(nodes), self._reading.temperatures[0])
            rows = smooth(made, self._reading.alpha, made.size(-1))
            for node, row in zip(nodes, rows, strict=True):
                self._take(edges.get(node, {}), row, node)
                if node in ends:
                    self._following[node] = row.clone()  # a copy, so that the other rows can be freed

    def _last_layer(self, nodes: Sequence[int]) -> Tensor:
        return torch.stack([self._read[node - 1] for node in nodes])

    def _take(self, tokens: Mapping[int, int], row: Tensor, parent: int) -> None:
        """Set log p of the children of a node, given by their tokens, from the row after it."""
        places = self._next.places(list(tokens.values()))
        for (node, token), place in zip(tokens.items(), places, strict=True):
            self._edges[node] = (
                float(row[place]) if place is not None else self._other(parent, token, len(row))
            )

    def _other(self, parent: int, token: int, vocabulary: int) -> float:
        """log p of a token that has no column."""
        assert self._next.others is not None
        first, wanted = (torch.tensor([each], device=self._device) for each in (0, token))
        found = self._next.others(self._last_layer([parent]), first, wanted, self._reading.temperatures)
        return float(smooth(found, self._reading.alpha, vocabulary))

    def places(self, tokens: Sequence[int]) -> list[int | None]:
        """The column of each token in `Beginning.following`; None for a token that has none."""
        return self._next.places(tokens)

    def _beginning(self, nodes: Sequence[int]) -> Beginning:
        found = Beginning(sum(self._edges[node] for node in nodes[1:]), self._following[nodes[-1]])
        # One NaN makes all numbers of its row NaN.
        if not (math.isfinite(found.total) and math.isfinite(float(found.following[0]))):
            raise CadecError(
                "the language model gives probabilities that are not numbers",
                f"its weights may be damaged; if they are not, try {option('compute-type', 'float32')}",
            )
        return found


def _mean(found: Sequence[Beginning], cut: bool) -> Beginning:
    total = sum(one.total for one in found) / len(found)
    following = found[0].following
    if len(found) > 1:
        following = torch.stack([one.following for one in found]).mean(0)
    return Beginning(total, torch.zeros_like(following) if cut else following)
