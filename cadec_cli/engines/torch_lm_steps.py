"""Our D-LM stepped token by token, after contexts and without them, for the C-aware beam.

Shapes: B sentences, K live hypotheses of each, N rows of the network (up to two per sentence), V vocabulary.
"""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Sequence

import torch
from torch import Tensor

from cadec_cli.engines.smoothing import smoothed
from cadec_cli.method.objectives import CONDITIONAL, FREE
from cadec_cli.method.options import Reading
from cadec_cli.models.doclm import DocumentLM
from cadec_cli.models.layers import Part, RoomyCache

# Tokens of contexts read in one row: small products are slow, large rows take memory.
ROW = 640


class LMSteps:
    """The D-LM's two streams, after the context and without it, of all sentences as one batch.

    A row holds one context and, behind it, all live hypotheses of its sentence as a tree: a step appends a
    node for each of them, and a mask tells every node its ancestors. So nothing is reordered or copied when
    beams change, and a context is held once for all of them. A sentence without context has one row for
    both streams: its PMI is 0 exactly.
    """

    def __init__(
        self, lm: DocumentLM, contexts: Sequence[Sequence[int]], terms: Sequence[str], reading: Reading
    ) -> None:
        if len(reading.temperatures) != 1:
            raise ValueError("a beam is read at one temperature")
        uses_conditional, uses_free = (term in terms for term in (CONDITIONAL, FREE))
        self.lm = lm
        self.reading = reading
        self.device = lm.embedding.weight.device
        contexts = contexts if uses_conditional else [context[:1] for context in contexts]
        lengths = torch.tensor([len(context) for context in contexts], device=self.device)
        sentences = torch.arange(len(contexts), device=self.device)
        self.conditional = sentences if uses_conditional else None  # (B) row of each sentence
        self.free: Tensor | None = None  # (B)
        self.owners = sentences  # (N) sentence of each row
        self.lengths = lengths  # (N) of its context
        if uses_free:
            # Every context starts with the boundary, all that the free stream sees: it is taken from there.
            apart = (lengths > 1).nonzero()[:, 0]
            self.free = sentences.clone()
            self.free[apart] = len(contexts) + torch.arange(len(apart), device=self.device)
            self.owners = torch.cat([sentences, apart])
            self.lengths = torch.cat([lengths, torch.ones_like(apart)])
        hidden, cache, starts = self._read(contexts)
        slots = torch.arange(int(lengths.max()), device=self.device)  # (S)
        self._context = slots < self.lengths[:, None]  # (N, S)
        where = starts[self.owners][:, None] + torch.where(self._context, slots, 0)  # (N, S) in what was read
        self._hidden = hidden[where.gather(1, self.lengths[:, None] - 1)]  # (N, K, D) after the newest tokens
        self._cache = cache.laid_out(where)
        self._ancestors = torch.zeros(
            len(contexts), 1, 0, dtype=torch.bool, device=self.device
        )  # (B, K, nodes)
        self._depth = 0

    def _read(self, contexts: Sequence[Sequence[int]]) -> tuple[Tensor, RoomyCache, Tensor]:
        """Read contexts behind one another in one row, each attending to itself: no padding is computed.

        Returns (all tokens, D), a cache of one row with all of them and where in it each context starts.
        """
        cache = RoomyCache()
        hidden = []
        starts = [0, *itertools.accumulate(map(len, contexts))]
        first = 0
        while first < len(contexts):
            end = max(first + 1, bisect.bisect_right(starts, starts[first] + ROW) - 1)
            hidden.append(self._read_row(contexts[first:end], cache))
            first = end
        return torch.cat(hidden), cache, torch.tensor(starts, device=self.device)

    def _read_row(self, contexts: Sequence[Sequence[int]], cache: RoomyCache) -> Tensor:
        seen = cache.length
        parts = []
        start = 0
        for context in contexts:
            end = start + len(context)
            mask = torch.ones(len(context), len(context), dtype=torch.bool, device=self.device).tril()
            parts.append(Part(slice(start, end), slice(0, 0), slice(seen + start, seen + end), mask))
            start = end
        tokens = torch.tensor([[token for context in contexts for token in context]], device=self.device)
        places = torch.tensor([[place for one in contexts for place in range(len(one))]], device=self.device)
        return self.lm.hidden(tokens, places, tuple(parts), cache)[0]

    def log_probs(self) -> dict[str, Tensor]:
        """log p of every next token, (B·K, V), by term."""
        logits = self.lm.logits(self._hidden).float()  # (N, K, V)
        if self.reading.temperatures[0] != 1:
            logits.div_(self.reading.temperatures[0])
        log_probs = smoothed(torch.log_softmax(logits, -1), self.reading.alpha, logits.size(-1))
        rows = {CONDITIONAL: self.conditional, FREE: self.free}
        return {term: _taken(log_probs, own).flatten(0, 1) for term, own in rows.items() if own is not None}

    def step(self, tokens: Tensor, parents: Tensor) -> None:
        """Append a node for each token, (B, K), to those numbered by parents."""
        count, width = tokens.shape
        nodes = self._ancestors.size(2)
        before = self._ancestors.gather(1, parents[:, :, None].expand(-1, -1, nodes))
        itself = torch.eye(width, dtype=torch.bool, device=self.device).expand(count, -1, -1)
        self._ancestors = torch.cat([before, itself], 2)  # (B, K, nodes + K)
        context = self._context[:, None].expand(-1, width, -1)
        mask = torch.cat([context, self._ancestors[self.owners]], 2)  # (N, K, S + nodes + K)
        positions = (self.lengths + self._depth)[:, None].expand(-1, width)
        self._depth += 1
        self._hidden = self.lm.hidden(tokens[self.owners], positions, mask, self._cache)

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences only, in rising order."""
        rows = torch.isin(self.owners, sentences).nonzero()[:, 0]
        new_row = torch.zeros_like(self.owners)
        new_row[rows] = torch.arange(len(rows), device=self.device)
        self.conditional = None if self.conditional is None else new_row[self.conditional[sentences]]
        self.free = None if self.free is None else new_row[self.free[sentences]]
        self.owners = torch.searchsorted(sentences, self.owners[rows])
        self.lengths = self.lengths[rows]
        self._context = self._context[rows]
        self._ancestors = self._ancestors[sentences]
        self._cache = self._cache.rows(rows)


def _taken(held: Tensor, rows: Tensor) -> Tensor:
    """Rows by number, which are many megabytes and not copied where they follow one another."""
    first = int(rows[0]) if len(rows) else 0
    following = torch.arange(first, first + len(rows), device=rows.device)
    return held[first : first + len(rows)] if torch.equal(rows, following) else held[rows]
