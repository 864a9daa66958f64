"""Whatever a command is given, it answers with a result or one clear error, and never with a bug message.

What concerns a process (its streams, its environment) runs in one; the rest runs here.
"""

import gzip
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

from cadec_cli.errors import CadecError
from cadec_cli.fs.atomic import write_json
from cadec_cli.fs.paths import cache_directory, expand_user
from cadec_cli.fs.read import read_json
from cadec_cli.main import _failure
from cadec_cli.terminal.console import SafeConsole, visible, visible_lines
from cadec_cli.text.formats.layout import Source
from cadec_cli.text.formats.plain import read_plain
from cadec_cli.training.presets import load_preset
from cadec_cli.validation import is_showable
from tests.helpers.bundle_parts import write_manifest
from tests.helpers.run_in_process import cadec
from tests.helpers.shown_commands import KNOWN

EMBEDDED = Path(__file__).parents[2] / "cadec_cli" / "embedded"
HOSTILE = "\x1b[31m\x1b]0;owned\x07\x9b2J\u202egnp\x08"
# What a terminal obeys, or what turns the order of a line around.
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def one_error(done: "subprocess.CompletedProcess[str]", code: int = 1) -> str:
    """What a command said that failed as it should: an error, perhaps a hint, and no bug."""
    assert done.returncode == code, done.stderr
    assert "bug in cadec" not in done.stderr
    assert "Traceback" not in done.stderr
    return " ".join(done.stderr.replace("│", " ").split())


# Commands that read whole texts; {packed} unpacks to more than it may.
READERS = {
    "translate": "{packed}",
    "beam": "{packed}",
    "repair": "{packed}",
    "rerank": "{packed}",
    "evaluate": "{text} --ref {packed}",
    "check": "{packed} {text}",
    "analyze pmi": "{text} {packed} --source-lm {here} --target-lm {here} --csv {here}/out",
    "tune": "{text} --ref {packed} --no-save --no-plot",
    "eval-contrastive": "{packed}",
    "eval-generative": "{packed}",
    "score-contrastive": "{packed}",
    "bench": "--text {packed}",
    "convert": "{bundle} --lengths-from {text} {packed} -o {here}/out",
}


@pytest.mark.parametrize("command", READERS)
def test_whole_texts_are_bounded(command: str, tmp_path: Path) -> None:
    packed, text = tmp_path / "a.txt.gz", tmp_path / "b.txt"
    packed.write_bytes(gzip.compress(b"0 ||| a ||| b ||| -1\n" * 2000))
    text.write_text("a\n", "utf-8")
    given = READERS[command].format(packed=packed, text=text, here=tmp_path, bundle=EMBEDDED).split()
    said = one_error(cadec(*command.split(), *given, "--max-input", "10kB"))
    assert f"{packed}, decompressed, is larger than 10kB" in said
    assert "--max-input 20kB" in said


def test_standard_input_is_bounded_too() -> None:
    said = one_error(cadec("translate", "--format", "srt", "--max-input", "100B", stdin="word " * 50))
    assert "standard input is larger than 100B" in said


def test_every_command_with_the_limit_is_among_them() -> None:
    with_it = {name for name, one in KNOWN.items() if any("--max-input" in p.opts for p in one.params)}
    assert with_it == {*READERS, "repl"}  # whose files are opened inside


@pytest.mark.parametrize("size", ["", "0", "-1MB", "10 potatoes", "1e9", "9" * 30, "NaN", "0.0001kB"])
def test_what_is_no_size(size: str) -> None:
    assert "--max-input" in one_error(cadec("translate", "--max-input", size), 2)


# One line out for every one in.

LINES = st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=8))
BREAKS = st.text(st.sampled_from("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029ab "), max_size=8)


@given(LINES, BREAKS, st.booleans())
def test_a_model_that_emits_line_breaks_adds_no_lines(lines: list[str], emitted: str, whole: bool) -> None:
    text = "\n".join(lines)
    documents, layout = read_plain(Source(text, name="a", format="text", language="en", lines=whole))
    sentences = sum(len(document) for document in documents)
    restored = "".join(layout.restore(f"x{emitted}y" for _ in range(sentences)))
    assert restored.count("\n") == text.count("\n")
    assert len(restored.splitlines()) <= len(text.splitlines()) + (not text)


