"""Makes a worker pool from --workers, --engine, --address and --threads."""

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
    """Make the requested pool; None if this process is to do all the work itself.

    Workers are started when the pool gets its first task.
    """
    if engine == "ray":
        from cadec_cli.parallel.ray import RayPool

        if device.startswith("cuda:"):
            raise typer.BadParameter("Ray gives each worker its own GPU: use --device cuda")
        cores = threads_each(threads)
        return RayPool(workers, address, cores=cores, gpus=1 if device == "cuda" else 0)
    if address is not None:
        raise typer.BadParameter("--address is for a Ray cluster: add --engine ray")
    if not workers:
        return None
    from cadec_cli.parallel.processes import ProcessPool

    # Each worker has a copy of the models in memory, and only as many as there are cores can run at a time.
    most = _PER_CORE * available_cores()
    if workers > most:
        console.note(f"{most:,} workers are enough for the cores of this machine, instead of {workers:,}")
    return ProcessPool(min(workers, most))


def threads_each(threads: int) -> int:
    """The number of threads per worker: one, unless more are requested.

    Dividing the cores among workers would make this depend on their number, and float32 scores with it.
    """
    return threads or 1
