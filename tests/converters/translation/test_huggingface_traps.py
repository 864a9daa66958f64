"""What misleads a converter of Hugging Face models, and what is no model to convert: each with its care."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from cadec_cli.engines.ctranslate2 import read_vocabularies
from cadec_cli.errors import CadecError
from converters.verify import TOLERANCE
from tests.helpers import pretrained_models as tiny
from tests.helpers.huggingface_parts import (
    SENTENCES,
    by_name,
    drift_of,
    open_in,
    plainly_converted,
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("huggingface")


# Traps, each with what happens without the care taken


def test_untied_embeddings_are_not_taken_for_tied(root: Path, tmp_path: Path) -> None:
    one = by_name("madlad", root)
    state = load_file(one.directory / "model.safetensors")
    assert not torch.equal(state["lm_head.weight"], state["shared.weight"])
    # The reference is what the file says, whatever the configuration is made to say.
    assert torch.equal(one.network.lm_head.weight, state["lm_head.weight"])
    assert torch.equal(one.network.shared.weight, state["shared.weight"])
    assert drift_of(one, one.output).largest < TOLERANCE / 10
    with pytest.raises(CadecError, match="disagrees"):
        drift_of(one, plainly_converted(one.directory, tmp_path / "plain")).check()


def test_embeddings_may_have_another_name(root: Path, tmp_path: Path) -> None:
    # As in MADLAD's files on the hub.
    copy = tmp_path / "madlad"
    shutil.copytree(by_name("madlad", root).directory, copy)
    state = load_file(copy / "model.safetensors")
    state["decoder.embed_tokens.weight"] = state.pop("shared.weight")
    save_file(state, copy / "model.safetensors", metadata={"format": "pt"})
    found = open_in(copy, None, "ru")
    found.convert(tmp_path / "converted", "float32")
    assert drift_of(by_name("madlad", root), tmp_path / "converted").largest < TOLERANCE / 10


def test_tied_embeddings_stay_tied(root: Path) -> None:
    one = by_name("t5", root)
    assert "lm_head.weight" not in load_file(one.directory / "model.safetensors")
    assert one.network.config.scale_decoder_outputs


def test_marians_padding_is_no_token(root: Path) -> None:
    one = by_name("marian", root)
    assert "<pad>" not in one.found.tokens
    assert read_vocabularies(one.output)[0] == list(one.found.tokens)
    read = torch.tensor([one.tokenizer(SENTENCES[0]).input_ids])
    start = torch.tensor([[one.network.config.decoder_start_token_id]])
    with torch.inference_mode():
        logits = one.network(input_ids=read, decoder_input_ids=start).logits[0, 0]
    # Counted, it would take of every token's probability.
    assert logits.logsumexp(-1) - logits[:-1].logsumexp(-1) > TOLERANCE


def test_where_the_decoder_starts_is_not_left_to_a_guess(root: Path, tmp_path: Path) -> None:
    # CTranslate2 guesses from the tokenizer's class in config.json, which need not be there.
    one = by_name("mbart50", root)
    copy = tmp_path / "mbart50"
    shutil.copytree(one.directory, copy)
    config = json.loads((copy / "config.json").read_text("utf-8"))
    config.pop("tokenizer_class")
    (copy / "config.json").write_text(json.dumps(config), "utf-8")
    open_in(copy, "en", "ru").convert(tmp_path / "converted", "float32")
    written = json.loads((tmp_path / "converted" / "config.json").read_text("utf-8"))
    assert written["decoder_start_token"] == "</s>"
    plain = plainly_converted(copy, tmp_path / "plain")
    assert json.loads((plain / "config.json").read_text("utf-8"))["decoder_start_token"] is None


def test_rows_without_a_token_get_one_that_is_never_text(root: Path) -> None:
    for name, count in (("nllb", 2), ("t5", 5), ("madlad", 5), ("m2m100", 8)):
        found = by_name(name, root).found
        unused = [token for token in found.tokens if token.startswith("<unused_row_")]
        assert len(unused) == count
        assert len(set(found.tokens)) == len(found.tokens)
        assert found.sides.target.decode([found.tokens.index(unused[0])]) == ""


def test_languages_of_m2m100_are_known_even_if_no_file_lists_them(root: Path, tmp_path: Path) -> None:
    copy = tmp_path / "m2m100"
    shutil.copytree(by_name("m2m100", root).directory, copy)
    (copy / "special_tokens_map.json").unlink()
    config = json.loads((copy / "tokenizer_config.json").read_text("utf-8"))
    config.pop("additional_special_tokens")
    (copy / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    found = open_in(copy, "en", "ru")
    assert found.framing.target_begin == ("__ru__",)
    assert found.tokens == by_name("m2m100", root).found.tokens
    found.convert(tmp_path / "converted", "float32")


def test_a_tokenizer_json_alone_is_enough(root: Path, tmp_path: Path) -> None:
    copy = tmp_path / "nllb"
    shutil.copytree(by_name("nllb", root).directory, copy)
    (copy / "sentencepiece.bpe.model").unlink()
    found = open_in(copy, "en", "ru")
    assert found.settings.source.kind == found.settings.target.kind == "tokenizers"
    assert found.files == {"tokenizer.json": copy / "tokenizer.json"}
    found.convert(tmp_path / "converted", "float32")


def test_a_sentencepiece_model_that_writes_otherwise_is_passed_over(root: Path, tmp_path: Path) -> None:
    copy = tmp_path / "nllb"
    shutil.copytree(by_name("nllb", root).directory, copy)
    (copy / "sentencepiece.bpe.model").write_bytes(tiny.subwords(kind="bpe", size=240))
    assert open_in(copy, "en", "ru").settings.source.kind == "tokenizers"


# What is wrong is one clear error, and nothing is written


@pytest.fixture
def marian(root: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "model"
    shutil.copytree(by_name("marian", root).directory, copy)
    return copy


def refused(directory: Path, message: str) -> CadecError:
    output = directory.parent / "converted"
    before = sorted(directory.parent.iterdir())
    with pytest.raises(CadecError, match=message) as caught:
        open_in(directory).convert(output, "int8")
    assert sorted(directory.parent.iterdir()) == before
    return caught.value


def changed_config(directory: Path, **values: object) -> None:
    config = json.loads((directory / "config.json").read_text("utf-8"))
    (directory / "config.json").write_text(json.dumps({**config, **values}), "utf-8")


def test_another_architecture(marian: Path) -> None:
    changed_config(marian, model_type="bert")
    assert "MarianMT" in refused(marian, "is a bert model").hint
    (marian / "config.json").write_text("[]", "utf-8")
    refused(marian, "is not a JSON object of settings")
    (marian / "config.json").write_text("{}", "utf-8")
    refused(marian, "a model without a model_type")
    (marian / "config.json").unlink()
    refused(marian, "not a Hugging Face model")


def test_weights_that_are_not_numbers(marian: Path) -> None:
    state = load_file(marian / "model.safetensors")
    name = next(name for name in state if name.endswith("fc1.weight"))
    state[name][3, 2] = torch.nan
    save_file(state, marian / "model.safetensors", metadata={"format": "pt"})
    refused(marian, "holds NaN or infinite values")


def test_weights_that_are_missing(marian: Path) -> None:
    state = load_file(marian / "model.safetensors")
    name = next(name for name in state if name.endswith("fc1.weight"))
    state.pop(name)
    save_file(state, marian / "model.safetensors", metadata={"format": "pt"})
    refused(marian, "are missing or of another size: .*fc1.weight")
    whole = (marian / "model.safetensors").read_bytes()
    (marian / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    refused(marian, "transformers can't read the model")
    (marian / "model.safetensors").unlink()
    refused(marian, "has no weights")


def test_a_vocabulary_of_another_model(marian: Path) -> None:
    vocabulary = json.loads((marian / "vocab.json").read_text("utf-8"))
    tokens = list(vocabulary)
    more = [*tokens[:-1], "more", "<pad>"]
    (marian / "vocab.json").write_text(json.dumps({t: i for i, t in enumerate(more)}), "utf-8")
    refused(marian, "does not belong to the model")
    fewer = {t: i for i, t in enumerate([*tokens[:-9], "<pad>"])}
    (marian / "vocab.json").write_text(json.dumps(fewer), "utf-8")
    refused(marian, "does not end with <pad>")
    changed_config(marian, vocab_size=len(fewer), pad_token_id=len(fewer) - 1)
    refused(marian, "are missing or of another size")


def test_a_sentencepiece_model_of_another_model(marian: Path) -> None:
    vocabulary = json.loads((marian / "vocab.json").read_text("utf-8"))
    strange = {token if token.startswith("<") else f"{token}☃": index for token, index in vocabulary.items()}
    (marian / "vocab.json").write_text(json.dumps(strange), "utf-8")
    refused(marian, r"source\.spm does not belong to the model")


def test_a_tokenizer_that_is_damaged_or_not_there(marian: Path) -> None:
    (marian / "source.spm").write_bytes(b"nothing")
    refused(marian, "can't read the tokenizer|not a SentencePiece model")
    (marian / "source.spm").unlink()
    refused(marian, "can't read the tokenizer")


@pytest.mark.parametrize("index", [None, "7", -1, 0.5])
def test_an_id_that_is_no_number(marian: Path, index: object) -> None:
    vocabulary = json.loads((marian / "vocab.json").read_text("utf-8"))
    (marian / "vocab.json").write_text(json.dumps({**vocabulary, "new": index}), "utf-8")
    refused(marian, "invalid ids|can't read the tokenizer")


def test_separate_vocabularies_are_refused(marian: Path) -> None:
    shutil.copy(marian / "vocab.json", marian / "target_vocab.json")
    config = {"separate_vocabs": True, "tokenizer_class": "MarianTokenizer"}
    (marian / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    refused(marian, "a vocabulary for each side")


def test_a_conversion_that_says_something_else_is_not_written(
    marian: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from converters.translation import huggingface

    build = huggingface.TransformersNetwork.spec

    def spoiled(self: Any) -> Any:
        spec = build(self)
        spec.encoder.scale_embeddings = False
        return spec

    monkeypatch.setattr(huggingface.TransformersNetwork, "spec", spoiled)
    refused(marian, "disagrees with torch")


def test_without_transformers_the_error_says_what_to_install(
    marian: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert "pip install 'cadec[huggingface]'" in refused(marian, "need the transformers package").hint


def test_transformers_says_nothing(marian: Path, capfd: pytest.CaptureFixture[str]) -> None:
    open_in(marian).convert(marian.parent / "converted", "float32")
    assert capfd.readouterr() == ("", "")
