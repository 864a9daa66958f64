from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st

from cadec_cli.errors import CadecError
from cadec_cli.text.moses import MARKS
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.text.subwords import BOS, EOS, PAD, SPECIAL_PIECES, UNK, Subwords, train_subwords

LINES = ["the dog sees the cat", "a cat sees a dog", "dogs and cats see the sea"] * 20


@pytest.fixture(scope="module")
def subwords() -> Subwords:
    return train_subwords(LINES, vocabulary_size=320)


@pytest.fixture(scope="module")
def without_bytes() -> Subwords:
    return train_subwords(LINES, vocabulary_size=40, byte_fallback=False)


def test_special_ids_are_the_same_in_every_vocabulary(subwords: Subwords, without_bytes: Subwords) -> None:
    assert (PAD, UNK, BOS, EOS) == (0, 1, 2, 3)
    for model in (subwords, without_bytes):
        assert model.pieces[:4] == list(SPECIAL_PIECES)
        assert set(MARKS) <= set(model.pieces)
        assert len(model.pieces) == len(model)


@given(words=st.lists(st.text(st.characters(exclude_categories=("C", "Z"), exclude_characters="\u2581"))))
@settings(max_examples=300, deadline=None)
def test_any_tokens_come_back(subwords: Subwords, words: list[str]) -> None:
    text = " ".join(word for word in words if word.strip())
    ids = subwords.encode(text)
    assert subwords.decode(ids) == text
    assert all(len(SPECIAL_PIECES) <= index < len(subwords) for index in ids)


@given(ids=st.lists(st.integers(0, 300)))
@settings(max_examples=200, deadline=None)
def test_any_ids_can_be_decoded(subwords: Subwords, ids: list[int]) -> None:
    ids = [index % len(subwords) for index in ids]
    assert subwords.decode(ids) == subwords.decode([index for index in ids if index > EOS])


def test_unknown_characters_without_bytes_are_unknown(without_bytes: Subwords) -> None:
    assert UNK in without_bytes.encode("the щ")
    assert without_bytes.decode(without_bytes.encode("the щ")).split() == ["the"]


def test_an_empty_text_has_no_ids(subwords: Subwords) -> None:
    assert subwords.encode("") == []
    assert subwords.decode([]) == ""


def test_training_twice_gives_the_same_bytes(subwords: Subwords) -> None:
    assert train_subwords(LINES, vocabulary_size=320).serialised == subwords.serialised


def test_too_little_text_gives_a_smaller_vocabulary() -> None:
    assert len(train_subwords(LINES, vocabulary_size=16_000)) < 1000


@pytest.mark.parametrize("lines", [[], [""], [" "]])
def test_no_text_at_all_is_an_error(lines: list[str]) -> None:
    with pytest.raises(CadecError):
        train_subwords(lines, vocabulary_size=300)


def test_a_vocabulary_too_small_for_its_characters_is_an_error() -> None:
    with pytest.raises(CadecError, match="pieces"):
        train_subwords(LINES, vocabulary_size=10)


@pytest.mark.parametrize("content", [b"", b"not a model", "текст\n".encode() * 100, b"\x00" * 1000])
def test_a_foreign_file_is_an_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "subwords.model"
    path.write_bytes(content)
    with pytest.raises(CadecError):
        Subwords.load(path)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.9, 0.99])
def test_a_truncated_model_is_an_error(tmp_path: Path, subwords: Subwords, share: float) -> None:
    path = tmp_path / "subwords.model"
    path.write_bytes(subwords.serialised[: int(len(subwords.serialised) * share)])
    with pytest.raises(CadecError):
        Subwords.load(path)


def test_a_missing_file_or_a_directory_is_an_error(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing.model", tmp_path):
        with pytest.raises(CadecError, match=str(path)):
            Subwords.load(path)


def test_a_model_with_other_special_ids_is_refused(tmp_path: Path) -> None:
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(LINES),
        model_prefix=str(tmp_path / "other"),
        vocab_size=30,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    with pytest.raises(CadecError, match="special pieces"):
        Subwords.load(tmp_path / "other.model")


def test_a_saved_model_encodes_alike(tmp_path: Path, english: TextPipeline) -> None:
    path = tmp_path / "subwords.model"
    path.write_bytes(english.subwords.serialised)
    loaded = Subwords.load(path)
    assert loaded.encode("the captain doesn 't know") == english.subwords.encode("the captain doesn 't know")
