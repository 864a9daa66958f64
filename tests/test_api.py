"""The Python interface: every call that docs/python.md names, with the embedded bundle where it can."""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

import cadec_cli
from cadec_cli.bundle.bundle import Bundle
from cadec_cli.errors import CadecError

HEAVY = {"torch", "ctranslate2", "numpy", "sacremoses", "sentencepiece"}


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[1],
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def translator() -> cadec_cli.Translator:
    """The embedded bundle, as most people use it."""
    return cadec_cli.load(threads=1)


def texts(translations: Iterable[cadec_cli.Translation]) -> list[str]:
    return [one.text for one in translations]


def test_a_bundle_becomes_a_translator_that_streams(made_up_bundle: Path) -> None:
    translator = cadec_cli.load(str(made_up_bundle), options={"nbest": 5}, compute_type="float32")
    assert isinstance(translator, cadec_cli.Translator)
    assert translator.options == cadec_cli.TranslationOptions(nbest=5)
    found = translator.translate(["good day sir.", "you see the lamp."])
    first = next(found)
    assert isinstance(first, cadec_cli.Translation)
    assert (first.source, first.text) == ("good day sir.", "Bondia senor.")
    assert texts(found) == ["Vos videz la lampo."]


def test_a_string_is_no_document(translator: cadec_cli.Translator) -> None:
    with pytest.raises(TypeError, match=r"translate\(\['Who are you\?'\]\), or translate_text"):
        translator.translate("Who are you?")
    for documents in ("Who are you?", ["Who are you?"], [["Who are you?"], "I saw you."]):
        with pytest.raises(TypeError, match="each a sequence of sentences"):
            translator.translate_documents(documents)
    with pytest.raises(TypeError, match="takes a string, not list"):
        translator.translate_text(["Who are you?"])  # type: ignore[arg-type]


def test_what_comes_before_is_text(translator: cadec_cli.Translator) -> None:
    question = ["Are you alone?"]
    assert texts(translator.translate(question)) == ["Ты один?"]
    assert texts(translator.translate(question, after=["Добрый вечер, господин."])) == ["Вы один?"]
    (split,) = translator.translate(question, after="Привет! Добрый вечер.")
    (given,) = translator.translate(question, after=["Привет!", "Добрый вечер."])
    assert split.alternatives == given.alternatives
    assert translator.translate_text("Are you alone?", after="Добрый вечер, господин.") == "Вы один?"
    alone = cadec_cli.load(options={"search": "sentence"}, threads=1)
    with pytest.raises(CadecError, match="reads none"):
        alone.translate(question, after=["Добрый вечер."])


def test_documents_do_not_read_each_other(translator: cadec_cli.Translator) -> None:
    documents = [["Good evening, sir.", "Are you alone?"], ["Are you alone?"]]
    found = sorted(translator.translate_documents(documents), key=lambda one: (one.document, one.sentence))
    assert texts(found) == ["Добрый вечер, сэр.", "Вы один?", "Ты один?"]
    assert [(one.document, one.sentence) for one in found] == [(0, 0), (0, 1), (1, 0)]


def test_a_translation_says_all_about_itself(translator: cadec_cli.Translator) -> None:
    first, copied = translator.translate(["Are you alone?", "12:30"])
    assert str(first) == first.text == "Ты один?"
    assert repr(first) == "Translation('Are you alone?' → 'Ты один?')"
    assert first.confidence is not None and 0.5 < first.confidence < 1 and first.flags == ()
    assert first.alternatives[0].text == "Ты один?" and "Вы один?" in texts_of(first.alternatives)
    scores = [one.score for one in first.alternatives]
    assert scores == sorted(scores, reverse=True)
    assert first.alternatives[0].pmi == 0  # nothing comes before
    assert (copied.text, copied.confidence, copied.flags, copied.alternatives) == ("12:30", None, (), ())
    keys = ["document", "sentence", "source", "text", "edited", "confidence", "flags", "alternatives"]
    for one in (first, copied):
        data = one.to_dict()
        assert list(data) == keys and json.loads(json.dumps(data)) == data
    assert list(first.to_dict()["alternatives"][0]) == ["text", "score", "log_prob", "pmi"]
    (lost,) = translator.translate(["x" * 300])
    assert len(repr(lost)) < 120


