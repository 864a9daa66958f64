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

from dataclasses import dataclass
from functools import cache
from threading import local

import torch
from torch import Tensor, nn

from cadec_cli.models.int8.kernels import (
    FINER,
    QuantisedRows,
    coarse,
    fine,
    integer_product,
    level_and_quantise,
    quantise_remainder,
    quantise_rows,
    rms_norm,
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


# The most columns of a part of a wide output layer.
OUTPUT_COLUMNS = 4096


class Int8Linear(nn.Module):
    """A linear with int8 weights; it replaces the float linear that it is made from."""

    weight: Tensor  # packed for oneDNN
    scales: Tensor  # (out)
    zeros: Tensor  # (out)
    bias: Tensor | None

    def __init__(self, linear: nn.Linear, limit: int = WEIGHT_LIMIT) -> None:
        super().__init__()
        integers, scales = round_weights(linear.weight.detach().float(), limit)
        bias = None if linear.bias is None else linear.bias.detach().float().clone()
        self._pack(integers, scales, bias)

    def _pack(self, integers: Tensor, scales: Tensor, bias: Tensor | None) -> None:
        self.out_features, self.in_features = integers.shape
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

    def round_rows(self, x: Tensor) -> QuantisedRows:
        """Rows (rows, in) as the product of integers takes them."""
        return quantise_rows(x)

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


class LevelInt8Linear(Int8Linear):
    """The same with one product, for inputs of which a few channels are far larger than the others.

    Each input channel is divided by a factor that was learnt from a text, and its weights are multiplied by
    it, so that rounding a row to 8 bits loses little of the other channels (SmoothQuant, Xiao et al. 2023).
    It takes half the time of `FineInt8Linear`. For Gemma-3-270M, log p of a token is off by 0.12 nats on
    average, where that is off by 0.06 and plain rounding by 0.19.
    """

    factors: Tensor  # (in): inputs are multiplied by it

    def __init__(self, integers: Tensor, scales: Tensor, factors: Tensor, bias: Tensor | None) -> None:
        nn.Module.__init__(self)
        self._pack(integers, scales, bias)
        self.register_buffer("factors", factors, persistent=False)

    def forward(self, x: Tensor | QuantisedRows) -> Tensor:
        """(…, in) → (…, out); for rows that are already rounded, the product without scales and bias."""
        if isinstance(x, QuantisedRows):
            return super().forward(x)
        if not takes(x):
            return super().forward(x * self.factors)
        rows = self.round_rows(x.reshape(-1, self.in_features))
        return scale(super().forward(rows), rows, self.bias).view(*x.shape[:-1], self.out_features)

    def round_rows(self, x: Tensor) -> QuantisedRows:
        """Rows (rows, in) as the product of integers takes them."""
        return level_and_quantise(x, self.factors)


class WideOutput(nn.Module):
    """An int8 output layer as several linears, whose products stay in a core's cache while they are read."""

    def __init__(self, integers: Tensor, scales: Tensor, factors: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        count = -(-len(integers) // OUTPUT_COLUMNS)
        size = -(-len(integers) // (64 * count)) * 64
        columns = [slice(first, first + size) for first in range(0, len(integers), size)]
        self.parts = nn.ModuleList(
            LevelInt8Linear(integers[own], scales[own], factors, None if bias is None else bias[own])
            for own in columns
        )

    def forward(self, x: Tensor) -> Tensor:
        """(…, in) → (…, out)."""
        return torch.cat([part(x) for part in self.parts], -1)

    def round_rows(self, x: Tensor) -> QuantisedRows:
        """Rows (rows, in) as the products of integers take them."""
        made: QuantisedRows = self.linears[0].round_rows(x)
        return made

    @property
    def bias(self) -> Tensor | None:
        """The bias of all columns."""
        biases = [part.bias for part in self.linears if part.bias is not None]
        return torch.cat(biases) if biases else None

    @property
    def linears(self) -> list[LevelInt8Linear]:
        """Its parts, in the order of their columns."""
        return [part for part in self.parts if isinstance(part, LevelInt8Linear)]


class SiblingLinear(nn.Module):
    """One of several linears that are called with the same tensor, one after the other.

    All of them are one product, which the first call computes: `shared` remembers the last one of each
    thread. So they must be called with the very same object, which nobody changes in between.
    """

    def __init__(self, shared: SharedProduct, columns: slice) -> None:
        super().__init__()
        self.shared, self.columns = shared, columns

    def forward(self, x: Tensor) -> Tensor:
        """(…, in) → (…, out)."""
        return self.shared(x)[..., self.columns]


class SharedProduct:
    """The product of several linears with one input; the last one of each thread is remembered."""

    def __init__(self, linear: nn.Module) -> None:
        self.linear = linear
        self._last = local()

    def __call__(self, x: Tensor) -> Tensor:
        """(…, in) → (…, the outputs of all)."""
        if getattr(self._last, "input", None) is not x:
            self._last.input, self._last.product = x, self.linear(x)
        product: Tensor = self._last.product
        return product


class RMSNorm(nn.Module):
    """A norm by the root of the mean of the squares, in one pass where there are compiled operations."""

    gain: Tensor  # (in)

    def __init__(self, gain: Tensor, epsilon: float) -> None:
        super().__init__()
        self.register_buffer("gain", gain.contiguous(), persistent=False)
        self.epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        """(…, in) → (…, in)."""
        if not takes(x):
            return x * (x.square().mean(-1, keepdim=True) + self.epsilon).rsqrt() * self.gain
        return rms_norm(x.reshape(-1, x.size(-1)).contiguous(), self.gain, self.epsilon).view(x.shape)


@dataclass(frozen=True)
class LevelWeights:
    """Rounded weights with the factors of their inputs: all that `LevelInt8Linear` needs but the bias."""

    integers: Tensor  # (out, in)
    scales: Tensor  # (out)
    factors: Tensor  # (in)

    @classmethod
    def of(cls, weight: Tensor, largest: Tensor) -> LevelWeights:
        """Round weights (out, in) for inputs whose channels are at most `largest` (in).

        They have 8 bits, for CPUs on which `adds_exactly` is true.
        """
        weights = weight.abs().amax(0)
        share = largest.clamp(min=_TINY) ** LEVEL / weights.clamp(min=_TINY) ** (1 - LEVEL)
        share = torch.where((weights == 0) | (largest == 0), 1, share)
        return cls(*round_weights(weight * share, FULL_WEIGHT_LIMIT), 1 / share)


# How much of the difference between input channels goes into the weights. For Gemma-3-270M, 0.6 is best: 0.4
# and 0.5 lose a third and a tenth more, 0.8 as much.
LEVEL = 0.6
_TINY = 1e-5


def round_weights(weight: Tensor, limit: int) -> tuple[Tensor, Tensor]:
    """Round weights (out, in) to integers of at most `limit`, with a scale per output channel."""
    # A channel of zeros has any scale; NaN must stay NaN, for the caller to see.
    largest = weight.abs().amax(1)
    scales = torch.where(largest == 0, 1, largest / limit)
    return (weight / scales[:, None]).round().to(torch.int8), scales


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
