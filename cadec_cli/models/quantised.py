"""Networks with int8 weights, for inference on a CPU: several times as fast as float32 at paper size."""

from __future__ import annotations

import copy
from typing import TypeVar

from torch import nn

from cadec_cli.errors import CadecError
from cadec_cli.models.fused import FusedBlock
from cadec_cli.models.int8_linears import Int8Linear, int8_available
from cadec_cli.models.layers import Block
from cadec_cli.models.row_operations import available

M = TypeVar("M", bound=nn.Module)


def quantise(model: M) -> M:
    """Copy a network for inference on a CPU, its linears (a tied output too) with int8 weights.

    Embeddings and norms stay float32, and so do attention and everything between linears, which is compiled
    where it can be had.
    """
    devices = {parameter.device.type for parameter in model.parameters()}
    if devices - {"cpu"}:
        raise CadecError(
            f"int8 weights are for CPUs, and this model is on {', '.join(sorted(devices - {'cpu'}))}",
            "use it as it is, or load it on the CPU",
        )
    if not int8_available():
        raise CadecError("this build of torch has no int8 linears for this machine", "use float32 weights")
    # deepcopy takes what its memo holds for a copy: linears are replaced, and never copied as floats.
    linears = [part for part in model.modules() if type(part) is nn.Linear]
    made: M = copy.deepcopy(model, {id(linear): Int8Linear(linear) for linear in linears})
    if available():
        for parent in list(made.modules()):
            for name, part in parent.named_children():
                if type(part) is Block:
                    setattr(parent, name, FusedBlock(part))
    return made.requires_grad_(False).eval()
