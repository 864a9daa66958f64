"""Earlier sentences can be changed, and what follows is chosen again on request, but not a person's words."""

import dataclasses
import json

import pytest

from cadec_cli.engines.protocols import ModelSet
from cadec_cli.errors import CadecError
from cadec_cli.method.options import TranslationOptions
from cadec_cli.session.files import session_json, stored_session
from cadec_cli.session.session import Direction, Session
from cadec_cli.text.name_memory import NameMemory
from tests.helpers.fakes import TableLM, TableNMT

NMT = TableNMT(
    {
        "good day": {"bondia": -0.5, "bondia senor": -0.9},
        "you see": {"tu vides": -1.0, "vos videz": -1.2},
        "you go": {"tu vades": -0.8, "vos vadez": -1.1},
        "and you see": {"e tu": -1.0, "e vos": -1.1, "e vos senor": -9.0},
    },
    most=4,
)
LM = {("senor", "vos"): 0.6, ("vos", "vos"): 0.5, ("tu", "tu"): 0.1}
DOCUMENT = ["good day", "you see", "you go", "and you see"]
PLAIN = ["bondia", "tu vides", "tu vades", "e tu"]
POLITE = ["bondia senor", "vos videz", "vos vadez", "e vos"]


def new_session(options: TranslationOptions | None = None) -> Session:
    session = Session(ModelSet(NMT, TableLM(LM)), options or TranslationOptions(), direction=Direction())
    list(session.translate(DOCUMENT))
    return session


@pytest.fixture(params=[False, True], ids=["last few", "rolling"])
def session(request: pytest.FixtureRequest) -> Session:
    return new_session(TranslationOptions(rolling=request.param, context=2))


def texts(session: Session) -> list[str]:
    return [entry.text for entry in session.current]


def test_what_follows_is_as_if_the_earlier_sentence_had_always_been_so(session: Session) -> None:
    assert texts(session) == PLAIN
    assert session.pick(2, 1).text == "bondia senor"
    assert texts(session) == [POLITE[0], *PLAIN[1:]]  # nothing else moves by itself
    changes = session.redo(1)
    assert texts(session) == POLITE
    assert [(one.number, one.before.text, one.after.text) for one in changes] == [
        (number, PLAIN[number - 1], POLITE[number - 1]) for number in (2, 3, 4)
    ]
    fresh = Session(session.models, session.options)
    list(fresh.translate(DOCUMENT[:1]))
    fresh.pick(2)
    list(fresh.translate(DOCUMENT[1:]))
    assert session.current == fresh.current
    assert session.redo(1) == [] and session.current == fresh.current


def test_a_document_as_it_is_stays_so(session: Session) -> None:
    before = list(session.current)
    assert session.redo(0) == [] and session.current == before


def test_what_a_person_decided_stays(session: Session) -> None:
    session.edit("tu video", 2)
    session.pick(1, 3)  # what is there already, and now meant
    session.pick(2, 1)
    changes = session.redo(1)
    assert texts(session)[:3] == ["bondia senor", "tu video", "tu vades"]
    assert [one.number for one in changes] == ([4] if session.options.rolling else [])
    assert [entry.is_user_choice for entry in session.current] == [True, True, True, False]
    # Its scores are those of the new context, and so is what it reads.
    picked = session.current[2]
    assert picked.parts[0].choice is not None and picked.parts[0].choice.index == 0
    assert picked.read == tuple(ids for entry in session.current[:2] for ids in entry.context_ids)
    assert session.edit("bondia", 1).text == "bondia" and session.current[0].picked is False
    assert session.pick(2, 2).edited is None


def test_what_stands_around_and_inside_of_a_sentence_stays_there() -> None:
    session = Session(ModelSet(NMT, TableLM(LM)), TranslationOptions())
    list(session.translate(["- good day", "- you see", "- <i>you go</i>"]))
    plain = texts(session)
    assert all(text.startswith("- ") for text in plain) and plain[2] == "- <i>tu vades</i>"
    session.pick(2, 1)
    assert [one.after.text for one in session.redo(1)] == ["- vos videz", "- <i>vos vadez</i>"]
    assert session.pick(2, 3).text == "- <i>tu vades</i>" and texts(session)[0] == "- bondia senor"
    session.edit("- bondia", 1)
    session.redo(1)
    assert texts(session)[2] == "- <i>tu vades</i>"


