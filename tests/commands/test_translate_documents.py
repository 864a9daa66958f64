"""Documents with markup, translated by the command: with the embedded bundle, in step and by workers."""

import json
from pathlib import Path

import pytest

from cadec_cli.main import exit_code
from tests.helpers.document_files import document, members
from tests.helpers.marked_texts import elements, page_shape

PAGE = '<!DOCTYPE html><html lang="en"><p>I have a <b>red car</b> and a <a href="x">big dog</a>.</p></html>\n'
README = "# Where is *she*?\n\nI have a **red car** and\na [big dog](x).\n\n```\ncode\n```\n"
FAST = ["--nbest", "2", "--threads", "1", "--quiet"]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    directory = tmp_path_factory.mktemp("documents")
    for kind in ("docx", "odt", "epub"):
        (directory / f"a.{kind}").write_bytes(document(kind))
    (directory / "a.html").write_text(PAGE, "utf-8")
    (directory / "a.md").write_text(README, "utf-8")
    return sorted(directory.iterdir())


@pytest.fixture(scope="module")
def outputs(inputs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("translated")
    assert exit_code(["translate", *map(str, inputs), "-o", f"{out}/", *FAST]) == 0
    return out


def test_documents_keep_their_marks(inputs: list[Path], outputs: Path) -> None:
    assert sorted(path.name for path in outputs.iterdir()) == [
        path.with_suffix(f".ru{path.suffix}").name for path in inputs
    ]
    page = (outputs / "a.ru.html").read_text("utf-8")
    assert page_shape(page, "html") == page_shape(PAGE, "html") and '<html lang="ru">' in page
    assert page_shape((outputs / "a.ru.md").read_text("utf-8"), "markdown") == page_shape(README, "markdown")
    of_runs = ("r", "rPr", "t", "proofErr", "s", "i")
    for kind in ("docx", "odt", "epub"):
        before, after = document(kind), (outputs / f"a.ru.{kind}").read_bytes()
        for name, content in members(before).items():
            if name.endswith((".xml", ".xhtml", ".opf")):
                found = elements(members(after)[name], *of_runs)
                assert found == elements(content, *of_runs), name
            else:
                assert members(after)[name] == content
    book = members((outputs / "a.ru.epub").read_bytes())
    assert "<dc:language>ru</dc:language>" in book["OEBPS/book.opf"].decode()
    assert any("а" <= letter <= "я" for letter in book["OEBPS/text/c2.xhtml"].decode())


def test_workers_write_the_same_bytes(inputs: list[Path], outputs: Path, tmp_path: Path) -> None:
    arguments = ["translate", *map(str, inputs), "-o", f"{tmp_path}/", "--workers", "1", *FAST]
    assert exit_code([*arguments, "--resume"]) == 0
    assert exit_code([*arguments, "--resume"]) == 0  # and finds nothing to do
    for path in outputs.iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes(), path.name


def test_text_of_a_document(inputs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = next(path for path in inputs if path.suffix == ".html")
    assert exit_code(["translate", str(page), "-o", str(tmp_path / "a.txt"), *FAST]) == 0
    assert "<" not in (tmp_path / "a.txt").read_text("utf-8")
    assert exit_code(["translate", str(page), "--json", *FAST]) == 0
    assert json.loads(capsys.readouterr().out)["source"] == "I have a <b>red car</b> and a <a>big dog</a>."


@pytest.mark.parametrize(
    ("name", "flags", "said", "code"),
    [
        ("a.html", ["-o", "b.docx"], "can't be converted", 1),
        ("a.docx", ["-o", "b.odt"], "can't be converted", 1),
        ("a.md", ["-o", "b.md", "--bilingual", "above"], "--bilingual is for subtitles and documents", 2),
        ("a.txt", ["-o", "b.epub"], "can't be converted", 1),
    ],
)
def test_what_is_refused(
    name: str,
    flags: list[str],
    said: str,
    code: int,
    inputs: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    path = inputs[0].with_name(name)
    if not path.exists():
        path = tmp_path / name
        path.write_text("It is.\n", "utf-8")
    assert exit_code(["translate", str(path), *flags, *FAST]) == code
    assert said in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.glob("b.*")) == []
