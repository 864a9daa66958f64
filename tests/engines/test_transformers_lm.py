"""A pretrained language model scores tries as its own forward pass does sentences, in every architecture."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from cadec_cli.decoding.scorer import Scorer
from cadec_cli.engines import transformers_lm
from cadec_cli.engines.protocols import trie_for
from cadec_cli.engines.transformers_lm import TOLERANCE, Probes, TransformersLanguageModel, choose_scoring
from cadec_cli.errors import CadecError
from cadec_cli.method.context import Context, ContextPolicy, Pair
from cadec_cli.method.hypotheses import Ids
from cadec_cli.method.objectives import PAIRS
from cadec_cli.method.options import ScoringOptions
from cadec_cli.models.huggingface import MAX_POSITIONS, Network, readable_positions
from cadec_cli.models.layers import Cache
from cadec_cli.text.tokenizers.line_text import LineText, PairTemplate, find_boundary
from tests.helpers.pretrained_lms import (
    FAMILIES,
    FAST,
    SENTENCES,
    SLOW,
    STARTS,
    tiny_network,
    tokenizer_json,
    tokenizer_size,
)

PLAIN = ScoringOptions()
# A kind of tokenizer for each architecture, by turns.
KINDS = ("byte-level", "spm-bpe", "gemma", "unigram", "glued")
TOKENIZER = {family: KINDS[place % len(KINDS)] for place, family in enumerate(FAMILIES)}


def line_text(kind: str) -> LineText:
    serialised = tokenizer_json(kind)
    return LineText(serialised, boundary=find_boundary(serialised, kind)[0], start=STARTS[kind])


def scorer(
    family: str,
    *,
    positions: int | None = None,
    no_context: Sequence[Sequence[str]] = (),
    source_texts: Sequence[Sequence[str]] = (),
    template: PairTemplate | None = None,
    **changes: object,
) -> TransformersLanguageModel:
    kind = TOKENIZER[family]
    network = tiny_network(family, tokenizer_size(kind), seed=1, **changes)
    return TransformersLanguageModel(
        Network(network),
        line_text(kind),
        positions=positions or readable_positions(network.config),
        no_context=no_context,
        source_texts=source_texts,
        template=template,
    )


@torch.inference_mode()
def naive(
    model: TransformersLanguageModel, context: Context, ids: Ids, temperature: float = 1.0, alpha: float = 0.0
) -> list[float]:
    """log p of every token of ỹ after c̃, by the model's own pass over one sequence, and a full softmax."""
    before = [model.text.start]
    for sentence in context.sentences:
        before += [*sentence, model.text.boundary]
    row = torch.tensor([[*before, *ids]])
    logits = model.network.model(input_ids=row).logits[0].double() / temperature
    probabilities = (logits.softmax(-1) + alpha / logits.size(-1)) / (1 + alpha)
    wanted = torch.tensor([*ids, model.text.boundary])
    scores: list[float] = probabilities[-len(wanted) :].log().gather(1, wanted[:, None])[:, 0].tolist()
    return scores


def encoded(model: TransformersLanguageModel, sentences: Sequence[str]) -> tuple[Ids, ...]:
    return tuple(tuple(model.text.encode(sentence))[:9] for sentence in sentences)


MODELS = {family: scorer(family) for family in FAST}
families = st.sampled_from(sorted(FAST))
sentences = st.sampled_from(SENTENCES)
lists = st.lists(sentences, min_size=1, max_size=5)
contexts = st.lists(sentences, max_size=3)


@pytest.mark.parametrize("family", sorted(FAST))
def test_every_architecture_takes_the_fast_way(family: str) -> None:
    model, notes = MODELS[family], list[str]()
    difference = choose_scoring(model, Probes.of(model, model.positions), notes.append)
    assert difference is not None and difference < TOLERANCE / 10
    assert model.fast and not notes


