"""The whole experiment on the made-up pair: every row from nothing, and the paper's claims hold."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cadec_cli.main import exit_code
from cadec_cli.reproduction.experiment import start_experiment
from cadec_cli.reproduction.measurements import Results, collect
from cadec_cli.reproduction.report import CLAIMS, failing
from cadec_cli.reproduction.scales import SYSTEMS
from cadec_cli.reproduction.steps import carry_out, torchrun


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("reproduction") / "toy"
    assert exit_code(["reproduce", "--scale", "toy", "--work", str(directory), "--threads", "1", "-q"]) == 0
    return directory


@pytest.fixture(scope="module")
def results(work: Path) -> Results:
    return collect(start_experiment("toy", work, None))


@pytest.mark.slow
def test_every_claim_holds(results: Results) -> None:
    assert failing(results) == []
    assert len(CLAIMS) > 10


@pytest.mark.slow
def test_all_rows_are_there(results: Results) -> None:
    assert [row.name for row in results.rows] == [system.name for system in SYSTEMS]
    for row in results.rows:
        assert set(row.quality) == {"BLEU", "chrF2", "multi-BLEU"}
        assert set(row.accuracies) == set(results.sets)
        assert row.per_second
        assert row.per_second > 0
        assert (row.name == "sentence") == (row.quality["BLEU"].p is None)
    assert {row.name for row in results.alone} == {"pmi", "conditional", "pmi-fewer", "conditional-fewer"}
    assert len(results.panels) == 6
    assert set(results.tuning["c-score"]) == {"best", "strongest"}
    assert set(results.tuning["bayes"]["best"]) == {"T", "nmt", "back", "length", "BLEU"}


@pytest.mark.slow
def test_what_is_done_is_not_done_again_and_other_settings_are_refused(
    work: Path, results: Results, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.stat().st_mtime_ns for path in work.rglob("*") if path.is_file()}
    assert exit_code(["reproduce", "--scale", "toy", "--work", str(work), "--json"]) == 0
    shown = capsys.readouterr()
    assert re.search(r"(\d+) of \1 steps are done already", shown.err)
    after = {
        path for path in work.rglob("*") if path.is_file() and before.get(path) != path.stat().st_mtime_ns
    }
    assert {path.name for path in after} == {"report.md", "report.json", "report.html"}
    assert json.loads(shown.out)["rows"] == json.loads((work / "report.json").read_text("utf-8"))["rows"]
    assert exit_code(["reproduce", "--scale", "toy", "--work", str(work), "--effort", "2"]) == 1
    assert "begun with other settings" in capsys.readouterr().err
    assert exit_code(["reproduce", "--scale", "toy", "--work", str(work), "--list"]) == 0
    assert "0 steps are left" in capsys.readouterr().out


@pytest.mark.slow
def test_the_page_needs_nothing_but_itself(work: Path, results: Results) -> None:
    page = (work / "report.html").read_text("utf-8")
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    assert "data:image/png;base64," in page
    for row in results.rows:
        assert f"<td>{row.label}</td>" in page
        assert f"| {row.label} |" in (work / "report.md").read_text("utf-8")


@pytest.mark.slow
def test_a_killed_run_goes_on_where_it_was(tmp_path: Path) -> None:
    work = tmp_path / "work"
    small = ["--effort", "0.02", "--size", "documents=60", "--size", "pairs=40", "--size", "groups=6"]
    small += ["--size", "fewer=10", "--size", "test=3", "--size", "tuning=3", "--only", "rerank"]
    line = ["reproduce", "--scale", "toy", "--work", str(work), "--threads", "1", *small]
    for step in ("runs/nmt/run.json", "bundles/reverse"):  # in the middle of a training, and after it
        process = subprocess.Popen([sys.executable, "-m", "cadec_cli", *line], stderr=subprocess.DEVNULL)
        while process.poll() is None and not (work / step).exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, "it was over before it could be killed"
    assert exit_code([*line, "-q"]) == 0
    report = json.loads((work / "report.json").read_text("utf-8"))
    complete = [row["name"] for row in report["rows"] if row["quality"]]
    assert complete == ["sentence", "rerank"]


@pytest.mark.slow
def test_models_can_be_trained_in_several_processes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["--effort", "0.01", "--size", "documents=60", "--size", "pairs=40", "--only", "sentence"]
    line = ["reproduce", "--scale", "toy", "--work", str(tmp_path / "w"), "--processes", "2", *small]
    assert exit_code([*line, "--list"]) == 0
    shown = "".join(character for character in capsys.readouterr().out if character not in " │\n")
    assert "torchrun--standalone--nproc-per-node2-mcadec_clitrainnmt" in shown
    experiment = start_experiment(
        "toy", tmp_path / "w", None, effort=0.01, sizes={"documents": 60, "pairs": 40}
    )
    plan = experiment.plan()
    step = plan.names["train nmt"]
    carry_out(
        plan, plan.with_dependencies(step.needs), lambda line: exit_code([*line, "-q"]), lambda text: None
    )
    command = step.line()
    assert command is not None
    subprocess.run([sys.executable, *torchrun(command, 2)], check=True, capture_output=True)
    assert step.is_done
