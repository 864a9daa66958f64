"""What a person sees of a training run: a live line on a terminal, one line per evaluation elsewhere."""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.live import Live
from rich.text import Text

from cadec_cli.fs.atomic import atomic_file, write_errors
from cadec_cli.fs.read import read_errors
from cadec_cli.plotting import require_matplotlib, save_figure
from cadec_cli.terminal import console
from cadec_cli.training.checkpoints import Evaluation, Progress
from cadec_cli.training.options import TrainingOptions


class Display:
    """Shows how a run goes; `silent` for processes other than the first."""

    def __init__(self, options: TrainingOptions, updates_per_epoch: float, silent: bool = False) -> None:
        self._options = options
        self._updates_per_epoch = max(updates_per_epoch, 1.0)
        self._silent = silent
        self._live = Live(console=console.stderr, transient=True, refresh_per_second=4)
        self._drawn = not silent and console.live()
        self._recent: deque[tuple[float, int]] = deque(maxlen=50)  # (time, tokens so far)
        self._started = time.monotonic()
        self._first_update: int | None = None
        self._evaluation: Evaluation | None = None

    def __enter__(self) -> Display:
        if self._drawn:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._drawn:
            self._live.stop()

    def step(self, progress: Progress, loss: float, rate: float) -> None:
        """Show an update."""
        now = time.monotonic()
        if self._first_update is None:
            self._first_update = progress.update - 1
        self._recent.append((now, progress.tokens))
        if self._drawn:
            self._live.update(self._line(progress, loss, rate, now))

    def evaluation(self, evaluation: Evaluation, best: bool, progress: Progress) -> None:
        """Show a dev figure."""
        self._evaluation = evaluation
        if self._silent:
            return
        epoch = progress.epoch + progress.update_in_epoch / self._updates_per_epoch
        bleu = f"  BLEU {evaluation.bleu:.2f}" if evaluation.bleu is not None else ""
        console.note(
            f"update {evaluation.update:,}  epoch {epoch:.2f}  {self.tokens_per_second:,.0f} tokens/s"
            f"  dev loss {evaluation.loss:.4f}  perplexity {perplexity(evaluation.loss):.2f}{bleu}"
            + ("  best" if best else "")
        )

    @property
    def tokens_per_second(self) -> float:
        """Over the last updates."""
        if len(self._recent) < 2:
            return 0.0
        (start, before), (end, after) = self._recent[0], self._recent[-1]
        return (after - before) / max(end - start, 1e-9)

    def _line(self, progress: Progress, loss: float, rate: float, now: float) -> Text:
        epoch = progress.epoch + progress.update_in_epoch / self._updates_per_epoch
        line = Text.assemble(
            ("● ", "green"),
            (f"update {progress.update:,}/{self._options.max_updates:,}", "bold"),
            f"  epoch {epoch:.2f}  loss ",
            (f"{loss:.3f}", "cyan"),
        )
        if self._evaluation is not None:
            figure = self._evaluation
            text = (
                f"BLEU {figure.bleu:.2f}" if figure.bleu is not None else f"ppl {perplexity(figure.loss):.2f}"
            )
            line.append("  dev ").append(text, "magenta")
        line.append(f"  lr {rate:.1e}  {self.tokens_per_second:,.0f} tokens/s", "dim")
        left = self._seconds_left(progress, now)
        return line.append(f"  {duration(left)} left" if left is not None else "", "yellow")

    def _seconds_left(self, progress: Progress, now: float) -> float | None:
        """The nearest of the limits, at the pace of this session."""
        options = self._options
        elapsed = now - self._started
        done = progress.update - (self._first_update or 0)
        limits = [options.max_minutes * 60 - elapsed] if options.max_minutes else []
        if done >= 3:
            updates = options.max_updates - progress.update
            if options.max_epochs:
                rest = (
                    options.max_epochs - progress.epoch
                ) * self._updates_per_epoch - progress.update_in_epoch
                updates = min(updates, math.ceil(rest))
            limits.append(updates * elapsed / done)
        return max(0.0, min(limits)) if limits else None


