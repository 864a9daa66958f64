"""The parts of networks: attention with a key/value cache, feed-forward, pre- or post-norm blocks.

Shapes: B rows, T new positions, S positions attended to, D model width, H heads.
Masks are boolean: True where attention is ALLOWED. Everything here can be represented in CTranslate2:
queries, keys and values are one fused linear, keys and values of cross-attention another. Where TorchScript
is available, it joins several operations into one call.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeVar, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cadec_cli.arrays import Bools, Ints
from cadec_cli.models.configs import Shape

Function = TypeVar("Function", bound=Callable[..., torch.Tensor])


def script(function: Function) -> Function:
    """Compile a function with TorchScript; return it unchanged if that fails."""
    return cast(Function, _script(function))


@cache
def _script(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the fallback below covers its removal
            made: Callable[..., torch.Tensor] = torch.jit.script(function)
    except Exception:  # of many kinds; the function works without it
        return function
    return made


# By the names in configs.ACTIVATIONS.
_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu, "swish": F.silu}


class Network(nn.Module):
    """A network that keeps its configuration, so that it can be stored and rebuilt."""

    config: Any  # its sizes, a frozen dataclass


@dataclass
class Cache:
    """Keys and values of the positions a decoder has read, one pair of tensors (B, H, S, D/H) per layer.

    `Cache()` is empty; a network called with it appends to it (prefill: many positions; step: one).
    """

    layers: list[tuple[Tensor, Tensor]] = field(default_factory=list)

    @property
    def length(self) -> int:
        """Positions held."""
        return self.layers[0][0].size(2) if self.layers else 0

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append to a layer and return all that it holds. One cached row serves any number of new rows."""
        if layer < len(self.layers):
            old_keys, old_values = self.layers[layer]
            if old_keys.size(0) == 1 and keys.size(0) > 1:
                old_keys = old_keys.expand(keys.size(0), -1, -1, -1)
                old_values = old_values.expand(keys.size(0), -1, -1, -1)
            keys, values = torch.cat([old_keys, keys], dim=2), torch.cat([old_values, values], dim=2)
            self.layers[layer] = (keys, values)
        else:
            self.layers.append((keys, values))
        return keys, values

    def rows(self, index: Tensor) -> Cache:
        """Take rows by number, in any order and any number of times: reorder beams, drop finished ones."""
        return Cache([(k.index_select(0, index), v.index_select(0, index)) for k, v in self.layers])


# The positions that a cache has room for at first.
ROOM = 128


