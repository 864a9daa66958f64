import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cadec_cli.data import shards
from cadec_cli.data.shards import Shard, SideInfo, writing_shard
from cadec_cli.errors import CadecError
from cadec_cli.text.subwords import EOS
from tests.helpers.shard_parts import document_bounds

MONO = [SideInfo("ru", "abc", 1000)]
PAIR = [SideInfo("en", "abc", 1000), SideInfo("ru", "def", 70_000)]

SENTENCES = st.lists(st.integers(4, 999), max_size=5)
DOCUMENTS = st.lists(st.lists(SENTENCES, max_size=4), max_size=5)


def written(directory: Path, documents: list[list[list[int]]], sides: list[SideInfo] = MONO) -> Shard:
    """Write documents, each side a copy of the first."""
    with writing_shard(directory, sides) as writer:
        for document in documents:
            for sentence in document:
                writer.add(*[sentence] * len(sides))
            writer.end_document()
    return Shard(directory)


@given(documents=DOCUMENTS)
@settings(max_examples=60, deadline=None)
def test_what_is_written_is_read(documents: list[list[list[int]]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        shard = written(Path(directory) / "s", documents, PAIR)
        full = [document for document in documents if document]
        flat = [sentence for document in full for sentence in document]
        assert len(shard) == len(flat)
        for side in shard.sides:
            assert [side.sentence(i).tolist() for i in range(len(shard))] == [[*s, EOS] for s in flat]
            assert side.lengths.tolist() == [len(sentence) + 1 for sentence in flat]
        assert [end - first for first, end in document_bounds(shard)] == [len(document) for document in full]


@given(documents=DOCUMENTS)
@settings(max_examples=60, deadline=None)
def test_a_document_with_its_boundaries_is_one_slice(documents: list[list[list[int]]]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        shard = written(Path(directory) / "s", documents)
        side = shard.sides[0]
        full = [document for document in documents if document]
        for document, (first, end) in zip(full, document_bounds(shard), strict=True):
            start = side.ends[first - 1] - 1 if first else 0
            expected = [EOS, *(token for sentence in document for token in [*sentence, EOS])]
            assert side.tokens[start : side.ends[end - 1]].tolist() == expected


@pytest.mark.parametrize(("size", "dtype"), [(1 << 16, np.uint16), ((1 << 16) + 1, np.uint32)])
def test_every_id_of_the_vocabulary_fits(tmp_path: Path, size: int, dtype: type) -> None:
    shard = written(tmp_path / "s", [[[size - 1]]], [SideInfo("ru", "", size)])
    assert shard.sides[0].tokens.dtype == dtype
    assert shard.sides[0].sentence(0).tolist() == [size - 1, EOS]


def test_an_empty_shard_can_be_read(tmp_path: Path) -> None:
    shard = written(tmp_path / "s", [])
    assert len(shard) == len(shard.document_ends) == 0
    assert shard.sides[0].lengths.tolist() == []


def test_what_the_shard_remembers_of_its_pipelines(tmp_path: Path) -> None:
    assert [side.info for side in written(tmp_path / "s", [[[5]]], PAIR).sides] == PAIR


def test_two_sides_of_one_language_do_not_mix(tmp_path: Path) -> None:
    same = [SideInfo("en", "a", 100), SideInfo("en", "b", 100)]
    with writing_shard(tmp_path / "s", same) as writer:
        writer.add([5], [6, 7])
    shard = Shard(tmp_path / "s")
    assert [side.sentence(0).tolist() for side in shard.sides] == [[5, EOS], [6, 7, EOS]]


@pytest.mark.parametrize(
    "name",
    ["documents.bin", "0-en.tokens.bin", "0-en.ends.bin", "1-ru.tokens.bin", "1-ru.ends.bin", "shard.json"],
)
@pytest.mark.parametrize("damage", ["missing", "empty", "short", "shorter", "long"])
def test_a_damaged_file_is_an_error(tmp_path: Path, name: str, damage: str) -> None:
    written(tmp_path / "s", [[[5, 6], [7]], [[8]]], PAIR)
    path = tmp_path / "s" / name
    content = path.read_bytes()
    damaged = {"empty": b"", "short": content[:-1], "shorter": content[:-8], "long": content + b"\x05" * 8}
    if damage == "missing":
        path.unlink()
    elif name == "shard.json" and damage == "short":
        path.write_bytes(content[:-2])  # the last byte is a line end
    else:
        path.write_bytes(damaged[damage])
    with pytest.raises(CadecError):
        Shard(tmp_path / "s")


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"sides": []},
        {"sides": None},
        {"sides": [{"language": "en"}]},
        {"sides": "en"},
        {"sentences": 4},
        {"documents": 1},
        {"documents": "2"},
        {"tokens": [8]},
        {"tokens": None},
    ],
)
def test_a_shard_that_tells_something_else_is_an_error(tmp_path: Path, change: dict[str, object]) -> None:
    written(tmp_path / "s", [[[5, 6], [7]], [[8]]], PAIR)
    path = tmp_path / "s" / "shard.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(CadecError):
        Shard(tmp_path / "s")


