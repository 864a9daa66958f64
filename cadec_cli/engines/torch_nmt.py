"""Our S-NMT in torch, stepped token by token: what the C-aware beam translates with."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from cadec_cli.method.hypotheses import TokenText
from cadec_cli.method.lengths import LengthLimits
from cadec_cli.models.layers import Cache
from cadec_cli.models.output_layer import all_log_probs
from cadec_cli.models.transformer import Source, Transformer
from cadec_cli.text.subwords import BOS, EOS, PAD


class TorchTranslationModel:
    """The S-NMT between the texts of two languages; `text` is the target's."""

    def __init__(
        self,
        network: Transformer,
        source: TokenText,
        text: TokenText,
        limits: LengthLimits | None = None,
    ) -> None:
        self.network = network
        self.text = text
        self.limits = limits or LengthLimits()
        self.positions = network.config.positions
        self._source = source

    def encode(self, sentence: str) -> list[int]:
        """A source sentence in ids, without EOS."""
        return self._source.encode(sentence)

    def steps(self, sources: Sequence[Sequence[int]]) -> NMTSteps:
        """Begin to translate sentences (ids without EOS)."""
        device = self.network.target_embedding.weight.device
        return NMTSteps(self.network, self.network.encode(with_ends(sources, device)))


class NMTSteps:
    """Sentences being translated: rows of the decoder, and the sources they attend to."""

    def __init__(self, network: Transformer, encoded: Source) -> None:
        self._network = network
        self._device = network.target_embedding.weight.device
        self._encoded = encoded
        self._cache = Cache()
        self._count = encoded.mask.size(0)

    def log_probs(self, tokens: Tensor | None) -> Tensor:
        """Append tokens (B, K), at the start BOS, and give log p of every next one: (B·K, V)."""
        if tokens is None:
            tokens = torch.full((self._count, 1), BOS, device=self._device)
        hidden = self._network.hidden_states(tokens.reshape(-1, 1), self._encoded, self._cache)  # (B·K, 1, D)
        return all_log_probs(self._network.output, hidden[:, -1])

    def keep(self, rows: Tensor, *, same_sources: bool) -> None:
        """Go on with these rows; where each still has the source it had, sources need no reordering."""
        stay = same_sources and torch.equal(rows, torch.arange(len(rows), device=rows.device))
        if not stay:  # what is in order already need not be copied
            self._cache = self._cache.rows(rows)
        if not same_sources:
            self._encoded = self._encoded.rows(rows)


def with_ends(sentences: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """Sentences with their EOS as one tensor, padded on the right."""
    return padded_rows([[*sentence, EOS] for sentence in sentences], device)


def padded_rows(rows: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """Rows of ids as one tensor, padded on the right."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows], device=device)
