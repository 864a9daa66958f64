"""`cadec eval-contrastive` and `cadec score-contrastive`, as one types them."""

import dataclasses
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cadec_cli.bundle.manifest import read_manifest, save_defaults
from cadec_cli.main import exit_code
from cadec_cli.text.pipeline import TextPipeline
from tests.helpers import made_up_pair
from tests.helpers.contrastive_parts import write_bundles
from tests.helpers.ray_cluster import RayCluster
from tests.helpers.report_parts import data_of, text_of

TRUE = ("Том видит его .", "Никто не знает .", "Мальчик взял хлеб !")
WRONG = ("Том видит хлеб .", "Никто не хочет .", "Мальчик взял письмо !")
VOITA = [
    {
        "src": f"The doctor . _eos Tom [red]sees it {number} .",
        "dst": [f"Доктор . _eos {true}", f"Доктор . _eos {wrong}"][:: 1 if number else -1],
        "true_ind": 0 if number else 1,
        "ctx_dist": 1 + number % 2,
    }
    for number, (true, wrong) in enumerate(zip(TRUE, WRONG, strict=True))
]


@pytest.fixture(scope="module")
def bundles(english: TextPipeline, russian: TextPipeline, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("contrastive")
    write_bundles(root, english, russian)
    (root / "some.json").write_text(json.dumps(VOITA, ensure_ascii=False), "utf-8")
    own = {"source": "No?", "context": [], "candidates": ["Дверь?", "Ключи?"], "truth": 0}
    (root / "own.jsonl").write_text(json.dumps(own) + "\n", "utf-8")
    return root


def run(command: str, bundles: Path, *arguments: object, bundle: str = "whole") -> int:
    common = ("--bundle", bundles / bundle, "--threads", 1)
    return exit_code([command, *map(str, arguments), *map(str, common)])


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_an_object_a_scorer_and_set(bundles: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sets = (bundles / "some.json", bundles / "own.jsonl")
    options = ("--temperature", 1, "--temperature", 4, "--temperature", 1, "--context", 2)
    assert run("eval-contrastive", bundles, *sets, "--json", *options) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    found = objects(shown.out)
    assert len(found) == 2 * (1 + 5 * 2)
    first = found[0]
    assert (first["objective"], first["temperature"], first["weight"]) == ("sentence", None, None)
    assert (first["format"], first["groups"], first["chance"]) == ("voita", 3, 0.5)
    assert first["accuracy"] == first["right"] / 3
    assert {distance: one["groups"] for distance, one in first["by_distance"].items()} == {"1": 2, "2": 1}
    weighted = {one["objective"]: one["weight"] for one in found if one["weight"] is not None}
    assert weighted == {"c-score": 1.0, "shallow-fusion": 0.1, "conditional-shallow-fusion": 0.1}
    own = {(one["objective"], one["temperature"]): one for one in found if one["format"] == "jsonl"}
    for temperature in (1.0, 4.0):  # no context at all: PMI is 0
        assert (own["pmi", temperature]["ties"], own["pmi", temperature]["accuracy"]) == (1, 0.0)
        assert own["c-score", temperature]["accuracy"] == own["sentence", None]["accuracy"]
    assert own["pmi", 4.0]["by_distance"] == {}


def test_the_bundle_s_own_temperature_and_weight_unless_others_are_named(
    bundles: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As translate does; the weights are of the bundle's objective alone."""
    shutil.copytree(bundles / "whole", tmp_path / "tuned")
    defaults = read_manifest(tmp_path / "tuned").defaults
    save_defaults(tmp_path / "tuned", dataclasses.replace(defaults, temperature=3.0, weight={"lm": 0.7}))

    def found(command: str, *options: object) -> list[dict[str, Any]]:
        form = ("--json",) if command == "eval-contrastive" else ()
        assert run(command, tmp_path, bundles / "some.json", *form, *options, bundle="tuned") == 0
        return objects(capsys.readouterr().out)

    records = found("eval-contrastive")
    assert {one["temperature"] for one in records} == {None, 3.0}
    weights = {one["objective"]: one["weight"] for one in records if one["weight"] is not None}
    assert weights == {"c-score": 0.7, "shallow-fusion": 0.1, "conditional-shallow-fusion": 0.1}
    (paper,) = found("eval-contrastive", "--objective", "c-score", "--temperature", 1, "--weight", 1)
    assert (paper["temperature"], paper["weight"]) == (1.0, 1.0)
    options = ("--temperature", 3, "--weight", 0.7)
    assert found("score-contrastive") == found("score-contrastive", *options)
    for one in found("score-contrastive"):
        assert one["score"] == pytest.approx(one["log_prob"] + 0.7 * one["pmi"])
    at_one = found("score-contrastive", "--temperature", 1)
    assert [one["pmi"] for one in at_one] != [one["pmi"] for one in found("score-contrastive")]


def test_a_table_for_people(bundles: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sets = (bundles / "some.json", bundles / "own.jsonl")
    assert run("eval-contrastive", bundles, *sets, "--weight", 0.5, "--alpha", 0.1) == 0
    shown = capsys.readouterr().out
    assert "chance 50.0" in shown and "3 groups" in shown
    assert "T 1, alpha 0.1" in shown
    assert re.search(r"conditional-shallow-fusion × 0.5 +│", shown)
    assert re.search(r"1 tie\b", shown)
    assert "by distance" in shown
    table = shown[: shown.index("by distance")]
    assert len({len(line) for line in table.splitlines() if line[:1] in "┏┃│└"}) == 1


def test_tables_part_where_sets_do_not_fit(
    bundles: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal
    sets = [bundles / "some.json"] * 3
    assert run("eval-contrastive", bundles, *sets, "--objective", "pmi", "--objective", "sentence") == 0
    shown = re.sub("\x1b\\[[0-9;]*m", "", capsys.readouterr().out)
    assert shown.count("accuracy on") == 2
    assert max(map(len, shown.splitlines())) <= 60
    assert "…" not in shown


@pytest.mark.parametrize("objective", ["pmi", "sentence"])
def test_failed_groups_are_shown(bundles: Path, objective: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--context", 0, "--objective", objective, "--errors", 2)
    bundle = "lm" if objective == "pmi" else "nmt"
    assert run("eval-contrastive", bundles, bundles / "some.json", *arguments, bundle=bundle) == 0
    shown = capsys.readouterr().out
    if objective == "pmi":  # no context: all tie
        assert "some, group 1 · pmi · distance 1 · tie" in shown
        assert "some, group 2" in shown and "some, group 3" not in shown
        assert re.search(
            r"true +том видит его ?\.</s> *\n +score 0.00  PMI 0.00", shown.replace("Том", "том")
        )
        assert "tied" in shown
    assert "[red]sees" in shown  # text is never markup
    assert "Доктор" not in shown  # what did not count as context is not shown as such
    assert max(map(len, shown.splitlines())) < 120


def test_a_report_has_the_figures_and_the_failed_groups(
    bundles: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    sets = (bundles / "some.json", bundles / "own.jsonl")
    assert run("eval-contrastive", bundles, *sets, "--json", "--report", page) == 0
    records = objects(capsys.readouterr().out)
    data = data_of(page)
    accuracies, by_distance = data["figures"]
    assert [row[0] for row in accuracies["rows"]][:2] == ["sentence", "c-score × 1, T 1"]
    shown = [row[column].split("\n")[0] for column in (1, 2) for row in accuracies["rows"][:-1]]
    assert shown == [f"{100 * one['accuracy']:.1f}" for one in records]
    assert by_distance["columns"] == ["scorer", "1\n2 groups", "2\n1 groups"]
    assert len(data["segments"]) == sum(one["groups"] - one["right"] for one in records)
    for failed in data["segments"]:
        (part,) = failed["parts"]
        scores = {note: score for _, score, _, _, _, note in part["hypotheses"]}
        assert scores["true"] <= max(scores.values()) and failed["changed"]
        assert text_of(failed["text"]) == part["hypotheses"][0][0] or failed["flags"] == ["tie"]
        assert part["tokens"] and part["compared"]


def test_colours_where_the_context_matters(
    bundles: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLORTERM", "truecolor")
    assert run("eval-contrastive", bundles, bundles / "some.json", "--errors", 3, bundle="lm") == 0
    assert "\x1b[38;2;" in capsys.readouterr().out


def test_scores_in_three_formats(bundles: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("score-contrastive", bundles, bundles / "some.json") == 0
    records = objects(capsys.readouterr().out)
    assert [(one["group"], one["candidate"]) for one in records] == [
        (str(group), candidate) for group in (1, 2, 3) for candidate in (0, 1)
    ]
    assert [one["text"] for one in records if one["true"]] == list(TRUE)
    for one in records:
        assert one["pmi"] == one["conditional"] - one["free"]
        assert one["score"] == pytest.approx(one["log_prob"] + one["pmi"])
    for flag, sign in (("--plain", 1), ("--loss", -1)):
        assert run("score-contrastive", bundles, bundles / "some.json", flag) == 0
        lines = [float(line) for line in capsys.readouterr().out.splitlines()]
        assert lines == pytest.approx([sign * one["score"] for one in records])


@pytest.mark.parametrize(
    ("bundle", "keys"), [("lm", {"conditional", "free", "pmi", "score"}), ("nmt", {"log_prob", "score"})]
)
def test_scores_of_what_the_bundle_has(
    bundles: Path, bundle: str, keys: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("score-contrastive", bundles, bundles / "some.json", bundle=bundle) == 0
    for record in objects(capsys.readouterr().out):
        assert record.keys() == {"group", "candidate", "text", "true"} | keys


def test_losses_mean_to_the_published_rule_what_scores_mean_here(
    bundles: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where nothing ties, the least loss of a group is the true candidate's as often as it is right here."""
    options = ("--objective", "conditional")
    assert run("score-contrastive", bundles, bundles / "some.json", "--loss", *options) == 0
    losses = [float(line) for line in capsys.readouterr().out.splitlines()]
    pairs = zip(losses[::2], losses[1::2], strict=True)
    right = sum(
        min(range(2), key=pair.__getitem__) == one["true_ind"] for one, pair in zip(VOITA, pairs, strict=True)
    )
    assert run("eval-contrastive", bundles, bundles / "some.json", "--json", *options) == 0
    (found,) = objects(capsys.readouterr().out)
    assert (found["right"], found["ties"]) == (right, 0)


@pytest.mark.parametrize("form", ["--loss", "--plain"])
def test_scores_fit_the_file_where_a_group_is_left_out(
    bundles: Path, tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    equal = VOITA[1] | {"dst": [f"Доктор . _eos {TRUE[0]}"] * 5, "true_ind": 0}
    path = tmp_path / "gap.json"
    path.write_text(json.dumps([VOITA[0], equal, *VOITA[1:]]), "utf-8")
    assert run("score-contrastive", bundles, bundles / "some.json", form) == 0
    complete = capsys.readouterr().out.splitlines()
    assert run("score-contrastive", bundles, path, form) == 0
    assert capsys.readouterr().out.splitlines() == [*complete[:2], *["nan"] * 5, *complete[2:]]
    assert run("score-contrastive", bundles, path) == 0
    assert [record["group"] for record in objects(capsys.readouterr().out)] == ["1", "1", "3", "3", "4", "4"]


def test_no_loss_is_less_than_nothing(bundles: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--objective", "pmi", "--context", 0, "--loss")
    assert run("score-contrastive", bundles, bundles / "some.json", *arguments) == 0
    assert capsys.readouterr().out == "0.0\n" * 6


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--objective", "luck"], 2, "'luck' is not one of sentence"),
        (["--objective", "c-score"], 1, "c-score needs an S-NMT"),
        (["--temperature", "0"], 2, "temperature must be above 0"),
        (["--format", "xml"], 2, "'xml' is not one of voita"),
        (["--format", "contrapro"], 1, "group 1: it has no “errors”"),
        (["--context", "-1"], 2, "--context"),
        (["--json", "--errors", "1"], 2, "--errors"),
    ],
)
def test_what_can_not_be_done_is_one_clear_error(
    bundles: Path, arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("eval-contrastive", bundles, bundles / "some.json", *arguments, bundle="lm") == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in re.sub(r"\s+", " ", shown.err)
    assert "Traceback" not in shown.err


def test_a_set_comes_through_a_pipe(bundles: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cadec_cli", "score-contrastive", "-", "--plain", "-b", str(bundles / "lm")],
        input=(bundles / "own.jsonl").read_bytes(),
        capture_output=True,
        check=True,
    )
    assert done.stdout == b"0.0\n0.0\n"


@pytest.mark.slow
def test_context_tells_the_form_of_address(
    made_up_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On the made-up pair the sentence level guesses, the D-LM knows; without context nobody does."""
    lines = []
    for document in made_up_pair.documents(30, seed=7):
        target = document[-1][1]
        other = swapped(target)
        if other != target:
            context = [before for _, before in document[-4:-1]]
            lines.append(
                {"source": document[-1][0], "context": context, "candidates": [target, other], "truth": 0}
            )
    assert len(lines) > 15
    path = tmp_path / "address.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    assert exit_code(["eval-contrastive", str(path), "-b", str(made_up_bundle), "--json", "-q"]) == 0
    found = {one["objective"]: one["accuracy"] for one in objects(capsys.readouterr().out)}
    assert found["pmi"] > 0.9 and found["conditional"] > 0.9 and found["c-score"] > 0.9
    assert 0.2 < found["sentence"] < 0.8


def swapped(sentence: str) -> str:
    """The sentence with the other form of address."""
    verbs = "|".join(made_up_pair.VERBS.values())
    other = {"tu": "vos", "vos": "tu", "es": "ez", "ez": "es"}
    sentence = re.sub(rf"\b({verbs})(es|ez)\b", lambda found: found[1] + other[found[2]], sentence)
    return re.sub(r"\b(tu|vos)\b", lambda found: other[found[1]], sentence)


@pytest.fixture(scope="module")
def large_set(bundles: Path) -> Path:
    """More groups than are scored at a time."""
    groups = [
        {
            "source": f"It is {number}.",
            "context": ["Доктор."],
            "candidates": [f"{true} {number}", wrong],
            "truth": 0,
        }
        for number in range(50)
        for true, wrong in zip(TRUE, WRONG, strict=True)
    ]
    path = bundles / "large.jsonl"
    path.write_text("".join(json.dumps(group) + "\n" for group in groups), "utf-8")
    return path


def test_workers_find_what_one_process_finds(
    bundles: Path, large_set: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command, *arguments in (
        (
            "eval-contrastive",
            large_set,
            bundles / "own.jsonl",
            "--json",
            "--temperature",
            1,
            "--temperature",
            4,
        ),
        ("score-contrastive", large_set),
    ):
        assert run(command, bundles, *arguments) == 0
        alone = capsys.readouterr()
        assert run(command, bundles, *arguments, "--workers", 2) == 0
        assert capsys.readouterr() == alone
        assert alone.out


@pytest.mark.slow
def test_so_do_those_of_a_ray_cluster(
    bundles: Path, large_set: Path, ray_cluster: RayCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("score-contrastive", bundles, large_set) == 0
    alone = capsys.readouterr()
    on_ray = ("--engine", "ray", "--address", ray_cluster.address)
    assert run("score-contrastive", bundles, large_set, *on_ray) == 0
    assert capsys.readouterr() == alone


@pytest.mark.parametrize("command", ["eval-contrastive", "score-contrastive"])
@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--workers", 2, "--address", "auto"), "add --engine ray"),
        (("--engine", "ray", "--device", "cuda:1"), "its own GPU"),
    ],
)
def test_flags_of_crews_that_do_not_go_together(
    bundles: Path, command: str, flags: tuple[object, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command, bundles, bundles / "own.jsonl", *flags) == 2
    assert said in " ".join(capsys.readouterr().err.replace("│", "").split())
