"""`cadec translate` with catalogues and tables, by the embedded bundle: in step, by workers, resumed."""

import json
from pathlib import Path

import polib
import pytest

from cadec_cli.main import exit_code
from tests.helpers import catalogue_files


def test_a_catalogue_is_translated_and_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pot, out = tmp_path / "app.pot", tmp_path / "app.ru.po"
    pot.write_text(catalogue_files.POT, "utf-8")
    assert exit_code(["translate", str(pot), "-o", str(out)]) == 0
    made = polib.pofile(str(out))
    assert made.metadata["Language"] == "ru"
    assert "fuzzy" in made[0].flags
    for entry in made:
        shown = [entry.msgstr] if entry.msgstr else list(entry.msgstr_plural.values())
        for text in filter(None, shown):  # what lost a placeholder or its words is not translated
            assert "fuzzy" in entry.flags
            assert any("а" <= letter <= "я" for letter in text.lower())
            assert ("%(name)s" in text) == ("%(name)s" in entry.msgid)
    # the same by workers, and what is there is not made again
    directory = tmp_path / "out"
    by_workers = ["translate", str(pot), "-o", f"{directory}/", "--workers", "1", "--resume"]
    assert exit_code(by_workers) == 0
    assert (directory / "app.ru.pot").read_bytes() == out.read_bytes()
    capsys.readouterr()
    assert exit_code(by_workers) == 0
    assert "nothing is left to do" in capsys.readouterr().err


def test_columns_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "a.csv"
    table.write_text("id,en,ru\n1,Hello.,Привет.\n2,Good night.,\n", "utf-8")
    assert exit_code(["translate", str(table), "--columns", "en=ru"]) == 0
    first, second, third = capsys.readouterr().out.splitlines()
    assert (first, second) == ("id,en,ru", "1,Hello.,Привет.")
    assert third.startswith("2,Good night.,") and len(third) > len("2,Good night.,")
    assert exit_code(["translate", str(table), "--columns", "en=ru", "--json"]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["source"] for record in records] == ["Hello.", "Good night."]
    assert records[0]["translation"] == "Привет." and "hypotheses" not in records[0]


@pytest.mark.parametrize(
    ("name", "arguments", "said", "code"),
    [
        ("a.csv", [], "which columns to translate is not known", 2),
        ("a.csv", ["--columns", ","], "it names no column", 2),
        ("a.csv", ["--columns", "x"], "has no column 'x'", 1),
        ("a.txt", ["--columns", "a"], "--columns is for tables", 2),
        ("a.json", [], "is not JSON", 1),
        ("a.xml", [], "no string resources of Android", 1),
        ("a.po", ["-o", "a.srt"], "can't become .srt subtitles", 1),
        ("a.srt", ["-o", "a.po"], "can't be converted to .po", 1),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    name: str,
    arguments: list[str],
    said: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    contents = {
        "a.xml": "<html/>",
        "a.srt": "1\n00:00:01,000 --> 00:00:02,000\nHello.\n",
        "a.po": catalogue_files.POT,
    }
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(contents.get(name, "id,en\n1,Hello.\n"), "utf-8")
    assert exit_code(["translate", name, *arguments]) == code
    shown = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert said in shown and "Traceback" not in shown
