"""The lattice search finds the best sequence of choices; with one path it is reranking."""

import itertools
import json

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cadec_cli.decoding.search.lattice import LatticeSearch, settled_choices
from cadec_cli.decoding.state import DocumentState, PartialPath
from cadec_cli.engines.protocols import trie_for
from cadec_cli.engines.torch_lm import TorchLanguageModel
from cadec_cli.method.context import Context, ContextPolicy
from cadec_cli.method.hypotheses import Hypothesis, Ids, NBest
from cadec_cli.method.objectives import BACK, CONDITIONAL, FREE, NMT, OBJECTIVES, objective
from cadec_cli.method.options import ScoringOptions
from tests.helpers.bundle_parts import tiny_lm
from tests.helpers.token_texts import NumberText

VOCABULARY = 10
TEXT = NumberText(VOCABULARY)
MODEL = TorchLanguageModel(tiny_lm(VOCABULARY, seed=5, positions=64), TEXT)

hypotheses = st.lists(
    st.tuples(st.lists(st.integers(4, VOCABULARY - 1), min_size=1, max_size=3).map(tuple), st.floats(-5, -1)),
    min_size=1,
    max_size=3,
    unique_by=lambda item: item[0],
)
lattices = st.lists(hypotheses, min_size=1, max_size=4)
names = st.sampled_from(sorted(name for name in OBJECTIVES if not objective(name).uses(BACK)))

List = list[tuple[Ids, float]]


def nbest(found: List) -> NBest:
    """A list in the D-LM's own vocabulary, in whatever order it was made up."""
    return NBest("x", tuple(Hypothesis(TEXT.decode(ids), score, ids) for ids, score in found), TEXT.identity)


def run(search: LatticeSearch, lists: list[List], times: int = 1) -> list[list[PartialPath]]:
    """Advance the same document several times in parallel."""
    beams = [[PartialPath()] for _ in range(times)]
    for found in lists:
        beams = advanced(search, beams, found)
    return beams


def advanced(search: LatticeSearch, beams: list[list[PartialPath]], found: List) -> list[list[PartialPath]]:
    (column,) = search.columns([nbest(found)])
    assert column is not None
    return search.advance(beams, [column] * len(beams))


def log_prob(context: tuple[Ids, ...], ids: Ids) -> float:
    (scored,) = MODEL.score([trie_for(MODEL, [ids])], [Context(context)], ScoringOptions())
    return float(scored.totals[0, 0])


def total(name: str, lists: list[List], indices: tuple[int, ...], context: int) -> float:
    """The objective of a sequence of choices, straight from its definition."""
    score = 0.0
    before: tuple[Ids, ...] = ()
    for found, index in zip(lists, indices, strict=True):
        ids, translation = found[index]
        given_ = before[-context:] if context else ()
        terms = {NMT: translation, CONDITIONAL: log_prob(given_, ids), FREE: log_prob((), ids)}
        score += objective(name).score(terms)
        before = (*before[-3:], ids)
    return score


@settings(max_examples=25, deadline=None)
@given(lattices, names, st.integers(0, 3))
def test_enough_paths_find_the_best_of_all_sequences(lists: list[List], name: str, context: int) -> None:
    search = LatticeSearch(objective(name), MODEL, width=100, policy=ContextPolicy(context))
    best = run(search, lists)[0][0]
    every = itertools.product(*(range(len(found)) for found in lists))
    expected = max(total(name, lists, indices, context) for indices in every)
    np.testing.assert_allclose(best.total, expected, atol=1e-3)


@settings(max_examples=25, deadline=None)
@given(lattices, names)
def test_one_path_is_greedy_reranking(lists: list[List], name: str) -> None:
    best = run(LatticeSearch(objective(name), MODEL), lists)[0][0]
    chosen: list[int] = []
    for number in range(len(lists)):
        scores = [
            total(name, lists[: number + 1], (*chosen, index), 3) for index in range(len(lists[number]))
        ]
        chosen.append(int(np.argmax(scores)))
    np.testing.assert_allclose(best.total, total(name, lists, tuple(chosen), 3), atol=1e-3)


