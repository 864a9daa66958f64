"""One training run: its settings, as run.json keeps them, and how they are passed to the loop.

Everything specific to a kind of model is in its entry in kinds.py.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cadec_cli.data.batches import WeightedShard
from cadec_cli.data.shards import Shard, SideInfo
from cadec_cli.errors import CadecError, UsageError, option
from cadec_cli.fs.atomic import write_errors, write_json
from cadec_cli.fs.locks import locked_directory
from cadec_cli.fs.read import read_json
from cadec_cli.models.devices import choose_device
from cadec_cli.models.storage import Model, fill, model_directory, save_model
from cadec_cli.parallel import available_cores
from cadec_cli.training.checkpoints import Checkpoints
from cadec_cli.training.kinds import Kind
from cadec_cli.training.loop import Outcome, Task, join_processes, train
from cadec_cli.training.metrics import Reporter, SilentReporter, ignore
from cadec_cli.training.presets import (
    CHANGEABLE,
    FineTuningOptions,
    TrainingOptions,
    check_known,
    choices,
    choosable,
    choose,
    load_preset,
)

REASONS = {
    "max_updates": "all updates done",
    "max_epochs": "all epochs done",
    "max_minutes": f"time is up ({option('resume')} continues)",
    "patience": f"no improvement in {option('patience')} evaluations",
}


@dataclass(frozen=True)
class Run:
    """The complete settings of a run."""

    kind: Kind
    preset: str
    data: tuple[str, ...]  # DIR or DIR=WEIGHT
    dev: tuple[str, ...]
    sizes: Mapping[str, Any]  # of the network, except those that the data decides
    data_options: Any  # of the kind's own class
    training: TrainingOptions
    start_from: str | None = None

    def record(self) -> dict[str, Any]:
        """The content of run.json."""
        record: dict[str, Any] = {
            "kind": self.kind.name,
            "preset": self.preset,
            "data": list(self.data),
            "dev": list(self.dev),
            "model": dict(self.sizes),
            "data_options": dataclasses.asdict(self.data_options),
            "training": dataclasses.asdict(self.training),
        }
        if self.start_from is not None:
            record["start_from"] = self.start_from
        if self.kind.kept:
            record["origin"] = self.kind.kept
        return record


def new_run(
    kind: Kind,
    output: Path,
    *,
    data: Sequence[str],
    dev: Sequence[Path],
    preset: str,
    flags: Mapping[str, Any],
    start_from: Path | None = None,
    note: Callable[[str], None] = ignore,
) -> Run:
    """The settings of a new run: the preset, and `flags`, which override it.

    `note` is called if `start_from` is a run that is not finished.
    """
    check_inputs(data, dev)
    if kind.origin and start_from is None:
        raise UsageError(
            f"`cadec train {kind.name}` starts from {kind.origin}",
            f"name its run with {option('start-from')}",
        )
    _check_flags(kind, flags)
    tables = load_preset(kind.preset_family, preset)
    model, training = tables.get("model", {}), tables.get("training", {})
    check_known(model, (kind.config,), f"{preset} [model]")
    check_known(training, (TrainingOptions, kind.data_options), f"{preset} [training]")
    run = Run(
        kind=kind,
        preset=preset,
        data=tuple(str(Path(spec).absolute()) for spec in data),
        dev=tuple(str(path.absolute()) for path in dev),
        sizes=choices(kind.config, model, flags),
        data_options=choose(kind.data_options, training, flags),
        training=choose(TrainingOptions, training, flags),
        start_from=str(model_directory(start_from, note).absolute()) if start_from else None,
    )
    check_new(output)
    return run


def check_inputs(data: Sequence[str], dev: Sequence[Path]) -> None:
    """Refuse a run without training or dev data."""
    if not data or not dev:
        raise UsageError(
            f"a run needs {option('data')} and {option('dev')}", "prepare both with `cadec prepare text`"
        )


def check_new(output: Path) -> None:
    """Refuse a directory that has a run, or files that a run would overwrite."""
    if _run_file(output).exists() or _checkpoints(output).exists():
        raise CadecError(
            f"{output} already holds a run",
            f"continue it with {option('resume')}, or choose another {option('output')}",
        )
    there = [name for name in ("model", "metrics.jsonl", "curves.png") if (output / name).exists()]
    if there:
        raise CadecError(f"{output} already holds {', '.join(there)}", f"choose another {option('output')}")


def _check_flags(kind: Kind, flags: Mapping[str, Any]) -> None:
    """Refuse options that this run can't use: sizes of a pretrained network, or options of fine-tuning."""
    known = {
        item.name for part in (kind.config, kind.data_options, TrainingOptions) for item in choosable(part)
    }
    useless = [option(name.replace("_", "-")) for name in flags if name not in known]
    if useless:
        why = (
            "a pretrained model's sizes are fixed"
            if kind.config is FineTuningOptions
            else f"{option('start-from')} names no pretrained model"
        )
        raise UsageError(f"{', '.join(useless)} can't be used here: {why}")


