"""What a person sees of a training run."""

import io

import pytest
from rich.console import Console

from cadec_cli.terminal import console
from cadec_cli.terminal.views.training import TrainingView, live_line
from cadec_cli.training.checkpoints import Evaluation
from cadec_cli.training.metrics import UpdateReport

REPORT = UpdateReport(12, 1_000, 0.5, 2.34567, 0.0003, 4321.0, 3723.4, None)


def test_the_live_line_has_what_is_known() -> None:
    line = live_line(REPORT).plain
    assert line == "● update 12/1,000  epoch 0.50  loss 2.346  lr 3.0e-04  4,321 tokens/s  1:02:03 left"
    figures = {"dev ppl 7.39": Evaluation(10, 2.0), "dev BLEU 31.42": Evaluation(10, 2.0, 31.416)}
    for shown, evaluation in figures.items():
        report = UpdateReport(12, 1_000, 0.5, 2.3, 0.0003, 4321.0, None, evaluation)
        assert shown in live_line(report).plain and "left" not in live_line(report).plain


def test_it_is_drawn_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for terminal in (True, False):
        screen = io.StringIO()
        monkeypatch.setattr(
            console, "stderr", Console(file=screen, force_terminal=terminal, width=120, highlight=False)
        )
        view = TrainingView()
        with view.running():
            view.update(REPORT)
            view.note("update 10  dev loss 2.0")
        assert "update 10  dev loss 2.0" in screen.getvalue()
        assert ("12/1,000" in screen.getvalue()) == terminal
