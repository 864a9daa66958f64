"""Tries: every hypothesis can be read off its path, and no prefix is there twice."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.method.hypotheses import Ids
from cadec_cli.method.trie import ScoredTrie, Trie

BOUNDARY = 3
sentences = st.lists(st.integers(4, 7), max_size=5).map(tuple)
lists = st.lists(sentences, max_size=8)


def prefixes(ids: Ids) -> set[Ids]:
    return {ids[:length] for length in range(len(ids) + 1)}


@given(lists)
def test_the_path_of_every_hypothesis_reproduces_its_ids(hypotheses: list[Ids]) -> None:
    trie = Trie.of(hypotheses, BOUNDARY)
    assert len(trie.paths) == len(trie.last_nodes) == len(hypotheses)
    for index, ids in enumerate(hypotheses):
        assert [int(trie.edge_tokens[edge]) for edge in trie.paths[index]] == [*ids, BOUNDARY]
        nodes = trie.node_path(index)
        assert [int(trie.tokens[node]) for node in nodes] == [BOUNDARY, *ids]
        # Each edge starts where the one before it ends.
        assert [int(trie.edge_nodes[edge]) for edge in trie.paths[index]] == nodes
        assert nodes[-1] == trie.last_nodes[index]


@given(lists)
def test_prefixes_are_shared(hypotheses: list[Ids]) -> None:
    trie = Trie.of(hypotheses, BOUNDARY)
    assert len(trie) == len({(), *(prefix for ids in hypotheses for prefix in prefixes(ids))})
    ended = {(*ids, BOUNDARY) for ids in hypotheses}
    continued = {prefix for ids in hypotheses for prefix in prefixes(ids) if prefix}
    assert len(trie.edge_tokens) == len(trie.edge_nodes) == len(ended | continued)
    for one, other in itertools.combinations(range(len(hypotheses)), 2):
        shared = len(prefixes(hypotheses[one]) & prefixes(hypotheses[other]))  # the root included
        first, second = trie.node_path(one), trie.node_path(other)
        assert first[:shared] == second[:shared]
        assert not set(first[shared:]) & set(second[shared:])


@given(lists)
def test_parents_come_first_and_one_level_above(hypotheses: list[Ids]) -> None:
    trie = Trie.of(hypotheses, BOUNDARY)
    assert (trie.parents[0], trie.depths[0]) == (-1, 0)
    for node in range(1, len(trie)):
        assert 0 <= trie.parents[node] < node
        assert trie.depths[node] == trie.depths[trie.parents[node]] + 1
    assert trie.depth == max(map(len, hypotheses), default=0)


@given(lists, st.integers(0, 6))
def test_what_is_too_deep_is_not_scored(hypotheses: list[Ids], most: int) -> None:
    trie = Trie.of(hypotheses, BOUNDARY, most)
    assert trie.depth <= most
    for path, ids in zip(trie.paths, hypotheses, strict=True):
        whole = [*ids, BOUNDARY] if len(ids) <= most else list(ids[:most])
        assert [int(trie.edge_tokens[edge]) for edge in path] == whole


@given(lists, st.integers(1, 3))
def test_totals_are_the_sums_of_the_tokens(hypotheses: list[Ids], temperatures: int) -> None:
    trie = Trie.of(hypotheses, BOUNDARY)
    rng = np.random.default_rng(len(hypotheses))
    scored = ScoredTrie(trie, rng.normal(size=(temperatures, len(trie.edge_tokens))))
    assert scored.totals.shape == (temperatures, len(hypotheses))
    for row, index in itertools.product(range(temperatures), range(len(hypotheses))):
        tokens = scored.tokens(index, row)
        assert len(tokens) == len(hypotheses[index]) + 1
        np.testing.assert_allclose(scored.totals[row, index], tokens.sum(), atol=1e-12)
    assert scored.memory_after(0) is None  # nobody asked to remember
