"""Attention for rows that hold several parts, as an attention function of transformers.

Tries of several documents share a row, and none attends to another. One mask for the whole row makes
attention compute every pair of positions. Here each part attends to its own keys only. Most architectures
look their attention up by a name, so this works for all of them; those that do not are found out by the test
at loading.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from cadec_cli.models.int8.kernels import PartJobs, attend_in_parts, takes
from cadec_cli.models.layers import Part, places_of

NAME = "cadec_parts"


@dataclass(frozen=True)
class Row:
    """The parts of a row, in the order of their queries, which are all positions of the row."""

    parts: tuple[Part, ...]

    @cached_property
    def jobs(self) -> PartJobs:
        """The parts as compiled operations take them, for all layers."""
        return PartJobs.of(places_of(self.parts), [part.parents for part in self.parts])


_row: ContextVar[Row | None] = ContextVar("row", default=None)


@contextlib.contextmanager
def attention_in_parts(parts: Sequence[Part]) -> Iterator[None]:
    """A context in which a network whose attention is `NAME` reads one row of these parts."""
    token = _row.set(Row(tuple(parts)))
    try:
        yield
    finally:
        _row.reset(token)


def current_row() -> Row | None:
    """The row that is read in this context."""
    return _row.get()


@cache
def register() -> str:
    """Make the function known to transformers, and return its name."""
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    ALL_ATTENTION_FUNCTIONS.register(NAME, _attend)
    ALL_MASK_ATTENTION_FUNCTIONS.register(NAME, ALL_MASK_ATTENTION_FUNCTIONS["sdpa"])
    return NAME


def _attend(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    **more: Any,
) -> tuple[Tensor, None]:
    """Attention of (1, H, L, D) to (1, G, S, D): (1, L, H, D). Without parts it is that of transformers."""
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    row = current_row()
    if row is None:
        made: tuple[Tensor, None] = ALL_ATTENTION_FUNCTIONS["sdpa"](
            module, query, key, value, attention_mask, scaling=scaling, **more
        )
        return made
    if any(more.get(name) is not None for name in ("softcap", "s_aux", "position_bias")):
        raise ValueError("this attention is more than a softmax of products")
    return attend(query, key, value, row, scaling), None


def attend(query: Tensor, key: Tensor, value: Tensor, row: Row, scaling: float | None) -> Tensor:
    """Attention of (1, H, L, D) to (1, G, S, D), each part of a row to its own keys: (1, L, H, D)."""
    if all(map(takes, (query, key, value))):
        attended = attend_in_parts(query, key, value, row.jobs, scaling)
        return attended.view(1, query.size(2), query.size(1), -1)
    groups = query.size(1) // key.size(1)
    outputs = []
    for part in row.parts:
        keys, values = (_gather(each, (part.cached, part.own), groups) for each in (key, value))
        outputs.append(
            F.scaled_dot_product_attention(
                query[:, :, part.queries], keys, values, part.mask(query), scale=scaling
            )
        )
    return torch.cat(outputs, 2).transpose(1, 2).contiguous()


def _gather(keys: Tensor, places: Sequence[slice], groups: int) -> Tensor:
    """The keys at some places, one for each query head."""
    found = torch.cat([keys[:, :, place] for place in places], 2)
    return found.repeat_interleave(groups, 1) if groups > 1 else found
