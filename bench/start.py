"""How long a command takes before it does anything: one line, cold, in a process of its own.

The measure is `import torch`, which depends on machine and disk as the rest does. With `--against DIR` the
code of another checkout runs in turn with this one's, so that before and after are figures of one run.
"""

import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from bench.dialogues import write_text
from bench.processes import ROOT, Spent, cadec, medians, spent
from bench.rows import Row

ROUNDS = 5
TORCH = "import torch"
SENTENCE = "translate --search sentence, one line"
# What a start may take of what it took in the other checkout.
WANTED = {SENTENCE: 0.6}


def measure(arguments: list[str]) -> Iterator[Row]:
    other = against(arguments)
    with tempfile.TemporaryDirectory() as name:
        lines = commands(Path(name))
        jobs = {what: partial(spent, line) for what, line in lines.items()}
        if other is not None:
            jobs |= {before(what): partial(spent, line, other) for what, line in lines.items()}
        yield from rows(lines, medians(jobs, ROUNDS))


def commands(root: Path) -> dict[str, list[str]]:
    """Command lines by what they are; text goes to standard output, so that all can be run again."""
    one = write_text(root / "one.txt", 1)
    return {
        TORCH: [sys.executable, "-c", TORCH],
        "--help": cadec("--help"),
        SENTENCE: cadec("translate", one, "--search", "sentence"),
        "translate, one line": cadec("translate", one),
    }


def before(what: str) -> str:
    """The same in the other checkout."""
    return f"{what}, the other checkout's"


def rows(names: Iterable[str], taken: Mapping[str, Spent]) -> Iterator[Row]:
    """Every start against `import torch`, and against the other checkout's where that was measured."""
    starts = [what for what in names if what != TORCH]
    pairs: list[tuple[str, str, float | None]] = [(what, TORCH, None) for what in starts]
    pairs += [(what, before(what), WANTED.get(what)) for what in starts if before(what) in taken]
    for one, other, wanted in pairs:
        ours, theirs = taken[one], taken[other]
        ratio = ours.wall / theirs.wall
        told = f"{ours.wall:.2f} / {theirs.wall:.2f} s ({ours.cpu:.2f} / {theirs.cpu:.2f} CPU s)"
        target, reached = ("", None) if wanted is None else (f"≤ {wanted:.2f}", ratio <= wanted)
        yield Row(f"start: {one} / {other.removeprefix(f'{one}, ')}", told, ratio, target, reached)


def against(arguments: Sequence[str]) -> Path | None:
    """The other checkout, if one was named."""
    if "--against" not in arguments:
        return None
    after = arguments[arguments.index("--against") + 1 :]
    if not after or not (Path(after[0]) / "cadec_cli").is_dir():
        sys.exit("--against takes a directory with another checkout of cadec")
    if Path(after[0]).resolve() == ROOT.resolve():
        sys.exit("--against takes another checkout than this one")
    return Path(after[0])
