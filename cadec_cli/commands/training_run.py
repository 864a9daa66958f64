"""What `cadec train nmt` and `cadec train lm` share: from flags and files to a run of the loop."""

import dataclasses
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import typer

from cadec_cli import console
from cadec_cli.bundle.building import model_directory
from cadec_cli.data.batches import DocumentWindows, Examples, SentencePairs, WeightedShard
from cadec_cli.data.shards import Shard, SideInfo
from cadec_cli.errors import CadecError
from cadec_cli.files import read_json, write_json
from cadec_cli.models.devices import choose_device
from cadec_cli.models.doclm import DocumentLM, DocumentLMConfig
from cadec_cli.models.storage import Model, check_pipeline, fill, load_model, model_state
from cadec_cli.models.transformer import Transformer, TransformerConfig
from cadec_cli.training.checkpoints import Checkpoints
from cadec_cli.training.distributed import joined
from cadec_cli.training.loop import Outcome, Task, train
from cadec_cli.training.loss import cross_entropy
from cadec_cli.training.options import (
    CHANGEABLE,
    DocumentLMSize,
    PairOptions,
    TrainingOptions,
    TransformerSize,
    WindowOptions,
    check_known,
    choose,
    load_preset,
)
from cadec_cli.workers import available_cores

# (model, data) options of each task; TrainingOptions are everyone's.
LM_OPTIONS: tuple[type[Any], type[Any]] = (DocumentLMSize, WindowOptions)
NMT_OPTIONS: tuple[type[Any], type[Any]] = (TransformerSize, PairOptions)

REASONS = {
    "max_updates": "all updates done",
    "max_epochs": "all epochs done",
    "max_minutes": "time is up; --resume goes on",
    "patience": "no better for a while",
}


def start(
    kind: str,
    option_kinds: tuple[type[Any], type[Any]],
    *,
    data: Sequence[str],
    dev: Sequence[Path],
    output: Path,
    preset: str,
    flags: Mapping[str, Any],
    resume: bool,
    plot: bool,
    pipeline: Path | None = None,
    start_from: Path | None = None,
) -> None:
    """Start or continue a run, and tell how it ended."""
    model_kind, data_kind = option_kinds
    run_file = output / "run.json"
    if resume:
        if start_from is not None:
            raise CadecError("a run that is continued has weights of its own", "leave out --start-from")
        run = _continued(run_file, kind, flags)
    else:
        run = _new(kind, option_kinds, data, dev, preset, flags)
        if start_from is not None:
            run["start_from"] = str(model_directory(start_from).absolute())
        if run_file.exists() or (output / "checkpoints").exists():
            raise CadecError(
                f"{output} holds a run already", "continue it with --resume, or choose another --output"
            )
    options = choose(TrainingOptions, run["training"])
    model_size, data_options = choose(model_kind, run["model"]), choose(data_kind, run["data_options"])
    if options.threads:
        torch.set_num_threads(options.threads)
    elif "OMP_NUM_THREADS" not in os.environ:  # torchrun sets it, to share the cores
        torch.set_num_threads(available_cores())
    _check_lengths(model_size, data_options)
    shards = [_weighted(spec) for spec in run["data"]]
    dev_shards = [WeightedShard(Shard(Path(path))) for path in run["dev"]]
    sides = _sides([weighted.shard for weighted in [*shards, *dev_shards]])
    examples, dev_examples = (_examples(part, data_options) for part in (shards, dev_shards))
    torch.manual_seed(options.seed)
    model = _model(model_size, sides)
    if "start_from" in run and Checkpoints(output / "checkpoints", {}).newest() is None:
        _take_weights(model, Path(run["start_from"]), kind, sides)
    task = Task(
        model=model,
        examples=examples,
        dev=dev_examples,
        loss=cross_entropy(options.label_smoothing),
        pipelines={side.language: side.pipeline_checksum for side in sides},
        bleu=_bleu(pipeline, dev_shards, sides) if options.stop_on == "bleu" else None,
    )
    device = choose_device(options.device)
    with joined(device) as processes:
        if processes.first:
            write_json(run_file, run)
            size = sum(parameter.numel() for parameter in model.parameters())
            console.note(
                f"{kind}: {size / 1e6:.1f}M parameters on {device}; an epoch is {len(examples):,} examples, "
                f"{examples.tokens:,} tokens, {math.ceil(examples.tokens / options.update_tokens):,} updates"
            )
        outcome = train(task, options, output, device, processes)
        if processes.first:
            _tell(outcome, output, plot)
    if outcome.interrupted:
        raise typer.Exit(130)


def _new(
    kind: str,
    option_kinds: tuple[type[Any], type[Any]],
    data: Sequence[str],
    dev: Sequence[Path],
    preset: str,
    flags: Mapping[str, Any],
) -> dict[str, Any]:
    """All that a run is made of, as run.json keeps it."""
    if not data or not dev:
        raise CadecError("a run needs --data and --dev", "prepare both with `cadec prepare text`")
    model_kind, data_kind = option_kinds
    tables = load_preset(kind, preset)
    check_known(tables.get("model", {}), (model_kind,), f"{preset} [model]")
    check_known(tables.get("training", {}), (TrainingOptions, data_kind), f"{preset} [training]")
    layers = (tables.get("model", {}), tables.get("training", {}), flags)
    return {
        "kind": kind,
        "preset": preset,
        "data": [str(_absolute(spec)) for spec in data],
        "dev": [str(path.absolute()) for path in dev],
        "model": dataclasses.asdict(choose(model_kind, *layers)),
        "data_options": dataclasses.asdict(choose(data_kind, *layers)),
        "training": dataclasses.asdict(choose(TrainingOptions, *layers)),
    }


