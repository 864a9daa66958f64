"""From --workers, --engine, --address and --threads to a pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from cadec_cli.parallel import available_cores
from cadec_cli.terminal import console

if TYPE_CHECKING:
    from cadec_cli.parallel import WorkerPool


_PER_CORE = 2


def worker_pool(
    workers: int, engine: str, address: str | None, *, threads: int = 0, device: str = "auto"
) -> WorkerPool | None:
    """The pool that was asked for; None where this process is to do all of it, in its own way.

    No worker is started before the pool is given something to do.
    """
    if engine == "ray":
        from cadec_cli.parallel.ray import RayPool

        if device.startswith("cuda:"):
            raise typer.BadParameter("Ray gives each worker a GPU of its own: ask for --device cuda")
        cores = threads_each(threads)
        return RayPool(workers, address, cores=cores, gpus=1 if device == "cuda" else 0)
    if address is not None:
        raise typer.BadParameter("--address is that of a Ray cluster: add --engine ray")
    if not workers:
        return None
    from cadec_cli.parallel.processes import ProcessPool

    # Each has a copy of the models in memory, and no more of them work at a time than there are cores.
    most = _PER_CORE * available_cores()
    if workers > most:
        console.note(f"{most:,} workers are enough for the cores of this machine, instead of {workers:,}")
    return ProcessPool(min(workers, most))


def threads_each(threads: int) -> int:
    """How many threads a worker has: one, unless more are asked for.

    A part of the cores would be another number with other workers, and float32 scores would differ with it.
    """
    return threads or 1
