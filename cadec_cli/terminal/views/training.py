"""A training run on the terminal: messages, and one live line if standard error is a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.live import Live
from rich.text import Text

from cadec_cli.terminal import console
from cadec_cli.training.metrics import UpdateReport, perplexity


class TrainingView:
    """A `training.metrics.Reporter` that prints to standard error."""

    def __init__(self) -> None:
        self._live: Live | None = None

    def note(self, message: str) -> None:
        """Print a message, unless the user asked for quiet."""
        console.note(message)

    def warn(self, message: str) -> None:
        """Print a warning."""
        console.warn(message)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Keep the live line on the screen while updates are made."""
        if not console.live():
            yield
            return
        with Live(console=console.stderr, transient=True, refresh_per_second=4) as self._live:
            yield
        self._live = None

    def update(self, report: UpdateReport) -> None:
        """Redraw the live line."""
        if self._live is not None:
            self._live.update(live_line(report))


def live_line(report: UpdateReport) -> Text:
    """The state of a run in one coloured line."""
    line = Text.assemble(
        ("● ", "green"),
        (f"update {report.update:,}/{report.max_updates:,}", "bold"),
        f"  epoch {report.epoch:.2f}  loss ",
        (f"{report.loss:.3f}", "cyan"),
    )
    if report.evaluation is not None:
        figure = report.evaluation
        text = f"BLEU {figure.bleu:.2f}" if figure.bleu is not None else f"ppl {perplexity(figure.loss):.2f}"
        line.append("  dev ").append(text, "magenta")
    line.append(f"  lr {report.learning_rate:.1e}  {report.tokens_per_second:,.0f} tokens/s", "dim")
    if report.seconds_left is not None:
        line.append(f"  {duration(report.seconds_left)} left", "yellow")
    return line


def duration(seconds: float) -> str:
    """Write a duration as 3:07 or 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
