import tempfile
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cadec_cli.data.batches import (
    NO_LABEL,
    DocumentWindows,
    Examples,
    SentencePairs,
    WeightedShard,
    in_order,
    padding_share,
    plan_updates,
)
from cadec_cli.data.shards import Shard, SideInfo, writing_shard
from cadec_cli.errors import CadecError
from cadec_cli.text.subwords import BOS, EOS, PAD
from tests.helpers.shard_parts import document_bounds

VOCABULARY = 60_000


def monolingual(directory: Path, documents: list[list[int]]) -> Shard:
    """Make a shard of documents given by the lengths of their sentences; every token is another one."""
    token = 4
    with writing_shard(directory, [SideInfo("ru", "", VOCABULARY)]) as writer:
        for document in documents:
            for length in document:
                writer.add(range(token, token + length))
                token += length
            writer.end_document()
    return Shard(directory)


def parallel(directory: Path, lengths: list[tuple[int, int]]) -> Shard:
    """Make a shard of pairs; all tokens of a pair are its number, from 4 on."""
    with writing_shard(directory, [SideInfo(name, "", VOCABULARY) for name in ("en", "ru")]) as writer:
        for number, (source, target) in enumerate(lengths, 4):
            writer.add([number] * source, [number] * target)
    return Shard(directory)


def random_lengths(count: int, seed: int = 1) -> list[tuple[int, int]]:
    """Lengths like those of subtitles: short, skewed, and correlated between the languages."""
    random = np.random.default_rng(seed)
    source = np.clip(random.lognormal(2.3, 0.6, count), 1, 100)
    target = np.clip(source * random.lognormal(0, 0.25, count), 1, 100)
    return [(int(one), int(other)) for one, other in zip(source, target, strict=True)]


@pytest.fixture(scope="module")
def pair_shard(tmp_path_factory: pytest.TempPathFactory) -> Shard:
    return parallel(tmp_path_factory.mktemp("pairs") / "s", random_lengths(5000))


@pytest.fixture(scope="module")
def pairs(pair_shard: Shard) -> SentencePairs:
    return SentencePairs([WeightedShard(pair_shard)], max_length=200)


@pytest.fixture(scope="module")
def document_shard(tmp_path_factory: pytest.TempPathFactory) -> Shard:
    random = np.random.default_rng(2)
    sizes = np.clip(random.lognormal(3, 1, 120), 1, 300).astype(int)
    documents = [random.integers(1, 20, size).tolist() for size in sizes]
    return monolingual(tmp_path_factory.mktemp("documents") / "s", documents)


@pytest.fixture(scope="module")
def windows(document_shard: Shard) -> DocumentWindows:
    return DocumentWindows([WeightedShard(document_shard)], window=64, stride=48)


@pytest.fixture(params=["pairs", "windows"])
def examples(request: pytest.FixtureRequest) -> Examples:
    chosen: Examples = request.getfixturevalue(request.param)
    return chosen


def planned(examples: Examples, seed: int = 1, epoch: int = 0) -> list[list[list[int]]]:
    updates = plan_updates(examples, batch_tokens=1000, update_tokens=3000, seed=seed, epoch=epoch)
    return [[batch.tolist() for batch in update.batches] for update in updates]


def test_the_plan_depends_on_seed_and_epoch_alone(examples: Examples) -> None:
    plan = planned(examples, 1, 3)
    first = examples.batch(np.array(plan[0][0])).labels.tolist()
    others = [planned(examples, seed, epoch) for seed, epoch in ((1, 4), (2, 3), (3, 1))]
    assert plan not in others
    assert planned(examples, 1, 3) == plan
    assert examples.batch(np.array(plan[0][0])).labels.tolist() == first


def test_every_example_comes_once_an_epoch(examples: Examples) -> None:
    for epoch in range(3):
        plan = planned(examples, epoch=epoch)
        seen = sorted(example for update in plan for batch in update for example in batch)
        assert seen == list(range(len(examples)))


def test_batches_and_updates_have_the_size_asked_for(examples: Examples) -> None:
    updates = list(plan_updates(examples, batch_tokens=1000, update_tokens=3000, seed=1, epoch=0))
    lengths = examples.lengths()
    for update in updates:
        for batch in update.batches:
            assert lengths[batch].max() * len(batch) <= 1000
        assert update.tokens == sum(int(lengths[batch, -1].sum()) for batch in update.batches)
        assert update.tokens >= 3000 or update is updates[-1]
        assert update.tokens < 3000 + 1000
    assert sum(update.tokens for update in updates) == examples.tokens