def test_rerank_writes_one_line_per_sentence(tmp_path: Path) -> None:
    texts = [f"Да{ending}нет.\ud800" for ending in "\n\r\v\f\x1c\x85\u2028\u2029"]
    nbest = tmp_path / "a.jsonl"
    records = ({"source": "Yes.", "hypotheses": [{"text": text, "log_prob": -1}]} for text in texts)
    nbest.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    done = cadec("rerank", nbest)
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["Да нет.?"] * len(texts)


# Nothing that commands a terminal reaches one.


@given(st.text())
def test_a_console_obeys_nothing(name: str) -> None:
    shown = io.StringIO()
    table = Table(title=Text(name))
    table.add_column(Text(name))
    table.add_row(Text(name), Text(name, "bold"))
    out = SafeConsole(file=shown, width=60, color_system=None)
    out.print(table)
    out.print(Text(name), soft_wrap=True)
    out.print(name, markup=False)
    assert not OBEYED.search(shown.getvalue())
    assert not OBEYED.search(visible_lines(name))
    assert len(f"{visible(name)}.".splitlines()) == 1


def test_what_may_be_shown_is_one_question() -> None:
    """Persian words and emoji have joiners in them, and mean what is seen of them."""
    for name in ("می\u200cخواهم.txt", "\U0001f469\u200d\U0001f4bb.srt"):
        assert is_showable(name) and visible(name) == name
    assert visible("\u202egpj.exe\x1b") == "\ufffdgpj.exe␛"


def _linked(source: str, target: str) -> None:
    """A second name for a file, or a copy where that has to be on another disk."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with names full of escapes: a bundle's in its manifest too; and one that is not UTF-8."""
    monkeypatch.chdir(tmp_path)
    bundle = tmp_path / f"bundle{HOSTILE}"
    shutil.copytree(EMBEDDED, bundle, copy_function=_linked)
    manifest = json.loads((bundle / "bundle.json").read_text("utf-8"))
    (bundle / "bundle.json").unlink()
    write_manifest(bundle, {**manifest, "name": f"bundle{HOSTILE}"})
    (tmp_path / f"text{HOSTILE}.txt").write_text("Да.\nНет.\n", "utf-8")
    (tmp_path / os.fsdecode(b"\xff.txt")).write_text("Да.\nНет.\n", "utf-8")
    return tmp_path


@pytest.mark.parametrize(
    "line",
    [
        "evaluate text --pmi --bundle bundle",
        "evaluate text --ref text --baseline bytes --samples 2",
        "info bundle",
        "info text",
        "translate nothing",
        "translate text --bundle text",
        "translate text --compare",
        "translate text --flag-below 1",
        "translate --search text",
        "eval-contrastive text",
        "rerank text",
        "evaluate bytes --ref nothing",
        "convert --nmt nothing -o out",
        "train lm --data bytes --dev bytes -o out",
        "train lm --preset nothing",
    ],
)
def test_names_of_files_command_nothing(line: str, hostile: Path) -> None:
    names = {
        "bundle": f"bundle{HOSTILE}",
        "text": f"text{HOSTILE}.txt",
        "nothing": f"nothing{HOSTILE}",
        "bytes": os.fsdecode(b"\xff.txt"),
    }
    done = cadec(*(names.get(word, word) for word in line.split()))
    assert "bug in cadec" not in done.stderr
    assert not OBEYED.search(done.stdout), repr(done.stdout)
    assert not OBEYED.search(done.stderr), repr(done.stderr)


