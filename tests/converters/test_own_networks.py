"""CTranslate2 says what torch says, or the conversion is refused and nothing is left on disk."""

import copy
from pathlib import Path

import ctranslate2
import numpy as np
import pytest
import torch

from cadec_cli.engines.compute_types import COMPUTE_TYPES, usable_compute_type
from cadec_cli.errors import CadecError
from cadec_cli.models.layers import Block
from cadec_cli.models.transformer import Transformer, TransformerConfig
from cadec_cli.text.subwords import BOS, EOS, SPECIAL_PIECES
from converters.own_networks import _translation_spec, convert_translation_model, quantise
from tests.helpers.bundle_parts import tiny_nmt

SOURCE = [*SPECIAL_PIECES, *(f"s{index}" for index in range(30))]
TARGET = [*SPECIAL_PIECES, *(f"t{index}" for index in range(40))]

SHAPES = pytest.mark.parametrize(
    ("pre_norm", "tied", "activation"),
    [
        (pre_norm, tied, activation)
        for pre_norm in (False, True)
        for tied in (False, True)
        for activation in ("relu", "gelu", "swish")
    ],
)


@SHAPES
def test_float32_equals_torch(pre_norm: bool, tied: bool, activation: str, tmp_path: Path) -> None:
    nmt = tiny_nmt(len(SOURCE), len(TARGET), pre_norm, tied, activation)
    assert convert_translation_model(nmt, SOURCE, TARGET, tmp_path / "nmt", "float32").largest < 1e-4


def test_shared_embeddings_are_converted_too(tmp_path: Path) -> None:
    config = TransformerConfig(
        len(TARGET), len(TARGET), 1, 1, width=16, heads=2, inner=16, positions=20, shared_embeddings=True
    )
    drift = convert_translation_model(Transformer(config).eval(), TARGET, TARGET, tmp_path / "nmt", "float32")
    assert drift.largest < 1e-4


@pytest.mark.parametrize("compute_type", COMPUTE_TYPES)
def test_every_compute_type_runs_and_leaves_torch_alone(compute_type: str, tmp_path: Path) -> None:
    nmt = tiny_nmt(len(SOURCE), len(TARGET))
    before = copy.deepcopy(nmt.state_dict())
    drift = convert_translation_model(nmt, SOURCE, TARGET, tmp_path / "nmt", compute_type)
    assert 0 < drift.mean < 1
    assert drift.mean <= drift.largest
    assert compute_type in str(drift)
    assert all(torch.equal(tensor, before[name]) for name, tensor in nmt.state_dict().items())


def test_int8_is_off_by_no_more_than_rounding(tmp_path: Path) -> None:
    """Sums of products must not saturate, on whatever CPU: that would be off by twenty times as much."""
    torch.manual_seed(1)
    config = TransformerConfig(len(SOURCE), len(TARGET), 2, 2, width=128, heads=2, inner=256, positions=64)
    nmt = Transformer(config).eval()
    assert convert_translation_model(nmt, SOURCE, TARGET, tmp_path / "nmt", "int8").mean < 0.03


def test_int8_weights_leave_room_for_sums_of_two_products() -> None:
    """What keeps them from saturating, seen on any CPU: ±64, each row rounded to its own step."""
    nmt = tiny_nmt(len(SOURCE), len(TARGET))
    exact = _translation_spec(nmt).variables()
    spec = _translation_spec(nmt)
    spec.register_source_vocabulary(SOURCE)
    spec.register_target_vocabulary(TARGET)
    quantise(spec, "int8")
    stored = spec.variables()
    quantised = [name for name in stored if f"{name}_scale" in stored and not isinstance(stored[name], str)]
    assert len(quantised) > 10
    for name in quantised:
        weights, scale = stored[name].numpy(), stored[f"{name}_scale"].numpy()
        assert weights.dtype == np.int8
        assert (np.abs(weights).max(axis=1) == 64).all()
        assert np.abs(weights / scale[:, None] - exact[name].numpy()).max() <= 0.501 / scale.min()


def test_a_translation_scores_what_torch_gives_it(tmp_path: Path) -> None:
    """The whole way as n-best generation goes it: source with </s>, sums, no cutting."""
    nmt = tiny_nmt(len(SOURCE), len(TARGET))
    convert_translation_model(nmt, SOURCE, TARGET, tmp_path / "nmt", "float32")
    translator = ctranslate2.Translator(str(tmp_path / "nmt"), compute_type="float32", intra_threads=1)
    source = [5, 9, 7, 12]
    pieces = [SOURCE[index] for index in [*source, EOS]]
    result = translator.translate_batch(
        [pieces],
        beam_size=4,
        num_hypotheses=4,
        length_penalty=0,
        max_input_length=0,
        min_decoding_length=0,
        return_scores=True,
        return_end_token=True,
        max_decoding_length=30,
    )[0]
    compared = 0
    for hypothesis, score in zip(result.hypotheses, result.scores, strict=True):
        target = [TARGET.index(piece) for piece in hypothesis]
        logits = nmt(torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *target[:-1]]]))[0]
        expected = logits.log_softmax(-1).gather(1, torch.tensor(target)[:, None]).sum()
        assert score == pytest.approx(expected.item(), abs=1e-3)
        compared += 1
    assert compared == 4


def test_all_misfits_are_told_at_once_and_nothing_is_written(tmp_path: Path) -> None:
    nmt = tiny_nmt(len(SOURCE), len(TARGET), activation="gelu")
    with torch.no_grad():
        nmt.target_embedding.weight[3, 3] = float("nan")
        block = nmt.encoder[0]
        assert isinstance(block, Block)
        block.attention.out.bias[0] = 1e6
    with pytest.raises(CadecError) as caught:
        convert_translation_model(nmt, SOURCE[:-1], [*TARGET[:-1], TARGET[5]], tmp_path / "nmt", "float16")
    for part in (
        "source vocabulary has 33 pieces, the model 34",
        "target vocabulary has duplicate pieces: t1",
        "target_embedding.weight holds NaN",
        "encoder.0.attention.out.bias has values too large for float16",
    ):
        assert part in caught.value.message
    assert list(tmp_path.iterdir()) == []


def test_a_vocabulary_without_our_special_pieces_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CadecError, match="does not start with <pad> <unk>"):
        convert_translation_model(
            tiny_nmt(4, len(TARGET)), ["a", "b", "c", "d"], TARGET, tmp_path / "nmt", "float32"
        )


def test_an_unknown_compute_type_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CadecError, match="no compute type 'int4'"):
        convert_translation_model(
            tiny_nmt(len(SOURCE), len(TARGET)), SOURCE, TARGET, tmp_path / "nmt", "int4"
        )


def test_a_usable_compute_type_is_found_for_any() -> None:
    supported = ctranslate2.get_supported_compute_types("cpu")
    assert all(usable_compute_type(name) in supported for name in COMPUTE_TYPES)
    assert usable_compute_type("float32") == "float32"
