"""The compiled library that fits this CPU, if cadec was installed where there is a C compiler.

`CADEC_COMPILED=0` does without it. The file that is loaded lies in the package, beside the program itself.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path

# rows.c's; what was compiled from another version of it is not used.
VERSION = 1

# By what torch says of the CPU, which it has looked at, too; hatch_build.py compiles for these.
LEVELS = {"AVX512": "avx512", "AVX2": "avx2"}
PLAIN = "plain"

_POINTER, _COUNT, _FLOAT, _KIND = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float, ctypes.c_int32
_ARGUMENTS = {
    "cadec_round": [_POINTER, _COUNT, _COUNT, _COUNT, _POINTER, _POINTER],
    "cadec_round_left_over": [_POINTER, _COUNT, _COUNT, _COUNT, _POINTER, _POINTER, _POINTER],
    "cadec_norm_round": [_POINTER, _COUNT, _COUNT, _POINTER, _POINTER, _FLOAT, _POINTER, _POINTER, _POINTER],
    "cadec_activate_round": [_POINTER, _COUNT, _COUNT, _POINTER, _POINTER, _KIND, _POINTER, _POINTER],
    "cadec_scale": [_POINTER, _COUNT, _COUNT, _POINTER, _POINTER],
    "cadec_scale_add": [_POINTER, _COUNT, _COUNT, _POINTER, _POINTER, _POINTER, _POINTER],
    "cadec_scale_add_norm_round": [
        *(_POINTER, _COUNT, _COUNT, _POINTER, _POINTER, _POINTER, _POINTER),
        *(_POINTER, _POINTER, _FLOAT, _POINTER, _POINTER, _POINTER),
    ],
    "cadec_log_softmax": [_POINTER, _COUNT, _COUNT, _POINTER, _POINTER, _FLOAT],
    "cadec_log_probs": [
        *(_POINTER, _COUNT, _COUNT, _POINTER, _POINTER, _FLOAT),
        *(_COUNT, _POINTER, _POINTER, _POINTER),
    ],
    "cadec_attend_round": [
        *(_POINTER, _COUNT, _KIND, _POINTER, _POINTER, _POINTER, _POINTER),
        *(_COUNT, _COUNT, _POINTER, _POINTER),
    ],
}


@cache
def library() -> ctypes.CDLL | None:
    """The library, which lets other threads work while it computes; None where there is none."""
    if os.environ.get("CADEC_COMPILED") == "0":
        return None
    return load(Path(__file__).with_name(f"rows-{level()}.so"))


def level() -> str:
    """The level of the instruction set that this CPU has."""
    import torch

    return LEVELS.get(torch.backends.cpu.get_cpu_capability(), PLAIN)


def load(path: Path) -> ctypes.CDLL | None:
    """A library by its file; None if it is not there, can't be loaded, or is of another version."""
    try:
        found = ctypes.CDLL(str(path))
        version = found.cadec_version()
    except (OSError, AttributeError):
        return None
    if version != VERSION:
        return None
    for name, arguments in _ARGUMENTS.items():
        function = getattr(found, name)
        function.argtypes = arguments
        function.restype = ctypes.c_int32 if name == "cadec_attend_round" else None
    return found
