"""A bundle measured on real sentences: the product's own translations, and where their time goes."""

import json
from pathlib import Path

import pytest

from cadec_cli.bundle.build import BundleRequest, build_bundle
from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.load import default_options, load_models
from cadec_cli.decoding.translator import Translator
from cadec_cli.evaluation.benchmark.limit import Clock
from cadec_cli.evaluation.benchmark.speed import time_method
from cadec_cli.main import exit_code
from cadec_cli.text.pipeline import TextPipeline
from tests.helpers.bundle_parts import write_bundle, write_parts

TEXT = "Tom took it. He left.\n\nShe saw it.\n"  # two documents, three sentences


def test_the_command_measures_a_bundle_on_a_text(
    english: TextPipeline,
    russian: TextPipeline,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    bundle = write_bundle(tmp_path, english, russian)
    text = tmp_path / "film.txt"
    text.write_text(TEXT, "utf-8")
    command = ["bench", "--bundle", str(bundle), "--text", str(text), "--threads", "1"]
    assert exit_code([*command, "--max-input", "10B"]) == 1
    assert "is larger than 10B" in " ".join(capsys.readouterr().err.split())
    assert exit_code([*command, "--json"]) == 0
    (figure,) = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert list(figure) == ["what", "speed", "ratio", "wanted", "paper", "limit", "spent", "between products"]
    assert figure["what"] == "rerank, 3 sentences / --search sentence"
    assert figure["ratio"] > 0 and figure["wanted"] == 0.35
    assert list(figure["spent"]) == ["n-best", "D-LM", "rest"]
    assert sum(figure["spent"].values()) == pytest.approx(1)
    assert all(0 < share < 1 for share in figure["spent"].values())
    limit = figure["limit"]
    assert limit["lists"] > 0 and list(limit["operations"]) == ["int8"]
    assert exit_code(command) == 0
    shown = capsys.readouterr().out
    assert "≥ 0.35" in shown and "D-LM " in shown and "rest " in shown


@pytest.mark.parametrize(
    ("text", "lm", "message"), [("\n \n", True, "nothing to translate"), (TEXT, False, "sentence level")]
)
def test_what_can_t_be_compared_is_refused(
    english: TextPipeline,
    russian: TextPipeline,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str,
    lm: bool,
    message: str,
) -> None:
    write_parts(tmp_path, english, russian)
    source, target, nmt = (tmp_path / name for name in ("en", "ru", "nmt"))
    build_bundle(
        tmp_path / "made",
        BundleRequest(source=source, target=target, nmt=nmt, lm=tmp_path / "lm" if lm else None),
    )
    (tmp_path / "film.txt").write_text(text, "utf-8")
    asked = ["bench", "--bundle", str(tmp_path / "made"), "--text", str(tmp_path / "film.txt")]
    assert exit_code([*asked, "--threads", "1"]) == 1
    assert message in capsys.readouterr().err


def test_a_clock_changes_nothing_and_is_gone_afterwards(
    english: TextPipeline, russian: TextPipeline, tmp_path: Path
) -> None:
    bundle = Bundle.open(write_bundle(tmp_path, english, russian))
    models = load_models(bundle, compute_type="int8", device="cpu", threads=1)
    translator = Translator(models, default_options(bundle), language="en")
    document = ["Tom took it.", "He left."]
    plain = [one.text for one in translator.translate(document)]
    lists, scores = Clock(), Clock()
    with time_method(models.translation, "nbest", lists), time_method(models.language, "score", scores):
        assert [one.text for one in translator.translate(document)] == plain
    assert lists.seconds > 0 and scores.seconds > 0
    before = (lists.seconds, scores.seconds)
    assert [one.text for one in translator.translate(document)] == plain
    assert (lists.seconds, scores.seconds) == before


def test_a_clock_that_runs_is_not_started_twice() -> None:
    class Nested:
        calls = 0

        def call(self, deep: int) -> None:
            self.calls += 1
            assert outer.seconds == 0  # nothing is added before the outermost is through
            if deep:
                self.call(deep - 1)

    outer, nested = Clock(), Nested()
    with time_method(nested, "call", outer):
        nested.call(3)
    assert nested.calls == 4 and outer.seconds > 0
