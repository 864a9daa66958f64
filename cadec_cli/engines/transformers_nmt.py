"""A translation model of transformers, stepped token by token for the C-aware beam.

A Marian network has the parts of our own: its weights are put into one of ours, which takes fewer operations
and can have int8 weights. Other networks are stepped by transformers, with its own cache, in float32.

Ids are positions in the vocabulary of the converted model, which are the model's own ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from cadec_cli.engines.ctranslate2 import Framing
from cadec_cli.engines.torch_nmt import NMTSteps, padded_rows
from cadec_cli.method.lengths import LengthLimits
from cadec_cli.models.configs import ACTIVATIONS, TransformerConfig
from cadec_cli.models.huggingface import quiet_transformers, transformers_library
from cadec_cli.models.int8.block import quantise
from cadec_cli.models.int8.linear import int8_available
from cadec_cli.models.transformer import Transformer
from cadec_cli.text.token_text import TokenText


class TransformersTranslationModel:
    """An S-NMT of Hugging Face between the texts of two languages; `text` is the target's.

    With `int8` its weights are rounded, if it is a Marian on a CPU.
    """

    def __init__(
        self,
        network: Any,
        source: TokenText,
        text: TokenText,
        *,
        framing: Framing,
        start: int,
        positions: int,
        limits: LengthLimits | None = None,
        int8: bool = False,
    ) -> None:
        self.text = text
        self.limits = limits or LengthLimits()
        self._source = source
        self._begin, self._end = (
            _ids(source, tokens) for tokens in (framing.source_begin, framing.source_end)
        )
        self._target_begin = [start, *_ids(text, framing.target_begin)]
        own = own_network(network, start, len(text.vocabulary))
        if own is not None and int8 and int8_available() and own.output.weight.device.type == "cpu":
            own = quantise(own)
        self.network = network if own is None else own
        # For the sentence itself and one token that ends it, as for our own models.
        self.positions = positions - max(framing.source_size, len(self._target_begin)) + 1

    def encode(self, sentence: str) -> list[int]:
        """A source sentence in ids, without its framing."""
        return self._source.encode(sentence)

    def steps(self, sources: Sequence[Sequence[int]]) -> NMTSteps | TransformersSteps:
        """Begin to translate sentences, token by token."""
        network = self.network
        framed = [[*self._begin, *source, *self._end] for source in sources]
        if isinstance(network, Transformer):
            rows = padded_rows(framed, network.target_embedding.weight.device, network.padding)
            return NMTSteps(network, network.encode(rows), self._target_begin)
        return TransformersSteps(network, framed, self._target_begin, len(self.text.vocabulary))


def own_network(network: Any, start: int, vocabulary: int) -> Transformer | None:
    """A Marian's weights in a network of ours that predicts `vocabulary` tokens; None for any other network.

    It shares the tables of the original, which is not needed any more. `start` is what translations start
    with, the last row of the tables: it is never written.
    """
    config = network.config
    if config.model_type != "marian":
        return None
    side = (config.encoder_attention_heads, config.encoder_ffn_dim)
    if side != (config.decoder_attention_heads, config.decoder_ffn_dim) or not config.scale_embedding:
        return None
    activation = {"silu": "swish"}.get(config.activation_function, config.activation_function)
    if activation not in ACTIVATIONS:
        return None
    model = network.model
    read, written = (side.embed_tokens.weight.detach() for side in (model.encoder, model.decoder))
    positions = model.decoder.embed_positions.weight.detach()
    sizes = TransformerConfig(
        len(read),
        len(written),
        encoder_layers=len(model.encoder.layers),
        decoder_layers=len(model.decoder.layers),
        width=config.d_model,
        heads=config.encoder_attention_heads,
        inner=config.encoder_ffn_dim,
        positions=len(positions),
        tied=False,
        activation=activation,
    )
    with torch.device("meta"):
        own = Transformer(sizes)
    own.padding = config.pad_token_id
    own.source_embedding.weight, own.target_embedding.weight = (
        nn.Parameter(table, requires_grad=False) for table in (read, written)
    )
    own.sinusoids = positions
    bias = network.final_logits_bias.detach()[0, :vocabulary].clone()
    if start == len(written) - 1 and start < vocabulary:
        bias[start] = -torch.inf
    own.output = _linear(network.lm_head.weight.detach()[:vocabulary], bias)
    for block, layer in zip(own.encoder, model.encoder.layers, strict=True):
        _fill(block, layer)
    for block, layer in zip(own.decoder, model.decoder.layers, strict=True):
        _fill(block, layer)
        _fill_cross(block, layer)
    return own.eval().requires_grad_(False)


def _fill(block: Any, layer: Any) -> None:
    """Give a block the parts of a layer, but for its attention to the source."""
    attention = layer.self_attn
    block.attention.qkv = _one_linear(attention.q_proj, attention.k_proj, attention.v_proj)
    block.attention.out, block.attention_norm = attention.out_proj, layer.self_attn_layer_norm
    block.feed_forward.inner, block.feed_forward.outer = layer.fc1, layer.fc2
    block.feed_forward_norm = layer.final_layer_norm


def _fill_cross(block: Any, layer: Any) -> None:
    """Give a block a layer's attention to the source."""
    attention = layer.encoder_attn
    block.cross.query, block.cross.out = attention.q_proj, attention.out_proj
    block.cross.kv = _one_linear(attention.k_proj, attention.v_proj)
    block.cross_norm = layer.encoder_attn_layer_norm


