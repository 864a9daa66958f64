"""What the README and the pages of docs/ show works: Python, commands in short variants, outputs."""

import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.helpers.doc_pages import PAGES, ROOT, commands, mentioned, sessions
from tests.helpers.document_files import document
from tests.helpers.run_in_process import cadec
from tests.helpers.shown_commands import KNOWN, command_of, unknown_options

CATALOGUES = ROOT / "tests" / "text" / "formats" / "catalogues" / "files"
# Pages whose commands are run, as far as they need no models or corpora but those that are here.
RUN = ("README.md", "translating.md", "repl.md", "evaluation.md", "training.md")
NEED_NO_TRAINING = ("translate", "evaluate", "eval-contrastive", "tune", "repl")


def test_the_examples_of_the_python_interface_say_what_is_shown() -> None:
    examples = [
        example
        for page in PAGES.values()
        for example in re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", page, re.M | re.S)
    ]
    assert examples and len(examples) == sum(page.count("```python") for page in PAGES.values())
    for code, expected in examples:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(code, "example", "exec"), {})
        assert output.getvalue() == expected


@pytest.mark.parametrize("page", PAGES)
def test_every_command_shown_exists_with_its_options(page: str) -> None:
    lines = [
        *commands(page),
        *(one.command for session in sessions(page) for one in session),
        *mentioned(page),
    ]
    lines = [line for line in lines if "cadec " in line and "cadec --" not in line]
    groups = {name.split()[0] for name in KNOWN}  # a sentence may speak of all of `cadec train`
    assert {
        line for line in lines if command_of(line) not in KNOWN and command_of(line) not in groups
    } == set()
    lines = [line for line in lines if command_of(line) in KNOWN]
    assert {line: unknown_options(line) for line in lines if unknown_options(line)} == {}


def test_commands_of_every_kind_are_shown() -> None:
    shown = {command_of(line) for page in PAGES for line in commands(page) if page != "cli.md"}
    assert {"translate", "repl", "eval-contrastive", "tune", "train lm", "convert"} <= shown


