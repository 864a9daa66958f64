"""Runs that are killed, killed again and taken up until they are done: is all as if nothing had happened?"""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tests.robustness.kills import forked
from tests.robustness.kills.materials import Materials
from tests.robustness.kills.moments import Moment, Moments, counting, watched
from tests.robustness.kills.runs import Arguments, Contents, Run, contents

# Kills in a row, at most, before a run is let be.
IN_A_ROW = 3


@dataclass
class Outcome:
    """What became of the trials of one run."""

    name: str
    kills: int = 0
    trials: int = 0
    resumed: int = 0  # trials that went on from what a killed process had left
    equal: int = 0
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True)
class Bench:
    """One run, and a place to try it in: always the same, for paths can be part of what is written."""

    run: Run
    materials: Materials
    place: Path
    leftovers: bool = True  # whether these are looked for

    @property
    def work(self) -> Path:
        """Where the command is run, and all that it writes but its cache."""
        return self.place / "work"

    @property
    def cache(self) -> Path:
        """Where conversions are kept."""
        return self.place / "cache" if self.run.cold else self.materials.cache

    def clear(self, *, older: bool = False) -> None:
        """Begin with what the run needs, and perhaps with an older output."""
        for path in (self.work, self.place / "cache"):
            shutil.rmtree(path, ignore_errors=True)
        self.work.mkdir(parents=True, exist_ok=True)  # a disk stays there
        if self.run.given is not None:
            self.run.given(self.materials, self.work)
        if older and self.run.older is not None:
            self.run.older(self.materials, self.work)

    def arguments(self, *, again: bool = False, force: bool = False) -> Arguments:
        """The command, for the first time or after a kill."""
        return self.run.arguments(self.materials, self.work, again=again, force=force)

    def started(self, arguments: Arguments, burdens: Sequence[forked.Burden] = ()) -> forked.Child:
        """The command as a process."""
        return forked.start(forked.command(arguments, self.work, self.cache), burdens)

    def carried_out(self, arguments: Arguments, moment: Moment | None = None) -> forked.Ending:
        """The command, to its end or to the moment."""
        if moment is None or moment.seconds is not None:
            return self.started(arguments).ended(moment.seconds if moment else None)
        return self.started(arguments, [watched(moment)]).ended()

    def state(self) -> Contents:
        """All that is there now."""
        found = contents(self.work)
        if self.run.cold:
            found |= {f"cache/{name}": data for name, data in contents(self.cache).items()}
        return found

    @cached_property
    def before(self) -> Contents:
        """What is there before anything is run, if an older output is."""
        self.clear(older=True)
        return self.state()

    @property
    def expected(self) -> Contents:
        """What an undisturbed run leaves."""
        return self._undisturbed[0]

    @property
    def moments(self) -> Moments:
        """When the run can be killed."""
        return self._undisturbed[1]

    @cached_property
    def _undisturbed(self) -> tuple[Contents, Moments]:
        """A run that nobody disturbs; what it imports is imported here, so that every later one is quick."""
        self.clear()
        report = os.memfd_create("report")
        work = forked.command(self.arguments(), self.work, self.cache)
        ending = forked.start(counting(work, report, final=self.run.final)).ended()
        assert ending.code == 0, ending.told
        found = json.loads(os.pread(report, 1 << 22, 0))
        os.close(report)
        forked.import_also(found["modules"])
        return self.state(), Moments(found["events"], ending.seconds, self.run.final)

    def prepare(self) -> None:
        """Find out what is expected, which uses the place."""
        assert self.before is not None
        for output in self.run.outputs:
            assert _of(self.expected, output), f"{self.run.name} does not write {output}"

    def lost(self, *, older: bool) -> list[str]:
        """Outputs that are neither whole, nor as they were before, nor not there yet."""
        now = self.state()
        allowed = [_of(self.expected, name) for name in self.run.outputs]
        for output, good in zip(self.run.outputs, allowed, strict=True):
            found = _of(now, output)
            there = self.run.given is not None or (older and self.run.older is not None)
            before = _of(self.before, output) if there else {}
            if self.run.name == "train":  # a directory that grows; the model in it is what must be whole
                found, good = _of(found, "out/model"), _of(good, "out/model")
            if found not in (good, before):
                return [f"{output} is neither whole nor as it was: {sorted(found)}"]
        return []

    def differences(self) -> list[str]:
        """What is otherwise than after an undisturbed run."""
        now, good = self.state(), self.expected
        outputs = [name for name in good if name not in now or now[name] != good[name]]
        found = [f"{name} is {'not there' if name not in now else 'different'}" for name in outputs]
        if self.leftovers:
            found += [f"{name} is left over" for name in sorted({*now} - {*good})]
            found += [f"{name} is left over, empty" for name in self._empty_directories()]
        return found

    def _empty_directories(self) -> list[str]:
        places = [self.work, *([self.cache] if self.run.cold else [])]
        return [
            str(path) for at in places for path in at.rglob("*") if path.is_dir() and not any(path.iterdir())
        ]


def _of(state: Contents, output: str) -> Contents:
    """What belongs to an output, which is a file or a directory."""
    return {name: data for name, data in state.items() if name == output or name.startswith(f"{output}/")}


def kill_often(bench: Bench, kills: int, rng: random.Random, outcome: Outcome) -> None:
    """Try until so many processes have been killed."""
    wanted = outcome.kills + kills
    while outcome.kills < wanted:
        older = bench.run.older is not None and rng.random() < 0.5
        planned = [
            bench.moments.any(rng) for _ in range(min(rng.randint(1, IN_A_ROW), wanted - outcome.kills))
        ]
        try_once(bench, planned, outcome, older=older)


def kill_before_every_kind(bench: Bench, rng: random.Random, outcome: Outcome) -> None:
    """Kill a run before the first and before the last of every kind of thing that it does to files."""
    for moment in bench.moments.of_every_kind():
        try_once(bench, [moment], outcome)


def try_once(bench: Bench, planned: Sequence[Moment], outcome: Outcome, *, older: bool = False) -> None:
    """Kill a run at these moments, one after the other, let it end, and compare."""
    killed, wrong = [], []
    bench.clear(older=older)
    outcome.trials += 1
    ending = None
    for number, moment in enumerate(planned):
        ending = bench.carried_out(bench.arguments(again=number > 0, force=older), moment)
        if not ending.killed:
            if number == 0:
                bench.moments.seconds = min(bench.moments.seconds, ending.seconds)
            break
        killed.append(str(moment))
        wrong += bench.lost(older=older)
        if not bench.differences():
            break  # killed when all was done
    if (ending is None or ending.killed) and bench.differences():
        kept = bench.run.kept(bench.work)
        ending = bench.carried_out(bench.arguments(again=True, force=older))
        outcome.resumed += bool(kept)
        if ending.code == 0 and not bench.run.goes_on(kept, bench.work, ending.told):
            wrong.append(f"what was done is not gone on with: {kept!r:.60}, {ending.told.strip()!r}")
    if ending is not None and ending.code:
        wrong.append(f"it ended with {ending.code}: {ending.told.strip()}")
    different = bench.differences()
    outcome.equal += not different
    outcome.kills += len(killed)
    how = f"killed at {', '.join(killed) or 'no time'}{', an older output before' if older else ''}"
    outcome.wrong += [f"{how}: {what}" for what in [*wrong, *different]]
