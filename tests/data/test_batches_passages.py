"""Examples that reach over sentence boundaries never reach over those of documents."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cadec_cli.data.batches import NO_LABEL, JoinedSentences, PairsInContext, WeightedShard, in_order
from cadec_cli.data.shards import Shard, SideInfo, writing_shard
from cadec_cli.errors import CadecError
from cadec_cli.text.subwords import BOS, EOS, PAD
from tests.helpers.shard_parts import document_bounds

DOCUMENTS = st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=6), min_size=1, max_size=5)


def parallel(directory: Path, documents: list[list[int]]) -> Shard:
    """A shard whose sentences have given lengths; all tokens of a sentence are its number, from 4 on."""
    number = 4
    with writing_shard(directory, [SideInfo("en", "", 1000), SideInfo("ru", "", 1000)]) as writer:
        for document in documents:
            for length in document:
                writer.add([number] * length, [number] * (length + 1))
                number += 1
            writer.end_document()
    return Shard(directory)


def sentences_of(row: list[int], between: int) -> list[list[int]]:
    """What stands between separators."""
    parts: list[list[int]] = [[]]
    for token in row:
        if token == between:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


@settings(max_examples=60, deadline=None)
@given(DOCUMENTS, st.integers(1, 4))
def test_a_passage_is_a_sentence_and_those_before_it_in_its_document(
    documents: list[list[int]], size: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        shard = parallel(Path(directory) / "shard", documents)
        examples = JoinedSentences([WeightedShard(shard)], 100, size)
        lengths = examples.lengths()
        for first, end in document_bounds(shard):
            for sentence in range(first, end):
                batch = examples.batch(np.array([sentence]))
                source, target = (tensor[0].tolist() for tensor in batch.inputs)
                labels = batch.labels[0].tolist()
                wanted = list(range(max(first, sentence - size + 1), sentence + 1))
                assert source[-1] == EOS
                assert [set(part) for part in sentences_of(source[:-1], BOS)] == [{n + 4} for n in wanted]
                assert target == [BOS, *labels[:-1]]
                assert [set(part) for part in sentences_of(labels[:-1], BOS)] == [{n + 4} for n in wanted]
                assert labels[-1] == EOS
                assert lengths[sentence].tolist() == [len(source), len(labels)]


@settings(max_examples=60, deadline=None)
@given(DOCUMENTS, st.integers(1, 3))
def test_a_context_is_what_stands_before_in_the_document(documents: list[list[int]], size: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        shard = parallel(Path(directory) / "shard", documents)
        examples = PairsInContext([WeightedShard(shard)], 100, size, 1000)
        everything = examples.batch(np.arange(len(shard)))
        lengths = examples.lengths()
        filled = [(tensor != PAD).sum(1).tolist() for tensor in everything.inputs[:2]]
        filled.append((everything.labels != NO_LABEL).sum(1).tolist())
        assert lengths.T.tolist() == filled
        # Whatever goes together is padded little, contexts included.
        batches = in_order(examples, batch_tokens=24)
        assert sorted(index for batch in batches for index in batch.tolist()) == list(range(len(shard)))
        assert all(len(batch) == 1 or lengths[batch].max() * len(batch) <= 24 for batch in batches)
        assert len(everything.inputs) == 3
        for first, end in document_bounds(shard):
            for sentence in range(first, end):
                context = [token for token in everything.inputs[1][sentence].tolist() if token != PAD]
                wanted = range(max(first, sentence - size), sentence)
                parts = sentences_of(context, EOS)
                assert parts[-1] == []  # every sentence has its end
                assert [set(part) for part in parts[:-1]] == [{n + 4} for n in wanted]
                source = [token for token in everything.inputs[0][sentence].tolist() if token != PAD]
                assert set(source) == {sentence + 4, EOS}


def test_of_a_long_context_the_end_is_read_and_too_long_passages_are_left_out(tmp_path: Path) -> None:
    shard = parallel(tmp_path / "shard", [[5, 5, 5]])
    batch = PairsInContext([WeightedShard(shard)], 100, 3, 4).batch(np.array([2]))
    assert batch.inputs[1].tolist() == [[5, 5, 5, EOS]]
    assert len(JoinedSentences([WeightedShard(shard)], 7, 2)) == 1
    with pytest.raises(CadecError, match="without context"):
        PairsInContext([WeightedShard(shard)], 100, 0, 4)
