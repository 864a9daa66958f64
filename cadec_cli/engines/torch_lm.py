"""Our D-LM: scores of whole tries, after a context and without one, for many documents in one pass.

How tries and contexts stand in a row, and what is kept of the logits, is in `rows`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from cadec_cli.engines.cores import Cores, cores_for, is_small
from cadec_cli.engines.rows import Block, Layout, distribute
from cadec_cli.engines.torch_lm_steps import LMSteps
from cadec_cli.engines.trees import Trees
from cadec_cli.method.context import Context
from cadec_cli.method.hypotheses import TokenText
from cadec_cli.method.objectives import CONDITIONAL, FREE
from cadec_cli.method.options import ScoringOptions
from cadec_cli.method.trie import ScoredTrie, Trie
from cadec_cli.models.doclm import DocumentLM
from cadec_cli.models.layers import Part, RoomyCache
from cadec_cli.models.outputs import output_log_probs

# Positions of one row: small products are slow, large rows take memory.
ROW = 960
# Tries that are worth scoring side by side where all but one are guesses: of eight, the last is right in one
# case of five.
TRIES = 8
# Rows of logits (rows × vocabulary) that exist at a time.
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
        """A trie for each core; a large network's one trie is as quick with very many of them."""
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
            self.network.logits,
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
        by_number = {
            number: scored
            for row, of_row in zip(rows, made, strict=True)
            for number, scored in zip(row, of_row, strict=True)
        }
        return [by_number[number] for number in range(len(blocks))]

    @torch.inference_mode()  # of the thread that it runs in
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
    """What each context sees, and each trie, which alone is asked for."""
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
