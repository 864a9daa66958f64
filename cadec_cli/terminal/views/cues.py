"""Cues of translated subtitles that are too fast to read, or too long for the screen, on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from cadec_cli.jobs.cue_checks import CueChecks
from cadec_cli.terminal import console
from cadec_cli.text.formats.layout import MAX_CPS, CueLimits
from cadec_cli.text.formats.subtitles.cues import clock
from cadec_cli.text.formats.subtitles.limits import CueProblem

_NAMED = 3  # cues that a summary names; the rest are counted


def report_cues(checks: CueChecks, inputs: Sequence[Path], *, list_all: bool) -> None:
    """Say how many cues are too long or too fast; before that, list them all if that is asked for."""
    if list_all:
        _show_all(checks, inputs)
    _summarise(checks)


def _summarise(checks: CueChecks) -> None:
    """Print how many cues are too long or too fast, and where the first ones are."""
    found = [problem for _, problem in checks.in_order]
    if too_long := [one for one in found if one.too_long]:
        limits = too_long[0].limits
        fit = "cue does" if len(too_long) == 1 else "cues do"
        in_source = sum(of_file.too_long_in_source for of_file in checks.found.values())
        console.note(
            f"{len(too_long):,} {fit} not fit {_in_lines(limits)}, in the source {in_source:,}: "
            + ", ".join(clock(one.start) for one in too_long[:_NAMED])
            + (" …" if len(too_long) > _NAMED else "")
        )
    if too_fast := [one for one in found if one.too_fast]:
        limit = too_fast[0].limits.max_cps
        whose = ", Netflix's limit for most languages" if limit == MAX_CPS else ""
        in_source = sum(of_file.too_fast_in_source for of_file in checks.found.values())
        named = ", ".join(f"{clock(one.start)} ({one.cps:.0f})" for one in too_fast[:_NAMED])
        console.note(
            f"too fast to read, above {limit:g} characters per second{whose}: "
            f"{len(too_fast):,} {'cue' if len(too_fast) == 1 else 'cues'}, in the source {in_source:,}; "
            f"{'at' if len(too_fast) == 1 else 'the first at'} {named}"
        )


def _in_lines(limits: CueLimits) -> str:
    lines = "" if limits.max_lines is None else f" in {limits.max_lines} line{'s'[: limits.max_lines - 1]}"
    return f"{limits.max_chars} characters per line{lines}"


def _show_all(checks: CueChecks, inputs: Sequence[Path]) -> None:
    """List all cues that are too long or too fast; --quiet does not silence a requested list."""
    several = len(inputs) > 1
    for number, problem in checks.in_order:
        name = f"{console.visible(inputs[number].name)}, " if several else ""
        console.stderr.print(_line(name, problem))


def _line(name: str, problem: CueProblem) -> Text:
    line = Text("cue  ", "yellow")
    line.append(f"{name}{problem.number}, {clock(problem.start)}: ", "bold")
    line.append("; ".join(problem.reasons))
    return line
