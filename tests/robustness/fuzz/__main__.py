"""`make fuzz MINUTES=30`: every target in turn with fresh seeds, until the time is up.

Prints what was tried and found, and keeps the smallest input of every defect as files. A seed that was
printed, given as SEED, tries the same inputs again.
"""

import argparse
import secrets
import sys
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Flaky

from tests.robustness.fuzz.cases import Case, cases
from tests.robustness.fuzz.targets import TARGETS
from tests.robustness.fuzz.trials import Trials, Verdict

ROUND = 100  # inputs of a target, times its share, before the next one has its turn


class Found(Exception):  # noqa: N818 - it is no error, but what is looked for
    """An input that shows a defect."""

    def __init__(self, case: Case, verdict: Verdict) -> None:
        super().__init__(f"{verdict.told} at {verdict.where}")
        self.case, self.verdict = case, verdict


def tried(trials: Trials, name: str, number: int, known: set[str]) -> Found | None:
    """Try a round of inputs; return the smallest that shows a defect which is not known yet."""
    target = TARGETS[name]
    shrinking: list[str] = []
    slow: list[Found] = []

    @seed(number)
    @settings(
        max_examples=max(1, round(ROUND * target.share)),
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(cases(target, trials.seeds(name)))
    def attempt(case: Case) -> None:
        verdict = trials.verdict(name, case.files)
        if verdict.kind != "wrong" or verdict.defect in known:
            return
        if verdict.took_too_long:  # as every smaller one would
            slow.append(Found(case, verdict))
            known.add(verdict.defect)
            return
        if shrinking and verdict.defect != shrinking[0]:
            return  # another one, which is found in a later round
        shrinking.append(verdict.defect)
        raise Found(case, verdict)

    try:
        attempt()
    except Found as found:
        return found
    except Flaky as error:  # wrong once, and right when it was tried again
        print(f"{name} (seed {number}): not every time: {str(error)[:500]}", flush=True)
    return slow[0] if slow else None


def main() -> int:
    """Fuzz for some minutes; 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=None, help="as an earlier run printed it")
    parser.add_argument("--only", default="", help="targets whose names have this in them")
    parser.add_argument("--keep", type=Path, default=Path("fuzz-finds"), help="where inputs go that fail")
    asked = parser.parse_args()
    first = secrets.randbits(32) if asked.seed is None else asked.seed
    print(f"seed {first}", flush=True)
    names = [name for name in TARGETS if asked.only in name]
    end = time.monotonic() + 60 * asked.minutes
    defects: Counter[str] = Counter()
    known: set[str] = set()
    with Trials() as trials:
        number = first
        while time.monotonic() < end:
            for name in names:
                if time.monotonic() >= end:
                    break
                while found := tried(trials, name, number, known):
                    known.add(found.verdict.defect)
                    defects[name] += 1
                    place = asked.keep / f"{len(known):03}-{name.replace(' ', '-').replace('/', '-')}"
                    _keep(place, found)
                    print(
                        f"{name} (seed {number}): {found.verdict.told} at {found.verdict.where}", flush=True
                    )
                    print(f"    {str(found.case)[:300]}\n    kept in {place}", flush=True)
            number += 1
        _report(trials, names, defects)
    return 1 if defects else 0


def _keep(place: Path, found: Found) -> None:
    for name, content in found.case.files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _report(trials: Trials, names: list[str], defects: Counter[str]) -> None:
    print("\n| target | inputs | read | refused | defects |\n|---|--:|--:|--:|--:|")
    total: Counter[str] = Counter()
    for name in names:
        counts = {kind: trials.tried[name, kind] for kind in ("read", "refused", "wrong")}
        total.update(counts)
        print(_row(name, counts, defects[name]))
    print(_row("**all**", total, sum(defects.values())), flush=True)


def _row(name: str, counts: Mapping[str, int], defects: int) -> str:
    return f"| {name} | {sum(counts.values()):,} | {counts['read']:,} | {counts['refused']:,} | {defects} |"


if __name__ == "__main__":
    sys.exit(main())
