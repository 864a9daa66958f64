"""Reads fairseq's checkpoints without fairseq: a transformer's weights, its options, two dictionaries.

fairseq numbers positions from the padding token's id plus one, starts a translation with the end token, and
ends every source with it. Multilingual models are refused, and the error names the options.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from ctranslate2.converters import fairseq as ctranslate2_fairseq
from ctranslate2.specs import TransformerDecoderSpec, TransformerEncoderSpec, TransformerSpec
from ctranslate2.specs.common_spec import Activation
from torch import Tensor

from cadec_cli.errors import CadecError, option
from cadec_cli.fs.read import read_errors
from cadec_cli.models.pretrained_settings import HEADS, POSITIONS
from cadec_cli.validation import quote_value
from converters.request import PretrainedRequest
from converters.translation.base import (
    WeightsImport,
    import_weights,
    only_checkpoint,
    refuse_unsupported,
    unread_weights,
)
from converters.translation.reference_network import Network, Stack, check_weights, sinusoids
from converters.translation.torch_checkpoints import plain, read_checkpoint, tensors

_EPSILON = 1e-5
_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")  # before the tokens that a dictionary lists
_PAD, _EOS = 1, 2
_POSITIONS = 1024  # fairseq's default

_ACTIVATIONS = {
    "relu": ("relu", Activation.RELU),
    "gelu": ("gelu", Activation.GELU),
    "gelu_fast": ("gelu_tanh", Activation.GELUTanh),
    "gelu_accurate": ("gelu_tanh", Activation.GELUTanh),
    "swish": ("swish", Activation.SWISH),
}

_PARTS = {
    **{
        f"self_attn.{part}_proj": f"self.{name}"
        for part, name in (("q", "query"), ("k", "key"), ("v", "value"))
    },
    **{
        f"encoder_attn.{part}_proj": f"cross.{name}"
        for part, name in (("q", "query"), ("k", "key"), ("v", "value"))
    },
    **{"self_attn.out_proj": "self.out", "encoder_attn.out_proj": "cross.out"},
    **{"self_attn_layer_norm": "self.norm", "encoder_attn_layer_norm": "cross.norm"},
    **{"fc1": "feed_forward.inner", "fc2": "feed_forward.outer", "final_layer_norm": "feed_forward.norm"},
}

# Options that change the network or its input.
_NOT_SUPPORTED = (
    *("no_token_positional_embeddings", "adaptive_input", "adaptive_softmax_cutoff", "character_embeddings"),
    *(
        "no_cross_attention",
        "cross_self_attention",
        "lang_tok_replacing_bos_eos",
        "prepend_bos",
        "base_layers",
    ),
)
_MANY_LANGUAGES = (
    "lang_pairs",
    "langs",
    "lang_dict",
    "encoder_langtok",
    "decoder_langtok",
    "multilang_sampling",
)


def open_fairseq(path: Path, request: PretrainedRequest) -> WeightsImport:
    """Read a fairseq model: a checkpoint, or a directory that has one, with dict.*.txt beside it."""
    checkpoint = only_checkpoint(path, "a fairseq", ("model.pt", "checkpoint_best.pt"))
    stored = read_checkpoint(checkpoint)
    options = _options(stored, checkpoint)
    state = _modern(tensors(stored.get("model"), checkpoint, "model"))
    refuse_unsupported("fairseq", [*_unsupported_reasons(options), *unread_weights(_strange(state))])
    source_language = request.source_language or options.get("source_lang")
    target_language = request.target_language or options.get("target_lang")
    files = _dictionaries(checkpoint.parent, options, (source_language, target_language))
    source, target = map(_dictionary, files)
    network = _network(state, options)
    return import_weights(
        dataclasses.replace(request, source_language=source_language, target_language=target_language),
        family="fairseq",
        weights=checkpoint,
        origin=checkpoint.resolve().parent.name,
        network=network,
        vocabularies=(source, target),
        names=(files[0].name, files[1].name),
        needed=((), ()),
        positions=min(network.weights[f"{side}.positions"].shape[0] for side in ("encoder", "decoder")),
        spec=lambda: _spec(state, network, options, source, target),
        source_end=("</s>",),
    )


def _options(stored: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The options of model and task, wherever this version of fairseq has put them."""
    given = plain(stored.get("args"))
    if isinstance(given, dict):
        return given
    given = plain(stored.get("cfg"))
    if not isinstance(given, dict) or not isinstance(given.get("model"), dict):
        raise CadecError(f"{path} is not a fairseq checkpoint: it has neither args nor cfg")
    model, task = given["model"], given.get("task")
    options = {**(task if isinstance(task, dict) else {}), **model}
    options["task"] = task.get("_name") if isinstance(task, dict) else None
    options["arch"] = model.get("arch") or model.get("_name")
    return options


