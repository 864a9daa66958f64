"""The compiled operations on rows of float32 on a CPU, as functions of tensors (those that it `takes`).

The C code does not check addresses and sizes. So everything here is allocated as it expects, whatever the
defaults of torch are, and tensors from elsewhere are checked first.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from cadec_cli.arrays import Ints
from cadec_cli.models.int8.compile import PLAIN, identity, library_path

# torch's name for the CPU's capability → the libraries that the CPU can run, best first.
LEVELS = {"AVX512": ("avx512", "avx2"), "AVX2": ("avx2",)}

_POINTER, _COUNT, _FLOAT, _KIND = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float, ctypes.c_int32
_ARGUMENTS = {
    "cadec_round": [_POINTER, _COUNT, _COUNT, _COUNT, _POINTER, _POINTER],
    "cadec_round_left_over": [_POINTER, _COUNT, _COUNT, _COUNT, _POINTER, _POINTER, _POINTER],
    "cadec_level_round": [
        *(_POINTER, _COUNT, _COUNT, _COUNT, _POINTER),
        *(_POINTER, _POINTER, _POINTER),
    ],
    "cadec_rms_norm": [_POINTER, _COUNT, _COUNT, _POINTER, _FLOAT, _POINTER],
    "cadec_norm_round": [_POINTER, _COUNT, _COUNT, _POINTER, _POINTER, _FLOAT, _POINTER, _POINTER, _POINTER],
    "cadec_activate_round": [_POINTER, _COUNT, _COUNT, _POINTER, _POINTER, _KIND, _POINTER, _POINTER],
    "cadec_scale": [_POINTER, _COUNT, _COUNT, _POINTER, _POINTER],
    "cadec_scale_add": [_POINTER, _COUNT, _COUNT, _POINTER, _POINTER, _POINTER, _POINTER],
    "cadec_scale_add_norm_round": [
        *(_POINTER, _COUNT, _COUNT, _POINTER, _POINTER, _POINTER, _POINTER),
        *(_POINTER, _POINTER, _FLOAT, _POINTER, _POINTER, _POINTER),
    ],
    "cadec_log_softmax": [_POINTER, _COUNT, _COUNT, _POINTER, _POINTER, _FLOAT],
    "cadec_log_probs": [
        *(_POINTER, _COUNT, _COUNT, _POINTER, _POINTER, _FLOAT),
        *(_COUNT, _POINTER, _POINTER, _POINTER),
    ],
    "cadec_some_logits": [
        *(_POINTER, _COUNT, _COUNT, _POINTER, _POINTER, _FLOAT, _COUNT),
        *(_COUNT, _POINTER, _POINTER, _POINTER, _POINTER, _POINTER),
    ],
    "cadec_turn": [
        *(_POINTER, _COUNT, _COUNT, _COUNT, _COUNT, _POINTER, _POINTER),
        *(_POINTER, _POINTER, _FLOAT, _POINTER, _POINTER),
        *(_POINTER, _POINTER, _POINTER, _POINTER),
    ],
    "cadec_gate_round": [
        *(_POINTER, _COUNT, _COUNT, _POINTER, _POINTER, _KIND),
        *(_POINTER, _POINTER, _POINTER, _POINTER),
    ],
    "cadec_attend": [
        *(_POINTER, _COUNT, _KIND, _POINTER, _POINTER, _POINTER, _POINTER),
        *(_COUNT, _COUNT, _COUNT, _FLOAT, _POINTER, _POINTER, _POINTER),
    ],
}


def library() -> ctypes.CDLL | None:
    """The compiled library, or None. Other Python threads can run while it computes."""
    return _load_best()[1]


def level() -> str | None:
    """The instruction-set level that the library was compiled for; None without a library."""
    return _load_best()[0]


@cache
def _load_best() -> tuple[str | None, ctypes.CDLL | None]:
    if os.environ.get("CADEC_COMPILED") == "0":
        return None, None
    return next(((name, found) for name in runnable() if (found := load(library_path(name)))), (None, None))


def runnable() -> tuple[str, ...]:
    """The levels that this CPU can run, best first."""
    import torch

    return (*LEVELS.get(torch.backends.cpu.get_cpu_capability(), ()), PLAIN)


def load(path: Path) -> ctypes.CDLL | None:
    """Load a library; None if it is missing, can't be loaded, or was compiled from other sources."""
    try:
        found = ctypes.CDLL(str(path))
        found.cadec_source.restype = ctypes.c_char_p
        if found.cadec_source() != identity().encode():
            return None
        for name, arguments in _ARGUMENTS.items():
            function = getattr(found, name)
            function.argtypes = arguments
            function.restype = ctypes.c_int32 if name == "cadec_attend" else None
    except (OSError, AttributeError):
        return None
    return found


