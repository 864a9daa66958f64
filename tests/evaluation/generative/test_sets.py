"""Both layouts are read, and whatever is wrong with a file is one error that names the file and the item."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from cadec_cli.errors import CadecError
from cadec_cli.evaluation.generative.sets import (
    GenerativeSet,
    Item,
    read_set,
    read_sets,
    read_system,
    system_files,
)

OWN: dict[str, Any] = {
    "document": ["Hello, love.", "I see you."],
    "expected": "te",
    "rule": "ACC",
    "reference": "Je te vois.",
}
CTXPRO: dict[str, Any] = {
    "src pronoun": "you",
    "expected": "te",
    "ref segment": "Je te vois.",
    "src segment": "I see you.",
    "segment id": 7,
    "document id": "en-fr/a",
    "rule": "ACC",
}
INPUT = "Hello, love.<eos> I see you.\n"


def written(path: Path, value: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value, "utf-8")
    return path


def own(directory: Path, *records: dict[str, Any]) -> Path:
    return written(directory / "own.jsonl", "".join(json.dumps(one) + "\n" for one in records))


def theirs(directory: Path, *records: dict[str, Any]) -> Path:
    return written(directory / "jsons" / "theirs.test.json", json.dumps(records))


def test_both_layouts_hold_the_same(tmp_path: Path) -> None:
    path = theirs(tmp_path, CTXPRO)
    written(tmp_path / "inputs" / "theirs.test", INPUT)
    items = read_set(path).items
    assert items == read_set(own(tmp_path, OWN)).items
    assert items == (Item(("Hello, love.", "I see you."), "te", "ACC", "Je te vois.", "1"),)
    assert items[0].source == "I see you."


def test_the_file_with_documents_is_found_or_given(tmp_path: Path) -> None:
    path = theirs(tmp_path, CTXPRO)
    with pytest.raises(CadecError, match="is not beside it"):
        read_set(path)
    beside = written(path.with_suffix(""), "I see you.\n")
    assert read_set(path).items[0].document == ("I see you.",)
    other = tmp_path / "other.gz"
    other.write_bytes(gzip.compress(INPUT.encode()))
    assert len(read_set(path, other).items[0].document) == 2
    sets = read_sets([own(tmp_path, OWN), path, path], [other, beside])
    assert [len(one.items[0].document) for one in sets] == [2, 2, 1]
    with pytest.raises(CadecError, match="belongs to no set"):
        read_sets([own(tmp_path, OWN)], [other])


def test_rule_and_reference_may_be_missing(tmp_path: Path) -> None:
    bare = {key: OWN[key] for key in ("document", "expected")}
    one, other = read_set(own(tmp_path, bare, {**OWN, "rule": None, "reference": None, "film": 1})).items
    assert (one.rule, one.reference) == (other.rule, other.reference) == ("", None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"document": None}, "“document” is not a list"),
        ({"document": []}, "“document” is not a list"),
        ({"document": "I see you."}, "“document” is not a list"),
        ({"document": ["Hello.", " "]}, "“document” is empty"),
        ({"document": ["Hello.", 3]}, "“document” is not text"),
        ({"expected": ""}, "“expected” is empty"),
        ({"expected": ["te"]}, "“expected” is not text"),
        ({"rule": 3}, "“rule” is not text"),
        ({"reference": {}}, "“reference” is not text"),
    ],
)
def test_what_an_item_can_not_be(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = own(tmp_path, OWN, {**OWN, **change})
    with pytest.raises(CadecError, match=f"own.jsonl: item 2: {message}") as error:
        read_set(path)
    assert "looks like this" in error.value.hint


@pytest.mark.parametrize("key", ["document", "expected"])
def test_what_an_item_needs(tmp_path: Path, key: str) -> None:
    with pytest.raises(CadecError, match=f"item 1: it has no “{key}”"):
        read_set(own(tmp_path, {name: value for name, value in OWN.items() if name != key}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("[]", "has no items"),
        ("[{]", "is not valid JSON"),
        ("[3]", "item 1: it is not an object"),
        ("3", "item 1: it is not an object"),
        ('{"document": ["a"], "expected": "b"}\n{', "item 2: line 2 is not valid JSON"),
        ("Hello.\n", "item 1: line 1 is not valid JSON"),
    ],
)
def test_what_is_no_set(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CadecError, match=message):
        read_set(written(tmp_path / "set.json", text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has 0 lines, and .* has 2 items"),
        (INPUT, "has 1 lines, and .* has 2 items"),
        (INPUT + "<eos>\n", "line 2 has no sentence"),
        ("A.<eos> B.\nC.\n", "line 1 ends with 'B.'"),
    ],
)
def test_documents_that_are_not_those_of_the_set(tmp_path: Path, text: str, message: str) -> None:
    path = theirs(tmp_path, CTXPRO, CTXPRO)
    with pytest.raises(CadecError, match=message):
        read_set(path, written(tmp_path / "inputs.txt", text))


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CadecError, match="is larger than 100B"):
        read_set(own(tmp_path, OWN), most=100)
    path = theirs(tmp_path, CTXPRO)
    with pytest.raises(CadecError, match=r"inputs.txt is larger than 300B"):
        read_set(path, written(tmp_path / "inputs.txt", INPUT * 20), most=300)


@pytest.fixture
def seven(tmp_path: Path) -> GenerativeSet:
    return read_set(own(tmp_path, *({**OWN, "rule": f"R{number}"} for number in range(7))))


def test_a_sample_is_spread_over_the_set(seven: GenerativeSet) -> None:
    for limit in range(1, 10):
        sample = seven.sample(limit)
        assert len(sample.items) == min(limit, 7) == len(set(sample.places))
        assert [seven.items[place] for place in sample.places] == list(sample.items)
        gaps = [after - before for before, after in zip(sample.places, sample.places[1:], strict=False)]
        assert not gaps or max(gaps) - min(gaps) <= 1
    assert seven.sample(3).in_file == 7


def test_other_systems_have_a_line_for_every_item(seven: GenerativeSet, tmp_path: Path) -> None:
    lines = [f"Salut. Oui.<eos> Je te vois. Bien {number}." for number in range(6)]
    path = written(tmp_path / "system", "\n".join([*lines, ""]) + "\n")
    assert read_system(path, seven) == (*(f"Je te vois. Bien {number}." for number in range(6)), "")
    assert read_system(path, seven, "fr") == (*(f"Bien {number}." for number in range(6)), "")
    sample = seven.sample(3)
    assert read_system(path, sample) == tuple(read_system(path, seven)[place] for place in sample.places)
    with pytest.raises(CadecError, match=r"system has 6 lines, and .*own\.jsonl has 7 items"):
        read_system(written(path, "\n".join(lines)), sample)


@pytest.mark.parametrize("limit", [10, 5])
def test_translations_in_another_order(tmp_path: Path, limit: int) -> None:
    words = ["eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn"]
    references = [" ".join(word + letter for letter in "abcdefg") for word in words]
    of_set = read_set(own(tmp_path, *({**OWN, "reference": text} for text in references))).sample(limit)
    inexact = [text.rpartition(" ")[0] + " x" for text in references]
    assert read_system(written(tmp_path / "good", "\n".join(inexact)), of_set)
    assert read_system(written(tmp_path / "bad", "\n".join(["nichts davon ist richtig"] * 10)), of_set)
    swapped = written(tmp_path / "swapped", "\n".join([*inexact[:2][::-1], *inexact[2:]]))
    assert read_system(swapped, of_set)  # two of many may be alike
    moved = written(tmp_path / "moved", "\n".join([*inexact[1:], inexact[0]]))
    with pytest.raises(CadecError, match=r"moved is not in the order of .*: line 10 translates item 1"):
        read_system(moved, of_set)


def test_documents_in_another_order(tmp_path: Path) -> None:
    items = [{**CTXPRO, "src segment": f"I see you, {name}."} for name in ("Ann", "Bob", "Cy", "Dan")]
    path = theirs(tmp_path, *items)
    lines = [f"Hello.<eos> {item['src segment']}\n" for item in items]
    assert len(read_set(path, written(tmp_path / "a", "".join(lines))).items) == 4
    lines[0] = "Hello.<eos> I see you , Ann.\n"
    assert len(read_set(path, written(tmp_path / "b", "".join(lines))).items) == 4
    lines[2:] = lines[:1:-1]
    with pytest.raises(CadecError, match=r"line 3 ends with 'I see you, Dan.', the sentence of item 4"):
        read_set(path, written(tmp_path / "c", "".join(lines)))


def test_systems_are_named() -> None:
    files = system_files(["a=x=1", "b=y", "a=z", "b=y"], 2)
    assert files == {"a": [Path("x=1"), Path("z")], "b": [Path("y"), Path("y")]}
    for wrong in ("a", "=x", "a=", " =x"):
        with pytest.raises(CadecError, match="does not name a system and its file"):
            system_files([wrong], 1)
    with pytest.raises(CadecError, match="a has 1 files, and there are 2 sets"):
        system_files(["a=x"], 2)
