"""Verification notices what it is there to notice."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from cadec_cli.errors import CadecError
from cadec_cli.models.transformer import Transformer
from cadec_cli.text.subwords import SPECIAL_PIECES
from converters import own_networks
from converters.verify import TOLERANCE, Drift, translation_drift
from tests.helpers.bundle_parts import shaken, tiny_nmt

PIECES = [*SPECIAL_PIECES, *(f"p{index}" for index in range(40))]
AGREED = Drift("S-NMT", "float32", 9, 100, 1e-6, 1e-5)


@pytest.mark.parametrize(
    ("drift", "agrees"),
    [
        (AGREED, True),
        (replace(AGREED, largest=TOLERANCE), True),
        (replace(AGREED, largest=1.1 * TOLERANCE), False),
        (replace(AGREED, largest=math.nan), False),
        (replace(AGREED, compute_type="int8", mean=0.2, largest=2.0), True),
        (replace(AGREED, compute_type="int8", mean=1.1, largest=20.0), False),
        (replace(AGREED, compute_type="int8", mean=math.nan, largest=math.nan), False),
    ],
)
def test_float32_must_agree_and_the_rest_must_make_sense(drift: Drift, agrees: bool) -> None:
    if agrees:
        drift.check()
        return
    with pytest.raises(CadecError, match="disagrees with torch"):
        drift.check()


@pytest.mark.parametrize(
    "wrong",
    ["norm", "positions", "bias", "activation", "scale"],
)
def test_a_conversion_that_gets_something_wrong_is_refused(
    wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = own_networks._translation_spec

    def spoiled(model: Transformer) -> Any:
        spec = build(model)
        if wrong == "norm":
            spec.encoder.layer[1].ffn.layer_norm.beta += 0.1
        elif wrong == "positions":
            table = spec.decoder.position_encodings.encodings
            spec.decoder.position_encodings.encodings = torch.cat([table[1:], table[:1]])
        elif wrong == "bias":
            spec.decoder.layer[0].attention.linear[1].bias *= 0
        elif wrong == "activation":
            spec.encoder.activation = spec.encoder.activation.dtype.type(2)  # swish for gelu
        else:
            spec.encoder.scale_embeddings = False
        return spec

    monkeypatch.setattr(own_networks, "_translation_spec", spoiled)
    nmt = tiny_nmt(len(PIECES), len(PIECES), activation="gelu")
    with pytest.raises(CadecError, match="disagrees with torch"):
        own_networks.convert_translation_model(nmt, PIECES, PIECES, tmp_path / "nmt", "float32")
    assert list(tmp_path.iterdir()) == []


def test_given_sentences_are_compared_too(tmp_path: Path) -> None:
    nmt = tiny_nmt(len(PIECES), len(PIECES))
    pairs = [([5, 6, 7], [8, 9]), ([10], [11, 12, 13]), ([], [5]), ([5] * 99, [5])]  # two can't be scored
    convert = own_networks.convert_translation_model
    without = convert(nmt, PIECES, PIECES, tmp_path / "nmt", "float32")
    given = convert(nmt, PIECES, PIECES, tmp_path / "nmt", "float32", pairs)
    assert (given.sentences, given.tokens) == (without.sentences + 2, without.tokens + 7)


def test_another_model_is_noticed(tmp_path: Path) -> None:
    nmt = tiny_nmt(len(PIECES), len(PIECES))
    own_networks.convert_translation_model(nmt, PIECES, PIECES, tmp_path / "nmt", "float32")
    shaken(nmt, seed=2)
    assert translation_drift(nmt, PIECES, PIECES, tmp_path / "nmt", "float32").largest > 0.1


def test_a_damaged_converted_model_is_one_clear_error(tmp_path: Path) -> None:
    nmt = tiny_nmt(len(PIECES), len(PIECES))
    own_networks.convert_translation_model(nmt, PIECES, PIECES, tmp_path / "nmt", "float32")
    model = tmp_path / "nmt" / "model.bin"
    model.write_bytes(model.read_bytes()[:-100])
    with pytest.raises(CadecError, match="CTranslate2 can't load"):
        translation_drift(nmt, PIECES, PIECES, tmp_path / "nmt", "float32")
