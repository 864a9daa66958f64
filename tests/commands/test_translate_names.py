"""`--names` and `--terms` with the embedded bundle."""

import io
import sys
from pathlib import Path

import pytest

import cadec_cli
from cadec_cli.errors import CadecError
from cadec_cli.main import exit_code

PLAIN = "Where were you yesterday?\n\nHe saw Tobias.\nWhere were you yesterday?\n"
# paragraphs, in which no name recurs
STORY = """Then Tobias came in with the eggs.

Where is Aurelia? Nobody saw Aurelia.

He asked Tobias about the eggs.

"Open it," said Tobias. Then Aurelia opened the door.
"""
FLAGS = ["--threads", "1", "--quiet"]


@pytest.fixture(autouse=True)
def embedded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CADEC_BUNDLE", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain.txt").write_text(PLAIN)
    (tmp_path / "story.txt").write_text(STORY)


def test_where_no_name_recurs_everything_is_as_ever(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    found = []
    for flags in ((), ("--names",), ("--terms", "terms.tsv"), ("--glossary", "terms.tsv")):
        more = () if "--glossary" in flags else ("--json",)
        assert exit_code(["translate", "plain.txt", *FLAGS, *flags, *more]) == 0
        found.append(capsys.readouterr().out)
    assert found[0] == found[1] == found[2] and (tmp_path / "terms.tsv").read_text().startswith("# name\t")
    assert exit_code(["translate", "plain.txt", *FLAGS]) == 0
    assert found[3] == capsys.readouterr().out


def test_a_table_of_a_file_with_workers_and_a_report(tmp_path: Path) -> None:
    for name, flags in (("one", ()), ("two", ("--workers", "1")), ("three", ("--report", "page.html"))):
        asked = ["translate", "story.txt", "-o", f"{name}.txt", "--terms", f"{name}.tsv", *FLAGS, *flags]
        assert exit_code(asked) == 0
    texts = {(tmp_path / f"{name}.txt").read_text("utf-8") for name in ("one", "two", "three")}
    tables = {(tmp_path / f"{name}.tsv").read_text("utf-8") for name in ("one", "two", "three")}
    ((table,), (text,)) = tables, texts
    rows = [line.split("\t") for line in table.splitlines()[1:]]
    assert {"Tobias", "Aurelia"} >= {row[0] for row in rows} >= {"Tobias"}
    for _, forms, times, otherwise, _ in rows:
        said = sum(text.count(form) for form in forms.split("|"))
        assert said >= int(times) - int(otherwise) > 1
    assert "<html" in (tmp_path / "page.html").read_text("utf-8")
    translator = cadec_cli.load(options={"names": True}, threads=1)
    translator.translate_file("story.txt", "four.txt", terms="four.tsv")
    assert (tmp_path / "four.tsv").read_text("utf-8") == table
    assert (tmp_path / "four.txt").read_text("utf-8") == text
    with pytest.raises(CadecError, match="exists already"):
        translator.translate_file("story.txt", "five.txt", terms="four.tsv")
    with pytest.raises(CadecError, match="no names are looked for"):
        cadec_cli.load(threads=1).translate_file("story.txt", "five.txt", terms="five.tsv")


def test_a_session_knows_its_names() -> None:
    session = cadec_cli.Session(cadec_cli.load(options={"names": True}, threads=1))
    session.translate(["Then Tobias came in with the eggs.", "He asked Tobias about the eggs."])
    session.edit("Тогда вошёл Тобиас.", 0)
    session.redo()
    (found,) = session.names
    assert found.forms[0] == "Тобиас" and found.times == 2 and not found.otherwise
    assert "Тобиас" in session.sentences[1].text
    assert session.sentences[1].to_dict()["names"] == [one.to_dict() for one in session.sentences[1].names]


def test_names_may_be_looked_for_later(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = ["He asked Tobias.", '"Open it," said Tobias.', "Then Tobias came in with the eggs."]
    shown = []
    for script in ([*lines, "/set names on", "/terms"], ["/set names on", *lines, "/terms"]):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(script).encode())))
        assert exit_code(["repl", *FLAGS]) == 0
        shown.append(capfd.readouterr().out.splitlines()[-1])
    assert shown[0].split()[:2] == shown[1].split()[:2] and shown[0].startswith("Tobias")


@pytest.mark.parametrize(
    ("flags", "message", "code"),
    [
        (["--terms", "terms.csv"], "tab-separated", 1),
        (["--terms", "terms.tsv", "--no-names"], "--terms needs --names", 2),
        (["--terms", "plain.txt"], "is the input", 1),
        (["--terms", "out.txt", "-o", "out.txt"], "can't be one file", 2),
        (["--terms", "terms.tsv", "--shard", "1/2", "-o", "out/"], "--terms is one table", 2),
        (["--terms", "terms.tsv", "--search", "beam"], "names", 2),
    ],
)
def test_what_can_t_be_is_refused(
    capsys: pytest.CaptureFixture[str], flags: list[str], message: str, code: int
) -> None:
    assert exit_code(["translate", "plain.txt", *FLAGS, *flags]) == code
    assert message in capsys.readouterr().err