@pytest.mark.parametrize("name", ["documents.bin", "0-ru.ends.bin"])
def test_files_of_another_corpus_are_an_error(tmp_path: Path, name: str) -> None:
    written(tmp_path / "s", [[[5, 6], [7]], [[8]]])
    written(tmp_path / "other", [[[5]], [[7], [8], [9]]])
    (tmp_path / "s" / name).write_bytes((tmp_path / "other" / name).read_bytes()[: 8 * 3])
    with pytest.raises(CadecError):
        Shard(tmp_path / "s")


def test_what_is_no_shard_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    for path in (tmp_path, tmp_path / "nothing", tmp_path / "file"):
        with pytest.raises(CadecError, match="not a prepared corpus"):
            Shard(path)


def test_an_unfinished_shard_never_appears(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), writing_shard(tmp_path / "s", MONO) as writer:
        writer.add([5])
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_a_shard_is_replaced_only_when_the_new_one_is_complete(tmp_path: Path) -> None:
    written(tmp_path / "s", [[[5]]])
    with pytest.raises(RuntimeError), writing_shard(tmp_path / "s", MONO) as writer:
        writer.add([6])
        raise RuntimeError
    assert Shard(tmp_path / "s").sides[0].sentence(0).tolist() == [5, EOS]
    assert written(tmp_path / "s", [[[7]]]).sides[0].sentence(0).tolist() == [7, EOS]
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


FILES = ["documents.bin", "0-en.tokens.bin", "0-en.ends.bin", "1-ru.tokens.bin", "1-ru.ends.bin"]


@pytest.mark.parametrize("name", [*FILES, "shard.json"])
def test_every_bit_counts_before_something_is_learnt(name: str, tmp_path: Path) -> None:
    shard = written(tmp_path / "s", [[[5, 6], [7]], [[8]]], PAIR)
    shard.verify()
    path = tmp_path / "s" / name
    content = path.read_bytes()
    meta = json.loads(content) if name == "shard.json" else None
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(bytes(damaged))
        try:
            opened = Shard(tmp_path / "s")
            opened.verify()
        except CadecError as error:
            assert str(tmp_path / "s") in error.message and (error.hint or "JSON" in error.message)
        else:  # white space, or the name of a key that says what the file has anyway
            assert meta is not None and [side.info for side in opened.sides] == PAIR


@pytest.mark.parametrize("name", FILES)
def test_what_is_too_large_to_be_read_whole_never_gives_ids_that_are_none(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "READ_WHOLE", 0)
    monkeypatch.setattr(shards, "_BLOCK", 2)
    written(tmp_path / "s", [[[5, 6], [7]], [[8]], [[9], [10, 11]]], PAIR)
    Shard(tmp_path / "s").verify()
    path = tmp_path / "s" / name
    content = bytearray(path.read_bytes())
    content[7] = 0xFF
    path.write_bytes(bytes(content))
    with pytest.raises(CadecError, match=f"{name} is damaged"):
        shard = Shard(tmp_path / "s")
        shard.verify()
        for side in shard.sides:
            for sentence in range(len(shard)):
                side.sentence(sentence)


def test_a_shard_of_before_there_were_checksums_can_be_read(tmp_path: Path) -> None:
    written(tmp_path / "s", [[[5]]])
    path = tmp_path / "s" / "shard.json"
    meta = json.loads(path.read_text())
    del meta["checksum"], meta["checksums"]
    path.write_text(json.dumps(meta))
    Shard(tmp_path / "s").verify()


@pytest.mark.parametrize(
    "change",
    [
        {"language": "../en"},
        {"language": 3},
        {"vocabulary_size": 0},
        {"vocabulary_size": 1 << 40},
        {"vocabulary_size": "1000"},
        {"boundary": -1},
        {"boundary": 1000},
        {"text": None},
    ],
)
def test_a_side_that_can_not_be_is_an_error(tmp_path: Path, change: dict[str, object]) -> None:
    written(tmp_path / "s", [[[5]]])
    path = tmp_path / "s" / "shard.json"
    meta = json.loads(path.read_text())
    del meta["checksum"]
    meta["sides"][0].update(change)
    path.write_text(json.dumps(meta))
    with pytest.raises(CadecError, match="is damaged"):
        Shard(tmp_path / "s")
