"""Reads Marian's models, including OPUS-MT's: an .npz of weights, .yml vocabularies, tokenizers beside them.

CTranslate2's own converter differs from Marian, which has one timescale less in its sinusoids, an epsilon of
1e-6 in layer normalisation, and does not scale embeddings if positions were trained.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from ctranslate2.converters import marian as ctranslate2_marian
from ctranslate2.specs import TransformerSpec
from ctranslate2.specs.common_spec import Activation
from torch import Tensor

from cadec_cli.errors import CadecError
from cadec_cli.fs.read import read_errors
from cadec_cli.models.huggingface import short
from cadec_cli.models.pretrained_settings import HEADS, LAYERS, TARGET
from cadec_cli.text.languages import LANGUAGE_TOKENS
from cadec_cli.validation import quote_value
from converters.request import PretrainedRequest
from converters.translation.base import (
    WeightsImport,
    import_weights,
    refuse_unsupported,
    unread_weights,
)
from converters.translation.reference_network import Network, Stack, check_weights, sinusoids
from converters.translation.tokenizer_files import sentencepiece_pieces

# Marian computes positions of any length; we write as many as other toolkits have for its models.
POSITIONS = 512

_EPSILON = 1e-6
_EOS, _UNK = "</s>", "<unk>"
_NPZ_CONFIG = "special:model.yml"

_ACTIVATIONS = {
    "relu": ("relu", Activation.RELU),
    "gelu": ("gelu_sigmoid", Activation.GELUSigmoid),
    "swish": ("swish", Activation.SWISH),
}

_ATTENTION = {
    f"{letter}{part}": f"{name}.{kind}"
    for part, name in (("q", "query"), ("k", "key"), ("v", "value"), ("o", "out"))
    for letter, kind in (("W", "weight"), ("b", "bias"))
}
_NORM = {"ln_scale": "weight", "ln_bias": "bias"}
_PARTS = {
    "self": {**_ATTENTION, **{f"Wo_{ln}": f"norm.{kind}" for ln, kind in _NORM.items()}},
    "ffn": {
        **{"W1": "inner.weight", "b1": "inner.bias", "W2": "outer.weight", "b2": "outer.bias"},
        **{f"ffn_{ln}": f"norm.{kind}" for ln, kind in _NORM.items()},
    },
}
_SUBLAYERS = {"self": "self", "context": "cross", "ffn": "feed_forward"}


@dataclass(frozen=True)
class _Files:
    weights: Path
    vocabularies: tuple[Path, Path]


def open_marian(path: Path, request: PretrainedRequest) -> WeightsImport:
    """Read a Marian model: an .npz file, or a directory that has one."""
    files = _files(path, request)
    arrays, options = _read(files.weights)
    source, target = (_vocabulary(one) for one in files.vocabularies)
    network = _network(arrays, options, target)
    if request.source_tokenizer is None and files.vocabularies[0].suffix == ".spm":
        source_spm, target_spm = files.vocabularies
        request = dataclasses.replace(
            request, source_tokenizer=source_spm, target_tokenizer=request.target_tokenizer or target_spm
        )
    languages = tuple(token for token in source if LANGUAGE_TOKENS["marian"].fullmatch(token))
    trained = network.weights["encoder.positions"].shape[0] if "Wpos" in arrays else POSITIONS + 1
    return import_weights(
        request,
        family="marian",
        weights=files.weights,
        origin=files.weights.resolve().parent.name,
        network=network,
        vocabularies=(source, target),
        names=(files.vocabularies[0].name, files.vocabularies[1].name),
        needed=((_EOS, _UNK), (_EOS, _UNK)),
        positions=min(POSITIONS, trained - 1),  # the EOS that CTranslate2 adds needs one too
        spec=lambda: _spec(arrays, network, source, target),
        source_begin=(TARGET,) if languages else (),
        target_languages=languages,
        source_ends_with=(source.index(_EOS) if _EOS in source else 0,),
    )


def _files(path: Path, request: PretrainedRequest) -> _Files:
    directory = path.parent if path.is_file() else path
    decoder = _yaml_file(directory / "decoder.yml") if (directory / "decoder.yml").is_file() else {}
    if path.is_file():
        weights = path
    elif decoder.get("models"):
        models = _several(decoder["models"])
        if len(models) > 1:
            raise CadecError(
                f"{directory / 'decoder.yml'} names {len(models)} models, and an ensemble can't be converted",
                "give one of its .npz files",
            )
        weights = _named_file(directory, models[0])
    else:
        weights = _only(directory, sorted(directory.glob("*.npz")), ".npz file of weights")
    if decoder.get("vocabs"):
        vocabularies = [_named_file(directory, name) for name in _several(decoder["vocabs"])]
    else:
        vocabularies = _vocabularies(directory, request)
    return _Files(weights, (vocabularies[0], vocabularies[-1]))


def _several(value: Any) -> list[Any]:
    """Return a YAML list; a single value becomes a list of one."""
    return value if isinstance(value, list) else [value]


def _named_file(directory: Path, name: object) -> Path:
    """Return a file that decoder.yml names: at its path, or beside it if the path is of another machine."""
    for path in (directory / str(name), directory / Path(str(name)).name):
        with suppress(OSError):  # no file can have such a name
            if path.is_file():
                return path
    raise CadecError(
        f"decoder.yml names {str(name)[:200]}, which is not in {directory}",
        "all files of the model are needed",
    )


def _only(directory: Path, found: list[Path], what: str) -> Path:
    if len(found) != 1:
        seen = f"are several: {', '.join(path.name for path in found)}" if found else "is none"
        raise CadecError(
            f"a Marian model has one {what}; in {directory} there {seen}", "give the file itself"
        )
    return found[0]


def _vocabularies(directory: Path, request: PretrainedRequest) -> list[Path]:
    found = [path for path in sorted(directory.glob("*vocab*.yml")) if path.name != "decoder.yml"]
    if len(found) == 1:
        return found
    for names in (("source", "target"), ("src", "trg"), (request.source_language, request.target_language)):
        sides = [[path for path in found if name and name in re.split(r"[._-]", path.name)] for name in names]
        if all(len(side) == 1 for side in sides):
            return [sides[0][0], sides[1][0]]
    seen = f"are {', '.join(path.name for path in found)}" if found else "is no vocab.yml"
    raise CadecError(
        f"can't identify the vocabularies of the Marian model in {directory}: there {seen}",
        "name them in its decoder.yml, under vocabs:, the source's first",
    )


def _yaml_file(path: Path) -> dict[str, Any]:
    with read_errors(path):
        return _yaml(path.read_bytes(), path)


def _yaml(data: bytes, path: Path) -> dict[str, Any]:
    import yaml

    try:
        value = yaml.safe_load(data)
    except Exception as error:  # its own errors, and whatever malformed dates and numbers raise
        raise CadecError(f"{path} is not valid YAML: {short(error)}") from None
    if not isinstance(value, dict):
        raise CadecError(f"{path} does not have Marian's settings")
    return value


def _read(path: Path) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, Any]]:
    """Return all arrays by name, and the options that Marian keeps among them; read no pickled objects."""
    try:
        with read_errors(path), np.load(path, allow_pickle=False) as stored:
            if not hasattr(stored, "files"):
                raise ValueError("it is one array, not several by name")
            arrays = {name: stored[name] for name in stored.files}
    except CadecError:
        raise
    except Exception as error:  # whatever a damaged archive makes numpy raise
        raise CadecError(
            f"can't read {path}: {short(error)}", "the file may be truncated or of another format"
        ) from None
    other = [
        name for name, array in arrays.items() if getattr(array, "dtype", np.dtype(object)).kind not in "fiu"
    ]
    if other:
        raise CadecError(f"{path} has entries that are not numbers: {', '.join(other[:5])}")
    config = arrays.pop(_NPZ_CONFIG, None)
    if config is None:
        raise CadecError(f"{path} is not a Marian model: it has no {_NPZ_CONFIG}")
    # Characters of a C string, its end included.
    options = _yaml(config.tobytes().rstrip(b"\0"), path)
    # None of the other special entries is a weight.
    arrays = {name: array for name, array in arrays.items() if not name.startswith("special:")}
    return {name: array.astype(np.float32) for name, array in arrays.items()}, options


def _vocabulary(path: Path) -> list[str]:
    if path.suffix == ".spm":
        return list(sentencepiece_pieces(path, special=True))
    try:
        with read_errors(path):
            tokens: list[str] = ctranslate2_marian.load_vocab(path)
    except (ValueError, IndexError, KeyError, OverflowError) as error:
        raise CadecError(f"{path} is not a Marian vocabulary: {short(error)}") from None
    return tokens


def _network(
    arrays: Mapping[str, np.ndarray[Any, Any]], options: Mapping[str, Any], target: list[str]
) -> Network:
    pre_norm = "n" in str(options.get("transformer-preprocess", ""))
    weights: dict[str, Tensor] = {}
    strange = []
    for name, array in arrays.items():
        ours = _reference_name(name)
        if ours is None:
            strange.append(name)
        else:
            weights[ours] = _transpose(name, torch.from_numpy(array))
    for side in ("encoder", "decoder"):
        if "embedding" in weights:
            weights.setdefault(f"{side}.embedding", weights["embedding"])
        if f"{side}.embedding" in weights:
            table = weights[f"{side}.embedding"]
            positions = weights.get("positions")
            weights[f"{side}.positions"] = (
                sinusoids(POSITIONS + 2, table.shape[1]) if positions is None else positions
            )
    if "decoder.embedding" in weights:
        weights.setdefault("output.weight", weights["decoder.embedding"])
    for name in ("embedding", "positions"):
        weights.pop(name, None)
    refuse_unsupported("Marian", [*_unsupported_reasons(options), *unread_weights(strange)])
    stacks = [
        Stack(
            layers=_number(options, depth),
            heads=_number(options, "transformer-heads"),
            pre_norm=pre_norm,
            scaled="Wpos" not in arrays,
        )
        for depth in ("enc-depth", "dec-depth")
    ]
    network = Network(
        weights=weights,
        encoder=stacks[0],
        decoder=stacks[1],
        activation=_ACTIVATIONS[options["transformer-ffn-activation"]][0],
        epsilon=_EPSILON,
        start=None,
        end=target.index(_EOS) if _EOS in target else 0,
    )
    check_weights(network, "Marian")
    return network


def _reference_name(name: str) -> str | None:
    """Return the name in `reference_network` of a weight of Marian's; None if there is no such weight."""
    whole = {
        **{"Wemb": "embedding", "encoder_Wemb": "encoder.embedding", "decoder_Wemb": "decoder.embedding"},
        **{"Wpos": "positions", "decoder_ff_logit_out_b": "output.bias"},
        **{"decoder_ff_logit_out_W": "output.weight", "decoder_ff_logit_out_Wt": "output.weight"},
    }
    if name in whole:
        return whole[name]
    if found := re.fullmatch(r"(encoder|decoder)_(top|emb)_(ln_scale|ln_bias)(?:_pre)?", name):
        norm = "norm" if found[2] == "top" else "embedding_norm"
        return f"{found[1]}.{norm}.{_NORM[found[3]]}"
    if found := re.fullmatch(r"(encoder|decoder)_l(\d+)_(self|context|ffn)_(\w+?)(?:_pre)?", name):
        side, layer, kind, part = found.groups()
        ours = _PARTS["ffn" if kind == "ffn" else "self"].get(part)
        return f"{side}.{int(layer) - 1}.{_SUBLAYERS[kind]}.{ours}" if ours else None
    return None


