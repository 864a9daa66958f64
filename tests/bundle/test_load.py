"""A bundle's models as loaded: what is kept in memory, and for whom."""

import contextlib
import gc
import json
import re
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from cadec_cli.bundle.build import BundleRequest, build_bundle
from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.load import load_models
from cadec_cli.engines.torch_lm import TorchLanguageModel
from cadec_cli.engines.torch_nmt import TorchTranslationModel
from cadec_cli.errors import CadecError
from cadec_cli.models.doclm import DocumentLM
from cadec_cli.models.int8.linear import Int8Linear
from cadec_cli.text.pipeline import TextPipeline
from tests.helpers.bundle_parts import write_bundle, write_parts


@pytest.fixture
def bundle(tmp_path: Path, english: TextPipeline, russian: TextPipeline) -> Bundle:
    return Bundle.open(write_bundle(tmp_path, english, russian))


@pytest.mark.parametrize("compute_type", ["int8", "float32"])
def test_one_copy_of_the_d_lm_is_kept(
    bundle: Bundle, compute_type: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[weakref.ref[DocumentLM]] = []
    load = Bundle.network

    def watched(opened: Bundle, kind: str) -> DocumentLM:
        network = load(opened, kind)
        assert isinstance(network, DocumentLM)
        loaded.append(weakref.ref(network))
        return network

    monkeypatch.setattr(Bundle, "network", watched)
    models = load_models(bundle, compute_type=compute_type, device="cpu")
    language = models.language
    assert isinstance(language, TorchLanguageModel) and models.language is language
    gc.collect()
    (read_from_disk,) = loaded
    if compute_type == "int8":
        assert any(isinstance(part, Int8Linear) for part in language.network.modules())
        assert read_from_disk() is None, "the float32 network is still there beside its int8 copy"
    else:
        assert read_from_disk() is language.network


def test_it_is_said_which_model_is_loaded_and_how_large_it_is(bundle: Bundle) -> None:
    said: list[str] = []

    @contextlib.contextmanager
    def loading(what: str) -> Iterator[None]:
        said.append(what)
        yield

    models = load_models(bundle, device="cpu", loading=loading)
    assert not said
    assert models.language is models.language and models.translation is models.translation
    first, second = said
    assert re.fullmatch(r"the D-LM, \d+ MB", first) and re.fullmatch(r"the S-NMT, \d+ MB", second)


def test_the_beam_s_s_n_m_t_has_int8_weights_where_the_compute_type_says_so(bundle: Bundle) -> None:
    for compute_type in ("int8", "float32"):
        stepped = load_models(bundle, compute_type=compute_type, device="cpu").stepwise_translation
        assert isinstance(stepped, TorchTranslationModel)
        rounded = any(isinstance(part, Int8Linear) for part in stepped.network.modules())
        assert rounded == (compute_type == "int8")


def test_an_s_n_m_t_takes_no_threads_away_from_torch(bundle: Bundle) -> None:
    before = torch.get_num_threads()
    try:
        for first in ("language", "translation"):
            torch.set_num_threads(1)
            models = load_models(bundle, compute_type="int8", device="cpu", threads=2)
            getattr(models, first)
            assert models.language and models.translation.nbest(["Tom took it."], 2)
            assert torch.get_num_threads() == 2  # CTranslate2 is told one per batch, and tells OpenMP
    finally:
        torch.set_num_threads(before)


def test_loading_for_one_leaves_the_bundle_to_others(bundle: Bundle) -> None:
    first, second = (load_models(bundle, compute_type="float32", device="cpu") for _ in range(2))
    assert isinstance(first.language, TorchLanguageModel) and isinstance(second.language, TorchLanguageModel)
    assert first.language.network is not second.language.network
    first.language.network.half()  # as moving it to a device would
    assert next(second.language.network.parameters()).dtype != next(first.language.network.parameters()).dtype
    stepped = [models.stepwise_translation for models in (first, second)]
    networks = [one.network for one in stepped if isinstance(one, TorchTranslationModel)]
    assert len(networks) == 2 and networks[0] is not networks[1]


def _with_other(model: Path, name: str, **changes: object) -> None:
    stored = json.loads((model / name).read_text("utf-8"))
    (model / name).write_text(json.dumps({**stored, **changes}), "utf-8")


@pytest.mark.parametrize(
    "setting", ["add_source_bos", "add_source_eos", "multi_query_attention", "bos_token"]
)
def test_a_ctranslate2_model_whose_settings_are_of_other_types_is_not_loaded(
    bundle: Bundle, setting: str
) -> None:
    _with_other(bundle.path("ct2/int8"), "config.json", **{setting: 7})
    with pytest.raises(CadecError, match=f"config.json is damaged: {setting}"):
        load_models(bundle, compute_type="int8", device="cpu").translation  # noqa: B018 - it is loaded now


def test_a_ctranslate2_model_that_does_not_say_what_it_wants_is_not_loaded(bundle: Bundle) -> None:
    config = bundle.path("ct2/int8") / "config.json"
    stored = json.loads(config.read_text("utf-8"))

    def without(left_out: str) -> dict[str, object]:
        return {name: value for name, value in stored.items() if name != left_out}

    for said, message in (
        (without("add_source_eos"), r"config\.json is damaged: add_source_eos"),
        (without("decoder_start_token"), "no token to start translations with"),
        ({**stored, "decoder_start_token": None}, "no token to start translations with"),
    ):
        config.write_text(json.dumps(said), "utf-8")
        with pytest.raises(CadecError, match=message):
            load_models(bundle, compute_type="int8", device="cpu").translation  # noqa: B018 - loaded now


def test_a_ctranslate2_model_that_writes_what_its_pipeline_lacks_says_so(bundle: Bundle) -> None:
    vocabulary = bundle.path("ct2/int8") / "target_vocabulary.json"
    tokens = json.loads(vocabulary.read_text("utf-8"))
    other = [*tokens[:4], *(f"{token}☃" for token in tokens[4:])]
    vocabulary.write_text(json.dumps(other), "utf-8")
    translation = load_models(bundle, compute_type="int8", device="cpu").translation
    with pytest.raises(CadecError, match="does not know"):
        translation.nbest(["Tom wants it."], 2)


def test_a_ctranslate2_model_that_can_not_translate_says_so(bundle: Bundle) -> None:
    vocabulary = bundle.path("ct2/int8") / "target_vocabulary.json"
    tokens = json.loads(vocabulary.read_text("utf-8"))
    vocabulary.write_text(json.dumps(tokens[:6]), "utf-8")
    with pytest.raises(CadecError, match="CTranslate2 can't"):
        load_models(bundle, compute_type="int8", device="cpu").translation.nbest(["Tom wants it."], 2)


def test_scores_that_are_no_numbers_are_an_error(bundle: Bundle) -> None:
    _with_other(bundle.path("ct2/int8"), "config.json", layer_norm_epsilon=-1e30)
    with pytest.raises(CadecError, match="scores are not numbers"):
        load_models(bundle, compute_type="int8", device="cpu").translation.nbest(["Tom wants it."], 2)


def test_what_is_not_there_is_said(tmp_path: Path, english: TextPipeline, russian: TextPipeline) -> None:
    write_parts(tmp_path, english, russian)
    build_bundle(tmp_path / "lm-only", BundleRequest(lm=tmp_path / "lm", target=tmp_path / "ru"))
    models = load_models(Bundle.open(tmp_path / "lm-only"), device="cpu")
    with pytest.raises(CadecError, match="has no S-NMT"):
        _ = models.translation
    build_bundle(
        tmp_path / "nmt-only",
        BundleRequest(nmt=tmp_path / "nmt", source=tmp_path / "en", target=tmp_path / "ru"),
    )
    assert load_models(Bundle.open(tmp_path / "nmt-only"), device="cpu").language is None
