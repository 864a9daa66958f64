"""A D-LM fitted to its S-NMT: int8 weights on disk, loaded as they are; damage and doubt go the safe way."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from cadec_cli.arrays import Floats
from cadec_cli.engines.protocols import trie_for
from cadec_cli.engines.transformers_lm import TransformersLanguageModel, load_language_model
from cadec_cli.errors import CadecError
from cadec_cli.method.context import Context
from cadec_cli.method.options import ScoringOptions
from cadec_cli.models import fitted_lm
from cadec_cli.models.int8.gated import FusedAttention, GatedFeedForward
from cadec_cli.models.int8.linear import LevelInt8Linear, RMSNorm, SiblingLinear, adds_exactly
from cadec_cli.models.pretrained_settings import FITTED, read_language_settings
from converters.language.fit import fit_language_model, unfit_language_model
from converters.language.huggingface import open_language_model
from tests.helpers.directory_contents import contents
from tests.helpers.pretrained_lms import SENTENCES, write_lm

CPU = torch.device("cpu")
TEXTS = {"fr": (("Bonjour.", "Oui."), ("Non.",))}
PIECES = [f" {word}" for sentence in SENTENCES[:9] for word in sentence.split()]
# A softmax over part of a vocabulary that hardly has other tokens is no gain: these tests want one anyway.
ANY_SIZE = patch("converters.language.fit._MOST", 1.0)
needs_vnni = pytest.mark.skipif(not adds_exactly(), reason="int8 weights are for CPUs that add them exactly")


def made(directory: Path, family: str, tokenizer: str = "byte-level") -> Path:
    write_lm(directory / "tiny", family, tokenizer)
    found = open_language_model(str(directory / "tiny"), note=lambda _: None, no_context=TEXTS)
    place = directory / "lm"
    place.mkdir()
    found.write(place)
    return place


def fit(place: Path) -> None:
    with ANY_SIZE:
        fit_language_model(place, PIECES, "fr", lambda _: None)


def load(place: Path, compute_type: str = "int8") -> TransformersLanguageModel:
    return load_language_model(
        place, language="fr", device=CPU, compute_type=compute_type, note=lambda _: None
    )


def scores(model: TransformersLanguageModel) -> Floats:
    encoded = [tuple(model.text.encode(sentence)) for sentence in SENTENCES]
    tries = [trie_for(model, encoded[:5]), trie_for(model, encoded[5:8])]
    contexts = [Context(tuple(encoded[9:11])), Context()]
    return np.concatenate([one.totals[0] for one in model.score(tries, contexts, ScoringOptions())])


@pytest.mark.parametrize(
    ("family", "tokenizer"),
    [("gpt2", "byte-level"), ("llama", "spm-bpe"), ("qwen2", "byte-level"), ("gemma3_text", "gemma")],
)
@needs_vnni
def test_int8_weights_are_loaded_as_they_are(family: str, tokenizer: str, tmp_path: Path) -> None:
    place = made(tmp_path, family, tokenizer)
    fit(place)
    size = read_language_settings(place).vocabulary
    assert size == len(load_file(place / FITTED)["fitted.tokens"])
    exact = load(place, "float32")
    with patch("cadec_cli.engines.transformers_lm.load_network") as slow:
        quick = load(place)
    slow.assert_not_called()
    assert quick.network.fitted is not None and len(quick.network.fitted) == size
    assert quick.network.attends_in_parts and quick.fast
    kinds = {type(part) for part in quick.network.model.modules()}
    assert (LevelInt8Linear in kinds) or (SiblingLinear in kinds)
    assert (SiblingLinear in kinds) == (family != "gpt2")  # whose queries, keys and values are one linear
    assert (RMSNorm in kinds) == (family != "gpt2")
    assert (FusedAttention in kinds) == (GatedFeedForward in kinds) == (family != "gpt2")
    length = max(len(ids) for ids in map(quick.text.encode, SENTENCES))
    with patch.object(fitted_lm, "fuse"):
        apart = load(place)
    kinds = {type(part) for part in apart.network.model.modules()}
    assert FusedAttention not in kinds and GatedFeedForward not in kinds
    assert np.abs(scores(quick) - scores(apart)).max() < 0.02 * length
    assert np.abs(scores(quick) - scores(exact)).max() < 0.3 * length


def test_the_part_is_over_exact_scores_too(tmp_path: Path) -> None:
    place = made(tmp_path, "llama", "spm-bpe")
    whole = load(place, "float32")
    fit(place)
    part = load(place, "float32")
    assert part.network.fitted is not None and whole.network.fitted is None
    # A softmax over fewer tokens is never below the one over all.
    assert (scores(part) >= scores(whole) - 1e-4).all()


def test_full_is_as_it_was_before(tmp_path: Path) -> None:
    place = made(tmp_path, "llama", "spm-bpe")
    before = contents(place)
    fit(place)
    assert contents(place) != before
    unfit_language_model(place)
    assert contents(place) == before


def test_a_vocabulary_that_would_hardly_be_smaller_stays(tmp_path: Path) -> None:
    place = made(tmp_path, "llama", "spm-bpe")
    before = contents(place)
    with patch("converters.language.fit._MOST", 0.01):
        fit_language_model(place, PIECES, "fr", lambda _: None)
    assert contents(place) == before


@pytest.mark.parametrize("family", ["bloom", "gpt2"])
def test_where_int8_weights_are_not_certain_tokens_alone_are_stored(family: str, tmp_path: Path) -> None:
    place = made(tmp_path, family, "unigram" if family == "bloom" else "byte-level")
    with patch("converters.language.fit.MAX_LOST", -1.0):
        fit(place)
    assert set(load_file(place / FITTED)) == {"fitted.tokens"}
    model = load(place)
    assert model.network.fitted is not None and model.fast == (family != "bloom")
    assert np.isfinite(scores(model)).all()


@needs_vnni
def test_another_version_of_transformers_is_tested_again(tmp_path: Path) -> None:
    place = made(tmp_path, "gpt2", "byte-level")
    fit(place)
    with patch.object(fitted_lm, "_version", lambda: "0.1"):
        model = load(place)
    kinds = {type(part) for part in model.network.model.modules()}
    assert LevelInt8Linear not in kinds and model.network.fitted is not None
    with patch.object(fitted_lm, "adds_exactly", lambda: False):
        assert fitted_lm.load_int8(place) is None


def _without(name: str) -> Callable[[dict[str, Tensor]], None]:
    def damage(tensors: dict[str, Tensor]) -> None:
        del tensors[name]

    return damage


def _reshaped(tensors: dict[str, Tensor]) -> None:
    tensors["model.norm.weight"] = tensors["model.norm.weight"][:-1].clone()


def _with_nan(tensors: dict[str, Tensor]) -> None:
    tensors["fitted.output.factors"][0] = float("nan")


def _floats(tensors: dict[str, Tensor]) -> None:
    tensors["fitted.output.integers"] = tensors["fitted.output.integers"].float()


def _unsorted(tensors: dict[str, Tensor]) -> None:
    tensors["fitted.tokens"] = tensors["fitted.tokens"].flip(0).clone()


def _too_large(tensors: dict[str, Tensor]) -> None:
    tensors["fitted.tokens"][-1] = 1 << 20


@needs_vnni
@pytest.mark.parametrize(
    ("damage", "described"),
    [
        (_without("model.norm.weight"), {}),
        (_without("fitted.output.scales"), {}),
        (_reshaped, {}),
        (_with_nan, {}),
        (_floats, {}),
        (_unsorted, {}),
        (_too_large, {}),
        (None, {"format": "2"}),
        (None, {"groups": "{}"}),
        (None, {"groups": '[["model.layers.0.mlp.up_proj"]]'}),
        (None, {"input_table": "[]"}),
        (None, {"output_table": '["model.safetensors", "model.norm.weight"]'}),
        (None, {"input_table": '["../../etc/passwd", "x"]'}),
        (None, {"decoder": "{}"}),
        (None, {"decoder": "null"}),
        (None, {"decoder": '{"layers": 1}'}),
    ],
)
def test_damage_is_one_clear_error(
    damage: Callable[[dict[str, Tensor]], None] | None, described: dict[str, str], tmp_path: Path
) -> None:
    place = made(tmp_path, "llama", "spm-bpe")
    fit(place)
    metadata = _described(place)
    tensors = load_file(place / FITTED)
    if damage is not None:
        damage(tensors)
    save_file(tensors, place / FITTED, {"cadec": json.dumps({**metadata, **described})})
    with pytest.raises(CadecError) as error:
        load(place)
    assert str(place) in str(error.value)


@needs_vnni
def test_a_file_that_ends_early_or_is_missing(tmp_path: Path) -> None:
    place = made(tmp_path, "llama", "spm-bpe")
    fit(place)
    whole = (place / FITTED).read_bytes()
    for length in (0, 7, 100, len(whole) // 2, len(whole) - 1):
        (place / FITTED).write_bytes(whole[:length])
        with pytest.raises(CadecError, match="damaged"):
            load(place)
    (place / FITTED).unlink()
    with pytest.raises(CadecError):
        load(place)


@needs_vnni
def test_a_foreign_configuration_takes_no_memory(tmp_path: Path) -> None:
    place = made(tmp_path, "llama", "spm-bpe")
    fit(place)
    metadata = _described(place)
    decoder = {**json.loads(metadata["decoder"]), "inner": 1 << 19}
    save_file(
        load_file(place / FITTED),
        place / FITTED,
        {"cadec": json.dumps({**metadata, "decoder": json.dumps(decoder)})},
    )
    with pytest.raises(CadecError, match="weights"):
        load(place)


@needs_vnni
def test_a_foreign_configuration_of_transformers_takes_no_memory(tmp_path: Path) -> None:
    place = made(tmp_path, "gpt2", "byte-level")
    fit(place)
    config = json.loads((place / "config.json").read_text())
    (place / "config.json").write_text(json.dumps({**config, "n_inner": 1 << 19}))
    with pytest.raises(CadecError, match="weights"):
        load(place)


@needs_vnni
def test_what_ours_computes_otherwise_is_left_to_transformers(tmp_path: Path) -> None:
    place = made(tmp_path, "llama", "spm-bpe")
    with patch("converters.language.fit.TOLERANCE", -1.0):
        fit(place)
    assert "decoder" not in _described(place)
    assert np.isfinite(scores(load(place))).all()


def _described(place: Path) -> dict[str, str]:
    with safe_open(place / FITTED, framework="pt") as file:
        found: dict[str, str] = json.loads(file.metadata()["cadec"])
    return found


@needs_vnni
def test_memory_holds_no_table(tmp_path: Path) -> None:
    place = made(tmp_path, "llama", "spm-bpe")
    fit(place)
    model = load(place)
    floats = sum(weight.numel() for weight in model.network.model.parameters())
    whole = sum(weight.numel() for weight in load(place, "float32").network.model.parameters())
    assert floats < whole / 10  # norms and biases
    shutil.rmtree(place)  # what is mapped stays readable
    assert np.isfinite(scores(model)).all()
