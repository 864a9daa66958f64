"""Converts our S-NMT to a CTranslate2 model: built in memory, checked, compared with torch, written whole.

To run a converted model, feed it source pieces with "</s>" at the end (CTranslate2 adds nothing, since
`add_source_eos` is off), and pass `max_input_length=0`, or it cuts long sentences silently. The target starts
from "<s>" and ends with "</s>" by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from ctranslate2.specs import TransformerDecoderSpec, TransformerEncoderSpec, TransformerSpec
from ctranslate2.specs.common_spec import Activation
from torch import Tensor, nn

from cadec_cli.engines.compute_types import check_compute_type
from cadec_cli.errors import CadecError
from cadec_cli.fs.atomic import atomic_directory
from cadec_cli.models.layers import Block
from cadec_cli.models.storage import model_state
from cadec_cli.models.transformer import Transformer
from cadec_cli.text.subwords import BOS, EOS, SPECIAL_PIECES, UNK
from converters.verify import Drift, Pair, translation_drift

# torch's gelu is exact (with erf), and so is CTranslate2's GELU; its GELUTanh is the approximation.
_ACTIVATIONS = {"relu": Activation.RELU, "gelu": Activation.GELU, "swish": Activation.SWISH}

_INT8_RANGE = 64

_LARGEST = {"float16": 65504.0, "int8_float16": 65504.0}


def convert_translation_model(
    model: Transformer,
    source_pieces: Sequence[str],
    target_pieces: Sequence[str],
    directory: Path,
    compute_type: str,
    probes: Sequence[Pair] = (),
) -> Drift:
    """Write an S-NMT as a CTranslate2 model and report how far its scores are from torch's.

    `directory` is not created unless everything fits and the engines agree. `probes` are pairs of ids,
    without EOS, that are compared besides random ones.
    """
    check_conversion(model, source_pieces, target_pieces, compute_type)
    spec = _translation_spec(model)
    spec.register_source_vocabulary(list(source_pieces))
    spec.register_target_vocabulary(list(target_pieces))
    quantise(spec, compute_type)
    with atomic_directory(directory) as part:
        spec.save(str(part))
        drift = translation_drift(model, source_pieces, target_pieces, part, compute_type, probes)
        drift.check()
    return drift


def check_conversion(
    model: Transformer, source_pieces: Sequence[str], target_pieces: Sequence[str], compute_type: str
) -> None:
    """Raise a CadecError if a model can't be converted; it lists everything that does not fit."""
    check_compute_type(compute_type)
    config = model.config
    wrong = [
        f"{side} {problem}"
        for side, pieces, size in (
            ("source", source_pieces, config.source_vocabulary),
            ("target", target_pieces, config.target_vocabulary),
        )
        for problem in _vocabulary_misfits(pieces, size)
    ]
    if config.activation not in _ACTIVATIONS:
        wrong.append(f"activation {config.activation!r} is unknown to CTranslate2")
    wrong += weight_misfits(model_state(model), compute_type)
    if wrong:
        raise CadecError(f"this S-NMT can't be converted to {compute_type}: " + "; ".join(wrong))


def _vocabulary_misfits(pieces: Sequence[str], size: int) -> list[str]:
    wrong = []
    if len(pieces) != size:
        wrong.append(f"vocabulary has {len(pieces)} pieces, the model {size}")
    if tuple(pieces[: len(SPECIAL_PIECES)]) != SPECIAL_PIECES:
        wrong.append(f"vocabulary does not start with {' '.join(SPECIAL_PIECES)}")
    # CTranslate2 is given pieces, not ids: the second of two equal ones could never be reached.
    twice = sorted(piece for piece, count in Counter(pieces).items() if count > 1)
    if twice:
        wrong.append(f"vocabulary has duplicate pieces: {' '.join(twice[:5])}")
    return wrong


def weight_misfits(state: Mapping[str, Tensor], compute_type: str) -> list[str]:
    """List the problems of weights: NaN or infinite values, or values too large for a compute type."""
    largest = _LARGEST.get(compute_type, torch.finfo(torch.float32).max)
    wrong = []
    for name, tensor in state.items():
        if not torch.isfinite(tensor).all():
            wrong.append(f"{name} holds NaN or infinite values")
        elif tensor.abs().max() > largest:
            wrong.append(f"{name} has values too large for {compute_type}")
    return wrong


