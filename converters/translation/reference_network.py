"""The transformer that translation toolkits share, in plain torch: a converted model must agree with it.

Each toolkit's module renames the original's weights to the names used here. This module depends neither on a
toolkit nor on CTranslate2. It is written to be read, not to be fast: one sentence at a time, no padding, no
caches.

Names: `encoder.embedding`, `encoder.positions`, `encoder.embedding_norm.{weight,bias}`,
`encoder.0.self.{query,key,value,out,norm}.{weight,bias}`, `encoder.0.feed_forward.{inner,outer,norm}.…`,
`encoder.norm.…`; the decoder has the same, and `decoder.0.cross.…`; and `output.{weight,bias}`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from cadec_cli.errors import CadecError
from converters.verify import Reference

ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "gelu_sigmoid": lambda x: x * torch.sigmoid(1.702 * x),
    "swish": F.silu,
}


@dataclass(frozen=True, kw_only=True)
class Stack:
    """An encoder or a decoder."""

    layers: int
    heads: int
    pre_norm: bool
    scaled: bool  # embeddings times the root of their width


@dataclass(frozen=True, kw_only=True)
class Network:
    """An encoder-decoder transformer: weights under the names of this module, and how they are used."""

    weights: Mapping[str, Tensor]
    encoder: Stack
    decoder: Stack
    activation: str  # of ACTIVATIONS
    epsilon: float  # of layer normalisation
    start: int | None  # the token before every translation; None: a vector of zeros
    end: int  # the token after it

    @torch.inference_mode()
    def log_probs(self, source: Sequence[int], target: Sequence[int]) -> list[float]:
        """Return log p of each token of the target, and of its end; `source` includes all its end tokens."""
        memory = self._run("encoder", self.encoder, self._embed("encoder", self.encoder, source), None)
        read = self._embed("decoder", self.decoder, [self.start, *target])
        states = self._run("decoder", self.decoder, read, memory)
        logits = self._linear("output", states)  # (T + 1, V)
        return [
            float(row[token]) for row, token in zip(logits.log_softmax(-1), [*target, self.end], strict=True)
        ]

    def _embed(self, side: str, stack: Stack, tokens: Sequence[int | None]) -> Tensor:
        table = self.weights[f"{side}.embedding"]
        zeros = torch.zeros(table.shape[1])
        vectors = torch.stack([zeros if token is None else table[token] for token in tokens])  # (T, D)
        if stack.scaled:
            vectors = vectors * math.sqrt(table.shape[1])
        vectors = vectors + self.weights[f"{side}.positions"][: len(tokens)]
        return self._norm(f"{side}.embedding_norm", vectors)

    def _run(self, side: str, stack: Stack, states: Tensor, memory: Tensor | None) -> Tensor:
        for index in range(stack.layers):
            layer = f"{side}.{index}"

            def self_attention(x: Tensor, layer: str = layer) -> Tensor:
                return self._attention(f"{layer}.self", x, x, stack.heads, causal=memory is not None)

            def cross_attention(x: Tensor, layer: str = layer) -> Tensor:
                assert memory is not None
                return self._attention(f"{layer}.cross", x, memory, stack.heads, causal=False)

            def feed_forward(x: Tensor, layer: str = layer) -> Tensor:
                inner = ACTIVATIONS[self.activation](self._linear(f"{layer}.feed_forward.inner", x))
                return self._linear(f"{layer}.feed_forward.outer", inner)

            states = self._sublayer(f"{layer}.self", stack, states, self_attention)
            if memory is not None:
                states = self._sublayer(f"{layer}.cross", stack, states, cross_attention)
            states = self._sublayer(f"{layer}.feed_forward", stack, states, feed_forward)
        return self._norm(f"{side}.norm", states)

    def _sublayer(self, name: str, stack: Stack, x: Tensor, compute: Callable[[Tensor], Tensor]) -> Tensor:
        if stack.pre_norm:
            return x + compute(self._norm(f"{name}.norm", x))
        return self._norm(f"{name}.norm", x + compute(x))

    def _attention(self, name: str, x: Tensor, over: Tensor, heads: int, *, causal: bool) -> Tensor:
        def split(part: str, states: Tensor) -> Tensor:  # (H, T, D / H)
            return self._linear(f"{name}.{part}", states).view(len(states), heads, -1).transpose(0, 1)

        query, key, value = split("query", x), split("key", over), split("value", over)
        scores = query @ key.mT / math.sqrt(query.shape[-1])  # (H, T, S)
        if causal:
            scores = scores + torch.full(scores.shape[-2:], -math.inf).triu(1)
        read = (scores.softmax(-1) @ value).transpose(0, 1).flatten(1)  # (T, D)
        return self._linear(f"{name}.out", read)

    def _linear(self, name: str, x: Tensor) -> Tensor:
        return F.linear(x, self.weights[f"{name}.weight"], self.weights.get(f"{name}.bias"))

    def _norm(self, name: str, x: Tensor) -> Tensor:
        weight = self.weights.get(f"{name}.weight")
        if weight is None:  # not every model has one here
            return x
        return F.layer_norm(x, weight.shape, weight, self.weights.get(f"{name}.bias"), self.epsilon)


def reference_of(
    network: Network,
    source_vocabulary: Sequence[str],
    target_vocabulary: Sequence[str],
    *,
    source_ends_with: tuple[int, ...] = (),
) -> Reference:
    """Return a function that scores tokens as the original does.

    `source_ends_with` are the ids that CTranslate2 adds to the source by itself.
    """
    source_ids = {token: index for index, token in enumerate(source_vocabulary)}
    target_ids = {token: index for index, token in enumerate(target_vocabulary)}

    def answers(sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]]) -> list[list[float]]:
        return [
            network.log_probs(
                [*(source_ids[token] for token in source), *source_ends_with],
                [target_ids[token] for token in target],
            )
            for source, target in zip(sources, targets, strict=True)
        ]

    return answers


def check_weights(network: Network, toolkit: str) -> None:
    """Raise a CadecError that lists all weights that are missing or have the wrong shape, if any."""
    wrong = []
    for name, shape in _shapes(network).items():
        if name not in network.weights:
            wrong.append(f"no {name}")
        elif tuple(network.weights[name].shape) != shape:
            wrong.append(f"{name} is {_by(network.weights[name].shape)}, not {_by(shape)}")
    if wrong:
        more = f" and {len(wrong) - 8} more" if len(wrong) > 8 else ""
        raise CadecError(
            f"the weights of this {toolkit} model don't make a transformer: {'; '.join(wrong[:8])}{more}",
            "the file is damaged, or the model is of a kind that can't be converted",
        )


def _shapes(network: Network) -> dict[str, tuple[int, ...]]:
    """The shapes of the weights that every model has; biases, and norms outside layers, are optional."""
    weights = network.weights
    shapes: dict[str, tuple[int, ...]] = {}
    for side, stack in (("encoder", network.encoder), ("decoder", network.decoder)):
        tables = [weights.get(f"{side}.{name}") for name in ("embedding", "positions")]
        if any(table is None or table.dim() != 2 for table in tables):
            return {**shapes, f"{side}.embedding": (0, 0), f"{side}.positions": (0, 0)}
        width = tables[0].shape[1] if tables[0] is not None else 0
        shapes[f"{side}.positions"] = (tables[1].shape[0] if tables[1] is not None else 0, width)
        for index in range(stack.layers):
            layer = f"{side}.{index}"
            kinds = ("self",) if side == "encoder" else ("self", "cross")
            for kind in kinds:
                for part in ("query", "key", "value", "out"):
                    shapes[f"{layer}.{kind}.{part}.weight"] = (width, width)
                shapes[f"{layer}.{kind}.norm.weight"] = (width,)
            inner = weights.get(f"{layer}.feed_forward.inner.weight")
            size = inner.shape[0] if inner is not None else 0
            shapes[f"{layer}.feed_forward.inner.weight"] = (size, width)
            shapes[f"{layer}.feed_forward.outer.weight"] = (width, size)
            shapes[f"{layer}.feed_forward.norm.weight"] = (width,)
        if width % stack.heads:
            raise CadecError(f"the number of heads, {stack.heads}, does not divide the width {width}")
    shapes["output.weight"] = tuple(weights["decoder.embedding"].shape)
    return shapes


def sinusoids(rows: int, width: int) -> Tensor:
    """Positions of Marian and fairseq: rates from 1 to 1/10000 in width/2 − 1 steps; others have width/2."""
    half = width // 2
    steps = torch.exp(torch.arange(half, dtype=torch.float64) * -math.log(10000) / max(1, half - 1))
    angles = torch.arange(rows, dtype=torch.float64)[:, None] * steps
    return torch.cat([angles.sin(), angles.cos()], dim=1).float()


def _by(shape: Sequence[int]) -> str:
    return " × ".join(map(str, shape))
