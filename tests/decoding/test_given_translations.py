"""Sentences whose translation the file has: they are context, never translated, and written nowhere."""

from pathlib import Path

import pytest

from cadec_cli.decoding.state import State
from cadec_cli.decoding.translator import Translator
from cadec_cli.engines.protocols import ModelSet
from cadec_cli.jobs.by_document import DocumentTask, DocumentWorker
from cadec_cli.jobs.done import document_key
from cadec_cli.jobs.in_step import FileTranslation
from cadec_cli.jobs.json_lines import json_records
from cadec_cli.method.options import TranslationOptions
from cadec_cli.text.documents import Document, Sentence
from cadec_cli.text.formats import TextFile, read_text_file
from tests.helpers.fakes import TableLM, TableNMT

TABLE = {"You see.": {"Ты видишь.": -1.0, "Вы видите.": -1.2}, "Who?": {"Кто?": -1.0}}
MODELS = ModelSet(TableNMT(TABLE), TableLM({("Вы", "Вы"): 2.0, ("Ты", "Ты"): 2.0}))
PO = 'msgid "Who are you?"\nmsgstr "{}"\n\nmsgid "You see."\nmsgstr ""\n\nmsgid "Who?"\nmsgstr ""\n'


def translator(search: str = "rerank") -> Translator:
    options = TranslationOptions(search=search, nbest=2, paths=2, objective="c-score")
    return Translator(MODELS, options, language="en")


def catalogue(directory: Path, given: str) -> TextFile:
    path = directory / "a.po"
    path.write_text(PO.format(given), "utf-8")
    return read_text_file(path, language="en", tags=True)


@pytest.mark.parametrize("search", ["rerank", "lattice"])
@pytest.mark.parametrize(("given", "chosen"), [("Вы кто?", "Вы видите."), ("Ты кто?", "Ты видишь.")])
def test_they_are_context(tmp_path: Path, search: str, given: str, chosen: str) -> None:
    file = catalogue(tmp_path, given)
    work = FileTranslation(translator(search), [file])
    found = list(work.in_order())
    assert [one.text for one in found] == [given, chosen, "Кто?"]
    written = b"".join(work.restore(iter(found))).decode()
    assert f'msgid "Who are you?"\nmsgstr "{given}"\n\n#' in written and f'msgstr "{chosen}"' in written


def test_they_have_no_confidence_and_no_hypotheses(tmp_path: Path) -> None:
    (document,) = catalogue(tmp_path, "Вы кто?").documents
    made = translator()
    first, second, _ = made.translate_documents([document])
    (record,) = json_records(first, made.judge())
    assert record["translation"] == "Вы кто?" and "confidence" not in record and "hypotheses" not in record
    assert json_records(second, made.judge())[0]["confidence"] > 0


def test_workers_and_logs_know_them(tmp_path: Path) -> None:
    outcomes, keys, headers = [], [], []
    for given in ("Вы кто?", "Ты кто?"):
        file = catalogue(tmp_path, given)
        (document,) = file.documents
        made = translator()
        work = DocumentWorker(made, made.judge())
        outcomes.append([record["text"] for record in work(DocumentTask(document, first=True))])
        keys.append(document_key(document.texts, given=document.given))
        headers.append(FileTranslation(made, [file])._header(False)["input"])
    assert [one[1] for one in outcomes] == ["Вы видите.", "Ты видишь."]
    assert len(set(keys)) == len(set(headers)) == 2


def test_a_resumed_translation_is_the_same() -> None:
    document = Document(
        (Sentence("Who?"), Sentence("Who are you?", given="Вы кто?"), Sentence("You see.")) * 40
    )
    made = translator("lattice")
    states: list[State] = []
    whole = list(
        made.translate_documents([document], checkpoint=lambda s: states.append(State.from_json(s.to_json())))
    )
    rest = list(made.translate_documents([document], start=states[1]))
    assert [one.text for one in rest] == [one.text for one in whole[-len(rest) :]]
    assert 0 < len(rest) < len(whole)
