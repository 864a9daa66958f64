"""What a person sees of a training run: a live line on a terminal, one line per evaluation elsewhere."""

from __future__ import annotations

import math
import time
from collections import deque
from types import TracebackType

from rich.live import Live
from rich.text import Text

from cadec_cli import console
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