@settings(max_examples=80, deadline=None)
@given(
    families,
    st.lists(st.tuples(lists, contexts), min_size=1, max_size=4),
    st.sampled_from([ScoringOptions(), ScoringOptions((1.0, 3.0)), ScoringOptions((2.0,), 0.3)]),
    st.sampled_from([30, 640]),
)
def test_a_trie_in_any_company_is_scored_as_each_hypothesis_alone(
    family: str, jobs: list[tuple[list[str], list[str]]], reading: ScoringOptions, row: int
) -> None:
    model = MODELS[family]
    model.fast = True
    given = [(encoded(model, one), Context(encoded(model, before))) for one, before in jobs]
    kept, transformers_lm.ROW = transformers_lm.ROW, row
    try:
        tries = [trie_for(model, ids) for ids, _ in given]
        scored = model.score(tries, [context for _, context in given], reading)
    finally:
        transformers_lm.ROW = kept
    for (hypotheses, context), result in zip(given, scored, strict=True):
        for index, temperature in enumerate(reading.temperatures):
            expected = [sum(naive(model, context, ids, temperature, reading.alpha)) for ids in hypotheses]
            np.testing.assert_allclose(result.totals[index], expected, atol=2e-3)
        each = naive(model, context, hypotheses[0], reading.temperatures[0], reading.alpha)
        np.testing.assert_allclose(result.tokens(0), each, atol=1e-3)


@settings(max_examples=40, deadline=None)
@given(families, st.lists(lists, min_size=2, max_size=3))
def test_keys_of_what_was_chosen_are_used_again(family: str, document: list[list[str]]) -> None:
    model = MODELS[family]
    model.fast = True
    rolling, plain = Context(), Context()
    other, beside = trie_for(model, encoded(model, SENTENCES[:2])), Context(encoded(model, SENTENCES[3:4]))
    for texts in document:
        hypotheses = encoded(model, texts)
        trie = trie_for(model, hypotheses)
        if plain.length + trie.depth > model.positions:
            break
        result = model.score([other, trie], [beside, rolling], PLAIN, remember=True)[1]
        expected = [sum(naive(model, plain, ids)) for ids in hypotheses]
        np.testing.assert_allclose(result.totals[0], expected, atol=2e-3)
        rolling = rolling.followed_by(hypotheses[-1], result.memory_after(len(hypotheses) - 1))
        plain = plain.followed_by(hypotheses[-1])
        assert isinstance(rolling.memory, Cache) and rolling.remembered == rolling.length - 1


@pytest.mark.parametrize("family", sorted(SLOW))
def test_what_takes_no_mask_of_ours_goes_the_slow_way_and_says_so(family: str) -> None:
    model, notes = scorer(family), list[str]()
    assert choose_scoring(model, Probes.of(model), notes.append) is None
    assert not model.fast and "slower" in notes[0]
    hypotheses, context = encoded(model, SENTENCES[:3]), Context(encoded(model, SENTENCES[4:6]))
    (scored, free) = model.score([trie_for(model, hypotheses)] * 2, [context, Context()], PLAIN)
    for result, before in ((scored, context), (free, Context())):
        expected = [sum(naive(model, before, ids)) for ids in hypotheses]
        np.testing.assert_allclose(result.totals[0], expected, atol=2e-3)


@settings(max_examples=15, deadline=None)
@given(families, lists, contexts)
def test_both_ways_say_the_same(family: str, texts: list[str], before: list[str]) -> None:
    model = MODELS[family]
    tries = [trie_for(model, encoded(model, texts))]
    given = [Context(encoded(model, before))]
    model.fast = False
    slow = model.score(tries, given, ScoringOptions((1.0, 2.0), 0.1))[0]
    model.fast = True
    fast = model.score(tries, given, ScoringOptions((1.0, 2.0), 0.1))[0]
    np.testing.assert_allclose(fast.edges, slow.edges, atol=1e-3)


# The traps: each is what happens without the care taken, and what the self-test makes of it


def eager(model: TransformersLanguageModel) -> None:
    model.network.model.set_attn_implementation("eager")


class Careless(Network):
    """Leaves out one of the cares that the network takes."""

    def __init__(self, model: Any, without: str) -> None:
        super().__init__(model)
        self._without = without

    def hidden_states(
        self, tokens: torch.Tensor, positions: torch.Tensor, seen: torch.Tensor, cache: Cache | None
    ) -> torch.Tensor:
        float_mask = torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(torch.float32).min)
        mask = seen if self._without == "float mask" else float_mask
        place = {} if self._without == "positions" else {"position_ids": positions}
        made = self.model.base_model(
            input_ids=tokens, attention_mask=mask[None, None], use_cache=False, **place
        )
        found: torch.Tensor = made.last_hidden_state
        return found