def continued_run(kind: Kind, output: Path, flags: Mapping[str, Any]) -> Run:
    """The settings of the run in `output`, with the limits that `flags` change."""
    run = _read_run(kind, output)
    before = {**dataclasses.asdict(run.training), **run.sizes, **dataclasses.asdict(run.data_options)}
    fixed = sorted(
        name for name, value in flags.items() if name not in CHANGEABLE and before.get(name) != value
    )
    if fixed:
        raise UsageError(
            f"{', '.join(fixed)} can't change when a run is continued",
            f"these can: {', '.join(sorted(CHANGEABLE))}",
        )
    changes = {name: value for name, value in flags.items() if name in CHANGEABLE}
    return dataclasses.replace(run, training=dataclasses.replace(run.training, **changes))


def carry_out(
    run: Run,
    output: Path,
    *,
    pipeline: Path | None = None,
    plot: bool = False,
    reporter: Reporter | None = None,
) -> Outcome:
    """Start or continue the run in `output`, and return how it ended.

    `pipeline` is the target language's, for BLEU; with `plot` the curves are drawn when the run is done.
    `reporter` receives messages and progress; without one the run is silent.
    """
    reporter = reporter or SilentReporter()
    options = run.training
    if options.threads:
        torch.set_num_threads(options.threads)
    elif "OMP_NUM_THREADS" not in os.environ:  # torchrun sets it, to share the cores
        torch.set_num_threads(available_cores())
    task = _task(run, output, pipeline)
    device = choose_device(options.device)
    with join_processes(device) as processes, _lock_run(output) if processes.first else nullcontext():
        if processes.first:
            write_json(_run_file(output), run.record())
            reporter.note(_summary(run, task, device))
        outcome = train(task, options, output, device, processes, reporter)
        if processes.first:
            _report(outcome, output, plot, reporter)
    return outcome


def _lock_run(output: Path) -> AbstractContextManager[None]:
    """Lock the directory, so that no other process trains there at the same time."""
    with write_errors(output):
        output.mkdir(parents=True, exist_ok=True)
    return locked_directory(output)


def _run_file(output: Path) -> Path:
    return output / "run.json"


def _checkpoints(output: Path) -> Path:
    return output / "checkpoints"


def _read_run(kind: Kind, output: Path) -> Run:
    file = _run_file(output)
    if not file.is_file():
        raise CadecError(f"there is no run to continue in {output}", f"start one without {option('resume')}")
    record = read_json(file)
    if not isinstance(record, dict) or record.get("kind") != kind.name:
        raise CadecError(f"{output} is not a run of `cadec train {kind.name}`")
    try:
        return Run(
            kind=kind,
            preset=record["preset"],
            data=_texts(record["data"]),
            dev=_texts(record["dev"]),
            sizes=choices(kind.config, record["model"]),
            data_options=choose(kind.data_options, record["data_options"]),
            training=choose(TrainingOptions, record["training"]),
            start_from=record.get("start_from"),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise CadecError(
            f"{file} is damaged: {error!r}", f"begin the run again in another {option('output')}"
        ) from None


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(text, str) for text in value):
        raise TypeError(f"{value!r} is not a list of corpora")
    return tuple(value)


def _task(run: Run, output: Path, pipeline: Path | None) -> Task:
    """Open the corpora and make the network; nothing is written before everything is checked."""
    kind, options = run.kind, run.training
    _check_lengths(run)
    shards = [_parse_weighted(spec) for spec in run.data]
    dev = [WeightedShard(Shard(Path(path))) for path in run.dev]
    for weighted in (*shards, *dev):
        weighted.shard.verify()
    sides = _sides([weighted.shard for weighted in [*shards, *dev]])
    examples = kind.examples(shards, run.data_options, run.sizes)
    dev_examples = kind.examples(dev, run.data_options, {**run.sizes, **kind.judged})
    torch.manual_seed(options.seed)
    network = kind.network(run.sizes, sides)
    if run.start_from is not None and Checkpoints(_checkpoints(output), {}).newest() is None:
        origin = Path(run.start_from)
        fill(network, kind.start_from(network, origin, sides), origin, partly=True)
    learning = kind.learns(network, run.sizes)
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(name in learning)
    return Task(
        model=network,
        examples=examples,
        dev=dev_examples,
        loss=kind.loss(options.label_smoothing),
        dev_loss=kind.loss(0.0),
        pipelines={side.language: side.pipeline_checksum for side in sides},
        bleu=_bleu(kind, pipeline, dev, sides) if options.stop_on == "bleu" else None,
        save=kind.save or save_model,
    )