def quantise(spec: Any, compute_type: str) -> None:
    """Check a filled specification and quantise it to a compute type; an invalid one is a CadecError."""
    try:
        spec.validate()
        int8 = compute_type.startswith("int8")
        exact = {name: value.numpy().copy() for name, value in spec.variables().items()} if int8 else {}
        spec.optimize(compute_type)
    except ValueError as error:
        raise CadecError(f"CTranslate2 refuses the model: {' '.join(str(error).split())}") from None
    _keep_from_saturating(spec, exact)


def _keep_from_saturating(spec: Any, exact: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Quantise int8 weights to ±64 instead of CTranslate2's ±127.

    CPUs without VNNI multiply unsigned by signed bytes and add pairs of products in 16 bits. 2 · 255 · 127 is
    too much for those, and the sum is silently cut: on such a CPU with oneDNN, log-probabilities were off by
    twenty times what rounding explains. 2 · 255 · 64 fits; the bit of precision given up costs far less.
    """
    variables = spec.variables()
    for name, variable in variables.items():
        scale = variables.get(f"{name}_scale")
        if scale is None or isinstance(variable, str):  # not quantised, or an alias of one that is
            continue
        largest = np.abs(exact[name]).max(axis=1)
        factor = (_INT8_RANGE / np.where(largest > 0, largest, _INT8_RANGE)).astype(np.float32)
        variable.array = np.rint(exact[name] * factor[:, None]).astype(np.int8)
        scale.array = factor


def _translation_spec(model: Transformer) -> Any:
    config = model.config
    activation = _ACTIVATIONS[config.activation]
    encoder = TransformerEncoderSpec(
        config.encoder_layers, config.heads, pre_norm=config.pre_norm, activation=activation
    )
    decoder = TransformerDecoderSpec(
        config.decoder_layers, config.heads, pre_norm=config.pre_norm, activation=activation
    )
    encoder.scale_embeddings = decoder.scale_embeddings = True
    encoder.embeddings[0].weight = _copy(model.source_embedding.weight)
    decoder.embeddings.weight = _copy(model.target_embedding.weight)
    encoder.position_encodings.encodings = _copy(model.sinusoids)
    decoder.position_encodings.encodings = _copy(model.sinusoids)
    if model.encoder_norm is not None and model.decoder_norm is not None:
        _norm(encoder.layer_norm, model.encoder_norm)
        _norm(decoder.layer_norm, model.decoder_norm)
    _blocks(encoder.layer, model.encoder)
    _blocks(decoder.layer, model.decoder)
    _linear(decoder.projection, model.output)
    spec = TransformerSpec(encoder, decoder)
    _special_tokens(spec.config, model)
    spec.config.decoder_start_token = SPECIAL_PIECES[BOS]
    spec.config.add_source_bos = spec.config.add_source_eos = False
    return spec


def _special_tokens(config: Any, model: nn.Module) -> None:
    config.unk_token, config.bos_token, config.eos_token = (SPECIAL_PIECES[i] for i in (UNK, BOS, EOS))
    config.layer_norm_epsilon = next(part.eps for part in model.modules() if isinstance(part, nn.LayerNorm))


def _blocks(layers: Sequence[Any], blocks: nn.ModuleList) -> None:
    for layer, block in zip(layers, blocks, strict=True):
        assert isinstance(block, Block)
        _norm(layer.self_attention.layer_norm, block.attention_norm)
        _linear(layer.self_attention.linear[0], block.attention.qkv)
        _linear(layer.self_attention.linear[1], block.attention.out)
        if hasattr(block, "cross"):
            _norm(layer.attention.layer_norm, block.cross_norm)
            _linear(layer.attention.linear[0], block.cross.query)
            _linear(layer.attention.linear[1], block.cross.kv)
            _linear(layer.attention.linear[2], block.cross.out)
        _norm(layer.ffn.layer_norm, block.feed_forward_norm)
        _linear(layer.ffn.linear_0, block.feed_forward.inner)
        _linear(layer.ffn.linear_1, block.feed_forward.outer)


def _linear(spec: Any, linear: nn.Linear) -> None:
    spec.weight = _copy(linear.weight)
    if linear.bias is not None:
        spec.bias = _copy(linear.bias)


def _norm(spec: Any, norm: nn.LayerNorm) -> None:
    spec.gamma, spec.beta = _copy(norm.weight), _copy(norm.bias)


def _copy(tensor: Tensor) -> Tensor:
    # CTranslate2 quantises in place: without a copy the torch model would be ruined. It finds equal copies,
    # such as those of tied weights, and writes them once.
    return tensor.detach().float().cpu().clone()
