"""Where a cue has too little room, a shorter hypothesis of like quality wins; else nothing changes."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.decoding.confidence import Judge
from cadec_cli.decoding.state import list_json, list_of, part_json, part_of
from cadec_cli.decoding.translation import Translation
from cadec_cli.decoding.translator import Translator, choose
from cadec_cli.decoding.units import Splitter
from cadec_cli.engines.context_free_terms import Overflow
from cadec_cli.engines.protocols import ModelSet
from cadec_cli.errors import CadecError
from cadec_cli.jobs.done import document_key
from cadec_cli.jobs.json_lines import json_bytes, read_documents
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.method.objectives import FIT
from cadec_cli.method.options import TranslationOptions
from cadec_cli.text.documents import Document, Sentence
from tests.helpers.fakes import TableLM, TableNMT

TABLE = {
    "Good day.": {"Bonan tagon al vi.": -1.0, "Bonan tagon.": -1.5, "Saluton.": -4.0},
    "You see.": {"Vi nun vidas.": -1.0, "Vidu.": -1.2},
}


def translated(rooms: list[float | None], **options: object) -> list[Translation]:
    document = Document(tuple(Sentence(text, room=room) for text, room in zip(TABLE, rooms, strict=True)))
    chosen = TranslationOptions(objective="sentence", **options)  # type: ignore[arg-type]
    return list(Translator(ModelSet(TableNMT(TABLE), TableLM({})), chosen).translate(document))


def texts(rooms: list[float | None], **options: object) -> list[str]:
    return [one.text for one in translated(rooms, **options)]


LIKELIEST = ["Bonan tagon al vi.", "Vi nun vidas."]


@pytest.mark.parametrize("search", ["rerank", "lattice"])
def test_the_shorter_one_is_chosen_only_where_room_is_wanting(search: str) -> None:
    weights = {"search": search, "weight": {FIT: 0.1}}
    assert texts([None, None], **weights) == LIKELIEST
    assert texts([100, 100], **weights) == LIKELIEST
    assert texts([12, 100], **weights) == ["Bonan tagon.", "Vi nun vidas."]
    assert texts([8, 5], **weights) == ["Bonan tagon.", "Vidu."]  # the shortest of all is too unlikely
    assert texts([8, 5], search=search, weight={FIT: 1}) == ["Saluton.", "Vidu."]
    assert texts([17, 100], **weights) == LIKELIEST  # one character is not worth half a nat
    assert texts([0, 0], search=search, weight={FIT: 0}) == texts([0, 0], search=search) == LIKELIEST


def test_json_tells_the_room_and_what_goes_beyond_it(tmp_path: Path) -> None:
    options = {"weight": {FIT: 0.1}}
    made = translated([12, 100.9], **options)
    lines = b"".join(json_bytes(made, _judge()))
    first, second = map(json.loads, lines.splitlines())
    assert (first["room"], second["room"]) == (12, 100)
    assert [one[FIT] for one in first["hypotheses"]] == [0, 6, 6]
    path = tmp_path / "lists.jsonl"
    path.write_bytes(lines)
    lists = read_documents(path)
    chosen = TranslationOptions(objective="sentence", **options)  # type: ignore[arg-type]
    again = list(choose(lists, ModelSet(TableNMT(TABLE), TableLM({})), chosen))
    assert [one.text for one in again] == [one.text for one in made]
    assert b"".join(json_bytes(again, _judge())) == lines


def _judge() -> Judge:
    return Judge()


@pytest.mark.parametrize("room", ["12", -1, 1.5, True, 10**30])
def test_a_room_that_is_no_number_of_characters_is_refused(room: object, tmp_path: Path) -> None:
    path = tmp_path / "lists.jsonl"
    path.write_text(json.dumps({"source": "x", "hypotheses": [], "translation": "x", "room": room}))
    with pytest.raises(CadecError, match="entry 1 has a room"):
        read_documents(path)


@given(st.lists(st.text(max_size=30), min_size=1, max_size=5), st.none() | st.integers(0, 40))
def test_what_goes_beyond_the_room_is_counted(texts: list[str], room: int | None) -> None:
    nbest = NBest("x", tuple(Hypothesis(text, -1.0) for text in texts), room=room)
    ((counts,),) = (terms.values() for terms in Overflow("").terms([nbest]))
    beyond = [0 if room is None else max(0, len(text) - room) for text in texts]
    assert counts == [beyond[0] - count for count in beyond]
    assert list_of(list_json(nbest)) == nbest
    assert part_of(part_json(translated([3, None])[0].parts[0])).nbest.room == 3


def test_length_is_no_reason_to_say_tu() -> None:
    found = ["Vous le connaissez ?", "Vous connaissez ?", "Tu le connais ?", "On le connaît ?", "Connu ?"]
    nbest = NBest("You know him?", tuple(Hypothesis(text, -1.0) for text in found), room=10)
    assert Overflow("fr").terms([nbest]) == [{FIT: [0, 3, 0, 0, 5]}]
    assert Overflow("xx").terms([nbest]) == [{FIT: [0, 3, 5, 5, 10]}]
    assert Overflow("fr").terms([replace(nbest, room=19)]) == [{FIT: [0, 1, 0, 0, 0]}]


def test_pieces_share_the_room_of_their_sentence() -> None:
    splitter = Splitter(lambda text: True, lambda text: [text], "en", protect=True, cut=True)
    film = Document((Sentence("[sighs] <i>Well</i>, come.", room=21),), speakers=True)
    sighs, come = splitter.units(0, film)
    # 7 and 11 of 19 characters that are seen; the brackets take two
    assert (sighs.room, come.room) == (int(21 * 7 / 19) - 2, int(21 * 11 / 19))
    without = Document((Sentence("[sighs] Well, come."),), speakers=True)
    assert [unit.room for unit in splitter.units(0, without)] == [None, None]


def test_a_document_with_other_rooms_is_another() -> None:
    assert document_key(["x"]) == document_key(["x"], rooms=())
    assert len({document_key(["x"]), document_key(["x"], rooms=[3]), document_key(["x"], rooms=[4])}) == 3
