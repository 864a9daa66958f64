"""Scoring a trie equals scoring every hypothesis alone, whatever else is in the row."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from cadec_cli.engines import torch_lm
from cadec_cli.engines.protocols import trie_for
from cadec_cli.engines.torch_lm import TorchLanguageModel
from cadec_cli.engines.trie_rows import Block, distribute
from cadec_cli.errors import CadecError
from cadec_cli.method.context import Context, ContextPolicy, room
from cadec_cli.method.hypotheses import Ids
from cadec_cli.method.options import ScoringOptions
from cadec_cli.method.trie import Trie
from cadec_cli.models.layers import Cache
from cadec_cli.text.subwords import EOS
from tests.helpers.bundle_parts import tiny_lm
from tests.helpers.token_texts import NumberText

VOCABULARY = 12
LM = tiny_lm(VOCABULARY, seed=3)
MODEL = TorchLanguageModel(LM, NumberText(VOCABULARY))
PLAIN = ScoringOptions()

sentences = st.lists(st.integers(4, VOCABULARY - 1), max_size=5).map(tuple)
hypothesis_lists = st.lists(sentences, min_size=1, max_size=7)
contexts = st.lists(sentences, max_size=3).map(lambda found: Context(tuple(found)))
readings = st.builds(
    ScoringOptions,
    st.lists(st.sampled_from([1.0, 1.5, 4.0]), min_size=1, max_size=3).map(tuple),
    st.sampled_from([0.0, 0.3]),
)


@torch.inference_mode()
def naive(context: Context, ids: Ids, temperature: float = 1.0, alpha: float = 0.0) -> float:
    """log p(ỹ | c̃) by one pass over the whole sequence and a full log-softmax."""
    tokens = torch.tensor([[*context.tokens(EOS), *ids, EOS]])
    probabilities = (LM(tokens[:, :-1])[0].double() / temperature).softmax(-1)
    probabilities = (probabilities + alpha / VOCABULARY) / (1 + alpha)
    labels = tokens[0, 1:]
    scores = probabilities.log()[torch.arange(len(labels)), labels]
    return float(scores[-len(ids) - 1 :].sum())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(hypothesis_lists, contexts), min_size=1, max_size=5),
    readings,
    st.sampled_from([20, 50, 640]),
)
def test_a_trie_in_any_company_is_scored_as_each_hypothesis_alone(
    jobs: list[tuple[list[Ids], Context]], reading: ScoringOptions, row: int
) -> None:
    before, torch_lm.ROW = torch_lm.ROW, row
    try:
        tries = [trie_for(MODEL, ids) for ids, _ in jobs]
        scored = MODEL.score(tries, [context for _, context in jobs], reading)
    finally:
        torch_lm.ROW = before
    for (hypotheses, context), result in zip(jobs, scored, strict=True):
        expected = [
            [naive(context, ids, temperature, reading.alpha) for ids in hypotheses]
            for temperature in reading.temperatures
        ]
        np.testing.assert_allclose(result.totals, expected, atol=2e-4)
        for index in range(len(hypotheses)):
            np.testing.assert_allclose(result.tokens(index).sum(), result.totals[0, index], atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(hypothesis_lists, st.integers(0, 99)), min_size=1, max_size=4))
def test_keys_of_what_was_chosen_can_be_used_again(jobs: list[tuple[list[Ids], int]]) -> None:
    rolling, plain = Context(), Context()
    for hypotheses, number in jobs:
        trie = trie_for(MODEL, hypotheses)
        if plain.length + trie.depth > MODEL.positions:
            break
        # Another document in the same row, before and after it.
        other = trie_for(MODEL, [(4, 5), (4, 6)])
        before = [Context(((7,),)), rolling, Context()]
        result = MODEL.score([other, trie, other], before, PLAIN, remember=True)[1]
        expected = [naive(plain, ids) for ids in hypotheses]
        np.testing.assert_allclose(result.totals[0], expected, atol=2e-4)
        chosen = number % len(hypotheses)
        rolling = rolling.followed_by(hypotheses[chosen], result.memory_after(chosen))
        plain = plain.followed_by(hypotheses[chosen])
        assert rolling.tokens(EOS) == plain.tokens(EOS)
        assert len(rolling.tokens(EOS)) == rolling.length
        assert isinstance(rolling.memory, Cache)
        assert rolling.memory.length == rolling.remembered == rolling.length - 1


def test_nothing_is_remembered_that_was_not_asked_for() -> None:
    (result,) = MODEL.score([trie_for(MODEL, [(4, 5)])], [Context(((7,),))], PLAIN)
    assert result.memory_after(0) is None


def test_no_row_of_logits_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def took(output: nn.Module, inputs: tuple[torch.Tensor]) -> None:
        sizes.append(len(inputs[0]))

    monkeypatch.setattr(torch_lm, "LOGIT_ROWS", 4)
    hypotheses = [(4, 5, 6), (4, 5, 7), (8, 9)]
    trie = trie_for(MODEL, hypotheses)
    hook = LM.output.register_forward_pre_hook(took)
    (whole,) = MODEL.score([trie], [Context()], PLAIN)
    hook.remove()
    assert sizes == [4, 3]  # one row for each of the nodes, none for the ends, and never more than four
    assert sum(sizes) == len(trie)
    np.testing.assert_allclose(whole.totals[0], [naive(Context(), ids) for ids in hypotheses], atol=1e-4)


def test_contexts_that_do_not_fit_lose_whole_oldest_sentences() -> None:
    long = Context(tuple((4 + index,) * 10 for index in range(6)))
    policy = ContextPolicy(6)
    trie = trie_for(MODEL, [(5,) * 12])
    fitted = policy.read(long, room(MODEL.positions, trie.depth))
    assert fitted.sentences == long.sentences[-3:]
    assert fitted.length + trie.depth <= MODEL.positions
    MODEL.score([trie], [fitted], PLAIN)
    deep = trie_for(MODEL, [(5,) * 47])
    assert policy.read(long, room(MODEL.positions, deep.depth)).sentences == ()
    assert trie_for(MODEL, [(5,) * 100]).depth == 47  # deeper than the positions: the rest is not scored
    MODEL.score([trie_for(MODEL, [(5,) * 100, ()])], [Context()], PLAIN)


@pytest.mark.parametrize(
    ("temperatures", "alpha"), [((0.0,), 0.0), ((), 0.0), ((float("inf"),), 0.0), ((1.0,), -1.0)]
)
def test_impossible_settings_are_refused(temperatures: tuple[float, ...], alpha: float) -> None:
    with pytest.raises(CadecError):
        ScoringOptions(temperatures, alpha)


@given(hypothesis_lists)
def test_a_trie_holds_every_prefix_once(hypotheses: list[Ids]) -> None:
    trie = Trie.of(hypotheses, EOS)
    prefixes = {ids[:end] for ids in hypotheses for end in range(len(ids) + 1)}
    assert len(trie) == len(prefixes)
    for index, ids in enumerate(hypotheses):
        assert tuple(trie.tokens[trie.node_path(index)[1:]]) == ids
        assert tuple(trie.edge_tokens[list(trie.paths[index])]) == (*ids, EOS)
    assert len(trie.edge_nodes) == len(prefixes) - 1 + len(set(hypotheses))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(hypothesis_lists, contexts), min_size=1, max_size=9), st.integers(1, 5))
def test_rows_for_several_cores_have_every_block_once_and_about_one_length(
    jobs: list[tuple[list[Ids], Context]], cores: int
) -> None:
    blocks = [Block.of(trie_for(MODEL, ids), context, EOS, EOS) for ids, context in jobs]
    rows = distribute(blocks, 20, cores)
    assert sorted(number for row in rows for number in row) == list(range(len(blocks)))
    lengths = [sum(blocks[number].size for number in row) for row in rows]
    assert min(lengths) > 0
    assert max(lengths) - min(lengths) <= max(block.size for block in blocks)
    if len(blocks) >= cores:
        assert len(rows) % cores == 0 or len(rows) == len(blocks)


def test_scores_are_the_same_whatever_the_number_of_cores() -> None:
    before = torch.get_num_threads()
    tries = [trie_for(MODEL, [(4, 5, 6)[: 1 + number % 3], (7, 8)]) for number in range(7)]
    found = {}
    try:
        for cores in (1, 2, 3):
            torch.set_num_threads(cores)
            scored = MODEL.score(tries, [Context(((7,),))] * len(tries), PLAIN)
            found[cores] = np.concatenate([one.totals for one in scored], 1)
            # Others, threads that begin now too, have as many cores as they had.
            assert torch.get_num_threads() == cores
            with ThreadPoolExecutor(1) as other:
                assert other.submit(torch.get_num_threads).result() == cores
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(found[1], found[2])
    np.testing.assert_array_equal(found[1], found[3])


def test_a_trie_without_hypotheses_has_no_scores() -> None:
    for context in (Context(), Context(((5, 6),))):
        (scored,) = MODEL.score([Trie.of([], EOS)], [context], ScoringOptions((1.0, 2.0)))
        assert scored.edges.shape == (2, 0) and scored.totals.shape == (2, 0)
