"""`cadec reproduce`: the paper's whole experiment, from corpora to tables, at three scales."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from cadec_cli.reproduction.scales import SCALES, SYSTEMS
from cadec_cli.terminal.flags import Threads, one_of

SYSTEM_NAMES = tuple(system.name for system in SYSTEMS)


def reproduce(
    context: typer.Context,
    scale: Annotated[
        str,
        one_of(
            SCALES,
            "--scale",
            help="toy (a made-up pair, minutes), small (English-Russian corpora, hours) or paper "
            "(OpenSubtitles, GPU-days).",
            show_default=False,
        ),
    ],
    work: Annotated[
        Path,
        typer.Option(help="Directory for all results; the same command continues there.", show_default=False),
    ],
    data: Annotated[
        Path | None, typer.Option(help="Directory of the corpora, for small and paper.", show_default=False)
    ] = None,
    only: Annotated[
        list[str] | None,
        one_of(
            SYSTEM_NAMES,
            "--only",
            help=f"Only this system's steps and the sentence level's: {', '.join(SYSTEM_NAMES)}. Repeatable.",
        ),
    ] = None,
    effort: Annotated[
        float,
        typer.Option(help="Scale of training: 0.5 means half as many updates of every model.", min=0.001),
    ] = 1.0,
    size: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=NUMBER",
            help="Size of a text or number of updates to change; --list shows them. Can be repeated.",
        ),
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="Show the steps, whether done, and how long they take; do nothing.")
    ] = False,
    processes: Annotated[
        int, typer.Option(help="Number of training processes (torchrun), one per GPU.", min=1)
    ] = 1,
    threads: Threads = 0,
    json_lines: Annotated[
        bool, typer.Option("--json", help="Print the tables as one JSON object instead.")
    ] = False,
) -> None:
    """Run the paper's experiment: prepare, train, convert, tune, translate and measure all its systems.

    Tables are printed and written to WORK/report.md, .json and .html. Finished steps are not repeated.

    Example: cadec reproduce --scale toy --work /tmp/toy

    Example: cadec reproduce --scale small --data corpora --work build/small --list

    Example: cadec reproduce --scale small --data corpora --work build/small --effort 0.5

    Example: cadec reproduce --scale paper --data OpenSubtitles --work build/paper --processes 8
    """
    import json
    import subprocess
    import sys

    from cadec_cli.reproduction.experiment import start_experiment, steps_for
    from cadec_cli.reproduction.measurements import collect
    from cadec_cli.reproduction.report import write_reports
    from cadec_cli.reproduction.steps import carry_out, in_processes, torchrun
    from cadec_cli.terminal import console
    from cadec_cli.terminal.views import evaluation as views

    experiment = start_experiment(
        scale, work, data, effort=effort, sizes=_sizes(size or []), threads=threads, write=not listed
    )
    plan = experiment.plan()
    steps = steps_for(plan, only or [])
    if listed:
        views.show_steps(experiment.scale, steps, processes)
        return
    run_command: Callable[[list[str]], int] = context.obj
    quiet, debugging = console.is_quiet(), console.debugging()
    common = [flag for flag, given in (("--quiet", quiet), ("--debug", debugging)) if given]

    def execute(line: Sequence[str]) -> int:
        if in_processes(line, processes):
            command = [sys.executable, *torchrun(line, processes), *common]
            return subprocess.run(command, stdout=sys.stderr).returncode
        return run_command([*line, *common])

    try:
        carry_out(plan, steps, execute, console.note, console.warn)
    finally:
        console.set_quiet(quiet)
        console.set_debug(debugging)
    results = collect(experiment, console.warn)
    written = write_reports(experiment, results)
    if json_lines:
        sys.stdout.write(json.dumps(results.record(), ensure_ascii=False) + "\n")
    else:
        views.show_results(results)
    console.note("written: " + ", ".join(str(path) for path in written))


def _sizes(given: list[str]) -> dict[str, int]:
    sizes = {}
    for one in given:
        name, separator, value = one.partition("=")
        if not separator or not value.isdecimal():
            raise typer.BadParameter(f"{one!r} is not NAME=NUMBER", param_hint="--size")
        sizes[name] = int(value)
    return sizes