@pytest.mark.filterwarnings("ignore:Glyph")
def test_pictures_have_names_of_any_bytes(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    import numpy as np

    from cadec_cli.evaluation.pmi.analysis import PMI, Panel
    from cadec_cli.reports.pmi import draw_panels

    points = np.array([0.0, 1.0, 2.0])
    panel = Panel(os.fsdecode(b"\xff\x1b[31m$.txt"), PMI, "own", points, points, np.arange(3))
    draw_panels([(panel, panel)] * 2, [panel], tmp_path / "a.svg", source="en", target="ru")
    assert not OBEYED.search((tmp_path / "a.svg").read_text("utf-8"))


# Values that nobody can mean.


@pytest.mark.parametrize(
    "line",
    [
        f"translate --threads {10**30}",
        "translate --threads 100000",
        f"translate --nbest {10**30}",
        f"translate --beam {10**18}",
        f"translate --context {10**30}",
        f"translate --paths {10**9}",
        f"translate --max-lines {10**9}",
        f"translate --beam {'9' * 5000}",
        f"evaluate a --ref b --samples {10**12}",
        f"evaluate a --ref b --seed {10**30}",
        f"bench --documents {10**30}",
        f"train tokenizer a -l en -o b --processes {10**6}",
    ],
)
def test_numbers_that_nobody_can_mean(line: str) -> None:
    assert "Invalid value for '--" in one_error(cadec(*line.split()), 2)


@pytest.mark.parametrize(
    "line",
    [
        ("translate", ""),
        ("translate", "a", "-o", ""),
        ("translate", "a", "--bundle", ""),
        ("translate", "a", "--after", ""),
        ("repair", "a", "-o", ""),
        ("rerank", ""),
        ("evaluate", "a", "--ref", ""),
        ("train", "lm", "--data", "", "--dev", "", "-o", ""),
        ("convert", "-o", ""),
        ("info", ""),
    ],
)
def test_an_empty_path_is_none(
    line: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_text("Hello.\n", "utf-8")
    assert "the path must not be empty" in one_error(cadec(*line), 2)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("content", [b"a = " + b"[" * 5000 + b"]" * 5000, b"a = \xff", b"a = 1\0"])
def test_presets_that_are_none(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(content)
    with pytest.raises(CadecError, match=r"a\.toml"):
        load_preset("lm", str(tmp_path / "a.toml"))


@pytest.mark.parametrize(
    "content",
    [
        b'{"text": "Hello.", "x": ' + b"[" * 900 + b"]" * 900 + b"}",
        b'{"text": "Hello.", "x": ' + b"[" * 100_000 + b"}",
        b'{"text": "Hello.", "x": ' + b"9" * 5000 + b"}",
    ],
)
def test_json_lines_that_are_none(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(content)
    assert "a.jsonl, line 1 is not JSON" in one_error(cadec("translate", tmp_path / "a.jsonl"))


def test_json_records_paths_of_any_bytes(tmp_path: Path) -> None:
    name = os.fsdecode(b"data\xff")
    write_json(tmp_path / "a.json", {"data": name, "слово": "да"})
    assert read_json(tmp_path / "a.json") == {"data": name, "слово": "да"}
    assert "слово" in (tmp_path / "a.json").read_text("utf-8")


def test_too_little_memory_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert _failure(MemoryError()) == 1
    said = capsys.readouterr().err
    assert "not enough memory" in said
    assert "bug" not in said


# Homes, and standard streams.


@pytest.mark.parametrize("home", [None, "", "relative"])
def test_a_home_that_is_none_is_not_made_up(home: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CADEC_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    if home is not None:
        monkeypatch.setenv("HOME", home)
    pwd = pytest.importorskip("pwd")
    assert cache_directory() == Path(pwd.getpwuid(os.getuid()).pw_dir) / ".cache" / "cadec"
    monkeypatch.setattr(os, "getuid", lambda: 1_234_567)  # of whom the system knows nothing
    with pytest.raises(OSError):
        cache_directory().mkdir(parents=True)


def test_the_home_of_nobody() -> None:
    with pytest.raises(CadecError, match="can't expand the ~"):
        expand_user("~no-such-user-here/bundle")


def in_a_shell(line: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = line.replace("cadec", f"{sys.executable} -m cadec_cli")
    return subprocess.run(
        ["sh", "-c", command], capture_output=True, encoding="utf-8", env={**os.environ, **environment}
    )


def test_closed_streams_are_said_to_be_closed(tmp_path: Path) -> None:
    assert "standard output is closed" in one_error(in_a_shell("cadec --version >&-"))
    (tmp_path / "a").write_text("a\n", "utf-8")
    assert "standard input is closed" in one_error(in_a_shell(f"cadec evaluate - --ref {tmp_path}/a <&-"))
    assert "standard input is closed" in one_error(in_a_shell("cadec repl <&-", XDG_STATE_HOME=str(tmp_path)))
    assert in_a_shell("cadec --version 2>&-").returncode == 0


def test_results_are_utf_8_in_every_locale(tmp_path: Path) -> None:
    (tmp_path / "дa.txt").write_text("Да.\n", "utf-8")
    line = f"cadec evaluate {tmp_path}/дa.txt --ref {tmp_path}/дa.txt --samples 2"
    done = in_a_shell(f"{line}; {line} --json", PYTHONIOENCODING="ascii", LC_ALL="C")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("дa.txt") == 2
    failed = in_a_shell("cadec info нет", PYTHONIOENCODING="ascii", LC_ALL="C")
    assert r"\u043d\u0435\u0442 is not a bundle" in one_error(failed)