def _transpose(name: str, tensor: Tensor) -> Tensor:
    """Return a weight in torch's layout: Marian multiplies rows by W, and its vectors are rows."""
    if name.endswith(("Wemb", "Wpos", "_Wt")):
        return tensor
    return tensor.T.contiguous() if re.search(r"_W\w?$", name) else tensor.flatten()


def _unsupported_reasons(options: Mapping[str, Any]) -> list[str]:
    norms = tuple(
        str(options.get(f"transformer-{name}", "")).replace("d", "")
        for name in ("preprocess", "postprocess", "postprocess-top")
    )
    activation = options.get("transformer-ffn-activation")
    autoregression = options.get("transformer-decoder-autoreg", "self-attention")
    checks = {
        f"its type is {options.get('type')}, not transformer": options.get("type") == "transformer",
        f"its decoder is of the kind {autoregression}, not self-attention": autoregression
        == "self-attention",
        f"the activation {activation} is unknown": activation in _ACTIVATIONS,
        "attention without projection": not options.get("transformer-no-projection"),
        "tied layers": not options.get("transformer-tied-layers"),
        f"normalisation {norms[0]!r} before, {norms[1]!r} after, {norms[2]!r} on top": norms
        in (("", "an", ""), ("n", "a", "n")),
        f"operations {options.get('transformer-postprocess-emb')!r} on embeddings": set(
            str(options.get("transformer-postprocess-emb", ""))
        )
        <= {"d", "n"},
    }
    return [reason for reason, supported in checks.items() if not supported]


def _number(options: Mapping[str, Any], name: str) -> int:
    value = options.get(name)
    bound = HEADS if name == "transformer-heads" else LAYERS
    if type(value) is not int or not bound.allows(value):
        raise CadecError(f"the Marian model's {name} must be {bound}, not {quote_value(value)}")
    return value


def _spec(
    arrays: Mapping[str, np.ndarray[Any, Any]], network: Network, source: list[str], target: list[str]
) -> Any:
    activation = next(theirs for ours, theirs in _ACTIVATIONS.values() if ours == network.activation)
    spec = TransformerSpec.from_config(
        (network.encoder.layers, network.decoder.layers),
        network.encoder.heads,
        pre_norm=network.encoder.pre_norm,
        activation=activation,
        layernorm_embedding="encoder.embedding_norm.weight" in network.weights,
    )
    copies = {name: array.copy() for name, array in arrays.items()}
    ctranslate2_marian.set_transformer_spec(spec, copies)
    for side, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        stack.position_encodings.encodings = network.weights[f"{side}.positions"].numpy().copy()
        stack.scale_embeddings = network.encoder.scaled
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.add_source_eos = True
    spec.config.layer_norm_epsilon = network.epsilon
    return spec
