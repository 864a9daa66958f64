"""What rows.c does to rows of float32 on a CPU, as functions of tensors. `available` tells whether it can."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from cadec_cli.arrays import Ints
from cadec_cli.kernels.compiled import library
from cadec_cli.models.int8_products import ROWS_STEP

# By the names in configs.ACTIVATIONS, as numbered in rows.c.
ACTIVATIONS = {"relu": 0, "gelu": 1, "swish": 2}

# How it is told what a query sees, as numbered in rows.c.
_BYTES, _PARENTS = 0, 1
# What a job of rows.c is made of.
_JOB = (
    *("batch", "query", "queries", "cached", "cached keys", "own", "own keys"),
    *("mask", "mask stride", "out"),
)


@dataclass(frozen=True)
class Rounded:
    """Rows of bytes, of which some at the end may be anything, and the largest number of each row before."""

    integers: Tensor  # (rows, rounded up, in)
    largest: Tensor  # (rows)

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.largest.size(0)

    @classmethod
    def empty(cls, rows: int, width: int) -> Rounded:
        """Room for some."""
        integers = torch.empty((rows + -rows % ROWS_STEP, width), dtype=torch.uint8)
        return cls(integers, torch.empty(rows))


def available() -> bool:
    """Tell whether there is a compiled library here."""
    return library() is not None


def rounded(rows: Tensor) -> Rounded:
    """Rows (rows, in), which may be apart from each other, as bytes."""
    rows = rows if rows.stride(1) == 1 else rows.contiguous()
    made = Rounded.empty(*rows.shape)
    _library().cadec_round(
        rows.data_ptr(), rows.stride(0), *rows.shape, made.integers.data_ptr(), made.largest.data_ptr()
    )
    return made


def rounded_left_over(rows: Tensor, first: Rounded) -> Rounded:
    """What rounding has left over of rows, rounded likewise, in steps that are 254 times as fine."""
    rows = rows if rows.stride(1) == 1 else rows.contiguous()
    made = Rounded(torch.empty_like(first.integers), first.largest)
    _library().cadec_round_left_over(
        *(rows.data_ptr(), rows.stride(0), *rows.shape),
        *(first.largest.data_ptr(), first.integers.data_ptr(), made.integers.data_ptr()),
    )
    return made


def normed_and_rounded(rows: Tensor, norm: nn.LayerNorm) -> Rounded:
    """Rows (rows, in), one after the other, normed."""
    made = Rounded.empty(*rows.shape)
    scratch = torch.empty(rows.size(1))
    _library().cadec_norm_round(
        *(rows.data_ptr(), *rows.shape, norm.weight.data_ptr(), norm.bias.data_ptr(), norm.eps),
        *(scratch.data_ptr(), made.integers.data_ptr(), made.largest.data_ptr()),
    )
    return made


def activated_and_rounded(product: Tensor, of: Rounded, bias: Tensor, activation: int) -> Rounded:
    """A product of rounded rows, which is written over, with its scales, its bias and an activation."""
    made = Rounded.empty(of.rows, product.size(1))
    _library().cadec_activate_round(
        *(product.data_ptr(), of.rows, product.size(1), of.largest.data_ptr(), bias.data_ptr(), activation),
        *(made.integers.data_ptr(), made.largest.data_ptr()),
    )
    return made


def scaled(product: Tensor, of: Rounded, bias: Tensor | None) -> Tensor:
    """A product of rounded rows, which is written over, with its scales and its bias: (rows, out)."""
    _library().cadec_scale(
        *(product.data_ptr(), of.rows, product.size(1), of.largest.data_ptr()),
        None if bias is None else bias.data_ptr(),
    )
    return product[: of.rows]


def scaled_and_added(product: Tensor, of: Rounded, bias: Tensor, before: Tensor) -> Tensor:
    """The same, added to what the rows were before."""
    made = torch.empty_like(before)
    _library().cadec_scale_add(
        *(product.data_ptr(), of.rows, product.size(1), of.largest.data_ptr(), bias.data_ptr()),
        *(before.data_ptr(), made.data_ptr()),
    )
    return made


def added_normed_and_rounded(
    product: Tensor, of: Rounded, bias: Tensor, before: Tensor, norm: nn.LayerNorm
) -> tuple[Tensor, Rounded]:
    """The same, and that again normed and rounded."""
    width = product.size(1)
    made, normed, scratch = torch.empty_like(before), Rounded.empty(of.rows, width), torch.empty(width)
    _library().cadec_scale_add_norm_round(
        *(product.data_ptr(), of.rows, width, of.largest.data_ptr(), bias.data_ptr()),
        *(before.data_ptr(), made.data_ptr(), norm.weight.data_ptr(), norm.bias.data_ptr(), norm.eps),
        *(scratch.data_ptr(), normed.integers.data_ptr(), normed.largest.data_ptr()),
    )
    return made, normed


def log_softmax(product: Tensor, of: Rounded, bias: Tensor | None, temperature: float) -> Tensor:
    """Logits that are a product of rounded rows, which is written over, as log-probabilities: (rows, V)."""
    _library().cadec_log_softmax(
        *(product.data_ptr(), of.rows, product.size(1), of.largest.data_ptr()),
        *(None if bias is None else bias.data_ptr(), temperature),
    )
    return product[: of.rows]


def log_probs(
    product: Tensor, of: Rounded, bias: Tensor | None, temperature: float, rows: Tensor, tokens: Tensor
) -> Tensor:
    """Log-probabilities of some tokens, after rows in rising order; the product stays as it is."""
    rows, tokens = rows.contiguous(), tokens.contiguous()
    made = torch.empty(len(rows))
    _library().cadec_log_probs(
        *(product.data_ptr(), of.rows, product.size(1), of.largest.data_ptr()),
        *(None if bias is None else bias.data_ptr(), temperature),
        *(len(rows), rows.data_ptr(), tokens.data_ptr(), made.data_ptr()),
    )
    return made


def attended_and_rounded(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Rounded:
    """Attention of (B, H, T, D/H) to (B, H, S, D/H), where a boolean mask lets it: rows (B·T, D)."""
    batch, _, count, _ = queries.shape
    row = np.arange(batch)
    jobs = np.zeros((batch, len(_JOB)), dtype=np.int64)
    jobs[:, _JOB.index("batch")] = row
    jobs[:, _JOB.index("queries")] = count
    jobs[:, _JOB.index("own keys")] = keys.size(2)
    jobs[:, _JOB.index("out")] = row * count
    if mask is not None:
        mask = mask.expand(batch, 1, count, keys.size(2))
        if mask.stride(3) != 1:
            mask = mask.contiguous()
        jobs[:, _JOB.index("mask")] = mask.data_ptr() + row * mask.stride(0)
        jobs[:, _JOB.index("mask stride")] = mask.stride(2)
    return _attended(queries, keys, values, jobs, batch * count, _BYTES)


def attended_in_parts_and_rounded(
    queries: Tensor, keys: Tensor, values: Tensor, places: list[list[int]], parents: list[Ints]
) -> Rounded:
    """Attention of the parts of one row, each to its own cached and new keys: rows (queries of all, D).

    A part's places are where its queries, its cached keys and its new keys start and end; its queries are the
    last of its new keys, and see themselves, their parents, and so on, and all that is cached.
    """
    jobs = []
    out = 0
    for place, of_keys in zip(places, parents, strict=True):
        first, last, cached, cached_end, own, own_end = place
        where = (0, first, last - first, cached, cached_end - cached, own, own_end - own)
        jobs.append((*where, of_keys.ctypes.data, 0, out))
        out += last - first
    return _attended(queries, keys, values, np.array(jobs, dtype=np.int64), out, _PARENTS)


def _attended(queries: Tensor, keys: Tensor, values: Tensor, jobs: Ints, rows: int, told: int) -> Rounded:
    """Attention of some queries, in the order of jobs, which have so many rows."""
    heads, size = queries.size(1), queries.size(3)
    queries, keys, values = (
        each if each.stride(3) == 1 else each.contiguous() for each in (queries, keys, values)
    )
    if keys.stride() != values.stride():
        keys, values = keys.contiguous(), values.contiguous()
    made = Rounded.empty(rows, heads * size)
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
