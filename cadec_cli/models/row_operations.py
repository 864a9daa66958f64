"""What the compiled operations do to rows of float32 on a CPU, as functions of tensors (of those it `takes`).

C believes what it is told of addresses and sizes: everything here is allocated as it expects, whatever the
defaults of torch are, and what comes from elsewhere is looked at first.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from cadec_cli.arrays import Ints
from cadec_cli.kernels.compiled import library
from cadec_cli.models.int8_products import ROWS_STEP

# By the names in configs.ACTIVATIONS, as numbered in rows.c.
ACTIVATIONS = {"relu": 0, "gelu": 1, "swish": 2}

# How it is told what a query sees, and what a job is made of, as in attention.c.
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
    """Rows of bytes, of which some at the end may be anything, and the largest number of each row before."""

    integers: Tensor  # (rows, rounded up, in)
    largest: Tensor  # (rows)

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.largest.size(0)

    @classmethod
    def empty(cls, rows: int, width: int) -> QuantisedRows:
        """Room for some."""
        integers = torch.empty((rows + -rows % ROWS_STEP, width), dtype=torch.uint8, device="cpu")
        return cls(integers, _floats(rows))


def available() -> bool:
    """Tell whether there is a compiled library here."""
    return library() is not None


def takes(rows: Tensor) -> bool:
    """Tell whether there is one for what these rows are made of."""
    return available() and rows.dtype is torch.float32 and rows.device.type == "cpu"


def _floats(*shape: int) -> Tensor:
    return torch.empty(shape, dtype=torch.float32, device="cpu")


def quantise_rows(rows: Tensor) -> QuantisedRows:
    """Rows (rows, in), which may be apart from each other, as bytes."""
    rows = rows if rows.stride(1) == 1 else rows.contiguous()
    made = QuantisedRows.empty(*rows.shape)
    _library().cadec_round(
        rows.data_ptr(), rows.stride(0), *rows.shape, made.integers.data_ptr(), made.largest.data_ptr()
    )
    return made


def quantise_remainder(rows: Tensor, first: QuantisedRows) -> QuantisedRows:
    """What rounding has left over of rows, rounded likewise, in steps that are 254 times as fine."""
    rows = rows if rows.stride(1) == 1 else rows.contiguous()
    made = QuantisedRows(torch.empty_like(first.integers), first.largest)
    _library().cadec_round_left_over(
        *(rows.data_ptr(), rows.stride(0), *rows.shape),
        *(first.largest.data_ptr(), first.integers.data_ptr(), made.integers.data_ptr()),
    )
    return made


def norm_and_quantise(rows: Tensor, norm: nn.LayerNorm) -> QuantisedRows:
    """Rows (rows, in), one after the other, normed."""
    made = QuantisedRows.empty(*rows.shape)
    scratch = _floats(rows.size(1))
    _library().cadec_norm_round(
        *(rows.data_ptr(), *rows.shape, norm.weight.data_ptr(), norm.bias.data_ptr(), norm.eps),
        *(scratch.data_ptr(), made.integers.data_ptr(), made.largest.data_ptr()),
    )
    return made


def activate_and_quantise(product: Tensor, of: QuantisedRows, bias: Tensor, activation: int) -> QuantisedRows:
    """A product of rounded rows, which is written over, with its scales, its bias and an activation."""
    made = QuantisedRows.empty(of.rows, product.size(1))
    _library().cadec_activate_round(
        *(product.data_ptr(), of.rows, product.size(1), of.largest.data_ptr(), bias.data_ptr(), activation),
        *(made.integers.data_ptr(), made.largest.data_ptr()),
    )
    return made


def scale(product: Tensor, of: QuantisedRows, bias: Tensor | None) -> Tensor:
    """A product of rounded rows, which is written over, with its scales and its bias: (rows, out)."""
    _library().cadec_scale(
        *(product.data_ptr(), of.rows, product.size(1), of.largest.data_ptr()),
        None if bias is None else bias.data_ptr(),
    )
    return product[: of.rows]


def scale_and_add(product: Tensor, of: QuantisedRows, bias: Tensor, before: Tensor) -> Tensor:
    """The same, added to what the rows were before."""
    made = torch.empty_like(before)
    _library().cadec_scale_add(
        *(product.data_ptr(), of.rows, product.size(1), of.largest.data_ptr(), bias.data_ptr()),
        *(before.data_ptr(), made.data_ptr()),
    )
    return made


def add_norm_and_quantise(
    product: Tensor, of: QuantisedRows, bias: Tensor, before: Tensor, norm: nn.LayerNorm
) -> tuple[Tensor, QuantisedRows]:
    """The same, and that again normed and rounded."""
    width = product.size(1)
    made, normed, scratch = torch.empty_like(before), QuantisedRows.empty(of.rows, width), _floats(width)
    _library().cadec_scale_add_norm_round(
        *(product.data_ptr(), of.rows, width, of.largest.data_ptr(), bias.data_ptr()),
        *(before.data_ptr(), made.data_ptr(), norm.weight.data_ptr(), norm.bias.data_ptr(), norm.eps),
        *(scratch.data_ptr(), normed.integers.data_ptr(), normed.largest.data_ptr()),
    )
    return made, normed


def log_softmax(product: Tensor, of: QuantisedRows, bias: Tensor | None, temperature: float) -> Tensor:
    """Logits that are a product of rounded rows, which is written over, as log-probabilities: (rows, V)."""
    _library().cadec_log_softmax(
        *(product.data_ptr(), of.rows, product.size(1), of.largest.data_ptr()),
        *(None if bias is None else bias.data_ptr(), temperature),
    )
    return product[: of.rows]


def log_probs(
    product: Tensor, of: QuantisedRows, bias: Tensor | None, temperature: float, rows: Tensor, tokens: Tensor
) -> Tensor:
    """Log-probabilities of some tokens, after rows in rising order; the product stays as it is."""
    rows, tokens = rows.contiguous(), tokens.contiguous()
    made = _floats(len(rows))
    _library().cadec_log_probs(
        *(product.data_ptr(), of.rows, product.size(1), of.largest.data_ptr()),
        *(None if bias is None else bias.data_ptr(), temperature),
        *(len(rows), rows.data_ptr(), tokens.data_ptr(), made.data_ptr()),
    )
    return made


def attend_and_quantise(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> QuantisedRows:
    """Attention of (B, H, T, D/H) to (B, H, S, D/H), where a boolean mask lets it: rows (B·T, D)."""
    batch, _, count, _ = queries.shape
    keys, values = (each.expand(batch, -1, -1, -1) for each in (keys, values))
    row = np.arange(batch)
    jobs = np.zeros(batch, _JOB)
    jobs["batch"], jobs["queries"], jobs["own_keys"], jobs["out"] = row, count, keys.size(2), row * count
    if mask is not None:
        mask = mask.expand(batch, 1, count, keys.size(2))
        if mask.dtype is not torch.bool:
            raise TypeError(f"a mask of {mask.dtype}")
        if mask.stride(3) != 1:
            mask = mask.contiguous()
        jobs["mask"], jobs["mask_stride"] = mask.data_ptr() + row * mask.stride(0), mask.stride(2)
    return _attend(queries, keys, values, jobs, batch * count, _BYTES)


def attend_in_parts_and_quantise(
    queries: Tensor, keys: Tensor, values: Tensor, places: list[list[int]], parents: list[Ints]
) -> QuantisedRows:
    """Attention of the parts of one row, each to its own cached and new keys: rows (queries of all, D).

    A part's places are where its queries, its cached keys and its new keys start and end; its queries are the
    last of its new keys, and see themselves, their parents, and so on, and all that is cached.
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
    return _attend(queries, keys, values, jobs, int(ends[-1]), _PARENTS)


def _attend(queries: Tensor, keys: Tensor, values: Tensor, jobs: Jobs, rows: int, told: int) -> QuantisedRows:
    """Attention of some queries, in the order of jobs, which have so many rows."""
    heads, size = queries.size(1), queries.size(3)
    if not all(map(takes, (queries, keys, values))) or keys.shape != values.shape:
        raise TypeError(f"attention of {queries.dtype} to {keys.dtype} and {values.dtype}")
    queries, keys, values = (
        each if each.stride(3) == 1 else each.contiguous() for each in (queries, keys, values)
    )
    if keys.stride() != values.stride():
        keys, values = keys.contiguous(), values.contiguous()
    made = QuantisedRows.empty(rows, heads * size)
    strides = (ctypes.c_int64 * 9)(
        *(stride for each in (queries, keys, values) for stride in each.stride()[:3])
    )
    enough = _library().cadec_attend_round(
        *(jobs.ctypes.data, len(jobs), told, queries.data_ptr(), keys.data_ptr(), values.data_ptr()),
        *(strides, heads, size, made.integers.data_ptr(), made.largest.data_ptr()),
    )
    if not enough:
        raise MemoryError("attention")
    return made


def _library() -> ctypes.CDLL:
    found = library()
    assert found is not None
    return found
