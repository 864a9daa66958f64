"""`cadec eval-generative`, as one types it, with the embedded bundle."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cadec_cli.evaluation.generative import run as generative_run
from cadec_cli.main import exit_code
from cadec_cli.text.pipeline import TextPipeline
from tests.helpers.contrastive_parts import write_bundles
from tests.helpers.report_parts import data_of, text_of

pytestmark = pytest.mark.usefixtures("own_state")

ITEMS = [
    (["Good morning, sir.", "May I help you?", "Do you know the way?"], "вы", "formal", "Вы знаете дорогу?"),
    (["Hey, darling.", "I missed you.", "Do you know the way?"], "ты", "informal", "Ты знаешь дорогу?"),
    (["My dear friend!", "I love you, mom.", "Where were you?"], "ты", "informal", "Где ты была?"),
    (["Thank you, doctor.", "Please sit down.", "Did you see him?"], "вы", "formal", "Вы его видели?"),
]
THEIRS = ["Вы знаете дорогу?", "Знаешь дорогу?", "Где ты была?", ""]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("generative")
    names = ("document", "expected", "rule", "reference")
    own = [dict(zip(names, item, strict=True)) for item in ITEMS]
    (root / "own.jsonl").write_text("".join(json.dumps(one) + "\n" for one in own), "utf-8")
    published = [
        {"src segment": document[-1], "expected": expected, "rule": rule, "ref segment": reference}
        for document, expected, rule, reference in ITEMS
    ]
    (root / "set.test.json").write_text(json.dumps(published), "utf-8")
    (root / "set.test").write_text("".join("<eos> ".join(item[0]) + "\n" for item in ITEMS), "utf-8")
    (root / "theirs.txt").write_text("\n".join(THEIRS) + "\n", "utf-8")
    # The first command on a machine converts the embedded S-NMT, and says so.
    assert exit_code(["translate", "-q", str(root / "theirs.txt"), "-o", str(root / "first.txt")]) == 0
    return root


def run(*arguments: object) -> int:
    return exit_code(["eval-generative", *map(str, arguments), "--threads", "1"])


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_an_object_a_system_and_set(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--search", "rerank", "--objective", "c-score", "--objective", "pmi", "-T", 1, "-T", 4)
    systems = ("--system", f"theirs={here / 'theirs.txt'}", "--system", f"theirs={here / 'theirs.txt'}")
    both = (here / "own.jsonl", here / "set.test.json")
    assert run(*both, *asked, *systems, "--json", "--nbest", 6, "--context", 2) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    found = objects(shown.out)
    assert len(found) == 2 * (1 + 4 + 1 + 1)
    own, published = found[:7], found[7:]
    for one, other in zip(own, published, strict=True):
        changed = {"set": str(here / "set.test.json"), "format": "ctxpro"}
        assert {**one, **changed} == other
    level, row, *_, theirs, oracle = own
    assert [one["kind"] for one in own] == ["sentence level", *["row"] * 4, "other", "oracle"]
    assert level["signature"] == "rule:words|lang:ru"
    assert "over_baseline" not in level and "temperature" not in level
    assert (row["objective"], row["temperature"], row["context"], row["nbest"]) == ("c-score", 1.0, 2, 6)
    assert row["weight"] == {"lm": 1.0}
    assert (theirs["system"], theirs["right"], theirs["share"]) == ("theirs", 2, 0.5)
    assert theirs["by_rule"]["formal"]["right"] == theirs["by_rule"]["informal"]["right"] == 1
    assert (theirs["address"]["right"], theirs["address"]["items"]) == (2, 2)
    assert oracle["system"] == "any of the 6-best"
    for one in own:
        assert one["interval"][0] <= one["share"] <= one["interval"][1]
        assert one["right"] <= oracle["right"] or one["kind"] == "other"
        if one["kind"] in ("row", "other"):
            delta = 100 * (one["share"] - level["share"])
            assert one["over_baseline"]["delta"] == pytest.approx(delta)


def test_rows_are_what_translate_writes(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The failed items of a word that nobody says are all items."""
    items = [{"document": item[0], "expected": "абракадабра"} for item in ITEMS]
    path = tmp_path / "set.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in items), "utf-8")
    options = ("--nbest", "6", "--compute-type", "float32")
    assert run(path, "--report", tmp_path / "page.html", *options) == 0
    page = data_of(tmp_path / "page.html")
    (tmp_path / "in.txt").write_text("\n\n".join("\n".join(item[0]) for item in ITEMS) + "\n", "utf-8")
    capsys.readouterr()
    translate = ["translate", str(tmp_path / "in.txt"), "--lines", "--threads", "1", *options]
    assert exit_code(translate) == 0
    blocks = capsys.readouterr().out.strip().split("\n\n")
    shown = [one for one in page["segments"] if "c-score" in one["group"]]
    assert [text_of(one["text"]) for one in shown] == [block.splitlines()[-1] for block in blocks]
    assert [one["parts"][0]["context"] for one in shown] == [block.splitlines()[:-1] for block in blocks]