@pytest.mark.parametrize("family", ["gpt2", "llama", "qwen3", "gemma3_text"])
@pytest.mark.parametrize("without", ["float mask", "positions"])
def test_what_would_be_silently_wrong_is_found(family: str, without: str) -> None:
    model, notes = scorer(family), list[str]()
    if without == "float mask":
        eager(model)
        assert (
            choose_scoring(model, Probes.of(model), notes.append) is not None
        )  # with care, eager is right too
    model.network = Careless(model.network.model, without)
    assert choose_scoring(model, Probes.of(model), notes.append) is None
    assert not model.fast and notes


@pytest.mark.parametrize("family", ["mistral", "gemma2", "gemma3_text"])
def test_no_more_is_read_than_a_window_reaches(family: str) -> None:
    assert MODELS[family].positions == 64 < MODELS[family].network.config.max_position_embeddings
    narrow = scorer(family, sliding_window=12)
    assert narrow.positions == 12
    # Were more read, the mask of ours would reach behind the window: the longer test finds that.
    narrow.positions = 48
    notes: list[str] = []
    assert choose_scoring(narrow, Probes.of(narrow, 48), notes.append) is None and notes


def test_windows_that_are_switched_off_do_not_count() -> None:
    config = FAST["qwen2"](100, use_sliding_window=False, sliding_window=16)
    assert readable_positions(config) == 128
    config = FAST["llama"](100, max_position_embeddings=131_072)
    assert readable_positions(config) == MAX_POSITIONS


def test_a_model_that_looks_ahead_is_refused() -> None:
    # BERT has a class for causal language models, and weights that were never trained as one.
    import transformers

    kind = "byte-level"
    config = transformers.BertConfig(
        vocab_size=tokenizer_size(kind),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=128,
        is_decoder=False,
    )
    torch.manual_seed(1)
    network = transformers.BertLMHeadModel(config).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    model = TransformersLanguageModel(Network(network), line_text(kind), positions=128)
    with pytest.raises(CadecError, match="another score in a batch than by itself") as caught:
        choose_scoring(model, Probes.of(model), lambda _: None)
    assert "causal" in caught.value.hint


# What is never kept


def test_no_row_of_logits_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    model = scorer("gemma3_text")
    model._chunk = 4
    sizes = []
    logits = model.network.logits

    def watched(hidden: torch.Tensor) -> torch.Tensor:
        sizes.append(len(hidden))
        return logits(hidden)

    monkeypatch.setattr(model.network, "logits", watched)
    hypotheses = encoded(model, SENTENCES[:6])
    trie = trie_for(model, hypotheses)
    (scored,) = model.score([trie], [Context(encoded(model, SENTENCES[7:9]))], PLAIN)
    assert max(sizes) == 4 and sum(sizes) == len(trie)  # one row for each node, none for the context
    expected = [sum(naive(model, Context(encoded(model, SENTENCES[7:9])), ids)) for ids in hypotheses]
    np.testing.assert_allclose(scored.totals[0], expected, atol=2e-3)


def test_a_large_vocabulary_makes_small_chunks() -> None:
    network = Network(tiny_network("llama", 262_144, hidden_size=8, intermediate_size=8, num_hidden_layers=1))
    model = TransformersLanguageModel(network, line_text("byte-level"), positions=64)
    assert model._chunk * 262_144 * 4 <= transformers_lm.LOGIT_BYTES


# Without context


TEXTS = (SENTENCES[:2], SENTENCES[2:5], SENTENCES[5:6])


@pytest.mark.parametrize("fast", [True, False])
def test_no_context_is_the_mean_over_texts(fast: bool) -> None:
    model = scorer("llama", no_context=TEXTS)
    model.fast = fast
    hypotheses = encoded(model, SENTENCES[6:10])
    trie = trie_for(model, hypotheses)
    for _ in range(2):  # the second time with keys that were remembered
        (free,) = model.score([trie], [Context()], PLAIN, remember=True)
        before = [Context(tuple(tuple(model.text.encode(line)) for line in text)) for text in TEXTS]
        expected = [np.mean([sum(naive(model, text, ids)) for text in before]) for ids in hypotheses]
        np.testing.assert_allclose(free.totals[0], expected, atol=2e-3)
    # Nothing of the texts is ever the beginning of a document.
    assert free.memory_after(0) is None


