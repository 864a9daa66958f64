"""From --workers, --engine, --address and --threads to a pool, and what its workers are told.

That is plain data, since workers may be other processes, or on other machines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cadec_cli.parallel import available_cores
from cadec_cli.terminal import console

if TYPE_CHECKING:
    from cadec_cli.bundle.load import LoadedModels
    from cadec_cli.evaluation.contrastive.groups import ContrastiveSet
    from cadec_cli.evaluation.contrastive.scoring import ContrastiveModels
    from cadec_cli.method.options import ScoringOptions
    from cadec_cli.method.terms import Terms
    from cadec_cli.parallel import WorkerPool


_PER_CORE = 2


def worker_pool(
    workers: int, engine: str, address: str | None, *, threads: int = 0, device: str = "auto"
) -> WorkerPool | None:
    """The pool that was asked for; none where this process is to do all of it, in its own way.

    Nothing is started before it is given something to do.
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

    A share of the cores would be another number with other workers, and so would float32 scores be.
    """
    return threads or 1


@dataclass(frozen=True)
class ModelReference:
    """What makes a worker open the models that were opened here."""

    bundle: Path | None  # none is the embedded one, wherever that is over there
    identity: str  # of the bundle
    source_language: str | None
    target_language: str | None
    device: str
    compute_type: str
    threads: int

    def open(self) -> LoadedModels:
        """Open them, if they are the same."""
        from cadec_cli.bundle.bundle import Bundle
        from cadec_cli.bundle.find import EMBEDDED
        from cadec_cli.bundle.load import load_models
        from cadec_cli.errors import CadecError

        bundle = Bundle.open(self.bundle or EMBEDDED)
        if bundle.manifest.identity != self.identity:
            raise CadecError(
                f"{bundle.directory} is not the same bundle for all workers",
                "install the same one on all machines",
            )
        return load_models(
            bundle,
            source_language=self.source_language,
            target_language=self.target_language,
            device=self.device,
            compute_type=self.compute_type,
            threads=self.threads,
        )


def model_reference(opened: LoadedModels, *, device: str, compute_type: str, threads: int) -> ModelReference:
    """What to tell workers of models that are open here."""
    from cadec_cli.bundle.find import is_embedded

    directory = opened.bundle.directory
    return ModelReference(
        None if is_embedded(directory) else directory.resolve(),
        opened.bundle.manifest.identity,
        opened.languages.source,
        opened.languages.target,
        device,
        compute_type,
        threads,
    )


@dataclass(frozen=True)
class ContrastiveOptions:
    """What was said of scoring contrastive sets."""

    objectives: tuple[str, ...]
    weight: str | None
    scoring_options: ScoringOptions
    context: int | None


def start_scoring_worker(
    same: ModelReference, flags: ContrastiveOptions
) -> Callable[[ContrastiveSet], list[Terms]]:
    """Load the models, and score part after part of contrastive sets."""
    from cadec_cli.terminal.inputs import contrastive_models

    names, weight, reading, context = flags.objectives, flags.weight, flags.scoring_options, flags.context
    _, models = contrastive_models(same.open(), names, weight, reading, context)
    return lambda part: list(models.terms(part))


def score_sets(
    sets: Iterable[ContrastiveSet],
    models: ContrastiveModels,
    pool: WorkerPool | None,
    same: ModelReference,
    flags: ContrastiveOptions,
) -> Iterator[Terms]:
    """The terms of all groups of all sets, in order, by a pool or by this process."""
    from cadec_cli.evaluation.contrastive.scoring import parts
    from cadec_cli.parallel import Task, in_order

    if pool is None:
        for one in sets:
            yield from models.terms(one)
        return
    results = pool.run(
        Task(start_scoring_worker, (same, flags)), (part for one in sets for part in parts(one))
    )
    for terms in in_order(results):
        yield from terms
