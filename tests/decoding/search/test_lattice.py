"""The lattice search finds the best sequence of choices; with one path it is reranking."""

import itertools
import json

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cadec_cli.decoding.search.lattice import Candidate, LatticeSearch, Path, settled
from cadec_cli.decoding.snapshot import DocumentState
from cadec_cli.engines.torch_lm import LMScorer
from cadec_cli.method.context import Context
from cadec_cli.method.objectives import OBJECTIVES, objective
from cadec_cli.models.doclm import DocumentLM, DocumentLMConfig

VOCABULARY = 10
torch.manual_seed(5)
LM = DocumentLM(
    DocumentLMConfig(vocabulary=VOCABULARY, layers=2, width=32, heads=4, inner=48, positions=64)
).eval()
with torch.no_grad():
    for parameter in LM.parameters():
        parameter.mul_(2.5)
SCORER = LMScorer(LM)

hypotheses = st.lists(
    st.tuples(st.lists(st.integers(4, VOCABULARY - 1), min_size=1, max_size=3).map(tuple), st.floats(-5, -1)),
    min_size=1,
    max_size=3,
    unique_by=lambda item: item[0],
)
lattices = st.lists(hypotheses, min_size=1, max_size=4)
names = st.sampled_from(sorted(OBJECTIVES))

Column = list[tuple[tuple[int, ...], float]]


def candidate(column: Column) -> Candidate:
    ids = tuple(item for item, _ in column)
    return Candidate(np.array([score for _, score in column]), ids, SCORER.free([SCORER.trie(ids)])[0])


def run(search: LatticeSearch, columns: list[Column], times: int = 1) -> list[list[Path]]:
    """Advance the same document several times in parallel."""
    beams = [[Path()] for _ in range(times)]
    for column in columns:
        beams = search.advance(beams, [candidate(column)] * times)
    return beams


def log_prob(context: tuple[tuple[int, ...], ...], ids: tuple[int, ...]) -> float:
    return float(SCORER.score([SCORER.trie([ids])], [Context(context)])[0].totals[0, 0])


def total(name: str, columns: list[Column], indices: tuple[int, ...], context: int) -> float:
    """The objective of a sequence of choices, straight from its definition."""
    score = 0.0
    before: tuple[tuple[int, ...], ...] = ()
    for column, index in zip(columns, indices, strict=True):
        ids, translation = column[index]
        given_ = before[-context:] if context else ()
        score += objective(name).score(translation, log_prob(given_, ids), log_prob((), ids))
        before = (*before[-3:], ids)
    return score


@settings(max_examples=25, deadline=None)
@given(lattices, names, st.integers(0, 3))
def test_enough_paths_find_the_best_of_all_sequences(columns: list[Column], name: str, context: int) -> None:
    search = LatticeSearch(objective(name), SCORER, width=100, context_sentences=context)
    best = run(search, columns)[0][0]
    every = itertools.product(*(range(len(column)) for column in columns))
    expected = max(total(name, columns, indices, context) for indices in every)
    np.testing.assert_allclose(best.total, expected, atol=1e-3)


@settings(max_examples=25, deadline=None)
@given(lattices, names)
def test_one_path_is_greedy_reranking(columns: list[Column], name: str) -> None:
    best = run(LatticeSearch(objective(name), SCORER), columns)[0][0]
    chosen: list[int] = []
    for number in range(len(columns)):
        scores = [
            total(name, columns[: number + 1], (*chosen, index), 3) for index in range(len(columns[number]))
        ]
        chosen.append(int(np.argmax(scores)))
    np.testing.assert_allclose(best.total, total(name, columns, tuple(chosen), 3), atol=1e-3)


@settings(max_examples=15, deadline=None)
@given(lattices, st.integers(1, 3))
def test_documents_in_parallel_choose_as_alone(columns: list[Column], width: int) -> None:
    search = LatticeSearch(objective("c-score"), SCORER, width=width)
    alone = settled(run(search, columns)[0], at_end=True)
    for beam in run(search, columns, times=3):
        assert [choice.index for choice in settled(beam, at_end=True)] == [c.index for c in alone]


@settings(max_examples=15, deadline=None)
@given(lattices)
def test_a_rolling_window_equals_reading_all_of_the_context(columns: list[Column]) -> None:
    rolling = LatticeSearch(objective("c-score"), LMScorer(LM, keep_keys=True), rolling=True)
    reading = LatticeSearch(objective("c-score"), SCORER, context_sentences=100)
    one, other = run(rolling, columns)[0][0], run(reading, columns)[0][0]
    np.testing.assert_allclose(one.total, other.total, atol=1e-3)


@settings(max_examples=20, deadline=None)
@given(lattices, st.integers(1, 4), st.integers(0, 4))
def test_a_state_stored_between_two_sentences_goes_on_as_before(
    columns: list[Column], width: int, position: int
) -> None:
    search = LatticeSearch(objective("c-score"), SCORER, width=width)
    expected = [choice.index for choice in settled(run(search, columns)[0], at_end=True)]
    first, rest = columns[:position], columns[position:]
    beam = run(search, first)[0]
    done = settled(beam) if first else []
    beam = DocumentState.from_json(json.loads(json.dumps(DocumentState(beam).to_json()))).beam
    for column in rest:
        beam = search.advance([beam], [candidate(column)])[0]
        done += settled(beam)
    done += settled(beam, at_end=True) if beam[0].choice is not None else []
    assert [choice.index for choice in done] == expected


def test_without_context_pmi_is_exactly_zero_and_ties_go_to_the_first() -> None:
    column: Column = [((4, 5), -1.0), ((6, 7), -1.0), ((8,), -1.5)]
    search = LatticeSearch(objective("c-score"), SCORER)
    choice = run(search, [column])[0][0].choice
    assert choice is not None
    assert choice.conditional == choice.free  # to the last bit
    assert choice.scores == (-1.0, -1.0, -1.5)
    assert choice.index == 0


def test_paths_with_the_same_future_are_one() -> None:
    column: Column = [((4,), -1.0), ((5,), -1.1)]
    search = LatticeSearch(objective("sentence"), None, width=5, context_sentences=1)
    beam = run(search, [column, column, column])[0]
    assert len(beam) == 2  # one for each last sentence, though there are eight sequences
