"""All that can be chosen about a training run, and where the choices come from.

A preset is a TOML file with the tables [model] and [training]; a flag given on the command line wins over it.
The fields below are at once the keys of the files and the flags: their help texts stand here, once.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from cadec_cli.errors import CadecError
from cadec_cli.files import reading

SCHEDULES = ("inverse-sqrt", "cosine", "cooldown", "constant")
PRECISIONS = ("auto", "float32", "bfloat16")
CRITERIA = ("loss", "bleu")


_POSITIVE = (
    "update_tokens",
    "batch_tokens",
    "learning_rate",
    "max_updates",
    "evaluate_every",
    "checkpoint_every",
    "log_every",
    "keep_best",
)
_NOT_NEGATIVE = (
    "warmup",
    "clip",
    "weight_decay",
    "max_epochs",
    "max_minutes",
    "patience",
    "seed",
    "threads",
)


def _option(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class TrainingOptions:
    """How to train; the same for every model."""

    update_tokens: int = _option(32_000, "labels an update of the weights sees; batches accumulate up to it")
    batch_tokens: int = _option(4_000, "size of one padded batch; the most that is in memory at once")
    learning_rate: float = _option(5e-4, "peak of the learning rate")
    schedule: str = _option("inverse-sqrt", f"after the warm-up: {', '.join(SCHEDULES)}")
    warmup: int = _option(4_000, "updates until the learning rate peaks")
    label_smoothing: float = _option(0.0, "share of the probability spread over the vocabulary")
    clip: float = _option(1.0, "largest norm of the gradient; 0 does not clip")
    beta2: float = _option(0.98, "Adam's second decay")
    weight_decay: float = _option(0.0, "decoupled weight decay")
    max_updates: int = _option(100_000, "stop after so many updates (where cosine and cooldown end)")
    max_epochs: int = _option(0, "stop after so many epochs; 0 is no limit")
    max_minutes: float = _option(0.0, "stop after so many minutes of this session; 0 is no limit")
    evaluate_every: int = _option(1_000, "updates between evaluations on the dev data")
    checkpoint_every: int = _option(1_000, "updates between checkpoints; a kill loses at most that much work")
    log_every: int = _option(50, "updates between lines of metrics.jsonl")
    stop_on: str = _option("loss", "the dev figure that chooses checkpoints and ends training: loss or bleu")
    patience: int = _option(10, "stop after so many evaluations without a better figure; 0 never")
    keep_best: int = _option(5, "checkpoints kept, and averaged into the finished model")
    seed: int = _option(1, "of the weights, the data order and dropout")
    device: str = _option("auto", "auto, cpu, cuda, cuda:1 …")
    precision: str = _option("auto", "auto (bfloat16 where a GPU has it), float32 or bfloat16")
    compile: bool = _option(False, "run the model through torch.compile")
    threads: int = _option(0, "CPU threads; 0 is all cores")

    def __post_init__(self) -> None:
        wrong = [
            f"{name} must be positive, not {getattr(self, name)}"
            for name in _POSITIVE
            if not getattr(self, name) > 0
        ]
        wrong += [
            f"{name} must not be negative, not {getattr(self, name)}"
            for name in _NOT_NEGATIVE
            if not getattr(self, name) >= 0
        ]
        for name, known in (("schedule", SCHEDULES), ("precision", PRECISIONS), ("stop_on", CRITERIA)):
            if getattr(self, name) not in known:
                wrong.append(f"{name} must be one of {', '.join(known)}, not {getattr(self, name)!r}")
        if not 0 <= self.label_smoothing < 1:
            wrong.append(f"label_smoothing must be in [0, 1), not {self.label_smoothing}")
        if not 0 <= self.beta2 < 1:
            wrong.append(f"beta2 must be in [0, 1), not {self.beta2}")
        if wrong:
            raise CadecError("training options: " + "; ".join(wrong))


# What may change when a run is taken up again: how long it goes on and what is written, never what is learnt.
CHANGEABLE = frozenset(
    {
        "max_updates",
        "max_epochs",
        "max_minutes",
        "patience",
        "checkpoint_every",
        "log_every",
        "threads",
        "keep_best",
    }
)


@dataclass(frozen=True)
class WindowOptions:
    """How documents are cut for the D-LM."""

    window: int = _option(384, "longest window, in tokens")
    stride: int = _option(256, "tokens from one window to the next")
    min_document_tokens: int = _option(0, "leave shorter documents out")


@dataclass(frozen=True)
class PairOptions:
    """Which pairs the S-NMT is trained on."""

    max_length: int = _option(200, "leave pairs out that have more tokens than this on a side")


@dataclass(frozen=True)
class DocumentLMSize:
    """Sizes of a D-LM that can be chosen; the vocabulary's is the data's."""

    layers: int = _option(12, "layers")
    width: int = _option(768, "width of the model")
    heads: int = _option(12, "attention heads")
    inner: int = _option(3072, "width of the feed-forward layers")
    positions: int = _option(512, "longest sequence")
    dropout: float = _option(0.1, "dropout")
    pre_norm: bool = _option(True, "normalise before each part instead of after")
    tied: bool = _option(True, "one table for input and output embeddings")
    activation: str = _option("gelu", "relu, gelu or swish")


@dataclass(frozen=True)
class TransformerSize:
    """Sizes of an S-NMT that can be chosen; the vocabularies' are the data's."""

    encoder_layers: int = _option(6, "layers of the encoder")
    decoder_layers: int = _option(6, "layers of the decoder")
    width: int = _option(512, "width of the model")
    heads: int = _option(8, "attention heads")
    inner: int = _option(2048, "width of the feed-forward layers")
    positions: int = _option(512, "longest sentence")
    dropout: float = _option(0.1, "dropout")
    pre_norm: bool = _option(False, "normalise before each part instead of after")
    tied: bool = _option(True, "one table for target and output embeddings")
    shared_embeddings: bool = _option(False, "one table for both languages (needs one vocabulary)")
    activation: str = _option("relu", "relu, gelu or swish")


Options = TypeVar("Options")


def preset_names(task: str) -> list[str]:
    """The presets that come with cadec for a task."""
    files = (resources.files(__package__) / "presets").iterdir()
    return sorted(
        file.name.removeprefix(f"{task}-").removesuffix(".toml") for file in files if task in file.name
    )


def load_preset(task: str, name: str) -> dict[str, dict[str, Any]]:
    """Read a preset by its name, or a TOML file by its path."""
    if name.endswith(".toml"):
        with reading(Path(name)):
            text = Path(name).read_text("utf-8")
    elif name in preset_names(task):
        text = (resources.files(__package__) / "presets" / f"{task}-{name}.toml").read_text("utf-8")
    else:
        raise CadecError(
            f"no preset {name!r} for {task}",
            f"there are {', '.join(preset_names(task))}, or give a .toml file",
        )
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise CadecError(f"{name} is not valid TOML: {error}") from None
    unknown = [
        key
        for key, table in tables.items()
        if key not in ("model", "training") or not isinstance(table, dict)
    ]
    if unknown:
        raise CadecError(
            f"{name}: unknown {', '.join(unknown)}", "a preset has the tables [model] and [training]"
        )
    return tables


def choose(kind: type[Options], *layers: Mapping[str, Any]) -> Options:
    """Make options of several layers, the later winning. Keys that belong elsewhere are passed over."""
    # any dataclass will do, which a type variable can't say
    fields = {item.name: item for item in dataclasses.fields(kind)}  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            if key in fields and value is not None:
                values[key] = _fitting(key, value, fields[key].default)
    return kind(**values)


def check_known(table: Mapping[str, Any], kinds: tuple[type[Any], ...], where: str) -> None:
    """Refuse keys that no option has: a misspelt one must not be passed over in silence."""
    known = {item.name for kind in kinds for item in dataclasses.fields(kind)}
    unknown = sorted(set(table) - known)
    if unknown:
        raise CadecError(f"{where}: unknown {', '.join(unknown)}", f"known are {', '.join(sorted(known))}")


def _fitting(key: str, value: Any, default: Any) -> Any:
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not type(default):
        raise CadecError(f"{key} must be of type {type(default).__name__}, not {value!r}")
    return value
