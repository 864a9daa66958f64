"""Runs pieces of work side by side on a CPU, one core for each piece.

Several cores that share one piece wait for each other after every operation: with small networks as long as
they work, and far longer if other programs keep a core busy. (Two commands at once on two cores took twice
the CPU time of one after the other; with one core for each, the same time.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Lock
from typing import TypeVar

import torch
from torch import nn

# Weights of networks for which one core is about as quick as all: those of the embedded bundle have a
# quarter of that, those of the paper's sizes three times as much.
SMALL = 30_000_000

Piece = TypeVar("Piece")
Result = TypeVar("Result")


class Cores:
    """Threads that compute with one core each; as many as torch may use where it is first asked."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._count = 0

    def map(
        self, function: Callable[[Piece], Result], pieces: Sequence[Piece], *, small: bool = False
    ) -> list[Result]:
        """What a function makes of some pieces. A single one has all cores, unless the work is small."""
        count = torch.get_num_threads()
        if count == 1 or (len(pieces) == 1 and not small):
            return [function(piece) for piece in pieces]
        return list(self._threads(count).map(function, pieces))

    def _threads(self, count: int) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None or self._count != count:
                if self._pool is not None:
                    self._pool.shutdown(wait=False)
                self._pool, self._count = ThreadPoolExecutor(count, "core"), count
                all_here = Barrier(count)
                for begun in [self._pool.submit(_use_one_core, all_here) for _ in range(count)]:
                    begun.result()
                # What a thread asks for is its own, but threads begun later would follow the last one asked.
                torch.set_num_threads(count)
            return self._pool


def is_small(*models: object) -> bool:
    """Tell whether all of some models are networks on a CPU for which several cores are no gain."""
    networks = [_on_cpu(model) for model in models]
    return all(network is not None and _weights(network) < SMALL for network in networks)


def cores_for(*models: object) -> int:
    """How many cores can share work with some models: one, unless all are networks on a CPU."""
    return torch.get_num_threads() if all(_on_cpu(model) is not None for model in models) else 1


def _on_cpu(model: object) -> nn.Module | None:
    """The network of a model of ours that computes on a CPU."""
    network = getattr(model, "network", None)
    if not isinstance(network, nn.Module) or next(network.parameters()).device.type != "cpu":
        return None
    return network


def _weights(network: nn.Module) -> int:
    """How many weights the linears have, in whatever form they are kept."""
    shapes = (
        (getattr(part, "in_features", 0), getattr(part, "out_features", 0)) for part in network.modules()
    )
    return sum(rows * columns for rows, columns in shapes)


def _use_one_core(all_here: Barrier) -> None:
    all_here.wait()  # no thread takes this job twice
    torch.get_num_threads()  # a thread that has not asked yet would take the number of all, later
    torch.set_num_threads(1)
