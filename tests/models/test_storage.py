"""A model comes back from disk as it was, or not at all."""

import json
from pathlib import Path

import pytest
import safetensors.torch
import torch

from cadec_cli.errors import CadecError
from cadec_cli.models.doclm import DocumentLM, DocumentLMConfig
from cadec_cli.models.storage import (
    Model,
    check_pipeline,
    fill,
    load_model,
    model_directory,
    model_state,
    save_model,
)
from cadec_cli.models.transformer import Transformer, TransformerConfig

LM = DocumentLM(DocumentLMConfig(vocabulary=40, layers=1, width=16, heads=2, inner=16, positions=16)).eval()
NMT = Transformer(
    TransformerConfig(30, 40, encoder_layers=1, decoder_layers=1, width=16, heads=2, inner=16)
).eval()


@pytest.mark.parametrize(("model", "kind"), [(LM, "lm"), (NMT, "nmt")])
def test_weights_and_config_survive_bit_for_bit(model: Model, kind: str, tmp_path: Path) -> None:
    save_model(tmp_path / "model", model, {"ru": "abc"})
    stored = load_model(tmp_path / "model", kind)
    assert stored.model.config == model.config
    assert stored.pipelines == {"ru": "abc"}
    for name, tensor in model.state_dict().items():
        assert torch.equal(stored.model.state_dict()[name], tensor), name


@pytest.mark.parametrize("model", [LM, NMT])
def test_loading_draws_no_random_numbers(model: Model, tmp_path: Path) -> None:
    save_model(tmp_path / "model", model, {})
    before = torch.get_rng_state()
    load_model(tmp_path / "model")
    assert torch.equal(torch.get_rng_state(), before)


def test_tied_weights_are_written_once_and_stay_tied(tmp_path: Path) -> None:
    save_model(tmp_path / "model", LM, {})
    names = safetensors.torch.load_file(tmp_path / "model" / "model.safetensors").keys()
    assert "output.weight" not in names
    loaded = load_model(tmp_path / "model").model
    assert isinstance(loaded, DocumentLM)
    assert loaded.output.weight is loaded.embedding.weight


def broken(directory: Path, what: str) -> None:
    weights, config = directory / "model.safetensors", directory / "config.json"
    if what == "truncated":
        weights.write_bytes(weights.read_bytes()[:-100])
    elif what == "foreign":
        weights.write_bytes(b"PK\x03\x04 this is no safetensors file")
    elif what == "empty":
        weights.write_bytes(b"")
    elif what == "missing":
        weights.unlink()
    elif what == "no config":
        config.unlink()
    elif what == "not json":
        config.write_text("{")
    elif what == "other format":
        config.write_text(json.dumps(json.loads(config.read_text()) | {"format": 99}))
    elif what == "other sizes":
        stored = json.loads(config.read_text())
        stored["config"]["width"] = 32
        config.write_text(json.dumps(stored))
    elif what == "unknown size":
        stored = json.loads(config.read_text())
        stored["config"]["colour"] = "red"
        config.write_text(json.dumps(stored))
    elif what == "nan":
        tensors = safetensors.torch.load_file(weights)
        tensors["embedding.weight"][3, 3] = float("nan")
        weights.write_bytes(safetensors.torch.save(tensors))


@pytest.mark.parametrize(
    "what",
    [
        "truncated",
        "foreign",
        "empty",
        "missing",
        "no config",
        "not json",
        "other format",
        "other sizes",
        "unknown size",
        "nan",
    ],
)
def test_a_broken_model_is_one_clear_error(what: str, tmp_path: Path) -> None:
    save_model(tmp_path / "model", LM, {})
    broken(tmp_path / "model", what)
    with pytest.raises(CadecError, match="model"):
        load_model(tmp_path / "model")


def test_a_model_of_another_kind_is_refused(tmp_path: Path) -> None:
    save_model(tmp_path / "model", LM, {})
    with pytest.raises(CadecError, match="kind 'lm'"):
        load_model(tmp_path / "model", "nmt")


def test_a_model_is_refused_with_another_pipeline(tmp_path: Path) -> None:
    save_model(tmp_path / "model", LM, {"ru": "abc"})
    stored = load_model(tmp_path / "model")
    check_pipeline(stored, "ru", "abc", tmp_path)
    with pytest.raises(CadecError, match="another text pipeline"):
        check_pipeline(stored, "ru", "abd", tmp_path)


def test_a_model_directory_is_found_and_an_unfinished_run_said(tmp_path: Path) -> None:
    said: list[str] = []
    run = tmp_path / "run"
    with pytest.raises(CadecError, match="holds no model"):
        model_directory(run, said.append)
    for update in (9, 10):
        save_model(run / "checkpoints" / f"update-{update:08d}", LM, {})
    assert model_directory(run, said.append) == run / "checkpoints" / "update-00000010"
    assert said == [f"{run} is not finished: taking its newest checkpoint, update-00000010"]
    save_model(run / "model", LM, {})
    assert model_directory(run, said.append) == model_directory(run / "model", said.append) == run / "model"
    assert len(said) == 1


def test_a_part_can_be_filled_and_the_rest_stays() -> None:
    other = DocumentLM(LM.config)
    before = {name: tensor.clone() for name, tensor in model_state(other).items()}
    part = {"norm.weight": torch.full((16,), 2.0)}
    with pytest.raises(CadecError, match=r"no norm\.bias"):
        fill(other, part, Path("part"))
    fill(other, part, Path("part"), partly=True)
    for name, tensor in model_state(other).items():
        assert torch.equal(tensor, part.get(name, before[name])), name
    with pytest.raises(CadecError, match=r"norm.bias is \(2,\), not \(16,\); unknown norm.colour"):
        fill(other, {"norm.colour": torch.ones(16), "norm.bias": torch.ones(2)}, Path("part"), partly=True)


@pytest.mark.parametrize("config", ["missing", None, [], 7])
def test_a_model_without_sizes_is_one_clear_error(config: object, tmp_path: Path) -> None:
    stored = {"format": 1, "kind": "lm", **({} if config == "missing" else {"config": config})}
    (tmp_path / "config.json").write_text(json.dumps(stored), "utf-8")
    with pytest.raises(CadecError, match="does not describe a cadec model"):
        load_model(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_finished_model_that_is_not_as_it_was_written_is_refused(name: str, tmp_path: Path) -> None:
    save_model(tmp_path / "model", LM, {"ru": "abc"})
    path = tmp_path / "model" / name
    content = path.read_bytes()
    # Still a model, of one other weight or with another pipeline.
    changed = (
        content.replace(b"abc", b"abd") if name == "config.json" else content[:-4] + b"\1" + content[-3:]
    )
    assert changed != content
    path.write_bytes(changed)
    with pytest.raises(CadecError, match=f"{name} is damaged") as refused:
        load_model(tmp_path / "model")
    assert "delete" in refused.value.hint
    (tmp_path / "model" / "checksums.json").unlink()  # as in models of before
    assert load_model(tmp_path / "model")
