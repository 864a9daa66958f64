"""A name before a colon is a speaker's in subtitles, and nowhere else, whoever translates."""

import dataclasses
import json
from pathlib import Path

from cadec_cli.commands.repl.autosave import Autosave
from cadec_cli.commands.repl.commands import COMMANDS
from cadec_cli.commands.repl.lines import Repl
from cadec_cli.commands.repl.views import Output
from cadec_cli.decoding.translator import Translator
from cadec_cli.engines.protocols import ModelSet
from cadec_cli.jobs.by_document import DocumentTask, DocumentWorker
from cadec_cli.jobs.done import document_key
from cadec_cli.jobs.in_step import FileTranslation
from cadec_cli.method.options import TranslationOptions
from cadec_cli.session.files import read_session, session_json
from cadec_cli.session.session import Direction, Session
from cadec_cli.text.documents import Document
from cadec_cli.text.formats import read_text_file
from tests.helpers.fakes import TableLM, TableNMT

SAID = "JOHN: Come here."
TABLE = {SAID: {"Johano: venu.": -1.0}, "Come here.": {"Venu.": -1.0, "Venu tien.": -2.0}}
MODELS = ModelSet(TableNMT(TABLE), TableLM({}))
AS_TEXT, AS_SUBTITLE = "Johano: venu.", "JOHN: Venu."
CONTENTS = {
    "in.txt": SAID,
    "in.md": SAID,
    "in.jsonl": json.dumps({"text": SAID}),
    "in.srt": f"1\n00:00:01,000 --> 00:00:02,000\n{SAID}\n",
    "in.vtt": f"WEBVTT\n\n00:01.000 --> 00:02.000\n{SAID}\n",
}


def written(directory: Path) -> list[Path]:
    for name, content in CONTENTS.items():
        (directory / name).write_text(content)
    return [directory / name for name in CONTENTS]


def expected(path: Path) -> str:
    return AS_SUBTITLE if path.suffix in (".srt", ".vtt") else AS_TEXT


def test_files_of_all_formats_beside_each_other(tmp_path: Path) -> None:
    paths = written(tmp_path)
    files = [read_text_file(path, language="en", tags=True) for path in paths]
    work = FileTranslation(Translator(MODELS, language="en"), files)
    assert [one.text for one in work.in_order()] == [expected(path) for path in paths]


def test_workers_are_told_and_keep_both_apart(tmp_path: Path) -> None:
    translator = Translator(MODELS, language="en")
    work = DocumentWorker(translator, translator.judge())
    for path in written(tmp_path):
        (document,) = read_text_file(path, language="en").documents
        whole = DocumentTask(document, first=True)
        assert [record["text"] for record in work(whole)] == [expected(path)]
    assert document_key([SAID]) != document_key([SAID], speakers=True)


def test_a_journal_of_text_is_not_one_of_subtitles(tmp_path: Path) -> None:
    headers = [
        FileTranslation(Translator(MODELS), [read_text_file(path, language="en")])._header(False)["input"]
        for path in written(tmp_path)
    ]
    assert len(set(headers[:3])) == 1 == len(set(headers[3:])) and len(set(headers)) == 2


def test_the_repl_has_speakers_only_in_subtitles_that_were_opened(tmp_path: Path) -> None:
    written(tmp_path)
    session = Session(MODELS, TranslationOptions(), direction=Direction("en", "eo", "x"))
    repl = Repl(session, Output(False), Autosave(tmp_path / "state"), COMMANDS)
    lines = [SAID, f"/open {tmp_path / 'in.srt'}", SAID, "/new", SAID, f"/open {tmp_path / 'in.txt'}", SAID]
    assert all(map(repl.enter, lines))
    texts = [[entry.text for entry in document] for document in session.documents]
    assert texts == [[AS_TEXT], [AS_SUBTITLE] * 2, [AS_TEXT], [AS_TEXT] * 2]

    (tmp_path / "session.json").write_text(session_json(session))
    stored = read_session(tmp_path / "session.json", session.direction, MODELS.reader)
    assert [list(document) for document in stored.documents] == session.documents
    session.begin(stored.documents[:2])
    session.configure(dataclasses.replace(session.options, search="sentence"))
    session.redo(0)
    assert [entry.text for entry in session.current] == [AS_SUBTITLE] * 2
    assert session.pick(2).text == "JOHN: Venu tien."
    (entry,) = session.translate([SAID])
    assert entry.text == AS_SUBTITLE


def test_python_can_mark_speakers() -> None:
    translator = Translator(MODELS, language="en")
    assert [one.text for one in translator.translate([SAID])] == [AS_TEXT]
    both = translator.translate_documents([Document.of([SAID], speakers=True), [SAID]])
    assert {one.document: one.text for one in both} == {0: AS_SUBTITLE, 1: AS_TEXT}
