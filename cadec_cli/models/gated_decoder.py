"""The network that most pretrained decoders have in common, run without the transformers library.

Llama, Mistral, Qwen 2 and 3, Gemma and Gemma 3 are one network: norms by the mean of squares, queries and
keys turned by their positions, a feed-forward with a gate. They differ in a few numbers, and in what is there
at all. `DecoderShape.of` reads these off a model of transformers once, when it is converted, and
`converters.language.fit` checks that both compute the same. Importing transformers takes longer than all else
that a command does before its first sentence.

Modules have the names that they have in transformers, so that one file of weights serves both, and what is
made for the modules of transformers (`int8.gated.fuse`) works here too.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from cadec_cli.models import parts_attention
from cadec_cli.models.huggingface import Network
from cadec_cli.models.int8.gated import ACTIVATIONS
from cadec_cli.models.layers import Cache
from cadec_cli.validation import Bound, Number, OneOf, Truth, Whole, field_misfits, misfits, text_misfit

# Types of rotary embeddings whose frequencies do not change with the length of the text.
_FIXED_ROTATION = ("default", "linear", "llama3")
_BOUNDS: dict[str, Bound] = {
    "vocabulary": Whole(1, 2**24),
    "layers": Whole(1, 1024),
    **dict.fromkeys(("width", "inner", "heads", "key_heads", "head_size"), Whole(1, 2**20)),
    **dict.fromkeys(("epsilon", "embedding_scale", "attention_scale"), Number(1e-12, 1e6)),
    "norm_offset": Number(0, 1),
    "activation": OneOf(ACTIVATIONS),
    **dict.fromkeys(("sandwich", "normed_heads", "input_bias", "output_bias", "inner_bias"), Truth()),
}
_FREQUENCY = Number(0, 1e6)


@dataclass(frozen=True)
class DecoderShape:
    """All that tells one such network from another, but its weights.

    `rotations` are the different frequencies by which positions turn queries and keys, and `layer_rotation`
    says which of them each layer has. With `sandwich`, each part of a layer is normed before and after.
    """

    family: str
    vocabulary: int
    layers: int
    width: int
    inner: int
    heads: int
    key_heads: int
    head_size: int
    activation: str
    epsilon: float
    norm_offset: float  # what is added to the gains of norms
    embedding_scale: float
    attention_scale: float
    rotations: tuple[tuple[float, ...], ...]  # head_size / 2 numbers each
    layer_rotation: tuple[int, ...]
    sandwich: bool = False
    normed_heads: bool = False
    input_bias: bool = False  # of queries, keys and values
    output_bias: bool = False
    inner_bias: bool = False

    @classmethod
    def of(cls, model: Any) -> DecoderShape | None:
        """Read the shape off a causal language model of transformers; None if it is another network."""
        try:
            return _shape_of(model)
        except (AttributeError, TypeError, ValueError, IndexError, KeyError):
            return None  # some part goes by another name, or is not there

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, data: Any) -> DecoderShape:
        """Read what `to_dict` returned; anything else is a ValueError."""
        wrong = field_misfits(data, cls) or misfits(data, _BOUNDS)
        if wrong:
            raise ValueError("; ".join(wrong))
        rotations, of_layers = data["rotations"], data["layer_rotation"]
        fit = (
            text_misfit(data["family"], 100) is None
            and data["heads"] % data["key_heads"] == 0
            and isinstance(rotations, list | tuple)
            and all(_is_rotation(one, data["head_size"]) for one in rotations)
            and isinstance(of_layers, list | tuple)
            and len(of_layers) == data["layers"]
            and all(Whole(0, len(rotations) - 1).allows(index) for index in of_layers)
        )
        if not fit:
            raise ValueError("its parts do not fit each other")
        return cls(**{**data, "rotations": tuple(map(tuple, rotations)), "layer_rotation": tuple(of_layers)})


def _is_rotation(value: object, head_size: int) -> bool:
    """Tell whether a value is the frequencies of one rotation."""
    return (
        isinstance(value, list | tuple) and 2 * len(value) == head_size and all(map(_FREQUENCY.allows, value))
    )


def _shape_of(model: Any) -> DecoderShape | None:
    config = model.config.get_text_config()
    base, output = model.base_model, model.get_output_embeddings()
    embedding, layers = base.embed_tokens, base.layers
    attentions, feed_forwards = [layer.self_attn for layer in layers], [layer.mlp for layer in layers]
    first, inner = attentions[0], feed_forwards[0]
    activation = _activation(inner.act_fn)
    kinds = [getattr(attention, "layer_type", None) for attention in attentions]
    kinds = getattr(config, "layer_types", None) or kinds
    rotary = base.rotary_emb
    named = [f"{kind}_inv_freq" for kind in kinds]
    names = named if all(hasattr(rotary, name) for name in named) else ["inv_freq"] * len(kinds)
    different = sorted(set(names))
    types = getattr(rotary, "rope_type", None)
    factors = [getattr(rotary, name.replace("inv_freq", "attention_scaling"), 1.0) for name in different]
    norm = layers[0].input_layernorm
    offset = _norm_offset(norm)
    softcaps = (getattr(config, name, None) for name in ("attn_logit_softcapping", "final_logit_softcapping"))
    if (
        activation is None
        or offset is None
        or any(softcaps)
        or output.bias is not None
        or any(factor != 1.0 for factor in factors)
        or not {*(types.values() if isinstance(types, Mapping) else [types])} <= {*_FIXED_ROTATION}
    ):
        return None
    head_size = int(first.head_dim)
    return DecoderShape(
        family=str(config.model_type),
        vocabulary=int(embedding.weight.size(0)),
        layers=len(layers),
        width=int(embedding.weight.size(1)),
        inner=int(inner.gate_proj.out_features),
        heads=int(first.q_proj.out_features) // head_size,
        key_heads=int(first.k_proj.out_features) // head_size,
        head_size=head_size,
        activation=activation,
        epsilon=float(getattr(norm, "variance_epsilon", getattr(norm, "eps", 0.0))),
        norm_offset=offset,
        embedding_scale=float(getattr(embedding, "scalar_embed_scale", 1.0)),
        attention_scale=float(first.scaling),
        rotations=tuple(tuple(getattr(rotary, name).float().tolist()) for name in different),
        layer_rotation=tuple(different.index(name) for name in names),
        sandwich=hasattr(layers[0], "pre_feedforward_layernorm"),
        normed_heads=hasattr(first, "q_norm"),
        input_bias=first.q_proj.bias is not None,
        output_bias=first.o_proj.bias is not None,
        inner_bias=inner.gate_proj.bias is not None,
    )


def _activation(function: Any) -> str | None:
    probe = torch.linspace(-6, 6, 101)
    same = (
        name for name, own in ACTIVATIONS.items() if torch.allclose(function(probe), own(probe), atol=1e-6)
    )
    return next(same, None)


def _norm_offset(norm: Any) -> float | None:
    """What a norm adds to its gains: 0, or 1 in Gemma's; None if it is another norm."""
    weight = norm.weight
    probe = torch.linspace(-3, 5, len(weight))
    alike = probe * (probe.square().mean() + 1e-6).rsqrt()
    found = norm(probe)
    offsets = (offset for offset in (0.0, 1.0) if torch.allclose(found, alike * (offset + weight), atol=1e-3))
    return next(offsets, None)


