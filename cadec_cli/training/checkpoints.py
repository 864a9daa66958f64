"""The checkpoints of a run on disk. A run continues from the newest; the best are averaged.

checkpoints/update-00001200/    a model directory (config.json, model.safetensors) and
    optimizer.safetensors       Adam's moments of the trained weights; only the newest checkpoint keeps them
    progress.json               the position in the data, and all evaluations until then
    checksums.json              of the files beside it

A checkpoint is written completely or not at all. If one is damaged, the one before it is used.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from cadec_cli.errors import CadecError, option
from cadec_cli.fs.atomic import atomic_directory, remove_leftovers_in, write_errors
from cadec_cli.fs.read import read_json
from cadec_cli.models.storage import (
    SHOWN,
    Model,
    checkpoints_in,
    fill,
    load_tensors,
    model_files,
    model_state,
    verify,
    with_checksums,
)

# Adam's state for each trained parameter.
_MOMENTS = ("step", "exp_avg", "exp_avg_sq")
_FILES = ("config.json", "model.safetensors", "optimizer.safetensors", "progress.json", "checksums.json")
# More than any count in these files.
_MOST = 1 << 62


@dataclass(frozen=True)
class Evaluation:
    """The figures on the dev data after an update."""

    update: int
    loss: float
    bleu: float | None = None


@dataclass
class Progress:
    """How far a run has come. With the weights and Adam's moments, a run can be continued exactly."""

    update: int = 0
    epoch: int = 0
    update_in_epoch: int = 0
    tokens: int = 0
    seconds: float = 0.0
    evaluations: list[Evaluation] = field(default_factory=list)

    def best(self, criterion: str, count: int) -> list[Evaluation]:
        """The best evaluations, best first."""
        sign = -1 if criterion == "bleu" else 1
        return sorted(self.evaluations, key=lambda e: (sign * _figure(e, criterion), e.update))[:count]

    def since_best(self, criterion: str) -> int:
        """The number of evaluations since the best one."""
        best = self.best(criterion, 1)
        return sum(e.update > best[0].update for e in self.evaluations) if best else 0


class Checkpoints:
    """The checkpoints of one run; `warn` is called with a message about each damaged one."""

    def __init__(
        self,
        directory: Path,
        pipelines: Mapping[str, str],
        warn: Callable[[str], None] = lambda message: None,
    ) -> None:
        self.directory = directory
        self._pipelines = pipelines
        self._warn = warn

    def newest(self) -> Path | None:
        """The newest complete checkpoint; None if there is none."""
        found = self._complete()
        return found[-1] if found else None

    def resume(self, model: Model, optimizer: torch.optim.Optimizer, *, first: bool = True) -> Progress:
        """Load the newest undamaged checkpoint, and return its progress; a new one without checkpoints.

        The first process sets newer, damaged checkpoints aside: the run will reach their updates again.
        """
        damaged: list[tuple[Path, str]] = []
        for path in reversed(self._all()):
            _refuse_unreadable(path)
            if not _is_complete(path):
                continue
            try:
                progress = self.load(path, model, optimizer)
            except CadecError as error:
                damaged.append((path, error.marked_message))
                continue
            for other, why in damaged if first else ():
                self._warn(f"{why}; continuing from {path} instead")
                with write_errors(other):
                    _set_aside(other)
            return progress
        if damaged:
            path, why = damaged[0]
            older = [other for other in self._all() if other < path]
            hint = "no other checkpoint can be continued: begin the run again"
            raise CadecError(
                why, f"{hint}, perhaps with {option('start-from')} {older[-1]}" if older else hint
            )
        return Progress()

    def save(self, model: Model, optimizer: torch.optim.Optimizer, progress: Progress) -> None:
        """Write a checkpoint; it replaces nothing before it is complete."""
        newest = self.newest()
        hint = (
            f"free some space and continue with {option('resume')}; "
            f"{newest or 'nothing'} is the last good checkpoint"
        )
        files = {
            **model_files(model, self._pipelines, model_state(model)),
            "optimizer.safetensors": safetensors.torch.save(_moments(model, optimizer)),
            "progress.json": (json.dumps(dataclasses.asdict(progress), indent=2) + "\n").encode(),
        }
        with atomic_directory(self._path(progress.update), hint) as part:
            for name, content in with_checksums(files).items():
                (part / name).write_bytes(content)

    def prune(self, progress: Progress, criterion: str, keep: int) -> None:
        """Remove all checkpoints but the newest and the best."""
        best = {self._path(evaluation.update) for evaluation in progress.best(criterion, keep)}
        newest = self.newest()
        for path in self._all():
            if path == newest:
                continue
            (path / "optimizer.safetensors").unlink(missing_ok=True)
            if path not in best:
                shutil.rmtree(path)
        self.clear_dead()

    def clear_dead(self) -> None:
        """Clean up after a run that was killed while writing; restore files that it was replacing."""
        remove_leftovers_in(self.directory)

    def load(self, path: Path, model: Model, optimizer: torch.optim.Optimizer) -> Progress:
        """Load a checkpoint's weights and moments, and return its progress."""
        fill(model, load_tensors(path / "model.safetensors"), path)
        _restore_moments(model, optimizer, load_tensors(path / "optimizer.safetensors"), path)
        progress = _progress(path / "progress.json")
        if progress.update != _update(path):
            raise CadecError(f"{path}/progress.json is damaged: it belongs to update {progress.update:,}")
        verify(path, "model.safetensors", "optimizer.safetensors", "progress.json")
        return progress

    def average(self, progress: Progress, criterion: str, keep: int) -> tuple[dict[str, Tensor], list[int]]:
        """The mean of the best checkpoints' weights, and the updates of these checkpoints."""
        updates = [evaluation.update for evaluation in progress.best(criterion, keep)]
        paths = [path for path in map(self._path, updates) if path.is_dir()] or [self._path(progress.update)]
        total: dict[str, Tensor] = {}
        used: list[int] = []
        for place, path in enumerate(paths):
            try:
                verify(path, "model.safetensors")
                weights = load_tensors(path / "model.safetensors")
            except CadecError as error:
                if not used and place + 1 == len(paths):
                    raise
                self._warn(f"{error.marked_message}; the finished model is made without it")
                continue
            used.append(_update(path))
            for name, tensor in weights.items():
                total[name] = total[name] + tensor.double() if name in total else tensor.double()
        return {name: (tensor / len(used)).float() for name, tensor in total.items()}, used

    def _path(self, update: int) -> Path:
        return self.directory / f"update-{update:08d}"

    def _complete(self) -> list[Path]:
        return [path for path in self._all() if _is_complete(path)]

    def _all(self) -> list[Path]:
        return checkpoints_in(self.directory)


