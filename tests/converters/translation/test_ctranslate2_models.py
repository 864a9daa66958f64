"""Directories of CTranslate2 are taken as they are, framed as their vocabularies say, and checked."""

import argparse
import json
import shutil
import tracemalloc
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np
import pytest
import torch
from ctranslate2.specs import TransformerDecoderModelSpec

from cadec_cli.engines.ctranslate2 import CTranslate2Model
from cadec_cli.errors import CadecError
from converters import PretrainedRequest
from converters.translation.ctranslate2_models import open_ctranslate2
from converters.translation.fairseq import open_fairseq
from converters.translation.marian import open_marian
from converters.translation.opennmt import open_opennmt
from tests.helpers.foreign_models import (
    FAIRSEQ_SPECIAL,
    OPENNMT_SPECIAL,
    OTHERS,
    SENTENCES,
    PieceText,
    fairseq_network,
    fairseq_options,
    fairseq_state,
    made_to_end,
    marian_arrays,
    marian_network,
    opennmt_checkpoint,
    opennmt_network,
    original_log_probs,
    train_spm,
    write_fairseq,
    write_marian,
)

LANGUAGES = {
    "m2m100": ["__en__", "__fr__", "__ru__"],
    "nllb": ["eng_Latn", "fra_Latn", "rus_Cyrl"],
    "mbart50": ["en_XX", "fr_XX", "ru_RU"],
    "madlad": ["<2en>", "<2fr>", "<2ru>"],
}
DIRECTION = PretrainedRequest(source_language="en", target_language="ru")


def many_languages(root: Path, tokens: list[str], pieces: list[str]) -> tuple[Path, Any, list[str]]:
    """A pre-norm transformer with tokens of languages, its network and its vocabulary."""
    vocabulary = [*FAIRSEQ_SPECIAL, *pieces, *tokens]
    network = made_to_end(fairseq_network("m2m_100", len(vocabulary)), 2)
    options = argparse.Namespace(**fairseq_options("m2m_100"))
    write_fairseq(root, {"args": options, "model": fairseq_state(network)}, vocabulary)
    open_fairseq(root, PretrainedRequest()).convert(root / "ct2", "float32")
    return root / "ct2", network, vocabulary


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    path = tmp_path_factory.mktemp("tokenizer") / "sentencepiece.model"
    return path, train_spm(path, [*SENTENCES, *OTHERS], 100)


@pytest.fixture(scope="module")
def families(
    tokenizer: tuple[Path, list[str]], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, tuple[Path, Any, list[str]]]:
    made = {}
    for family, tokens in LANGUAGES.items():
        root = tmp_path_factory.mktemp(family)
        shutil.copy(tokenizer[0], root)
        made[family] = many_languages(root, tokens, tokenizer[1])
        shutil.copy(tokenizer[0], made[family][0])
    return made


@pytest.fixture(scope="module")
def marian(
    tokenizer: tuple[Path, list[str]], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Any, list[str]]:
    root = tmp_path_factory.mktemp("marian")
    shutil.copy(tokenizer[0], root)
    vocabulary = ["</s>", "<unk>", *tokenizer[1]]
    network = marian_network(len(vocabulary))
    write_marian(root, marian_arrays(network, len(vocabulary)), vocabulary)
    open_marian(root, PretrainedRequest()).convert(root / "ct2", "float32")
    return root / "ct2", network, vocabulary


@pytest.fixture
def copied(marian: tuple[Path, Any, list[str]], tokenizer: tuple[Path, list[str]], tmp_path: Path) -> Path:
    """A directory to spoil, with a tokenizer."""
    shutil.copytree(marian[0], tmp_path / "ready")
    shutil.copy(tokenizer[0], tmp_path / "ready")
    return tmp_path / "ready"


