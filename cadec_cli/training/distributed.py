"""Training in one process, or in several that `torchrun` started."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


@dataclass(frozen=True)
class Processes:
    """This process among all that train one model."""

    rank: int = 0
    count: int = 1

    @property
    def first(self) -> bool:
        """Tell whether this process writes files and reports progress for all."""
        return self.rank == 0

    def wrap(self, model: nn.Module) -> nn.Module:
        """Return a network whose gradients are averaged over all processes."""
        return DistributedDataParallel(model) if self.count > 1 else model

    def total(self, *values: float) -> list[float]:
        """Return the sum of each value over all processes."""
        if self.count == 1:
            return list(values)
        device = torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else None
        tensor = torch.tensor(values, dtype=torch.float64, device=device)
        dist.all_reduce(tensor)
        return tensor.tolist()

    def barrier(self) -> None:
        """Wait until every process has reached this point."""
        if self.count > 1:
            dist.barrier()


@contextlib.contextmanager
def join_processes(device: torch.device) -> Iterator[Processes]:
    """Join the processes that `torchrun` started; without `torchrun`, there is one."""
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if count == 1:
        yield Processes()
        return
    if device.type == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Processes(dist.get_rank(), count)
    finally:
        dist.destroy_process_group()