def perplexity(loss: float) -> float:
    """e^loss, without overflow."""
    return math.exp(min(loss, 700.0))


def duration(seconds: float) -> str:
    """3:07 or 1:02:03."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


# metrics.jsonl, one object per line: {"update", "loss", …}, and {"update", "dev_loss", …} at evaluations.


Record = dict[str, Any]

# More than any figure is that was measured.
_MOST = 1 << 62


class Metrics:
    """Appends to metrics.jsonl; `path` None writes nothing (processes other than the first)."""

    def __init__(self, path: Path | None, update: int = 0) -> None:
        self._path = path
        if path is not None:
            with write_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
            self._forget_after(update)

    def write(self, record: Record) -> None:
        """Append a record."""
        if self._path is None:
            return
        with write_errors(self._path), self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record) + "\n")

    def _forget_after(self, update: int) -> None:
        """Drop what a killed run wrote after the checkpoint that it is continued from."""
        assert self._path is not None
        kept = [r for r in read_metrics(self._path) if r["update"] <= update] if self._path.exists() else []
        with atomic_file(self._path) as stream:
            stream.writelines((json.dumps(record) + "\n").encode() for record in kept)


def read_metrics(path: Path) -> Iterator[Record]:
    """Yield the records of a metrics.jsonl; damaged lines are left out, which is said at the end.

    Nothing is said of a last line that was cut short by a crash.
    """
    damaged = 0
    with read_errors(path), path.open("rb") as stream:
        for line in stream:
            record = _parse_record(line)
            if record is not None:
                yield record
            elif line.strip() and line.endswith(b"\n"):
                damaged += 1
    if damaged:
        console.warn(f"{path}: {damaged:,} damaged line{'s are' if damaged > 1 else ' is'} left out")


def _parse_record(line: bytes) -> Record | None:
    """The record of a line: figures by name, one of which is the update that they were taken at."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not all(map(_is_figure, record.values())):
        return None
    update = record.get("update")
    return record if type(update) is int and update >= 0 else None


def _is_figure(value: Any) -> bool:
    """Tell whether a value can have been measured: a number, perhaps infinite, but none that is absurd."""
    return type(value) is float or (type(value) is int and abs(value) < _MOST)


# The curves of a run as a picture.


def plot_curves(metrics: Path, output: Path) -> None:
    """Draw training loss, dev loss and, if there is one, dev BLEU over the updates, as a PNG."""
    require_matplotlib()
    from matplotlib.figure import Figure

    records = list(read_metrics(metrics))
    figure = Figure(figsize=(8, 4.5), dpi=150, layout="constrained")
    axes = figure.subplots()
    training = [(record["update"], record["loss"]) for record in records if "loss" in record]
    dev = [(record["update"], record["dev_loss"]) for record in records if "dev_loss" in record]
    bleu = [(record["update"], record["dev_bleu"]) for record in records if "dev_bleu" in record]
    if training:
        axes.plot(*zip(*training, strict=True), color="#9ecae1", linewidth=0.8, label="training loss")
    if dev:
        axes.plot(*zip(*dev, strict=True), color="#08519c", marker="o", markersize=3, label="dev loss")
    axes.set_xlabel("update")
    axes.set_ylabel("−log p per token")
    axes.grid(alpha=0.3)
    handles, labels = axes.get_legend_handles_labels()
    if bleu:
        right = axes.twinx()
        right.plot(*zip(*bleu, strict=True), color="#d94801", marker="s", markersize=3, label="dev BLEU")
        right.set_ylabel("BLEU")
        more_handles, more_labels = right.get_legend_handles_labels()
        handles, labels = handles + more_handles, labels + more_labels
    axes.legend(handles, labels, frameon=False)
    save_figure(figure, output)