@pytest.mark.parametrize("family", ["m2m100", "nllb", "mbart50"])
def test_a_direction_is_framed_and_its_token_is_not_counted(
    family: str, families: dict[str, tuple[Path, Any, list[str]]], tmp_path: Path
) -> None:
    directory, network, vocabulary = families[family]
    english, _, russian = LANGUAGES[family]
    found = open_ctranslate2(directory, DIRECTION)
    assert found.settings.family == family
    assert found.settings.source_languages == found.settings.target_languages == tuple(LANGUAGES[family])
    assert found.languages == ("en", "ru")
    assert (found.framing.source_begin, found.framing.source_end) == ((english,), ("</s>",))
    assert found.framing.target_begin == (russian,)
    assert found.settings.positions == 70
    found.convert(tmp_path / "nmt", "float32")
    text = PieceText(vocabulary, 2)
    engine = CTranslate2Model(
        tmp_path / "nmt", text, text, framing=found.framing, positions=70, compute_type="float32"
    )
    source = vocabulary[10:17]
    ids = [vocabulary.index(token) for token in (english, *source, "</s>")]
    for hypothesis in engine.nbest([" ".join(source)], 4)[0].hypotheses:
        target = [vocabulary.index(token) for token in (russian, *hypothesis.text.split())]
        exact = original_log_probs(network, ids, target, start=2, end=2, tokens=len(vocabulary))
        assert hypothesis.log_prob == pytest.approx(sum(exact[1:]), abs=1e-3)


def test_a_language_of_the_target_before_the_source(
    families: dict[str, tuple[Path, Any, list[str]]],
) -> None:
    found = open_ctranslate2(families["madlad"][0], DIRECTION)
    assert found.settings.family == "madlad"
    assert (found.framing.source_begin, found.framing.target_begin) == (("<2ru>",), ())
    assert "<2ru>" in found.settings.target.options["special"].split()


def test_a_language_that_is_not_there_or_not_said_is_an_error(
    families: dict[str, tuple[Path, Any, list[str]]],
) -> None:
    with pytest.raises(CadecError, match="'de'"):
        open_ctranslate2(families["nllb"][0], PretrainedRequest(source_language="en", target_language="de"))
    with pytest.raises(CadecError, match="language"):
        open_ctranslate2(families["nllb"][0], PretrainedRequest(source_language="en"))


def test_marian_gets_its_end_from_ctranslate2(
    marian: tuple[Path, Any, list[str]], copied: Path, tmp_path: Path
) -> None:
    found = open_ctranslate2(copied, PretrainedRequest())
    assert (found.settings.family, found.framing.source_size) == ("transformer", 0)
    assert set(found.weights_files) == {"model.bin", "config.json", "shared_vocabulary.json"}
    assert found.files == {"sentencepiece.model": copied / "sentencepiece.model"}
    found.convert(tmp_path / "nmt", "int8")
    for name in found.weights_files:
        assert (tmp_path / "nmt" / name).read_bytes() == (copied / name).read_bytes()
    assert not (tmp_path / "nmt" / "sentencepiece.model").exists()


def test_sources_of_opennmt_have_no_end(tmp_path: Path) -> None:
    source = ["<unk>", "<blank>", *train_spm(tmp_path / "source.spm", SENTENCES)]
    target = [*OPENNMT_SPECIAL, *train_spm(tmp_path / "target.spm", OTHERS)]
    network = opennmt_network(len(source), len(target))
    torch.save(opennmt_checkpoint(network, {"src": source, "tgt": target}), tmp_path / "model.pt")
    opened = open_opennmt(tmp_path, PretrainedRequest())
    assert opened.settings.source.options == {"end": "<blank>"}
    opened.convert(tmp_path / "ct2", "float32")
    spm = tmp_path / "source.spm", tmp_path / "target.spm"
    found = open_ctranslate2(
        tmp_path / "ct2", PretrainedRequest(source_tokenizer=spm[0], target_tokenizer=spm[1])
    )
    assert (found.settings.family, found.framing.source_size) == ("opennmt", 0)
    assert set(found.weights_files) == {
        *("model.bin", "config.json", "source_vocabulary.json", "target_vocabulary.json")
    }


def test_one_named_tokenizer_is_enough(
    marian: tuple[Path, Any, list[str]], tokenizer: tuple[Path, list[str]]
) -> None:
    with pytest.raises(CadecError, match="no tokenizer of the source") as caught:
        open_ctranslate2(marian[0], PretrainedRequest())
    assert "source_tokenizer" in caught.value.hint
    found = open_ctranslate2(marian[0], PretrainedRequest(source_tokenizer=tokenizer[0]))
    assert found.settings.source == found.settings.target


