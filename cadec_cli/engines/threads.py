"""Runs pieces of work side by side on a CPU, one core for each piece.

Several cores that share one piece wait for each other after every operation: for small networks as long as
they compute, and far longer if other programs keep a core busy. (Two commands at once on two cores took twice
the CPU time of one after the other; with one core for each, the same time.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Lock
from typing import TypeVar

import torch
from torch import nn

# Networks with fewer weights are about as fast on one core as on all. The embedded bundle's networks have a
# quarter of this, networks of the paper's sizes three times as many.
SMALL = 30_000_000

Piece = TypeVar("Piece")
Result = TypeVar("Result")
Other = TypeVar("Other")


class Cores:
    """Threads that compute with one core each; as many as torch may use in the calling thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._count = 0

    def map(
        self, function: Callable[[Piece], Result], pieces: Sequence[Piece], *, small: bool = False
    ) -> list[Result]:
        """Apply a function to all pieces. A single piece gets all cores, unless the work is small."""
        count = torch.get_num_threads()
        if count == 1 or (len(pieces) == 1 and not small):
            return [function(piece) for piece in pieces]
        return list(self._threads(count).map(function, pieces))

    def both(self, first: Callable[[], Result], second: Callable[[], Other]) -> tuple[Result, Other]:
        """Call two functions side by side, with one core each; or one after the other, if there is one."""
        count = torch.get_num_threads()
        if count == 1:
            return first(), second()
        threads = self._threads(count)
        one, other = threads.submit(first), threads.submit(second)
        return one.result(), other.result()

    def _threads(self, count: int) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None or self._count != count:
                if self._pool is not None:
                    self._pool.shutdown(wait=False)
                self._pool, self._count = ThreadPoolExecutor(count, "core"), count
                all_here = Barrier(count)
                for begun in [self._pool.submit(_use_one_core, all_here) for _ in range(count)]:
                    begun.result()
                # Each thread has its own setting, but new threads would inherit the last one that was made.
                torch.set_num_threads(count)
            return self._pool


def is_small(*models: object) -> bool:
    """Tell whether all models are networks on a CPU, too small to gain from several cores."""
    networks = [_on_cpu(model) for model in models]
    return all(network is not None and _weights(network) < SMALL for network in networks)


def cores_for(*models: object) -> int:
    """The number of cores that can share the work of these models: one, unless all are networks on a CPU."""
    return torch.get_num_threads() if all(_on_cpu(model) is not None for model in models) else 1


def computes_on_cpu(model: object) -> bool:
    """Tell whether a model's network, of any kind, computes on a CPU."""
    network = getattr(model, "network", None)
    own = getattr(network, "device", None)
    if isinstance(own, torch.device):
        return own.type == "cpu"
    return _on_cpu(model) is not None


def _on_cpu(model: object) -> nn.Module | None:
    """The network of a model of ours that computes on a CPU."""
    network = getattr(model, "network", None)
    if not isinstance(network, nn.Module) or next(network.parameters()).device.type != "cpu":
        return None
    return network


def _weights(network: nn.Module) -> int:
    """The number of weights in the linears, in any format."""
    shapes = (
        (getattr(part, "in_features", 0), getattr(part, "out_features", 0)) for part in network.modules()
    )
    return sum(rows * columns for rows, columns in shapes)


def _use_one_core(all_here: Barrier) -> None:
    all_here.wait()  # so that no thread takes this job twice
    torch.get_num_threads()  # a thread that has never asked would take the global number later
    torch.set_num_threads(1)
