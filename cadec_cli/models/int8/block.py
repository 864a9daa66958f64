"""Blocks of int8 networks with compiled operations between products, each a single pass over the rows.

The results differ from `layers.Block`'s in the last digits only. Between products it is two to three times as
fast.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TypeVar, cast

import torch
from torch import Tensor, nn

from cadec_cli.errors import CadecError
from cadec_cli.models.int8.kernels import (
    ACTIVATIONS,
    QuantisedRows,
    activate_and_quantise,
    add_norm_and_quantise,
    attend_and_quantise,
    attend_in_parts_and_quantise,
    available,
    norm_and_quantise,
    quantise_rows,
    scale,
    scale_and_add,
    takes,
)
from cadec_cli.models.int8.linear import Int8Linear, int8_available
from cadec_cli.models.layers import Block, Cache, Mask, places_of


class FusedBlock(Block):
    """A block made of another's parts; all of its linears must have int8 weights and a bias."""

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
        normed = self._round_rows(rows, self.attention_norm)
        made = self._self_attention(normed, batch, mask, causal, cache, layer)
        kept = rows if asked is None else rows[asked]
        after = self.cross_norm if source is not None else self.feed_forward_norm
        out = self.attention.out
        if context is not None:
            rows = context(self._add_residual(kept, made, out, self.attention_norm).view(batch, -1, width))
            rows = rows.reshape(-1, width).contiguous()
            normed = self._round_rows(rows, after)
        else:
            rows, normed = self._add_and_round(kept, made, out, self.attention_norm, after)
        if source is not None:
            (queries,) = self._project(normed, self.cross.query, batch, 1)
            made = attend_and_quantise(queries, *source, source_mask)
            rows, normed = self._add_and_round(
                rows, made, self.cross.out, self.cross_norm, self.feed_forward_norm
            )
        inner = self.feed_forward.inner
        made = activate_and_quantise(inner(normed), normed, inner.bias, self._activation)
        return self._add_residual(rows, made, self.feed_forward.outer, self.feed_forward_norm).view(
            batch, -1, width
        )

    def _self_attention(
        self,
        normed: QuantisedRows,
        batch: int,
        mask: Mask | None,
        causal: bool,
        cache: Cache | None,
        layer: int,
    ) -> QuantisedRows:
        queries, keys, values = self._project(normed, self.attention.qkv, batch, 3)
        if cache is not None:
            keys, values = cache.extend(layer, keys, values)
        if isinstance(mask, tuple):
            parents = [part.parents for part in mask]
            return attend_in_parts_and_quantise(queries, keys, values, places_of(mask), parents)
        if causal:
            mask = torch.ones(queries.size(2), keys.size(2), dtype=torch.bool).tril()[None, None]
        return attend_and_quantise(queries, keys, values, mask)

    def _project(self, rows: QuantisedRows, linear: nn.Module, batch: int, count: int) -> tuple[Tensor, ...]:
        """`count` projections of rows by one linear, as (B, H, T, D/H) each."""
        made = scale(linear(rows), rows, cast(Int8Linear, linear).bias)
        heads = self.attention.heads
        apart = made.view(batch, -1, count, heads, made.size(1) // (count * heads)).permute(2, 0, 3, 1, 4)
        return apart.unbind(0)

    def _round_rows(self, rows: Tensor, norm: nn.LayerNorm) -> QuantisedRows:
        """The input of a part of the block."""
        return norm_and_quantise(rows, norm) if self.pre_norm else quantise_rows(rows)

    def _add_residual(
        self, before: Tensor, made: QuantisedRows, linear: nn.Module, norm: nn.LayerNorm
    ) -> Tensor:
        """The input of a part of the block, plus the output of the part's last linear."""
        added = scale_and_add(linear(made), made, cast(Tensor, linear.bias), before)
        return added if self.pre_norm else norm(added)

    def _add_and_round(
        self, before: Tensor, made: QuantisedRows, linear: nn.Module, norm: nn.LayerNorm, after: nn.LayerNorm
    ) -> tuple[Tensor, QuantisedRows]:
        """The same, and the input of the next part, whose norm is `after`."""
        if self.pre_norm:
            return add_norm_and_quantise(linear(made), made, cast(Tensor, linear.bias), before, after)
        added = self._add_residual(before, made, linear, norm)
        return added, quantise_rows(added)


# Networks with int8 weights, for inference on a CPU: several times as fast as float32 at paper size.


M = TypeVar("M", bound=nn.Module)


def quantise(model: M) -> M:
    """Copy a network for inference on a CPU, its linears (a tied output too) with int8 weights.

    Embeddings, norms, attention and everything else between linears stay float32, by compiled operations
    where they are available.
    """
    devices = {parameter.device.type for parameter in model.parameters()}
    if devices - {"cpu"}:
        raise CadecError(
            f"int8 weights are for CPUs, and this model is on {', '.join(sorted(devices - {'cpu'}))}",
            "use it as it is, or load it on the CPU",
        )
    if not int8_available():
        raise CadecError("this build of torch has no int8 linears for this machine", "use float32 weights")
    # deepcopy takes the memo's entries for finished copies: linears are replaced, and never copied as floats.
    linears = [part for part in model.modules() if type(part) is nn.Linear]
    made: M = copy.deepcopy(model, {id(linear): Int8Linear(linear) for linear in linears})
    if available():
        for parent in list(made.modules()):
            for name, part in parent.named_children():
                if type(part) is Block:
                    setattr(parent, name, FusedBlock(part))
    return made.requires_grad_(False).eval()