def test_an_example_too_long_for_a_batch_is_one_of_its_own(tmp_path: Path) -> None:
    shard = parallel(tmp_path / "s", [(5, 5), (90, 3), (3, 90), (5, 6)])
    examples = SentencePairs([WeightedShard(shard)], max_length=100)
    batches = [
        batch.tolist()
        for update in plan_updates(examples, batch_tokens=20, update_tokens=1, seed=1, epoch=0)
        for batch in update.batches
    ]
    assert [1] in batches
    assert [2] in batches
    assert sorted(chain.from_iterable(batches)) == [0, 1, 2, 3]


def test_order_and_composition_change_with_the_epoch(pairs: SentencePairs) -> None:
    first, second = (
        {tuple(sorted(chain.from_iterable(update))) for update in planned(pairs, epoch=e)} for e in (0, 1)
    )
    assert not first & second


def test_evaluation_is_the_same_every_time(examples: Examples) -> None:
    first = [batch.tolist() for batch in in_order(examples, 1000)]
    planned(examples, 5, 5)
    assert [batch.tolist() for batch in in_order(examples, 1000)] == first
    assert sorted(chain.from_iterable(first)) == list(range(len(examples)))


def test_tokens_are_the_labels_of_an_epoch(examples: Examples) -> None:
    batches = in_order(examples, 1000)
    assert sum(int((examples.batch(batch).labels != NO_LABEL).sum()) for batch in batches) == examples.tokens


def test_a_batch_of_pairs_holds_source_shifted_target_and_labels(tmp_path: Path) -> None:
    shard = parallel(tmp_path / "s", [(2, 1), (1, 3)])
    batch = SentencePairs([WeightedShard(shard)], max_length=10).batch(np.array([0, 1]))
    source, target = batch.inputs
    assert source.tolist() == [[4, 4, EOS], [5, EOS, PAD]]
    assert target.tolist() == [[BOS, 4, PAD, PAD], [BOS, 5, 5, 5]]
    assert batch.labels.tolist() == [[4, EOS, NO_LABEL, NO_LABEL], [5, 5, 5, EOS]]


def test_labels_of_windows_are_the_inputs_one_further_on(windows: DocumentWindows) -> None:
    for batch in in_order(windows, 1000):
        loaded = windows.batch(batch)
        (tokens,) = loaded.inputs
        assert ((tokens == PAD) == (loaded.labels == NO_LABEL)).all()
        inner = loaded.labels[:, :-1] != NO_LABEL
        inner &= loaded.labels[:, 1:] != NO_LABEL
        assert (tokens[:, 1:][inner] == loaded.labels[:, :-1][inner]).all()


@given(
    documents=st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=8), min_size=1, max_size=5),
    window=st.integers(1, 20),
    share=st.floats(0, 1),
    epoch=st.integers(0, 5),
)
@settings(max_examples=80, deadline=None)
def test_windows_cover_their_documents_and_nothing_else(
    documents: list[list[int]], window: int, share: float, epoch: int
) -> None:
    stride = max(1, round(share * window))
    with tempfile.TemporaryDirectory() as directory:
        shard = monolingual(Path(directory) / "s", documents)
        examples = DocumentWindows([WeightedShard(shard)], window, stride)
        examples.epoch(7, epoch)
        side = shard.sides[0]
        expected = []  # each document, from its opening boundary to its closing one
        for first, end in document_bounds(shard):
            expected.append(
                side.tokens[side.ends[first - 1] - 1 if first else 0 : side.ends[end - 1]].tolist()
            )
        covered = [[0] * len(document) for document in expected]
        started = 0
        for number in range(len(examples)):
            batch = examples.batch(np.array([number]))
            read, answered = batch.inputs[0][0].tolist(), batch.labels[0].tolist()
            assert 1 <= len(read) == len(answered) <= window
            text = [*read, answered[-1]]
            places = [
                (index, start)
                for index, document in enumerate(expected)
                for start in range(len(document) - len(text) + 1)
                if document[start : start + len(text)] == text
            ]
            assert len(places) == 1  # every token but EOS occurs once in the corpus
            index, start = places[0]
            started += start == 0
            for position in range(start + 1, start + len(text)):
                covered[index][position] += 1
        assert all(min(document[1:]) >= 1 for document in covered)
        assert started >= len(expected)


def test_the_first_window_starts_with_the_boundary_and_the_others_move(document_shard: Shard) -> None:
    examples = DocumentWindows([WeightedShard(document_shard)], window=32, stride=16)
    starts = []
    for epoch in (0, 1):
        examples.epoch(1, epoch)
        firsts = [examples.batch(np.array([n])).inputs[0][0, 0].item() for n in range(len(examples))]
        assert firsts[0] == EOS
        starts.append(firsts)
    assert starts[0] != starts[1]