def texts_of(alternatives: Iterable[cadec_cli.Alternative]) -> list[str]:
    return [one.text for one in alternatives]


def test_without_a_language_model_there_is_no_pmi() -> None:
    alone = cadec_cli.load(options={"search": "sentence"}, threads=1)
    (found,) = alone.translate(["Are you alone?"])
    assert {one.pmi for one in found.alternatives} == {None}


def test_flags_are_reasons_to_look(translator: cadec_cli.Translator) -> None:
    (doubtful,) = translator.translate(["Zxqv blorp the wug-fnord sproinged!"])
    assert doubtful.confidence is not None and doubtful.confidence < 0.5
    assert doubtful.flags and all(isinstance(flag, str) for flag in doubtful.flags)


def test_tags_are_in_the_alternatives_as_well(translator: cadec_cli.Translator) -> None:
    (found,) = translator.translate(["- <i>Who are you?</i>"])
    assert all(text.startswith("- <i>") for text in texts_of(found.alternatives))
    assert found.alternatives[0].text == found.text


def test_a_sentence_of_several_parts(translator: cadec_cli.Translator) -> None:
    source = " ".join(["I saw you yesterday, and you were alone,"] * 60) + " and I left."
    (found,) = translator.translate([source])
    assert len(found.alternatives) > 1 and found.text in texts_of(found.alternatives)


def test_text_keeps_its_layout(translator: cadec_cli.Translator) -> None:
    text = "# Arrival\n\nGood evening, sir. Are you alone?\n\n- Come in!\n"
    assert translator.translate_text(text) == "# Прибытие\n\nДобрый вечер, сэр. Вы один?\n\n- Входи!\n"
    cue = "1\n00:00:01,000 --> 00:00:02,000\n{}\n"
    shown = translator.translate_text(cue.format("<i>Who are you?</i>"), format="srt")
    assert shown == cue.format("<i>Кто ты такой?</i>")
    assert translator.translate_text("") == ""
    lines = translator.translate_text("Good evening.\nAre you\nalone?\n", lines=True)
    assert lines.count("\n") == 3
    with pytest.raises(CadecError, match="unknown format: pptx"):
        translator.translate_text("Hello.", format="pptx")


def test_a_file_is_translated_in_its_format(translator: cadec_cli.Translator, tmp_path: Path) -> None:
    film = tmp_path / "film {1}.en.srt"
    film.write_text("1\n00:00:01,000 --> 00:00:02,000\nAre you alone?\n", "utf-8")
    assert translator.translate_file(film) == tmp_path / "film {1}.ru.srt"
    assert (tmp_path / "film {1}.ru.srt").read_text("utf-8") == film.read_text("utf-8").replace(
        "Are you alone?", "Ты один?"
    )
    with pytest.raises(CadecError, match="exists already") as error:
        translator.translate_file(str(film))
    assert error.value.hint == "force=True replaces it"
    after = "Добрый вечер, господин."
    assert "Вы один?" in translator.translate_file(film, after=after, force=True).read_text("utf-8")
    directory = tmp_path / "out"
    directory.mkdir()
    assert translator.translate_file(film, directory) == directory / "film {1}.ru.srt"
    assert translator.translate_file(film, tmp_path / "{x}.vtt").read_text("utf-8").startswith("WEBVTT")
    with pytest.raises(CadecError, match="is the input"):
        translator.translate_file(film, film, force=True)
    with pytest.raises(CadecError, match=r"none\.txt"):
        translator.translate_file(tmp_path / "none.txt")


