"""A model directory: config.json, which names the pipelines it was trained with, and model.safetensors.

Outside a bundle, which has its manifest, the directory also holds the checksums of both.
"""

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from cadec_cli.errors import CadecError
from cadec_cli.fs.atomic import atomic_directory, restore_directory
from cadec_cli.fs.read import read_errors, read_json, sha256
from cadec_cli.models.configs import CONFIGURATIONS
from cadec_cli.models.doclm import DocumentLM
from cadec_cli.models.doctransformer import DocTransformer
from cadec_cli.models.layers import Network
from cadec_cli.models.pretrained_lm import PretrainedLM, PretrainedLMConfig
from cadec_cli.models.transformer import DocRepair, Transformer, TwoToTwo
from cadec_cli.validation import field_misfits

FORMAT_VERSION = 1
_CHECKSUMS = "checksums.json"
# The types that weights are stored as.
_NUMBERS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)

# The network in a model directory.
Model = Network

# A plain table: kind in config.json → its configuration and network. A network must be entered to be stored.
NETWORKS: dict[str, tuple[type[Any], type[Model]]] = {
    "nmt": (CONFIGURATIONS["nmt"], Transformer),
    "lm": (CONFIGURATIONS["lm"], DocumentLM),
    "doc-nmt": (CONFIGURATIONS["doc-nmt"], DocTransformer),
    "2-to-2": (CONFIGURATIONS["2-to-2"], TwoToTwo),
    "repair": (CONFIGURATIONS["repair"], DocRepair),
    "pretrained-lm": (PretrainedLMConfig, PretrainedLM),
}

# The most misfits that an error names.
SHOWN = 20


@dataclass(frozen=True)
class StoredModel:
    """A loaded model, with the checksums of its pipelines by language."""

    kind: str
    model: Model
    pipelines: Mapping[str, str]


def kind_of(model: nn.Module) -> str:
    """The kind of a network, as config.json names it."""
    for kind, (_, network) in NETWORKS.items():
        if type(model) is network:  # a network derived from another is not that other
            return kind
    raise TypeError(f"{type(model).__name__} is not in NETWORKS, so it can't be stored")


def model_files(model: Model, pipelines: Mapping[str, str], state: Mapping[str, Tensor]) -> dict[str, bytes]:
    """The files of a model directory, ready to be written."""
    config = {
        "format": FORMAT_VERSION,
        "kind": kind_of(model),
        "config": dataclasses.asdict(model.config),
        "pipelines": dict(pipelines),
    }
    return {
        "config.json": (json.dumps(config, indent=2) + "\n").encode(),
        "model.safetensors": safetensors.torch.save(dict(state)),
    }


def model_state(model: nn.Module) -> dict[str, Tensor]:
    """The weights by name. Tied weights have only their first name (embeddings come before outputs)."""
    seen: set[int] = set()
    state = {}
    for name, tensor in model.state_dict().items():
        if tensor.data_ptr() not in seen:
            seen.add(tensor.data_ptr())
            state[name] = tensor.detach().cpu().contiguous()
    return state


def save_model(directory: Path, model: Model, pipelines: Mapping[str, str]) -> None:
    """Write a model directory, completely or not at all."""
    with atomic_directory(directory, marker="config.json") as part:
        for name, content in with_checksums(model_files(model, pipelines, model_state(model))).items():
            (part / name).write_bytes(content)


