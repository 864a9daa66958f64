"""Every published layout is read, and whatever is wrong with a set is one error that names the group."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cadec_cli.errors import CadecError
from cadec_cli.evaluation.contrastive.sets import LAYOUTS, Group, Undecidable, read_set

VOITA: dict[str, Any] = {
    "src": "A . _eos B , b . _eos I saw you .",
    "dst": ["Ц . _eos Д . _eos Я видел вас .", "Ц . _eos Д . _eos Я видел тебя ."],
    "true_ind": 1,
    "ctx_dist": 2,
}
CONTRAPRO: dict[str, Any] = {
    "src segment": "It is red.",
    "ref segment": "Er ist rot.",
    "errors": [{"contrastive": "Sie ist rot."}, {"contrastive": "Es ist rot.", "type": "pronoun"}],
    "ante distance": 1,
    "src pronoun": "it",
}
EXAMPLE: dict[str, Any] = {
    "src": ["What's crazy about me?", "Is this crazy?"],
    "trg": {
        "correct": ["C'est dingue ?", "Est-ce dingue ?"],
        "incorrect": ["C'est dingue ?", "Est-ce fou ?"],
    },
}
OWN: dict[str, Any] = {"source": "x", "context": ["c", "d"], "candidates": ["a", "b"], "truth": 0}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "set.json"


def read(path: Path, value: Any, layout: str | None = None) -> tuple[Group, ...]:
    path.write_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), "utf-8")
    return read_set(path, layout).groups


def test_candidates_come_after_what_stands_before_the_true_one(path: Path) -> None:
    (group,) = read(path, [VOITA | {"dst": [VOITA["dst"][0], "Ч . _eos Д . _eos Я видел тебя ."]}])
    assert group.context == ("Ч .", "Д .")


def test_voita(path: Path) -> None:
    without = {key: value for key, value in VOITA.items() if key != "ctx_dist"}
    first, second = read(path, [VOITA, without])
    assert first == Group(
        source="I saw you .",
        context_source=("A .", "B , b ."),
        context=("Ц .", "Д ."),
        candidates=("Я видел вас .", "Я видел тебя ."),
        truth=1,
        distance=2,
        name="1",
    )
    assert (second.name, second.distance) == ("2", None)
    found = read_set(path)
    assert (found.layout, found.name, found.tokenised) == ("voita", "set", True)


def test_contrapro_with_and_without_contexts(path: Path) -> None:
    contexts = {"src context": ["", "There is a car."], "ref context": ["", "Da ist ein Wagen."]}
    first, second = read(path, [CONTRAPRO, CONTRAPRO | contexts])
    assert first == Group(
        source="It is red.",
        context_source=(),
        context=(),
        candidates=("Er ist rot.", "Sie ist rot.", "Es ist rot."),
        truth=0,
        distance=1,
        name="1",
    )
    assert (second.context_source, second.context) == (("There is a car.",), ("Da ist ein Wagen.",))
    assert not read_set(path).tokenised


def test_discevalmt_has_two_shapes(path: Path) -> None:
    half = {"semi-correct": ["Les roses.", "Elles."], "incorrect": ["Les roses.", "Ils."]}
    whole = {"correct": ["Les lys.", "Ils."], "incorrect": ["Les lys.", "Elles."], "type": "m.pl"}
    blocks = {
        "10": {"type": "repet", "examples": [EXAMPLE]},
        "2": {"src": ["The flowers.", "They."], "trg": [whole, half]},
    }
    groups = read(path, blocks)
    assert [group.name for group in groups] == ["2.1", "2.2", "10.1"]  # by number, as their script reads it
    assert groups[0].candidates == ("Ils.", "Elles.")
    assert groups[1] == Group("They.", ("The flowers.",), ("Les roses.",), ("Elles.", "Ils."), 0, None, "2.2")
    assert groups[2].context == ("C'est dingue ?",)


@pytest.mark.parametrize("count", [1, 2])
def test_our_own_lines(path: Path, count: int) -> None:
    more = OWN | {"context_source": ["s"], "distance": 4, "note": "kept out"}
    lines = [json.dumps(record) for record in (more, OWN)][:count]
    groups = read(path, "\ufeff" + "\r\n\n".join(lines) + "\n")
    assert groups[0] == Group("x", ("s",), ("c", "d"), ("a", "b"), 0, 4, "1")
    assert len(groups) == count


def test_compressed_sets_and_halves_of_characters(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(OWN | {"source": "\ud800!"}).encode()))
    found = read_set(path)
    assert (found.groups[0].source, found.name) == ("\ufffd!", "set")


def without(record: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != key}


TARGETS = VOITA["dst"]

MALFORMED = [
    *((layout, without(record, key), f"no “{key}”") for layout, record, keys in (
        ("voita", VOITA, ("src", "dst", "true_ind")),
        ("contrapro", CONTRAPRO, ("src segment", "ref segment", "errors")),
        ("jsonl", OWN, ("source", "context", "candidates", "truth")),
    ) for key in keys),
    ("voita", VOITA | {"true_ind": 2}, "number 2 of 2"),
    ("voita", VOITA | {"true_ind": -1}, "number -1 of 2"),
    ("voita", VOITA | {"true_ind": True}, "“true_ind” is not a whole number"),
    ("voita", VOITA | {"true_ind": float("nan")}, "“true_ind” is not a whole number"),
    ("voita", VOITA | {"ctx_dist": "far"}, "“ctx_dist” is not a whole number"),
    ("voita", VOITA | {"dst": [TARGETS[0]] * 2, "true_ind": 2}, "number 2 of 2"),
    ("voita", VOITA | {"dst": "Ц . _eos Д ."}, "“dst” is not a list"),
    ("voita", VOITA | {"dst": [None, None]}, "“dst” is not text"),
    ("voita", VOITA | {"dst": [text.replace("_eos", "|||") for text in TARGETS]}, "no separator “ _eos ”"),
    ("voita", VOITA | {"dst": ["Ц . _eos Д .", "Ц . _eos Е ."]}, "“src” has 3 sentences"),
    ("voita", VOITA | {"dst": ["Ц . _eos _eos А", "Ц . _eos _eos Б"]}, "empty sentence"),
    ("contrapro", CONTRAPRO | {"errors": []}, "“errors” is not a list"),
    ("contrapro", CONTRAPRO | {"errors": [{}]}, "no “contrastive”"),
    ("contrapro", CONTRAPRO | {"ref context": "Da ist ein Wagen."}, "“ref context” is not a list"),
    ("jsonl", OWN | {"truth": 5}, "number 5 of 2"),
    ("jsonl", OWN | {"context": "c"}, "“context” is not a list"),
    ("jsonl", OWN | {"candidates": ["a", " "]}, "“candidates” is empty"),
    ("jsonl", OWN | {"distance": 1.5}, "“distance” is not a whole number"),
    ("jsonl", 5, "not an object"),
]  # fmt: skip


@pytest.mark.parametrize(("layout", "record", "message"), MALFORMED)
def test_a_malformed_group_is_named(path: Path, layout: str, record: Any, message: str) -> None:
    good = {"voita": VOITA, "contrapro": CONTRAPRO, "jsonl": OWN}[layout]
    value = [good, record]
    text = "\n".join(map(json.dumps, value)) if layout == "jsonl" else json.dumps(value)
    for forced in (None, layout):
        with pytest.raises(CadecError) as caught:
            read(path, text, forced)
        assert caught.value.message.startswith(f"{path}: group 2: ")
        assert message in caught.value.message
        assert LAYOUTS[layout] in caught.value.hint


@pytest.mark.parametrize(
    ("block", "name", "message"),
    [
        ({"examples": [EXAMPLE, {"src": EXAMPLE["src"]}]}, "3.2", "no “trg”"),
        ({"examples": [EXAMPLE, EXAMPLE | {"trg": {"correct": ["a", "b"]}}]}, "3.2", "no “incorrect”"),
        ({"examples": 1}, "3", "neither"),
        ([], "3", "neither"),
        ({"src": None, "trg": [EXAMPLE["trg"]]}, "3.1", "“src” is not a list"),
    ],
)
def test_a_malformed_block_is_named(path: Path, block: Any, name: str, message: str) -> None:
    with pytest.raises(CadecError, match=message) as caught:
        read(path, {"1": {"examples": [EXAMPLE]}, "3": block})
    assert f"group {name}: " in caught.value.message


NOTHING_TO_CHOOSE = [
    ("voita", VOITA | {"dst": TARGETS[:1], "true_ind": 0}, 1),
    ("voita", VOITA | {"dst": [TARGETS[1]] * 5}, 5),
    ("voita", VOITA | {"dst": ["А . _eos Б . _eos Нет .", "В . _eos Г . _eos Нет ."]}, 2),
    ("contrapro", CONTRAPRO | {"errors": [{"contrastive": "Er ist rot."}]}, 2),
    ("jsonl", OWN | {"candidates": ["a", "a", "a"]}, 3),
]


@pytest.mark.parametrize(("layout", "record", "candidates"), NOTHING_TO_CHOOSE)
def test_a_group_without_a_choice_is_left_out_and_the_others_stay(
    path: Path, layout: str, record: Any, candidates: int
) -> None:
    good = {"voita": VOITA, "contrapro": CONTRAPRO, "jsonl": OWN}[layout]

    def written(records: list[Any]) -> str:
        return "\n".join(map(json.dumps, records)) if layout == "jsonl" else json.dumps(records)

    groups = read(path, written([record, good, good, record, record, good]))
    assert [group.name for group in groups] == ["2", "3", "6"]
    found = read_set(path)
    assert found.left_out == 3
    assert found.undecidable == tuple(
        Undecidable(name, candidates, place) for name, place in (("1", 0), ("4", 2), ("5", 2))
    )
    kept = read_set(path)
    read(path, written([good, good, good]))
    assert read_set(path).left_out == 0
    assert [replace(group, name="") for group in read_set(path).groups] == [
        replace(group, name="") for group in kept.groups
    ]
    with pytest.raises(CadecError, match="no group has two different candidates"):
        read(path, written([record, record]))


def test_a_set_like_the_published_one(path: Path) -> None:
    """499 groups with a choice of five inflections, and one whose five candidates are equal."""
    forms = ["брата", "брату", "братом", "брате", "брат"]
    records: list[dict[str, Any]] = [
        {
            "src": f"I know {number} . _eos Whom ? _eos Who ? _eos My brother .",
            "dst": [f"Я знаю {number} . _eos Кого ? _eos Кто ? _eos Моего {form} ." for form in forms],
            "true_ind": 0,
        }
        for number in range(500)
    ]
    records[216]["dst"] = [records[216]["dst"][0]] * 5
    groups = read(path, records)
    found = read_set(path)
    assert (len(groups), found.left_out) == (499, 1)
    assert found.chance == pytest.approx(1 / 5)
    assert found.undecidable == (Undecidable("217", candidates=5, place=216),)
    in_order = list(found.in_file_order(group.name for group in groups))
    assert in_order[:216] + in_order[217:] == [str(number) for number in range(1, 501) if number != 217]
    assert in_order[216] == found.undecidable[0]


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_file(path: Path, text: str) -> None:
    with pytest.raises(CadecError, match="is empty"):
        read(path, text)


@pytest.mark.parametrize("layout", [None, "voita", "contrapro"])
def test_a_list_of_nothing(path: Path, layout: str | None) -> None:
    with pytest.raises(CadecError, match="no groups"):
        read(path, [], layout)


@pytest.mark.parametrize("text", ["{}", "[1, 2]", '"text"', '[{"a": 1}]', '{"a": {"b": 1}}', "3"])
def test_other_layouts_are_told_what_is_expected(path: Path, text: str) -> None:
    with pytest.raises(CadecError, match="known layout") as caught:
        read(path, text)
    assert all(shape in caught.value.hint for shape in LAYOUTS.values())


@pytest.mark.parametrize("text", ["Hello.", json.dumps([VOITA])[:-9], "{\n", "[" * 100_000])
def test_what_is_no_json(path: Path, text: str) -> None:
    with pytest.raises(CadecError, match="not valid JSON"):
        read(path, text)


def test_a_broken_line_is_named(path: Path) -> None:
    with pytest.raises(CadecError, match="group 2: line 3 is not valid JSON"):
        read(path, json.dumps(OWN) + "\n\n{\n")


def test_other_files_that_can_not_be_read(path: Path, tmp_path: Path) -> None:
    with pytest.raises(CadecError, match="no such file"):
        read_set(path)
    path.write_bytes('{"source": "é"}'.encode("latin-1"))
    with pytest.raises(CadecError, match="line 1 is not utf-8") as caught:
        read_set(path)
    assert "UTF-8" in caught.value.hint and "encoding" not in caught.value.hint
    with pytest.raises(CadecError, match="no layout 'xml'"):
        read_set(path, "xml")


def test_a_forced_layout_is_believed(path: Path) -> None:
    with pytest.raises(CadecError, match="group 1: it has no “errors”"):
        read(path, [VOITA], "contrapro")
    with pytest.raises(CadecError, match="is not a list"):
        read(path, OWN, "voita")
