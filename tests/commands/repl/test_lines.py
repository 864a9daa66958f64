"""The REPL's lines in a pipe over models that are tables: documents, failures, earlier sentences, address."""

import io
from dataclasses import dataclass
from pathlib import Path

import pytest

from cadec_cli.commands.repl.autosave import Autosave
from cadec_cli.commands.repl.commands import COMMANDS
from cadec_cli.commands.repl.lines import Repl
from cadec_cli.commands.repl.prompt import toolbar
from cadec_cli.commands.repl.views import Output
from cadec_cli.engines.protocols import ModelSet
from cadec_cli.method.options import TranslationOptions
from cadec_cli.session.session import Session
from tests.helpers.fakes import TableLM, TableNMT

NMT = TableNMT(
    {
        "good day": {"bondia": -0.5, "bondia senor": -0.9},
        "you see": {"tu vides": -1.0, "vos videz": -1.2},
        "you go": {"tu vades": -0.8, "vos vadez": -1.1},
    }
)
LM = {("senor", "vos"): 0.6, ("vos", "vos"): 0.5, ("amico", "tu"): 0.5, ("3", "vos"): 0.9}
SEEDS = {"formal": ["senor"], "informal": ["amico"]}


@dataclass
class Pipe:
    """A REPL at the end of a pipe."""

    repl: Repl
    capsys: pytest.CaptureFixture[str]
    err: str = ""

    def __call__(self, *lines: str | bytes, fails: bool = False) -> list[str]:
        raw = b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines)
        assert self.repl.read(io.BytesIO(raw)) is not fails
        captured = self.capsys.readouterr()
        self.err = captured.err
        return captured.out.splitlines()


@pytest.fixture
def pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Pipe:
    models = ModelSet(NMT, TableLM(LM), seeds=SEEDS)
    session = Session(models, TranslationOptions(temperature=2.0))
    return Pipe(Repl(session, Output(False), Autosave(tmp_path), COMMANDS), capsys)


def test_a_blank_line_ends_a_document_and_is_a_line_of_the_output(pipe: Pipe) -> None:
    lines = ["", "good day", "you see", "", " \t", "you go", "\r", "you see"]
    out = pipe(*lines)
    assert len(out) == len(lines) and [not text for text in out] == [not line.strip() for line in lines]
    sources = [[entry.source for entry in document] for document in pipe.repl.session.documents]
    assert sources == [["good day", "you see"], ["you go"], ["you see"]]
    assert all(not document[0].read for document in pipe.repl.session.documents)


@pytest.mark.parametrize("line", ["/udno", "/pick 9", "/", "/open nowhere.txt", b"\xff"])
def test_a_line_that_fails_makes_it_a_failure_and_the_rest_is_done(pipe: Pipe, line: str | bytes) -> None:
    assert pipe("good day", line, "you see", fails=True) == ["bondia", "tu vides"]
    assert pipe.err.count("error:") == 1


def test_leaving_does_not_hide_a_failure(pipe: Pipe) -> None:
    assert pipe("/udno", "/quit", "you see", fails=True) == []


def test_a_pipe_leaves_the_session_of_the_prompt_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pipe: Pipe
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    prompt = Autosave.open()
    list(pipe.repl.session.translate(["good day"]))
    prompt.save(pipe.repl.session)
    before = prompt.path.read_bytes()
    of_pipe = Autosave.open(pipe=True)  # while the prompt is still there, without a warning
    list(pipe.repl.session.translate(["you see"]))
    of_pipe.save(pipe.repl.session)
    assert prompt.path.read_bytes() == before != of_pipe.path.read_bytes()
    assert pipe.capsys.readouterr().err == ""


@pytest.mark.parametrize("change", ["/pick #1 2", "/pick 1 2", "/edit #1 bondia senor"])
def test_an_earlier_sentence_is_changed_and_what_follows_on_request(pipe: Pipe, change: str) -> None:
    pipe.repl.session.configure(TranslationOptions())
    assert pipe("good day", "you see", "you go") == ["bondia", "tu vides", "tu vades"]
    assert [line.split()[-1] for line in pipe("/nbest #1")[1:]] == ["bondia", "senor"]
    assert pipe(change) == ["bondia senor"]
    assert "/redo chooses again for what follows: 2 sentences" in pipe.err
    shown = [line.split() for line in pipe("/redo")]
    assert shown[1:] == [["2", "tu", "vides", "vos", "videz"], ["3", "tu", "vades", "vos", "vadez"]]
    assert "2 of 2 sentences changed" in pipe.err
    assert pipe("/redo", fails=True) == [] and "no sentence was changed" in pipe.err


def test_the_last_sentence_needs_no_number(pipe: Pipe) -> None:
    pipe.repl.session.configure(TranslationOptions())
    assert pipe("good day", "/pick 2", "/edit 3 pomi", "you go") == [
        "bondia",
        "bondia senor",
        "3 pomi",  # a number that begins a translation is none of a sentence
        "vos vadez",
    ]
    assert pipe.err == ""
    edited, names, row = pipe("/edit #1 bondia", "/redo 1")
    assert (edited, names.split(), row.split()) == (
        "bondia",
        ["before", "now"],
        ["2", "vos", "vadez", "tu", "vades"],
    )
    assert pipe("/redo 0", "/redo #1") == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("/pick #4 1", "no sentence 4"),
        ("/pick 1 9", "no hypothesis 9"),
        ("/pick #1", "needs a number"),
        ("/pick one 2", "not 'one'"),
        ("/pick 1 two", "not 'two'"),
        ("/edit #4 x", "no sentence 4"),
        ("/edit #1", "needs the text"),
        ("/nbest #9", "no sentence 9"),
        ("/redo", "no sentence was changed"),
        ("/redo 9", "no sentence 9"),
        ("/redo all", "not 'all'"),
        ("/formal now", "takes no argument"),
    ],
)
def test_a_mistake_is_said_and_changes_nothing(pipe: Pipe, line: str, message: str) -> None:
    pipe("good day", "you see")
    before = list(pipe.repl.session.current)
    assert pipe(line, fails=True) == [] and message in pipe.err
    assert pipe.repl.session.current == before


def test_address_can_be_said_and_taken_back(pipe: Pipe) -> None:
    pipe("/set T 1")
    assert pipe("/formal", "you see") == ["vos videz"] and "address is formal" in pipe.err
    assert "formal" in toolbar(pipe.repl) and "context 1" in toolbar(pipe.repl)
    assert pipe("/informal", "you see", "/redo 0")[0] == "tu vides"
    assert [entry.text for entry in pipe.repl.session.current] == ["tu vides", "tu vides"]
    pipe("/auto")
    assert pipe.repl.session.options == TranslationOptions(temperature=1.0)
    assert pipe("/set formality formal", "you go") == ["vos vadez"] and "is formal" in pipe.err
    assert pipe("/set search sentence", fails=True) == [] and "is not possible" in pipe.err


def test_without_context_and_known_forms_there_is_no_formality(pipe: Pipe) -> None:
    assert pipe("/set search sentence", "/formal", "you see", fails=True) == ["tu vides"]
    assert "is not possible" in pipe.err and pipe.repl.session.options.formality == "auto"
