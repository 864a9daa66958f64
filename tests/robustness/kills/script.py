"""The script: which runs, how many kills, and a table of what became of them."""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.robustness.kills import forked
from tests.robustness.kills.hardships import full_disk, one_cache, read_only, two_at_once
from tests.robustness.kills.materials import make_materials
from tests.robustness.kills.runs import RUNS
from tests.robustness.kills.trials import Bench, Outcome, kill_before_every_kind, kill_often

Trial = Callable[[Bench, random.Random, Outcome], None]

HARDSHIPS: dict[str, Trial] = {
    "on a full disk": full_disk,
    "where it is read-only": read_only,
    "two at once": two_at_once,
}
_EVERY_KIND = "killed at each event"
_COLUMNS = ("kills", "trials", "resumed", "equal", "wrong", "seconds")


def main(given: Sequence[str] | None = None) -> int:
    """Run it; 0 says that nothing was lost."""
    arguments = _parser().parse_args(given)
    with _place(arguments.place) as place:
        forked.import_once()
        materials = make_materials(
            place / "materials", arguments.corpora, arguments.bundle, small=arguments.small
        )
        benches = [
            Bench(run, materials, place / run.name, arguments.leftovers)
            for run in RUNS
            if not arguments.only or run.name in arguments.only
        ]
        outcomes = _all(benches, arguments)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps([dataclasses.asdict(outcome) for outcome in outcomes]))
    return 1 if any(outcome.wrong for outcome in outcomes) else 0


def _all(benches: Sequence[Bench], arguments: argparse.Namespace) -> list[Outcome]:
    """All that was asked for, once or until the time is up."""
    end = time.monotonic() + 60 * arguments.minutes
    outcomes: dict[str, Outcome] = {}
    print("".join([f"{'run':<36}", *(f"{column:>9}" for column in _COLUMNS)]), flush=True)
    generators = {bench.run.name: random.Random(f"{arguments.seed} {bench.run.name}") for bench in benches}
    while True:
        for bench in benches:
            bench.prepare()
            for what, trial in _trials(bench, arguments).items():
                outcome = outcomes.setdefault(f"{bench.run.name} {what}", Outcome(f"{bench.run.name} {what}"))
                began = time.monotonic()
                trial(bench, generators[bench.run.name], outcome)
                outcome.seconds += time.monotonic() - began
                _show(outcome)
        if time.monotonic() >= end:
            return list(outcomes.values())


def _trials(bench: Bench, arguments: argparse.Namespace) -> dict[str, Trial]:
    """What is done to a run; what concerns disks is the same whenever it is killed."""

    def kill(bench: Bench, rng: random.Random, outcome: Outcome) -> None:
        kill_often(bench, arguments.kills, rng, outcome)

    def repeated(trial: Trial) -> Trial:
        def several(bench: Bench, rng: random.Random, outcome: Outcome) -> None:
            for _ in range(max(1, arguments.kills // 20)):
                trial(bench, rng, outcome)

        return several

    found: dict[str, Trial] = {"killed": kill, _EVERY_KIND: kill_before_every_kind}
    if not bench.run.final:
        found |= {what: repeated(trial) for what, trial in HARDSHIPS.items()}
    if bench.run.cold:
        found["on one cache"] = repeated(one_cache)
    return {what: trial for what, trial in found.items() if not arguments.what or what in arguments.what}


def _show(outcome: Outcome) -> None:
    figures = (outcome.kills, outcome.trials, outcome.resumed, outcome.equal, len(outcome.wrong))
    shown = [f"{outcome.name:<36}", *(f"{figure:>9}" for figure in figures), f"{outcome.seconds:>9.1f}"]
    print("".join(shown), *(f"    {what}" for what in outcome.wrong), sep="\n", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.robustness.kills",
        description="Kill commands at random moments, take them up again, and compare with undisturbed runs; "
        "let their disk be full or read-only; start two at once.",
    )
    names = [run.name for run in RUNS]
    parser.add_argument("--kills", type=int, default=10, help="kills of each run, per round [%(default)s]")
    parser.add_argument("--minutes", type=float, default=0, help="further rounds until this time is up")
    parser.add_argument("--only", action="append", metavar="RUN", choices=names, help=", ".join(names))
    whats = ["killed", _EVERY_KIND, *HARDSHIPS, "on one cache"]
    parser.add_argument("--what", action="append", metavar="WHAT", choices=whats, help=", ".join(whats))
    parser.add_argument("--seed", type=int, default=1, help="of all that is random [%(default)s]")
    parser.add_argument("--small", action="store_true", help="short documents")
    parser.add_argument("--place", type=Path, help="where to work; it is kept [a temporary directory]")
    parser.add_argument("--corpora", type=Path, help="prepared corpora of the made-up pair [made first]")
    parser.add_argument("--bundle", type=Path, help="a bundle of the made-up pair [trained first]")
    parser.add_argument("--json", type=Path, help="write what became of it here, too")
    parser.add_argument(
        "--leftovers", action=argparse.BooleanOptionalAction, default=True, help="look for leftover files"
    )
    return parser


@contextmanager
def _place(named: Path | None) -> Iterator[Path]:
    if named is not None:
        named.mkdir(parents=True, exist_ok=True)
        yield named.resolve()
        return
    # Not TemporaryDirectory: a forked process that ends as usual would clear it away.
    place = Path(tempfile.mkdtemp(prefix="cadec-kills-")).resolve()
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
