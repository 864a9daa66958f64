"""OpenNMT-py's checkpoints say what its transformer says, computed by transformers."""

import argparse
import collections
import shutil
import sys
import types
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from cadec_cli.engines.ctranslate2 import CTranslate2Model
from cadec_cli.errors import CadecError
from converters import PretrainedRequest
from converters.translation.opennmt import open_opennmt
from tests.helpers.foreign_models import (
    OPENNMT_SPECIAL,
    OTHERS,
    SENTENCES,
    PieceText,
    opennmt_checkpoint,
    opennmt_network,
    original_log_probs,
    train_spm,
)

START, END = 2, 3


class Parts:
    """A network with two vocabularies, and a directory with their tokenizers."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.source = [*OPENNMT_SPECIAL, *train_spm(directory / "source.spm", SENTENCES)]
        self.target = [*OPENNMT_SPECIAL, *train_spm(directory / "target.spm", OTHERS, 66)]
        self.network = opennmt_network(len(self.source), len(self.target))

    def checkpoint(self) -> dict[str, Any]:
        return opennmt_checkpoint(
            self.network, {"src": self.source, "tgt": self.target, "data_task": "seq2seq"}
        )

    def expected(self, source: str, target: str) -> float:
        ids = [self.source.index(token) for token in source.split()]
        targets = [self.target.index(token) for token in target.split()]
        return sum(
            original_log_probs(self.network, ids, targets, start=START, end=END, tokens=len(self.target))
        )


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    return Parts(tmp_path_factory.mktemp("opennmt"))


@pytest.fixture
def place(parts: Parts, tmp_path: Path) -> Path:
    shutil.copytree(parts.directory, tmp_path / "opennmt")
    return tmp_path / "opennmt"


def test_the_engine_says_what_the_original_says(parts: Parts, place: Path) -> None:
    torch.save(parts.checkpoint(), place / "model_step_3.pt")
    opened = open_opennmt(place, PretrainedRequest(source_language="en", target_language="ru"))
    assert opened.convert(place / "nmt", "float32").largest < 1e-4
    assert opened.framing.source_size == 0
    assert opened.settings.origin == "model_step_3"
    assert opened.settings.positions == 100
    engine = CTranslate2Model(
        place / "nmt",
        PieceText(parts.source, END),
        PieceText(parts.target, END),
        framing=opened.framing,
        positions=60,
        compute_type="float32",
    )
    source = " ".join(parts.source[10:17])
    found = engine.nbest([source], 4)[0]
    assert len(found.hypotheses) == 4
    for hypothesis in found.hypotheses:
        exact = parts.expected(source, hypothesis.text)
        assert hypothesis.log_prob == pytest.approx(exact, abs=1e-3)
        assert engine.log_probs([source], [hypothesis.text])[0] == pytest.approx(exact, abs=1e-3)


def test_an_end_after_the_source_would_be_wrong(parts: Parts, place: Path) -> None:
    torch.save(parts.checkpoint(), place / "model.pt")
    open_opennmt(place, PretrainedRequest()).convert(place / "nmt", "float32")
    source, target = " ".join(parts.source[10:17]), " ".join(parts.target[20:25])
    texts = PieceText(parts.source, END), PieceText(parts.target, END)
    ended = CTranslate2Model(place / "nmt", *texts, positions=60, compute_type="float32")
    assert abs(ended.log_probs([source], [target])[0] - parts.expected(source, target)) > 0.01


def as_fields(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Vocabularies as torchtext's fields, in the layout of OpenNMT-py 2."""
    classes = {}
    for module, name in (
        ("torchtext.data.field", "Field"),
        ("torchtext.vocab", "Vocab"),
        ("onmt.inputters.text_dataset", "TextMultiField"),
    ):
        made = type(name, (), {"__module__": module})
        classes[name] = made
        for depth in range(1, module.count(".") + 1):
            parent = ".".join(module.split(".")[:depth])
            monkeypatch.setitem(sys.modules, parent, types.ModuleType(parent))
        monkeypatch.setitem(sys.modules, module, types.SimpleNamespace(**{name: made}))

    def field(tokens: list[str]) -> Any:
        vocab, inner, outer = classes["Vocab"](), classes["Field"](), classes["TextMultiField"]()
        vocab.itos, vocab.freqs = tokens, collections.Counter(tokens)
        inner.vocab, inner.sequential, inner.dtype = vocab, True, torch.int64
        outer.fields = [("words", inner)]
        return outer

    return {"src": field(parts.source), "tgt": field(parts.target)}


