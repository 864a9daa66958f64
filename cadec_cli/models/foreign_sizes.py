"""Sizes in other toolkits' configurations, looked at before a network of these sizes is built.

A configuration of a few bytes can ask for any number of layers. So its numbers have bounds, and a network
that would be larger than the files that are to fill it is not given any memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cadec_cli.bounds import Number, Whole, quote_value
from cadec_cli.errors import CadecError
from cadec_cli.files import read_json

LAYERS, HEADS = Whole(1, 1024), Whole(1, 1 << 12)
# Of fixed tables that are computed, and so in no file.
POSITIONS = Whole(1, 1 << 16)
_WIDTH, _TOKENS = Whole(1, 1 << 20), Whole(1, 1 << 24)
_LABELS = Whole(0, 1 << 16)  # each gets a name
_MORE_LAYERS, _MORE = Whole(0, LAYERS.most), Whole(-1, 1 << 24)

# What architectures call their sizes; what is in none of these lists is not built in proportion to it.
_SIZES: Mapping[Whole, tuple[str, ...]] = {
    LAYERS: ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers"),
    _MORE_LAYERS: ("num_decoder_layers", "num_encoder_layers", "num_nextn_predict_layers", "num_mem_blocks"),
    HEADS: (
        "num_attention_heads",
        "n_head",
        "num_heads",
        "encoder_attention_heads",
        "decoder_attention_heads",
    ),
    _WIDTH: (
        *("hidden_size", "n_embd", "d_model", "intermediate_size", "ffn_dim", "d_ff", "d_kv", "head_dim"),
        *("encoder_ffn_dim", "decoder_ffn_dim", "word_embed_proj_dim", "embedding_size", "n_inner"),
    ),
    _TOKENS: ("vocab_size", "decoder_vocab_size"),
    _LABELS: ("num_labels",),
    _MORE: (
        *("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length", "sliding_window"),
        *("num_experts", "num_local_experts", "n_routed_experts", "num_key_value_heads", "num_buckets"),
    ),
}
_BOUNDS = {name: bound for bound, names in _SIZES.items() for name in names}

# Numbers in tables that are computed when a network is built, such as sinusoids.
_MAX_COMPUTED = 1 << 28

# What logits are multiplied or divided by.
_SCALES = ("logit_scale", "lm_head_multiplier", "logits_scaling", "final_logit_softcapping")
_SCALE = Number(-1e6, 1e6)

# Where code to run would be named.
_CODE = ("attn_implementation", "_attn_implementation")


def check_configuration(config: Any, origin: str) -> None:
    """Refuse a configuration of transformers with sizes that no model has, or that asks for others' code."""
    wrong = []
    for name, value in _fields(config if isinstance(config, Mapping) else config.to_dict()):
        bound = _BOUNDS.get(name)
        several = value if isinstance(value, list | tuple) else [value]  # some have one for each layer
        if bound is not None and not all(one is None or bound.allows(one) for one in several):
            wrong.append(f"{name} must be {bound}, not {quote_value(value)}")
        if name in _SCALES and value is not None and not _SCALE.allows(value):
            wrong.append(f"{name} must be {_SCALE}, not {quote_value(value)}")
        if name in _CODE and isinstance(value, str) and "/" in value:
            wrong.append(f"{name} must not be code from elsewhere, as {quote_value(value)} is")
    if wrong:
        raise CadecError(f"the configuration of {origin} can't be right: {'; '.join(wrong[:8])}")


def check_stored_configuration(directory: Path) -> None:
    """Look at the configuration of a model as it is stored: transformers builds tables of what it reads."""
    path = directory / "config.json"
    config = read_json(path) if path.is_file() else {}
    if isinstance(config, Mapping):
        check_configuration(config, str(directory))


def check_room(outline: Any, most: int, origin: str) -> None:
    """Refuse a network with more weights than its files can hold; `outline` has no memory yet."""
    weights = sum(weight.numel() for weight in outline.parameters())
    if weights > most:
        raise CadecError(
            f"the configuration of {origin} asks for {weights:,} weights, which its files can't hold",
            "it is another model's, or the files are not complete",
        )
    computed = sum(table.numel() for table in outline.buffers())
    if computed > _MAX_COMPUTED:
        raise CadecError(f"the configuration of {origin} asks for tables of {computed:,} numbers")


def weight_bytes(files: Iterable[Path]) -> int:
    """The size of some files of weights; what isn't there is nothing, nor what systems hide beside them."""
    return sum(path.stat().st_size for path in files if path.is_file() and not path.name.startswith("."))


def _fields(value: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """All fields of a configuration, and of those within it: of the text part of a model with pictures."""
    for name, inner in value.items():
        yield str(name), inner
        if isinstance(inner, Mapping):
            yield from _fields(inner)
