"""`cadec prepare text`: what a second core brings, and that memory does not grow with the corpus."""

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.rows import Row
from cadec_cli.main import exit_code

TEXT = "когда поезд пришёл на станцию мы уже ждали его долго и никто больше не верил что он придёт"


def measure(directories: list[str]) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        small, large = root / "small.txt", root / "large.txt"
        _write(small, 100_000)
        _write(large, 1_000_000)
        pipeline = str(root / "pipeline")
        train = ["train", "tokenizer", str(small), "-l", "ru", "--vocab-size", "400", "-o", pipeline]
        assert exit_code([*train, "--max-lines", "5000", "-q"]) == 0
        one, _ = _prepare(small, pipeline, root / "one", 1)
        two, memory = _prepare(small, pipeline, root / "two", 2)
        yield Row(
            "prepare: 2 processes / 1",
            f"{1e5 / two:,.0f} / {1e5 / one:,.0f} lines/s",
            one / two,
            "≥ 1.60",
            one / two >= 1.6,
        )
        _, more = _prepare(large, pipeline, root / "large", 2)
        yield Row(
            "prepare: memory, 1M / 100k lines",
            f"{more:.0f} / {memory:.0f} MiB",
            more / memory,
            "< 1.05",
            more / memory < 1.05,
        )


def _prepare(text: Path, pipeline: str, output: Path, processes: int) -> tuple[float, float]:
    """Seconds, and the peak of the parent's and its largest child's memory in MiB."""
    code = (
        "import resource, sys; from cadec_cli.main import exit_code; code = exit_code(sys.argv[1:]);"
        "both = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN;"
        "print(*(resource.getrusage(who).ru_maxrss for who in both));"
        "sys.exit(code)"
    )
    arguments = [
        "prepare",
        "text",
        text,
        "-p",
        pipeline,
        "-o",
        output,
        "--processes",
        processes,
        "-q",
        "--lines",
    ]
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], check=True, capture_output=True, text=True
    )
    return time.perf_counter() - start, sum(map(int, done.stdout.split())) / 1024


def _write(path: Path, lines: int) -> None:
    rng = random.Random(1)
    with path.open("w", encoding="utf-8") as stream:
        for number in range(lines):
            words = rng.choices(TEXT.split(), k=rng.randint(3, 14))
            stream.write(" ".join(words).capitalize() + rng.choice([".", "!", "?", "..."]) + "\n")
            if number % 20 == 19:
                stream.write("\n")
