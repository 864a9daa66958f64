"""Several of torch's operations as one call, by TorchScript where it can be had.

A call of its own keeps no other thread waiting for Python's lock; a dozen operations one by one do so a dozen
times. (By threads of one core each, the beam took two fifths longer than by processes.) Where TorchScript is
no more, or refuses, functions run as they stand, and give the same numbers bit for bit. They are written such
that it takes them: it can't see the constants of a module, which come as defaults.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import TypeVar, cast

import torch

Function = TypeVar("Function", bound=Callable[..., torch.Tensor])


def script(function: Function) -> Function:
    """The same by TorchScript, if it can be had."""
    return cast(Function, _script(function))


@cache
def _script(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # that is what is provided for here
            made: Callable[..., torch.Tensor] = torch.jit.script(function)
    except Exception:  # of many kinds; whatever it is, there is another way
        return function
    return made
