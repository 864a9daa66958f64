"""`cadec augment`: more training data, made by models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cadec_cli.jobs.model_request import ModelRequest
from cadec_cli.terminal.app import new_app
from cadec_cli.terminal.flags import (
    MODELS,
    Address,
    Engine,
    Force,
    LineWorkers,
    model_flags,
)

if TYPE_CHECKING:
    from cadec_cli.bundle.bundle import Bundle
    from cadec_cli.jobs.back_translation import LineTranslation, Translate
    from cadec_cli.parallel import WorkerPool

TranslateAll = Callable[[Iterable[list[str]]], Iterator[list[str]]]

augment_app = new_app("Make training data with models.")


@augment_app.callback()
def augment() -> None:
    """Make training data with models."""


Documents = Annotated[
    list[Path],
    typer.Argument(
        help="Texts in the target language, one sentence per line, a blank line between documents.",
        show_default=False,
    ),
]
Output = Annotated[
    Path, typer.Option("--output", "-o", help="File to write: translation TAB sentence.", show_default=False)
]
Beam = Annotated[int, typer.Option(help="Beam size.", min=1)]
Seed = Annotated[int, typer.Option(help="Random seed for sampling.")]
Temperature = Annotated[
    float,
    typer.Option(
        help="Sampling temperature: 1 draws words by their probability, lower values favour likely ones.",
        min=0.01,
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Continue an interrupted run; same files and options.")
]
Encoding = Annotated[str, typer.Option(help="Encoding of the documents.")]


@augment_app.command("back-translate")
@model_flags()
def back_translate(
    documents: Documents,
    output: Output,
    models: ModelRequest = MODELS,
    beam: Beam = 4,
    sample: Annotated[
        bool, typer.Option("--sample", help="Draw translations at random instead: more varied, less exact.")
    ] = False,
    temperature: Temperature = 1.0,
    seed: Seed = 1,
    resume: Resume = False,
    force: Force = False,
    encoding: Encoding = "utf-8",
    workers: LineWorkers = 0,
    engine: Engine = "processes",
    address: Address = None,
) -> None:
    """Translate target-side documents back, into pairs to train an S-NMT of the other direction on.

    The bundle's S-NMT translates from the language of the documents; its D-LM is not needed. Document
    boundaries stay.

    Example: cadec augment back-translate plays.ru.txt --bundle ru-en -o pseudo.tsv

    Example: cadec prepare text pseudo.tsv --columns 1,2 -p en -p ru -o pseudo
    """
    from cadec_cli.jobs.back_translation import LineTranslation
    from cadec_cli.terminal.run_job import open_models

    how = LineTranslation(False, sample, beam, seed, temperature)
    pool = line_worker_pool(how, workers, engine, address, models)
    check_output(documents, output, force=force, resume=resume)
    opened = open_models(models)
    write_pairs(
        documents,
        output,
        {
            "bundle": opened.bundle.manifest.identity,
            "languages": str(opened.languages),
            "beam": str(beam),
            "sample": f"{sample} {seed} {temperature}",
            "compute type": models.compute_type,
        },
        lambda done: how.by(opened, done),
        what="back-translate",
        resume=resume,
        force=force,
        encoding=encoding,
        by_several=pool.translate_with(opened.bundle) if pool else None,
    )


@augment_app.command("round-trip")
@model_flags()
def round_trip(
    documents: Documents,
    output: Output,
    models: ModelRequest = MODELS,
    sample: Annotated[
        bool,
        typer.Option(help="Draw the translations into the source language at random, not by beam search."),
    ] = True,
    temperature: Temperature = 0.5,
    beam: Beam = 4,
    seed: Seed = 1,
    resume: Resume = False,
    force: Force = False,
    encoding: Encoding = "utf-8",
    workers: LineWorkers = 0,
    engine: Engine = "processes",
    address: Address = None,
) -> None:
    """Translate target-side documents into the source language and back, into pairs to train DocRepair on.

    The bundle needs a backward model (`cadec convert --back`). The way back uses beam search,
    like the translations that will be repaired. Document boundaries stay.

    Example: cadec augment round-trip plays.ru.txt --bundle en-ru -o trips.tsv

    Example: cadec prepare text trips.tsv --columns 1,2 -p ru -p ru --lines -o trips
    """
    from cadec_cli.jobs.back_translation import LineTranslation
    from cadec_cli.terminal.run_job import open_models

    how = LineTranslation(True, sample, beam, seed, temperature)
    pool = line_worker_pool(how, workers, engine, address, models)
    check_output(documents, output, force=force, resume=resume)
    opened = open_models(models)
    write_pairs(
        documents,
        output,
        {
            "bundle": opened.bundle.manifest.identity,
            "languages": str(opened.languages),
            "round trip": f"{sample} {seed} {temperature} {beam}",
            "compute type": models.compute_type,
        },
        lambda done: how.by(opened, done),
        what="round trip",
        resume=resume,
        force=force,
        encoding=encoding,
        by_several=pool.translate_with(opened.bundle) if pool else None,
    )


@dataclass(frozen=True)
class LineWorkerPool:
    """A pool that translates lines, how it does so, and with which models."""

    pool: WorkerPool
    how: LineTranslation
    models: ModelRequest

    def translate_with(self, bundle: Bundle) -> TranslateAll:
        """Return a function that translates chunks of lines, in order; `bundle` is the opened bundle."""
        from cadec_cli.jobs.back_translation import start_line_worker
        from cadec_cli.parallel import Task, in_order
        from cadec_cli.terminal.run_job import threads_each

        request = self.models.for_workers(bundle, threads_each(self.models.threads))
        return lambda chunks: in_order(self.pool.run(Task(start_line_worker, (request, self.how)), chunks))


def line_worker_pool(
    how: LineTranslation, workers: int, engine: str, address: str | None, models: ModelRequest
) -> LineWorkerPool | None:
    """The requested pool; None if there is no request."""
    from cadec_cli.terminal.run_job import worker_pool

    pool = worker_pool(workers, engine, address, threads=models.threads, device=models.device)
    if pool is None:
        return None
    if how.sample:
        raise typer.BadParameter(
            "random translations would depend on the workers: leave out --workers and --engine"
            + (", or add --no-sample" if how.round_trip else ", or --sample")
        )
    return LineWorkerPool(pool, how, models)


def check_output(documents: list[Path], output: Path, *, force: bool, resume: bool) -> None:
    """Refuse missing documents, and an output that would overwrite a file."""
    from cadec_cli.errors import CadecError, UsageError
    from cadec_cli.fs.paths import is_stream
    from cadec_cli.jobs.back_translation import PairFile
    from cadec_cli.jobs.outputs import check_outputs

    if resume and is_stream(output):
        raise UsageError("--resume needs a file as --output: nothing is kept beside a stream")
    for path in documents:
        if not path.is_file():
            raise CadecError(f"no such file: {path}")
    # An output of the unfinished run that is resumed may be replaced.
    goes_on = resume and PairFile(output, {}).part.exists()
    check_outputs([output], inputs=documents, force=force or goes_on)


def write_pairs(
    documents: list[Path],
    output: Path,
    origin: dict[str, str],
    translation: Callable[[int], Translate],
    *,
    what: str,
    resume: bool,
    force: bool,
    encoding: str,
    by_several: TranslateAll | None = None,
) -> None:
    """Pair every line with its translation; `translation` gets the number of finished lines.

    With `by_several`, workers translate the lines; only damaged lines are translated here.
    """
    from cadec_cli.fs.read import sha256
    from cadec_cli.jobs.back_translation import PairFile, input_lines, pair_in_parallel, pair_lines
    from cadec_cli.terminal import console

    pairs = PairFile(output, {**origin, "documents": " ".join(sha256(path) for path in documents)})
    done = pairs.progress(resume=resume, start_over=force)
    total = sum(1 for _ in input_lines(documents, encoding))  # also finds all errors in them
    if done.damage:
        console.warn(done.damage)
        pairs.repair(input_lines(documents, encoding), translation(done.lines), done)
    lines = console.track(input_lines(documents, encoding), what, total)
    for _ in range(done.lines):
        next(lines, None)
    if done.lines:
        console.note(f"{done.lines - done.lost:,} of {total:,} lines are done already")
    made = pair_in_parallel(lines, by_several) if by_several else pair_lines(lines, translation(done.lines))
    pairs.write(made, done.lines)
    console.note(f"{output}: {total:,} lines")
