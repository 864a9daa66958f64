"""Blocks of int8 networks whose operations between products are compiled: each is one pass over the rows.

The same numbers as `layers.Block`'s but for last digits, and two to three times as fast between products.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn

from cadec_cli.models.int8_linears import Int8Linear
from cadec_cli.models.layers import Block, Cache, Mask, places_of
from cadec_cli.models.row_operations import (
    ACTIVATIONS,
    Rounded,
    activated_and_rounded,
    added_normed_and_rounded,
    attended_and_rounded,
    attended_in_parts_and_rounded,
    normed_and_rounded,
    rounded,
    scaled,
    scaled_and_added,
    takes,
)


class FusedBlock(Block):
    """A block with the parts of another, all of whose linears have int8 weights and a bias."""

    def __init__(self, block: Block) -> None:
        nn.Module.__init__(self)
        self.pre_norm = block.pre_norm
        for name, part in block.named_children():
            self.add_module(name, part)
        self._activation = ACTIVATIONS[block.feed_forward.activation_name]

    def forward(
        self,
        x: Tensor,
        mask: Mask | None,
        causal: bool = False,
        cache: Cache | None = None,
        layer: int = 0,
        source: tuple[Tensor, Tensor] | None = None,
        source_mask: Tensor | None = None,
        context: Callable[[Tensor], Tensor] | None = None,
        asked: Tensor | None = None,
    ) -> Tensor:
        """(B, T, D) → (B, T, D), as in `Block`."""
        if not takes(x):
            return super().forward(x, mask, causal, cache, layer, source, source_mask, context, asked)
        batch, width = x.size(0), x.size(2)
        rows = x.reshape(-1, width).contiguous()  # (B·T, D)
        normed = self._rounded(rows, self.attention_norm)
        made = self._self_attention(normed, batch, mask, causal, cache, layer)
        kept = rows if asked is None else rows[asked]
        after = self.cross_norm if source is not None else self.feed_forward_norm
        out = self.attention.out
        if context is not None:
            rows = context(self._added(kept, made, out, self.attention_norm).view(batch, -1, width))
            rows = rows.reshape(-1, width).contiguous()
            normed = self._rounded(rows, after)
        else:
            rows, normed = self._added_and_rounded(kept, made, out, self.attention_norm, after)
        if source is not None:
            (queries,) = self._projected(normed, self.cross.query, batch, 1)
            made = attended_and_rounded(queries, *source, source_mask)
            rows, normed = self._added_and_rounded(
                rows, made, self.cross.out, self.cross_norm, self.feed_forward_norm
            )
        inner = self.feed_forward.inner
        made = activated_and_rounded(inner(normed), normed, inner.bias, self._activation)
        return self._added(rows, made, self.feed_forward.outer, self.feed_forward_norm).view(batch, -1, width)

    def _self_attention(
        self, normed: Rounded, batch: int, mask: Mask | None, causal: bool, cache: Cache | None, layer: int
    ) -> Rounded:
        queries, keys, values = self._projected(normed, self.attention.qkv, batch, 3)
        if cache is not None:
            keys, values = cache.extend(layer, keys, values)
        if isinstance(mask, tuple):
            parents = [part.parents for part in mask]
            return attended_in_parts_and_rounded(queries, keys, values, places_of(mask), parents)
        if causal:
            mask = torch.ones(queries.size(2), keys.size(2), dtype=torch.bool).tril()[None, None]
        return attended_and_rounded(queries, keys, values, mask)

    def _projected(self, rows: Rounded, linear: nn.Module, batch: int, count: int) -> tuple[Tensor, ...]:
        """Some projections of rows by one linear, as (B, H, T, D/H) each."""
        made = scaled(linear(rows), rows, cast(Int8Linear, linear).bias)
        heads = self.attention.heads
        apart = made.view(batch, -1, count, heads, made.size(1) // (count * heads)).permute(2, 0, 3, 1, 4)
        return apart.unbind(0)

    def _rounded(self, rows: Tensor, norm: nn.LayerNorm) -> Rounded:
        """What a part of the block reads."""
        return normed_and_rounded(rows, norm) if self.pre_norm else rounded(rows)

    def _added(self, before: Tensor, made: Rounded, linear: nn.Module, norm: nn.LayerNorm) -> Tensor:
        """What came before a part of the block, and what the part makes of it by its last linear."""
        added = scaled_and_added(linear(made), made, cast(Tensor, linear.bias), before)
        return added if self.pre_norm else norm(added)

    def _added_and_rounded(
        self, before: Tensor, made: Rounded, linear: nn.Module, norm: nn.LayerNorm, after: nn.LayerNorm
    ) -> tuple[Tensor, Rounded]:
        """The same, and what the next part reads, whose norm comes `after`."""
        if self.pre_norm:
            return added_normed_and_rounded(linear(made), made, cast(Tensor, linear.bias), before, after)
        added = self._added(before, made, linear, norm)
        return added, rounded(added)
