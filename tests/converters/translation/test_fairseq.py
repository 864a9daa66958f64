"""fairseq's checkpoints say what fairseq's transformers say, which transformers has ported."""

import argparse
import os
import shutil
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch

from cadec_cli.engines.ctranslate2 import CTranslate2Model
from cadec_cli.errors import CadecError
from converters import PretrainedRequest
from converters.translation.fairseq import open_fairseq
from tests.helpers.foreign_models import (
    FAIRSEQ_KINDS,
    FAIRSEQ_SPECIAL,
    OTHERS,
    SENTENCES,
    PieceText,
    fairseq_network,
    fairseq_options,
    fairseq_state,
    original_log_probs,
    train_spm,
    write_fairseq,
)

END = 2
KINDS = pytest.mark.parametrize("kind", FAIRSEQ_KINDS)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A directory with a tokenizer and no model yet, and its vocabulary."""
    directory = tmp_path_factory.mktemp("fairseq")
    pieces = train_spm(directory / "sentencepiece.bpe.model", [*SENTENCES, *OTHERS], 100)
    return directory, [*FAIRSEQ_SPECIAL, *pieces, "madeupword0000"]


@pytest.fixture
def place(bare: tuple[Path, list[str]], tmp_path: Path) -> Path:
    shutil.copytree(bare[0], tmp_path / "fairseq")
    return tmp_path / "fairseq"


@pytest.fixture(scope="module")
def networks(bare: tuple[Path, list[str]]) -> dict[str, Any]:
    return {kind: fairseq_network(kind, len(bare[1])) for kind in FAIRSEQ_KINDS}


def expected(network: Any, vocabulary: list[str], source: str, target: str) -> float:
    ids = [[vocabulary.index(token) for token in text.split()] for text in (source, target)]
    size = len(vocabulary)
    return sum(original_log_probs(network, [*ids[0], END], ids[1], start=END, end=END, tokens=size))


@KINDS
def test_the_engine_says_what_the_original_says(
    kind: str, place: Path, bare: tuple[Path, list[str]], networks: dict[str, Any]
) -> None:
    vocabulary = bare[1]
    checkpoint = {"args": argparse.Namespace(**fairseq_options(kind)), "model": fairseq_state(networks[kind])}
    write_fairseq(place, checkpoint, vocabulary)
    opened = open_fairseq(place, PretrainedRequest())
    assert opened.languages == ("en", "ru")
    assert opened.settings.positions == 70
    assert opened.settings.source.files == ("sentencepiece.bpe.model",)
    assert opened.convert(place / "nmt", "float32").largest < 1e-4
    text = PieceText(vocabulary, END)
    engine = CTranslate2Model(
        place / "nmt", text, text, framing=opened.framing, positions=70, compute_type="float32"
    )
    source = " ".join(vocabulary[10:17])
    for hypothesis in engine.nbest([source], 4)[0].hypotheses:
        exact = expected(networks[kind], vocabulary, source, hypothesis.text)
        assert hypothesis.log_prob == pytest.approx(exact, abs=1e-3)
        assert engine.log_probs([source], [hypothesis.text])[0] == pytest.approx(exact, abs=1e-3)


def test_names_of_old_versions_are_known(
    place: Path, bare: tuple[Path, list[str]], networks: dict[str, Any]
) -> None:
    """in_proj_weight, layer_norms.0, embed_out: as fairseq wrote them in 2018."""
    modern = fairseq_state(networks["fsmt"])
    old: dict[str, torch.Tensor] = {}
    norms = {"self_attn_layer_norm": 0, "encoder_attn_layer_norm": 1}
    for name, tensor in modern.items():
        if "_attn.q_proj" in name:
            parts = [modern[name.replace("q_proj", f"{part}_proj")] for part in "qkv"]
            old[name.replace("q_proj.", "in_proj_")] = torch.cat(parts)
        elif "k_proj" in name or "v_proj" in name:
            continue
        elif "_layer_norm." in name:
            norm = name.split(".")[-2]
            last = 1 if name.startswith("encoder") else 2
            old[name.replace(norm, f"layer_norms.{norms.get(norm, last)}")] = tensor
        elif name == "decoder.output_projection.weight":
            old["decoder.embed_out"] = tensor
        else:
            old[name] = tensor
    assert len(old) < len(modern)
    options = argparse.Namespace(**fairseq_options("fsmt"))
    write_fairseq(place, {"args": options, "model": old}, bare[1])
    torch.save({"args": options, "model": old}, place / "model.pt", _use_new_zipfile_serialization=False)
    assert open_fairseq(place, PretrainedRequest()).convert(place / "nmt", "float32").largest < 1e-4
    text = PieceText(bare[1], END)
    engine = CTranslate2Model(place / "nmt", text, text, positions=70, compute_type="float32")
    source, target = " ".join(bare[1][10:17]), " ".join(bare[1][30:35])
    exact = expected(networks["fsmt"], bare[1], source, target)
    assert engine.log_probs([source], [target])[0] == pytest.approx(exact, abs=1e-3)


def test_the_source_needs_its_end(
    place: Path, bare: tuple[Path, list[str]], networks: dict[str, Any]
) -> None:
    checkpoint = {
        "args": argparse.Namespace(**fairseq_options("fsmt")),
        "model": fairseq_state(networks["fsmt"]),
    }
    write_fairseq(place, checkpoint, bare[1])
    opened = open_fairseq(place, PretrainedRequest())
    assert opened.framing.source_end == opened.settings.source_end == ("</s>",)


class InOmegaconf:
    """Writes values as omegaconf's objects; its modules are there for as long as a test lasts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._classes = {}
        monkeypatch.setitem(sys.modules, "omegaconf", types.ModuleType("omegaconf"))
        for module, name in (("dictconfig", "DictConfig"), ("nodes", "AnyNode"), ("base", "Metadata")):
            made = type(name, (), {"__module__": f"omegaconf.{module}"})
            self._classes[name] = made
            monkeypatch.setitem(sys.modules, f"omegaconf.{module}", types.SimpleNamespace(**{name: made}))

    def __call__(self, value: Any) -> Any:
        made = self._classes["DictConfig" if isinstance(value, dict) else "AnyNode"]()
        made._metadata = self._classes["Metadata"]()
        if isinstance(value, dict):
            made._content = {name: self(one) for name, one in value.items()}
        else:
            made._val = value
        return made