def with_checksums(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The given files by name, and one more with their checksums."""
    checksums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    return {**files, _CHECKSUMS: (json.dumps(checksums, indent=2) + "\n").encode()}


def verify(directory: Path, *names: str) -> None:
    """Refuse files that do not match their checksums; directories from earlier versions have no checksums."""
    if not (directory / _CHECKSUMS).is_file():
        return
    stored = read_json(directory / _CHECKSUMS)
    for name in names:
        if not isinstance(stored, dict) or stored.get(name) != sha256(directory / name):
            raise CadecError(
                f"{directory / name} is damaged: its checksum does not match",
                f"if you changed it on purpose, delete {directory / _CHECKSUMS}",
            )


def checkpoints_in(directory: Path) -> list[Path]:
    """The checkpoints of a run, oldest first. Directories with other names are ignored."""
    numbers = {
        path: int(match[1])
        for path in directory.glob("update-*")
        if (match := re.fullmatch("update-([0-9]+)", path.name)) and path.is_dir()
    }
    return sorted(numbers, key=lambda path: (numbers[path], path))


def model_directory(given: Path, say: Callable[[str], None]) -> Path:
    """The model directory meant by `given`: itself, or the model or newest checkpoint of a training run.

    `say` is called with a message if the run is not finished and its newest checkpoint is used.
    """
    restore_directory(given)
    restore_directory(given / "model")
    if (given / "config.json").is_file():
        return given
    if (given / "model" / "config.json").is_file():
        return given / "model"
    if checkpoints := checkpoints_in(given / "checkpoints"):
        say(f"{given} is not finished: taking its newest checkpoint, {checkpoints[-1].name}")
        return checkpoints[-1]
    raise CadecError(f"{given} holds no model (no config.json, no model/, no checkpoints/)")


def load_model(directory: Path, kind: str | None = None) -> StoredModel:
    """Load a model directory on the CPU; anything missing, damaged or of another kind is a CadecError."""
    restore_directory(directory)
    if not (directory / "config.json").is_file():
        raise CadecError(f"{directory} is not a model (it has no config.json)")
    stored = read_json(directory / "config.json", strict=True)
    if (
        not isinstance(stored, dict)
        or stored.get("format") != FORMAT_VERSION
        or not isinstance(stored.get("kind"), str)
        or stored["kind"] not in NETWORKS
        or not isinstance(stored.get("config"), dict)
    ):
        raise CadecError(
            f"{directory}/config.json does not describe a cadec model of format {FORMAT_VERSION}"
        )
    if kind is not None and stored["kind"] != kind:
        raise CadecError(f"{directory} is a model of kind {stored['kind']!r}, not {kind!r}")
    config_class, network = NETWORKS[stored["kind"]]
    if wrong := field_misfits(stored.get("config"), config_class):
        raise CadecError(f"{directory}/config.json does not fit: {'; '.join(wrong)}")
    config = config_class(**stored["config"])
    pipelines = stored.get("pipelines", {})
    if not isinstance(pipelines, dict):
        raise CadecError(f"{directory}/config.json does not say which pipelines the model was trained with")
    state = load_tensors(directory / "model.safetensors")
    # First without memory: the file must hold all weights of a configuration before they are allocated.
    with torch.device("meta"), _Unfilled():
        outline = network(config)
    _refuse(_misfits(_weight_shapes(outline), state), directory)
    with _Unfilled():
        model = network(config)
    fill(model, state, directory)
    verify(directory, "config.json", "model.safetensors")
    model.eval()
    return StoredModel(stored["kind"], model, pipelines)


class _Unfilled(TorchFunctionMode):
    """Skip the random initialisation of weights that a file will fill: it takes longer than reading them."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func.__name__ in ("kaiming_uniform_", "uniform_", "normal_"):
            return args[0] if args else (kwargs or {})["tensor"]  # torch.nn.init passes it by name
        return func(*args, **kwargs or {})


def load_tensors(path: Path) -> dict[str, Tensor]:
    """Load a safetensors file; a truncated or foreign one is a CadecError."""
    with read_errors(path):
        content = path.read_bytes()
    try:
        return safetensors.torch.load(content)
    except safetensors.SafetensorError as error:
        raise CadecError(f"{path} is damaged or not a safetensors file: {error}") from None


def fill(model: nn.Module, state: Mapping[str, Tensor], origin: Path, *, partly: bool = False) -> None:
    """Put weights into a network; one CadecError reports all names, shapes and values that do not fit.

    Every weight must be given; with `partly`, missing ones keep their values.
    """
    expected = {name: tensor.shape for name, tensor in model_state(model).items()}
    wrong = _misfits(expected, state, partly=partly)
    for name in expected.keys() & state.keys():
        if state[name].dtype not in _NUMBERS:
            kind = str(state[name].dtype).removeprefix("torch.")
            wrong.append(f"{name} holds {kind}, which is not a type of weights")
        elif state[name].shape == expected[name] and not torch.isfinite(state[name]).all():
            wrong.append(f"{name} holds NaN or infinite values")
    _refuse(wrong, origin)
    model.load_state_dict(dict(state), strict=False)  # tied names are filled through the first of them


def _weight_shapes(model: nn.Module) -> dict[str, torch.Size]:
    """The shapes of the weights by name, tied ones once, of a network that has no memory yet."""
    seen: set[int] = set()
    shapes = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            shapes[name] = tensor.shape
    return shapes


def _misfits(
    expected: Mapping[str, torch.Size], state: Mapping[str, Tensor], *, partly: bool = False
) -> list[str]:
    wrong = [f"no {name}" for name in expected if name not in state and not partly]
    wrong += [f"unknown {name}" for name in state if name not in expected]
    for name in expected.keys() & state.keys():
        if state[name].shape != expected[name]:
            wrong.append(f"{name} is {tuple(state[name].shape)}, not {tuple(expected[name])}")
    return wrong


def _refuse(wrong: list[str], origin: Path) -> None:
    if wrong:
        more = f"; and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        raise CadecError(f"the weights in {origin} do not fit: " + "; ".join(sorted(wrong)[:SHOWN]) + more)


def check_pipeline(stored: StoredModel, language: str, checksum: str, origin: Path) -> None:
    """Refuse a pipeline that the model was not trained with: ids would mean other pieces."""
    expected = stored.pipelines.get(language)
    if expected != checksum:
        raise CadecError(
            f"{origin} was trained with another text pipeline for {language!r}",
            "use the pipeline directory that prepared its training data",
        )
