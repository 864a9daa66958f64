"""What a training run reports while it runs. The library prints nothing: the caller passes a `Reporter`."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from cadec_cli.training.checkpoints import Evaluation


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
        """Take a message that is good to know."""
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
