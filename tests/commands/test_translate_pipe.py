"""`cadec translate` on a pipe: what is complete is written at once, and all of it is what a file gives."""

import io
import json
import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import pytest
from rich.console import Console

from cadec_cli.fs import read
from cadec_cli.main import exit_code
from cadec_cli.terminal import console
from tests.helpers import made_up_pair
from tests.helpers.run_in_process import cadec

FAST = ["--nbest", "4", "--compute-type", "float32", "--threads", "1"]
FIGURE = re.compile(r"[-+]?\d+\.\d+(?:e-\d+)?")
PATIENCE = 300  # seconds: the machine may be busy


def test_a_paragraph_is_answered_while_the_pipe_is_open(made_up_bundle: Path) -> None:
    running = subprocess.Popen(
        [sys.executable, "-m", "cadec_cli", "translate", "-b", str(made_up_bundle), *FAST],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        # Where the tests run in the background, SIGINT may be ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert running.stdin and running.stdout
    try:
        for asked, answer in (
            (b"hello friend.\n\n", b"Salu ami.\n\n"),
            (b"the lamp is red.\n", b"La lampo esta ruga.\n"),
        ):
            running.stdin.write(asked)
            got = b""
            while len(got) < len(answer):
                assert select.select([running.stdout], [], [], PATIENCE)[0], "nothing came"
                got += os.read(running.stdout.fileno(), 100)
            assert got == answer
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=PATIENCE)
    finally:
        running.kill()
    assert (running.returncode, out, err) == (130, b"", b"interrupted: 2 sentences were written\n")


@pytest.fixture(params=["a line at a time", "all at once"])
def pipe(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard input of the tests in this process: it comes in small bits, or all of it is there."""
    if request.param == "a line at a time":
        monkeypatch.setattr(read, "_BLOCK", 40)
        monkeypatch.setattr(read.TextStream, "waiting", lambda stream: False)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three documents of the made-up language, and a line of code."""
    path = tmp_path_factory.mktemp("text") / "in.txt"
    documents = ["".join(f"{source}\n" for source, _ in one) for one in made_up_pair.documents(3, 4)]
    path.write_text("\n".join([*documents[:2], "```\nx = 1\n\n```\n", documents[2].rstrip()]))
    return path


def assert_alike(one: str, other: str) -> None:
    """The last digits of scores depend on what is computed together; nothing else does."""
    assert FIGURE.split(one) == FIGURE.split(other)
    figures = [[float(figure) for figure in FIGURE.findall(text)] for text in (one, other)]
    assert figures[0] == pytest.approx(figures[1], abs=0.011)


@pytest.mark.usefixtures("pipe")
@pytest.mark.parametrize(
    "flags",
    [
        *("", "--lines", "--search lattice", "--search sentence", "--search beam --beam 2"),
        *("--compare --explain", "--json", "--flag-below 1 --after {after}", "--output-encoding utf-8-sig"),
    ],
)
def test_a_pipe_gives_what_a_file_gives(made_up_bundle: Path, text: Path, tmp_path: Path, flags: str) -> None:
    after = tmp_path / "after.txt"
    after.write_text("Bondia senor.\n")
    command = ["translate", "-b", made_up_bundle, *FAST, *flags.format(after=after).split()]
    expected = cadec(*command, stdin=text.open("rb"))
    found = cadec(*command, stdin=text.read_text())
    assert found.returncode == expected.returncode == 0
    assert_alike(found.stdout, expected.stdout)
    assert_alike(found.stderr, expected.stderr)
    assert found.stdout.count("\n") > 20


@pytest.mark.usefixtures("pipe")
def test_json_lines_on_a_pipe_and_their_report(made_up_bundle: Path, text: Path, tmp_path: Path) -> None:
    lines = tmp_path / "in.jsonl"
    with lines.open("w") as out:
        for number, document in enumerate(text.read_text().split("\n\n")):
            out.writelines(
                json.dumps({"text": line, "document": number}) + "\n" for line in document.splitlines()
            )
        out.write(json.dumps({"sentences": ["you see the lamp.", "", "you want it."]}))
    pages = []
    results = []
    for name, given in (("file", lines.open("rb")), ("pipe", io.BytesIO(lines.read_bytes()))):
        page = tmp_path / f"{name}.html"
        command = ("translate", "-b", made_up_bundle, *FAST, "--format", "jsonl", "--report", page)
        results.append(cadec(*command, stdin=given))
        pages.append(page.read_text("utf-8"))
    assert results[0].stdout == results[1].stdout and results[0].stdout.count('"translation"') > 15
    assert_alike(*pages)


@pytest.mark.usefixtures("pipe")
def test_what_comes_before_a_bad_byte_is_written(made_up_bundle: Path) -> None:
    given = io.BytesIO(b"hello friend.\n\nthe lamp is red.\nhe\xffllo.\n")
    done = cadec("translate", "-b", made_up_bundle, *FAST, stdin=given)
    assert done.stdout == "Salu ami.\n\nLa lampo esta ruga.\n"
    assert done.returncode == 1 and "standard input: line 4 is not utf-8 (byte 0xff)" in done.stderr


def test_a_reader_that_has_gone_ends_it_quietly(
    made_up_bundle: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (given, giving), (taking, taken) = os.pipe(), os.pipe()
    os.write(giving, b"hello friend.\n")  # and more would come
    os.close(taking)
    with (
        os.fdopen(given) as stdin,
        os.fdopen(taken, "w") as stdout,
        patch("sys.stdin", stdin),
        patch("sys.stdout", stdout),
    ):
        assert exit_code(["translate", "-b", str(made_up_bundle), *FAST]) == 0
    os.close(giving)
    assert capfd.readouterr().err == ""


def test_a_file_on_standard_input_is_there_already(text: Path) -> None:
    reading, writing = os.pipe()
    with text.open() as file, os.fdopen(reading) as pipe, os.fdopen(writing, "w"):
        for stdin, bit_by_bit in ((file, False), (pipe, True), (None, False)):
            with patch("sys.stdin", stdin):
                assert read.is_streamed(Path("-")) is bit_by_bit
        assert not read.is_streamed(text)


def test_progress_without_an_end_counts_and_promises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for total, told in ((None, False), (9, True)):
        shown = Console(file=io.StringIO(), force_terminal=True, width=100)
        monkeypatch.setattr(console, "stderr", shown)
        assert list(console.track([1, 2, 3], "translate", total, "sentences")) == [1, 2, 3]
        drawn = shown.file.getvalue()  # type: ignore[attr-defined]
        assert "translate" in drawn and ("left" in drawn) is told and "/?" not in drawn
