"""Seconds of jobs that take turns, and of parts of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

Job = Callable[[], object]


def take_turns(jobs: Mapping[str, Job], rounds: int, *, warm: bool = False) -> dict[str, float]:
    """Median seconds of every job; they take turns, and the first round warms up, unless all are warm."""
    seconds: dict[str, list[float]] = {name: [] for name in jobs}
    for number in range(rounds + 1 - warm):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            if number or warm:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(taken) for name, taken in seconds.items()}


@dataclass
class Clock:
    """Seconds that something took each time; what is called by itself meanwhile counts once."""

    laps: list[float] = field(default_factory=list)
    runs: bool = False

    @property
    def seconds(self) -> float:
        """All in all."""
        return sum(self.laps)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run meanwhile."""
        if self.runs:
            yield
            return
        self.runs = True
        start = time.perf_counter()
        try:
            yield
        finally:
            self.laps.append(time.perf_counter() - start)
            self.runs = False