def _one_linear(*linears: nn.Linear) -> nn.Linear:
    """Several linears of one input as one."""
    return _linear(
        torch.cat([one.weight.detach() for one in linears]), torch.cat([one.bias.detach() for one in linears])
    )


def _linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    made = nn.Linear(weight.size(1), weight.size(0), device="meta")
    made.weight = nn.Parameter(weight, requires_grad=False)
    made.bias = nn.Parameter(bias, requires_grad=False)
    return made


class TransformersSteps:
    """Sentences being translated: rows of the decoder with their keys, and the encoded sources."""

    def __init__(
        self, network: Any, sources: Sequence[Sequence[int]], begin: Sequence[int], vocabulary: int
    ) -> None:
        self._network, self._begin, self._vocabulary = network, begin, vocabulary
        self._device = next(network.parameters()).device
        # If translations start with the last row's token, that is Marian's padding, which is never written.
        rows = network.get_input_embeddings().weight.shape[0]
        self._unwritten = begin[0] if begin[0] == rows - 1 else None
        longest = max(map(len, sources))
        padding = network.config.pad_token_id or 0
        tokens = [[*source, *[padding] * (longest - len(source))] for source in sources]
        real = [[1] * len(source) + [0] * (longest - len(source)) for source in sources]
        self._real = torch.tensor(real, device=self._device)
        with quiet_transformers():
            encoded = network.get_encoder()(
                input_ids=torch.tensor(tokens, device=self._device), attention_mask=self._real
            )
        self._encoded: Tensor = encoded.last_hidden_state
        library = transformers_library()
        self._cache: Any = library.EncoderDecoderCache(library.DynamicCache(), library.DynamicCache())

    def log_probs(self, tokens: Tensor | None) -> Tensor:
        """Append tokens (B, K), or the forced beginning; return log p of every next one: (B·K, V)."""
        if tokens is None:
            rows = torch.tensor([self._begin], device=self._device).expand(len(self._real), -1)
        else:
            rows = tokens.reshape(-1, 1)
        with quiet_transformers():
            made = self._network(
                encoder_outputs=(self._encoded,),
                attention_mask=self._real,
                decoder_input_ids=rows,
                past_key_values=self._cache,
                use_cache=True,
            )
        logits = made.logits[:, -1, : self._vocabulary].float()
        if self._unwritten is not None and self._unwritten < self._vocabulary:
            logits[:, self._unwritten] = -torch.inf
        return torch.log_softmax(logits, -1)

    def keep(self, rows: Tensor, *, same_sources: bool) -> None:
        """Continue with these rows (of B·K), in this order."""
        self._cache.reorder_cache(rows)
        if not same_sources:
            self._encoded = self._encoded.index_select(0, rows)
            self._real = self._real.index_select(0, rows)


def _ids(text: TokenText, tokens: Sequence[str]) -> list[int]:
    places = {token: index for index, token in enumerate(text.vocabulary)}
    return [places[token] for token in tokens]
