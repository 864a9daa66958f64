"""Checkpoints of a run on disk: written whole or not at all, the newest to go on from, the best to average.

checkpoints/update-00001200/    a model directory (config.json, model.safetensors) and
    optimizer.safetensors       Adam's moments of what learns; only the newest checkpoint keeps them
    progress.json               where in the data, and all evaluations so far
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import safetensors.torch
import torch
from torch import Tensor, nn

from cadec_cli.errors import CadecError
from cadec_cli.files import read_json
from cadec_cli.models.storage import SHOWN, Model, fill, load_tensors, model_files, model_state
from cadec_cli.whole_files import atomic_directory

# What Adam keeps of a parameter that learns.
_MOMENTS = ("step", "exp_avg", "exp_avg_sq")


@dataclass(frozen=True)
class Evaluation:
    """A figure on the dev data, and the update it was taken at."""

    update: int
    loss: float
    bleu: float | None = None


@dataclass
class Progress:
    """How far a run has come: with the weights and Adam's moments, all it takes to continue exactly."""

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
        """Evaluations since the best one."""
        best = self.best(criterion, 1)
        return sum(e.update > best[0].update for e in self.evaluations) if best else 0


class Checkpoints:
    """The checkpoints of one run."""

    def __init__(self, directory: Path, pipelines: Mapping[str, str]) -> None:
        self.directory = directory
        self._pipelines = pipelines

    def newest(self) -> Path | None:
        """The checkpoint to go on from."""
        found = [path for path in self._all() if (path / "optimizer.safetensors").is_file()]
        return found[-1] if found else None

    def save(self, model: Model, optimizer: torch.optim.Optimizer, progress: Progress) -> None:
        """Write a checkpoint; it replaces nothing before it is complete."""
        newest = self.newest()
        hint = (
            f"free some space and continue with --resume; {newest or 'nothing'} is the last good checkpoint"
        )
        with atomic_directory(self._path(progress.update), hint) as part:
            for name, content in model_files(model, self._pipelines, model_state(model)).items():
                (part / name).write_bytes(content)
            (part / "optimizer.safetensors").write_bytes(safetensors.torch.save(_moments(model, optimizer)))
            (part / "progress.json").write_text(json.dumps(dataclasses.asdict(progress), indent=2) + "\n")

    def prune(self, progress: Progress, criterion: str, keep: int) -> None:
        """Remove what is neither the newest nor among the best."""
        best = {self._path(evaluation.update) for evaluation in progress.best(criterion, keep)}
        newest = self.newest()
        for path in self._all():
            if path == newest:
                continue
            (path / "optimizer.safetensors").unlink(missing_ok=True)
            if path not in best:
                shutil.rmtree(path)
        for part in self.directory.glob(".update-*"):  # of a run that was killed while writing
            shutil.rmtree(part)

    def load(self, path: Path, model: Model, optimizer: torch.optim.Optimizer) -> Progress:
        """Put a checkpoint's weights and moments in place, and tell how far it had come."""
        fill(model, load_tensors(path / "model.safetensors"), path)
        _restore_moments(model, optimizer, load_tensors(path / "optimizer.safetensors"), path)
        stored = read_json(path / "progress.json")
        try:
            evaluations = [Evaluation(**evaluation) for evaluation in stored.pop("evaluations")]
            return Progress(**stored, evaluations=evaluations)
        except (TypeError, KeyError, AttributeError) as error:
            raise CadecError(f"{path}/progress.json is damaged: {error}") from None

    def average(self, progress: Progress, criterion: str, keep: int) -> tuple[dict[str, Tensor], list[int]]:
        """The mean of the best checkpoints' weights, and which they were."""
        updates = [evaluation.update for evaluation in progress.best(criterion, keep)]
        paths = [path for path in map(self._path, updates) if path.is_dir()] or [self._path(progress.update)]
        total: dict[str, Tensor] = {}
        for path in paths:
            for name, tensor in load_tensors(path / "model.safetensors").items():
                total[name] = total[name] + tensor.double() if name in total else tensor.double()
        mean = {name: (tensor / len(paths)).float() for name, tensor in total.items()}
        return mean, [int(path.name.removeprefix("update-")) for path in paths]

    def _path(self, update: int) -> Path:
        return self.directory / f"update-{update:08d}"

    def _all(self) -> list[Path]:
        # Names of unfinished ones start with a dot.
        return sorted(path for path in self.directory.glob("update-*") if path.is_dir())


def _figure(evaluation: Evaluation, criterion: str) -> float:
    figure = evaluation.bleu if criterion == "bleu" else evaluation.loss
    assert figure is not None
    return figure


def _moments(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Adam's state by the names of the weights it belongs to (those that learn): tensors, no pickle."""
    return {
        f"{name}.{key}": torch.as_tensor(value).detach().cpu().contiguous()
        for name, parameter in model.named_parameters()
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def _restore_moments(
    model: nn.Module, optimizer: torch.optim.Optimizer, moments: Mapping[str, Tensor], origin: Path
) -> None:
    """Give every parameter that learns its state back: all of it and nothing else, or the file is refused."""
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
