"""The meaning of `--device` on this machine, for torch and for CTranslate2, which needs no torch on a CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cadec_cli.errors import CadecError, option

if TYPE_CHECKING:
    import torch


def check_device(name: str) -> None:
    """Refuse the name of a device that is not available. `auto` is resolved when a model is loaded."""
    if name not in ("auto", "cpu"):
        choose_device(name)


def choose_device(name: str) -> torch.device:
    """The torch device with this name; `auto` is the GPU if there is one. Others are a CadecError."""
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise CadecError(f"unknown device: {name}", "auto, cpu, cuda or cuda:1")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise CadecError("torch sees no GPU on this machine", f"use {option('device', 'cpu')}, or auto")
    return device


def ctranslate2_device(name: str) -> tuple[str, int]:
    """The CTranslate2 device with this name, as type and number."""
    if name == "cpu" or (name == "auto" and not _sees_gpu()):
        return "cpu", 0
    # Importing torch loads its own GPU libraries, which CTranslate2 then finds.
    device = choose_device(name)
    return device.type, device.index or 0


def _sees_gpu() -> bool:
    import ctranslate2

    return bool(ctranslate2.get_cuda_device_count())