def test_texts_give_way_to_long_sentences() -> None:
    long = [tuple(SENTENCES[:8])]
    model = scorer("llama", no_context=long, positions=64)
    hypothesis = encoded(model, SENTENCES[:1])[0] * 4
    (free,) = model.score([trie_for(model, [hypothesis])], [Context()], PLAIN)
    fitting = Context(tuple(tuple(model.text.encode(line)) for line in long[0]))
    fitting = fitting.truncate(64 - len(hypothesis))
    assert 0 < len(fitting.sentences) < 8
    assert free.totals[0, 0] == pytest.approx(sum(naive(model, fitting, hypothesis)), abs=2e-3)


def test_without_texts_no_context_is_the_start_alone() -> None:
    model = MODELS["gpt2"]
    hypotheses = encoded(model, SENTENCES[:3])
    (free,) = model.score([trie_for(model, hypotheses)], [Context()], PLAIN)
    np.testing.assert_allclose(
        free.totals[0], [sum(naive(model, Context(), ids)) for ids in hypotheses], atol=2e-3
    )


# Weights


@pytest.mark.parametrize("family", sorted(FAST))
def test_int8_weights_stay_near(family: str) -> None:
    model = scorer(family)
    probes = Probes.of(model)
    before = probes.scores(model)
    model.network.to_int8()
    after = probes.scores(model)
    # Random weights make sharper choices than trained ones do.
    assert 0 < np.abs(after - before).mean() < transformers_lm.MAX_LOST
    # Both ways still say the same.
    model.fast = False
    np.testing.assert_allclose(probes.scores(model), after, atol=5e-2)


@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma3_text"])
def test_bfloat16_as_on_a_gpu_stays_near(family: str) -> None:
    model = scorer(family)
    probes = Probes.of(model)
    before = probes.scores(model)
    model.network.to(torch.device("cpu"), torch.bfloat16)
    after = probes.scores(model)
    assert 0 < np.abs(after - before).mean() < 0.3
    assert after.dtype == np.float64


def test_weights_that_give_no_numbers_are_said() -> None:
    model = scorer("gpt2")
    with torch.no_grad():
        model.network.model.transformer.ln_f.weight[0] = torch.inf
    with pytest.raises(CadecError, match="not numbers"):
        model.score([trie_for(model, encoded(model, SENTENCES[:2]))], [Context()], PLAIN)


# Pairs of sentences and their translations


NEUTRAL = (("Il est rouge.", "Merci !"), ("Elle était très vieille.",))
NEUTRAL_SOURCES = (("It is red.", "Thank you!"), ("She was very old.",))
LABELLED = PairTemplate("English: {source}\nFrench:\n{target}\n")


@torch.inference_mode()
def log_prob_of_text(model: TransformersLanguageModel, before: str, sentence: str) -> float:
    """log p of a line of text and its end after other lines, by transformers alone."""
    tokenizer, start = Tokenizer.from_str(tokenizer_json(TOKENIZER["llama"])), model.text.start

    def ids(text: str) -> list[int]:
        return [start, *tokenizer.encode(text, add_special_tokens=False).ids]

    first, whole = ids(before), ids(f"{before}{sentence}\n")
    assert whole[: len(first)] == first
    log_probs = model.network.model(input_ids=torch.tensor([whole])).logits[0].double().log_softmax(-1)
    return sum(float(log_probs[place - 1, whole[place]]) for place in range(len(first), len(whole)))


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("template", [None, LABELLED])
def test_pairs_are_scored_as_their_text(template: PairTemplate | None, fast: bool) -> None:
    model = scorer("llama", no_context=NEUTRAL, source_texts=NEUTRAL_SOURCES, template=template)
    model.fast = fast

    def text(pairs: Sequence[tuple[str, str]], source: str) -> str:
        written = (template or PairTemplate()).text
        whole = "".join(written.replace("{source}", x).replace("{target}", y) for x, y in pairs)
        return whole + written.replace("{source}", source).removesuffix("{target}\n")

    pairs = [("Where is the key?", "Il est rouge."), ("Thank you!", "Ça va… bien")]
    hypotheses = ["Tu as lu ma lettre ?", "Vous avez faim ?", "Il est rouge."]
    scores = Scorer(model, reads=PAIRS)
    ids = [tuple(model.text.encode(one)) for one in hypotheses]
    before = Context()
    for x, y in pairs:
        before = before.followed_by(tuple(model.text.encode(y)), pair=Pair(x, y))
    trie, source = scores.trie(ids), "Are you tired?"
    (free,) = scores.free([trie], [source])
    (after,) = scores.after([trie], [scores.context(before, ids, source)], [free])
    neutral = [[*zip(xs, ys, strict=True)] for xs, ys in zip(NEUTRAL_SOURCES, NEUTRAL, strict=True)]
    for place, one in enumerate(hypotheses):
        expected = log_prob_of_text(model, text(pairs, source), one)
        assert after.totals[0, place] == pytest.approx(expected, abs=2e-3)
        alone = [log_prob_of_text(model, text(each, source), one) for each in neutral]
        assert free[0, place] == pytest.approx(sum(alone) / 2, abs=2e-3)
    by_source = scores.free_by_sentence((other, one) for other in (source, "Yes.") for one in ids)
    assert [by_source[source, one][0] for one in ids] == pytest.approx(free[0], abs=1e-4)
    assert by_source["Yes.", ids[0]][0] != pytest.approx(free[0, 0], abs=1e-2)