def test_a_tokenizer_json_is_told_by_its_pieces(copied: Path, tokenizer: tuple[Path, list[str]]) -> None:
    (copied / "sentencepiece.model").unlink()
    vocabulary = [["<unk>", 0.0], *([piece, -1.0] for piece in tokenizer[1])]
    value = {"added_tokens": [{"content": "<unk>"}], "model": {"type": "Unigram", "vocab": vocabulary}}
    (copied / "tokenizer.json").write_text(json.dumps(value), "utf-8")
    assert open_ctranslate2(copied, PretrainedRequest()).settings.source.kind == "tokenizers"
    value["model"] = {"type": "BPE", "vocab": {f"other{index}": index for index in range(50)}}
    (copied / "tokenizer.json").write_text(json.dumps(value), "utf-8")
    with pytest.raises(CadecError, match="is not the tokenizer of the model's source"):
        open_ctranslate2(copied, PretrainedRequest())


def decoder_only(directory: Path) -> None:
    spec = TransformerDecoderModelSpec.from_config(1, 2)
    vocabulary = ["<unk>", "<s>", "</s>", "a"]
    width = 8

    def fill(part: Any, name: str, value: Any) -> None:
        attribute = name.rsplit("/", 1)[-1]
        if value is None:
            shape = {"gamma": (width,), "beta": (width,), "encodings": (9, width)}.get(attribute)
            rows = len(vocabulary) if "embeddings" in name or "projection" in name else width
            rows = 3 * width if "linear_0" in name and "self_attention" in name else rows
            setattr(part, attribute, np.zeros(shape or (rows, width), np.float32))

    spec._visit(fill)
    spec.register_vocabulary(vocabulary)
    spec.validate()
    spec.save(str(directory))


def truncated(directory: Path) -> None:
    data = (directory / "model.bin").read_bytes()
    (directory / "model.bin").write_bytes(data[: len(data) // 2])


def endless(directory: Path) -> None:
    data = bytearray((directory / "model.bin").read_bytes())
    name = b"decoder/embeddings/weight\0"
    start = data.index(name) + len(name) + 1 + 2 * 4 + 1
    data[start : start + 4] = b"\xff" * 4
    (directory / "model.bin").write_bytes(bytes(data))


def no_model(directory: Path) -> None:
    (directory / "model.bin").write_bytes(b"")


def no_vocabulary(directory: Path) -> None:
    (directory / "shared_vocabulary.json").unlink()


def short_vocabulary(directory: Path) -> None:
    path = directory / "shared_vocabulary.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8"))[:-1]), "utf-8")


def no_configuration(directory: Path) -> None:
    (directory / "config.json").unlink()


def no_start(directory: Path) -> None:
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps({**config, "decoder_start_token": None}))


def plain_t5(directory: Path) -> None:
    path = directory / "shared_vocabulary.json"
    tokens = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps([*tokens[:-1], "<extra_id_0>"]), "utf-8")


def not_numbers(directory: Path) -> None:
    data = bytearray((directory / "model.bin").read_bytes())
    name = b"decoder/embeddings/weight\0"
    start = data.index(name) + len(name) + 1 + 2 * 4 + 1 + 4
    data[start : start + 4] = np.float32(np.nan).tobytes()
    (directory / "model.bin").write_bytes(bytes(data))


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (decoder_only, "not a translation model: CTranslate2 calls it TransformerDecoderSpec"),
        (truncated, "cut short"),
        (endless, "cut short"),
        (no_model, "cut short"),
        (no_vocabulary, "vocabulary"),
        (short_vocabulary, "tokens, the model's embeddings have"),
        (no_configuration, r"no config\.json"),
        (no_start, "decoder_start_token"),
        (plain_t5, "T5"),
        (not_numbers, "NaN or infinite values in decoder/embeddings/weight"),
    ],
)
def test_what_does_not_fit_is_one_error(spoil: Any, message: str, copied: Path) -> None:
    spoil(copied)
    tracemalloc.start()
    try:
        with pytest.raises(CadecError, match=message):
            open_ctranslate2(copied, PretrainedRequest())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1 << 28  # whatever sizes the file names


def test_a_beam_that_counts_otherwise_is_refused(
    copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check that stands in for the original: scores of the beam and of scoring are the same."""
    found = open_ctranslate2(copied, PretrainedRequest())
    exact = ctranslate2.Translator.score_batch

    def off(self: Any, *arguments: Any, **named: Any) -> Any:
        return [
            argparse.Namespace(log_probs=[0.0] * len(one.log_probs))
            for one in exact(self, *arguments, **named)
        ]

    monkeypatch.setattr(ctranslate2.Translator, "score_batch", off)
    with pytest.raises(CadecError, match="disagrees"):
        found.convert(tmp_path / "nmt", "float32")
    assert not (tmp_path / "nmt").exists()