def test_a_table_for_people(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(here / "own.jsonl", "--limit", 2, "--system", f"[red]x={here / 'theirs.txt'}") == 0
    shown = capsys.readouterr().out
    assert "2 of 4 items" in shown and "rule:words|lang:ru" in shown
    assert "sentence level" in shown and "rerank: c-score × 1, T 4" in shown and "[red]x" in shown
    assert re.search(r"formal +│ sentence level", shown)
    assert "as the reference's" in shown
    table = shown[: shown.index("context of")].splitlines()[1:]
    assert len({len(line) for line in table}) == 1


def test_the_rule_of_ctxpro(here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(json.dumps({"document": ["Yes."], "expected": "да-да"}) + "\n", "utf-8")
    assert run(path, "--rule", "ctxpro", "--json", "--search", "sentence") == 0
    shown = capsys.readouterr()
    assert "never finds the expected form of 1 item" in " ".join(shown.err.split())
    assert {one["signature"] for one in objects(shown.out)} == {"rule:ctxpro"}
    assert {one["unsayable"] for one in objects(shown.out)} == {1}
    assert {one["kind"] for one in objects(shown.out)} == {"sentence level", "oracle"}
    assert not any("address" in one or one["by_rule"] for one in objects(shown.out))


def test_the_report_has_the_failed_items(
    here: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    asked = (here / "own.jsonl", "--json", "--report", page)
    assert run(*asked, "--system", f"theirs={here / 'theirs.txt'}") == 0
    found = objects(capsys.readouterr().out)
    data = data_of(page)
    for one in found[:-1]:
        failed = [segment for segment in data["segments"] if segment["group"] == f"own: {one['system']}"]
        assert len(failed) == one["items"] - one["right"]
    theirs = [segment for segment in data["segments"] if segment["group"] == "own: theirs"]
    assert [(segment["label"], text_of(segment["text"])) for segment in theirs] == [
        ("2", "Знаешь дорогу?"),
        ("4", ""),
    ]
    assert theirs[0]["notes"] == ["expected: ты", "rule: informal"]
    assert text_of(theirs[0]["compared"]) == "Ты знаешь дорогу?"
    assert [figures["title"] for figures in data["figures"]] == [
        "own: expected word said, %",
        "own: by rule, %",
    ]
    assert run(*asked) == 1
    assert "--force" in capsys.readouterr().err


def test_workers_find_what_one_process_finds(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = (
        here / "own.jsonl",
        here / "set.test.json",
        "--json",
        "--search",
        "rerank",
        "--search",
        "lattice",
    )
    monkeypatch.setattr(generative_run, "TOGETHER", 3)
    assert run(*asked) == 0
    alone = capsys.readouterr()
    assert run(*asked, "--workers", 2) == 0
    assert capsys.readouterr() == alone


def test_an_interrupted_run_goes_on(
    here: Path, own_state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = (here / "own.jsonl", "--json", "--nbest", 4)
    monkeypatch.setattr(generative_run, "TOGETHER", 1)
    assert run(*asked) == 0
    alone = capsys.readouterr().out
    translate = generative_run.DocumentTranslators.translate
    done: list[object] = []

    def interrupt(translators: Any, documents: Any) -> Any:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(documents)
        return translate(translators, documents)

    with monkeypatch.context() as interrupted:
        interrupted.setattr(generative_run.DocumentTranslators, "translate", interrupt)
        assert run(*asked) == 130
    assert "2 of 4 items are done; the same command with --resume continues" in capsys.readouterr().err
    assert run(*asked) == 1
    refused = " ".join(capsys.readouterr().err.split())
    assert "there is an unfinished evaluation" in refused and "--force" in refused
    assert run(*asked, "--resume") == 0
    shown = capsys.readouterr()
    assert shown.out == alone
    assert "2 items are done already" in shown.err
    assert not list((own_state / "evaluations").iterdir())


def test_several_weights_and_sizes(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--weight", 0.5, "--weight", "lm=2", "--nbest", 3, "--nbest", 6, "--objective", "c-score")
    theirs = ("--system", f"theirs={here / 'theirs.txt'}", "--baseline", "theirs")
    assert run(here / "own.jsonl", *asked, *theirs, "--json") == 0
    found = objects(capsys.readouterr().out)
    assert [(one["kind"], one.get("weight", {}).get("lm"), one.get("nbest")) for one in found] == [
        ("sentence level", None, 6),
        *(("row", weight, size) for weight in (0.5, 2.0) for size in (3, 6)),
        ("other", None, None),
        ("oracle", None, 3),
        ("oracle", None, 6),
    ]
    assert len({one["system"] for one in found}) == len(found)
    assert ["over_baseline" in one for one in found] == [True] * 5 + [False] * 3
    assert {one["baseline"] for one in found} == {"theirs"}
    assert run(here / "own.jsonl", *asked, *theirs) == 0
    shown = capsys.readouterr().out
    assert "over theirs" in shown and "any of the 3-best" in shown and "× 2, T 4, 6-best" in shown


def test_bundles_that_lack_a_model(
    here: Path,
    english: TextPipeline,
    russian: TextPipeline,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_bundles(tmp_path, english, russian)
    assert run(here / "own.jsonl", "--bundle", tmp_path / "nmt", "--json", "--nbest", 3) == 0
    found = objects(capsys.readouterr().out)
    assert [one["kind"] for one in found] == ["sentence level", "oracle"]
    asked = (here / "own.jsonl", "--search", "rerank", "--objective", "c-score")
    assert run(*asked, "--bundle", tmp_path / "nmt") == 1
    assert "no document language model" in capsys.readouterr().err
    assert run(here / "own.jsonl", "--bundle", tmp_path / "lm") == 1
    assert "can't translate" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--rule", "luck"], 2, "'luck' is not one of words, ctxpro"),
        (["--search", "luck"], 2, "'luck' is not one of rerank"),
        (["--search", "beam", "--objective", "pmi"], 2, "can't maximise pmi"),
        (["--objective", "pmi", "--weight", "1"], 2, "pmi has no weight lm"),
        (["--temperature", "0"], 2, "temperature must be"),
        (["--system", "theirs"], 2, "does not name a system"),
        (["--system", "a={here}/theirs.txt", "--system", "a={here}/theirs.txt"], 2, "a has 2 files"),
        (["--system", "a={here}/own.jsonl", "--system", "b={here}/set.test.json"], 1, "has 1 lines"),
        (["--system", "a={here}/missing"], 1, "missing"),
        (["--inputs", "{here}/theirs.txt"], 1, "belongs to no set"),
        (["--search", "2-to-2"], 1, "has no 2-to-2 model"),
        (["--limit", "0"], 2, "--limit"),
        (["--nbest", "0"], 2, "--nbest"),
        (["--weight", "lots"], 2, "'lots' is not a weight"),
        (["--baseline", "theirs"], 2, "no system 'theirs' to compare with"),
        (["--system", "sentence level={here}/theirs.txt"], 2, "give the system another name"),
        (["--system", "a=-", "-"], 2, "standard input can be read only once"),
    ],
)
def test_what_can_not_be_done_is_one_clear_error(
    here: Path, arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    filled = [argument.format(here=here) for argument in arguments]
    sets = ("-",) if "-" in filled else (here / "own.jsonl",)
    assert run(*sets, *(argument for argument in filled if argument != "-")) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in re.sub(r"\s+", " ", shown.err)
    assert "Traceback" not in shown.err