def _unsupported_reasons(options: Mapping[str, Any]) -> list[str]:
    arch, activation = str(options.get("arch")), options.get("activation_fn") or "relu"
    task = str(options.get("task") or "translation")
    reasons = []
    if not arch.startswith("transformer") or arch.startswith(("transformer_lm", "transformer_from")):
        reasons.append(f"its architecture is {arch}, not a transformer that translates")
    many = [name for name in _MANY_LANGUAGES if options.get(name)]
    if many or not task.startswith("translation") or task.startswith("translation_multi"):
        named = f" ({', '.join(many)})" if many else ""
        reasons.append(f"its task is {task}{named}: only models of one direction are supported")
    if activation not in _ACTIVATIONS:
        reasons.append(f"the activation {activation} is unknown")
    reasons += [f"it was trained with {name}" for name in _NOT_SUPPORTED if options.get(name)]
    width = options.get("decoder_embed_dim")
    reasons += [
        f"its {name} is {options[name]}, its decoder_embed_dim {width}"
        for name in ("encoder_embed_dim", "decoder_input_dim", "decoder_output_dim")
        if options.get(name) is not None and width is not None and options[name] != width
    ]
    reasons += [
        f"its {side}_attention_heads must be {HEADS}"
        for side in ("encoder", "decoder")
        if not HEADS.allows(options.get(f"{side}_attention_heads"))
    ]
    return reasons


