"""`cadec check` from the command line: what it prints, where it exits with 1, and what it refuses."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.report_parts import data_of
from tests.helpers.run_in_process import cadec

ROOT = Path(__file__).parents[2]
EXAMPLES = (ROOT / "examples" / "checked.en.txt", ROOT / "examples" / "checked.fr.txt")


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "a.en").write_text("Good evening, everybody.\nCome at 10:45.\nIt is late.\n", "utf-8")
    (tmp_path / "a.ru").write_text("Добрый вечер всем.\nПриходи в 10:45.\nУже поздно.\n", "utf-8")
    (tmp_path / "b.ru").write_text("Добрый вечер всем.\nПриходи в 10:54.\nУже поздно (.\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CADEC_BUNDLE", raising=False)
    return tmp_path


def test_nothing_found(files: Path) -> None:
    done = cadec("check", "a.en", "a.ru")
    assert (done.returncode, done.stdout) == (0, "")
    assert "a.ru: nothing found in 3 lines, en → ru" in done.stderr


def test_findings_with_their_places(files: Path) -> None:
    done = cadec("check", "a.en", "b.ru")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "line 2: error: numbers: 45 became 54",
        "    Come at 10:45.",
        "    Приходи в 10:54.",
        "line 3: warning: damage: has a ( without its partner",
        "    It is late.",
        "    Уже поздно (.",
    ]
    assert "1 error, 1 warning in 3 lines" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 1),
        (["--fail-on", "never"], 0),
        (["--skip", "numbers"], 0),
        (["--skip", "numbers", "--fail-on", "warning"], 1),
        (["--only", "tags", "--only", "empty", "--fail-on", "hint"], 0),
        (["--only", "numbers", "--skip", "numbers"], 2),
        (["--only", "spelling"], 2),
        (["--fail-on", "rain"], 2),
    ],
)
def test_the_exit_status(files: Path, arguments: list[str], code: int) -> None:
    assert cadec("check", "a.en", "b.ru", *arguments, "--quiet").returncode == code


def test_json_has_the_same_keys_for_every_line(files: Path) -> None:
    done = cadec("check", "a.en", "b.ru", "--json")
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert [record["check"] for record in records] == ["numbers", "damage"]
    assert records[0] == {
        "check": "numbers",
        "severity": "error",
        "message": "45 became 54",
        "document": 1,
        "source_place": "line 2",
        "target_place": "line 2",
        "source": "Come at 10:45.",
        "target": "Приходи в 10:54.",
        "source_part": "45",
        "target_part": "54",
    }
    assert "source_part" not in records[1]


def test_a_report_has_every_finding(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = cadec("check", *EXAMPLES, "--json", "--report", page)
    records = [json.loads(line) for line in done.stdout.splitlines()]
    data = data_of(page)
    assert len(data["segments"]) == len(records) > 5
    assert {segment["group"] for segment in data["segments"]} == {record["check"] for record in records}
    assert data["languages"] == ["en", "fr"]
    again = cadec("check", *EXAMPLES, "--report", page)
    assert again.returncode == 1 and "exists already" in again.stderr and not again.stdout
    assert cadec("check", *EXAMPLES, "--report", page, "--force", "--fail-on", "never").returncode == 0


def test_the_example_has_a_mistake_of_each_kind_shown() -> None:
    done = cadec("check", *EXAMPLES, "--json")
    found = {json.loads(line)["check"] for line in done.stdout.splitlines()}
    assert found == {"numbers", "untranslated", "copied", "tags", "empty", "names"}


def test_what_it_can_not_read(files: Path) -> None:
    (files / "short.ru").write_text("Да.\n", "utf-8")
    (files / "latin.ru").write_bytes(b"\xff\xfe\x00")
    for target, words in (
        ("short.ru", "1 line, and"),
        ("latin.ru", "utf-8"),
        ("gone.ru", "no such file"),
    ):
        done = cadec("check", "a.en", target)
        assert done.returncode == 1 and not done.stdout, target
        assert words in done.stderr and done.stderr.count("error:") == 1
    assert cadec("check", "a.en").returncode == 2


def test_unknown_languages_are_named(files: Path) -> None:
    done = cadec("check", "a.en", "a.ru", "--to", "xx")
    assert done.returncode == 0
    assert "not checked: language (xx: its script is not known), address (xx:" in done.stderr


def test_a_pipe_of_what_translate_writes(files: Path) -> None:
    line = json.dumps({"source": "Come at 10:45, my friend.", "translation": "Приходи в 10:54, друг мой."})
    (files / "c.jsonl").write_text(line, "utf-8")
    assert "numbers: 45 became 54" in cadec("check", "c.jsonl").stdout
    assert "numbers: 45 became 54" in cadec("check", "-", "--format", "jsonl", stdin=line).stdout


def test_control_characters_are_shown_not_obeyed(files: Path) -> None:
    (files / "d.ru").write_text("Добрый вечер всем.\nПриходи\x1b[31m в 10:54.\nУже поздно.\n", "utf-8")
    assert "\x1b" not in cadec("check", "a.en", "d.ru").stdout


@pytest.mark.slow
def test_no_model_library_is_imported() -> None:
    code = (
        "import sys; from cadec_cli.main import exit_code\n"
        "exit_code(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "check", *map(str, EXAMPLES)], capture_output=True, text=True, cwd=ROOT
    )
    loaded = set(done.stderr.split())
    assert "cadec_cli.evaluation.checks.table" in loaded
    assert not loaded & {"torch", "transformers", "ctranslate2", "sentencepiece", "sacremoses", "pysubs2"}


@pytest.mark.slow
def test_lines_that_are_unlikely_where_they_stand(files: Path) -> None:
    """The embedded D-LM; a line from elsewhere is less likely than the one that goes on."""
    done = cadec("check", "a.en", "a.ru", "--only", "pmi", "--json")
    assert done.returncode == 0, done.stderr
    wrong = cadec("check", "a.en", "a.ru", "--pmi", "--to", "fr")
    assert wrong.returncode == 1 and "the translation is in 'fr'" in wrong.stderr
