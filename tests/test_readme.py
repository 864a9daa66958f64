"""What the README shows works: its Python, its commands in short variants, its list of commands."""

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from shown_commands import KNOWN, command_of, unknown_options

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
SHOWN = [
    re.split(r"\s{2,}", line)[0].strip()
    for line in re.findall(r"^    (?:\$ )?((?:cat .*\| |printf .*\| )?cadec .*)$", README, re.M)
]


def test_the_example_of_the_python_interface_runs() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(example, "README.md", "exec"), {})
    assert len(output.getvalue().splitlines()) == 2


def test_the_list_of_commands_is_that_of_the_help() -> None:
    rows = dict(re.findall(r"^\| `cadec ([a-z0-9 -]+)` \| (.*) \|$", README, re.M))
    told = {name: " ".join((command.help or "").split("\n\n")[0].split()) for name, command in KNOWN.items()}
    assert rows == told


def test_the_tree_is_that_of_the_files() -> None:
    (tree,) = re.findall(r"^## The tree\n\n((?:    .*\n)+)", README, re.M)
    folders: list[str] = []
    named = []
    for line in tree.splitlines():
        depth = (len(line) - len(line.lstrip()) - 4) // 2
        for name in re.split(r" {2,}", line.strip())[: 1 if depth < 1 or ".py" not in line else None]:
            if name.endswith("/"):
                folders[depth:] = [name]
            if name.endswith(("/", ".py")):
                named.append("".join(folders[:depth]) + name)
    assert len(named) > 25
    assert not [name for name in named if not (ROOT / name).exists()]
    packages = {f"cadec_cli/{path.name}/" for path in (ROOT / "cadec_cli").iterdir() if path.is_dir()}
    modules = {f"cadec_cli/{path.name}" for path in (ROOT / "cadec_cli").glob("*.py")}
    missing = (packages | modules) - set(named) - {"cadec_cli/__pycache__/", "cadec_cli/__main__.py"}
    assert missing <= {"cadec_cli/api.py"}


def test_every_command_shown_exists_with_its_options() -> None:
    assert {"translate", "repl", "eval-contrastive", "tune", "train lm", "convert"} <= set(
        map(command_of, SHOWN)
    )
    for line in SHOWN:
        if "--install-completion" in line or "--help" in line:
            continue
        assert not unknown_options(line), line


def test_every_command_of_the_page_on_scale_exists_with_its_options() -> None:
    page = (ROOT / "docs" / "scale.md").read_text("utf-8")
    lines = re.findall(r"cadec (?:translate|convert) [^'`\n]*", page)
    assert len(lines) > 6
    assert {line: unknown_options(line) for line in lines if unknown_options(line)} == {}
    trained = re.findall(r"-m cadec_cli (train lm [^`\n]*)", page)
    assert trained and not any(unknown_options(f"cadec {line}") for line in trained)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Everything the README's short commands read, with little in it."""
    english, russian = "Who are you?\nI saw you yesterday.\n", "Кто ты?\nЯ видел тебя вчера.\n"
    for name in ("a.txt", "b.txt", "letter.txt", "talk.txt", "book.txt", "film.txt", "dev.en"):
        (tmp_path / name).write_text(english, "utf-8")
    for name in ("out.ru", "ref.ru", "sentence.ru", "dev.ru"):
        (tmp_path / name).write_text(russian, "utf-8")
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
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("*.svg"))
    return tmp_path


def test_the_repl_says_what_the_readme_shows(tmp_path: Path) -> None:
    (shown,) = re.findall(r"^    \$ (printf .*\| )cadec repl\n((?:    .*\n)+)", README, re.M)
    command, expected = shown
    state = {"XDG_STATE_HOME": str(tmp_path), "COLUMNS": "110"}
    done = subprocess.run(
        ["bash", "-c", f"{command}{sys.executable} -m cadec_cli repl"],
        cwd=tmp_path,
        env=os.environ | state,
        capture_output=True,
        text=True,
        check=True,
    )
    # Scores may differ in the last place from machine to machine; words may not.
    words = [re.sub(r"[-+]?\d+\.\d+", "…", text).split() for text in (done.stdout, expected)]
    assert words[0] == words[1]


@pytest.mark.slow
def test_the_commands_that_need_no_training_run(files: Path) -> None:
    """On tiny files, with the embedded bundle; nothing may be saved into that."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    state = {"XDG_STATE_HOME": str(files / "state"), "PATH": path, "OMP_NUM_THREADS": "1"}
    run = [
        line
        for line in SHOWN
        if command_of(line) in ("translate", "evaluate", "eval-contrastive", "tune", "repl")
    ]
    assert len(run) >= 8
    for line in run:
        short = line.replace("cadec tune", "cadec tune --no-save --nbest 4 -T 1 -T 4")
        # my-bundle is what the training commands would have made
        short = short.replace(" --bundle my-bundle", "").replace(" --resume", "")
        done = subprocess.run(
            ["bash", "-c", short], cwd=files, env=os.environ | state, capture_output=True, text=True, input=""
        )
        assert done.returncode == 0, (line, done.stderr)


def test_what_is_to_be_read_of_the_project_is_in_its_source_distribution() -> None:
    packed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]
    assert {path.name for path in ROOT.glob("*.md")} <= set(packed["sdist"]["include"])
