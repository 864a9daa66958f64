"""Seconds of jobs that take turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

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
