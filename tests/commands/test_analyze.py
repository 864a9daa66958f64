"""`cadec analyze pmi`: where both sides need the same contexts, true ones tell and random ones do not."""

import json
from pathlib import Path

import pytest

from cadec_cli.main import exit_code
from tests.helpers import two_sided
from tests.helpers.report_parts import data_of


def cadec(*arguments: object) -> None:
    assert exit_code([*map(str, arguments), "--quiet"]) == 0, arguments


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """D-LMs of both sides, trained for some seconds, as bundles en/ and eo/; texts dev.en and dev.eo."""
    root = tmp_path_factory.mktemp("two-sided")
    two_sided.write(two_sided.documents(3000, seed=1), root / "train.en", root / "train.eo")
    two_sided.write(two_sided.documents(200, seed=2), root / "dev.en", root / "dev.eo")
    for side in ("en", "eo"):
        text, pipeline, data = root / f"train.{side}", root / f"pipeline-{side}", root / f"data-{side}"
        small = ("--vocab-size", 100, "--no-byte-fallback", "--processes", 1)
        cadec("train", "tokenizer", text, "-l", side, "-o", pipeline, *small)
        dev = ("--dev-output", f"{data}-dev", "--dev-every", 20)
        cadec("prepare", "text", text, "-p", pipeline, "-o", data, *dev, "--lines", "--processes", 1)
        training = ("--data", data, "--dev", f"{data}-dev", "--preset", "tiny", "--threads", 1)
        cadec("train", "lm", "-o", root / f"lm-{side}", *training)
        cadec("convert", "--lm", root / f"lm-{side}", "--target-pipeline", pipeline, "-o", root / side)
    return root


def arguments(pair: Path) -> list[str]:
    models = ["--source-lm", str(pair / "en"), "--target-lm", str(pair / "eo"), "--threads", "1"]
    return ["analyze", "pmi", str(pair / "dev.en"), str(pair / "dev.eo"), *models]


@pytest.mark.slow
def test_pmi_goes_together_with_true_contexts_only(
    pair: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # An output that once says, in place of a translation, what was said before, and says it twice.
    lines = (pair / "dev.eo").read_text("utf-8").splitlines()
    lines[2] = f"{lines[1]} {lines[1]}"
    (tmp_path / "broken.eo").write_text("\n".join(lines) + "\n", "utf-8")
    files = ["-o", str(tmp_path / "pmi.png"), "--csv", str(tmp_path / "points.csv")]
    files += ["--report", str(tmp_path / "page.html")]
    outputs = ["--outputs", str(tmp_path / "broken.eo")]
    assert exit_code([*arguments(pair), *files, *outputs, "--json"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    panels = {(one["value"], one["contexts"]): one for one in records[:4]}
    assert panels["PMI", "own"]["pearson"] > 0.3
    assert panels["PMI", "own"]["spearman"] > 0.3
    assert abs(panels["PMI", "random"]["pearson"]) < 0.15
    # Log-probability goes together whatever the context: that is why it is not what is looked at.
    assert panels["log p", "own"]["pearson"] > 0.6
    assert panels["log p", "random"]["pearson"] > 0.6
    # 1200 sentences, less the first of each document
    assert {one["points"] for one in records[:5]} == {1000}
    assert sum(panels["PMI", "own"]["quadrants"].values()) == 1000
    assert records[4]["text"].endswith("broken.eo")
    assert (tmp_path / "pmi.png").read_bytes().startswith(b"\x89PNG")
    page = data_of(tmp_path / "page.html")
    assert [row[4] for row in page["figures"][0]["rows"]] == [f"{one['pearson']:+.3f}" for one in records[:5]]
    assert [one["source"] for one in page["segments"]] == [one["outlier"]["source"] for one in records[5:]]
    assert page["pictures"][0]["uri"].startswith("data:image/png;base64,")
    assert len((tmp_path / "points.csv").read_text("utf-8").splitlines()) == 1 + 3 * 1200


@pytest.mark.slow
def test_the_table_and_the_metric_say_the_same(pair: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code([*arguments(pair), "--json"]) == 0
    own = json.loads(capsys.readouterr().out.splitlines()[0])
    assert exit_code(arguments(pair)) == 0
    assert f"{own['pearson']:+.3f}" in capsys.readouterr().out
    command = ["evaluate", str(pair / "dev.eo"), "--pmi", "--bundle", str(pair / "eo"), "--json"]
    source = ["--src", str(pair / "dev.en"), "--source-lm", str(pair / "en")]
    assert exit_code([*command, *source]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["source_pmi"]["pearson"] == pytest.approx(own["pearson"], abs=1e-4)
    assert record["figures"]["PMI"]["low"] > 0  # true contexts make sentences likelier


def test_what_can_not_be_drawn_is_told_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["analyze", "pmi", "a", "b", "--source-lm", "x", "--target-lm", "y"]
    assert exit_code([*command, "-o", "figure.jpg"]) == 2
    assert "png, pdf or svg" in capsys.readouterr().err
    assert exit_code(command) == 1
    assert "no such file: a" in capsys.readouterr().err
    for name in "ab":
        (tmp_path / name).write_text("one\n", "utf-8")
    texts = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert exit_code(["analyze", "pmi", *texts, *command[4:]]) == 1
    assert "x" in capsys.readouterr().err
