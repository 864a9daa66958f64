"""Reads OpenNMT-py's checkpoints without it: a pre-norm transformer's weights, options and vocabularies.

A source has no tokens around it; a translation begins with <s> and ends with </s>. Vocabularies are plain
lists in version 3, and fields of torchtext in earlier ones, of which only the lists are read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ctranslate2.converters import opennmt_py as ctranslate2_opennmt
from ctranslate2.specs import TransformerSpec
from ctranslate2.specs.common_spec import Activation
from torch import Tensor

from cadec_cli.errors import CadecError
from cadec_cli.models.pretrained_settings import HEADS
from cadec_cli.validation import Number, quote_value
from converters.request import PretrainedRequest
from converters.translation.base import (
    WeightsImport,
    import_weights,
    only_checkpoint,
    refuse_unsupported,
    unread_weights,
)
from converters.translation.reference_network import Network, Stack, check_weights
from converters.translation.torch_checkpoints import plain, read_checkpoint, tensors

_EPSILON = 1e-6
_EPSILONS = Number(0, 1)
_UNK, _EOS = "<unk>", "</s>"
_POSITIONS = 1024  # its tables have 5000, but it was not trained with longer sentences
_JOINER = "￭"  # of OpenNMT's own tokenizer

_ACTIVATIONS = {
    "relu": ("relu", Activation.RELU),
    "gelu": ("gelu", Activation.GELU),
    "fast_gelu": ("gelu_tanh", Activation.GELUTanh),
    "silu": ("swish", Activation.SWISH),
}

_ATTENTION = {
    **{"linear_query": "query", "linear_keys": "key", "linear_values": "value", "final_linear": "out"},
}
_PARTS = {
    **{f"self_attn.{theirs}": f"self.{ours}" for theirs, ours in _ATTENTION.items()},
    **{f"context_attn.{theirs}": f"cross.{ours}" for theirs, ours in _ATTENTION.items()},
    **{"feed_forward.w_1": "feed_forward.inner", "feed_forward.w_2": "feed_forward.outer"},
    "feed_forward.layer_norm": "feed_forward.norm",
    **{"layer_norm": "self.norm", "layer_norm_1": "self.norm", "layer_norm_2": "cross.norm"},
}

# Options that change the network.
_NOT_SUPPORTED = (
    "copy_attn",
    "max_relative_positions",
    "multiquery",
    "num_kv",
    "parallel_residual",
    "num_experts",
)


def open_opennmt(path: Path, request: PretrainedRequest) -> WeightsImport:
    """Read an OpenNMT-py model: a checkpoint, or a directory that has one."""
    checkpoint = only_checkpoint(path, "an OpenNMT-py")
    stored = read_checkpoint(checkpoint)
    options = plain(stored.get("opt"))
    if not isinstance(options, dict) or "vocab" not in stored:
        raise CadecError(f"{checkpoint} is not an OpenNMT-py checkpoint: it has no opt or no vocab")
    generator = tensors(stored.get("generator"), checkpoint, "generator")
    state = {
        **tensors(stored.get("model"), checkpoint, "model"),
        **{f"generator.{name.removeprefix('0.')}": tensor for name, tensor in generator.items()},
    }
    strange = [name for name in state if _reference_name(name) is None]
    sources, targets = _vocabularies(stored["vocab"], checkpoint)
    refuse_unsupported(
        "OpenNMT-py", [*_unsupported_reasons(options, len(sources), len(targets)), *unread_weights(strange)]
    )
    source, target = sources[0], targets[0]
    start = str(options.get("decoder_start_token") or "<s>")
    network = _network(state, options, target, start)
    for vocabulary in (source, target):
        _check_joiners(vocabulary)
    positions = (network.weights[f"{side}.positions"].shape[0] for side in ("encoder", "decoder"))
    return import_weights(
        request,
        family="opennmt",
        weights=checkpoint,
        origin=checkpoint.stem,
        network=network,
        vocabularies=(source, target),
        names=(
            f"the vocabulary of the encoder in {checkpoint.name}",
            f"the vocabulary of the decoder in {checkpoint.name}",
        ),
        needed=((_UNK,), (start, _EOS, _UNK)),
        positions=min(_POSITIONS, *positions),
        spec=lambda: _spec(state, network, source, target, start),
    )


def _vocabularies(stored: Any, path: Path) -> tuple[list[list[str]], list[list[str]]]:
    """Return all vocabularies of both sides: that of words first, then those of features, if any."""
    try:
        sources, targets = ctranslate2_opennmt.get_vocabs(stored)
        lists = tuple([list(one) for one in side] for side in (sources, targets))
        if not all(isinstance(token, str) for side in lists for one in side for token in one):
            raise TypeError("a token is not text")
    except (AttributeError, KeyError, TypeError, IndexError) as error:
        raise CadecError(
            f"can't read the vocabulary of {path}: {error}",
            "only versions 1 to 3 of OpenNMT-py are supported",
        ) from None
    return lists[0], lists[1]


def _unsupported_reasons(options: Mapping[str, Any], sources: int, targets: int) -> list[str]:
    kinds = (options.get("encoder_type"), options.get("decoder_type"))
    activation = options.get("pos_ffn_activation_fn") or "relu"
    attention = options.get("self_attn_type") or "scaled-dot"
    norm = options.get("layer_norm") or "standard"
    checks = {
        f"its encoder is of the type {kinds[0]}, its decoder {kinds[1]}, not transformer": kinds
        == ("transformer", "transformer"),
        f"its attention is {attention}": str(attention).startswith("scaled-dot"),
        f"the activation {activation} is unknown": activation in _ACTIVATIONS,
        "it has no position_encoding": bool(options.get("position_encoding")),
        f"its normalisation is {norm}": norm == "standard",
        "its tokens have features": (sources, targets) == (1, 1),
        f"its heads must be {HEADS}": HEADS.allows(options.get("heads", 8)),
        f"its norm_eps is {quote_value(options.get('norm_eps'))}": options.get("norm_eps") is None
        or _EPSILONS.allows(options["norm_eps"]),
        **{
            f"it was trained with {name} {options.get(name)}": not options.get(name)
            for name in _NOT_SUPPORTED
        },
    }
    return [reason for reason, supported in checks.items() if not supported]


def _reference_name(name: str) -> str | None:
    """Return the name in `reference_network` of a weight of OpenNMT-py's; None if there is no such weight."""
    if found := re.fullmatch(r"generator\.(weight|bias)", name):
        return f"output.{found[1]}"
    if found := re.fullmatch(
        r"(encoder|decoder)\.embeddings\.make_embedding\.(emb_luts\.0\.weight|pe\.pe)", name
    ):
        return f"{found[1]}.{'positions' if found[2] == 'pe.pe' else 'embedding'}"
    if found := re.fullmatch(r"(encoder|decoder)\.layer_norm\.(weight|bias)", name):
        return f"{found[1]}.norm.{found[2]}"
    layers = r"(encoder|decoder)\.(?:transformer|transformer_layers)\.(\d+)\.([\w.]+)\.(weight|bias)"
    if found := re.fullmatch(layers, name):
        side, layer, part, kind = found.groups()
        return f"{side}.{layer}.{_PARTS[part]}.{kind}" if part in _PARTS else None
    return None