class GatedRMSNorm(nn.Module):
    """A norm by the root of the mean of the squares, as it is stored."""

    def __init__(self, width: int, shape: DecoderShape) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width))
        self.eps, self._offset = shape.epsilon, shape.norm_offset

    def forward(self, x: Tensor) -> Tensor:
        """(…, width) → (…, width)."""
        return x * (x.square().mean(-1, keepdim=True) + self.eps).rsqrt() * (self._offset + self.weight)


class ScaledEmbedding(nn.Embedding):
    """Rows of a table times a number."""

    def __init__(self, shape: DecoderShape) -> None:
        # Without random numbers, which import much of torch where there is no memory to write them to.
        weight = torch.zeros(shape.vocabulary, shape.width)
        super().__init__(shape.vocabulary, shape.width, _weight=weight)
        self._scale = shape.embedding_scale

    def forward(self, input: Tensor) -> Tensor:
        """(…) → (…, D)."""
        return super().forward(input) * self._scale


class GatedAttention(nn.Module):
    """Attention of new positions to a cache and to each other, as a mask or the parts of a row say."""

    def __init__(self, shape: DecoderShape, layer: int) -> None:
        super().__init__()
        self.head_dim, self.layer_idx, self.scaling = shape.head_size, layer, shape.attention_scale
        queries, keys = shape.heads * shape.head_size, shape.key_heads * shape.head_size
        self.q_proj = nn.Linear(shape.width, queries, bias=shape.input_bias)
        self.k_proj = nn.Linear(shape.width, keys, bias=shape.input_bias)
        self.v_proj = nn.Linear(shape.width, keys, bias=shape.input_bias)
        self.o_proj = nn.Linear(queries, shape.width, bias=shape.output_bias)
        if shape.normed_heads:
            self.q_norm, self.k_norm = (GatedRMSNorm(shape.head_size, shape) for _ in range(2))

    def forward(
        self,
        hidden_states: Tensor,
        position_embeddings: tuple[Tensor, Tensor],
        attention_mask: Tensor | None,
        past_key_values: CacheOfLayers | None,
    ) -> tuple[Tensor, None]:
        """(B, T, D) → (B, T, D), and None, as in transformers."""
        queries, keys, values = (
            linear(hidden_states).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            for linear in (self.q_proj, self.k_proj, self.v_proj)
        )
        if hasattr(self, "q_norm"):
            queries, keys = self.q_norm(queries), self.k_norm(keys)
        queries, keys = (_turn(each, *position_embeddings) for each in (queries, keys))
        if past_key_values is not None:
            keys, values = past_key_values.update(keys, values, self.layer_idx)
        row = parts_attention.current_row()
        if row is not None:
            attended = parts_attention.attend(queries, keys, values, row, self.scaling)
        else:
            groups = queries.size(1) // keys.size(1)
            keys, values = (each.repeat_interleave(groups, 1) for each in (keys, values))
            made = F.scaled_dot_product_attention(queries, keys, values, attention_mask, scale=self.scaling)
            attended = made.transpose(1, 2)
        return self.o_proj(attended.flatten(2)), None