def test_the_next_sentence_reads_what_stands_there_now(session: Session) -> None:
    session.edit("senor", 3)
    session.edit("senor", 4)
    (entry,) = session.translate(["you see"])
    assert entry.text == "vos videz" and session.explain().context[-2:] == ("senor", "senor")


def test_the_options_of_now_count(session: Session) -> None:
    session.configure(dataclasses.replace(session.options, search="sentence"))
    assert session.redo(0) == []
    session.edit("senor", 1)
    assert session.redo(1) == []
    session.configure(dataclasses.replace(session.options, search="lattice", context=3))
    assert len(session.redo(1)) == 3 and texts(session)[1:] == POLITE[1:]
    # Lists are cut to as many hypotheses as are asked for; what was picked stays all the same.
    session.pick(3, 4)
    picked = session.current[3].text
    session.configure(dataclasses.replace(session.options, nbest=1))
    assert [one.after.text for one in session.redo(1)] == PLAIN[1:3] and session.last.text == picked


def test_what_was_changed_last_is_known_until_it_is_redone() -> None:
    session = new_session()
    known = [session.changed]
    for act in (
        lambda: session.pick(2, 1),
        lambda: list(session.translate(["you go"])),
        lambda: session.redo(1),
        lambda: session.edit("x"),
        lambda: session.new(),
    ):
        act()
        known.append(session.changed)
    assert known == [None, 1, 1, None, 5, None]


@pytest.mark.parametrize("number", [5, -1])
def test_a_sentence_that_is_not_there_is_refused_and_nothing_changes(number: int) -> None:
    session = new_session()
    before = list(session.current)
    for act in (
        lambda: session.pick(1, number),
        lambda: session.edit("x", number),
        lambda: session.redo(number),
    ):
        with pytest.raises(CadecError, match=f"no sentence {number}"):
            act()
    assert session.current == before


def test_either_all_is_chosen_again_or_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    session = new_session()
    session.pick(2, 1)
    before = list(session.current)
    asked = session._retranslate

    def stopped(place: int, names: NameMemory) -> object:
        if place == 3:
            raise KeyboardInterrupt
        return asked(place, names)

    monkeypatch.setattr(session, "_retranslate", stopped)
    with pytest.raises(KeyboardInterrupt):
        session.redo(1)
    assert session.current == before and session.changed == 1


def test_decisions_seeds_and_what_comes_before_are_saved() -> None:
    given = ModelSet(NMT, TableLM(LM), seeds={"formal": ["senor"]})
    options = TranslationOptions(formality="formal", rolling=True)
    session = Session(given, options, direction=Direction(identity="x"), after=["tu", "tu tu"])
    list(session.translate(DOCUMENT))
    session.pick(2, 2)
    session.edit("vos", 3)
    data = json.loads(session_json(session))
    stored = stored_session(data, session.direction, given.language, "x")
    assert stored.after == ("tu", "tu tu") and stored.options == options
    again = Session(given, options, documents=stored.documents, after=stored.after)
    assert again.documents == session.documents and again.current[1].picked
    assert again.in_use.sentences == session.in_use.sentences and again.in_use.pinned == 1
    for wrong in ({"pinned": 99}, {"pinned": True}, {"picked": 1}):
        spoilt = json.loads(json.dumps(data))
        spoilt["documents"][0][0] |= wrong
        with pytest.raises(CadecError, match="sentence 1 of document 1"):
            stored_session(spoilt, session.direction, given.language, "x")
    with pytest.raises(CadecError, match='the sentence of "after"'):
        stored_session(data | {"after": [1]}, session.direction, given.language, "x")
    # Sessions that were saved before there was any of this are read.
    for entry in data["documents"][0]:
        del entry["pinned"], entry["picked"]
    del data["after"]
    assert stored_session(data, session.direction, given.language, "x").after == ()
