"""Linears with int8 weights, for inference on a CPU.

Each linear is one oneDNN product of integers. Weights have one scale per output channel, activations one per
row, computed from the row itself (dynamic): the output for a row never depends on the rest of the batch.
Between linears all is float32. With compiled operations (`kernels`), that depends on a row alone as well.
With torch's own operations, last digits change with the shape of the sums in attention, padding included, and
can change how a number is rounded: padded batches equal single rows to about 1e-2. Parts of a row that do not
attend to each other (`layers.Part`) have shapes of their own: they are bit for bit the same as alone, with
any number of threads.
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor, nn

from cadec_cli.models.int8.kernels import (
    FINER,
    QuantisedRows,
    coarse,
    fine,
    integer_product,
    quantise_remainder,
    quantise_rows,
    scale,
    takes,
    with_scales,
)
from cadec_cli.models.layers import script

# CPUs without VNNI add pairs of products in 16 bits. With 8-bit activations (1 … 255, zero at 128), only
# 7-bit weights can't overflow: 2 · 255 · 64 < 2¹⁵. 7-bit activations with 8-bit weights were as good or worse
# on the models tried; 8 bits for both, which overflows, had at least four times the error.
WEIGHT_LIMIT = 64
# For CPUs that add pairs of products in 32 bits.
FULL_WEIGHT_LIMIT = 127


class Int8Linear(nn.Module):
    """A linear with int8 weights; it replaces the float linear that it is made from."""

    weight: Tensor  # packed for oneDNN
    scales: Tensor  # (out)
    zeros: Tensor  # (out)
    bias: Tensor | None

    def __init__(self, linear: nn.Linear, limit: int = WEIGHT_LIMIT) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        weight = linear.weight.detach().float()  # (out, in)
        # A channel of zeros has any scale; NaN must stay NaN, for the caller to see.
        scales = torch.where(weight.abs().amax(1) == 0, 1, weight.abs().amax(1) / limit)
        integers = (weight / scales[:, None]).round().to(torch.int8)
        bias = None if linear.bias is None else linear.bias.detach().float().clone()
        self.register_buffer("weight", torch.ops.onednn.qlinear_prepack(integers, None), persistent=False)
        self.register_buffer("scales", scales, persistent=False)
        self.register_buffer("zeros", torch.zeros(len(scales), dtype=torch.int32), persistent=False)
        self.register_buffer("bias", bias, persistent=False)

    def forward(self, x: Tensor | QuantisedRows) -> Tensor:
        """(…, in) → (…, out); for rows that are already rounded, the product without scales and bias."""
        if isinstance(x, QuantisedRows):
            return integer_product(x.integers, self.weight, self.scales, self.zeros)
        if not takes(x):
            return script(coarse)(x, self.weight, self.scales, self.zeros, self.bias)
        rows = quantise_rows(x.reshape(-1, self.in_features))
        product = integer_product(rows.integers, self.weight, self.scales, self.zeros)
        return scale(product, rows, self.bias).view(*x.shape[:-1], self.out_features)

    def __deepcopy__(self, memo: dict[int, object]) -> Int8Linear:
        # Packed weights are never written to, and can't be copied.
        return self

    def extra_repr(self) -> str:
        """Sizes, for print(model)."""
        return f"{self.in_features}, {self.out_features}, int8"


class FineInt8Linear(Int8Linear):
    """The same with activations of 16 bits, as two integers of 8: rounded, and the rounded remainder.

    Rows of pretrained networks have a few numbers that are a hundred times the others; with 8 bits the others
    would be rounded away. Weights have 8 bits where a CPU can add products of 8 bits exactly: for
    Gemma-3-270M, PMI within a list is then off by 0.3 nats (of a spread of 3), with 7 bits by 0.5, with 8-bit
    activations by 0.8.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__(linear, FULL_WEIGHT_LIMIT if adds_exactly() else WEIGHT_LIMIT)

    def forward(self, x: Tensor | QuantisedRows) -> Tensor:
        """(…, in) → (…, out)."""
        assert isinstance(x, Tensor)
        if not takes(x):
            return script(fine)(x, self.weight, self.scales, self.zeros, self.bias)
        plain = x.reshape(-1, self.in_features)
        rows = quantise_rows(plain)
        product = integer_product(rows.integers, self.weight, self.scales, self.zeros)
        left_over = quantise_remainder(plain, rows)
        product.add_(
            integer_product(left_over.integers, self.weight, self.scales, self.zeros), alpha=1 / FINER
        )
        # By torch, which uses all cores: outputs of pretrained networks can be very wide.
        made = with_scales(product[: rows.rows], rows.largest[:, None], self.bias)
        return made.view(*x.shape[:-1], self.out_features)


@cache
def adds_exactly() -> bool:
    """Tell whether this CPU adds products of 8 bits without overflow (with VNNI, as in most since 2021)."""
    ones = nn.Linear(64, 16, bias=False)
    with torch.no_grad():
        ones.weight.fill_(1.0)  # the largest integer there is
        return bool((Int8Linear(ones, FULL_WEIGHT_LIMIT)(torch.ones(2, 64)) - 64).abs().max() < 1)


@cache
def int8_available() -> bool:
    """Tell whether int8 linears work here; not every build of torch has oneDNN."""
    try:
        linear = nn.Linear(32, 32)
        x = torch.randn(3, 32)
        with torch.no_grad():
            return bool((Int8Linear(linear)(x) - linear(x)).abs().max() < 0.2)
    except (AttributeError, RuntimeError):
        return False