def test_a_session_is_a_document_that_grows(translator: cadec_cli.Translator) -> None:
    session = cadec_cli.Session(translator)
    assert texts(session.translate("Good evening, sir. Are you alone?")) == ["Добрый вечер, сэр.", "Вы один?"]
    assert repr(session) == f"Session({translator!r}, 2 sentences)"
    place = texts_of(session.alternatives()).index("Ты одна?")
    assert session.pick(place).text == "Ты одна?" == session.sentences[1].text
    assert [one.sentence for one in session.sentences] == [0, 1]
    edited = session.edit("Привет, дружок.", 0)
    assert edited.edited and edited.confidence is None and edited.to_dict()["flags"] == []
    assert session.text == "Привет, дружок.\nТы одна?"
    session.undo()
    assert len(session) == 1
    assert texts(session.translate(["Are you alone?"])) == ["Ты один?"]  # after the correction
    session.new_document()
    assert len(session) == 0 and session.text == ""
    (found,) = session.translate(["Are you alone?"])
    assert (found.document, found.sentence) == (1, 0)


def test_later_sentences_follow_a_correction(translator: cadec_cli.Translator) -> None:
    session = cadec_cli.Session(translator)
    session.translate(["Good evening, sir.", "Are you alone?"])
    session.edit("Привет, дружок.", 0)
    assert session.sentences[1].text == "Вы один?"
    assert texts(session.redo(0)) == ["Ты один?"]
    assert session.redo() == []


def test_a_session_begins_with_a_bundle_or_after_a_text(made_up_bundle: Path) -> None:
    assert texts(cadec_cli.Session(made_up_bundle).translate("good day sir.")) == ["Bondia senor."]
    session = cadec_cli.Session(after="Добрый вечер, господин.")
    assert texts(session.translate("Are you alone?")) == ["Вы один?"]


def test_what_a_session_lacks_is_an_index_error(translator: cadec_cli.Translator) -> None:
    session = cadec_cli.Session(translator)
    with pytest.raises(IndexError, match="the document has 0"):
        session.pick(0)
    session.translate("Are you alone?")
    with pytest.raises(IndexError, match="no alternative 99: the sentence has 8"):
        session.pick(99)
    with pytest.raises(IndexError, match="no sentence 1: the document has 1"):
        session.edit("Вы один?", 1)
    with pytest.raises(CadecError, match="can't be empty"):
        session.edit(" ")
    session.undo()
    with pytest.raises(CadecError, match="nothing to undo"):
        session.undo()


def test_errors_have_pythons_words(made_up_bundle: Path) -> None:
    with pytest.raises(CadecError) as error:
        cadec_cli.load(made_up_bundle, target_language="de")
    assert error.value.hint.startswith("leave out source_language and target_language")
    assert repr(Bundle.open(made_up_bundle)).startswith("Bundle(")


def test_options_are_the_bundles_but_for_what_is_said(made_up_bundle: Path) -> None:
    options = cadec_cli.TranslationOptions(search="sentence", beam=2)
    assert cadec_cli.load(made_up_bundle, options=options).options is options
    weighted = cadec_cli.load(made_up_bundle, options={"weight": "lm=0.5"})
    assert weighted.options.weight == {"lm": 0.5}
    with pytest.raises(CadecError, match="no option temprature"):
        cadec_cli.load(made_up_bundle, options={"temprature": 2})
    with pytest.raises(CadecError, match="invalid decoding options"):
        cadec_cli.load(made_up_bundle, options={"temperature": -2})
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = cadec_cli.nothing


def test_importing_it_imports_nothing_heavy() -> None:
    assert not HEAVY & set(run("import sys, cadec_cli; print(*sys.modules)").split())


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({}, "PASSIVE 10000"),
        ({"GOMP_SPINCOUNT": "7"}, "PASSIVE 7"),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE None"),
    ],
)
def test_waiting_threads_sleep_unless_the_user_says_otherwise(given: dict[str, str], kept: str) -> None:
    names = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    code = (
        f"import os; [os.environ.pop(name, None) for name in {names}]; os.environ.update({given})\n"
        f"import cadec_cli; print(*(os.environ.get(name) for name in {names}))"
    )
    assert run(code) == kept
