"""Pairs with placeholders: what both sides have is replaced on both, by the same."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.data.shards import Shard
from cadec_cli.main import exit_code
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.text.protected.spans import PLACEHOLDERS, with_placeholders
from tests.conftest import ENGLISH, sentences, trained_pipeline
from tests.helpers.made_up_models import cadec

WORDS = st.sampled_from(["word", "17", "2024", "a@b.example", "5 km", "http://x.example/y", "17"])


@given(st.lists(WORDS, max_size=8).map(" ".join), st.lists(WORDS, max_size=8).map(" ".join))
def test_both_sides_have_the_same_placeholders_and_nothing_else_changes(source: str, target: str) -> None:
    masked = with_placeholders(source, target, ("en", "ru"))
    if masked is None:
        return
    used = [sorted(one for one in text if one in PLACEHOLDERS) for text in masked]
    assert used[0] == used[1] and used[0]
    for before, after in zip((source, target), masked, strict=True):
        kept = [word for word in after.split() if word not in PLACEHOLDERS]
        assert set(kept) <= set(before.split())
    assert with_placeholders(source, target, ("en", "ru")) == masked


def test_nothing_to_copy_is_none() -> None:
    assert with_placeholders("He came.", "Он пришёл.", ("en", "ru")) is None
    assert with_placeholders("He has 5.", "У него 6.", ("en", "ru")) is None


def test_a_corpus_is_taught_placeholders_where_both_pipelines_have_them(tmp_path: Path) -> None:
    lines = sentences(ENGLISH, 200)
    rows = [f"{line} {number}\t{line} {number}" for number, line in enumerate(lines, 100)]
    (tmp_path / "pairs.tsv").write_text("\n".join([*rows, *(f"{line}\t{line}" for line in lines)]) + "\n")
    tokenizer = ("train", "tokenizer", tmp_path / "pairs.tsv", "--column", 1, "-l", "en", "--processes", 1)
    cadec(*tokenizer, "--vocab-size", 400, "--placeholders", "-o", tmp_path / "en")
    cadec(*tokenizer, "--vocab-size", 400, "-o", tmp_path / "without")
    both = ("--columns", "1,2", "-p", tmp_path / "en", "--lines", "--no-documents", "--processes", 1)
    prepare = ("prepare", "text", tmp_path / "pairs.tsv", *both)
    cadec(*prepare, "-p", tmp_path / "en", "-o", tmp_path / "data", "--placeholders")
    cadec(*prepare, "-p", tmp_path / "en", "-o", tmp_path / "plain")
    taught, plain = Shard(tmp_path / "data"), Shard(tmp_path / "plain")
    assert len(taught) == len(plain) + len(rows)
    vocabulary = TextPipeline.load(tmp_path / "en").vocabulary
    assert set(PLACEHOLDERS) <= set(vocabulary)
    wrong = [
        str(one) for one in (*prepare, "-p", tmp_path / "without", "-o", tmp_path / "x", "--placeholders")
    ]
    assert exit_code(wrong) != 0 and not (tmp_path / "x").exists()


def test_a_placeholder_comes_back_from_a_round_trip() -> None:
    pipeline = trained_pipeline("en", sentences(ENGLISH, 200))
    text = f"The doctor sees {PLACEHOLDERS[0]} ."
    assert pipeline.decode(pipeline.encode(text)) == pipeline.canonical(text)


@pytest.mark.parametrize("one", PLACEHOLDERS)
def test_no_placeholder_is_white_space_or_a_letter(one: str) -> None:
    assert not one.isspace() and not one.isalnum()
