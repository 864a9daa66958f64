"""What viewers can read: limits on the cues of subtitles, and the cues that break them.

Guidelines allow 42 characters per line, two lines per cue and 17 characters per second, more or less.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cadec_cli.text.formats.layout import CueLimits, ShownCue


@dataclass(frozen=True)
class CueProblem:
    """A cue that breaks a limit: its characters, its time and the widths of its lines."""

    number: int
    start: int  # in milliseconds
    seconds: float
    widths: tuple[int, ...]
    limits: CueLimits

    @property
    def characters(self) -> int:
        """The characters on the screen."""
        return sum(self.widths)

    @property
    def cps(self) -> float:
        """The characters per second; infinite if it has no time."""
        return self.characters / self.seconds if self.seconds > 0 else float("inf")

    @property
    def too_fast(self) -> bool:
        """Tell whether it is on the screen for too short a time."""
        limit = self.limits.max_cps
        return bool(limit) and self.characters > limit * max(0.0, self.seconds)

    @property
    def too_long(self) -> bool:
        """Tell whether its lines are too long or too many."""
        return self._too_wide or self._too_many

    @property
    def _too_wide(self) -> bool:
        return self.limits.max_chars is not None and max(self.widths, default=0) > self.limits.max_chars

    @property
    def _too_many(self) -> bool:
        return self.limits.max_lines is not None and len(self.widths) > self.limits.max_lines

    @property
    def reasons(self) -> tuple[str, ...]:
        """What is wrong, each thing in words for a person."""
        found = []
        if self.too_fast:
            speed = f"{self.cps:.1f}" if self.seconds > 0 else "any number of"
            found.append(f"{speed} characters per second")
        if self._too_wide:
            found.append(f"a line of {max(self.widths)} characters")
        if self._too_many:
            found.append(f"{len(self.widths)} lines")
        return tuple(found)


def problem_of(cue: ShownCue, limits: CueLimits) -> CueProblem | None:
    """Return what is wrong with a cue; None if it keeps within the limits."""
    widths = tuple(map(len, cue.lines))
    found = CueProblem(cue.number, cue.start, (cue.end - cue.start) / 1000, widths, limits)
    return found if found.too_fast or found.too_long else None


def problems(cues: Sequence[ShownCue] | Iterator[ShownCue], limits: CueLimits) -> list[CueProblem]:
    """Return the cues that break a limit, in the order of time."""
    found = (problem for cue in cues if (problem := problem_of(cue, limits)) is not None)
    return sorted(found, key=lambda problem: (problem.start, problem.number))
