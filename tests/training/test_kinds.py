"""A kind is one entry: flags, what learns, where it starts from. Kinds of our own show it to be enough."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from cadec_cli.data.shards import Shard
from cadec_cli.errors import CadecError
from cadec_cli.main import exit_code
from cadec_cli.models.storage import NETWORKS, kind_of, load_model
from cadec_cli.training.kinds import KINDS, Kind
from cadec_cli.training.presets import TrainingOptions, choosable
from cadec_cli.training.training_run import Run, carry_out, continued_run, new_run
from tests.helpers import own_kinds
from tests.helpers.own_kinds import ADAPTED, FROZEN, AdaptedConfig, AdaptedLM

FEW = {
    "update_tokens": 300,
    "batch_tokens": 200,
    "checkpoint_every": 2,
    "evaluate_every": 4,
    "keep_best": 3,
    "threads": 1,
    "schedule": "constant",  # the end of the run changes nothing before it
    "dropout": 0.2,
    "weight_decay": 0.1,
    "warmup": 2,
}


@pytest.fixture(autouse=True)
def networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NETWORKS, "lm-adapted", (AdaptedConfig, AdaptedLM))


def begun(kind: Kind, corpora: Path, output: Path, start_from: Path | None = None, **flags: Any) -> Run:
    return new_run(
        kind,
        output,
        data=[str(corpora / "docs")],
        dev=[corpora / "docs-dev"],
        preset="tiny",
        flags={**FEW, **flags},
        start_from=start_from,
    )


def trained(kind: Kind, corpora: Path, output: Path, start_from: Path | None = None, **flags: Any) -> Path:
    carry_out(begun(kind, corpora, output, start_from, **flags), output)
    return output


def weights(directory: Path) -> dict[str, torch.Tensor]:
    return safetensors.torch.load_file(directory / "model.safetensors")


def newest(output: Path) -> Path:
    return max((output / "checkpoints").glob("update-*"))


def fresh(kind: Kind, corpora: Path, run: Run) -> dict[str, torch.Tensor]:
    torch.manual_seed(run.training.seed)
    sides = [side.info for side in Shard(corpora / "docs").sides]
    return kind.network(run.sizes, sides).state_dict()


@pytest.mark.parametrize("kind", [*KINDS.values(), FROZEN, ADAPTED], ids=lambda kind: kind.name)
def test_no_two_options_of_a_kind_share_a_flag(kind: Kind) -> None:
    options = (TrainingOptions, kind.data_options, kind.config)
    names = [field.name for choice in options for field in choosable(choice)]
    assert len(names) == len(set(names))
    assert all(field.metadata["help"] for choice in options for field in choosable(choice))
    assert {field.name for field in choosable(kind.data_options)} >= set(kind.lengths)


def test_a_kind_of_ones_own_is_a_command_with_its_flags() -> None:
    command = [sys.executable, own_kinds.__file__, "train", "lm-adapted", "--help"]
    shown = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "150"}
    )
    assert "Train an adapter on a D-LM." in shown.stdout
    assert "Example: cadec train lm-adapted" in shown.stdout
    assert "Width of the adapter. [default: the preset's, else 8]" in shown.stdout
    assert "--vocabulary" not in shown.stdout  # the data's to say
    assert "--pipeline" not in shown.stdout  # for models that translate


@pytest.mark.parametrize(("kind", "translates"), [("nmt", True), ("lm", False)])
def test_only_models_that_translate_have_a_bleu(
    kind: str, translates: bool, corpora: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    data = {"lm": "docs", "nmt": "pairs"}[kind]
    arguments = ["train", kind, "--data", corpora / data, "--dev", corpora / f"{data}-dev", "-o", tmp_path]
    assert exit_code([str(word) for word in (*arguments, "--preset", "tiny", "--stop-on", "bleu")]) == 2
    told = "--stop-on bleu needs --pipeline" if translates else "its models do not translate"
    assert told in capfd.readouterr().err
    assert not list(tmp_path.iterdir())


def test_what_does_not_learn_stays_as_it_was(corpora: Path, tmp_path: Path) -> None:
    output = trained(FROZEN, corpora, tmp_path / "run", max_updates=8)
    before = fresh(FROZEN, corpora, continued_run(FROZEN, output, {}))
    kept = {"embedding.weight", "position.weight"}
    for directory in (newest(output), output / "model"):
        for name, tensor in weights(directory).items():
            assert torch.equal(tensor, before[name]) == (name in kept), name
    states = safetensors.torch.load_file(newest(output) / "optimizer.safetensors")
    assert {name.rpartition(".")[0] for name in states} == set(weights(output / "model")) - kept


def test_a_run_with_frozen_parameters_is_continued_exactly(corpora: Path, tmp_path: Path) -> None:
    whole = trained(FROZEN, corpora, tmp_path / "whole", max_updates=8)
    output = trained(FROZEN, corpora, tmp_path / "run", max_updates=4)
    carry_out(continued_run(FROZEN, output, {"max_updates": 8}), output)
    for name in ("model.safetensors", "optimizer.safetensors"):
        assert (newest(output) / name).read_bytes() == (newest(whole) / name).read_bytes()
    assert (output / "model" / "model.safetensors").read_bytes() == (
        whole / "model" / "model.safetensors"
    ).read_bytes()


@pytest.mark.parametrize("what", ["missing", "misshapen", "of a frozen one"])
def test_the_state_of_exactly_what_learns_is_demanded(what: str, corpora: Path, tmp_path: Path) -> None:
    output = trained(FROZEN, corpora, tmp_path / "run", max_updates=2)
    path = newest(output) / "optimizer.safetensors"
    states = safetensors.torch.load_file(path)
    if what == "missing":
        told = ["blocks.1.attention.out.weight.exp_avg", "norm.bias.step"]
        for name in told:
            del states[name]
    elif what == "misshapen":
        told = ["norm.weight.exp_avg_sq"]
        states[told[0]] = states[told[0]][:-1]
    else:
        told = ["embedding.weight.step"]
        states[told[0]] = torch.tensor(2.0)
    safetensors.torch.save_file(states, path)
    with pytest.raises(CadecError, match=f"does not fit the model: {', '.join(told)}$"):
        carry_out(continued_run(FROZEN, output, {"max_updates": 4}), output)


def test_a_smaller_network_fills_its_part_of_a_larger_one(corpora: Path, tmp_path: Path) -> None:
    lm = trained(KINDS["lm"], corpora, tmp_path / "lm", max_updates=4)
    run = begun(ADAPTED, corpora, tmp_path / "adapted", lm, max_updates=4, learning_rate=1e-12)
    carry_out(run, tmp_path / "adapted")
    stored = load_model(tmp_path / "adapted" / "model", "lm-adapted")
    assert kind_of(stored.model) == "lm-adapted"
    taken, begins = weights(lm / "model"), fresh(ADAPTED, corpora, run)
    state = weights(tmp_path / "adapted" / "model")
    added = {"down.weight", "down.bias", "up.weight", "up.bias"}
    assert set(state) == {*(f"lm.{name}" for name in taken), *added}
    for name, tensor in state.items():
        if name.startswith("lm."):
            assert torch.equal(tensor, taken[name.removeprefix("lm.")]), name
        else:
            torch.testing.assert_close(tensor, begins[name], atol=1e-9, rtol=0)
    # It can be taken up again, by a network that was started from another.
    carry_out(continued_run(ADAPTED, tmp_path / "adapted", {"max_updates": 6}), tmp_path / "adapted")


def test_all_weights_that_do_not_fit_are_listed_at_once(corpora: Path, tmp_path: Path) -> None:
    lm = trained(KINDS["lm"], corpora, tmp_path / "lm", max_updates=1, layers=2, inner=96)
    run = begun(ADAPTED, corpora, tmp_path / "adapted", lm, layers=1)
    with pytest.raises(CadecError) as refused:
        carry_out(run, tmp_path / "adapted")
    layer = "lm.blocks.0.feed_forward"
    for told in (
        f"{layer}.inner.weight is (96, 64), not (128, 64)",
        f"{layer}.inner.bias is (96,), not (128,)",
        f"{layer}.outer.weight is (64, 96), not (64, 128)",
        *(f"unknown lm.{name}" for name in weights(lm / "model") if name.startswith("blocks.1.")),
    ):
        assert told in refused.value.message
    assert not (tmp_path / "adapted").exists()
    with pytest.raises(CadecError, match="kind 'lm', not 'lm-adapted'"):
        plain = dataclasses.replace(ADAPTED, start_from=KINDS["lm"].start_from)
        carry_out(begun(plain, corpora, tmp_path / "plain", lm), tmp_path / "plain")


def test_a_network_derived_from_another_is_not_stored_as_that_other() -> None:
    class Derived(AdaptedLM):
        pass

    config = AdaptedConfig(vocabulary=10, layers=1, width=8, heads=2, inner=8, positions=8)
    with pytest.raises(TypeError, match="Derived is not in NETWORKS"):
        kind_of(Derived(config))


def test_the_record_of_a_run_is_all_it_takes_to_continue(corpora: Path, tmp_path: Path) -> None:
    output = trained(KINDS["lm"], corpora, tmp_path / "run", max_updates=1)
    written = json.loads((output / "run.json").read_text())
    assert continued_run(KINDS["lm"], output, {}).record() == written
    assert list(written) == ["kind", "preset", "data", "dev", "model", "data_options", "training"]
    del written["training"]
    (output / "run.json").write_text(json.dumps(written))
    with pytest.raises(CadecError, match="damaged"):
        continued_run(KINDS["lm"], output, {})
