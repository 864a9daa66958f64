"""Does a pretrained language model mean the same in the fast way as in its own?

Masks of ours can be misunderstood without a word: an architecture may look at distances in the row, at a
window, at places in the batch. So the scores of tries are compared with those of the model's own forward
pass, which are compared with those of a single sentence that has no company and no end. Where tries disagree,
the slow way is taken; where nothing agrees, the model is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch

from cadec_cli.arrays import Floats
from cadec_cli.engines.protocols import LanguageModel, trie_for
from cadec_cli.errors import CadecError
from cadec_cli.method.context import Context
from cadec_cli.method.hypotheses import Ids
from cadec_cli.method.options import ScoringOptions
from cadec_cli.models.huggingface import Network
from cadec_cli.text.pretrained.line_text import PROBES, LineText

# Nats per token that two ways may differ by.
TOLERANCE = 1e-3
# Tokens that a test at loading reads.
QUICK = 32
_PLAIN = ScoringOptions()


class TwoWays(LanguageModel, Protocol):
    """A language model that can score in two ways."""

    network: Network
    fast: bool

    @property
    def text(self) -> LineText:
        """How it writes sentences."""
        ...


@dataclass(frozen=True)
class Probes:
    """Documents of two sentences to be chosen from lists, the second after what was chosen of the first."""

    contexts: tuple[Context, ...]
    first: tuple[tuple[Ids, ...], ...]  # hypotheses, by document
    second: tuple[tuple[Ids, ...], ...]

    @classmethod
    def of(cls, model: TwoWays, length: int = QUICK) -> Probes:
        """Two documents in the model's own tokens, the longer of at most `length` (and its positions)."""
        length = min(length, model.positions)
        size = max(1, min(5, length // 6))
        pieces = _pieces([token for probe in PROBES for token in model.text.encode(probe)], size)
        a, b, c, d = (pieces[place % len(pieces)] for place in (0, 3, 5, 8))
        first = ((a, (*a[:-1], *b[-1:]), b), (c, (*c[:1], *d[1:])))
        second = ((d, (*d[:-1], *c[-1:])), (b, a))
        # The context, two sentences and their boundaries, and the start.
        room = length - 2 * (size + 1) - 1
        long: list[Ids] = []
        while sum(len(ids) + 1 for ids in long) + size + 1 <= room:
            long.append(pieces[(2 * len(long) + 1) % len(pieces)])
        return cls((Context(tuple(long)), Context(tuple(long[:1]))), first, second)

    def scores(self, model: TwoWays) -> Floats:
        """log p of every token of every hypothesis, in the model's way, with what it remembers."""
        one = model.score([trie_for(model, ids) for ids in self.first], self.contexts, _PLAIN, remember=True)
        after = [
            context.followed_by(ids[1], scored.memory_after(1))
            for context, ids, scored in zip(self.contexts, self.first, one, strict=True)
        ]
        two = model.score([trie_for(model, ids) for ids in self.second], after, _PLAIN)
        return np.concatenate([scored.edges[0] for scored in (*one, *two)])

    def alone(self, model: TwoWays) -> tuple[Floats, Floats]:
        """log p of the tokens of one hypothesis in the model's way, and in a pass of nothing else.

        That pass ends before the sentence does: a model that looks ahead gives itself away.
        """
        ids, context = self.first[0][0], self.contexts[0]
        (scored,) = model.score([trie_for(model, self.first[0])], [context], _PLAIN)
        tokens = [model.text.start, *context.tokens(model.text.boundary)[1:], *ids[:-1]]
        with torch.inference_mode():
            row = torch.tensor([tokens], device=model.network.device)
            logits = model.network.own_logits(row, None, len(ids))[0, -len(ids) :].double()
        own = logits.log_softmax(-1)[range(len(ids)), list(ids)].cpu().numpy()
        return scored.tokens(0)[: len(ids)], own


def choose_scoring(model: TwoWays, probes: Probes, note: Callable[[str], None]) -> float | None:
    """Take the fast way if it agrees with the slow one: how far it is, at most, or None for the slow one."""
    model.fast = False
    expected = probes.scores(model)
    ours, own = probes.alone(model)
    if not np.abs(ours - own).max() <= TOLERANCE:
        raise CadecError(
            "the language model gives a sentence another score in a batch than by itself, "
            f"by {np.abs(ours - own).max():.1g} nats per token",
            "is it causal? a model that looks at what comes after can't be a D-LM",
        )
    model.fast = True
    try:
        difference = float(np.abs(probes.scores(model) - expected).max())
    except Exception:  # an architecture that does not take such a mask can fail in any way
        difference = float("inf")
    if difference <= TOLERANCE:
        return difference
    model.fast = False
    note(
        f"this language model ({model.network.config.model_type}) can't score many hypotheses in one pass: "
        "each is scored by itself, which is slower"
    )
    return None


def check_vocabulary(model: TwoWays, origin: str) -> None:
    """Refuse a tokenizer that has ids which the network has no row for."""
    if len(model.text) > model.network.vocabulary:
        raise CadecError(
            f"the tokenizer of {origin} has {len(model.text):,} tokens and its network only "
            f"{model.network.vocabulary:,}",
            "they do not belong together",
        )


def _pieces(tokens: Sequence[int], size: int) -> list[Ids]:
    """Sentences of so many tokens."""
    return [tuple(tokens[start : start + size]) for start in range(0, len(tokens) - size, size)]
