"""What a run left and what was damaged since: one clear error, or what is whole, and never wrong numbers."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from cadec_cli.errors import CadecError
from cadec_cli.models.doclm import DocumentLM, DocumentLMConfig
from cadec_cli.models.storage import load_model, model_directory, model_state
from cadec_cli.training.checkpoints import Checkpoints, Evaluation, Progress
from cadec_cli.training.metrics import Metrics, plot_curves, read_metrics
from tests.helpers.damages import DAMAGES, bit_flip
from tests.helpers.unprivileged import agreed_by_another

CONFIG = DocumentLMConfig(vocabulary=12, layers=1, width=8, heads=2, inner=8, positions=8)
KEPT = ("model.safetensors", "optimizer.safetensors", "progress.json", "checksums.json")


def network(seed: int = 0) -> tuple[DocumentLM, torch.optim.Optimizer]:
    torch.manual_seed(seed)
    model = DocumentLM(CONFIG)
    return model, torch.optim.AdamW(model.parameters())


def stepped(model: DocumentLM, optimizer: torch.optim.Optimizer) -> None:
    model(torch.tensor([[3, 4, 5]])).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def run_of(directory: Path, *updates: int) -> dict[int, dict[str, Tensor]]:
    """A run with these checkpoints, all of them complete, and the weights in each."""
    model, optimizer = network()
    checkpoints, progress, weights = Checkpoints(directory, {"eo": "x"}), Progress(), {}
    for update in updates:
        stepped(model, optimizer)
        progress.update = update
        progress.evaluations.append(Evaluation(update, 5.0 - update / 100, 12.5))
        checkpoints.save(model, optimizer, progress)
        weights[update] = {name: tensor.clone() for name, tensor in model_state(model).items()}
    return weights


def gone_on(directory: Path, warnings: list[str] | None = None) -> tuple[Progress, dict[str, Tensor]]:
    model, optimizer = network(9)
    warn = ([] if warnings is None else warnings).append
    progress = Checkpoints(directory, {"eo": "x"}, warn).resume(model, optimizer)
    return progress, model_state(model)


@pytest.mark.parametrize("name", KEPT)
def test_of_two_checkpoints_the_one_that_is_whole_is_gone_on_from(name: str, tmp_path: Path) -> None:
    weights = run_of(tmp_path, 10, 20)
    path = tmp_path / "update-00000020" / name
    whole, rng = path.read_bytes(), random.Random(name)
    assert gone_on(tmp_path)[0].update == 20
    for number in range(2 * len(DAMAGES)):
        damaged = (DAMAGES[number % len(DAMAGES)] if name.endswith("json") else bit_flip)(rng, whole)
        path.write_bytes(damaged)
        warnings: list[str] = []
        progress, found = gone_on(tmp_path, warnings)
        if progress.update == 20:  # what the file says is the same, if not its bytes
            assert name == "checksums.json" or damaged == whole
            continue
        assert progress.update == 10 and [one.update for one in progress.evaluations] == [10]
        assert all(torch.equal(found[key], tensor) for key, tensor in weights[10].items())
        assert "continuing from" in warnings[0] and "update-00000020" in warnings[0]
        # The run will come to that update again; what was damaged is set aside until then.
        assert [one.name for one in sorted(tmp_path.iterdir())] == [
            "damaged-update-00000020",
            "update-00000010",
        ]
        (tmp_path / "damaged-update-00000020").rename(path.parent)


def test_without_another_it_is_one_error_that_says_what_can_be_done(tmp_path: Path) -> None:
    run_of(tmp_path, 10, 20)
    (tmp_path / "update-00000010" / "optimizer.safetensors").unlink()  # as pruning does
    path = tmp_path / "update-00000020" / "model.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[:-4] + bytes([content[-4] ^ 1]) + content[-3:])
    with pytest.raises(CadecError, match=r"model\.safetensors is damaged") as caught:
        gone_on(tmp_path)
    assert "start_from" in caught.value.hint and "update-00000010" in caught.value.hint
    assert (tmp_path / "update-00000020").is_dir()


def test_a_damaged_one_of_the_best_is_not_averaged(
    tmp_path: Path,
) -> None:
    weights = run_of(tmp_path, 10, 20, 30)
    progress = Progress(30, evaluations=[Evaluation(update, 5.0) for update in (10, 20, 30)])
    path = tmp_path / "update-00000020" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"\x7f")
    warnings: list[str] = []
    mean, updates = Checkpoints(tmp_path, {}, warnings.append).average(progress, "loss", 3)
    assert updates == [10, 30] and "is damaged" in warnings[0]
    for name, tensor in mean.items():
        torch.testing.assert_close(tensor, (weights[10][name] + weights[30][name]) / 2)
    for update in (10, 30):
        (tmp_path / f"update-{update:08d}" / "model.safetensors").write_bytes(b"")
    with pytest.raises(CadecError, match="damaged"):
        Checkpoints(tmp_path, {}).average(progress, "loss", 3)


def test_a_backup_is_no_checkpoint_and_stays(tmp_path: Path) -> None:
    run_of(tmp_path, 10)
    for name in ("update-00000010-backup", "update-", "update-x"):
        shutil.copytree(tmp_path / "update-00000010", tmp_path / name)
    before = sorted(tmp_path.iterdir())
    progress, _ = gone_on(tmp_path)
    Checkpoints(tmp_path, {}).prune(progress, "loss", 1)
    assert progress.update == 10 and sorted(tmp_path.iterdir()) == before


def test_what_was_being_replaced_when_a_run_was_killed_is_gone_on_from(tmp_path: Path) -> None:
    run_of(tmp_path, 10)
    (tmp_path / "update-00000010").rename(tmp_path / ".update-00000010.cadec-0123abcd.old")
    (tmp_path / ".update-00000010.cadec-0123abcd.part").mkdir()
    own = tmp_path / ".update-notes"
    own.mkdir()
    Checkpoints(tmp_path, {}).prune(Progress(), "loss", 1)
    assert sorted(tmp_path.iterdir()) == [own, tmp_path / "update-00000010"]
    assert gone_on(tmp_path)[0].update == 10


@pytest.mark.parametrize("closed", [".", "model.safetensors", "progress.json"])
def test_a_checkpoint_that_is_closed_to_us_is_not_damaged(closed: str, tmp_path: Path) -> None:
    run_of(tmp_path, 10, 20)
    (tmp_path / "update-00000020" / closed).chmod(0)
    tmp_path.chmod(0o777)

    def refused() -> bool:
        with pytest.raises(CadecError, match="not allowed to read"):
            gone_on(tmp_path)
        return True

    assert agreed_by_another(refused, tmp_path)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["update-00000010", "update-00000020"]
    (tmp_path / "update-00000020" / closed).chmod(0o700)


def test_a_damaged_checkpoint_is_not_converted_either(tmp_path: Path) -> None:
    run_of(tmp_path / "checkpoints", 10)
    shutil.copytree(tmp_path / "checkpoints" / "update-00000010", tmp_path / "checkpoints" / "update-x")
    found = model_directory(tmp_path, lambda _: None)
    assert load_model(found, "lm") and found.name == "update-00000010"
    content = bytearray((found / "model.safetensors").read_bytes())
    content[-5] ^= 1
    (found / "model.safetensors").write_bytes(content)
    with pytest.raises(CadecError, match=r"model\.safetensors is damaged"):
        load_model(found, "lm")


@pytest.mark.parametrize(
    "change",
    [
        {"update": 11},
        {"update": "10"},
        {"epoch": -1},
        {"tokens": 10**400},
        {"seconds": "long"},
        {"seconds": None},
        {"evaluations": None},
        {"evaluations": [1]},
        {"evaluations": [{"update": 10}]},
        {"evaluations": [{"update": 10, "loss": "low", "bleu": None}]},
        {"evaluations": [{"update": 10, "loss": 10**400, "bleu": None}]},
    ],
)
def test_progress_that_can_not_be_is_one_error(change: dict[str, Any], tmp_path: Path) -> None:
    run_of(tmp_path, 10)
    (tmp_path / "update-00000010" / "checksums.json").unlink()  # as in checkpoints of before
    path = tmp_path / "update-00000010" / "progress.json"
    stored = json.loads(path.read_text())
    assert gone_on(tmp_path)[0].update == 10
    path.write_text(json.dumps({**stored, **change}))
    with pytest.raises(CadecError, match=r"progress\.json is damaged"):
        gone_on(tmp_path)


RECORDS = [
    *({"update": update, "epoch": 0, "loss": 9 / update, "tokens": 99 * update} for update in range(1, 40)),
    {"update": 40, "dev_loss": 0.5, "dev_perplexity": float("inf")},
]
NO_RECORDS = [
    b"{",
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"update": "3", "loss": 1.0}',
    b'{"update": null}',
    b'{"update": 3, "loss": "low"}',
    b'{"update": 3, "loss": [1.0]}',
    b'{"update": 3, "loss": 1' + b"0" * 400 + b"}",
    b'{"update": 3, "loss": 1' + b"0" * 5000 + b"}",
    b'{"update": true}',
    b"[3]",
    b"7",
]


def metrics(path: Path) -> bytes:
    writer = Metrics(path)
    for record in RECORDS:
        writer.write(record)
    return path.read_bytes()


@pytest.mark.parametrize("line", NO_RECORDS, ids=lambda line: repr(line[:30]))
def test_a_damaged_line_of_metrics_is_left_out_and_said(line: bytes, tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    warnings: list[str] = []
    whole = metrics(path).splitlines(keepends=True)
    path.write_bytes(b"".join([*whole[:5], line + b"\n", *whole[5:]]))
    assert list(read_metrics(path, warnings.append)) == RECORDS
    plot_curves(path, tmp_path / "curves.png", warnings.append)
    Metrics(path, 20, warnings.append)  # the run continues from there
    assert warnings == [f"{path}: 1 damaged line is left out"] * 3
    assert list(read_metrics(path, warnings.append)) == RECORDS[:20] and len(warnings) == 3


def test_whatever_happens_to_metrics_they_can_be_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    whole, rng = metrics(path), random.Random(4)
    damages: list[Callable[[random.Random, bytes], bytes]] = DAMAGES * 4
    for damage in damages:
        path.write_bytes(damage(rng, whole))
        Metrics(path, 30).write({"update": 31, "loss": 1.0})
        assert all(record["update"] <= 31 for record in read_metrics(path))
