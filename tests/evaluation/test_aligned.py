"""Evaluation draws and prints nothing itself: what it has to say goes where its caller wants it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import cadec_cli.evaluation
from cadec_cli.engines.torch_lm import TorchLanguageModel
from cadec_cli.evaluation.aligned import Advance
from cadec_cli.evaluation.pmi.analysis import TextScorer
from cadec_cli.evaluation.quality.comparison import PMIOptions, Sampling, StringOptions, evaluate, read_texts
from cadec_cli.method.context import ContextPolicy
from cadec_cli.text.pipeline import TextPipeline
from tests.helpers.bundle_parts import tiny_lm

TEXT = "Tom wants it.\nNobody sees it!\nTom took the ship.\n\nIt.\nThe boy?\n"


class Counts:
    """What was begun, of how many sentences, and how many were reported."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, int]] = []
        self.reported: list[int] = []

    @contextmanager
    def __call__(self, what: str, total: int) -> Iterator[Advance]:
        self.begun.append((what, total))
        done: list[int] = []
        yield done.append
        self.reported.append(sum(done))


def test_no_module_of_the_room_knows_the_console() -> None:
    (root,) = cadec_cli.evaluation.__path__
    files = list(Path(root).rglob("*.py"))
    assert len(files) > 15
    assert not [
        path
        for path in files
        if "cadec_cli.terminal.console" in (text := path.read_text()) or "print(" in text
    ]
    assert not [path for path in files if "import console" in path.read_text()]


def test_progress_and_warnings_go_to_the_caller(
    english: TextPipeline, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hypotheses, reference = tmp_path / "hyp.txt", tmp_path / "ref.txt"
    hypotheses.write_text(TEXT.replace("Nobody sees it!", ""), "utf-8")
    reference.write_text(TEXT, "utf-8")
    scorer = TextScorer(TorchLanguageModel(tiny_lm(len(english)), english), "en")
    pmi = PMIOptions("tiny", scorer, policy=ContextPolicy(2))
    sampling = Sampling("document", samples=10)
    counts, warnings = Counts(), list[str]()
    texts = read_texts(hypotheses, reference=reference, warn=warnings.append)
    loud = evaluate(texts, StringOptions("en"), pmi, sampling, counted=counts, warn=warnings.append)
    assert [warning.split(" ", 1)[-1] for warning in warnings] == [
        f"has 1 empty line where {reference} has sentences",
        "documents are too few for a test, which takes 6 or more: there is no p, and intervals are rough",
    ]
    # Without context every distinct sentence counts once, in context every sentence.
    assert counts.begun == [
        *((f"{name}, {hypotheses}", 5) for name in ("BLEU", "chrF2", "multi-BLEU")),
        *((f"{hypotheses}, no context", 5), (f"{hypotheses}, own contexts", 5)),
        *((f"{reference}, no context", 5), (f"{reference}, own contexts", 5)),
    ]
    assert counts.reported == [total for _, total in counts.begun]
    assert [(system.part, list(system.figures)) for system in loud.systems] == [
        ("hypothesis", ["BLEU", "chrF2", "multi-BLEU", "PMI"]),
        ("reference", ["PMI"]),
    ]
    quiet = evaluate(read_texts(hypotheses, reference=reference), StringOptions("en"), pmi, sampling)
    assert quiet.systems == loud.systems
    shown = capsys.readouterr()
    assert shown.out == shown.err == ""
