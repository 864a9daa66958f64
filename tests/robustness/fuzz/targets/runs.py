"""What training and reproducing leave, and go on from: presets, checkpoints, figures, corpora in ids."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tests.robustness.fuzz.packing import SAFETENSORS
from tests.robustness.fuzz.target import Target
from tests.robustness.fuzz.targets.parts import text

PRESET = """[model]
layers = 2
width = 32
heads = 2
inner = 64
positions = 64
dropout = 0.1

[training]
max_updates = 10
learning_rate = 1e-3
"""
RUN = {
    **{"kind": "lm", "preset": "tiny", "data": ["docs"], "dev": ["docs-dev"], "start_from": None},
    **{"model": {"layers": 2, "width": 32, "heads": 2}, "data_options": {}, "training": {"max_updates": 10}},
}
METRICS = '{"update": 10, "loss": 4.5, "seconds": 1.5}\n{"update": 20, "dev_loss": 4.1, "bleu": null}\n'
SECONDS = {"prepare": 10.5, "train": 20}
POINT = {
    "setting": {"temperature": 1.0, "weight": 0.5, "named": []},
    "bleu": 20.5,
    "chrf": 40.5,
    "changed": 0.1,
}
CURVE = {"sentence_level": POINT, "points": [POINT, {**POINT, "bleu": 21.0}]}
ACCURACIES = {
    **{"objective": "pmi", "set": "data/deixis.json", "accuracy": 0.5, "interval": [0.4, 0.6], "chance": 0.5},
    "by_distance": {"1": {"accuracy": 0.5}},
}
PANEL = {
    **{"text": "dev.txt", "value": "pmi", "contexts": 1, "points": [[0.5, 1.0]], "pearson": 0.5},
    "spearman": 0.5,
}


def preset(directory: Path) -> None:
    from cadec_cli.models.configs import DocumentLMConfig
    from cadec_cli.training.presets import TrainingOptions, check_known, choices, choose, load_preset

    name = str(directory / "mine.toml")
    tables = load_preset("lm", name)
    check_known(tables.get("model", {}), (DocumentLMConfig,), name)
    DocumentLMConfig(vocabulary=100, **choices(DocumentLMConfig, tables.get("model", {})))
    choose(TrainingOptions, tables.get("training", {}))


def run_record(directory: Path) -> None:
    from cadec_cli.training.kinds import KINDS
    from cadec_cli.training.training_run import _read_run

    run = _read_run(KINDS["lm"], directory)
    assert all(isinstance(path, str) for path in (*run.data, *run.dev))
    KINDS["lm"].config(vocabulary=100, **run.sizes)


def metrics(directory: Path) -> None:
    from cadec_cli.training.metrics import Metrics, read_metrics

    path = directory / "metrics.jsonl"
    before = path.read_bytes()
    list(read_metrics(path))
    Metrics(path, 15).write({"update": 16})
    kept = list(read_metrics(path))
    assert kept[-1] == {"update": 16}
    assert all(record["update"] <= 15 for record in kept[:-1])
    assert len(kept) <= before.count(b"\n") + 2


@cache
def _model_and_optimizer() -> Any:
    import torch

    from tests.helpers.bundle_parts import tiny_lm

    model = tiny_lm(8)
    optimizer = torch.optim.Adam(model.parameters())
    sum(parameter.sum() for parameter in model.parameters()).backward()  # type: ignore[union-attr]
    optimizer.step()
    return model, optimizer


def checkpoint_seed(directory: Path) -> None:
    from cadec_cli.training.checkpoints import Checkpoints, Evaluation, Progress

    evaluations = [Evaluation(1, 4.0, 1.5), Evaluation(2, 3.0, 2.5)]
    progress = Progress(2, 0, 2, 10, 0.5, evaluations)
    model, optimizer = _model_and_optimizer()
    Checkpoints(directory, {"ru": "0"}).save(model, optimizer, progress)


def checkpoint(directory: Path) -> None:
    from cadec_cli.training.checkpoints import Checkpoints

    model, optimizer = _model_and_optimizer()
    checkpoints = Checkpoints(directory, {"ru": "0"})
    newest = checkpoints.newest()
    if newest is None:
        return
    progress = checkpoints.load(newest, model, optimizer)
    assert min(progress.update, progress.epoch, progress.tokens) >= 0
    assert progress.since_best("loss") <= len(progress.evaluations)
    checkpoints.average(progress, "loss", 2)


def shard_seed(directory: Path) -> None:
    from cadec_cli.data.shards import SideInfo, writing_shard

    sides = [SideInfo("en", "0" * 64, 100), SideInfo("ru", "1" * 64, 100)]
    with writing_shard(directory / "shard", sides) as writer:
        for document in range(3):
            for sentence in range(2):
                writer.add([5, 6 + document], [7 + sentence])
            writer.end_document()
    for path in (directory / "shard").iterdir():
        path.rename(directory / path.name)
    (directory / "shard").rmdir()


def shard(directory: Path) -> None:
    from cadec_cli.data.shards import Shard

    found = Shard(directory)
    found.verify()  # as is done before anything is learnt from it
    for side in found.sides:
        assert len(side.lengths) == len(found)
        for index in range(len(found)):
            assert (side.sentence(index) < side.info.vocabulary_size).all(), "an id that no piece has"
            assert len(side.sentence(index)) > 0, "a sentence without an end"


def seconds(directory: Path) -> None:
    from cadec_cli.reproduction.steps import seconds_of

    assert all(isinstance(value, int | float) for value in seconds_of(directory).values())


def results_seed(directory: Path) -> None:
    (directory / "accuracies.jsonl").write_text(json.dumps(ACCURACIES) + "\n")
    (directory / "panels.jsonl").write_text(json.dumps(PANEL) + "\n")
    (directory / "speed.json").write_text(json.dumps({"per_second": 10.5}))
    (directory / "curve.json").write_text(json.dumps(CURVE))


def results(directory: Path) -> None:
    from cadec_cli.reproduction.measurements import _accuracies, _panels, _speed, chosen_point

    for found in _accuracies(directory / "accuracies.jsonl").values():
        assert all(isinstance(one.share, int | float) for one in found.values())
    _panels(directory / "panels.jsonl")
    assert isinstance(_speed(directory / "speed.json"), float | None)
    for protocol in ("best", "strongest"):
        point, _ = chosen_point(directory / "curve.json", protocol)
        assert isinstance(point.bleu, int | float)
        assert all(isinstance(flag, str) for flag in point.setting.flags)


def settings(directory: Path) -> None:
    from cadec_cli.reproduction.experiment import start_experiment

    start_experiment("toy", directory, None, write=False)


def settings_seed(directory: Path) -> None:
    from cadec_cli.reproduction.experiment import start_experiment

    start_experiment("toy", directory, None)


def json_of(name: str, value: object) -> Callable[[Path], None]:
    return text(name, json.dumps(value, indent=2))


REPRODUCTION = tuple(f"cadec_cli/reproduction/{name}.py" for name in ("measurements", "steps"))
CHECKPOINT = "update-00000002"

TARGETS = {
    "training preset": Target(("cadec_cli/training/presets.py",), text("mine.toml", PRESET), preset),
    "training run": Target(("cadec_cli/training/training_run.py",), json_of("run.json", RUN), run_record),
    "metrics": Target(("cadec_cli/training/metrics.py",), text("metrics.jsonl", METRICS), metrics),
    "progress": Target(
        ("cadec_cli/training/checkpoints.py",), checkpoint_seed, checkpoint, (f"{CHECKPOINT}/progress.json",)
    ),
    "optimizer": Target(
        ("cadec_cli/training/checkpoints.py",),
        checkpoint_seed,
        checkpoint,
        (f"{CHECKPOINT}/optimizer.safetensors", f"{CHECKPOINT}/model.safetensors"),
        packed={f"{CHECKPOINT}/optimizer.safetensors": SAFETENSORS},
    ),
    "shard": Target(("cadec_cli/data/shards.py",), shard_seed, shard),
    "reproduction's seconds": Target(REPRODUCTION, json_of("seconds.json", SECONDS), seconds),
    "reproduction's results": Target(REPRODUCTION, results_seed, results),
    "reproduction's settings": Target(("cadec_cli/reproduction/experiment.py",), settings_seed, settings),
}