class RoomyCache(Cache):
    """A cache with spare room, so that new positions are written in place.

    A plain cache copies everything at every step, which can take as long as the step itself.
    """

    def __init__(self) -> None:
        super().__init__()
        self._held: list[int] = []  # positions, by layer

    @property
    def length(self) -> int:
        """Positions held."""
        return self._held[0] if self._held else 0

    def extend(self, layer: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Append to a layer and return all that it now holds."""
        if layer == len(self.layers):
            self.layers.append((keys[:, :, :0], values[:, :, :0]))
            self._held.append(0)
        start, end = self._held[layer], self._held[layer] + keys.size(2)
        if end > self.layers[layer][0].size(2):
            old_keys, old_values = (tensor[:, :, :start] for tensor in self.layers[layer])
            self.layers[layer] = (_roomy(old_keys, end), _roomy(old_values, end))
        held_keys, held_values = (tensor[:, :, :end] for tensor in self.layers[layer])
        held_keys[:, :, start:] = keys
        held_values[:, :, start:] = values
        self._held[layer] = end
        return held_keys, held_values

    def rows(self, index: Tensor) -> RoomyCache:
        """Take rows by number, in any order and any number of times."""
        taken = RoomyCache()
        for (keys, values), held in zip(self.layers, self._held, strict=True):
            taken.layers.append(
                (_roomy(keys[:, :, :held], held, index), _roomy(values[:, :, :held], held, index))
            )
            taken._held.append(held)
        return taken

    def laid_out(self, where: Tensor) -> RoomyCache:
        """Lay the positions of its only row out as several rows; `where` (B, S) holds their numbers."""
        laid = RoomyCache()
        for layer, (keys, values) in enumerate(self.layers):
            laid.extend(layer, keys[0][:, where].transpose(0, 1), values[0][:, where].transpose(0, 1))
        return laid


def _roomy(held: Tensor, length: int, rows: Tensor | None = None) -> Tensor:
    """Copy keys or values (B, H, S, D/H), or rows of them, to a tensor with room for 2 · length + ROOM."""
    batch, heads, positions, width = held.shape
    # Position by position in memory, so that new positions are written in one piece.
    count = batch if rows is None else rows.size(0)
    made = held.new_empty(count, 2 * length + ROOM, heads, width).transpose(1, 2)
    if rows is None:
        made[:, :, :positions] = held
    else:
        torch.index_select(held, 0, rows, out=made[:, :, :positions])
    return made


@dataclass(frozen=True)
class Part:
    """Some positions of a row (`queries`), and the positions that they attend to.

    The queries are the last of the new positions in `own`. Each attends to itself, its parent, its parent's
    parent, and so on, and to all keys in `cached`, which come before all new ones. If a part is not `asked`
    for, only its keys are used, by other parts.
    """

    queries: slice
    cached: slice
    own: slice
    parents: Ints  # of the positions in `own`, counted from its start; before their children; -1: no parent
    asked: bool = True
    _masks: dict[tuple[torch.device, torch.dtype], Tensor] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def mask(self, like: Tensor) -> Tensor:
        """A mask to add to scores (queries, keys): 0 where attention is allowed, -∞ elsewhere.

        It has the device and type of `like`, and is made once for all layers.
        """
        kind = like.device, like.dtype
        if kind not in self._masks:
            first = len(self.parents) - (self.queries.stop - self.queries.start)
            seen = torch.from_numpy(lineage(self.parents, self.cached.stop - self.cached.start)[first:])
            self._masks[kind] = torch.zeros(seen.shape).masked_fill_(~seen, -math.inf).to(*kind)
        return self._masks[kind]


def lineage(parents: Ints, cached: int) -> Bools:
    """The keys that each position attends to: all cached ones, its ancestors and itself: (positions, keys).

    A parent comes before its children; -1 means no parent.
    """
    count = len(parents)
    seen = np.zeros((count, cached + count), dtype=np.bool_)
    seen[:, :cached] = True
    # A chain of positions at the start, such as a context, and then all others.
    line = int(np.append(parents != np.arange(-1, count - 1), True).argmax())
    seen[:line, cached : cached + line] = np.tri(line, dtype=np.bool_)
    for position in range(line, count):
        if (parent := parents[position]) >= 0:
            seen[position] = seen[parent]
        seen[position, cached + position] = True
    return seen


# A boolean tensor, or parts that together make up one row in order. With a boolean mask, attention across
# parts would be computed and then hidden; with many parts, this takes as long as everything else.
Mask = Tensor | tuple[Part, ...]


def attend(queries: Tensor, keys: Tensor, values: Tensor, mask: Mask | None, causal: bool = False) -> Tensor:
    """Attention of (B, H, T, D/H) to (B, H, S, D/H)."""
    # No dropout on attention weights: on CPU it would cost the fused kernel.
    if not isinstance(mask, tuple):
        return F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, is_causal=causal)
    plain = queries.device.type == "cpu" and queries.dtype == torch.float32 and queries.size(0) == 1
    attend_parts = script(_attend_in_parts)
    masks = [part.mask(queries) for part in mask]
    return attend_parts(queries, keys, values, places_of(mask), masks, plain)


def places_of(parts: tuple[Part, ...]) -> list[list[int]]:
    """The starts and ends of each part's queries, cached keys and new keys."""
    return [
        [place for span in (part.queries, part.cached, part.own) for place in (span.start, span.stop)]
        for part in parts
    ]


def _attend_in_parts(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    places: list[list[int]],
    masks: list[Tensor],
    plain: bool,
) -> Tensor:
    """Attention of the parts of a row, each to its own cached and new keys, with masks that are added."""
    made: list[Tensor] = []
    for place, mask in zip(places, masks):  # noqa: B905 - TorchScript has no `strict`
        part = queries[:, :, place[0] : place[1]]
        own_keys, own_values = keys[:, :, place[4] : place[5]], values[:, :, place[4] : place[5]]
        if place[3] > place[2]:
            own_keys = torch.cat([keys[:, :, place[2] : place[3]], own_keys], 2)
            own_values = torch.cat([values[:, :, place[2] : place[3]], own_values], 2)
        if plain:  # faster than the fused kernel for few positions
            scale = part.size(-1) ** -0.5
            scores = torch.baddbmm(mask[None], part[0], own_keys[0].transpose(1, 2), alpha=scale)  # (H, T, S)
            made.append(torch.bmm(scores.softmax(-1), own_values[0])[None])
        else:
            made.append(F.scaled_dot_product_attention(part, own_keys, own_values, attn_mask=mask))
    return torch.cat(made, 2)


class SelfAttention(nn.Module):
    """Multi-head attention of a sequence to itself and to the cached positions."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Mask | None, causal: bool, cache: Cache | None, layer: int) -> Tensor:
        """Attend. `causal` is for calls without mask and cache; with a cache, the mask must be complete."""
        queries, keys, values = (_split_heads(part, self.heads) for part in self.qkv(x).chunk(3, dim=-1))
        if cache is not None:
            keys, values = cache.extend(layer, keys, values)
        y: Tensor = self.out(_join_heads(attend(queries, keys, values, mask, causal)))
        return y


class CrossAttention(nn.Module):
    """Multi-head attention of the target to the encoded source."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.kv = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)

    def keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Project the encoded source once, for all later steps."""
        keys, values = self.kv(memory).chunk(2, dim=-1)
        return _split_heads(keys, self.heads), _split_heads(values, self.heads)

    def forward(self, x: Tensor, keys_values: tuple[Tensor, Tensor], mask: Tensor | None) -> Tensor:
        """Attend to projected keys and values."""
        queries = _split_heads(self.query(x), self.heads)
        attended = F.scaled_dot_product_attention(queries, *keys_values, attn_mask=mask)
        y: Tensor = self.out(_join_heads(attended))
        return y


class FeedForward(nn.Module):
    """Two linears with an activation between."""

    def __init__(self, width: int, inner: int, activation: str) -> None:
        super().__init__()
        self.inner = nn.Linear(width, inner)
        self.outer = nn.Linear(inner, width)
        self.activation_name = activation
        self.activation = _ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) → (B, T, D)."""
        y: Tensor = self.outer(self.activation(self.inner(x)))
        return y


class Block(nn.Module):
    """Self-attention, cross-attention where there is a source, feed-forward; each with residual and norm."""

    def __init__(self, shape: Shape, cross: bool) -> None:
        super().__init__()
        self.pre_norm = shape.pre_norm
        self.dropout = nn.Dropout(shape.dropout)
        self.attention = SelfAttention(shape.width, shape.heads)
        self.attention_norm = nn.LayerNorm(shape.width)
        if cross:
            self.cross = CrossAttention(shape.width, shape.heads)
            self.cross_norm = nn.LayerNorm(shape.width)
        self.feed_forward = FeedForward(shape.width, shape.inner, shape.activation)
        self.feed_forward_norm = nn.LayerNorm(shape.width)

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
        """(B, T, D) → (B, T, D); `context`, if any, is applied between self-attention and the rest.

        If the mask's parts do not cover the whole row, `asked` holds the positions that they cover; only
        these are returned.
        """
        x = self._residual(
            x, self.attention_norm, lambda y: self.attention(y, mask, causal, cache, layer), asked
        )
        if context is not None:
            x = context(x)
        if source is not None:
            x = self._residual(x, self.cross_norm, lambda y: self.cross(y, source, source_mask))
        return self._residual(x, self.feed_forward_norm, self.feed_forward)

    def _residual(
        self,
        x: Tensor,
        norm: nn.LayerNorm,
        part: Callable[[Tensor], Tensor],
        asked: Tensor | None = None,
    ) -> Tensor:
        kept = x if asked is None else x[:, asked]
        y: Tensor = (
            kept + self.dropout(part(norm(x))) if self.pre_norm else norm(kept + self.dropout(part(x)))
        )
        return y


def sinusoids(positions: int, width: int) -> Tensor:
    """The fixed position table of Vaswani et al.: sines in one half of the width, cosines in the other."""
    half = width // 2
    rates = torch.exp(torch.arange(half) * (-math.log(10_000) / max(half - 1, 1)))
    angles = torch.arange(positions)[:, None] * rates  # (positions, half)
    table = torch.cat([angles.sin(), angles.cos()], dim=1)
    return F.pad(table, (0, width - table.size(1)))


def initialise(module: nn.Module, residual_parts: int) -> None:
    """Give linears Xavier's uniform weights (outputs of residual parts scaled by depth), embeddings d^-½."""
    for name, part in module.named_modules():
        if isinstance(part, nn.Linear):
            nn.init.xavier_uniform_(part.weight)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
            if name.endswith((".out", ".outer")):
                with torch.no_grad():
                    part.weight.mul_(residual_parts**-0.5)
        elif isinstance(part, nn.Embedding):
            nn.init.normal_(part.weight, std=part.embedding_dim**-0.5)


def _split_heads(x: Tensor, heads: int) -> Tensor:
    return x.view(*x.shape[:-1], heads, -1).transpose(1, 2)  # (B, H, T, D/H)


def _join_heads(x: Tensor) -> Tensor:
    return x.transpose(1, 2).flatten(2)  # (B, T, D)
