"""The figures of a run: progress reports, pace, metrics.jsonl, and the curves drawn from that file.

Nothing here prints: the caller of a run passes a `Reporter`.

metrics.jsonl has one JSON object per line: {"update", "loss", …}, and {"update", "dev_loss", …} for
evaluations.
"""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from cadec_cli.fs.atomic import atomic_file, write_errors
from cadec_cli.fs.read import read_errors
from cadec_cli.plotting import require_matplotlib, save_figure
from cadec_cli.training.checkpoints import Evaluation, Progress
from cadec_cli.training.presets import TrainingOptions

Record = dict[str, Any]

# More than any figure that can have been measured.
_MOST = 1 << 62


@dataclass(frozen=True)
class UpdateReport:
    """A run after one update. `epoch` counts fractions; `evaluation` is the last one in this session."""

    update: int
    max_updates: int
    epoch: float
    loss: float
    learning_rate: float
    tokens_per_second: float
    seconds_left: float | None  # None until it can be estimated
    evaluation: Evaluation | None


class Reporter(Protocol):
    """Receives messages and progress of a run; of several processes only the first reports its progress."""

    def note(self, message: str) -> None:
        """Take a message for information."""
        ...

    def warn(self, message: str) -> None:
        """Take a message that may need attention."""
        ...

    def running(self) -> AbstractContextManager[object]:
        """Return a context that is entered while updates are made."""
        ...

    def update(self, report: UpdateReport) -> None:
        """Take the state after an update."""
        ...


def ignore(message: str) -> None:
    """Discard a message."""


class SilentReporter:
    """Discards everything: the default of the library."""

    note = staticmethod(ignore)
    warn = staticmethod(ignore)

    def running(self) -> AbstractContextManager[object]:
        """Return a context that does nothing."""
        return nullcontext()

    def update(self, report: UpdateReport) -> None:
        """Discard the state after an update."""


class Pace:
    """The speed of a run, and its reports; call `step` after every update."""

    def __init__(self, options: TrainingOptions, updates_per_epoch: float) -> None:
        self._options = options
        self._updates_per_epoch = max(updates_per_epoch, 1.0)
        self._recent: deque[tuple[float, int]] = deque(maxlen=50)  # (time, tokens so far)
        self._started = time.monotonic()
        self._first_update: int | None = None
        self._evaluation: Evaluation | None = None

    def step(self, progress: Progress, loss: float, rate: float) -> UpdateReport:
        """Count an update, and return the state of the run after it."""
        now = time.monotonic()
        if self._first_update is None:
            self._first_update = progress.update - 1
        self._recent.append((now, progress.tokens))
        return UpdateReport(
            progress.update,
            self._options.max_updates,
            self._epoch(progress),
            loss,
            rate,
            self.tokens_per_second,
            self._seconds_left(progress, now),
            self._evaluation,
        )

    def evaluation(self, evaluation: Evaluation, best: bool, progress: Progress) -> str:
        """Count an evaluation, and return its figures as a line of text."""
        self._evaluation = evaluation
        bleu = f"  BLEU {evaluation.bleu:.2f}" if evaluation.bleu is not None else ""
        return (
            f"update {evaluation.update:,}  epoch {self._epoch(progress):.2f}"
            f"  {self.tokens_per_second:,.0f} tokens/s"
            f"  dev loss {evaluation.loss:.4f}  perplexity {perplexity(evaluation.loss):.2f}{bleu}"
            + ("  best" if best else "")
        )

    @property
    def tokens_per_second(self) -> float:
        """The rate over the last updates; 0 before the second one."""
        if len(self._recent) < 2:
            return 0.0
        (start, before), (end, after) = self._recent[0], self._recent[-1]
        return (after - before) / max(end - start, 1e-9)

    def _epoch(self, progress: Progress) -> float:
        return progress.epoch + progress.update_in_epoch / self._updates_per_epoch

    def _seconds_left(self, progress: Progress, now: float) -> float | None:
        """The time to the nearest limit at the pace of this session."""
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


class Metrics:
    """Appends to metrics.jsonl, from which records after `update` are removed first.

    Processes other than the first pass None as `path`: nothing is written. `warn` is called with a
    message if an existing file has damaged lines.
    """

    def __init__(self, path: Path | None, update: int = 0, warn: Callable[[str], None] = ignore) -> None:
        self._path = path
        self._warn = warn
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
        """Remove records that a killed run wrote after the checkpoint that is resumed."""
        assert self._path is not None
        known = read_metrics(self._path, self._warn) if self._path.exists() else ()
        kept = [record for record in known if record["update"] <= update]
        with atomic_file(self._path) as stream:
            stream.writelines((json.dumps(record) + "\n").encode() for record in kept)


def read_metrics(path: Path, warn: Callable[[str], None] = ignore) -> Iterator[Record]:
    """Yield the records of a metrics.jsonl; `warn` is called at the end if damaged lines were left out.

    A last line that a crash cut short is left out without a warning.
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
        warn(f"{path}: {damaged:,} damaged line{'s are' if damaged > 1 else ' is'} left out")


def _parse_record(line: bytes) -> Record | None:
    """The record of a line: figures by name, "update" among them; None if the line is damaged."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not all(map(_is_figure, record.values())):
        return None
    update = record.get("update")
    return record if type(update) is int and update >= 0 else None


def _is_figure(value: Any) -> bool:
    """Tell whether a value can have been measured: any float, infinite ones too, or a sane integer."""
    return type(value) is float or (type(value) is int and abs(value) < _MOST)


def plot_curves(metrics: Path, output: Path, warn: Callable[[str], None] = ignore) -> None:
    """Draw training loss, dev loss and, if there is one, dev BLEU over the updates, as a PNG."""
    require_matplotlib()
    from matplotlib.figure import Figure

    records = list(read_metrics(metrics, warn))
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
