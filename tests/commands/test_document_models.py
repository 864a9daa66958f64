"""DocTransformer, 2-to-2 and DocRepair on the command line: in files, pipes and contrastive tests."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cadec_cli.main import exit_code
from tests.helpers import made_up_pair

SEARCHES = ("doc-nmt", "2-to-2", "repair")
DOCUMENTS = made_up_pair.documents(5, seed=31, length=6)
FLAGS = ["--compute-type", "float32", "--threads", "1"]


def written(path: Path, side: int) -> Path:
    blocks = ("".join(f"{pair[side]}\n" for pair in document) for document in DOCUMENTS)
    path.write_text("\n".join(blocks), "utf-8")
    return path


@pytest.mark.parametrize("search", SEARCHES)
def test_a_file_keeps_its_layout_and_json_tells_the_scores(
    search: str, document_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = written(tmp_path / "in.txt", 0), tmp_path / "out.txt"
    line = ["translate", str(source), "--lines", "-b", str(document_bundle), "--search", search, *FLAGS, "-q"]
    assert exit_code([*line, "-o", str(out)]) == 0
    lines = [path.read_text("utf-8").splitlines() for path in (source, out)]
    assert [bool(text) for text in lines[0]] == [bool(text) for text in lines[1]]
    capsys.readouterr()
    assert exit_code([*line, "--json"]) == 0
    records = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert [record["translation"] for record in records] == [text for text in lines[1] if text]
    for record in records:
        scores = [one["score"] for one in record["hypotheses"]]
        assert scores == sorted(scores, reverse=True)
        assert scores == [one["log_prob"] for one in record["hypotheses"]]
    assert exit_code([*line, "--compare"]) == 0
    assert exit_code([*line, "--explain"]) == 2
    assert f"--search {search} uses no D-LM" in capsys.readouterr().err


def test_scorers_of_the_bundle_are_among_all_of_them(
    document_bundle: Path, made_up_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    groups = [
        {
            "source": "you see the lamp.",
            "context_source": [source for source, _ in document[:3]],
            "context": [target for _, target in document[:3]],
            "candidates": ["tu vides la lampo.", "vos videz la lampo."],
            "truth": number % 2,
        }
        for number, document in enumerate(DOCUMENTS)
    ]
    # One side of the context is unknown, another has none at all.
    groups[1]["context_source"] = []
    groups[2]["context_source"] = groups[2]["context"] = []
    path = tmp_path / "set.jsonl"
    path.write_text("".join(json.dumps(group) + "\n" for group in groups), "utf-8")
    line = ["eval-contrastive", str(path), "--threads", "1", "--json"]
    assert exit_code([*line, "-b", str(document_bundle)]) == 0
    names = {json.loads(text)["objective"] for text in capsys.readouterr().out.splitlines()}
    assert {*SEARCHES, "bayes", "c-score"} <= names
    for search in SEARCHES:
        assert exit_code([*line, "-b", str(made_up_bundle), "--objective", search]) == 1
        assert f"has no {search} model" in capsys.readouterr().err
    score = ["score-contrastive", str(path), "-b", str(document_bundle), "--objective", "2-to-2"]
    assert exit_code([*score, "--threads", "1"]) == 0
    records = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert len(records) == 2 * len(groups)
    assert all(record["score"] == record["2-to-2"] for record in records)


def test_any_system_s_output_can_be_repaired(
    document_bundle: Path, made_up_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draft, out = written(tmp_path / "draft.txt", 1), tmp_path / "out.txt"
    line = ["repair", str(draft), "--lines", "-b", str(document_bundle), *FLAGS, "-q"]
    assert exit_code([*line, "-o", str(out)]) == 0
    lines = [path.read_text("utf-8").splitlines() for path in (draft, out)]
    assert [bool(text) for text in lines[0]] == [bool(text) for text in lines[1]]
    capsys.readouterr()
    assert exit_code(line) == 0
    assert capsys.readouterr().out.splitlines() == lines[1]
    assert exit_code([*line, "--compare"]) == 0
    compared = capsys.readouterr().out
    assert compared.split()[:2] == ["draft", "repaired"]
    assert lines[0][0].split()[0] in compared
    assert exit_code([*line, "--json"]) == 0
    assert exit_code(["repair", str(draft), "-b", str(made_up_bundle)]) == 1
    assert "has no DocRepair" in capsys.readouterr().err
    assert exit_code([*line, "--json", "--compare"]) == 2
    assert exit_code([*line, "--resume"]) == 2


def test_a_draft_is_protected_as_text_of_its_own_language(
    document_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draft = tmp_path / "draft.txt"
    draft.write_text("tu vides la Привет lampo.\n", "utf-8")
    assert exit_code(["repair", str(draft), "-b", str(document_bundle), *FLAGS, "-q", "--json"]) == 0
    (record,) = map(json.loads, capsys.readouterr().out.splitlines())
    # a repair that loses text in another script is not taken: the draft stays
    assert "Привет" in record["translation"]


def test_an_empty_file_and_control_characters_are_repaired_to_what_they_were(
    document_bundle: Path, tmp_path: Path
) -> None:
    for text in ("", "\n\n", "\x07\n", "x" * 3000 + "\n"):
        draft, out = tmp_path / "draft.txt", tmp_path / "out.txt"
        draft.write_text(text, "utf-8")
        assert (
            exit_code(["repair", str(draft), "-b", str(document_bundle), *FLAGS, "-q", "-o", str(out)]) == 0
        )
        assert out.read_text("utf-8").count("\n") == text.count("\n")
        out.unlink()


def test_a_killed_round_trip_goes_on_and_keeps_documents_apart(document_bundle: Path, tmp_path: Path) -> None:
    text = written(tmp_path / "documents.txt", 1)
    whole, broken = tmp_path / "whole.tsv", tmp_path / "broken.tsv"

    def line(output: Path) -> list[str]:
        named = ["-b", str(document_bundle), "-o", str(output), "--no-sample"]
        return ["augment", "round-trip", str(text), *named, *FLAGS]

    assert exit_code([*line(whole), "-q"]) == 0
    small = "import sys; from cadec_cli.jobs import back_translation as b; b.pair_lines.__defaults__ = (8,)\n"
    small += "from cadec_cli.main import exit_code; sys.exit(exit_code(sys.argv[1:]))"
    process = subprocess.Popen([sys.executable, "-c", small, *line(broken)], stderr=subprocess.PIPE)
    part = Path(f"{broken}.cadec-part")
    while process.poll() is None and (not part.exists() or part.stat().st_size < 200):
        time.sleep(0.002)
    time.sleep(random.Random(1).random() * 0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    if not broken.exists():
        assert exit_code([*line(broken), "--resume", "-q"]) == 0
    assert broken.read_bytes() == whole.read_bytes()
    rows = [row.split("\t") if row else ["", ""] for row in whole.read_text("utf-8").splitlines()]
    assert [row[1] for row in rows] == text.read_text("utf-8").splitlines()
    assert [bool(row[0]) for row in rows] == [bool(row[1]) for row in rows]


def test_sampled_round_trips_vary_with_the_seed(document_bundle: Path, tmp_path: Path) -> None:
    text = written(tmp_path / "documents.txt", 1)
    found = []
    for seed in ("1", "2"):
        out = tmp_path / f"{seed}.tsv"
        named = ["-b", str(document_bundle), "-o", str(out), "--seed", seed, "--temperature", "2"]
        assert exit_code(["augment", "round-trip", str(text), *named, *FLAGS, "-q"]) == 0
        found.append(out.read_text("utf-8"))
    assert found[0] != found[1]


def test_a_round_trip_needs_both_directions(
    made_up_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text, out = written(tmp_path / "documents.txt", 1), tmp_path / "out.tsv"
    assert exit_code(["augment", "round-trip", str(text), "-b", str(made_up_bundle), "-o", str(out)]) == 1
    assert "has no backward model" in capsys.readouterr().err
    assert not list(tmp_path.glob("out*"))


def test_tuning_bayes_finds_weights_and_saves_them(
    document_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = written(tmp_path / "dev.en", 0), written(tmp_path / "dev.eo", 1)
    line = ["tune", str(source), "--ref", str(target), "-b", str(document_bundle), "--objective", "bayes"]
    line += ["--no-save", "--nbest", "3", *FLAGS, "-q"]
    assert exit_code([*line, "-o", str(tmp_path / "tuning")]) == 0
    curve = json.loads((tmp_path / "tuning" / "curve.json").read_text("utf-8"))
    assert {name for name, _ in curve["choice"]["setting"]["named"]} == {"nmt", "back", "length"}
    assert "chosen" in capsys.readouterr().out
    assert exit_code([*line, "--weight", "1"]) == 2
    assert "are found together" in capsys.readouterr().err
