"""The steps of a reproduction, in order: the same command line skips finished steps and continues the others.

A step has one output, which appears whole or not at all: a step is done if its output exists. Commands that
were stopped midway are run with --resume.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cadec_cli.errors import CadecError
from cadec_cli.fs.atomic import atomic_file, write_json
from cadec_cli.fs.read import read_errors, read_json

Command = tuple[str, ...]
# Runs a command line of cadec, and returns the exit code.
Execute = Callable[[Sequence[str]], int]
Say = Callable[[str], None]

SECONDS = "seconds.json"  # how long each step took


@dataclass(frozen=True)
class Step:
    """Something that makes one output: a cadec command, or a function of ours."""

    name: str
    output: Path
    needs: tuple[str, ...] = ()  # names of the steps before
    # A command may depend on the results of earlier steps: then a function makes it when its turn comes.
    command: Command | Callable[[], Command] | None = None
    make: Callable[[], None] | None = None
    captured: bool = False  # what the command prints is the output
    minutes: float = 0.0  # about how long it takes on the machine that the scale is for

    @property
    def is_done(self) -> bool:
        """Tell whether the output exists."""
        return self.output.exists()

    def line(self) -> Command | None:
        """The command line; None if it is only known after earlier steps, or if the step has no command."""
        return None if callable(self.command) else self.command


@dataclass(frozen=True)
class Plan:
    """All steps of a reproduction, each after those that it needs."""

    work: Path
    steps: tuple[Step, ...]
    names: dict[str, Step] = field(init=False)

    def __post_init__(self) -> None:
        names: dict[str, Step] = {}
        for step in self.steps:
            unknown = [name for name in step.needs if name not in names]
            if unknown or step.name in names:
                raise ValueError(f"{step.name} comes before {unknown}, or twice")
            names[step.name] = step
        object.__setattr__(self, "names", names)

    def with_dependencies(self, wanted: Sequence[str]) -> tuple[Step, ...]:
        """The named steps and all steps that they need, in order."""
        kept: set[str] = set()
        open_ = list(wanted)
        while open_:
            name = open_.pop()
            if name not in kept:
                kept.add(name)
                open_ += self.names[name].needs
        return tuple(step for step in self.steps if step.name in kept)


def ignore(message: str) -> None:
    """Discard a message."""


def carry_out(plan: Plan, steps: Sequence[Step], execute: Execute, say: Say, warn: Say = ignore) -> None:
    """Run all steps that are not done, in order; `say` and `warn` are called with messages."""
    left = [step for step in steps if not step.is_done]
    if len(left) < len(steps):
        say(f"{len(steps) - len(left)} of {len(steps)} steps are done already")
    for number, step in enumerate(left, 1):
        if step.output.exists():  # made meanwhile by another process
            continue
        ahead = sum(one.minutes for one in left[number - 1 :])
        estimate = (
            f", about {_format_minutes(step.minutes)}; {_format_minutes(ahead)} in all"
            if step.minutes >= 0.5
            else ""
        )
        say(f"step {number} of {len(left)}: {step.name}{estimate}")
        began = time.monotonic()
        _do(step, execute)
        if not step.is_done:
            raise CadecError(f"the step {step.name!r} ended without {step.output}", "this is a bug in cadec")
        _note_seconds(plan.work, step.name, time.monotonic() - began, warn)


def seconds_of(work: Path, warn: Say = ignore) -> dict[str, float]:
    """The duration of each step that is done, in its last run; `warn` is called if the file is damaged."""
    path = work / SECONDS
    try:
        known = read_json(path) if path.is_file() else {}
    except CadecError as error:  # no step depends on it
        warn(f"{error.marked_message}; the duration of earlier steps is not known")
        return {}
    found = known.items() if isinstance(known, dict) else ()
    return {name: took for name, took in found if type(took) in (int, float) and 0 <= took < 1e12}


def _do(step: Step, execute: Execute) -> None:
    step.output.parent.mkdir(parents=True, exist_ok=True)
    if step.make is not None:
        step.make()
        return
    line = step.command() if callable(step.command) else step.command
    assert line is not None, step.name
    line = resume_command(line)
    # A step prints either its output or messages for the user; stdout is kept for the results at the end.
    with _capture_stdout() as printed:
        code = execute(line)
    if step.captured and code == 0:
        with atomic_file(step.output) as stream:
            stream.write(printed.getvalue())
    elif not step.captured:
        sys.stderr.write(printed.getvalue().decode())
    if code == 130:
        raise KeyboardInterrupt
    if code:
        raise CadecError(
            f"the step {step.name!r} failed: cadec {' '.join(line)}",
            "finished steps are kept; the same command continues from here",
        )


def flags(**options: object) -> Command:
    """Options as a command line has them: `lines=True` is --lines, `save=False` is --no-save.

    A list repeats its option; an option that is None is left out.
    """
    line: list[str] = []
    for name, value in options.items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            line.append(f"--{flag}" if value else f"--no-{flag}")
            continue
        for one in value if isinstance(value, list) else [value]:
            line += [] if one is None else [f"--{flag}", str(one)]
    return tuple(line)


def resume_command(line: Command) -> Command:
    """A command line that continues an earlier, interrupted run; unchanged if there was none."""
    if "-o" not in line:
        return line
    output = Path(line[line.index("-o") + 1])
    if line[0] == "train" and (output / "run.json").is_file():
        return (*line[:2], "-o", str(output), *flags(resume=True))
    begun = (Path(f"{output}.cadec-part"), Path(f"{output}.cadec-journal"))
    return (*line, *flags(resume=True)) if any(path.exists() for path in begun) else line


def in_processes(line: Sequence[str], processes: int) -> bool:
    """Tell whether a command trains a network, and is to do so in several processes."""
    return processes > 1 and line[0] == "train" and line[1] not in ("tokenizer", "truecaser")


def torchrun(line: Sequence[str], processes: int) -> tuple[str, ...]:
    """A command line in several processes, as arguments of Python."""
    many = flags(standalone=True, nproc_per_node=processes)
    return ("-m", "torch.distributed.run", *many, "-m", "cadec_cli", *line)


@contextlib.contextmanager
def _capture_stdout() -> Iterator[io.BytesIO]:
    """Collect the bytes printed to stdout inside a `with` statement."""
    printed = io.BytesIO()
    with contextlib.redirect_stdout(io.TextIOWrapper(printed, "utf-8", write_through=True)) as stream:
        yield printed
        stream.flush()
        stream.detach()


def _note_seconds(work: Path, name: str, seconds: float, warn: Say) -> None:
    write_json(work / SECONDS, {**seconds_of(work, warn), name: round(seconds, 1)})


@contextlib.contextmanager
def as_made(path: Path) -> Iterator[None]:
    """Turn errors while reading a file that a step wrote into a CadecError: the file is damaged."""
    try:
        yield
    except (LookupError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise CadecError(
            f"{path} is damaged: {error!r}", "delete it: the same command makes it again"
        ) from None


def number(value: object) -> float:
    """The value as a float; a ValueError unless it is a finite number."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise ValueError(f"a figure of {str(value)[:40]!r}")
    return float(value)


def read_records(path: Path) -> list[dict[str, object]]:
    """The JSON lines that a command printed."""
    with as_made(path), read_errors(path):
        found = [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]
        if not all(isinstance(record, dict) for record in found):
            raise ValueError("a line is not an object")
        return found


def _format_minutes(minutes: float) -> str:
    return f"{minutes / 60:.1f} h" if minutes >= 90 else f"{max(1, round(minutes))} min"