def test_without_context_pmi_of_pairs_is_0_and_x_is_read() -> None:
    for model in (scorer("llama"), scorer("llama", no_context=NEUTRAL, source_texts=NEUTRAL_SOURCES)):
        scores = Scorer(model, reads=PAIRS)
        trie = scores.trie(encoded(model, SENTENCES[:3]))
        free, other = scores.free([trie, trie], ["Where is it?", "Thank you."])
        assert np.abs(free - other).max() > 0.01
        (after,) = scores.after(
            [trie], [scores.context(Context(), encoded(model, SENTENCES[:3]), "Where is it?")], [free]
        )
        assert (after.totals == free).all() and after.scored is None
        (unknown,) = scores.free([trie])
        assert np.isfinite(unknown).all()


def lines_of(model: TransformersLanguageModel, context: Context) -> list[str]:
    """What a model reads, line by line."""
    return [line.strip() for line in model.text.decode(context.tokens(model.text.boundary)[1:]).split("\n")]


def test_long_windows_lose_whole_pairs_and_then_the_source() -> None:
    model = scorer("llama", positions=48)
    scores = Scorer(model, policy=ContextPolicy(9), reads=PAIRS)
    ids = encoded(model, SENTENCES[:2])
    before = Context()
    for x, y in zip(SENTENCES, reversed(SENTENCES), strict=False):
        before = before.followed_by(tuple(model.text.encode(y)), pair=Pair(x, y))
    for source in ("Yes.", SENTENCES[0], "Where is the key? " * 5):
        read = scores.context(before, ids, source)
        assert read.length + max(map(len, ids)) <= model.positions
        lines = [line for pair in zip(SENTENCES, reversed(SENTENCES), strict=False) for line in pair]
        expected = [*lines[len(lines) - 2 * len(read.sentences) :], source.strip()]
        if read.source:
            assert lines_of(model, read) == expected
        scores.after([scores.trie(ids)], [read], scores.free([scores.trie(ids)], [source]))
    assert read.source == () and not read.sentences


def test_a_sentence_without_a_known_source_is_a_line_alone() -> None:
    model = scorer("llama")
    before = Context().followed_by(tuple(model.text.encode("Oui.")), pair=Pair("", "Oui."))
    read = Scorer(model, reads=PAIRS).context(before, [], "Yes.")
    assert lines_of(model, read) == ["Oui.", "Yes."]
    other = scorer("llama", template=PairTemplate("Yes, {source}\nOui ?\n{target}\n"))
    read = Scorer(other, reads=PAIRS).context(before, [], "Yes.")
    assert lines_of(other, read) == ["Oui ?", "Oui.", "Yes, Yes.", "Oui ?"]
    inline = scorer("llama", template=PairTemplate("Yes, {source}\nOui ? {target}\n"))
    read = Scorer(inline, reads=PAIRS).context(before, [], "Yes.")
    assert [line.split() for line in lines_of(inline, read)] == [
        ["Oui", "?", "Oui."],
        ["Yes,", "Yes."],
        ["Oui", "?"],
    ]
    assert read.sentences[0][-len(before.sentences[0]) :] == before.sentences[0]