# Linears of rounded rows and int8 weights, as functions that TorchScript can compile (`layers.script`).


# Rows become integers from 1 to 255, zero at 128.
ACTIVATION_LIMIT, ZERO = 127, 128
# oneDNN makes a kernel for every number of rows, which takes as long as a hundred uses of it, and keeps a
# thousand of them. So numbers of rows are rounded up to a few values.
ROWS_STEP = 8
# The remainder of rounding is at most ½: times this, it is from -127 to 127.
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
    """A linear of rows rounded to 16 bits: rounded to 8, and the remainder rounded to 8 as well."""
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
    """The largest absolute value of each row: (rows, 1)."""
    # torch's norm and aminmax along rows take ten times as long.
    return torch.maximum(rows.amax(1, keepdim=True), -rows.amin(1, keepdim=True)).clamp_(min=1e-20)


def _spread(rows: Tensor, largest: Tensor, limit: int = ACTIVATION_LIMIT) -> Tensor:
    """Scale each row so that its largest absolute value becomes `limit`."""
    return rows * (limit / largest)


def _round_to_bytes(spread: Tensor, zero: int = ZERO, step: int = ROWS_STEP) -> Tensor:
    """Round numbers from -127 to 127 to bytes; `spread` is overwritten.

    The number of rows is rounded up; the added rows at the end are not initialised.
    """
    count = spread.size(0)
    made = torch.empty([count + -count % step, spread.size(1)], dtype=torch.uint8)
    # Adding ½ and truncating rounds a number. Converting float32 to uint8 directly takes torch five times as
    # long, because it goes through 64 bits.
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
    """Rows of bytes times packed weights, divided by 127."""
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


# By the names in configs.ACTIVATIONS, as numbered in rows.c.
ACTIVATIONS = {"relu": 0, "gelu": 1, "swish": 2}
# Those of gates.
GATES = {"gelu": 1, "swish": 2, "gelu_tanh": 3}

# The two forms of masks, and the fields of a job, as in attention.c.
_BYTES, _PARENTS = 0, 1
_JOB = np.dtype(
    [
        (name, np.int64)
        for name in (
            *("batch", "query", "queries", "cached", "cached_keys", "own", "own_keys"),
            *("mask", "mask_stride", "out"),
        )
    ]
)
Jobs = npt.NDArray[np.void]


@dataclass(frozen=True)
class QuantisedRows:
    """Rows of bytes, with undefined spare rows at the end, and each row's largest absolute value before."""

    integers: Tensor  # (rows rounded up, in)
    largest: Tensor  # (rows)

    @property
    def rows(self) -> int:
        """The number of rows, without the spare ones."""
        return self.largest.size(0)

    @classmethod
    def empty(cls, rows: int, width: int) -> QuantisedRows:
        """Allocate rows without initialising them."""
        integers = torch.empty((rows + -rows % ROWS_STEP, width), dtype=torch.uint8, device="cpu")
        return cls(integers, _floats(rows))


def available() -> bool:
    """Tell whether there is a compiled library here."""
    return library() is not None


def takes(rows: Tensor) -> bool:
    """Tell whether there is a compiled library, and it can compute with these rows."""
    return available() and rows.dtype is torch.float32 and rows.device.type == "cpu"


def _floats(*shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.float32, device="cpu")


def quantise_rows(rows: Tensor) -> QuantisedRows:
    """Round rows (rows, in) to bytes; the rows need not be contiguous."""
    rows = rows if rows.stride(1) == 1 else rows.contiguous()
    made = QuantisedRows.empty(*rows.shape)
    _library().cadec_round(
        rows.data_ptr(), rows.stride(0), *rows.shape, made.integers.data_ptr(), made.largest.data_ptr()
    )
    return made


