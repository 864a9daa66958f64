"""Steps are done once, in order; what was stopped is told to go on; the first failure is named."""

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from cadec_cli.errors import CadecError
from cadec_cli.reproduction.experiment import SETTINGS, start_experiment
from cadec_cli.reproduction.measurements import chosen_point, collect
from cadec_cli.reproduction.scales import TUNED
from cadec_cli.reproduction.steps import (
    Plan,
    Step,
    carry_out,
    in_processes,
    resume_command,
    seconds_of,
    torchrun,
)


def plan(work: Path) -> Plan:
    return Plan(
        work,
        (
            Step("a", work / "a", command=("write", "a", "-o", str(work / "a"))),
            Step("b", work / "deep" / "b", ("a",), command=lambda: ("print", "b"), captured=True),
            Step("c", work / "c", ("a",), make=lambda: (work / "c").touch(), minutes=100),
            Step("d", work / "d", ("b",), command=("write", "d", "-o", str(work / "d"))),
        ),
    )


def run(work: Path, steps: Sequence[Step], code: int = 0) -> tuple[list[str], list[str]]:
    done: list[str] = []
    said: list[str] = []

    def execute(line: Sequence[str]) -> int:
        done.append(line[1])
        if line[0] == "print":
            sys.stdout.write(f"found {line[1]}\n")
        elif not code:
            Path(line[line.index("-o") + 1]).touch()
        return code

    carry_out(plan(work), steps, execute, said.append)
    return done, said


def test_what_is_there_is_not_done_again(tmp_path: Path) -> None:
    steps = plan(tmp_path).steps
    assert run(tmp_path, steps)[0] == ["a", "b", "d"]
    assert (tmp_path / "deep" / "b").read_text() == "found b\n"
    assert set(seconds_of(tmp_path)) == {"a", "b", "c", "d"}
    (tmp_path / "deep" / "b").unlink()
    done, said = run(tmp_path, steps)
    assert done == ["b"]
    assert said[0] == "3 of 4 steps are done already"


def test_time_is_estimated_before_a_long_step(tmp_path: Path) -> None:
    _, said = run(tmp_path, plan(tmp_path).steps)
    assert "step 3 of 4: c, about 1.7 h; 1.7 h in all" in said


def test_a_failing_step_is_named_and_nothing_after_it_is_done(tmp_path: Path) -> None:
    with pytest.raises(CadecError, match="'a' failed: cadec write a"):
        run(tmp_path, plan(tmp_path).steps, code=1)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, plan(tmp_path).steps, code=130)
    assert not (tmp_path / "c").exists()


def test_some_steps_bring_what_they_need(tmp_path: Path) -> None:
    made = plan(tmp_path)
    assert [step.name for step in made.with_dependencies(["d"])] == ["a", "b", "d"]
    assert [step.name for step in made.with_dependencies(["c"])] == ["a", "c"]
    with pytest.raises(ValueError, match="comes before"):
        Plan(tmp_path, (Step("x", tmp_path / "x", ("y",)),))


def test_what_was_stopped_is_told_to_go_on(tmp_path: Path) -> None:
    out = tmp_path / "out"
    train = ("train", "nmt", "--data", "d", "-o", str(out))
    translate = ("translate", "f", "-o", str(out))
    assert resume_command(train) == train
    assert resume_command(translate) == translate
    assert resume_command(("evaluate", "x")) == ("evaluate", "x")
    Path(f"{out}.cadec-journal").touch()
    assert resume_command(translate) == (*translate, "--resume")
    out.mkdir()
    (out / "run.json").touch()
    assert resume_command(train) == ("train", "nmt", "-o", str(out), "--resume")


def test_only_networks_are_trained_in_several_processes() -> None:
    assert in_processes(("train", "lm", "-o", "x"), 2)
    assert not in_processes(("train", "lm", "-o", "x"), 1)
    assert not in_processes(("train", "tokenizer", "x"), 2)
    assert not in_processes(("translate", "x"), 2)
    line = torchrun(("train", "lm", "-o", "x"), 2)
    assert line == (
        *("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"),
        *("-m", "cadec_cli", "train", "lm", "-o", "x"),
    )


@pytest.mark.parametrize(
    "content", [b"{", b"\xff", b"[" * 100_000, b"3", b'{"a": "long", "b": [1], "c": 1e999}']
)
def test_how_long_it_took_is_nothing_to_fail_for(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "seconds.json").write_bytes(content)
    warnings: list[str] = []
    assert seconds_of(tmp_path, warnings.append) == {}
    assert len(warnings) == (content[:1] in b"{[\xff" and b"1e999" not in content)
    run(tmp_path, plan(tmp_path).steps)
    assert seconds_of(tmp_path)["a"] >= 0


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[" * 100_000, b"{}", b"3", b"[]", b'{"figures": 3}'])
def test_a_result_that_was_damaged_is_named(content: bytes, tmp_path: Path) -> None:
    """Whatever reads it: what is wrong is the file, and it can be made again."""
    places = start_experiment("toy", tmp_path / "work", None)
    for path in (
        places.result("quality-sentence.jsonl"),
        places.result("pmi.jsonl"),
        places.curve(next(iter(TUNED))),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if path.name != "pmi.jsonl" or content not in (b"{}", b'{"figures": 3}'):  # a line without a panel
            with pytest.raises(CadecError, match=f"{path.name} is (damaged|not valid JSON)"):
                collect(places)
        path.unlink()


def test_settings_that_were_damaged_are_named(tmp_path: Path) -> None:
    start_experiment("toy", tmp_path / "work", None)
    path = tmp_path / "work" / SETTINGS
    settings = json.loads(path.read_text())
    for change in ({"sizes": 3}, {"updates": None}, {"updates": {"nmt": "many"}}):
        path.write_text(json.dumps({**settings, **change}))
        with pytest.raises(CadecError, match=f"{SETTINGS} is damaged"):
            start_experiment("toy", tmp_path / "work", None)


@pytest.mark.parametrize("change", ["bleu", "temperature", "weight"])
@pytest.mark.parametrize("value", [None, "", "1", True, -math.inf, 10**400])
def test_a_curve_whose_figures_are_none_is_damaged(change: str, value: object, tmp_path: Path) -> None:
    setting: dict[str, object] = {"temperature": 2.0, "weight": 0.5}
    point = {"setting": setting, "bleu": 20.0, "chrf": 40.0, "changed": 0.1}
    (point if change in point else setting)[change] = value
    _refused_curve(tmp_path / "curve.json", {"sentence_level": point, "points": [point]})


def test_a_curve_without_points_or_at_no_temperature_is_damaged(tmp_path: Path) -> None:
    point = {"setting": {"temperature": 0, "weight": 0.5}, "bleu": 20.0, "chrf": 40.0, "changed": 0.1}
    _refused_curve(tmp_path / "curve.json", {"sentence_level": point, "points": [point]})
    level = {**point, "setting": {"temperature": 1, "weight": 0.5}}
    _refused_curve(tmp_path / "curve.json", {"sentence_level": level, "points": []})


def _refused_curve(path: Path, stored: object) -> None:
    path.write_text(json.dumps(stored), "utf-8")
    for protocol in ("best", "strongest"):
        with pytest.raises(CadecError, match=r"curve\.json is (damaged|not valid JSON)"):
            chosen_point(path, protocol)