@pytest.mark.parametrize(("window", "stride"), [(8, 0), (8, 9), (0, 0), (8, -1)])
def test_a_stride_that_leaves_holes_is_an_error(document_shard: Shard, window: int, stride: int) -> None:
    with pytest.raises(CadecError, match="stride"):
        DocumentWindows([WeightedShard(document_shard)], window, stride)


def test_short_documents_can_be_left_out(tmp_path: Path) -> None:
    shard = monolingual(tmp_path / "s", [[3], [5, 5, 5], [2]])
    examples = DocumentWindows([WeightedShard(shard)], window=50, stride=50, min_document_tokens=10)
    assert len(examples) == 1
    assert examples.tokens == 18
    with pytest.raises(CadecError, match="long enough"):
        DocumentWindows([WeightedShard(shard)], window=50, stride=50, min_document_tokens=100)


def test_long_and_empty_pairs_are_left_out(tmp_path: Path) -> None:
    shard = parallel(tmp_path / "s", [(5, 5), (30, 5), (5, 30), (0, 5), (9, 9)])
    examples = SentencePairs([WeightedShard(shard)], max_length=10)
    assert len(examples) == 2 and examples.lengths().tolist() == [[6, 6], [10, 10]]
    with pytest.raises(CadecError, match="fit"):
        SentencePairs([WeightedShard(shard)], max_length=3)


def test_a_corpus_of_the_wrong_kind_is_an_error(pair_shard: Shard, document_shard: Shard) -> None:
    with pytest.raises(CadecError, match="parallel"):
        SentencePairs([WeightedShard(document_shard)], max_length=100)
    with pytest.raises(CadecError, match="monolingual"):
        DocumentWindows([WeightedShard(pair_shard)], window=8, stride=8)


@pytest.mark.parametrize("weight", [0.5, 1.0, 1.25, 2.0, 3.0])
def test_a_weight_says_how_often_an_epoch_sees_a_corpus(pair_shard: Shard, weight: float) -> None:
    examples = SentencePairs([WeightedShard(pair_shard, weight), WeightedShard(pair_shard)], max_length=200)
    size = len(pair_shard)
    seen = []
    for epoch in range(2):
        examples.epoch(1, epoch)
        assert len(examples) - size == pytest.approx(weight * size, rel=0.05)
        batch = examples.batch(np.arange(len(examples) - size))
        seen.append(batch.labels[:, 0].tolist())
        counts = np.bincount(seen[-1], minlength=size + 4)[4:]
        assert set(counts) <= {int(weight), int(np.ceil(weight))}
    assert (seen[0] != seen[1]) == (weight != int(weight))


def test_a_weight_counts_for_windows_too(document_shard: Shard) -> None:
    once, twice, half = (
        DocumentWindows([WeightedShard(document_shard, weight)], window=64, stride=64).tokens
        for weight in (1.0, 2.0, 0.5)
    )
    assert twice == pytest.approx(2 * once, rel=0.02)  # windows fall elsewhere, so not exactly
    assert half == pytest.approx(0.5 * once, rel=0.25)


def test_shards_are_not_mixed_up(tmp_path: Path) -> None:
    one, other = parallel(tmp_path / "a", [(1, 1)] * 3), parallel(tmp_path / "b", [(2, 3)] * 4)
    examples = SentencePairs([WeightedShard(one), WeightedShard(other)], max_length=10)
    assert examples.lengths().tolist() == [[2, 2]] * 3 + [[3, 4]] * 4
    assert [examples.batch(np.array([n])).labels[0, 0].item() for n in range(7)] == [4, 5, 6, 4, 5, 6, 7]


def test_little_is_padding(tmp_path: Path, document_shard: Shard) -> None:
    shard = parallel(tmp_path / "s", random_lengths(20_000))
    for examples, batch_tokens, most in (
        (SentencePairs([WeightedShard(shard)], max_length=200), 1000, 0.10),
        (DocumentWindows([WeightedShard(document_shard)], window=384, stride=256), 2000, 0.05),
    ):
        updates = plan_updates(examples, batch_tokens=batch_tokens, update_tokens=16_000, seed=1, epoch=0)
        batches = [batch for update in updates for batch in update.batches]
        tensors = [tensor for batch in batches for tensor in examples.batch(batch).inputs]
        filled = sum(int((tensor != PAD).sum()) for tensor in tensors)
        share = padding_share(examples, batches)
        assert share < most, type(examples)
        assert share == pytest.approx(1 - filled / sum(tensor.numel() for tensor in tensors))