def level_and_quantise(rows: Tensor, factors: Tensor) -> QuantisedRows:
    """Multiply the columns of rows (rows, in) by factors (in), and round the rows to bytes."""
    rows = rows if rows.stride(1) == 1 else rows.contiguous()
    made, scratch = QuantisedRows.empty(*rows.shape), _floats(rows.size(1))
    _library().cadec_level_round(
        *(rows.data_ptr(), rows.stride(0), *rows.shape, factors.data_ptr()),
        *(scratch.data_ptr(), made.integers.data_ptr(), made.largest.data_ptr()),
    )
    return made


def rms_norm(rows: Tensor, gain: Tensor, epsilon: float) -> Tensor:
    """Divide contiguous rows (rows, in) by the root of the mean of their squares, and multiply by `gain`."""
    made = torch.empty_like(rows)
    _library().cadec_rms_norm(*(rows.data_ptr(), *rows.shape, gain.data_ptr(), epsilon, made.data_ptr()))
    return made


def quantise_remainder(rows: Tensor, first: QuantisedRows) -> QuantisedRows:
    """Round the remainder that `first` left of rows, in steps that are 254 times as fine."""
    rows = rows if rows.stride(1) == 1 else rows.contiguous()
    made = QuantisedRows(torch.empty_like(first.integers), first.largest)
    _library().cadec_round_left_over(
        *(rows.data_ptr(), rows.stride(0), *rows.shape),
        *(first.largest.data_ptr(), first.integers.data_ptr(), made.integers.data_ptr()),
    )
    return made


def norm_and_quantise(rows: Tensor, norm: nn.LayerNorm) -> QuantisedRows:
    """Norm contiguous rows (rows, in), and round them to bytes."""
    made = QuantisedRows.empty(*rows.shape)
    scratch = _floats(rows.size(1))
    _library().cadec_norm_round(
        *(rows.data_ptr(), *rows.shape, norm.weight.data_ptr(), norm.bias.data_ptr(), norm.eps),
        *(scratch.data_ptr(), made.integers.data_ptr(), made.largest.data_ptr()),
    )
    return made


def activate_and_quantise(product: Tensor, of: QuantisedRows, bias: Tensor, activation: int) -> QuantisedRows:
    """Apply scales, bias and activation to a product of rounded rows (overwritten), and round the result."""
    made = QuantisedRows.empty(of.rows, product.size(1))
    _library().cadec_activate_round(
        *(product.data_ptr(), of.rows, product.size(1), of.largest.data_ptr(), bias.data_ptr(), activation),
        *(made.integers.data_ptr(), made.largest.data_ptr()),
    )
    return made


def scale(product: Tensor, of: QuantisedRows, bias: Tensor | None) -> Tensor:
    """Apply scales and bias to a product of rounded rows, in place: (rows, out)."""
    _library().cadec_scale(
        *(product.data_ptr(), of.rows, product.size(1), of.largest.data_ptr()),
        None if bias is None else bias.data_ptr(),
    )
    return product[: of.rows]


def scale_and_add(product: Tensor, of: QuantisedRows, bias: Tensor, before: Tensor) -> Tensor:
    """Apply scales and bias to a product of rounded rows, and add it to `before`."""
    made = torch.empty_like(before)
    _library().cadec_scale_add(
        *(product.data_ptr(), of.rows, product.size(1), of.largest.data_ptr(), bias.data_ptr()),
        *(before.data_ptr(), made.data_ptr()),
    )
    return made


def add_norm_and_quantise(
    product: Tensor, of: QuantisedRows, bias: Tensor, before: Tensor, norm: nn.LayerNorm
) -> tuple[Tensor, QuantisedRows]:
    """Do the same, and return also the sum normed and rounded."""
    width = product.size(1)
    made, normed, scratch = torch.empty_like(before), QuantisedRows.empty(of.rows, width), _floats(width)
    _library().cadec_scale_add_norm_round(
        *(product.data_ptr(), of.rows, width, of.largest.data_ptr(), bias.data_ptr()),
        *(before.data_ptr(), made.data_ptr(), norm.weight.data_ptr(), norm.bias.data_ptr(), norm.eps),
        *(scratch.data_ptr(), normed.integers.data_ptr(), normed.largest.data_ptr()),
    )
    return made, normed


def log_softmax(product: Tensor, of: QuantisedRows, bias: Tensor | None, temperature: float) -> Tensor:
    """Turn logits, a product of rounded rows, into log-probabilities, in place: (rows, V)."""
    _library().cadec_log_softmax(
        *(product.data_ptr(), of.rows, product.size(1), of.largest.data_ptr()),
        *(None if bias is None else bias.data_ptr(), temperature),
    )
    return product[: of.rows]


