"""One scorer: its tries score as each hypothesis alone would, and all that use it agree."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cadec_cli.arrays import Floats
from cadec_cli.decoding import scorer as scorer_module
from cadec_cli.decoding.explain import ExplainedText, explain
from cadec_cli.decoding.scorer import Scorer
from cadec_cli.decoding.search.lattice import LatticeSearch
from cadec_cli.decoding.state import PartialPath
from cadec_cli.engines.protocols import LanguageModel
from cadec_cli.engines.torch_lm import TorchLanguageModel
from cadec_cli.evaluation.aligned import AlignedText
from cadec_cli.evaluation.contrastive.scoring import ContrastiveModels
from cadec_cli.evaluation.contrastive.sets import ContrastiveSet, Group
from cadec_cli.evaluation.pmi.analysis import TextScorer, own_scores
from cadec_cli.method.context import Context, ContextPolicy
from cadec_cli.method.hypotheses import Hypothesis, Ids, NBest
from cadec_cli.method.objectives import CONDITIONAL, FREE, objective
from cadec_cli.method.options import ScoringOptions
from cadec_cli.method.trie import ScoredTrie, Trie
from cadec_cli.text.subwords import EOS
from cadec_cli.text.token_text import TokenText
from tests.helpers.bundle_parts import tiny_lm
from tests.helpers.fakes import TableLM, WordText
from tests.helpers.token_texts import NumberText

VOCABULARY = 10
WORDS = [f"p{number}" for number in range(4, VOCABULARY)]
OPTIONS = ScoringOptions((1.0, 2.5))


def table() -> TableLM:
    text = WordText()
    text.encode(" ".join(WORDS))
    return TableLM({("p4", "p5"): 0.75, ("p6", "p4"): -0.5, ("p4", "p4"): 0.25}, text, positions=64)


TABLE = table()
TORCH = TorchLanguageModel(tiny_lm(VOCABULARY, seed=5, positions=64), NumberText(VOCABULARY))
MODELS: dict[str, LanguageModel] = {"table": TABLE, "torch": TORCH}
TOLERANCE = 1e-4

texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
lists = st.lists(texts, min_size=1, max_size=4, unique=True)
contexts = st.lists(texts, max_size=4)
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)


def encode(model: LanguageModel, sentences: Sequence[str]) -> tuple[Ids, ...]:
    return tuple(tuple(model.text.encode(sentence)) for sentence in sentences)


@torch.inference_mode()
def naive(model: LanguageModel, context: Sequence[str], text: str, temperature: float) -> float:
    """log p(ỹ | c̃) of one sentence, from the definition: no trie, no batch."""
    if isinstance(model, TableLM):
        before = [word for sentence in context for word in sentence.split()]
        return sum(model.log_prob(word, before, temperature) for word in [*text.split(), "|"])
    assert isinstance(model, TorchLanguageModel)
    boundary = model.text.boundary
    before_ids = Context(encode(model, context)).tokens(boundary)
    ids = [*model.text.encode(text), boundary]
    logits = model.network(torch.tensor([[*before_ids, *ids[:-1]]]))[0].double()
    log_probs = (logits / temperature).log_softmax(-1)[-len(ids) :]
    return float(log_probs[range(len(ids)), ids].sum())


def expected(model: LanguageModel, context: Sequence[str], hypotheses: Sequence[str]) -> Floats:
    return np.array([[naive(model, context, text, t) for text in hypotheses] for t in OPTIONS.temperatures])


@dataclass
class Counted:
    """A language model that counts how many tries it has scored."""

    model: LanguageModel
    calls: list[int] = field(default_factory=list)

    @property
    def text(self) -> TokenText:
        return self.model.text

    @property
    def positions(self) -> int:
        return self.model.positions

    def score(
        self,
        tries: Sequence[Trie],
        contexts: Sequence[Context],
        scoring_options: ScoringOptions,
        *,
        remember: bool = False,
    ) -> list[ScoredTrie]:
        self.calls.append(len(tries))
        return self.model.score(tries, contexts, scoring_options, remember=remember)


@every_model
@settings(max_examples=25, deadline=None)
@given(jobs=st.lists(st.tuples(lists, contexts), min_size=1, max_size=4))
def test_tries_after_contexts_are_scored_as_each_hypothesis_alone(
    model: LanguageModel, jobs: list[tuple[list[str], list[str]]]
) -> None:
    scorer = Scorer(model, OPTIONS)
    ids = [encode(model, hypotheses) for hypotheses, _ in jobs]
    tries = [scorer.trie(of_list) for of_list in ids]
    read = [
        scorer.context(Context(encode(model, before)), of_list)
        for (_, before), of_list in zip(jobs, ids, strict=True)
    ]
    free = scorer.free(tries)
    scores = scorer.after(tries, read, free)
    for (hypotheses, before), alone, after in zip(jobs, free, scores, strict=True):
        np.testing.assert_allclose(alone, expected(model, [], hypotheses), atol=TOLERANCE)
        np.testing.assert_allclose(after.totals, expected(model, before[-3:], hypotheses), atol=TOLERANCE)
    # One by one they are the same as together.
    for trie, context, alone, after in zip(tries, read, free, scores, strict=True):
        (by_itself,) = scorer.after([trie], [context], [alone])
        np.testing.assert_allclose(by_itself.totals, after.totals, atol=TOLERANCE)


@every_model
@settings(max_examples=25, deadline=None)
@given(several=st.lists(lists, min_size=1, max_size=5), nodes=st.integers(5, 12))
def test_sentences_of_many_lists_are_merged_and_scored_once(
    model: LanguageModel, several: list[list[str]], nodes: int
) -> None:
    counted = Counted(model)
    scorer = Scorer(counted, OPTIONS)
    ids = [sentence for hypotheses in several for sentence in encode(model, hypotheses)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(scorer_module, "MERGED_NODES", nodes)
        merged = scorer.free_by_sentence(("", sentence) for sentence in ids)
    assert set(merged) == {("", sentence) for sentence in ids}
    assert len(counted.calls) == 1
    for (_, sentence), totals in merged.items():
        (alone,) = scorer.free([scorer.trie([sentence])])
        np.testing.assert_allclose(totals, alone[:, 0], atol=TOLERANCE)


@every_model
@settings(max_examples=25, deadline=None)
@given(hypotheses=lists, before=contexts)
def test_searches_contrastive_tests_explanations_and_pmi_figures_agree(
    model: LanguageModel, hypotheses: list[str], before: list[str]
) -> None:
    """The same hypotheses after the same context have the same log p, whatever command asks for it."""
    after, without = expected(model, before[-3:], hypotheses)[0], expected(model, [], hypotheses)[0]
    context = Context(encode(model, before))

    nbest = NBest("x", tuple(Hypothesis(text, -1.0) for text in hypotheses))
    search = LatticeSearch(objective("pmi"), model)
    (column,) = search.columns([nbest])
    assert column is not None
    choice = search.advance([[PartialPath(context=context)]], [column])[0][0].choice
    assert choice is not None
    np.testing.assert_allclose(choice.terms[CONDITIONAL], after, atol=TOLERANCE)
    np.testing.assert_allclose(choice.terms[FREE], without, atol=TOLERANCE)

    rows = [ExplainedText(text, NBest("x", (Hypothesis(text, -1.0),)), None) for text in hypotheses]
    explained = explain(model, rows, Context(choice.context), ScoringOptions())
    assert explained.context == tuple(before[-3:])
    for row, conditional, free in zip(explained.rows, after, without, strict=True):
        assert sum(token.conditional for token in row.tokens) == pytest.approx(conditional, abs=TOLERANCE)
        assert sum(token.free for token in row.tokens) == pytest.approx(free, abs=TOLERANCE)
        assert row.pmi == pytest.approx(conditional - free, abs=TOLERANCE)

    if len(hypotheses) > 1:
        group = Group("x", (), tuple(before), tuple(hypotheses), 0)
        (terms,) = ContrastiveModels(None, model).terms(ContrastiveSet(Path("set"), "jsonl", (group,)))
        np.testing.assert_allclose(terms[CONDITIONAL][0], after, atol=TOLERANCE)
        np.testing.assert_allclose(terms[FREE][0], without, atol=TOLERANCE)

    documents = tuple((*before, text) for text in hypotheses)
    figures = own_scores(TextScorer(model, "xx"), AlignedText("text", documents), ContextPolicy())
    last = np.cumsum([len(document) for document in documents]) - 1
    np.testing.assert_allclose(figures.conditional[last], after, atol=TOLERANCE)
    np.testing.assert_allclose(figures.free[last], without, atol=TOLERANCE)
    assert figures.in_context[last].all() == bool(before)


@every_model
@pytest.mark.parametrize("rolling", [False, True])
def test_after_an_empty_context_pmi_is_exactly_0(model: LanguageModel, rolling: bool) -> None:
    counted = Counted(model)
    scorer = Scorer(counted, OPTIONS, ContextPolicy(rolling=rolling))
    filled = Context(encode(model, ["p4 p6"]))
    trie = scorer.trie(encode(model, ["p5 p4", "p5 p6 p7", "p8"]))
    (free,) = scorer.free([trie])
    counted.calls.clear()
    empty, other = scorer.after([trie, trie], [Context(), filled], [free, free])
    assert np.array_equal(empty.totals, free)  # to the last bit, whatever is in the batch
    assert not np.array_equal(other.totals, free)
    # Only a window that rolls has to read an empty context: what comes next continues from it.
    assert counted.calls == [2 if rolling else 1]
    assert (empty.scored is not None) == rolling
    counted.calls.clear()
    scorer.after([trie], [Context()], [free])
    assert counted.calls == ([1] if rolling else [])
    (tokens,) = scorer.tokens(encode(model, ["p5 p4"]), Context())
    assert np.array_equal(tokens.conditional, tokens.free)


def test_without_free_scores_an_empty_context_is_scored() -> None:
    scorer = Scorer(TABLE, OPTIONS)
    trie = scorer.trie(encode(TABLE, ["p5 p4", "p8"]))
    (scores,) = scorer.after([trie], [Context()], [None])
    np.testing.assert_allclose(scores.totals, expected(TABLE, [], ["p5 p4", "p8"]))


def test_a_rolling_context_continues_from_what_is_remembered() -> None:
    scorer = Scorer(TORCH, OPTIONS, ContextPolicy(rolling=True))
    first = encode(TORCH, ["p5 p4", "p8"])
    trie = scorer.trie(first)
    (scores,) = scorer.after([trie], [Context()], [None])
    context = Context().followed_by(first[0], scores.memory_after(0))
    assert context.memory is not None and context.remembered == 3
    (remembered,) = scorer.after([scorer.trie(encode(TORCH, ["p6"]))], [context], [None])
    np.testing.assert_allclose(remembered.totals, expected(TORCH, ["p5 p4"], ["p6"]), atol=TOLERANCE)


@settings(deadline=None)
@given(st.lists(texts, max_size=40), st.integers(1, 70), st.booleans())
def test_a_context_leaves_room_for_the_longest_hypothesis(
    before: list[str], length: int, rolling: bool
) -> None:
    scorer = Scorer(TABLE, OPTIONS, ContextPolicy(20, rolling=rolling))
    hypotheses = [encode(TABLE, ["p5"])[0], (1,) * length]
    context = scorer.context(Context(encode(TABLE, before)), hypotheses)
    trie = scorer.trie(hypotheses)
    assert context.length + trie.depth <= TABLE.positions
    scorer.after([trie], [context], [None])  # the model checks it too


@given(st.sets(st.lists(st.integers(4, 6), max_size=4).map(tuple)), st.integers(6, 12))
def test_merged_sentences_are_all_there_and_their_tries_are_full(ids: set[Ids], nodes: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(scorer_module, "MERGED_NODES", nodes)
        pools = list(scorer_module._pools(sorted(ids)))
    assert [one for pool in pools for one in pool] == sorted(ids)
    assert all(len(Trie.of(pool, EOS)) <= nodes for pool in pools)
    for pool, following in itertools.pairwise(pools):  # none is closed early
        assert len(Trie.of([*pool, following[0]], EOS)) > nodes