def test_fields_of_torchtext_are_read_without_it(
    parts: Parts, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = {**parts.checkpoint(), "vocab": as_fields(parts, monkeypatch)}
    # The generator was a sequence of modules then.
    checkpoint["generator"] = {f"0.{name}": tensor for name, tensor in checkpoint["generator"].items()}
    torch.save(checkpoint, place / "model.pt")
    opened = open_opennmt(place / "model.pt", PretrainedRequest())
    assert (opened.source_vocabulary, opened.target_vocabulary) == (parts.source, parts.target)
    assert opened.convert(place / "nmt", "int8").mean < 0.3


def test_all_that_is_unsupported_is_listed(parts: Parts, place: Path) -> None:
    checkpoint = parts.checkpoint()
    options = {
        **vars(checkpoint["opt"]),
        "encoder_type": "brnn",
        "pos_ffn_activation_fn": "elu",
        "copy_attn": True,
    }
    checkpoint["opt"] = argparse.Namespace(**options, position_encoding_type="x")
    checkpoint["vocab"] = {"src": parts.source, "tgt": parts.target, "src_feats": {"case": ["a", "b"]}}
    checkpoint["model"]["decoder.transformer_layers.0.self_attn.relative_positions_embeddings.weight"] = (
        torch.ones(3)
    )
    torch.save(checkpoint, place / "model.pt")
    with pytest.raises(CadecError) as caught:
        open_opennmt(place, PretrainedRequest())
    for reason in ("brnn", "elu", "copy_attn", "features", "relative_positions_embeddings"):
        assert reason in caught.value.message


def wrong_vocabulary(checkpoint: dict[str, Any]) -> None:
    checkpoint["vocab"]["src"] = checkpoint["vocab"]["src"][:-1]


def no_vocabulary(checkpoint: dict[str, Any]) -> None:
    del checkpoint["vocab"]


def strange_vocabulary(checkpoint: dict[str, Any]) -> None:
    checkpoint["vocab"] = 7


def weightless(checkpoint: dict[str, Any]) -> None:
    del checkpoint["model"]["encoder.transformer.1.feed_forward.w_2.weight"]


def joined(checkpoint: dict[str, Any]) -> None:
    checkpoint["vocab"]["tgt"] = [
        *OPENNMT_SPECIAL,
        *(f"￭{token}" for token in checkpoint["vocab"]["tgt"][len(OPENNMT_SPECIAL) :]),
    ]


def no_generator(checkpoint: dict[str, Any]) -> None:
    checkpoint["generator"] = None


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (wrong_vocabulary, "tokens, the model's embeddings have"),
        (no_vocabulary, "no opt or no vocab"),
        (strange_vocabulary, "can't read the vocabulary"),
        (weightless, r"no encoder\.1\.feed_forward\.outer\.weight"),
        (joined, "OpenNMT's own tokenizer"),
        (no_generator, "no weights under 'generator'"),
    ],
)
def test_what_does_not_fit_is_one_error(spoil: Any, message: str, parts: Parts, place: Path) -> None:
    checkpoint = parts.checkpoint()
    spoil(checkpoint)
    torch.save(checkpoint, place / "model.pt")
    with pytest.raises(CadecError, match=message):
        open_opennmt(place, PretrainedRequest())


def test_a_truncated_checkpoint_is_one_error(parts: Parts, place: Path) -> None:
    torch.save(parts.checkpoint(), place / "model.pt")
    data = (place / "model.pt").read_bytes()
    (place / "model.pt").write_bytes(data[:-2000])
    with pytest.raises(CadecError, match="not a torch checkpoint"):
        open_opennmt(place, PretrainedRequest())


@pytest.mark.parametrize("beginning", [b"\x80\x02}q\x00(X\x05", b"\x80\x02}q\x00(K", b"\x80\x02J\x00"])
def test_a_checkpoint_whose_values_end_within_one_is_one_error(
    beginning: bytes, parts: Parts, place: Path
) -> None:
    torch.save(parts.checkpoint(), place / "whole.pt")
    with zipfile.ZipFile(place / "whole.pt") as whole, zipfile.ZipFile(place / "model.pt", "w") as cut:
        for name in whole.namelist():
            cut.writestr(name, beginning if name.endswith("/data.pkl") else whole.read(name))
    (place / "whole.pt").unlink()
    with pytest.raises(CadecError, match="not a torch checkpoint"):
        open_opennmt(place, PretrainedRequest())


def test_weights_that_are_no_numbers_are_not_written(parts: Parts, place: Path) -> None:
    checkpoint = parts.checkpoint()
    checkpoint["generator"]["bias"][1] = float("inf")
    torch.save(checkpoint, place / "model.pt")
    with pytest.raises(CadecError, match=r"output\.bias holds NaN or infinite"):
        open_opennmt(place, PretrainedRequest()).convert(place / "nmt", "float32")
    assert not (place / "nmt").exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("heads", value) for value in (10**9, 0, True, "2")),
        *(("norm_eps", value) for value in (float("nan"), -1, "0")),
    ],
)
def test_sizes_have_bounds(name: str, value: object, parts: Parts, place: Path) -> None:
    checkpoint = parts.checkpoint()
    options = {**vars(checkpoint["opt"]), name: value}
    torch.save({**checkpoint, "opt": argparse.Namespace(**options)}, place / "model_step_3.pt")
    with pytest.raises(CadecError, match=name):
        open_opennmt(place, PretrainedRequest())
