"""The compiled library that fits this CPU, if cadec was installed where there is a C compiler.

`CADEC_COMPILED=0` does without it. It lies in the package, beside the program itself, and is only used if it
was compiled from the very sources that lie there too.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path

from cadec_cli.kernels.compiling import PLAIN, identity, library_path

# By what torch says of the CPU: the libraries that it can run, the best first.
LEVELS = {"AVX512": ("avx512", "avx2"), "AVX2": ("avx2",)}

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


def library() -> ctypes.CDLL | None:
    """The library, which lets other threads work while it computes; None where there is none."""
    return _load_best()[1]


def level() -> str | None:
    """The level of the instruction set that it was compiled for."""
    return _load_best()[0]


@cache
def _load_best() -> tuple[str | None, ctypes.CDLL | None]:
    if os.environ.get("CADEC_COMPILED") == "0":
        return None, None
    return next(((name, found) for name in runnable() if (found := load(library_path(name)))), (None, None))


def runnable() -> tuple[str, ...]:
    """The levels that this CPU has, the best first."""
    import torch

    return (*LEVELS.get(torch.backends.cpu.get_cpu_capability(), ()), PLAIN)


def load(path: Path) -> ctypes.CDLL | None:
    """A library by its file; None if it is not there, can't be loaded, or was made of other sources."""
    try:
        found = ctypes.CDLL(str(path))
        found.cadec_source.restype = ctypes.c_char_p
        if found.cadec_source() != identity().encode():
            return None
        for name, arguments in _ARGUMENTS.items():
            function = getattr(found, name)
            function.argtypes = arguments
            function.restype = ctypes.c_int32 if name == "cadec_attend_round" else None
    except (OSError, AttributeError):
        return None
    return found
