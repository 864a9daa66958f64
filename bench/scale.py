"""Many documents: what workers bring against one process, what they cost to start, and the memory of each.

A made-up library, translated with the embedded bundle by processes of this machine, and by Ray where that is
installed: one worker and two, of one thread each. One process
without workers translates all documents in step, with all cores.
"""

import importlib.util
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.dialogues import write_library, write_text
from bench.processes import Descendants, Memory, Spent, cadec, running
from bench.rows import Row

DOCUMENTS, MEAN = 24, 20
WORKERS = (1, 2)


@dataclass(frozen=True)
class Run:
    """A translation of several files, and what it took; memory is that of its workers, the largest first."""

    spent: Spent
    memory: tuple[Memory, ...] = ()


def measure(directories: list[str]) -> Iterator[Row]:
    engines = ["processes", *(["ray"] if importlib.util.find_spec("ray") else [])]
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        tiny = [write_text(root / "tiny.txt", 1)]
        library = write_library(root, DOCUMENTS, MEAN)
        sentences = sum(len(path.read_text("utf-8").splitlines()) for path in library)
        _translated(tiny)  # warms up
        plain, plain_tiny = _translated(library), _translated(tiny)
        for engine in engines:
            runs = {count: _translated(library, count, engine) for count in WORKERS}
            for count, run in runs.items():
                yield throughput(f"{_workers(count, engine)} / one process", sentences, run, plain)
            quick = _translated(tiny, 1, engine)
            yield start_up(f"{_workers(1, engine)} / one process, one line", quick, plain_tiny)
            yield memory(f"each of {_workers(2, engine)} / one", runs[2], runs[1])
            yield throughput(f"{_workers(2, engine)} / 1", sentences, runs[2], runs[1])


def throughput(what: str, sentences: int, run: Run, other: Run) -> Row:
    """Sentences per second of two runs."""
    told = f"{sentences / run.spent.wall:.1f} / {sentences / other.spent.wall:.1f} sentences/s"
    return Row(f"{what}: throughput", told, other.spent.wall / run.spent.wall, "")


def start_up(what: str, run: Run, plain: Run) -> Row:
    """What it takes until workers work, from a run that has nearly nothing to do."""
    told = f"{run.spent.wall:.1f} / {plain.spent.wall:.1f} s, {run.spent.wall - plain.spent.wall:+.1f} s"
    return Row(f"{what}: start", told, run.spent.wall / plain.spent.wall, "")


def memory(what: str, run: Run, other: Run) -> Row:
    """The peak of the largest worker of two runs, and how much of it is its own."""
    one, two = run.memory[0], other.memory[0]
    told = f"{one.peak:.0f} / {two.peak:.0f} MiB, {one.own:.0f} / {two.own:.0f} of them its own"
    return Row(f"{what}: memory", told, one.peak / two.peak, "")


def line(files: Sequence[Path], output: Path, workers: int, engine: str, threads: int) -> list[str]:
    """A command line that translates files into a directory; without workers in one process."""
    crew = ("--workers", workers, "--engine", engine) if workers else ()
    return cadec("translate", *files, "-o", f"{output}/", "--lines", *crew, "--threads", threads)


def _translated(files: Sequence[Path], workers: int = 0, engine: str = "processes") -> Run:
    with tempfile.TemporaryDirectory() as name:
        output = Path(name) / "out"
        with (
            running(line(files, output, workers, engine, threads=0)) as started,
            Descendants(started.process.pid) as below,
        ):
            spent = started.ended()
        if len(list(output.iterdir())) != len(files):
            raise RuntimeError(f"{len(files)} files, but {len(list(output.iterdir()))} translations")
        return Run(spent, tuple(below.largest(workers)))


def _workers(count: int, engine: str) -> str:
    return f"{count} worker{'s' * (count != 1)}{', ray' * (engine == 'ray')}"