@pytest.mark.parametrize("form", ["plain", "namespace", "omegaconf"])
def test_newer_checkpoints_have_their_options_in_cfg(
    form: str,
    place: Path,
    bare: tuple[Path, list[str]],
    networks: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = fairseq_options("m2m_100")
    model = {
        name: value
        for name, value in options.items()
        if name not in ("arch", "task", "source_lang", "target_lang")
    }
    model["_name"] = "transformer_wmt_en_de"
    task = {"_name": "translation", "source_lang": "en", "target_lang": "ru", "data": "/elsewhere"}
    cfg: Any = {"model": model, "task": task}
    if form == "namespace":
        cfg = {"model": argparse.Namespace(**model), "task": task}
    elif form == "omegaconf":
        cfg = InOmegaconf(monkeypatch)(cfg)
    write_fairseq(place, {"args": None, "cfg": cfg, "model": fairseq_state(networks["m2m_100"])}, bare[1])
    opened = open_fairseq(place, PretrainedRequest())
    assert opened.languages == ("en", "ru")
    assert opened.network.encoder.pre_norm
    assert opened.convert(place / "nmt", "int8").mean < 0.3


class Harmful:
    """What a pickle can do when it is trusted."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("harmed",)


class Unknown:
    """A class of somebody's own."""


@pytest.mark.parametrize(("extra", "message"), [(Harmful(), "not opened"), (Unknown(), "Unknown")])
def test_other_classes_are_not_made(
    extra: Any,
    message: str,
    place: Path,
    bare: tuple[Path, list[str]],
    networks: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(place)
    options = argparse.Namespace(**fairseq_options("fsmt"))
    write_fairseq(place, {"args": options, "model": fairseq_state(networks["fsmt"]), "extra": extra}, bare[1])
    with pytest.raises(CadecError, match=message):
        open_fairseq(place, PretrainedRequest())
    assert not (place / "harmed").exists()


def test_all_that_is_unsupported_is_listed(
    place: Path, bare: tuple[Path, list[str]], networks: dict[str, Any]
) -> None:
    options = {
        **fairseq_options("fsmt"),
        "arch": "fconv_iwslt",
        "task": "translation_multi_simple_epoch",
        "lang_pairs": "en-ru,ru-en",
        "activation_fn": "tanh",
        "adaptive_input": True,
        "decoder_output_dim": 8,
    }
    state = {**fairseq_state(networks["fsmt"]), "encoder.layers.0.moe.gate": torch.zeros(2)}
    write_fairseq(place, {"args": argparse.Namespace(**options), "model": state}, bare[1])
    with pytest.raises(CadecError) as caught:
        open_fairseq(place, PretrainedRequest())
    reasons = (
        "fconv_iwslt",
        "translation_multi_simple_epoch (lang_pairs)",
        "tanh",
        "adaptive_input",
        "moe.gate",
    )
    for reason in (*reasons, "decoder_output_dim is 8"):
        assert reason in caught.value.message


def no_dictionary(directory: Path) -> None:
    (directory / "dict.ru.txt").unlink()


def short_dictionary(directory: Path) -> None:
    lines = (directory / "dict.en.txt").read_text("utf-8").splitlines()
    (directory / "dict.en.txt").write_text("\n".join(lines[:-2]) + "\n", "utf-8")


def doubled_dictionary(directory: Path) -> None:
    lines = (directory / "dict.en.txt").read_text("utf-8").splitlines()
    (directory / "dict.en.txt").write_text("\n".join([*lines[:-1], lines[0]]) + "\n", "utf-8")


def truncated(directory: Path) -> None:
    data = (directory / "model.pt").read_bytes()
    (directory / "model.pt").write_bytes(data[: len(data) // 2])


def empty(directory: Path) -> None:
    (directory / "model.pt").write_bytes(b"")


def weightless(directory: Path) -> None:
    with torch.serialization.safe_globals([argparse.Namespace]):
        stored = torch.load(directory / "model.pt", weights_only=True)
    del stored["model"]["decoder.layers.1.encoder_attn.k_proj.weight"]
    torch.save(stored, directory / "model.pt")


def optionless(directory: Path) -> None:
    torch.save({"model": {"a": torch.zeros(1)}}, directory / "model.pt")


def two_checkpoints(directory: Path) -> None:
    for name in ("checkpoint1.pt", "checkpoint2.pt"):
        shutil.copy(directory / "model.pt", directory / name)
    (directory / "model.pt").unlink()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (no_dictionary, r"dict\.SOURCE\.txt"),
        (short_dictionary, "tokens, the model's embeddings have"),
        (doubled_dictionary, "a second time"),
        (truncated, "not a torch checkpoint, or is damaged"),
        (empty, "not a torch checkpoint, or is damaged"),
        (weightless, r"no decoder\.1\.cross\.key\.weight"),
        (optionless, "neither args nor cfg"),
        (two_checkpoints, r"several: checkpoint1\.pt"),
    ],
)
def test_what_does_not_fit_is_one_error(
    spoil: Any, message: str, place: Path, bare: tuple[Path, list[str]], networks: dict[str, Any]
) -> None:
    options = argparse.Namespace(**fairseq_options("fsmt"))
    write_fairseq(place, {"args": options, "model": fairseq_state(networks["fsmt"])}, bare[1])
    spoil(place)
    with pytest.raises(CadecError, match=message):
        open_fairseq(place, PretrainedRequest())


def test_weights_that_are_no_numbers_are_not_written(
    place: Path, bare: tuple[Path, list[str]], networks: dict[str, Any]
) -> None:
    state = fairseq_state(networks["fsmt"])
    state["decoder.layers.0.fc1.bias"][0] = float("nan")
    write_fairseq(place, {"args": argparse.Namespace(**fairseq_options("fsmt")), "model": state}, bare[1])
    with pytest.raises(CadecError, match=r"decoder\.0\.feed_forward\.inner\.bias holds NaN"):
        open_fairseq(place, PretrainedRequest()).convert(place / "nmt", "float32")
    assert not (place / "nmt").exists()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("encoder_attention_heads", value) for value in (10**9, 0, True, "2")),
        *(("max_source_positions", value) for value in (10**9, 0, True, "70")),
    ],
)
def test_sizes_have_bounds(
    name: str, value: object, place: Path, bare: tuple[Path, list[str]], networks: dict[str, Any]
) -> None:
    options = argparse.Namespace(**{**fairseq_options("fsmt"), name: value})
    write_fairseq(place, {"args": options, "model": fairseq_state(networks["fsmt"])}, bare[1])
    with pytest.raises(CadecError, match="heads" if "heads" in name else "positions must be"):
        open_fairseq(place, PretrainedRequest())
