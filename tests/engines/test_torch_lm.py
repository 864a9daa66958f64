"""Scoring a trie equals scoring every hypothesis alone, whatever else is in the row."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cadec_cli.engines import torch_lm as lm_scorer
from cadec_cli.engines.torch_lm import LMScorer
from cadec_cli.errors import CadecError
from cadec_cli.method.context import Context
from cadec_cli.method.trie import Trie
from cadec_cli.models.doclm import DocumentLM, DocumentLMConfig

VOCABULARY = 12
torch.manual_seed(3)
LM = DocumentLM(
    DocumentLMConfig(vocabulary=VOCABULARY, layers=2, width=32, heads=4, inner=48, positions=48)
).eval()
with torch.no_grad():  # sharper than a fresh network, so that mistakes show
    for parameter in LM.parameters():
        parameter.mul_(2.5)

sentences = st.lists(st.integers(4, VOCABULARY - 1), max_size=5).map(tuple)
hypothesis_lists = st.lists(sentences, min_size=1, max_size=7)
contexts = st.lists(sentences, max_size=3).map(lambda found: Context(tuple(found)))
temperatures = st.lists(st.sampled_from([1.0, 1.5, 4.0]), min_size=1, max_size=3)


@torch.inference_mode()
def naive(context: Context, ids: tuple[int, ...], temperature: float, alpha: float) -> float:
    """log p(ỹ | c̃) by one pass over the whole sequence and a full log-softmax."""
    tokens = torch.tensor([[*context.tokens, *ids, 3]])
    probabilities = (LM(tokens[:, :-1])[0].double() / temperature).softmax(-1)
    probabilities = (probabilities + alpha / VOCABULARY) / (1 + alpha)
    labels = tokens[0, 1:]
    scores = probabilities.log()[torch.arange(len(labels)), labels]
    return float(scores[-len(ids) - 1 :].sum())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(hypothesis_lists, contexts), min_size=1, max_size=5),
    temperatures,
    st.sampled_from([0.0, 0.3]),
    st.sampled_from([20, 50, 640]),
)
def test_a_trie_in_any_company_is_scored_as_each_hypothesis_alone(
    jobs: list[tuple[list[tuple[int, ...]], Context]], some: list[float], alpha: float, row: int
) -> None:
    scorer = LMScorer(LM, temperatures=some, alpha=alpha)
    before, lm_scorer.ROW = lm_scorer.ROW, row
    try:
        scored = scorer.score([scorer.trie(ids) for ids, _ in jobs], [context for _, context in jobs])
    finally:
        lm_scorer.ROW = before
    for (hypotheses, context), result in zip(jobs, scored, strict=True):
        expected = [[naive(context, ids, t, alpha) for ids in hypotheses] for t in some]
        np.testing.assert_allclose(result.totals, expected, atol=2e-4)
        for index in range(len(hypotheses)):
            np.testing.assert_allclose(result.tokens(index).sum(), result.totals[0, index], atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(hypothesis_lists, st.integers(0, 99)), min_size=1, max_size=4))
def test_keys_of_what_was_chosen_can_be_used_again(jobs: list[tuple[list[tuple[int, ...]], int]]) -> None:
    scorer = LMScorer(LM, keep_keys=True)
    rolling, plain = Context(), Context()
    for hypotheses, number in jobs:
        trie = scorer.trie(hypotheses)
        if len(plain.tokens) + trie.depth > scorer.positions:
            break
        # Another document in the same row, before and after it.
        other = scorer.trie([(4, 5), (4, 6)])
        result = scorer.score([other, trie, other], [Context(((7,),)), rolling, Context()])[1]
        expected = [naive(plain, ids, 1.0, 0.0) for ids in hypotheses]
        np.testing.assert_allclose(result.totals[0], expected, atol=2e-4)
        chosen = number % len(hypotheses)
        rolling = rolling.followed_by(hypotheses[chosen], result.cache_after(chosen))
        plain = plain.followed_by(hypotheses[chosen])
        assert rolling.tokens == plain.tokens
        assert rolling.cache is not None and rolling.cache.length == rolling.cached == len(rolling.tokens) - 1


def test_no_row_of_logits_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def logits(hidden: torch.Tensor) -> torch.Tensor:
        sizes.append(len(hidden))
        return LM.output(hidden)

    monkeypatch.setattr(LM, "logits", logits)
    monkeypatch.setattr(lm_scorer, "LOGIT_ROWS", 4)
    scorer = LMScorer(LM)
    trie = scorer.trie([(4, 5, 6), (4, 5, 7), (8, 9)])
    whole = scorer.free([trie])[0]
    assert sizes == [4, 4] or max(sizes) <= 4
    assert sum(sizes) == len(trie)  # one row a node, none for the leaves
    np.testing.assert_allclose(
        whole.totals[0], [naive(Context(), h, 1, 0) for h in [(4, 5, 6), (4, 5, 7), (8, 9)]], atol=1e-4
    )


def test_contexts_that_do_not_fit_lose_whole_oldest_sentences() -> None:
    scorer = LMScorer(LM)
    long = Context(tuple((4 + index,) * 10 for index in range(6)))
    trie = scorer.trie([(5,) * 12])
    fitted = scorer.fitted(long, trie)
    assert fitted.sentences == long.sentences[-3:]
    assert len(fitted.tokens) + trie.depth <= scorer.positions
    scorer.score([trie], [fitted])
    assert scorer.fitted(long, scorer.trie([(5,) * 47])).sentences == ()
    assert scorer.trie([(5,) * 100]).depth == 47  # deeper than the positions: the rest is not scored
    scorer.free([scorer.trie([(5,) * 100, ()])])


@pytest.mark.parametrize("bad", [{"temperatures": (0.0,)}, {"temperatures": ()}, {"alpha": -1.0}])
def test_impossible_settings_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(CadecError):
        LMScorer(LM, **bad)


@given(hypothesis_lists)
def test_a_trie_holds_every_prefix_once(hypotheses: list[tuple[int, ...]]) -> None:
    trie = Trie.of(hypotheses)
    prefixes = {ids[:end] for ids in hypotheses for end in range(len(ids) + 1)}
    assert len(trie) == len(prefixes)
    for index, ids in enumerate(hypotheses):
        assert tuple(trie.tokens[trie.node_path(index)[1:]]) == ids
        assert tuple(trie.edge_tokens[list(trie.paths[index])]) == (*ids, 3)
    assert len(trie.edge_nodes) == len(prefixes) - 1 + len(set(hypotheses))