def _continued(run_file: Path, kind: str, flags: Mapping[str, Any]) -> dict[str, Any]:
    """The run as it was begun, with the limits as they are wanted now."""
    if not run_file.is_file():
        raise CadecError(f"there is no run to continue in {run_file.parent}", "start one without --resume")
    run: dict[str, Any] = read_json(run_file)
    if not isinstance(run, dict) or run.get("kind") != kind:
        raise CadecError(f"{run_file.parent} is not a run of `cadec train {kind}`")
    before = {**run["training"], **run["model"], **run["data_options"]}
    fixed = sorted(
        name for name, value in flags.items() if name not in CHANGEABLE and before.get(name) != value
    )
    if fixed:
        raise CadecError(
            f"{', '.join(fixed)} can't change when a run is continued",
            f"what can: {', '.join(sorted(CHANGEABLE))}",
        )
    run["training"].update({name: value for name, value in flags.items() if name in CHANGEABLE})
    return run


def _check_lengths(size: Any, options: Any) -> None:
    name = "window" if isinstance(options, WindowOptions) else "max_length"
    if getattr(options, name) > size.positions:
        raise CadecError(
            f"{name} {getattr(options, name)} is more than the model's positions ({size.positions})",
            f"lower --{name.replace('_', '-')} or raise --positions",
        )


def _weighted(spec: str) -> WeightedShard:
    path, separator, weight = spec.rpartition("=")
    if not separator or Path(spec).is_dir():
        return WeightedShard(Shard(Path(spec)))
    try:
        value = float(weight)
    except ValueError:
        raise CadecError(f"no corpus at {spec}", "DIR, or DIR=2 to see it twice an epoch") from None
    if not 0 < value < 1000:
        raise CadecError(f"{spec}: a corpus can't count {weight} times")
    return WeightedShard(Shard(Path(path)), value)


def _absolute(spec: str) -> Path:
    return Path(spec).absolute()


def _sides(shards: Sequence[Shard]) -> tuple[SideInfo, ...]:
    """The pipelines of all the shards, which must be the same."""
    sides = tuple(side.info for side in shards[0].sides)
    for shard in shards[1:]:
        if tuple(side.info for side in shard.sides) != sides:
            raise CadecError(
                f"{shard.directory} was prepared with other text pipelines than {shards[0].directory}",
                "prepare all corpora of a run with the same pipelines",
            )
    return sides


def _examples(shards: Sequence[WeightedShard], options: Any) -> Examples:
    if isinstance(options, WindowOptions):
        return DocumentWindows(shards, options.window, options.stride, options.min_document_tokens)
    return SentencePairs(shards, options.max_length)


def _model(size: Any, sides: Sequence[SideInfo]) -> Model:
    if isinstance(size, DocumentLMSize):
        return DocumentLM(DocumentLMConfig(vocabulary=sides[0].vocabulary_size, **dataclasses.asdict(size)))
    source, target = (side.vocabulary_size for side in sides)
    return Transformer(
        TransformerConfig(source_vocabulary=source, target_vocabulary=target, **dataclasses.asdict(size))
    )


def _take_weights(model: Model, directory: Path, kind: str, sides: Sequence[SideInfo]) -> None:
    """Begin where another training ended; only a network of the same sizes and pipelines can."""
    stored = load_model(directory, kind)
    for side in sides:
        check_pipeline(stored, side.language, side.pipeline_checksum, directory)
    theirs, ours = (dataclasses.asdict(network.config) for network in (stored.model, model))
    other = [f"{name} {theirs[name]}" for name in ours if name != "dropout" and theirs[name] != ours[name]]
    if other:
        raise CadecError(
            f"{directory} is a network of other sizes: {', '.join(other)}", "give the same sizes as flags"
        )
    fill(model, model_state(stored.model), directory)


def _bleu(pipeline: Path | None, dev: Sequence[WeightedShard], sides: Sequence[SideInfo]) -> Any:
    from cadec_cli.text.pipeline import TextPipeline
    from cadec_cli.training.greedy import corpus_bleu

    if pipeline is None or len(sides) != 2:
        raise CadecError("--stop-on bleu needs --pipeline, the target language's", "or use --stop-on loss")
    text = TextPipeline.load(pipeline)
    if text.checksum != sides[1].pipeline_checksum:
        raise CadecError(f"{pipeline} is not the pipeline that prepared the data")
    return lambda model: corpus_bleu(model, [weighted.shard for weighted in dev], text)


def _tell(outcome: Outcome, output: Path, plot: bool) -> None:
    if outcome.interrupted:
        console.note(f"stopped at update {outcome.progress.update:,}; continue with --resume")
        return
    averaged = ", ".join(f"{update:,}" for update in outcome.averaged)
    console.note(f"{REASONS[outcome.reason]}: {output / 'model'} is the average of update {averaged}")
    if plot:
        from cadec_cli.training.plot import plot_curves

        plot_curves(output / "metrics.jsonl", output / "curves.png")
        console.note(f"curves: {output / 'curves.png'}")
