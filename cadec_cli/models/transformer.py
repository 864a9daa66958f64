"""The S-NMT: an encoder-decoder Transformer with sinusoidal positions.

A source sentence ends with EOS; the decoder reads BOS y1 … yT and predicts y1 … yT EOS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from cadec_cli.models.configs import TransformerConfig
from cadec_cli.models.layers import Block, Cache, Network, initialise, sinusoids
from cadec_cli.text.subwords import PAD

__all__ = ["DocRepair", "Source", "Transformer", "TransformerConfig", "TwoToTwo"]


@dataclass(frozen=True)
class Source:
    """An encoded batch of source sentences, projected for every decoder layer."""

    keys_values: tuple[tuple[Tensor, Tensor], ...]
    mask: Tensor  # (B, 1, 1, S)

    def rows(self, index: Tensor) -> Source:
        """Take rows by number, in any order and any number of times."""
        return Source(
            tuple((k.index_select(0, index), v.index_select(0, index)) for k, v in self.keys_values),
            self.mask.index_select(0, index),
        )


class Transformer(Network):
    """p(target | source)."""

    config: TransformerConfig
    sinusoids: Tensor
    padding = PAD  # the token that fills source sentences up

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.source_embedding = nn.Embedding(config.source_vocabulary, config.width)
        self.target_embedding = nn.Embedding(config.target_vocabulary, config.width)
        self.register_buffer("sinusoids", sinusoids(config.positions, config.width), persistent=False)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = nn.ModuleList(Block(config.shape, cross=False) for _ in range(config.encoder_layers))
        self.decoder = nn.ModuleList(Block(config.shape, cross=True) for _ in range(config.decoder_layers))
        self.encoder_norm = nn.LayerNorm(config.width) if config.pre_norm else None
        self.decoder_norm = nn.LayerNorm(config.width) if config.pre_norm else None
        self.output = nn.Linear(config.width, config.target_vocabulary, bias=not config.tied)
        initialise(self, 1)
        if config.shared_embeddings:
            self.source_embedding.weight = self.target_embedding.weight
        if config.tied:
            self.output.weight = self.target_embedding.weight

    def forward(self, source: Tensor, target: Tensor, select: Tensor | None = None) -> Tensor:
        """Score whole targets at once: logits of the next target token.

        source (B, S) and target (B, T) padded on the right; select (B, T) picks the wanted positions, so that
        padding never reaches the output layer: logits are (selected, V), or (B, T, V) without it.
        """
        x = self.hidden_states(target, self.encode(source))
        return self.logits(x if select is None else x[select])

    def encode(
        self, source: Tensor, contexts: Sequence[Callable[[Tensor], Tensor] | None] | None = None
    ) -> Source:
        """Encode source sentences (B, S), padded on the right, each ending with EOS.

        `contexts` are functions applied in each layer between self-attention and the rest, if any.
        """
        mask = (source != self.padding)[:, None, None]  # (B, 1, 1, S)
        x = self._embed(source, self.source_embedding, 0)
        for block, context in zip(self.encoder, contexts or [None] * len(self.encoder), strict=True):
            x = block(x, mask, context=context)
        if self.encoder_norm is not None:
            x = self.encoder_norm(x)
        blocks = cast(Iterable[Block], self.decoder)
        return Source(tuple(block.cross.keys_values(x) for block in blocks), mask)

    def hidden_states(self, target: Tensor, source: Source, cache: Cache | None = None) -> Tensor:
        """Run the decoder up to its last layer: (B, T) → (B, T, D). Cached positions come first."""
        seen = cache.length if cache is not None else 0
        length = target.size(1)
        mask = None
        if seen and length > 1:
            mask = torch.ones(length, seen + length, dtype=torch.bool, device=target.device).tril(seen)[
                None, None
            ]
        x = self._embed(target, self.target_embedding, seen)
        for layer, block in enumerate(self.decoder):
            x = block(
                x,
                mask,
                causal=mask is None and length > 1,
                cache=cache,
                layer=layer,
                source=source.keys_values[layer],
                source_mask=source.mask,
                context=self._decoder_context(source, layer),
            )
        return self.decoder_norm(x) if self.decoder_norm is not None else x

    def logits(self, hidden: Tensor) -> Tensor:
        """(…, D) → (…, V)."""
        y: Tensor = self.output(hidden)
        return y

    def _decoder_context(self, source: Source, layer: int) -> Callable[[Tensor], Tensor] | None:
        """The function to apply in a decoder layer between self-attention and the rest; None here."""
        return None

    def _embed(self, tokens: Tensor, embedding: nn.Embedding, start: int) -> Tensor:
        x = embedding(tokens) * self.config.width**0.5
        y: Tensor = self.dropout(x + self.sinusoids[start : start + tokens.size(1)])
        return y


class TwoToTwo(Transformer):
    """An S-NMT for the preceding and the current sentence, joined (Tiedemann & Scherrer 2017)."""


class DocRepair(Transformer):
    """From several sentence-level translations, joined, to corrected ones (Voita et al. 2019)."""
