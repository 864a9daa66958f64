"""`cadec reproduce` on the screen: its steps, and its tables."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from cadec_cli.reproduction.measurements import Results
from cadec_cli.reproduction.report import settings_line, tables
from cadec_cli.reproduction.scales import Scale
from cadec_cli.reproduction.steps import Step, in_processes, torchrun
from cadec_cli.terminal.views.translations import stdout_console


def show_steps(scale: Scale, steps: Sequence[Step], processes: int = 1) -> None:
    """Print one row per step, then the total time; minutes are for one process."""
    out = stdout_console()
    table = Table(
        "", "step", "about", "command", title=f"cadec reproduce, {scale.name}", title_justify="left"
    )
    for step in steps:
        line = step.line()
        table.add_row(
            Text("done", "green") if step.is_done else "",
            step.name,
            f"{step.minutes:,.0f} min" if step.minutes >= 0.5 else "",
            Text(_shell_line(line, processes) if line is not None else "", "dim", overflow="fold"),
        )
    out.print(table)
    left = sum(step.minutes for step in steps if not step.is_done)
    out.print(Text(f"{sum(not step.is_done for step in steps)} steps are left, about {left / 60:,.1f} hours"))
    out.print(Text(f"the whole scale: {scale.hours}", "dim"))
    sizes = {**scale.sizes, **{name: one.updates for name, one in scale.trainings.items()}}
    out.print(
        Text("--size: " + ", ".join(f"{name}={value}" for name, value in sizes.items()), "dim"),
        soft_wrap=True,
    )
    if scale.note:
        out.print(Text(scale.note, "dim"), soft_wrap=True)


def _shell_line(line: Sequence[str], processes: int) -> str:
    """A command as typed in a shell."""
    if in_processes(line, processes):
        return " ".join(("torchrun", *torchrun(line, processes)[2:]))
    return " ".join(("cadec", *line))


def show_results(results: Results) -> None:
    """Print every table, with its note."""
    out = stdout_console()
    for plain in tables(results):
        table = Table(title=plain.title, title_justify="left")
        for number, heading in enumerate(plain.headings):
            table.add_column(heading, justify="right" if number else "left", overflow="fold")
        for row in plain.rows:
            table.add_row(*(Text(cell) for cell in row))
        out.print(table)
        if plain.note:
            out.print(Text(plain.note, "dim"), soft_wrap=True)
    out.print(Text(settings_line(results), "dim"), soft_wrap=True)
