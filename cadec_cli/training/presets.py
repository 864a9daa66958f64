"""The options of a training run, and the presets they come from.

A preset is a TOML file with the tables [model] and [training]; a flag given on the command line wins over it.
The fields below are both the keys of the files and the flags, and hold the help texts. The keys of [model]
are in models/configs.py. This module does not depend on the kinds of models.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from cadec_cli.errors import CadecError, UsageError, as_usage_error, option
from cadec_cli.fs.read import read_text
from cadec_cli.validation import Bound, Number, OneOf, Truth, Whole, misfits, quote_value

SCHEDULES = ("inverse-sqrt", "cosine", "cooldown", "constant")
PRECISIONS = ("auto", "float32", "bfloat16")
CRITERIA = ("loss", "bleu")


_COUNT, _UPDATES = Whole(1, 10**9), Whole(1, 10**12)
_BOUNDS: Mapping[str, Bound] = {
    "update_tokens": _COUNT,
    "batch_tokens": _COUNT,
    "learning_rate": Number(0, 1e9, above=True),
    "schedule": OneOf(SCHEDULES),
    "warmup": Whole(0, 10**12),
    "label_smoothing": Number(0, 1, below=True),
    "clip": Number(0, 1e9),
    "beta2": Number(0, 1, below=True),
    "weight_decay": Number(0, 1000),
    "max_updates": _UPDATES,
    "max_epochs": Whole(0, 10**9),
    "max_minutes": Number(0, 1e9),
    "evaluate_every": _UPDATES,
    "checkpoint_every": _UPDATES,
    "log_every": _UPDATES,
    "stop_on": OneOf(CRITERIA),
    "patience": Whole(0, 10**9),
    "keep_best": Whole(1, 1000),
    "seed": Whole(0, (1 << 63) - 1),
    "precision": OneOf(PRECISIONS),
    "compile": Truth(),
    "threads": Whole(0, 4096),
}


def _option(default: Any, text: str, choices: tuple[str, ...] = (), also: str = "") -> Any:
    """A field that the user can set: its help, its choices, and a regular expression for other values."""
    return field(default=default, metadata={"help": text, "choices": choices, "also": also})


@dataclass(frozen=True)
class TrainingOptions:
    """How to train; the same for every model."""

    update_tokens: int = _option(32_000, "labels per update of the weights; batches accumulate up to it")
    batch_tokens: int = _option(4_000, "size of one padded batch; the most that is in memory at once")
    learning_rate: float = _option(5e-4, "peak learning rate")
    schedule: str = _option(
        "inverse-sqrt", f"learning rate after the warm-up: {', '.join(SCHEDULES)}", SCHEDULES
    )
    warmup: int = _option(4_000, "updates until the learning rate peaks")
    label_smoothing: float = _option(0.0, "share of the probability spread over the vocabulary")
    clip: float = _option(1.0, "largest norm of the gradient; 0 turns clipping off")
    beta2: float = _option(0.98, "Adam's decay rate for squared gradients")
    weight_decay: float = _option(0.0, "decoupled weight decay")
    max_updates: int = _option(
        100_000, "stop after this many updates; the cosine and cooldown schedules end there"
    )
    max_epochs: int = _option(0, "stop after this many epochs; 0 means no limit")
    max_minutes: float = _option(0.0, "stop after this many minutes of this session; 0 means no limit")
    evaluate_every: int = _option(1_000, "updates between evaluations on the dev data")
    checkpoint_every: int = _option(1_000, "updates between checkpoints; a kill loses at most that much work")
    log_every: int = _option(50, "updates between lines of metrics.jsonl")
    stop_on: str = _option(
        "loss",
        "dev figure that ranks checkpoints and ends training: loss, or bleu for models that translate",
        CRITERIA,
    )
    patience: int = _option(10, "stop after this many evaluations without improvement; 0 means never")
    keep_best: int = _option(5, "best checkpoints to keep, and to average into the finished model")
    seed: int = _option(1, "random seed for the weights, the data order and dropout")
    device: str = _option(
        "auto", "device to compute on; cuda:1 is the second GPU", ("auto", "cpu", "cuda"), r"cuda:\d+"
    )
    precision: str = _option(
        "auto", "number format: auto (bfloat16 where a GPU has it), float32 or bfloat16", PRECISIONS
    )
    compile: bool = _option(False, "run the model through torch.compile")
    threads: int = _option(0, "CPU threads; 0 means one per core")

    def __post_init__(self) -> None:
        _refuse(misfits(self, _BOUNDS))


# Options that may change when a run is continued: limits and output, but nothing that affects the weights.
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
    stride: int = _option(256, "tokens from the start of one window to the next")
    min_document_tokens: int = _option(0, "leave out documents with fewer tokens than this")

    def __post_init__(self) -> None:
        _refuse(misfits(self, {"window": _COUNT, "stride": _COUNT, "min_document_tokens": Whole(0, 10**9)}))


LEARN = ("layers", "all")
PREDICT = ("seen", "all")


@dataclass(frozen=True)
class FineTuningOptions:
    """How a pretrained language model is fine-tuned."""

    learn: str = _option(
        "layers",
        "which weights of a pretrained model to train: layers, or all (the token embeddings too)",
        LEARN,
    )
    predict: str = _option(
        "seen",
        "which tokens the softmax covers while a pretrained model is trained: seen (those in the corpora; "
        "faster) or all",
        PREDICT,
    )

    def __post_init__(self) -> None:
        _refuse(misfits(self, {"learn": OneOf(LEARN), "predict": OneOf(PREDICT)}))


@dataclass(frozen=True)
class PairOptions:
    """Which pairs the S-NMT is trained on."""

    max_length: int = _option(200, "leave out pairs with more tokens than this on either side")

    def __post_init__(self) -> None:
        _refuse(misfits(self, {"max_length": _COUNT}))


@dataclass(frozen=True)
class BleuOptions:
    """The option for stopping on BLEU. It is not in run.json: a pipeline may be moved, its checksum stays."""

    pipeline: Path | None = field(
        default=None,
        metadata={
            "help": f"the target language's text pipeline; needed for {option('stop-on')} bleu",
            "type": Path,
        },
    )


Options = TypeVar("Options")


def _refuse(wrong: list[str]) -> None:
    if wrong:
        raise CadecError("training options: " + "; ".join(wrong))


def preset_names(family: str) -> list[str]:
    """The names of the presets that are part of cadec, for a family of models."""
    files = (file.name for file in (resources.files(__package__) / "presets").iterdir())
    start = f"{family}-"
    return sorted(name.removeprefix(start).removesuffix(".toml") for name in files if name.startswith(start))


def load_preset(family: str, name: str) -> dict[str, dict[str, Any]]:
    """Read a preset by its name, or a TOML file by its path."""
    if name.endswith(".toml"):
        text = read_text(Path(name)).text
    elif name in preset_names(family):
        text = (resources.files(__package__) / "presets" / f"{family}-{name}.toml").read_text("utf-8")
    else:
        raise UsageError(
            f"no preset {name!r} for {family}",
            f"there are {', '.join(preset_names(family))}, or give a .toml file",
        )
    try:
        tables = tomllib.loads(text)
    except ValueError as error:  # invalid TOML, or a number with thousands of digits
        raise CadecError(f"{name} is not valid TOML: {error}") from None
    except RecursionError:
        raise CadecError(f"{name} is nested deeper than any preset") from None
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


def choose(kind: type[Options], layer: Mapping[str, Any], flags: Mapping[str, Any] | None = None) -> Options:
    """Make options from a preset and `flags`, which override it. Keys of other classes are ignored."""
    chosen = kind(**choices(kind, layer))  # an error without flags is the file's fault
    if not flags:
        return chosen
    with as_usage_error():
        return kind(**choices(kind, layer, flags))


def choices(kind: type[Any], *layers: Mapping[str, Any]) -> dict[str, Any]:
    """The value of every field that can be set, by its name."""
    chosen = {item.name: item.default for item in choosable(kind)}
    for layer in layers:
        for key, value in layer.items():
            if key in chosen and value is not None:
                chosen[key] = _fitting(key, value, chosen[key])
    return chosen


def choosable(kind: type[Any]) -> list[dataclasses.Field[Any]]:
    """The fields that a preset or the user may set: those with a default."""
    return [item for item in dataclasses.fields(kind) if item.default is not dataclasses.MISSING]


def check_known(table: Mapping[str, Any], kinds: tuple[type[Any], ...], where: str) -> None:
    """Refuse keys that no option has: a misspelt key must not be ignored."""
    known = {item.name for kind in kinds for item in choosable(kind)}
    unknown = sorted(set(table) - known)
    if unknown:
        raise CadecError(f"{where}: unknown {', '.join(unknown)}", f"known are {', '.join(sorted(known))}")


def _fitting(key: str, value: Any, default: Any) -> Any:
    if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not type(default):
        raise CadecError(f"{key} must be of type {type(default).__name__}, not {quote_value(value)}")
    return value