def log_probs(
    product: Tensor, of: QuantisedRows, bias: Tensor | None, temperature: float, rows: Tensor, tokens: Tensor
) -> Tensor:
    """Log-probabilities of tokens after rows, which are in rising order; `product` is not changed."""
    rows, tokens = rows.contiguous(), tokens.contiguous()
    made = _floats(len(rows))
    _library().cadec_log_probs(
        *(product.data_ptr(), of.rows, product.size(1), of.largest.data_ptr()),
        *(None if bias is None else bias.data_ptr(), temperature),
        *(len(rows), rows.data_ptr(), tokens.data_ptr(), made.data_ptr()),
    )
    return made


def attend_and_quantise(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> QuantisedRows:
    """Attention of (B, H, T, D/H) to (B, H, S, D/H), where a boolean mask allows it: rows (B·T, D)."""
    batch, _, count, _ = queries.shape
    keys, values = (each.expand(batch, -1, -1, -1) for each in (keys, values))
    row = np.arange(batch)
    jobs = np.zeros(batch, _JOB)
    jobs["batch"], jobs["queries"], jobs["own_keys"], jobs["out"] = row, count, keys.size(2), row * count
    if mask is not None:
        mask = mask.expand(batch, 1, count, keys.size(2))
        if mask.dtype is not torch.bool:
            raise TypeError(f"the mask must be boolean, not {mask.dtype}")
        if mask.stride(3) != 1:
            mask = mask.contiguous()
        jobs["mask"], jobs["mask_stride"] = mask.data_ptr() + row * mask.stride(0), mask.stride(2)
    return _attend(queries, keys, values, jobs, batch * count, _BYTES)


@dataclass(frozen=True)
class PartJobs:
    """What the parts of one row attend to, for any number of layers."""

    jobs: Jobs
    rows: int  # queries in total
    parents: list[Ints]  # kept for as long as `jobs` has their addresses

    @classmethod
    def of(cls, places: list[list[int]], parents: list[Ints]) -> PartJobs:
        """Describe parts by the starts and ends of their queries, cached keys and new keys.

        A part's queries are the last of its new keys, and attend to themselves, their ancestors and all of
        its cached keys.
        """
        first, last, cached, cached_end, own, own_end = np.array(places).T
        jobs = np.zeros(len(places), _JOB)
        jobs["query"], jobs["queries"] = first, last - first
        jobs["cached"], jobs["cached_keys"] = cached, cached_end - cached
        jobs["own"], jobs["own_keys"] = own, own_end - own
        parents = [np.ascontiguousarray(of_keys, dtype=np.int64) for of_keys in parents]
        jobs["mask"] = [of_keys.ctypes.data for of_keys in parents]
        ends = np.cumsum(last - first)
        jobs["out"][1:] = ends[:-1]
        return cls(jobs, int(ends[-1]), parents)


def attend_in_parts_and_quantise(
    queries: Tensor, keys: Tensor, values: Tensor, places: list[list[int]], parents: list[Ints]
) -> QuantisedRows:
    """Attention of the parts of one row, each to its own cached and new keys: rows (all queries, D)."""
    work = PartJobs.of(places, parents)
    return _attend(queries, keys, values, work.jobs, work.rows, _PARENTS)


def attend_in_parts(
    queries: Tensor, keys: Tensor, values: Tensor, work: PartJobs, scaling: float | None = None
) -> Tensor:
    """The same, not rounded; several heads of queries (1, H, T, D/H) may share one of keys (1, G, S, D/H)."""
    made = _floats(work.rows, queries.size(1) * queries.size(3))
    _attend(queries, keys, values, work.jobs, work.rows, _PARENTS, scaling, made)
    return made


def _attend(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    jobs: Jobs,
    rows: int,
    told: int,
    scaling: float | None = None,
    plain: Tensor | None = None,
) -> QuantisedRows:
    """Attention in the order of `jobs`, with `rows` queries in total; `told` is the form of the masks.

    With `plain`, the result is written there, and nothing is rounded.
    """
    heads, size = queries.size(1), queries.size(3)
    if not all(map(takes, (queries, keys, values))) or keys.shape != values.shape or heads % keys.size(1):
        raise TypeError(f"attention of {queries.dtype} to {keys.dtype} and {values.dtype}")
    queries, keys, values = (
        each if each.stride(3) == 1 else each.contiguous() for each in (queries, keys, values)
    )
    if keys.stride() != values.stride():
        keys, values = keys.contiguous(), values.contiguous()
    made = QuantisedRows.empty(rows if plain is None else 0, heads * size)
    strides = (ctypes.c_int64 * 9)(
        *(stride for each in (queries, keys, values) for stride in each.stride()[:3])
    )
    enough = _library().cadec_attend(
        *(jobs.ctypes.data, len(jobs), told, queries.data_ptr(), keys.data_ptr(), values.data_ptr()),
        *(strides, heads, heads // keys.size(1), size, size**-0.5 if scaling is None else scaling),
        *(None if plain is None else plain.data_ptr(), made.integers.data_ptr(), made.largest.data_ptr()),
    )
    if not enough:
        raise MemoryError("attention")
    return made


def split_and_turn(
    product: Tensor,
    of: QuantisedRows,
    bias: Tensor | None,
    heads: tuple[int, int],
    gains: tuple[Tensor, Tensor] | None,
    epsilon: float,
    turns: tuple[Tensor, Tensor],
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries (1, H, T, D/H), keys and values (1, G, T, D/H) from a product with rounded rows, side by side.

    `heads` are H and G. Queries and keys are normed by the mean of their squares if there are `gains`, and
    turned by the cosines and sines of their positions (T, D/H).
    """
    many, few = heads
    size = product.size(1) // (many + 2 * few)
    cosine, sine = (each.contiguous() for each in turns)
    queries, keys, values = (_floats(of.rows, count, size) for count in (many, few, few))
    scratch = _floats(size)
    _library().cadec_turn(
        *(product.data_ptr(), of.rows, many, few, size, of.largest.data_ptr()),
        None if bias is None else bias.data_ptr(),
        *((None, None) if gains is None else (each.data_ptr() for each in gains)),
        *(epsilon, cosine.data_ptr(), sine.data_ptr(), scratch.data_ptr()),
        *(each.data_ptr() for each in (queries, keys, values)),
    )
    queries, keys, values = (each.transpose(0, 1)[None] for each in (queries, keys, values))
    return queries, keys, values


def gate_and_quantise(
    product: Tensor, of: QuantisedRows, bias: Tensor | None, gate: int, factors: Tensor
) -> QuantisedRows:
    """An activated gate times what it lets through, times a factor for each column, rounded.

    Both are in a product with rounded rows, the gate first.
    """
    half = product.size(1) // 2
    made, scratch = QuantisedRows.empty(of.rows, half), _floats(half)
    _library().cadec_gate_round(
        *(product.data_ptr(), of.rows, half, of.largest.data_ptr()),
        *(None if bias is None else bias.data_ptr(), gate, factors.data_ptr()),
        *(scratch.data_ptr(), made.integers.data_ptr(), made.largest.data_ptr()),
    )
    return made


class SomeLogits:
    """Log-probabilities of tokens after rows in rising order, from an output layer in several parts."""

    def __init__(self, of: QuantisedRows, temperature: float, rows: Tensor, tokens: Tensor) -> None:
        self._of, self._temperature = of, temperature
        self._rows, self._tokens = rows.contiguous(), tokens.contiguous()
        self._most, self._sum = _floats(of.rows).fill_(-torch.inf), _floats(of.rows).zero_()
        self._own = _floats(len(rows)).fill_(torch.nan)

    def add(self, product: Tensor, bias: Tensor | None, first: int) -> None:
        """Read a product that has the tokens from `first` on."""
        _library().cadec_some_logits(
            *(product.data_ptr(), self._of.rows, product.size(1), self._of.largest.data_ptr()),
            *(None if bias is None else bias.data_ptr(), self._temperature, first),
            *(len(self._rows), self._rows.data_ptr(), self._tokens.data_ptr()),
            *(self._most.data_ptr(), self._sum.data_ptr(), self._own.data_ptr()),
        )

    @property
    def totals(self) -> Tensor:
        """log Σ e^x of the logits of each row so far."""
        return self._most + self._sum.log()

    @property
    def log_probs(self) -> Tensor:
        """log p of each token; NaN of what was in no part."""
        return self._own - self.totals[self._rows]


def _library() -> ctypes.CDLL:
    found = library()
    assert found is not None
    return found