def _turn(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Turn (B, H, T, D/H) by the cosines and sines of positions (B, T, D/H)."""
    first, second = x.chunk(2, -1)
    return x * cosine[:, None] + torch.cat([-second, first], -1) * sine[:, None]


class GatedFeedForward(nn.Module):
    """A feed-forward with a gate."""

    def __init__(self, shape: DecoderShape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.width, shape.inner, bias=shape.inner_bias)
        self.up_proj = nn.Linear(shape.width, shape.inner, bias=shape.inner_bias)
        self.down_proj = nn.Linear(shape.inner, shape.width, bias=shape.inner_bias)
        self.act_fn: Callable[[Tensor], Tensor] = ACTIVATIONS[shape.activation]

    def forward(self, x: Tensor) -> Tensor:
        """(…, D) → (…, D)."""
        made: Tensor = self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))
        return made


class GatedLayer(nn.Module):
    """Attention and a feed-forward, each added to what it read."""

    def __init__(self, shape: DecoderShape, layer: int) -> None:
        super().__init__()
        self.self_attn = GatedAttention(shape, layer)
        self.mlp = GatedFeedForward(shape)
        self.input_layernorm = GatedRMSNorm(shape.width, shape)
        self.post_attention_layernorm = GatedRMSNorm(shape.width, shape)
        self._sandwich = shape.sandwich
        if shape.sandwich:
            self.pre_feedforward_layernorm = GatedRMSNorm(shape.width, shape)
            self.post_feedforward_layernorm = GatedRMSNorm(shape.width, shape)

    def forward(
        self, x: Tensor, turns: tuple[Tensor, Tensor], mask: Tensor | None, cache: CacheOfLayers | None
    ) -> Tensor:
        """(B, T, D) → (B, T, D)."""
        attended: Tensor = self.self_attn(
            hidden_states=self.input_layernorm(x),
            position_embeddings=turns,
            attention_mask=mask,
            past_key_values=cache,
        )[0]
        if not self._sandwich:
            x = x + attended
            made: Tensor = x + self.mlp(self.post_attention_layernorm(x))
            return made
        x = x + self.post_attention_layernorm(attended)
        made = x + self.post_feedforward_layernorm(self.mlp(self.pre_feedforward_layernorm(x)))
        return made


class CacheOfLayers:
    """A cache by the method that attention of transformers calls."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def update(self, keys: Tensor, values: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        """Append to a layer, and return all that it holds."""
        return self._cache.extend(layer, keys, values)


class GatedStack(nn.Module):
    """Tokens to the last layer."""

    def __init__(self, shape: DecoderShape) -> None:
        super().__init__()
        self.embed_tokens: nn.Module = ScaledEmbedding(shape)
        self.layers = nn.ModuleList(GatedLayer(shape, layer) for layer in range(shape.layers))
        self.norm = GatedRMSNorm(shape.width, shape)
        self._layer_rotation = shape.layer_rotation
        # Made on the CPU, whatever device the weights are made on.
        self._rotations = [torch.tensor(one, device="cpu") for one in shape.rotations]

    def forward(self, tokens: Tensor, positions: Tensor, mask: Tensor | None, cache: Cache | None) -> Tensor:
        """Tokens (B, T) at positions (B, T), with an additive mask (B, 1, T, S): (B, T, D)."""
        x: Tensor = self.embed_tokens(tokens)
        turns = [_cosines_and_sines(positions, frequencies) for frequencies in self._rotations]
        held = None if cache is None else CacheOfLayers(cache)
        for layer, rotation in zip(self.layers, self._layer_rotation, strict=True):
            x = layer(x, turns[rotation], mask, held)
        last: Tensor = self.norm(x)
        return last


def _cosines_and_sines(positions: Tensor, frequencies: Tensor) -> tuple[Tensor, Tensor]:
    """(B, T) → twice (B, T, D/H)."""
    angles = positions[..., None].float() * frequencies.to(positions.device)
    angles = torch.cat([angles, angles], -1)
    return angles.cos(), angles.sin()


@dataclass
class GatedConfig:
    """What a network asks a configuration of transformers for."""

    model_type: str
    vocab_size: int
    _attn_implementation: str = parts_attention.NAME

    def get_text_config(self) -> GatedConfig:
        """Return itself: there is nothing but text."""
        return self


class GatedDecoder(nn.Module):
    """A decoder and its output layer, by the methods that models of transformers have."""

    def __init__(self, shape: DecoderShape) -> None:
        super().__init__()
        self.config = GatedConfig(shape.family, shape.vocabulary)
        self.model = GatedStack(shape)
        self.lm_head = nn.Linear(shape.width, shape.vocabulary, bias=False)

    def get_input_embeddings(self) -> nn.Module:
        """Return the table of embeddings."""
        return self.model.embed_tokens

    def set_input_embeddings(self, table: nn.Module) -> None:
        """Replace the table of embeddings."""
        self.model.embed_tokens = table

    def get_output_embeddings(self) -> nn.Linear:
        """Return the output layer."""
        return self.lm_head

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens (B, T), padded on the right or not at all, to logits (B, T, V)."""
        count = tokens.size(1)
        positions = torch.arange(count, device=tokens.device)[None].expand(len(tokens), -1)
        mask = torch.full((count, count), torch.finfo(torch.float32).min, device=tokens.device).triu(1)
        made: Tensor = self.lm_head(self.model(tokens, positions, mask, None))
        return made


class GatedNetwork(Network):
    """A gated decoder as a D-LM scores with it; the parts of a row attend to themselves only."""

    def quiet(self) -> contextlib.AbstractContextManager[None]:
        """A context that does nothing: torch alone runs it."""
        return contextlib.nullcontext()

    def attend_in_parts(self, wanted: bool) -> None:
        """Choose whether parts of a row attend to themselves only."""
        self.config._attn_implementation = parts_attention.NAME if wanted else "sdpa"

    def _run(self, tokens: Tensor, positions: Tensor, mask: Tensor, cache: Cache | None) -> Tensor:
        made: Tensor = self.model.model(tokens, positions, mask, cache)
        return made

    def own_logits(self, tokens: Tensor, real: Tensor | None, last: int) -> Tensor:
        """Logits (B, T, V) by a plain pass; nothing attends to padding on the right."""
        made: Tensor = self.model(tokens)
        return made

    def linears(self) -> Iterator[tuple[nn.Module, str, nn.Linear]]:
        """The linears but the output, each with the module it is in and its name there."""
        for parent in list(self.model.modules()):
            for name, part in list(parent.named_children()):
                if type(part) is nn.Linear and part is not self.model.lm_head:
                    yield parent, name, part


def empty_decoder(shape: DecoderShape) -> GatedDecoder:
    """A decoder to be filled: no memory is taken for its weights."""
    with torch.device("meta"):
        return GatedDecoder(shape)