def _network(
    state: Mapping[str, Tensor], options: Mapping[str, Any], target: list[str], start: str
) -> Network:
    weights = {_reference_name(name) or name: tensor for name, tensor in state.items()}
    for side in ("encoder", "decoder"):
        if f"{side}.positions" in weights:
            weights[f"{side}.positions"] = weights[f"{side}.positions"].squeeze(1)
    encoder, decoder = (
        Stack(
            layers=len({name.split(".")[1] for name in weights if re.match(rf"{side}\.\d+\.", name)}),
            heads=int(options.get("heads", 8)),
            pre_norm=True,
            scaled=True,
        )
        for side in ("encoder", "decoder")
    )
    network = Network(
        weights=weights,
        encoder=encoder,
        decoder=decoder,
        activation=_ACTIVATIONS[options.get("pos_ffn_activation_fn") or "relu"][0],
        epsilon=float(options.get("norm_eps") or _EPSILON),
        start=target.index(start) if start in target else 0,
        end=target.index(_EOS) if _EOS in target else 0,
    )
    check_weights(network, "OpenNMT-py")
    return network


def _check_joiners(vocabulary: list[str]) -> None:
    if sum(_JOINER in token for token in vocabulary) > len(vocabulary) // 50:
        raise CadecError(
            f"the model uses OpenNMT's own tokenizer (tokens with {_JOINER}), which cadec does not support",
            "models with SentencePiece or with Moses and BPE can be converted",
        )


def _spec(
    state: Mapping[str, Tensor], network: Network, source: list[str], target: list[str], start: str
) -> Any:
    activation = next(theirs for ours, theirs in _ACTIVATIONS.values() if ours == network.activation)
    spec = TransformerSpec.from_config(
        (network.encoder.layers, network.decoder.layers), network.encoder.heads, activation=activation
    )
    ctranslate2_opennmt.set_transformer_spec(spec, {name: tensor.clone() for name, tensor in state.items()})
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.decoder_start_token = start
    spec.config.layer_norm_epsilon = network.epsilon
    return spec
