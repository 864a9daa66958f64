"""A D-LM that predicts a part of its vocabulary: scores are those of a softmax over it, in every way."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cadec_cli.engines import transformers_lm
from cadec_cli.engines.protocols import trie_for
from cadec_cli.engines.transformers_lm import TOLERANCE, Probes, TransformersLanguageModel, choose_scoring
from cadec_cli.method.context import Context
from cadec_cli.method.hypotheses import Ids
from cadec_cli.method.objectives import CONDITIONAL, FREE
from cadec_cli.method.options import ScoringOptions
from tests.engines.test_transformers_lm import encoded, scorer
from tests.helpers.pretrained_lms import FAST, SENTENCES, SLOW

# Tokens that the sentences have and that are left out, so that some are scored as one more.
LEFT_OUT = 3


def fitted(family: str) -> TransformersLanguageModel:
    model = scorer(family)
    used = sorted({token for ids in encoded(model, SENTENCES) for token in ids})
    tokens = set(range(0, len(model.text), 2)) | {model.text.boundary} | set(used)
    tokens -= set(used[:: len(used) // LEFT_OUT]) - {model.text.boundary}
    model.network.fit(torch.tensor(sorted(tokens)))
    return TransformersLanguageModel(model.network, model.text, positions=model.positions)


@torch.inference_mode()
def naive(model: TransformersLanguageModel, context: Context, ids: Ids, temperature: float = 1.0) -> float:
    """log p(ỹ | c̃): a softmax of the model's own logits over the part, and over one token more if need be."""
    assert model.network.fitted is not None
    before = [model.text.start]
    for sentence in context.sentences:
        before += [*sentence, model.text.boundary]
    logits = model.network.model(input_ids=torch.tensor([[*before, *ids]])).logits[0].double() / temperature
    known = model.network.fitted.tokens.tolist()
    total = 0.0
    for row, token in zip(logits[len(before) - 1 :], [*ids, model.text.boundary], strict=True):
        part = known if token in known else [*known, token]
        total += float(row[token] - row[part].logsumexp(-1))
    return total


MODELS = {family: fitted(family) for family in FAST}
families = st.sampled_from(sorted(FAST))
lists = st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=5)
contexts = st.lists(st.sampled_from(SENTENCES), max_size=3)


@pytest.mark.parametrize("family", sorted(FAST))
def test_the_fast_way_agrees_with_the_slow_one(family: str) -> None:
    model, notes = MODELS[family], list[str]()
    difference = choose_scoring(model, Probes.of(model, model.positions), notes.append, in_parts=True)
    assert difference is not None and difference < TOLERANCE / 10
    assert model.fast and not notes


@pytest.mark.parametrize("family", ["gpt2", "llama", "qwen3", "gemma3_text", "mistral"])
def test_parts_of_a_row_attend_to_themselves(family: str) -> None:
    model = fitted(family)
    choose_scoring(model, Probes.of(model), lambda _: None, in_parts=True)
    assert model.network.attends_in_parts


@pytest.mark.parametrize("family", sorted(SLOW))
def test_the_slow_way_serves_what_takes_no_mask(family: str) -> None:
    model = fitted(family)
    assert choose_scoring(model, Probes.of(model), lambda _: None, in_parts=True) is None
    hypotheses, context = encoded(model, SENTENCES[:3]), Context(encoded(model, SENTENCES[4:6]))
    (scored,) = model.score([trie_for(model, hypotheses)], [context], ScoringOptions())
    np.testing.assert_allclose(
        scored.totals[0], [naive(model, context, ids) for ids in hypotheses], atol=2e-3
    )


@settings(max_examples=60, deadline=None)
@given(
    families,
    st.lists(st.tuples(lists, contexts), min_size=1, max_size=4),
    st.sampled_from([30, 640]),
    st.sampled_from(["parts", "mask", "slow"]),
)
def test_every_way_gives_a_softmax_over_the_part(
    family: str, jobs: list[tuple[list[str], list[str]]], row: int, way: str
) -> None:
    model = MODELS[family]
    model.fast = way != "slow"
    model.network.attend_in_parts(way == "parts")
    given = [(encoded(model, one), Context(encoded(model, before))) for one, before in jobs]
    kept, transformers_lm.ROW = transformers_lm.ROW, row
    try:
        tries = [trie_for(model, ids) for ids, _ in given]
        scored = model.score(tries, [context for _, context in given], ScoringOptions((1.0, 3.0)))
    finally:
        transformers_lm.ROW = kept
        model.network.attend_in_parts(False)
    for (hypotheses, context), result in zip(given, scored, strict=True):
        for index, temperature in enumerate((1.0, 3.0)):
            expected = [naive(model, context, ids, temperature) for ids in hypotheses]
            np.testing.assert_allclose(result.totals[index], expected, atol=2e-3)


def test_some_tokens_are_outside_the_part() -> None:
    for model in MODELS.values():
        assert model.network.fitted is not None
        known = set(model.network.fitted.tokens.tolist())
        assert {token for ids in encoded(model, SENTENCES) for token in ids} - known


def test_a_part_that_is_the_whole_changes_nothing() -> None:
    whole, plain = scorer("llama"), scorer("llama")
    whole.network.fit(torch.arange(whole.network.vocabulary))
    tries = [trie_for(plain, encoded(plain, SENTENCES[:4]))]
    before = [Context(encoded(plain, SENTENCES[5:7]))]
    one, other = (model.score(tries, before, ScoringOptions())[0] for model in (whole, plain))
    np.testing.assert_allclose(one.edges, other.edges, atol=1e-5)


@pytest.mark.parametrize("family", ["gpt2", "gemma3_text"])
@pytest.mark.parametrize("parts", [True, False])
def test_beginnings_have_the_scores_of_whole_sentences(family: str, parts: bool) -> None:
    model = fitted(family)
    model.network.attend_in_parts(parts)
    context = Context(encoded(model, SENTENCES[5:7]))
    hypotheses = encoded(model, SENTENCES[:4])
    trees = model.trees([context], [CONDITIONAL, FREE], ScoringOptions())
    (end,) = trees.places([model.text.boundary])
    assert end is not None
    # Token by token, as the beam does; then the boundary.
    for ids in hypotheses:
        for length in range(len(ids) + 1):
            (found,) = trees.read([(0, ids[:length])])
        for term, before in ((CONDITIONAL, context), (FREE, Context())):
            total = found[term].total + float(found[term].following[end])
            assert total == pytest.approx(naive(model, before, ids), abs=2e-3)


def test_what_is_left_out_has_no_column() -> None:
    model = MODELS["gpt2"]
    fitted_output = model.network.fitted
    assert fitted_output is not None
    trees = model.trees([Context()], [FREE], ScoringOptions())
    known: Sequence[int] = fitted_output.tokens.tolist()
    absent = sorted(set(range(len(model.text))) - set(known))[:3]
    assert trees.places([known[0], known[-1], *absent]) == [0, len(known) - 1, None, None, None]
