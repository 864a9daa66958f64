"""A session is a document translated piece by piece, and what a person decides is its context."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bundle_parts import checksums, shaken
from repl_parts import SENTENCES, tiny_bundle

from cadec_cli.bundle.building import build_bundle
from cadec_cli.bundle.loading import Models
from cadec_cli.bundle.opening import Bundle
from cadec_cli.decoding.search.lattice import Path as SearchPath
from cadec_cli.decoding.session import Entry, Session, ranked
from cadec_cli.decoding.session_files import session_json, stored_session
from cadec_cli.decoding.snapshot import Snapshot
from cadec_cli.decoding.translator import Translator
from cadec_cli.errors import CadecError
from cadec_cli.method.context import Context
from cadec_cli.method.options import TranslationOptions
from cadec_cli.models.storage import load_model, save_model
from cadec_cli.text.pipeline import TextPipeline

OPTIONS = TranslationOptions(nbest=4, beam=3)
LONG = "the money and our dog and " * 8 + "a letter."


@pytest.fixture(scope="module")
def bundle(english: TextPipeline, russian: TextPipeline, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return Bundle.open(tiny_bundle(tmp_path_factory.mktemp("session"), english, russian))


@pytest.fixture
def session(bundle: Bundle) -> Session:
    return new_session(bundle)


def new_session(bundle: Bundle, options: TranslationOptions = OPTIONS) -> Session:
    return Session(bundle, options, compute_type="float32", threads=1)


def add(session: Session, *sentences: str) -> list[Entry]:
    return [entry for sentence in sentences for entry in session.translate([sentence])]


@pytest.mark.parametrize("rolling", [False, True])
@pytest.mark.parametrize("search", ["rerank", "beam", "sentence"])
def test_sentence_by_sentence_is_the_document_at_once(bundle: Bundle, search: str, rolling: bool) -> None:
    options = dataclasses.replace(OPTIONS, search=search, rolling=rolling)
    document = [*SENTENCES, LONG, *SENTENCES]
    translator = Translator.load(Models(bundle, compute_type="float32", threads=1), options)
    expected = list(translator.translate(document))
    session = new_session(bundle, options)
    found = add(session, *document)
    assert [entry.text for entry in found] == [translation.text for translation in expected]
    for entry, translation in zip(found, expected, strict=True):
        for part, other in zip(entry.parts, translation.parts, strict=True):
            assert part.choice is not None and other.choice is not None
            assert part.choice.scores == pytest.approx(other.choice.scores, abs=1e-3)
    assert new_session(bundle, options).documents == [[]]


@pytest.mark.parametrize("rolling", [False, True])
@pytest.mark.parametrize("temperature", [1.0, 3.0])
def test_an_explanation_adds_up_to_the_scores_of_the_choice(
    bundle: Bundle, rolling: bool, temperature: float
) -> None:
    session = new_session(
        bundle, dataclasses.replace(OPTIONS, rolling=rolling, temperature=temperature, context=2)
    )
    windows = []
    for sentence in (*SENTENCES, LONG, SENTENCES[0]):
        (entry,) = session.translate([sentence])
        session.configure(dataclasses.replace(session.options, nbest=5 - session.options.nbest % 2))
        choice = entry.parts[-1].choice
        assert choice is not None
        found = session.explain()
        windows.append(len(found.context))
        rows = {row.name: row for row in found.rows}
        for name, index in (("chosen", choice.index), ("sentence level", 0)):
            if name in rows:
                pmi = choice.conditional[index] - choice.free[index]
                assert rows[name].pmi == pytest.approx(pmi, abs=1e-3)
                assert rows[name].log_prob == entry.parts[-1].hypotheses[index].log_prob
                assert len(rows[name].scores) == len(rows[name].pieces) + 1
        assert ("sentence level" in rows) == (choice.index > 0)
    assert windows[0] == 0 and max(windows) >= 2 and (rolling or max(windows) == 2)
    assert not rolling or windows != sorted(windows)  # it filled up, and began anew


def test_what_is_picked_is_context(session: Session, bundle: Bundle) -> None:
    (entry,) = add(session, SENTENCES[0])
    order = ranked(entry.parts[0])
    assert entry.parts[0].choice is not None and order[0] == entry.parts[0].choice.index
    picked = session.pick(3)
    assert picked.text == entry.parts[0].hypotheses[order[2]].text == session.last.text
    (after,) = add(session, SENTENCES[1])
    start = Snapshot.at_start(1)
    start.documents[0].beam = [
        SearchPath(context=Context((entry.parts[0].hypotheses[order[2]].ids,))),
    ]
    translator = Translator.load(Models(bundle, compute_type="float32", threads=1), OPTIONS)
    (expected,) = translator.translate_documents([[SENTENCES[1]]], start=start)
    assert after.parts == expected.parts
    assert session.explain().context == (picked.text,)


def test_what_is_edited_is_context_until_something_is_picked(session: Session) -> None:
    (entry,) = add(session, SENTENCES[0])
    edited = session.edit("  Том \n ждёт его. ")
    assert edited.text == "Том ждёт его." and edited.parts == entry.parts
    assert edited.units == (tuple(session.bundle.lm_pipeline.encode("Том ждёт его.")),)
    assert [row.name for row in session.explain().rows] == ["edited", "sentence level"]
    add(session, SENTENCES[1])
    assert session.explain().context == ("Том ждёт его.",)
    session.undo()
    picked = session.pick(1)
    assert (picked.text, picked.units, picked.edited) == (entry.text, entry.units, None)


def test_an_over_long_sentence_has_parts_and_the_last_can_be_picked(session: Session) -> None:
    (entry,) = add(session, LONG)
    assert len(entry.parts) == len(entry.units) > 1
    picked = session.pick(2)
    assert picked.parts[:-1] == entry.parts[:-1] and picked.units[:-1] == entry.units[:-1]
    assert picked.text != entry.text and picked.text.startswith(entry.parts[0].text)
    assert session.edit("Том.").units == (tuple(session.bundle.lm_pipeline.encode("Том.")),)
    assert [row.name for row in session.explain().rows] == ["edited"]
    assert session.pick(2) == picked


def test_documents_know_nothing_of_each_other(session: Session) -> None:
    (first,) = add(session, SENTENCES[0])
    session.new()
    session.new()  # still empty: no further one
    assert len(session.documents) == 2 and session.in_use.sentences == ()
    assert add(session, SENTENCES[0]) == [first]
    assert session.undo() == first and session.undo() is None
    assert session.current == [first]
    session.undo()
    with pytest.raises(CadecError, match="nothing to undo"):
        session.undo()


def test_the_context_in_use_is_what_the_options_allow(session: Session) -> None:
    add(session, *SENTENCES[:5])
    assert session.in_use.sentences == tuple(entry.units[0] for entry in session.current[-3:])
    session.configure(dataclasses.replace(OPTIONS, context=1))
    assert session.in_use.sentences == session.current[-1].units
    session.configure(dataclasses.replace(OPTIONS, search="beam", context=1, rolling=True))
    assert session.in_use.sentences == session.current[-1].units  # nothing rolls in the beam
    session.configure(dataclasses.replace(OPTIONS, search="sentence"))
    assert session.in_use.sentences == ()


def test_a_line_is_split_into_sentences_and_nothing_to_translate_is_none(session: Session) -> None:
    assert session.sentences("Tom wants it. Nobody took it.") == ["Tom wants it.", "Nobody took it."]
    assert session.sentences(" \t\u200b") == []
    assert session.sentences("Tom \ud800 it.") == ["Tom ? it."]
    assert list(session.translate([])) == []


def test_what_can_t_be_done_is_refused_and_changes_nothing(session: Session) -> None:
    for act in (session.explain, lambda: session.pick(1), lambda: session.edit("Том.")):
        with pytest.raises(CadecError, match="no sentence yet"):
            act()
    (entry,) = add(session, SENTENCES[0])
    for rank in (0, -1, 5):
        with pytest.raises(CadecError, match="no hypothesis"):
            session.pick(rank)
    with pytest.raises(CadecError, match="empty"):
        session.edit(" \t")
    assert session.current == [entry]


def test_the_beam_is_compared_with_the_true_sentence_level(bundle: Bundle) -> None:
    plain = new_session(bundle, dataclasses.replace(OPTIONS, search="sentence"))
    beam = new_session(bundle, dataclasses.replace(OPTIONS, search="beam"))
    for entry, other in zip(add(plain, *SENTENCES[:3]), add(beam, *SENTENCES[:3]), strict=True):
        (first,) = beam.sentence_level(other)
        assert first is not None and first.text == entry.text


def full(bundle: Bundle) -> Session:
    """Two documents with everything that can happen to a sentence."""
    session = new_session(bundle)
    add(session, SENTENCES[0], LONG, "\u0001")
    session.new()
    add(session, *SENTENCES[:3])
    session.edit("Том.")
    add(session, SENTENCES[3])
    session.pick(2)
    return session


def test_settings_and_explanations_load_no_model_twice(
    bundle: Bundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []

    def count(name: str) -> None:
        load = getattr(Bundle, name)

        def counted(self: Bundle, *given: Any) -> Any:
            loaded.append(name)
            return load(self, *given)

        monkeypatch.setattr(Bundle, name, counted)

    for name in ("language_model", "translation_model", "ctranslate2_model"):
        count(name)
    session = new_session(bundle)
    for search in ("rerank", "beam", "lattice", "beam"):
        session.configure(dataclasses.replace(session.options, search=search))
        add(session, *SENTENCES[:2])
        session.explain()
    assert sorted(loaded) == ["ctranslate2_model", "language_model", "translation_model"]


def test_a_session_comes_back_from_its_json(bundle: Bundle) -> None:
    session = full(bundle)
    session.configure(dataclasses.replace(OPTIONS, temperature=2.0))
    stored = stored_session(json.loads(session_json(session)), bundle, "x")
    assert [list(document) for document in stored.documents] == session.documents
    assert stored.options == session.options
    again = Session(bundle, OPTIONS, compute_type="float32", threads=1, documents=stored.documents)
    session.configure(OPTIONS)
    assert add(again, SENTENCES[4]) == add(session, SENTENCES[4])


def test_of_another_bundle_s_session_the_texts_are_taken(bundle: Bundle, tmp_path: Path) -> None:
    session = full(bundle)
    data = json.loads(session_json(session))
    # Another D-LM makes another bundle; another conversion of the same models does not.
    weights = load_model(bundle.directory / "lm").model
    save_model(tmp_path / "lm", shaken(weights, 9), checksums(bundle.target))
    build_bundle(tmp_path / "other", base=bundle.directory, lm=tmp_path / "lm")
    build_bundle(tmp_path / "same", base=bundle.directory, compute_types=["int8"])
    assert stored_session(data, Bundle.open(tmp_path / "same"), "x").options == session.options
    bundle = Bundle.open(tmp_path / "other")
    stored = stored_session(data, bundle, "x", OPTIONS)
    assert stored.options is None
    texts = [[(entry.source, entry.text) for entry in document] for document in stored.documents]
    assert texts == [[(entry.source, entry.text) for entry in document] for document in session.documents]
    assert stored.documents[1][2].units == (tuple(bundle.lm_pipeline.encode("Том.")),)
    by_hand = {"documents": [[{"source": "Tom.", "target": "Том."}], []]}
    (entry,), empty = stored_session(by_hand, bundle, "x").documents
    assert (entry.source, entry.text, entry.parts, empty) == ("Tom.", "Том.", (), ())


def test_texts_without_hypotheses_are_context_as_far_as_the_options_allow(bundle: Bundle) -> None:
    bare = {"documents": [[{"source": "Tom.", "target": "Том."}] * 5]}
    for options, windows in (
        (dataclasses.replace(OPTIONS, context=2), [0, 1, 2, 2, 2]),
        (dataclasses.replace(OPTIONS, context=2, rolling=True), [0, 1, 2, 3, 4]),
    ):
        (entries,) = stored_session(bare, bundle, "x", options).documents
        assert [entry.window for entry in entries] == windows
        session = Session(bundle, options, compute_type="float32", threads=1, documents=[entries])
        assert len(session.in_use.sentences) == (5 if options.rolling else 2)


def deep(*keys: Any, value: Any) -> Callable[[Any], None]:
    def change(data: Any) -> None:
        for key in keys[:-1]:
            data = data[key]
        data[keys[-1]] = value

    return change


ENTRY = ("documents", 1, 0)
PART = (*ENTRY, "parts", 0)


@pytest.mark.parametrize(
    "change",
    [
        deep("documents", value="none"),
        deep("documents", 0, value=3),
        deep(*ENTRY, value=None),
        deep(*ENTRY, "source", value=4),
        deep(*ENTRY, "target", value="\ud800"),
        deep(*ENTRY, "target", value="another"),
        deep(*ENTRY, "window", value="3"),
        deep(*ENTRY, "units", value=[[10**6]]),
        deep(*ENTRY, "units", value=7),
        deep(*ENTRY, "parts", value=[{}]),
        deep(*PART, "choice", value=None),
        deep(*PART, "choice", "index", value=99),
        deep(*PART, "choice", "scores", value=[1.0]),
        deep(*PART, "choice", "scores", 0, value=float("nan")),
        deep(*PART, "choice", "free", value=[0.0]),
        deep(*PART, "hypotheses", 0, "ids", value=[-1]),
        deep(*PART, "hypotheses", 0, "log_prob", value="low"),
        deep(*PART, "hypotheses", 0, "log_prob", value=10**400),
        deep("options", value=[]),
        deep("options", "nbest", value="many"),
        deep("options", "search", value="luck"),
        deep("options", "luck", value=1),
        deep("options", "rolling", value=1),
    ],
)
def test_data_that_is_no_session_is_one_clear_error(bundle: Bundle, change: Callable[[Any], None]) -> None:
    data = json.loads(session_json(full(bundle)))
    stored_session(data, bundle, "x.json")
    change(data)
    with pytest.raises(CadecError, match=r"x\.json is not a session"):
        stored_session(data, bundle, "x.json")


def test_a_bundle_that_can_t_translate_is_refused(
    bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(bundle.manifest.parts, "nmt")
    with pytest.raises(CadecError, match="no S-NMT"):
        new_session(bundle)
