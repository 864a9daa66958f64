"""A session is a document translated piece by piece, and what a person decides is its context."""

import dataclasses
from typing import Any

import pytest

from cadec_cli.bundle.bundle import Bundle
from cadec_cli.decoding.state import State
from cadec_cli.decoding.translator import Translator
from cadec_cli.engines.protocols import ModelSet
from cadec_cli.errors import CadecError
from cadec_cli.method.context import Context
from cadec_cli.session.session import Direction, Session
from cadec_cli.text.pipeline import TextPipeline
from tests.helpers.fakes import TableLM, TableNMT
from tests.helpers.repl_parts import SENTENCES, tiny_bundle
from tests.helpers.session_parts import LONG, OPTIONS, add, models_of, new_session


@pytest.fixture(scope="module")
def bundle(english: TextPipeline, russian: TextPipeline, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return Bundle.open(tiny_bundle(tmp_path_factory.mktemp("session"), english, russian))


@pytest.fixture
def session(bundle: Bundle) -> Session:
    return new_session(bundle)


@pytest.mark.parametrize("rolling", [False, True])
@pytest.mark.parametrize("search", ["rerank", "beam", "sentence"])
def test_sentence_by_sentence_is_the_document_at_once(bundle: Bundle, search: str, rolling: bool) -> None:
    options = dataclasses.replace(OPTIONS, search=search, rolling=rolling)
    document = [*SENTENCES, LONG, *SENTENCES]
    translator = Translator(models_of(bundle), options)
    expected = list(translator.translate(document))
    session = new_session(bundle, options)
    found = add(session, *document)
    assert [entry.text for entry in found] == [translation.text for translation in expected]
    for entry, translation in zip(found, expected, strict=True):
        for part, other in zip(entry.parts, translation.parts, strict=True):
            assert part.choice is not None and other.choice is not None
            assert part.choice.scores == pytest.approx(other.choice.scores, abs=1e-3)
            assert part.choice.context == other.choice.context
            assert search == "sentence" or part is not entry.parts[-1] or entry.read == other.choice.context
    assert new_session(bundle, options).documents == [[]]


@pytest.mark.parametrize("said", ["en", "eng", "eng_Latn", "en-GB", "__en__"])
def test_a_language_is_the_same_however_it_is_called(said: str) -> None:
    first, second = "Smith vs. No. 5 said Привет.", "We left."
    models = ModelSet(
        TableNMT({first: {"Smith said Hello.": -1.0, "Smith said Привет 5.": -2.0}}), TableLM({})
    )
    session = Session(models, OPTIONS, direction=Direction(said, "eo"))
    assert session.sentences(f"{first} {second}") == [first, second]  # abbreviations are the language's
    (entry,) = session.translate([first])
    assert entry.text == "Smith said Привет 5."  # text in another script is kept


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
                assert choice.pmi is not None
                assert rows[name].pmi == pytest.approx(choice.pmi[index], abs=1e-3)
                assert rows[name].log_prob == entry.parts[-1].hypotheses[index].log_prob
                ids = entry.parts[-1].hypotheses[index].ids
                assert len(rows[name].tokens) == len(ids) + 1  # the boundary last
                assert set(choice.terms) == {"conditional", "free", "defects"}
                for term in ("conditional", "free"):
                    values = choice.terms[term]
                    found_term = sum(getattr(token, term) for token in rows[name].tokens)
                    assert found_term == pytest.approx(values[index], abs=1e-3)
        assert ("sentence level" in rows) == (choice.index > 0)
    assert windows[0] == 0 and max(windows) >= 2 and (rolling or max(windows) == 2)
    assert not rolling or windows != sorted(windows)  # it filled up, and began anew


def test_what_is_picked_is_context(session: Session, bundle: Bundle) -> None:
    (entry,) = add(session, SENTENCES[0])
    assert entry.parts[0].choice is not None
    order = entry.parts[0].choice.ranking
    assert order[0] == entry.parts[0].choice.index
    picked = session.pick(3)
    assert picked.text == entry.parts[0].hypotheses[order[2]].text == session.last.text
    (after,) = add(session, SENTENCES[1])
    start = State.at_start(1, [Context((entry.parts[0].hypotheses[order[2]].ids,))])
    translator = Translator(models_of(bundle), OPTIONS)
    (expected,) = translator.translate_documents([[SENTENCES[1]]], start=start)
    assert after.parts == expected.parts
    assert session.explain().context == (picked.text,)


def test_what_is_edited_is_context_until_something_is_picked(session: Session, bundle: Bundle) -> None:
    (entry,) = add(session, SENTENCES[0])
    edited = session.edit("  Том \n ждёт его. ")
    assert edited.text == "Том ждёт его." and edited.parts == entry.parts
    assert edited.context_ids == (tuple(bundle.lm_text.encode("Том ждёт его.")),)
    assert [row.name for row in session.explain().rows] == ["edited", "sentence level"]
    add(session, SENTENCES[1])
    assert session.explain().context == ("Том ждёт его.",)
    session.undo()
    picked = session.pick(1)
    assert (picked.text, picked.context_ids, picked.edited) == (entry.text, entry.context_ids, None)


def test_an_over_long_sentence_has_parts_and_the_last_can_be_picked(session: Session, bundle: Bundle) -> None:
    (entry,) = add(session, LONG)
    assert len(entry.parts) == len(entry.context_ids) > 1
    picked = session.pick(2)
    assert picked.parts[:-1] == entry.parts[:-1] and picked.context_ids[:-1] == entry.context_ids[:-1]
    assert picked.text != entry.text and picked.text.startswith(entry.parts[0].text)
    assert session.edit("Том.").context_ids == (tuple(bundle.lm_text.encode("Том.")),)
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
    assert session.in_use.sentences == tuple(entry.context_ids[0] for entry in session.current[-3:])
    session.configure(dataclasses.replace(OPTIONS, context=1))
    assert session.in_use.sentences == session.current[-1].context_ids
    session.configure(dataclasses.replace(OPTIONS, search="beam", context=1, rolling=True))
    assert session.in_use.sentences == session.current[-1].context_ids  # nothing rolls in the beam
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
        (nbest,) = beam.sentence_level(other)
        assert nbest.hypotheses[0].text == entry.text


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

    for name in ("network", "conversion"):
        count(name)
    session = new_session(bundle)
    for search in ("rerank", "beam", "lattice", "beam"):
        session.configure(dataclasses.replace(session.options, search=search))
        add(session, *SENTENCES[:2])
        session.explain()
    assert sorted(loaded) == ["conversion", "network", "network"]


@pytest.mark.parametrize(
    ("options", "most"),
    [
        ({"search": "rerank"}, 3),
        ({"search": "lattice", "context": 2}, 2),
        ({"search": "beam"}, 3),
        ({"search": "beam", "context_from": "sentence"}, 3),
        ({"search": "rerank", "rolling": True, "context": 1}, None),
        ({"search": "beam", "rolling": True, "context": 2}, 2),  # nothing rolls in the beam
    ],
)
def test_an_entry_names_the_context_that_it_was_chosen_in(
    bundle: Bundle, options: dict[str, Any], most: int | None
) -> None:
    """What is picked and edited on the way is what is read; it is what the session said it would read."""
    session = new_session(bundle, dataclasses.replace(OPTIONS, **options))
    positions = models_of(bundle).bundle.lm_network().config.positions
    for number, sentence in enumerate(SENTENCES):
        announced = session.in_use.sentences
        before = tuple(ids for entry in session.current for ids in entry.context_ids)
        (entry,) = session.translate([sentence])
        (part,) = entry.parts
        assert part.choice is not None and entry.read == part.choice.context
        count = len(entry.read)
        assert entry.read == (before[-count:] if count else ())  # the newest, none left out
        fits = sum(len(ids) + 1 for ids in before) + max(len(h.ids) for h in part.hypotheses) < positions // 2
        if fits:
            assert entry.read == announced
            assert count == (number if most is None else min(number, most))
        assert session.explain().context == tuple(map(bundle.lm_text.decode, entry.read))
        if number % 3 == 1:
            assert session.pick(2).read == entry.read
        elif number % 3 == 2:
            assert session.edit("Том ждёт его.").read in (entry.read, announced)


@pytest.mark.parametrize("rolling", [False, True])
def test_the_sentence_level_can_be_asked_why_and_the_window_rolls_on(bundle: Bundle, rolling: bool) -> None:
    """It reads nothing; what stood before is there all the same, for /why and for what comes next."""
    options = dataclasses.replace(OPTIONS, rolling=rolling, context=2)
    session = new_session(bundle, options)
    add(session, *SENTENCES[:3])
    texts = [entry.text for entry in session.current]
    session.configure(dataclasses.replace(options, search="sentence"))
    (alone,) = add(session, SENTENCES[3])
    (part,) = alone.parts
    assert part.choice is not None and part.choice.context == () and set(part.choice.terms) == {"defects"}
    assert session.explain().context == tuple(texts if rolling else texts[-2:])
    assert session.pick(2).read == alone.read == session.edit("Том.").read
    session.configure(options)
    assert session.in_use.sentences == (*alone.read, *session.last.context_ids)[-4 if rolling else -2 :]


def test_a_bundle_that_can_t_translate_is_refused(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(bundle.manifest.parts, "nmt")
    with pytest.raises(CadecError, match="no S-NMT"):
        new_session(bundle)