def _update(path: Path) -> int:
    return int(path.name.removeprefix("update-"))


def _is_complete(path: Path) -> bool:
    return (path / "optimizer.safetensors").is_file()


def _refuse_unreadable(path: Path) -> None:
    """Refuse a checkpoint without read permission: it may be whole, and only its owner can change that."""
    hint = "an unreadable checkpoint is neither used nor skipped: change its permissions"
    for place in (path, *(path / name for name in _FILES)):
        try:
            os.close(os.open(place, os.O_RDONLY))
        except PermissionError:
            raise CadecError(f"not allowed to read {place}", hint) from None
        except OSError:
            continue  # missing and broken files count as damage


def _set_aside(path: Path) -> None:
    """Rename a damaged checkpoint, so that it is not used but can be looked at."""
    aside = path.with_name(f"damaged-{path.name}")
    shutil.rmtree(aside, ignore_errors=True)
    path.replace(aside)


def _progress(path: Path) -> Progress:
    """Read progress.json; impossible values are a CadecError."""
    stored = read_json(path)
    try:
        evaluations = [
            Evaluation(
                _count(one["update"]),
                _number(one["loss"]),
                None if one.get("bleu") is None else _number(one["bleu"]),
            )
            for one in stored["evaluations"]
        ]
        return Progress(
            update=_count(stored["update"]),
            epoch=_count(stored["epoch"]),
            update_in_epoch=_count(stored["update_in_epoch"]),
            tokens=_count(stored["tokens"]),
            seconds=_number(stored["seconds"]),
            evaluations=evaluations,
        )
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise CadecError(f"{path} is damaged: {error!r}") from None


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < _MOST:
        raise ValueError("one of its counts is not valid")
    return value


def _number(value: Any) -> float:
    if type(value) is not float and (type(value) is not int or abs(value) >= _MOST):
        raise ValueError("one of its figures is not a number")
    return float(value)


def _figure(evaluation: Evaluation, criterion: str) -> float:
    figure = evaluation.bleu if criterion == "bleu" else evaluation.loss
    assert figure is not None
    return figure


def _moments(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Adam's state as tensors, by the names of the parameters that are trained."""
    return {
        f"{name}.{key}": torch.as_tensor(value).detach().cpu().contiguous()
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def _restore_moments(
    model: nn.Module, optimizer: torch.optim.Optimizer, moments: Mapping[str, Tensor], origin: Path
) -> None:
    """Restore the state of every parameter that is trained; a file that does not fit is a CadecError."""
    learning = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    shapes = {
        f"{name}.{key}": torch.Size() if key == "step" else parameter.shape
        for name, parameter in learning.items()
        for key in _MOMENTS
    }
    found = {name: tensor.shape for name, tensor in moments.items()}
    wrong = sorted(name for name in {*shapes, *found} if shapes.get(name) != found.get(name))
    if wrong:
        more = f" and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        raise CadecError(
            f"{origin}/optimizer.safetensors does not fit the model: {', '.join(wrong[:SHOWN])}{more}"
        )
    for name, parameter in learning.items():
        optimizer.state[parameter] = {key: moments[f"{name}.{key}"].to(parameter.device) for key in _MOMENTS}
