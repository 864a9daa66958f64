"""Whoever shows a translation judges it in one way: by what decoding knows, and for its defects."""

from pathlib import Path

from cadec_cli.commands.repl.autosave import Autosave
from cadec_cli.commands.repl.lines import Repl
from cadec_cli.commands.repl.views import Output
from cadec_cli.decoding.confidence import Confidence, Judge
from cadec_cli.decoding.translator import Translator
from cadec_cli.engines.protocols import ModelSet
from cadec_cli.jobs.in_step import FileTranslation
from cadec_cli.session.session import Direction, Session
from cadec_cli.text.formats import read_text_file
from tests.helpers.fakes import TableLM, TableNMT

LONG = "this is a sentence of many words, is it not?"
LOOP = "repeats itself"
MODELS = ModelSet(TableNMT({LONG: {"nu nu nu nu nu nu nu nu.": -0.1}}), TableLM({}))


class Heard(Output):
    """An output at a terminal that remembers what it was told to doubt."""

    def __init__(self) -> None:
        super().__init__(terminal=True)
        self.told: list[tuple[Confidence | None, Judge]] = []

    def flag(self, confidence: Confidence | None, judge: Judge) -> None:
        self.told.append((confidence, judge))


def test_files_and_the_repl_see_the_same_defects(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text(LONG)
    file = read_text_file(tmp_path / "in.txt", language="en", lines=True)
    work = FileTranslation(Translator(MODELS, language="en"), [file])
    (translation,) = work.in_order()
    expected = work.judge.of(translation)
    assert expected is not None and LOOP in expected.reasons

    output = Heard()
    session = Session(MODELS, Translator(MODELS).options, direction=Direction("en", "eo"))
    Repl(session, output, Autosave(tmp_path), {}).enter(LONG)
    ((found, judge),) = output.told
    assert found == expected
    assert judge.below == work.judge.below


def test_nobody_looks_for_defects_where_nothing_is_protected() -> None:
    options = Translator(MODELS).options
    session = Session(MODELS, options)
    (entry,) = session.translate([LONG])
    guarded = session.judge.of_parts(entry.source, entry.parts)
    session.configure(type(options)(protect=False))
    bare = session.judge.of_parts(entry.source, entry.parts)
    assert guarded is not None and bare is not None
    assert LOOP in guarded.reasons and LOOP not in bare.reasons
