"""What `cadec translate -o` writes: in the format and encoding promised, over nothing; and Ctrl-C."""

import json
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cadec_cli.decoding.translator import Translator
from cadec_cli.jobs.journal import Journal
from cadec_cli.main import exit_code
from tests.helpers import made_up_pair

FAST = ["--nbest", "4", "--compute-type", "float32", "--threads", "1"]
FILM = "".join(
    f"{n}\n00:00:{n:02d},000 --> 00:00:{n:02d},900\n<i>you see the lamp.</i>\n\n" for n in range(1, 5)
)

Run = Callable[..., int]


@pytest.fixture
def run(
    made_up_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Run:
    monkeypatch.chdir(tmp_path)
    # Where tests run in the background, somebody else may have decided that Ctrl-C is not for them.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    return lambda *arguments: exit_code(["translate", "-b", str(made_up_bundle), *FAST, *arguments])


def error(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().err.split())


def test_the_name_of_the_output_says_its_format(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "film.srt").write_text(FILM)
    assert run("film.srt", "-o", "film.ru.srt") == 0
    same = (tmp_path / "film.ru.srt").read_text()
    assert run("film.srt", "-o", "{stem}.vtt") == 0
    vtt = (tmp_path / "film.vtt").read_text()
    assert vtt.startswith("WEBVTT\n\n00:00:01.000 --> 00:00:01.900\n<i>")
    times = r"(?m)^(\d+\n|WEBVTT\n\n)|^.*-->.*$"
    assert re.sub(times, "", vtt) == re.sub(times, "", same)
    assert run("film.srt", "-o", "film.jsonl") == 0
    records = [json.loads(line) for line in (tmp_path / "film.jsonl").read_text().splitlines()]
    assert [record["text"] for record in records] == ["you see the lamp."] * 4
    (tmp_path / "talk.txt").write_text("you see the lamp.\n")
    assert run("talk.txt", "-o", "talk.srt") == 1
    assert "can't become .srt" in error(capsys)
    assert run("film.srt", "-o", "{steam}.srt") == 2
    assert "{steam} is not a placeholder" in error(capsys)
    assert sorted(path.name for path in tmp_path.glob("*talk*")) == ["talk.txt"]


def test_directories_and_templates_name_outputs_and_none_is_replaced(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.srt").write_text(FILM)
    (tmp_path / "b.txt").write_text("you see the lamp.\n")
    assert run("a.srt", "b.txt", "-o", ".") == 0
    made = {path: path.read_text() for path in (tmp_path / "a.eo.srt", tmp_path / "b.eo.txt")}
    assert (tmp_path / "a.srt").read_text() == FILM
    assert run("a.srt", "b.txt", "-o", "{stem}.{to}{ext}") == 1
    assert "a.eo.srt and b.eo.txt exist already" in error(capsys)
    assert run("a.srt", "b.txt", "-o", "{stem}.{to}{ext}", "--force", "--search", "sentence") == 0
    assert all(path.read_text() for path in made)
    assert run("a.srt", "-o", "{stem}{ext}", "--force") == 1
    assert "is the input" in error(capsys) and (tmp_path / "a.srt").read_text() == FILM
    assert run("a.srt", "--force") == 2
    assert not list(tmp_path.glob("*.cadec-journal"))


@pytest.mark.parametrize("bulk", [(), ("--workers", "1")])
def test_nothing_that_is_read_is_written_over(
    bulk: tuple[str, ...], run: Run, made_up_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "you see the lamp.\n"
    for name in ("a.txt", "before.txt", "b.txt.cadec-journal", ".cadec-journal.txt"):
        (tmp_path / name).write_text(text)
    bundle = shutil.copytree(made_up_bundle, tmp_path / "bundle")
    manifest = (bundle / "bundle.json").read_bytes()

    def refused(why: str, *arguments: str) -> None:
        assert run(*arguments, *bulk, "--force") == 1 and why in error(capsys)

    refused("before.txt is the input", "a.txt", "--after", "before.txt", "-o", "before.txt")
    refused("bundle.json is the input", "a.txt", "-b", "bundle", "-o", "bundle/bundle.json")
    refused("b.txt.cadec-journal is the input", "b.txt.cadec-journal", "-o", "b.txt")
    if bulk:  # the journal of many outputs has a name that is none of theirs
        refused("are the same file", ".cadec-journal.txt", "-o", "{stem}")
    assert (bundle / "bundle.json").read_bytes() == manifest
    assert (tmp_path / "before.txt").read_text() == (tmp_path / "b.txt.cadec-journal").read_text() == text
    assert not (tmp_path / "b.txt").exists()


def test_output_is_utf_8_unless_another_encoding_is_asked_for(
    run: Run, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    source = tmp_path / "letter.txt"
    source.write_bytes("you see the lamp.\n  «é»\n".encode("latin-1"))
    assert run("letter.txt", "--encoding", "latin-1", "--lines") == 0
    text = capfdbinary.readouterr().out.decode()
    assert run("letter.txt", "--encoding", "latin-1", "--lines", "--output-encoding", "utf-16") == 0
    assert capfdbinary.readouterr().out == text.encode("utf-16")
    assert run("letter.txt", "--encoding", "latin-1", "--output-encoding", "klingon") == 2
    assert run("letter.txt", "--encoding", "latin-1", "--json", "--output-encoding", "latin-1") == 2
    captured = capfdbinary.readouterr()
    assert b"unknown encoding: klingon" in captured.err and captured.out == b""


def test_wrong_options_leave_nothing_behind(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text("you see the lamp.\n" + "you " * 600 + "\n")
    wrong = {
        "--search beam --objective bayes": 2,
        "--weight heavy": 2,
        "--temperature 0": 2,
        "--long refuse --lines": 1,  # right but for this input
    }
    for flags, code in wrong.items():
        assert run("a.txt", *flags.split(), "-o", "out.txt") == code
        assert run("a.txt", *flags.split()) == code
    assert capsys.readouterr().out == ""
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_ctrl_c_says_how_much_is_done_and_resume_goes_on(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sentences = [source for document in made_up_pair.documents(14, 3) for source, _ in document]
    (tmp_path / "a.txt").write_text("\n".join(sentences) + "\n")
    assert run("a.txt", "--lines", "-o", "whole.txt") == 0
    checkpoint = Journal.checkpoint

    def interrupted(journal: Journal, state: Any) -> None:
        checkpoint(journal, state)
        if journal.kept:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "checkpoint", interrupted)
        patch.setattr("cadec_cli.jobs.journal.SAVE_EVERY", 0)
        assert run("a.txt", "--lines", "-o", "out.txt") == 130
    told = re.search(
        rf"interrupted: (\d+) of {len(sentences)} sentences are done; .* with --resume continues",
        error(capsys),
    )
    assert told is not None and int(told[1]) > 0
    assert run("a.txt", "--lines", "-o", "out.txt", "--resume") == 0
    assert f"{told[1]} sentences are done already" in error(capsys)
    assert (tmp_path / "out.txt").read_text() == (tmp_path / "whole.txt").read_text()


def test_ctrl_c_says_how_much_was_written(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text("you see the lamp.\n" * 5)
    translate = Translator.translate_documents

    def interrupted(self: Translator, *arguments: Any, **more: Any) -> Iterator[Any]:
        for number, translation in enumerate(translate(self, *arguments, **more)):
            if number == 3:
                signal.raise_signal(signal.SIGINT)
            yield translation

    monkeypatch.setattr(Translator, "translate_documents", interrupted)
    assert run("a.txt") == 130
    captured = capfd.readouterr()
    assert "interrupted: 3 of 5 sentences were written" in " ".join(captured.err.split())
    assert captured.out.count("lampo") == 3
