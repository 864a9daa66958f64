"""The DocTransformer (Zhang et al. 2018): an S-NMT that also reads the preceding source sentences.

It adds an encoder of the context and, in every encoder and decoder layer, an attention to it with a gate.
With a closed gate, or without context, its output is exactly that of the S-NMT: this is why no norm follows
the gate. The names of all added parameters begin with `context`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from cadec_cli.models.configs import DocTransformerConfig, Shape
from cadec_cli.models.layers import Block, CrossAttention, initialise
from cadec_cli.models.transformer import Source, Transformer
from cadec_cli.text.subwords import PAD

__all__ = ["DocTransformer", "DocTransformerConfig", "SourceInContext", "is_new"]

# The initial bias of gates: σ(2) ≈ 0.88 of the sentence model goes through.
_OPENING = 2.0


def is_new(parameter: str) -> bool:
    """Tell by its name whether a parameter is added to those of the S-NMT."""
    return parameter.startswith("context")


@dataclass(frozen=True)
class Memory:
    """An encoded context as one layer attends to it."""

    keys_values: tuple[Tensor, Tensor]
    mask: Tensor  # (B, 1, 1, C)
    there: Tensor  # (B, 1, 1) whether a row has a context at all

    def rows(self, index: Tensor) -> Memory:
        """Take rows by number."""
        keys, values = self.keys_values
        return Memory(
            (keys.index_select(0, index), values.index_select(0, index)),
            self.mask.index_select(0, index),
            self.there.index_select(0, index),
        )


@dataclass(frozen=True)
class SourceInContext(Source):
    """Encoded sentences, and their contexts projected for every decoder layer."""

    memories: tuple[Memory, ...] = ()

    def rows(self, index: Tensor) -> SourceInContext:
        """Take rows by number, in any order and any number of times."""
        plain = super().rows(index)
        return SourceInContext(
            plain.keys_values, plain.mask, tuple(memory.rows(index) for memory in self.memories)
        )


class ContextAttention(nn.Module):
    """Attention to the context, and a gate: λ x + (1 − λ) attended, λ = σ(W [x; attended] + b)."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(shape.width) if shape.pre_norm else None
        self.attention = CrossAttention(shape.width, shape.heads)
        self.gate = nn.Linear(2 * shape.width, shape.width)
        self.dropout = nn.Dropout(shape.dropout)

    def forward(self, x: Tensor, memory: Memory) -> Tensor:
        """(B, T, D) → (B, T, D); rows without a context come out as they went in."""
        query = self.norm(x) if self.norm is not None else x
        attended = self.dropout(self.attention(query, memory.keys_values, memory.mask))
        gate = torch.sigmoid(self.gate(torch.cat([x, attended], -1)))
        return torch.where(memory.there, gate * x + (1 - gate) * attended, x)


class DocTransformer(Transformer):
    """p(target | source, preceding source sentences)."""

    config: DocTransformerConfig

    def __init__(self, config: DocTransformerConfig) -> None:
        super().__init__(config)
        self.context_encoder = nn.ModuleList(
            Block(config.shape, cross=False) for _ in range(config.context_layers)
        )
        self.context_norm = nn.LayerNorm(config.width) if config.pre_norm else None
        self.context_in_encoder = nn.ModuleList(ContextAttention(config.shape) for _ in self.encoder)
        self.context_in_decoder = nn.ModuleList(ContextAttention(config.shape) for _ in self.decoder)
        for part in (self.context_encoder, self.context_in_encoder, self.context_in_decoder):
            initialise(part, 1)
        for attention in self._attentions():
            nn.init.constant_(attention.gate.bias, _OPENING)

    # The signature differs from the S-NMT's on purpose: a caller without context has the wrong network.
    def forward(  # type: ignore[override]
        self, source: Tensor, context: Tensor, target: Tensor, select: Tensor | None = None
    ) -> Tensor:
        """Score whole targets at once; `context` (B, C) holds the preceding sentences, each with its EOS.

        A row of nothing but padding means no context. All else is as with the S-NMT.
        """
        x = self.hidden_states(target, self.encode_in_context(source, context))
        return self.logits(x if select is None else x[select])

    def encode_in_context(self, source: Tensor, context: Tensor) -> SourceInContext:
        """Encode sentences (B, S) after their contexts (B, C), both padded on the right."""
        mask, there = self._context_mask(context)
        encoded = self._embed(context, self.source_embedding, 0)
        for block in self.context_encoder:
            encoded = block(encoded, mask)
        if self.context_norm is not None:
            encoded = self.context_norm(encoded)

        def memory(attention: ContextAttention) -> Memory:
            return Memory(attention.attention.keys_values(encoded), mask, there)

        inside = _attentions(self.context_in_encoder)
        plain = self.encode(source, [_reading(attention, memory(attention)) for attention in inside])
        memories = tuple(memory(attention) for attention in _attentions(self.context_in_decoder))
        return SourceInContext(plain.keys_values, plain.mask, memories)

    def _decoder_context(self, source: Source, layer: int) -> Callable[[Tensor], Tensor] | None:
        if not isinstance(source, SourceInContext):
            return None
        attention = cast(ContextAttention, self.context_in_decoder[layer])
        return _reading(attention, source.memories[layer])

    def _context_mask(self, context: Tensor) -> tuple[Tensor, Tensor]:
        """The mask of each context, and whether the context has any tokens."""
        filled = context != PAD  # (B, C)
        there = filled.any(1)
        first = torch.zeros_like(filled)
        first[:, 0] = True
        # A row that may attend to nothing would become NaN: it attends to padding, which is discarded.
        mask = filled | (first & ~there[:, None])
        return mask[:, None, None], there[:, None, None]

    def _attentions(self) -> list[ContextAttention]:
        return [*_attentions(self.context_in_encoder), *_attentions(self.context_in_decoder)]


def _attentions(modules: nn.ModuleList) -> Iterable[ContextAttention]:
    return cast(Iterable[ContextAttention], modules)


def _reading(attention: ContextAttention, memory: Memory) -> Callable[[Tensor], Tensor]:
    return lambda x: cast(Tensor, attention(x, memory))
