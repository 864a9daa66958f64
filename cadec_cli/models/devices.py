"""What `--device` means on this machine."""

from __future__ import annotations

import torch

from cadec_cli.errors import CadecError


def choose_device(name: str) -> torch.device:
    """The device that a name means here; `auto` is the GPU if there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise CadecError(f"unknown device: {name}", "auto, cpu, cuda or cuda:1")
    if device.type == "cuda" and not torch.cuda.is_available():
        raise CadecError("torch sees no GPU on this machine", "use --device cpu, or auto")
    return device
