"""Figures of speed: ratios of two speeds, and shares of the machine's limit."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

# The share of the machine's limit that we want to reach.
SHARE_WANTED = 0.90


@dataclass(frozen=True)
class Limit:
    """The least time a job can take: that of its n-best lists, and that of its products of matrices alone."""

    lists: float  # seconds; 0 where no lists are made
    products: float  # seconds
    operations: Mapping[str, int]  # by number format

    @property
    def seconds(self) -> float:
        """The whole limit, in seconds."""
        return self.lists + self.products

    def share(self, seconds: float) -> float:
        """The limit as a share of the time that a job took."""
        return self.seconds / seconds


@dataclass(frozen=True)
class MeasuredShare:
    """How near a job comes to its limit."""

    seconds: float
    limit: Limit
    # The limit with the quickest number of rows per product, if the job's own products have fewer.
    many_rows: Limit | None = None
    wanted: float = SHARE_WANTED

    @property
    def share(self) -> float:
        """The share of the limit that is reached; 1 is the limit."""
        return self.limit.share(self.seconds)

    def as_json(self) -> dict[str, Any]:
        """The share, and the figures it was computed from."""
        found: dict[str, Any] = {
            "share": self.share,
            "wanted": self.wanted,
            "seconds": self.seconds,
            **asdict(self.limit),
        }
        if self.many_rows is not None:
            found["share with many rows"] = self.many_rows.share(self.seconds)
        return found


@dataclass(frozen=True)
class SpeedRatio:
    """One measured ratio, the ratio we want, the paper's if it has one, and the share of the limit."""

    what: str
    speed: str
    ratio: float
    wanted: float
    paper: float | None = None
    reached: MeasuredShare | None = None
    spent: Mapping[str, float] | None = None  # where the time goes: shares of it, by name

    def as_json(self) -> dict[str, Any]:
        """One object of `cadec bench --json`."""
        found: dict[str, Any] = {
            "what": self.what,
            "speed": self.speed,
            "ratio": self.ratio,
            "wanted": self.wanted,
            "paper": self.paper,
        }
        if self.reached is not None:
            found["limit"] = self.reached.as_json()
        if self.spent is not None:
            found["spent"] = dict(self.spent)
        return found


# Timing of jobs that take turns, and of parts of them.


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
    """The seconds of every timed call; a call inside another counts once."""

    laps: list[float] = field(default_factory=list)
    runs: bool = False

    @property
    def seconds(self) -> float:
        """The sum of all laps."""
        return sum(self.laps)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Time the body of a `with` statement."""
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
