"""Reads checkpoints of torch toolkits without running anything that they contain.

A pickle names classes to be created. Torch's own reader of weights creates tensors and plain values. Classes
of the toolkits that wrote these checkpoints become inert objects with the same attributes. Any other class is
refused. So no toolkit has to be installed, and none is trusted.
"""

from __future__ import annotations

import argparse
import pickle
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from cadec_cli.errors import CadecError
from cadec_cli.fs.read import read_errors

# Classes in the checkpoints of fairseq and OpenNMT-py: configurations, fields of torchtext, figures.
_STOOD_IN_FOR = (
    *("fairseq.", "omegaconf.", "onmt.", "torchtext.", "numpy.", "typing.", "pathlib.", "functools.partial"),
    *(f"builtins.{name}" for name in ("bool", "dict", "float", "int", "list", "object", "str", "tuple")),
)
_REFUSED_CLASS = re.compile(r"Unsupported global: GLOBAL ([\w.]+) ")
_MAX_CLASSES = 200


class Inert:
    """A stand-in for an object of a class that is not installed: it has the attributes and no behaviour."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    def __setstate__(self, state: Any) -> None:
        if isinstance(state, dict):
            vars(self).update(state)


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Return a checkpoint's values by name; one that is damaged or has other classes is a CadecError."""
    allowed: list[Any] = [argparse.Namespace]
    with read_errors(path):
        zipped = zipfile.is_zipfile(path)
        while True:
            try:
                with torch.serialization.safe_globals(allowed):
                    # Mapped into memory: of a large checkpoint, only the weights in use are read.
                    value = torch.load(path, map_location="cpu", weights_only=True, mmap=zipped)
                break
            except pickle.UnpicklingError as error:
                allowed.append((Inert, _replaceable_class(path, str(error), len(allowed))))
            except Exception:  # damage raises errors of many kinds
                raise _damage_error(path) from None
    if not isinstance(value, dict):
        raise CadecError(f"{path} is not a checkpoint: it holds {type(value).__name__}, not values by name")
    return value


def _replaceable_class(path: Path, message: str, tried: int) -> str:
    """Return the name of the refused class, if `Inert` may stand in for it; otherwise raise a CadecError."""
    named = _REFUSED_CLASS.search(message)
    if "is blocked" in message:  # from modules that no checkpoint needs, such as os
        raise CadecError(f"{path} contains executable code; it was not opened", "do not trust its source")
    if named is None or tried > _MAX_CLASSES:
        raise _damage_error(path)
    # For builtin classes, the message has no module.
    name = named[1] if "." in named[1] else f"builtins.{named[1]}"
    if not any(name == known or (known[-1] == "." and name.startswith(known)) for known in _STOOD_IN_FOR):
        raise CadecError(
            f"{path} holds a {name}, which no translation model needs; it was not opened",
            "save the model's weights and options again, without other objects",
        )
    return name


def _damage_error(path: Path) -> CadecError:
    with path.open("rb") as stream:
        pointer = stream.read(40).startswith(b"version https://git-lfs")
    if pointer:
        return CadecError(f"{path} is a Git LFS pointer, not the file itself", "fetch it with `git lfs pull`")
    return CadecError(f"{path} is not a torch checkpoint, or is damaged", "download or copy it again")


def plain(value: Any) -> Any:
    """Options as plain values, whether they were a namespace, a dictionary or omegaconf's own classes."""
    if isinstance(value, argparse.Namespace):
        return plain(vars(value))
    if isinstance(value, Inert):
        inside = vars(value)
        return plain(inside["_content"]) if "_content" in inside else plain(inside.get("_val"))
    if isinstance(value, Mapping):
        return {str(plain(name)): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value


def tensors(value: Any, path: Path, name: str) -> dict[str, torch.Tensor]:
    """Return the weights by name; floating-point ones are in float32."""
    if not isinstance(value, Mapping) or not value:
        raise CadecError(f"{path} has no weights under {name!r}", "is it a whole checkpoint of a model?")
    return {
        str(key): tensor.detach().float() if tensor.is_floating_point() else tensor.detach()
        for key, tensor in value.items()
        if isinstance(tensor, torch.Tensor)
    }
