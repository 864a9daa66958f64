"""The manners of the command line, whatever the command: exit codes, streams, colours, messages."""

import io
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console

from cadec_cli import __version__
from cadec_cli.errors import CadecError, UsageError
from cadec_cli.main import app, exit_code
from cadec_cli.terminal import console

CADEC = [sys.executable, "-m", "cadec_cli"]
RED = "\x1b[1;31m"


def cadec(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own, without colours unless asked for."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "NO_COLOR")}
    return subprocess.run(
        [*CADEC, *arguments], capture_output=True, text=True, env={**inherited, **environment}, timeout=300
    )


def test_a_message_that_quotes_a_line_without_end_has_one() -> None:
    drawn = Console(width=120, file=io.StringIO())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(console, "stderr", drawn)
        console.error("no film: " + "[" * 100_000, "x" * 100_000)
    assert isinstance(drawn.file, io.StringIO)
    assert len(drawn.file.getvalue()) < 5000


def test_a_progress_bar_shows_names_as_they_are() -> None:
    evil = "a[ru]\x1b]0;title\x07[/x].txt"
    drawn = Console(force_terminal=True, width=120, file=io.StringIO())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(console, "stderr", drawn)
        assert list(console.track([1], evil, 1)) == [1]
    assert isinstance(drawn.file, io.StringIO)
    assert "a[ru]␛]0;title␇[/x].txt" in drawn.file.getvalue()


@pytest.mark.parametrize(
    ("terminal", "quiet", "shown"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_loading_is_shown_on_a_terminal_while_it_lasts(terminal: bool, quiet: bool, shown: bool) -> None:
    drawn = Console(force_terminal=terminal, width=120, file=io.StringIO())
    assert isinstance(drawn.file, io.StringIO)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(console, "stderr", drawn)
        console.set_quiet(quiet)
        with console.loading("the D-LM"):
            drawn.print("here") if terminal else None  # what is said meanwhile stands above it
            with console.loading("its weights"):  # one at a time
                pass
        written = drawn.file.getvalue()
        assert ("loading the D-LM …" in written) == shown
        assert "its weights" not in written
        assert not shown or written.endswith("\x1b[2K")  # nothing is left of it
        assert list(console.track([1, 2], "after it", 2)) == [1, 2]


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """All commands that can be called, as the words one types."""
    below = getattr(command, "commands", None)
    if below is None:
        yield path
        return
    for name, one in below.items():
        yield from commands(one, (*path, name))


COMMANDS = list(commands(typer.main.get_command(app)))


@pytest.fixture(autouse=True)
def restored_console() -> Iterator[None]:
    yield
    console.set_quiet(False)
    console.set_debug(False)


def test_there_are_commands() -> None:
    assert {("train", "lm"), ("prepare", "text")} <= set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_has_an_example(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    for flag in ("--help", "-h"):
        assert exit_code([*command, flag]) == 0
        shown = capsys.readouterr()
        assert f"Example: cadec {' '.join(command)}" in re.sub(r"\s+", " ", shown.out)
        assert shown.err == ""


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(["--version"]) == 0
    assert capsys.readouterr() == (f"cadec {__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["train", "nonsense"], "No such command 'nonsense'"),
        (["train", "lm"], "--output"),
        (["train", "lm", "--nonsense"], "--nonsense"),
        (["train", "lm", "-o", "x", "--seed", "many"], "--seed"),
    ],
)
def test_usage_errors_end_with_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err
    assert "Traceback" not in shown.err


def test_columns_are_numbers(english_directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for columns in ("a,b", "0", "1,", "-1"):
        arguments = ["prepare", "text", "a.tsv", "-o", "x", "-p", str(english_directory)]
        assert exit_code([*arguments, f"--columns={columns}"]) == 2
        assert "--columns" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["train"], ["prepare"]])
def test_no_command_shows_the_help(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(arguments) == 2
    assert "Usage: cadec" in "".join(capsys.readouterr())


def test_a_failure_is_one_line_and_a_hint_on_stderr() -> None:
    done = cadec("prepare", "text", "a.txt", "-o", "x", "-p", "nowhere")
    assert (done.returncode, done.stdout) == (1, "")
    first, second = done.stderr.splitlines()
    assert first.startswith("error: nowhere is not a text pipeline")
    assert second.startswith("hint: ")


def test_errors_are_red_where_colours_are_wanted() -> None:
    failing = ("train", "truecaser", "nowhere.txt", "-l", "en", "-o", "x")
    assert RED in cadec(*failing, FORCE_COLOR="1").stderr
    assert "\x1b[" not in cadec(*failing).stderr
    assert RED not in cadec(*failing, FORCE_COLOR="1", NO_COLOR="1").stderr


def test_debug_shows_where_it_failed() -> None:
    failing = ("train", "truecaser", "nowhere.txt", "-l", "en", "-o", "x")
    for arguments in (("--debug", *failing), (*failing, "--debug")):
        done = cadec(*arguments)
        assert done.returncode == 1
        assert "Traceback" in done.stderr
        assert "CadecError" in done.stderr


@pytest.mark.parametrize(
    ("failure", "code", "message"),
    [
        (CadecError("[red]so[/red]", "do [this]"), 1, "error: [red]so[/red]\nhint: do [this]\n"),
        (CadecError("so"), 1, "error: so\n"),
        (UsageError("so", "do [this]"), 2, "error: so\nhint: do [this]\n"),
        (RuntimeError("odd"), 1, "error: RuntimeError: odd\nhint: this is a bug in cadec"),
        (KeyboardInterrupt(), 130, ""),
        (typer.Exit(130), 130, ""),
        (typer.Exit(0), 0, ""),
    ],
)
def test_whatever_a_command_raises_has_its_exit_code(
    failure: BaseException, code: int, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    def failing() -> None:
        raise failure

    app.command("fail")(failing)
    try:
        assert exit_code(["fail"]) == code
    finally:
        app.registered_commands.pop()
    shown = capfd.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(message)
    assert "Traceback" not in shown.err


def test_results_on_stdout_and_the_rest_on_stderr(tmp_path: Path) -> None:
    film = tmp_path / "ru" / "2001" / "7" / "1.xml"
    film.parent.mkdir(parents=True)
    stamps = '<time id="T1S" value="00:00:01,000" />{}<time id="T1E" value="00:00:02,000" />'
    film.write_text(f'<document><s id="1">{stamps.format("[red]Да[/red]")}</s></document>')
    arguments = ("prepare", "opensubtitles", str(tmp_path), "--language", "ru", "-o", "-")
    done = cadec(*arguments)
    assert (done.returncode, done.stdout) == (0, "[red]Да[/red]\n")
    assert "wrote 1 sentences" in done.stderr
    assert "\x1b" not in done.stderr
    quiet = cadec(*arguments, "--quiet")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, done.stdout, "")


def test_a_closed_pipe_ends_quietly() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run([*CADEC, "train", "lm", "--help"], stdout=closed, stderr=subprocess.PIPE)
    assert done.stderr == b""
    assert done.returncode in (0, 1)


@pytest.mark.parametrize("processes", ["1", "2"])
def test_an_interrupted_command_ends_with_130_and_writes_nothing(
    tmp_path: Path, english_directory: Path, processes: str
) -> None:
    output = tmp_path / "out" / "corpus"
    arguments = ["prepare", "text", "-", "-o", str(output), "-p", str(english_directory)]
    running = subprocess.Popen(
        [*CADEC, *arguments, "--processes", processes],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        # Where the tests run in the background, SIGINT may be ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert running.stdin
    running.stdin.write(b"Tom took it.\n" * 1000)
    running.stdin.flush()
    deadline = time.monotonic() + 300
    while not (output.parent.exists() and any(output.parent.iterdir())) and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(0.5)  # while the processes start
    os.killpg(running.pid, signal.SIGINT)  # as a terminal does
    out, err = running.communicate(timeout=300)
    assert (running.returncode, out) == (130, b"")
    assert err == b"interrupted\n"
    assert list(output.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("typed", "expected"),
    [("cadec tr", {"train"}), ("cadec train l", {"lm"}), ("cadec prepare ", {"text", "opensubtitles"})],
)
def test_the_shell_completes_commands(typed: str, expected: set[str]) -> None:
    count = len(typed.split()) - (not typed.endswith(" "))
    done = cadec(_CADEC_COMPLETE="complete_bash", COMP_WORDS=typed, COMP_CWORD=str(count))
    assert expected <= set(done.stdout.split())
    assert done.returncode == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_shown(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Typer would look for the shell that runs the tests, which may be make's.
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    done = cadec("--show-completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert "_CADEC_COMPLETE" in done.stdout