def _check_lengths(run: Run) -> None:
    lengths = {name: getattr(run.data_options, name) for name in run.kind.lengths}
    positions = run.kind.positions or run.sizes["positions"]
    too_long = {name: length for name, length in lengths.items() if length > positions}
    if too_long:
        named = " and ".join(f"{name} {length}" for name, length in too_long.items())
        flags = " and ".join(option(name.replace("_", "-")) for name in too_long)
        raise CadecError(
            f"{named} is more than the model's positions ({positions})",
            f"lower {flags}" if run.kind.positions else f"lower {flags} or raise {option('positions')}",
        )


def _parse_weighted(spec: str) -> WeightedShard:
    path, separator, weight = spec.rpartition("=")
    if not separator or Path(spec).is_dir():
        return WeightedShard(Shard(Path(spec)))
    try:
        value = float(weight)
    except ValueError:
        raise CadecError(f"no corpus at {spec}", "give DIR, or DIR=2 to see it twice per epoch") from None
    if not 0 < value < 1000:
        raise CadecError(f"{spec}: the weight of a corpus must be above 0 and below 1000, not {weight}")
    return WeightedShard(Shard(Path(path)), value)


def _sides(shards: Sequence[Shard]) -> tuple[SideInfo, ...]:
    """The text pipelines that all the shards share; different ones are a CadecError."""
    sides = tuple(side.info for side in shards[0].sides)
    for shard in shards[1:]:
        if tuple(side.info for side in shard.sides) != sides:
            raise CadecError(
                f"{shard.directory} was prepared with other text pipelines than {shards[0].directory}",
                "prepare all corpora of a run with the same pipelines",
            )
    return sides


def _bleu(
    kind: Kind, pipeline: Path | None, dev: Sequence[WeightedShard], sides: Sequence[SideInfo]
) -> Callable[[Model], float]:
    from cadec_cli.text.pipeline import TextPipeline

    bleu = kind.bleu
    if bleu is None:
        raise UsageError(f"`cadec train {kind.name}` can't stop on BLEU: its models do not translate")
    if pipeline is None:
        raise UsageError(
            f"{option('stop-on')} bleu needs {option('pipeline')}, the target language's",
            f"or use {option('stop-on')} loss",
        )
    target = TextPipeline.load(pipeline)
    if target.checksum != sides[-1].pipeline_checksum:
        raise CadecError(f"{pipeline} is not the pipeline that prepared the data")
    return lambda network: bleu(network, [weighted.shard for weighted in dev], target)


def _summary(run: Run, task: Task, device: torch.device) -> str:
    size = sum(parameter.numel() for parameter in task.model.parameters())
    learning = sum(parameter.numel() for parameter in task.model.parameters() if parameter.requires_grad)
    share = f" ({learning / 1e6:.1f}M trained)" if learning < size else ""
    updates = math.ceil(task.examples.tokens / run.training.update_tokens)
    return (
        f"{run.kind.name}: {size / 1e6:.1f}M parameters{share} on {device}; an epoch is "
        f"{len(task.examples):,} examples, {task.examples.tokens:,} tokens, {updates:,} updates"
    )


def _report(outcome: Outcome, output: Path, plot: bool, reporter: Reporter) -> None:
    if outcome.interrupted:
        reporter.note(f"stopped at update {outcome.progress.update:,}; continue with {option('resume')}")
        return
    averaged = ", ".join(f"{update:,}" for update in outcome.averaged)
    updates = "update" if len(outcome.averaged) == 1 else "the average of updates"
    reporter.note(f"{REASONS[outcome.reason]}: {output / 'model'} is {updates} {averaged}")
    if plot:
        from cadec_cli.training.metrics import plot_curves

        plot_curves(output / "metrics.jsonl", output / "curves.png", reporter.warn)
        reporter.note(f"curves: {output / 'curves.png'}")