def _modern(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights under today's names: fairseq itself renames those of its old versions when it loads them."""
    modern: dict[str, Tensor] = {}
    norms = {
        "encoder": ("self_attn_layer_norm", "final_layer_norm"),
        "decoder": ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"),
    }
    for name, tensor in state.items():
        if re.search(r"\.version$|\._float_tensor$", name):
            continue
        if found := re.fullmatch(r"(.*_attn\.)in_proj_(weight|bias)", name):
            for part, third in zip("qkv", tensor.chunk(3), strict=True):
                modern[f"{found[1]}{part}_proj.{found[2]}"] = third.contiguous()
        elif found := re.fullmatch(r"((encoder|decoder)\.layers\.\d+\.)layer_norms\.(\d)\.(\w+)", name):
            modern[f"{found[1]}{norms[found[2]][int(found[3])]}.{found[4]}"] = tensor
        elif name == "decoder.embed_out":
            modern["decoder.output_projection.weight"] = tensor
        else:
            modern[name] = tensor
    if "decoder.embed_tokens.weight" in modern:
        modern.setdefault("decoder.output_projection.weight", modern["decoder.embed_tokens.weight"])
    return modern


def _reference_name(name: str) -> str | None:
    """Return the name in `reference_network` of a weight of fairseq's; None if there is no such weight."""
    outside = {
        "embed_tokens.weight": "embedding",
        "embed_positions.weight": "positions",
        **{f"layernorm_embedding.{kind}": f"embedding_norm.{kind}" for kind in ("weight", "bias")},
        **{f"layer_norm.{kind}": f"norm.{kind}" for kind in ("weight", "bias")},
    }
    if found := re.fullmatch(r"decoder\.output_projection\.(weight|bias)", name):
        return f"output.{found[1]}"
    if found := re.fullmatch(r"(encoder|decoder)\.layers\.(\d+)\.([\w.]+)\.(weight|bias)", name):
        side, layer, part, kind = found.groups()
        return f"{side}.{layer}.{_PARTS[part]}.{kind}" if part in _PARTS else None
    if found := re.fullmatch(r"(encoder|decoder)\.(.+)", name):
        return f"{found[1]}.{outside[found[2]]}" if found[2] in outside else None
    return None


def _strange(state: Mapping[str, Tensor]) -> list[str]:
    return [name for name in state if _reference_name(name) is None]


def _network(state: Mapping[str, Tensor], options: Mapping[str, Any]) -> Network:
    weights = {_reference_name(name) or name: tensor for name, tensor in state.items()}
    for side in ("encoder", "decoder"):
        if f"{side}.embedding" in weights:
            weights[f"{side}.positions"] = _positions(state, options, side)[_PAD + 1 :]
    layers = {
        side: len({name.split(".")[1] for name in weights if re.match(rf"{side}\.\d+\.", name)})
        for side in ("encoder", "decoder")
    }
    encoder, decoder = (
        Stack(
            layers=layers[side],
            heads=options[f"{side}_attention_heads"],
            pre_norm=bool(options.get(f"{side}_normalize_before")),
            scaled=not options.get("no_scale_embedding"),
        )
        for side in ("encoder", "decoder")
    )
    network = Network(
        weights=weights,
        encoder=encoder,
        decoder=decoder,
        activation=_ACTIVATIONS[options.get("activation_fn") or "relu"][0],
        epsilon=_EPSILON,
        start=_EOS,
        end=_EOS,
    )
    check_weights(network, "fairseq")
    return network


def _positions(state: Mapping[str, Tensor], options: Mapping[str, Any], side: str) -> Tensor:
    """The table of positions, with the rows that fairseq never uses: the padding's and those before it."""
    learned = state.get(f"{side}.embed_positions.weight")
    if learned is not None:
        return learned
    limit = options.get(f"max_{'source' if side == 'encoder' else 'target'}_positions")
    if limit is not None and not POSITIONS.allows(limit):
        raise CadecError(f"this fairseq model's positions must be {POSITIONS}, not {quote_value(limit)}")
    rows = (limit or _POSITIONS) + _PAD + 1
    width = state[f"{side}.embed_tokens.weight"].shape[1]
    return torch.nn.functional.pad(sinusoids(rows, width), (0, width % 2))


def _dictionaries(
    directory: Path, options: Mapping[str, Any], languages: tuple[str | None, str | None]
) -> tuple[Path, Path]:
    found = sorted(directory.glob("dict.*.txt"))
    pairs = (languages, (options.get("source_lang"), options.get("target_lang")))
    for source, target in pairs:
        files = (directory / f"dict.{source}.txt", directory / f"dict.{target}.txt")
        if all(file.is_file() for file in files):
            return files
    seen = f"are {', '.join(path.name for path in found)}" if found else "is none"
    raise CadecError(
        f"fairseq's dictionaries dict.SOURCE.txt and dict.TARGET.txt must be in {directory}; there {seen}",
        f"name the languages as the files do, with {option('source-language')} and "
        f"{option('target-language')}"
        if found
        else "copy them from the directory of the training data",
    )


def _dictionary(path: Path) -> list[str]:
    tokens = dict.fromkeys(_SPECIAL)
    # Lines are split as in fairseq: a dictionary may well have other separators as tokens.
    with read_errors(path), path.open(encoding="utf-8") as stream:
        try:
            lines = list(stream)
        except UnicodeDecodeError as error:
            raise CadecError(f"{path} is not UTF-8: {error}") from None
    for number, line in enumerate(lines, 1):
        token, _, count = line.rstrip().removesuffix(" #fairseq:overwrite").rpartition(" ")
        if not count.lstrip("-").isdigit():
            raise CadecError(f"{path}: line {number} is not a token with its count: {line.strip()[:60]!r}")
        if token in tokens and not line.rstrip().endswith("#fairseq:overwrite"):
            raise CadecError(f"{path}: line {number} has {token!r} a second time")
        tokens[token] = None
    return list(tokens)


def _spec(
    state: Mapping[str, Tensor],
    network: Network,
    options: Mapping[str, Any],
    source: list[str],
    target: list[str],
) -> Any:
    activation = next(theirs for ours, theirs in _ACTIVATIONS.values() if ours == network.activation)
    specs = [
        kind(
            stack.layers,
            stack.heads,
            pre_norm=stack.pre_norm,
            no_final_norm=f"{side}.norm.weight" not in network.weights,
            activation=activation,
            layernorm_embedding=f"{side}.embedding_norm.weight" in network.weights,
        )
        for kind, side, stack in (
            (TransformerEncoderSpec, "encoder", network.encoder),
            (TransformerDecoderSpec, "decoder", network.decoder),
        )
    ]
    ctranslate2_fairseq.set_transformer_encoder(specs[0], _module(state, options, "encoder", network.encoder))
    ctranslate2_fairseq.set_transformer_decoder(specs[1], _module(state, options, "decoder", network.decoder))
    spec = TransformerSpec(*specs)
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.decoder_start_token = spec.config.eos_token
    spec.config.layer_norm_epsilon = network.epsilon
    return spec


def _module(
    state: Mapping[str, Tensor], options: Mapping[str, Any], side: str, stack: Stack
) -> SimpleNamespace:
    """One side of the model, with the attributes of fairseq's modules that CTranslate2's functions read."""

    def part(name: str) -> SimpleNamespace | None:
        weight, bias = (state.get(f"{side}.{name}.{kind}") for kind in ("weight", "bias"))
        if weight is None:
            return None
        return SimpleNamespace(weight=weight.clone(), bias=None if bias is None else bias.clone())

    def attention(name: str) -> SimpleNamespace:
        parts = ("q_proj", "k_proj", "v_proj", "out_proj")
        return SimpleNamespace(**{one: part(f"{name}.{one}") for one in parts})

    def layer(index: int) -> SimpleNamespace:
        parts = ("self_attn_layer_norm", "encoder_attn_layer_norm", "fc1", "fc2", "final_layer_norm")
        return SimpleNamespace(
            self_attn=attention(f"layers.{index}.self_attn"),
            encoder_attn=attention(f"layers.{index}.encoder_attn"),
            **{name: part(f"layers.{index}.{name}") for name in parts},
        )

    table = _positions(state, options, side).clone()
    width = state[f"{side}.embed_tokens.weight"].shape[1]
    return SimpleNamespace(
        embed_tokens=part("embed_tokens"),
        embed_positions=SimpleNamespace(weights=table, padding_idx=_PAD),
        embed_scale=math.sqrt(width) if stack.scaled else 1.0,
        layers=[layer(index) for index in range(stack.layers)],
        layer_norm=part("layer_norm"),
        layernorm_embedding=part("layernorm_embedding"),
        output_projection=part("output_projection"),
        project_in_dim=None,
        project_out_dim=None,
    )