def test_every_command_of_the_page_on_scale_exists_with_its_options() -> None:
    """Those for schedulers, too, which stand within YAML and scripts."""
    page = PAGES["scale.md"]
    lines = re.findall(r"cadec (?:translate|convert) [^'`\n]*", page)
    assert len(lines) > 6
    assert {line: unknown_options(line) for line in lines if unknown_options(line)} == {}
    trained = re.findall(r"-m cadec_cli (train lm [^`\n]*)", page)
    assert trained and not any(unknown_options(f"cadec {line}") for line in trained)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Everything that the short commands read, with little in it."""
    english, russian = "Who are you?\nI saw you yesterday.\n", "Кто ты?\nЯ видел тебя вчера.\n"
    for name in ("a.txt", "b.txt", "letter.txt", "talk.txt", "book.txt", "film.txt", "dev.en"):
        (tmp_path / name).write_text(english, "utf-8")
    (tmp_path / "dev.ru").write_text(russian, "utf-8")
    # Two documents with names that recur, for `evaluate --consistency`.
    film = "Who saw Amelia?\nWhere is Amelia?\n\nCall Robert now.\nRobert is here.\n"
    (tmp_path / "film.en").write_text(film, "utf-8")
    translated = "Кто видел Амелию?\nГде Амелия?\n\nПозови Роберта.\nРоберт здесь.\n"
    for name in ("out.ru", "ref.ru", "sentence.ru"):
        (tmp_path / name).write_text(translated, "utf-8")
    cue = "1\n00:00:01,000 --> 00:00:02,000\nWho are you?\n"
    (tmp_path / "film.srt").write_text(cue, "utf-8")
    target = "Ты ? _eos Я видел {} ."
    group = {
        "src": "You ? _eos I saw you .",
        "dst": [target.format("тебя"), target.format("вас")],
        "true_ind": 0,
    }
    for name in ("deixis_dev.json", "lex_cohesion_dev.json"):
        (tmp_path / name).write_text(json.dumps([group]), "utf-8")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    _write_documents(tmp_path)
    return tmp_path


def _write_documents(directory: Path) -> None:
    """Files of other formats than text and SubRip."""
    for name in ("book.epub", "report.docx", "letter.odt"):
        (directory / name).write_bytes(document(name.partition(".")[2]))
    (directory / "docs").mkdir()
    (directory / "docs" / "page.md").write_text("# A letter\n\nWho *are* you?\n", "utf-8")
    (directory / "page.html").write_text(
        "<!DOCTYPE html>\n<html><p>Who <b>are</b> you?</p></html>\n", "utf-8"
    )
    for name, stored in (("app.pot", "blog.pot"), ("messages.xlf", "messages.xlf"), ("en.json", "en.json")):
        shutil.copy(CATALOGUES / stored, directory / name)
    for name in ("values", "values-ru"):
        (directory / name).mkdir()
    shutil.copy(CATALOGUES / "strings.xml", directory / "values" / "strings.xml")
    (directory / "shop.csv").write_text("name,text,en,ru\nA lamp,A red lamp.,A lamp,\n", "utf-8")
    for name, text in (("ep1.en", "Who are you?"), ("ep1.fr", "Кто ты?"), ("ep2.en", "I saw you.")):
        cue = f"1\n00:00:01,000 --> 00:00:02,000\n{text}\n"
        (directory / f"{name}.srt").write_text(cue, "utf-8")
    (directory / "manual.txt").write_text("Who are you?\n", "utf-8")
    (directory / "style.tsv").write_text("Who are you?\tКто вы?\n", "utf-8")
    unit = "".join(
        f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>'
        for code, text in (("en", "A lamp."), ("ru", "Лампа."))
    )
    head = '<header srclang="en" segtype="sentence" datatype="plaintext"/>'
    (directory / "old.tmx").write_text(
        f'<tmx version="1.4">{head}<body><tu>{unit}</tu></body></tmx>', "utf-8"
    )


def _run(command: str, directory: Path) -> "subprocess.CompletedProcess[str]":
    """Run a line of the shell; of a process of its own cadec has need only where it starts others."""
    before, _, last = command.rpartition(" | ")
    state = {"XDG_STATE_HOME": str(directory / "state"), "COLUMNS": "110", "OMP_NUM_THREADS": "1"}
    if not last.startswith("cadec "):
        return _shell(command, directory, state)
    if "--workers" in last:
        return _shell(f"{sys.executable} -m cadec_cli {last.removeprefix('cadec ')}", directory, state)
    given = _shell(before, directory, state).stdout if before else ""
    words = [
        name
        for word in shlex.split(last)[1:]
        for name in (
            sorted(path.relative_to(directory).as_posix() for path in directory.glob(word))
            if "*" in word
            else [word]
        )
    ]
    with contextlib.chdir(directory):
        return cadec(*words, stdin=given, **state)


def _shell(line: str, directory: Path, state: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["bash", "-c", line],
        cwd=directory,
        env=os.environ | state,
        capture_output=True,
        text=True,
        input="",
    )


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if sessions(page)])
def test_commands_say_what_the_page_shows(page: str, files: Path) -> None:
    for session in sessions(page):
        for shown in session:
            done = _run(shown.command, files)
            assert done.returncode == 0, (shown.command, done.stderr)
            # Scores may differ in the last place from machine to machine; words may not.
            words = [re.sub(r"[-+]?\d+\.\d+", "…", text).split() for text in (done.stdout, shown.output)]
            assert words[0] == words[1], shown.command


def test_real_output_is_shown_where_it_is_promised() -> None:
    assert {"README.md", "repl.md"} <= {page for page in PAGES if sessions(page)}


@pytest.mark.slow
def test_the_commands_that_need_no_training_run(files: Path) -> None:
    """On tiny files, with the embedded bundle; nothing may be saved into that."""
    run = {
        # Other bundles are what `models pull`, `convert` or training would have made.
        re.sub(r" --bundle \S+| --resume", "", line): line
        for page in RUN
        for line in commands(page)
        if command_of(line) in NEED_NO_TRAINING and not line.startswith("tail -f")
    }
    assert len(run) >= 15
    for short, line in run.items():
        done = _run(short.replace("cadec tune", "cadec tune --no-save --nbest 4 -T 1 -T 4"), files)
        assert done.returncode == 0, (line, done.stderr)
        assert "no multi-BLEU" not in done.stderr or "--ref" not in line, line


def test_what_is_to_be_read_of_the_project_is_in_its_source_distribution() -> None:
    packed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]
    assert {path.name for path in ROOT.glob("*.md")} | {"docs", "examples"} <= set(packed["sdist"]["include"])
