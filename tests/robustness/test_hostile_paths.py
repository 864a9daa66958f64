"""What lies where cadec keeps its work and is none of it; and what a text or a model says to a terminal."""

import io
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cadec_cli.errors import CadecError
from cadec_cli.jobs.journal import Journal
from cadec_cli.main import exit_code
from cadec_cli.terminal.console import shown_result, write_result
from cadec_cli.text.pipeline import TextPipeline
from tests.helpers.repl_parts import SENTENCES, tiny_bundle

FAST = ["--nbest", "2", "--compute-type", "float32", "--threads", "1"]
JOURNAL = "out.txt.cadec-journal"

Run = Callable[..., int]


@pytest.fixture(scope="module")
def bundle(english: TextPipeline, russian: TextPipeline, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bundle(tmp_path_factory.mktemp("hostile"), english, russian)


@pytest.fixture
def run(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text(SENTENCES[0] + "\n")
    return lambda *more: exit_code(["translate", "a.txt", "-b", str(bundle), *FAST, "-q", *more])


def directory(path: Path) -> None:
    path.mkdir()


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link_to_nowhere(path: Path) -> None:
    path.symlink_to("elsewhere")


@pytest.mark.parametrize("made", [directory, pipe, link_to_nowhere])
@pytest.mark.parametrize("flags", [[], ["--resume"], ["--force"]])
def test_a_journal_that_is_none_is_left_alone(
    run: Run, made: Callable[[Path], None], flags: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    made(Path(JOURNAL))
    before = Path(JOURNAL).lstat().st_mode
    assert run("-o", "out.txt", *flags) == 1
    assert "is not a plain file" in capfd.readouterr().err
    assert Path(JOURNAL).lstat().st_mode == before
    assert not Path("elsewhere").exists() and not Path("out.txt").exists()


@pytest.mark.parametrize("flags", [["--max-input", "5"], ["--output-encoding", "ascii"]])
def test_what_is_started_over_stays_until_it_is(run: Run, flags: list[str]) -> None:
    Path(JOURNAL).write_text("unfinished\n")
    assert run("-o", "out.txt", "--force", *flags) != 0
    assert Path(JOURNAL).read_text() == "unfinished\n"
    assert run("-o", "out.txt", "--force") == 0
    assert Path("out.txt").exists() and not Path(JOURNAL).exists()


def test_what_somebody_else_wrote_is_not_taken_for_a_journal_that_was_cut_short(tmp_path: Path) -> None:
    path = tmp_path / JOURNAL
    path.write_text("precious")
    with pytest.raises(CadecError, match="is damaged"):
        Journal.resume(path, {"input": "a"})
    assert path.read_text() == "precious"


def test_every_beginning_of_a_journal_is_one_that_was_cut_short(tmp_path: Path) -> None:
    path = tmp_path / JOURNAL
    with pytest.raises(KeyboardInterrupt), Journal.begin(path, {"input": "a"}) as journal:
        journal.add(0, 0, "kept, so that it stays")
        raise KeyboardInterrupt
    header = path.read_bytes().splitlines(keepends=True)[0]
    for end in range(len(header)):
        path.write_bytes(header[:end])
        with Journal.resume(path, {"input": "a"}) as journal:
            assert not journal.outputs
            journal.finish()


@pytest.mark.parametrize("name", ["x" * 300, "x/" * 900 + "y", "x/" * 900])
def test_a_place_that_can_not_be_is_one_clear_error(
    run: Run, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run("-o", name) == 1
    assert "too long" in capfd.readouterr().err
    assert [path.name for path in Path().iterdir()] == ["a.txt"]


class Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


HOSTILE = "\x1b[31mred\x1b]0;title\x07 \x9b2J\ttab\nnext\r\n\x00end\x7f\n"


def test_a_terminal_is_shown_what_a_pipe_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in (io.TextIOWrapper, Terminal):
        written = io.BytesIO()
        monkeypatch.setattr("sys.stdout", stream(written, "utf-8"))
        write_result(HOSTILE.encode())
        shown = written.getvalue().decode()
        if stream is not Terminal:
            assert shown == HOSTILE
    assert shown == shown_result(HOSTILE) == "␛[31mred␛]0;title␇ �2J\ttab\nnext\n␀end�\n"
    assert shown_result("Привет, мир!\t→ ok\n") == "Привет, мир!\t→ ok\n"
