"""Windows over pairs: what a language model reads that is to know both languages."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cadec_cli.data.batches import (
    NO_LABEL,
    PairText,
    PairWindows,
    WeightedShard,
    in_order,
    plan_updates,
    tokens_seen,
)
from cadec_cli.data.shards import Shard, SideInfo, writing_shard
from cadec_cli.errors import CadecError

BOUNDARY, START, SOURCE, TARGET = 2, 1, 1000, 2000
Document = list[tuple[int, int]]


def paired(directory: Path, documents: list[Document]) -> Shard:
    """A shard of pairs given by their lengths; source ids begin at 1000, target ids at 2000, none twice."""
    count = 0
    with writing_shard(
        directory, [SideInfo(code, "", 5000, BOUNDARY, "language model") for code in ("en", "fr")]
    ) as writer:
        for document in documents:
            for source, target in document:
                ids = np.arange(count, count + max(source, target))
                writer.add((SOURCE + ids[:source]).tolist(), (TARGET + ids[:target]).tolist())
                count += max(source, target)
            writer.end_document()
    return Shard(directory)


def read_in_turn(shard: Shard) -> tuple[list[int], list[bool]]:
    """The text of both sides, and which tokens are of the target, written down sentence by sentence."""
    tokens, target = [BOUNDARY], [False]
    for pair in range(len(shard)):
        for side in (0, 1):
            ids = shard.sides[side].sentence(pair).tolist()
            tokens += ids
            target += [side == 1] * len(ids)
    return tokens, target


lengths = st.tuples(st.integers(1, 9), st.integers(1, 9))
documents = st.lists(st.lists(lengths, min_size=1, max_size=7), min_size=1, max_size=5)


@settings(max_examples=40, deadline=None)
@given(documents)
def test_a_corpus_of_pairs_is_one_text(drawn: list[Document]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        shard = paired(Path(directory) / "pairs", drawn)
        tokens, target = read_in_turn(shard)
        text = PairText(shard)
        assert text.ends[-1] == len(tokens)
        random = np.random.default_rng(len(tokens))
        for _ in range(20):
            start, end = sorted(random.choice(len(tokens) + 1, 2, replace=False).tolist())
            assert text.cut(start, end).tolist() == tokens[start:end]
            assert text.targets(start, end).tolist() == target[start:end]
        places = np.arange(1, len(tokens) + 1)
        assert text.targets_before(places).tolist() == [sum(target[:place]) for place in places]
        for place, end in zip(places.tolist()[1:], text.end_of_targets(places[1:]).tolist(), strict=True):
            last = max((i + 1 for i in range(place) if target[i]), default=1)
            assert end == last


@settings(max_examples=40, deadline=None)
@given(documents, st.integers(20, 60), st.integers(0, 3))
def test_windows_begin_with_a_source_sentence_and_only_translations_are_labels(
    drawn: list[Document], window: int, epoch: int
) -> None:
    stride = window - 20  # no pair has more tokens than windows share
    with tempfile.TemporaryDirectory() as directory:
        shards = [WeightedShard(paired(Path(directory) / "pairs", drawn))]
        shard = shards[0].shard
        tokens, target = read_in_turn(shard)
        starts = {1, *PairText(shard).ends.tolist()}
        examples = PairWindows(shards, window, max(stride, 1), start=START)
        examples.epoch(5, epoch)
        found = set()
        for number in range(len(examples)):
            batch = examples.batch(np.array([number]))
            (read,) = (row.tolist() for row in batch.inputs[0])
            (labels,) = (row.tolist() for row in batch.labels)
            assert read[0] == START and len(read) == examples.lengths()[number, 0] <= window
            place = tokens.index(read[1])
            assert place in starts and read[1:] == tokens[place : place + len(read) - 1]
            expected = [
                token if own else NO_LABEL for token, own in zip(tokens[place:], target[place:], strict=True)
            ]
            assert labels == expected[: len(labels)] and labels[-1] != NO_LABEL
            assert examples.labels()[number] == sum(label != NO_LABEL for label in labels) > 0
            found |= {label for label in labels if label != BOUNDARY}
        assert found - {NO_LABEL} == {token for token in tokens if token >= TARGET}


def test_a_pair_longer_than_a_window_is_read_whole(tmp_path: Path) -> None:
    shard = paired(tmp_path / "pairs", [[(3, 300), (200, 5), (5, 5)]])
    examples = PairWindows([WeightedShard(shard)], 64, 48, start=START)
    found: set[int] = set()
    for batch in in_order(examples, 400):
        found.update(examples.batch(batch).labels.flatten().tolist())
    assert {label for label in found if label >= TARGET} == set(shard.sides[1].tokens.tolist()) - {BOUNDARY}
    assert (examples.labels() > 0).all()


def test_a_selection_of_tokens_leaves_labels_where_they_are(tmp_path: Path) -> None:
    shards = [WeightedShard(paired(tmp_path / "pairs", [[(3, 4), (2, 5)], [(4, 4)]]))]
    seen = tokens_seen(shards)
    plain, among = (PairWindows(shards, 40, 30, start=START, among=given) for given in (None, seen))
    one, other = (examples.batch(np.arange(2)) for examples in (plain, among))
    assert other.inputs[1].tolist() == seen.tolist()
    select = one.labels != NO_LABEL
    assert (select == (other.labels != NO_LABEL)).all()
    assert (other.inputs[1][other.labels[select]] == one.labels[select]).all()


def test_updates_count_labels(tmp_path: Path) -> None:
    shards = [WeightedShard(paired(tmp_path / "pairs", [[(3, 4)] * 4] * 9))]
    examples = PairWindows(shards, 40, 30, start=START)
    updates = list(plan_updates(examples, batch_tokens=80, update_tokens=50, seed=1, epoch=2))
    assert sum(update.tokens for update in updates) == examples.tokens == 9 * 4 * 5
    for update in updates:
        made = [examples.batch(batch).labels for batch in update.batches]
        assert update.tokens == sum(int((labels != NO_LABEL).sum()) for labels in made)


def test_text_of_one_language_is_no_pairs(tmp_path: Path) -> None:
    with writing_shard(tmp_path / "one", [SideInfo("fr", "", 50)]) as writer:
        writer.add([5, 6])
    with pytest.raises(CadecError, match="is not a parallel corpus"):
        PairWindows([WeightedShard(Shard(tmp_path / "one"))], 40, 30, start=START)
