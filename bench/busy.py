"""What a busy machine costs: CPU time beside eight loops that never rest, against the same command alone.

The work is the same, so the CPU time should be; what comes on top is threads that spin while they wait for
others that have no core to run on. Seconds that pass are told too, but only show that the cores are shared.
"""

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from bench.dialogues import write_text
from bench.processes import LOOPS, Spent, busy_loops, cadec, medians, spent, spent_at_once, spent_in_turn
from bench.rows import Row
from cadec_cli.data.shards import SideInfo, writing_shard

WANTED = 1.5
ROUNDS = 3
LINES, FEW_LINES, UPDATES = 80, 8, 60
VOCABULARY = 2_000

# A command line that writes into a directory, a new one each time.
Line = Callable[[Path], list[str]]


def measure(directories: list[str]) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for what, line in commands(root).items():
            taken = medians({"busy": partial(_beside_loops, line), "alone": partial(_alone, line)}, ROUNDS)
            yield row(f"{what}: beside {LOOPS} busy loops / alone", taken["busy"], taken["alone"])
        several = {"at once": spent_at_once, "in turn": spent_in_turn}
        line = _translate(write_text(root / "twice.txt", LINES))
        taken = medians({how: partial(_twice, line, job) for how, job in several.items()}, ROUNDS)
        yield row(f"translate {LINES} lines, twice: at once / in turn", taken["at once"], taken["in turn"])


def row(what: str, hindered: Spent, free: Spent) -> Row:
    """The same work twice, once hindered."""
    ratio = hindered.cpu / free.cpu
    told = f"{hindered.cpu:.1f} / {free.cpu:.1f} CPU s ({hindered.wall:.1f} / {free.wall:.1f} s)"
    return Row(what, told, ratio, f"≤ {WANTED:.2f}", ratio <= WANTED)


def commands(root: Path) -> dict[str, Line]:
    """Commands whose threads wait for each other in different ways; what they read is written to `root`."""
    data = _made_up_shards(root)
    return {
        f"translate {LINES} lines": _translate(write_text(root / "lines.txt", LINES)),
        f"translate --search beam {FEW_LINES} lines": _translate(
            write_text(root / "few.txt", FEW_LINES), "--search", "beam"
        ),
        f"train lm, {UPDATES} updates": partial(_train, data),
        f"train lm, {UPDATES} updates, two processes": partial(_train_in_two, data),
    }


def _translate(text: Path, *flags: str) -> Line:
    return lambda output: cadec("translate", text, "--lines", *flags, "-o", output / "translated.txt")


def _train(data: tuple[Path, Path], output: Path) -> list[str]:
    corpora = ("--data", data[0], "--dev", data[1])
    return cadec("train", "lm", "--preset", "tiny", "--max-updates", UPDATES, *corpora, "-o", output / "run")


def _train_in_two(data: tuple[Path, Path], output: Path) -> list[str]:
    python, *line = _train(data, output)
    return [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", *line]


def _alone(line: Line) -> Spent:
    with tempfile.TemporaryDirectory() as output:
        return spent(line(Path(output)))


def _beside_loops(line: Line) -> Spent:
    with busy_loops():
        return _alone(line)


def _twice(line: Line, job: Callable[[list[list[str]]], Spent]) -> Spent:
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        return job([line(Path(one)), line(Path(other))])


def _made_up_shards(root: Path) -> tuple[Path, Path]:
    """Random ids with the lengths of dialogue, to train on and to evaluate on."""
    random = np.random.default_rng(1)
    paths = root / "documents", root / "dev"
    for path, count in zip(paths, (400, 20), strict=True):
        with writing_shard(path, [SideInfo("xx", "none", VOCABULARY)]) as writer:
            for _ in range(count):
                for _ in range(int(random.integers(4, 60))):
                    writer.add(random.integers(4, VOCABULARY, int(random.integers(3, 25))).tolist())
                writer.end_document()
    return paths
