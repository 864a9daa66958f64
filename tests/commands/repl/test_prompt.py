"""The REPL at a terminal, its keys sent through a pipe: editing, paste, completion, Ctrl-C and Ctrl-D."""

import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import Console

from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.load import load_models
from cadec_cli.commands.repl import views as repl_show
from cadec_cli.commands.repl.autosave import Autosave
from cadec_cli.commands.repl.commands import COMMANDS
from cadec_cli.commands.repl.lines import Repl
from cadec_cli.commands.repl.prompt import CommandCompleter, Prompt, converse, toolbar
from cadec_cli.commands.repl.views import Output
from cadec_cli.method.options import TranslationOptions
from cadec_cli.session.session import Direction, Session
from cadec_cli.terminal import console
from cadec_cli.text.pipeline import TextPipeline
from tests.helpers.repl_parts import SENTENCES, tiny_bundle

TOM, NOBODY, BOY = SENTENCES[:3]
ENTER, CTRL_C, CTRL_D, CTRL_U = "\r", "\x03", "\x04", "\x15"
PASTE = "\x1b[200~{}\x1b[201~"


@pytest.fixture(scope="module")
def bundle(english: TextPipeline, russian: TextPipeline, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return Bundle.open(tiny_bundle(tmp_path_factory.mktemp("prompt"), english, russian))


@pytest.fixture
def repl(bundle: Bundle, tmp_path: Path) -> Repl:
    models = load_models(bundle, compute_type="float32", threads=1)
    direction = Direction("en", "ru", bundle.manifest.identity)
    session = Session(models, TranslationOptions(nbest=4), direction=direction)
    return Repl(session, Output(terminal=True), Autosave(tmp_path), COMMANDS)


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        yield pipe


def press(repl: Repl, keys: PipeInput, history: Path, *pressed: str) -> list[str]:
    """Press keys and leave; return the sources of the current document."""
    keys.send_text("".join(pressed) + CTRL_D)
    converse(repl, Prompt(repl, history, input=keys, output=DummyOutput()))
    return [entry.source for entry in repl.session.current]


def test_lines_are_translated_until_ctrl_d(
    repl: Repl, keys: PipeInput, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert press(repl, keys, tmp_path / "h", TOM, ENTER, NOBODY, ENTER) == [TOM, NOBODY]
    shown = capsys.readouterr().out
    assert [entry.text for entry in repl.session.current] == shown.splitlines()


def test_quit_leaves_and_the_rest_is_not_read(repl: Repl, keys: PipeInput, tmp_path: Path) -> None:
    assert press(repl, keys, tmp_path / "h", TOM, ENTER, "/quit", ENTER, NOBODY, ENTER) == [TOM]


def test_the_history_is_for_its_owner_alone(repl: Repl, keys: PipeInput, tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        press(repl, keys, tmp_path / "h", TOM, ENTER)
    finally:
        os.umask(before)
    assert (tmp_path / "h").stat().st_mode & 0o777 == 0o600
    assert TOM in (tmp_path / "h").read_text()


def test_pasted_lines_are_translated_in_order(repl: Repl, keys: PipeInput, tmp_path: Path) -> None:
    pasted = PASTE.format(f"{TOM}\r\n\n{NOBODY} {BOY}\n/undo\n{TOM}")
    assert press(repl, keys, tmp_path / "h", pasted, ENTER) == [NOBODY, TOM]
    first, _ = repl.session.documents
    assert [entry.source for entry in first] == [TOM]  # a blank line ends a document


def test_enter_alone_does_nothing(
    repl: Repl, keys: PipeInput, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pressed = (TOM, ENTER, ENTER, "  ", ENTER, NOBODY, ENTER, PASTE.format(f"\n{BOY}\n"), ENTER)
    assert press(repl, keys, tmp_path / "h", *pressed) == [TOM, NOBODY, BOY]
    assert len(repl.session.documents) == 1 and len(capsys.readouterr().out.splitlines()) == 3


def test_ctrl_c_clears_the_line_then_says_how_to_leave(
    repl: Repl, keys: PipeInput, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert press(repl, keys, tmp_path / "h", BOY, CTRL_C, TOM, ENTER) == [TOM]
    assert "leaves" not in capsys.readouterr().err
    assert press(repl, keys, tmp_path / "h", BOY, CTRL_C, CTRL_C, NOBODY, ENTER) == [TOM, NOBODY]
    assert "/quit leaves" in capsys.readouterr().err


def test_ctrl_c_stops_a_translation_and_keeps_what_is_there(
    repl: Repl,
    keys: PipeInput,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = Output.translation

    def interrupted(self: Output, text: str, sentence_level: str | None = None) -> None:
        if len(repl.session.current) == 2:
            raise KeyboardInterrupt
        shown(self, text, sentence_level)

    monkeypatch.setattr(Output, "translation", interrupted)
    pasted = PASTE.format(f"{TOM}\n{NOBODY}\n{BOY}\n{BOY}")
    assert press(repl, keys, tmp_path / "h", pasted, ENTER, BOY, ENTER) == [TOM, NOBODY, BOY]
    assert "stopped" in capsys.readouterr().err


def test_edit_starts_from_the_translation(repl: Repl, keys: PipeInput, tmp_path: Path) -> None:
    history = tmp_path / "h"
    press(repl, keys, history, TOM, ENTER)
    before = repl.session.last.text
    press(repl, keys, history, "/edit", ENTER, " Да.", ENTER)
    assert repl.session.last.text == before + " Да."
    press(repl, keys, history, "/edit", ENTER, CTRL_U, "Том.", ENTER)
    assert repl.session.last.text == "Том."
    press(repl, keys, history, "/edit", ENTER, "nothing", CTRL_C, "/edit", ENTER, ENTER)
    assert repl.session.last.text == "Том."


def test_history_outlives_the_session(repl: Repl, keys: PipeInput, tmp_path: Path) -> None:
    press(repl, keys, tmp_path / "h", TOM, ENTER, "/undo", ENTER)
    assert list(FileHistory(str(tmp_path / "h")).load_history_strings()) == ["/undo", TOM]
    # One that can't be read or written, a directory for example, is no reason to fail.
    assert press(repl, keys, tmp_path, NOBODY, ENTER) == [NOBODY]


def completions(text: str) -> list[str]:
    event = CompleteEvent(completion_requested=True)
    return [found.text for found in CommandCompleter().get_completions(Document(text), event)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/s", ["set", "save"]),
        ("/x", []),
        ("Tom /s", []),
        ("", []),
        ("/set n", ["nbest", "names"]),
        ("/set t", ["T", "term"]),
        ("/set search r", ["rerank", "repair"]),
        ("/set search ", ["rerank", "lattice", "beam", "sentence", "doc-nmt", "2-to-2", "repair"]),
        ("/set beam ", []),
        ("/compare o", ["on", "off"]),
        ("/undo ", []),
        ("/open fil", ["m.txt"]),
        ("/save nowhere/", []),
    ],
)
def test_completion(text: str, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "film.txt").write_text("")
    assert completions(text) == expected
    if not text:
        assert len(completions("/")) == 20


def test_the_bar_tells_where_the_session_stands(repl: Repl) -> None:
    assert toolbar(repl) == "1 document · 0 sentences · context 0 (1/64 tokens) · rerank · T 1"
    repl.enter(f"{TOM}\n/new\n{TOM}\n{NOBODY}\n/set T 2.5\n/compare on")
    tokens = 3 + sum(len(entry.context_ids[0]) for entry in repl.session.current)
    bar = f"2 documents · 3 sentences · context 2 ({tokens}/64 tokens) · rerank · T 2.5 · compare"
    assert toolbar(repl) == bar and len(bar) <= 80


def test_escape_codes_never_reach_the_terminal(
    repl: Repl, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = "\x1b]0;owned\x07[red]Tom"
    repl.enter(f"{TOM}\n/edit {hostile}\n/context\n/why\n/nbest\n{hostile}\n/compare on\n{hostile}\n/undo")
    shown = capsys.readouterr()
    assert "[red]" in shown.out and "␛" in shown.out
    assert not {"\x1b", "\x07"} & set(shown.out + shown.err)


def test_tables_fit_eighty_columns(repl: Repl, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = io.StringIO()
    narrow = Console(file=drawn, width=80, markup=False, highlight=False)
    monkeypatch.setattr(repl_show, "stdout_console", lambda: narrow)
    long = "The boy sees our dog and the money and the ship and a letter and his keys and some bread."
    repl.enter(f"{long}\n{long}\n/context\n/nbest\n/why\n/set\n/help\n/compare on\n{long}")
    lines = drawn.getvalue().splitlines()
    tables = [line for line in lines if line not in [entry.text for entry in repl.session.current]]
    assert len(tables) > 40 and max(map(len, tables)) <= 80


def test_quiet_silences_the_notes_but_not_the_errors(repl: Repl, capsys: pytest.CaptureFixture[str]) -> None:
    console.set_quiet(True)
    try:
        repl.enter("/new\n/udno")
    finally:
        console.set_quiet(False)
    shown = capsys.readouterr().err
    assert "document" not in shown and "/undo" in shown
