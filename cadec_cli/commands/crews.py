"""From --workers, --engine, --address and --threads to a crew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from cadec_cli.crews import Crew


def wanted_crew(
    workers: int, engine: str, address: str | None, *, threads: int = 0, device: str = "auto"
) -> Crew | None:
    """The crew that was asked for; none where this process is to do all of it, in its own way.

    Nothing is started before it is given something to do.
    """
    if engine == "ray":
        from cadec_cli.crews.on_ray import RayCrew

        if device.startswith("cuda:"):
            raise typer.BadParameter("Ray gives each worker a GPU of its own: ask for --device cuda")
        cores = threads_each(workers, engine, address, threads)
        return RayCrew(workers, address, cores=cores, gpus=1 if device == "cuda" else 0)
    if address is not None:
        raise typer.BadParameter("--address is that of a Ray cluster: add --engine ray")
    if not workers:
        return None
    from cadec_cli.crews.processes import Processes

    return Processes(workers)


def threads_each(workers: int, engine: str, address: str | None, threads: int) -> int:
    """How many threads a member has: those asked for, else its share of this machine.

    A cluster's machines need not be like this one: a member there has one core, unless more are asked for.
    """
    from cadec_cli.workers import available_cores

    if threads:
        return threads
    here = engine != "ray" or address is None
    return max(1, available_cores() // workers) if here and workers else 1
