"""Linears of rounded rows and int8 weights, as functions that TorchScript can take (`scripting`)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

# Rows become integers from 1 to 255, zero at 128.
ACTIVATION_LIMIT, ZERO = 127, 128
# oneDNN makes a kernel for every number of rows, which takes as long as it then takes to use it on a hundred,
# and keeps a thousand of them: numbers of rows are rounded up, so that there are fewer.
ROWS_STEP = 8
# What rounding leaves over is at most ½: times this, it is from -127 to 127.
FINER = 2.0 * ACTIVATION_LIMIT

# x (…, in), packed weights, their scales (out) and zeros (out), bias (out) or none → (…, out)
Linear = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor | None], Tensor]


def coarse(x: Tensor, weight: Tensor, scales: Tensor, zeros: Tensor, bias: Tensor | None) -> Tensor:
    """A linear of rows rounded to 8 bits."""
    rows = x.reshape(-1, x.size(-1))
    scale = _largest(rows)
    product = integer_product(_round_to_bytes(_spread(rows, scale)), weight, scales, zeros)
    return with_scales(product[: rows.size(0)], scale, bias).view(x.size()[:-1] + scales.size())


def fine(
    x: Tensor, weight: Tensor, scales: Tensor, zeros: Tensor, bias: Tensor | None, finer: float = FINER
) -> Tensor:
    """A linear of rows rounded to 16 bits: rounded to 8, and what that left over likewise."""
    rows = x.reshape(-1, x.size(-1))
    scale = _largest(rows)
    spread = _spread(rows, scale)
    integers = _round_to_bytes(spread.clone())
    product = integer_product(integers, weight, scales, zeros)
    product.add_(
        integer_product(_round_to_bytes(_left_over(spread, integers)), weight, scales, zeros),
        alpha=1 / finer,
    )
    return with_scales(product[: rows.size(0)], scale, bias).view(x.size()[:-1] + scales.size())


def _largest(rows: Tensor) -> Tensor:
    """The largest number of each row, whatever its sign: (rows, 1)."""
    # torch's norm and aminmax along rows are ten times slower than this.
    return torch.maximum(rows.amax(1, keepdim=True), -rows.amin(1, keepdim=True)).clamp_(min=1e-20)


def _spread(rows: Tensor, largest: Tensor, limit: int = ACTIVATION_LIMIT) -> Tensor:
    """Rows whose largest numbers are the largest integer."""
    return rows * (limit / largest)


def _round_to_bytes(spread: Tensor, zero: int = ZERO, step: int = ROWS_STEP) -> Tensor:
    """Numbers from -127 to 127, which are written over, as bytes.

    Behind the rows come some of anything, up to a round number.
    """
    count = spread.size(0)
    made = torch.empty([count + -count % step, spread.size(1)], dtype=torch.uint8)
    # Without its fraction, a number that ½ was added to is rounded. torch takes five times as long from
    # float32 to uint8 at once: that goes through 64 bits.
    made[:count] = spread.add_(zero + 0.5).to(torch.int16)
    return made


def _left_over(spread: Tensor, integers: Tensor, zero: int = ZERO, finer: float = FINER) -> Tensor:
    return (spread - integers[: spread.size(0)].float().sub_(zero)).mul_(finer)


def integer_product(
    integers: Tensor,
    weight: Tensor,
    scales: Tensor,
    zeros: Tensor,
    limit: int = ACTIVATION_LIMIT,
    zero: int = ZERO,
) -> Tensor:
    """Rows of bytes times packed weights, over 127."""
    nothing: list[int | float | complex | None] = []
    # No bias here: it is added after the row's own scale.
    made: Tensor = torch.ops.onednn.qlinear_pointwise(
        integers, 1 / limit, zero, weight, scales, zeros, None, 1.0, 0, torch.float32, "none", nothing, ""
    )
    return made


def with_scales(product: Tensor, scale: Tensor, bias: Tensor | None) -> Tensor:
    """Products with the scales of their rows, and the bias."""
    if bias is None:
        return product.mul_(scale)
    return torch.addcmul(bias, product, scale, out=product)