@settings(max_examples=15, deadline=None)
@given(lattices, st.integers(1, 3))
def test_documents_in_parallel_choose_as_alone(lists: list[List], width: int) -> None:
    search = LatticeSearch(objective("c-score"), MODEL, width=width)
    alone = settled_choices(run(search, lists)[0], at_end=True)
    for beam in run(search, lists, times=3):
        assert [choice.index for choice in settled_choices(beam, at_end=True)] == [c.index for c in alone]


@settings(max_examples=15, deadline=None)
@given(lattices)
def test_a_rolling_window_equals_reading_all_of_the_context(lists: list[List]) -> None:
    rolling = LatticeSearch(objective("c-score"), MODEL, policy=ContextPolicy(3, rolling=True))
    reading = LatticeSearch(objective("c-score"), MODEL, policy=ContextPolicy(100))
    one, other = run(rolling, lists)[0][0], run(reading, lists)[0][0]
    np.testing.assert_allclose(one.total, other.total, atol=1e-3)


@settings(max_examples=20, deadline=None)
@given(lattices, st.integers(1, 4), st.integers(0, 4))
def test_a_state_stored_between_two_sentences_goes_on_as_before(
    lists: list[List], width: int, position: int
) -> None:
    search = LatticeSearch(objective("c-score"), MODEL, width=width)
    expected = [choice.index for choice in settled_choices(run(search, lists)[0], at_end=True)]
    first, rest = lists[:position], lists[position:]
    beam = run(search, first)[0]
    done = settled_choices(beam) if first else []
    beam = DocumentState.from_json(json.loads(json.dumps(DocumentState(beam).to_json()))).beam
    for found in rest:
        (beam,) = advanced(search, [beam], found)
        done += settled_choices(beam)
    done += settled_choices(beam, at_end=True) if beam[0].choice is not None else []
    assert [choice.index for choice in done] == expected


def test_without_context_pmi_is_exactly_zero_and_ties_go_to_the_first() -> None:
    found: List = [((4, 5), -1.0), ((6, 7), -1.0), ((8,), -1.5)]
    search = LatticeSearch(objective("c-score"), MODEL)
    choice = run(search, [found])[0][0].choice
    assert choice is not None
    assert choice.terms[CONDITIONAL] == choice.terms[FREE]  # to the last bit
    assert choice.pmi == (0.0, 0.0, 0.0)
    assert choice.scores == (-1.0, -1.0, -1.5)
    assert choice.index == 0


def test_paths_with_the_same_future_are_one() -> None:
    found: List = [((4,), -1.0), ((5,), -1.1)]
    search = LatticeSearch(objective("sentence"), None, width=5, policy=ContextPolicy(1))
    beam = run(search, [found, found, found])[0]
    assert len(beam) == 2  # one for each last sentence, though there are eight sequences


@settings(max_examples=25, deadline=None)
@given(lattices, names, st.integers(0, 3), st.integers(1, 3), st.booleans())
def test_a_choice_names_the_context_that_it_was_scored_after(
    lists: list[List], name: str, context: int, width: int, rolling: bool
) -> None:
    wanted = objective(name)
    search = LatticeSearch(wanted, MODEL, width=width, policy=ContextPolicy(context, rolling))
    choices = settled_choices(run(search, lists)[0], at_end=True)
    before: tuple[Ids, ...] = ()
    for found, choice in zip(lists, choices, strict=True):
        # Nothing is ever dropped from a window that rolls: all this fits the positions.
        assert choice.context == (before if rolling else before[-context:] if context else ())
        terms = {NMT: [score for _, score in found]}
        if wanted.uses(CONDITIONAL):
            terms[CONDITIONAL] = [log_prob(choice.context, ids) for ids, _ in found]
        if wanted.uses(FREE):
            terms[FREE] = [log_prob((), ids) for ids, _ in found]
        assert set(choice.terms) == set(terms) - {NMT}  # a term that was not computed is absent
        for term, values in choice.terms.items():
            np.testing.assert_allclose(values, terms[term], atol=1e-3)
        arrays = {term: np.array(values) for term, values in terms.items()}
        np.testing.assert_allclose(choice.scores, wanted.score(arrays), atol=1e-3)
        before = (*before, found[choice.index][0])
