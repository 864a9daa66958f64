"""The C-aware beam finds what a naive search finds, alone or in company, and falls back to the plain beam."""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from pathlib import Path

import ctranslate2
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cadec_cli.decoding.search.beam import BeamHypothesis, BeamOptions, BeamSearch
from cadec_cli.errors import CadecError
from cadec_cli.method.objectives import OBJECTIVES, objective
from cadec_cli.models.doclm import DocumentLM, DocumentLMConfig
from cadec_cli.models.layers import Cache, RoomyCache
from cadec_cli.models.quantised import int8_available, quantised
from cadec_cli.models.transformer import Transformer, TransformerConfig
from cadec_cli.text.specials import BOS, EOS, SPECIAL_PIECES
from cadec_cli.training.greedy import greedy
from converters.ctranslate2_models import convert_translation_model

TOLERANCE = 1e-4
SEARCHABLE = [name for name in OBJECTIVES if objective(name).uses_translation]
Ids = Sequence[int]


def models(vocabulary: int = 20, positions: int = 64, seed: int = 1) -> tuple[Transformer, DocumentLM]:
    """A pair with opinions: random weights, scaled up so that choices are clear and ends come early."""
    torch.manual_seed(seed)
    nmt = Transformer(
        TransformerConfig(
            vocabulary,
            vocabulary,
            encoder_layers=1,
            decoder_layers=2,
            width=16,
            heads=2,
            inner=24,
            positions=positions,
            tied=False,
        )
    )
    lm = DocumentLM(
        DocumentLMConfig(vocabulary, layers=2, width=16, heads=2, inner=24, positions=positions, tied=False)
    )
    with torch.no_grad():
        for model in (nmt, lm):
            model.output.weight.mul_(2)
            model.output.bias[EOS] += 1
        lm.embedding.weight.mul_(30)
        lm.position.weight.mul_(30)
    return nmt.eval(), lm.eval()


NMT, LM = models()
SOURCES = [[5, 6, 7], [8], [9, 10, 11, 12, 13], [], [14, 5, 9], [8], [7, 7]]
CONTEXTS = [
    [EOS],
    [EOS, 4, 5, EOS],
    [EOS, 9, EOS, 10, 11, 12, EOS],
    [EOS, 6, EOS],
    [EOS, 5, 5, 5, 5, 5, 5, EOS],
    [EOS],
    [EOS, 6, EOS],
]


@torch.inference_mode()
def naive_terms(
    nmt: Transformer, lm: DocumentLM, source: Ids, context: Ids, ids: Ids, options: BeamOptions
) -> tuple[list[float], list[float], list[float]]:
    """log p of each token and of the end, by full passes over this one hypothesis."""
    ended = [*ids, EOS]
    translation = nmt(torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *ids]]))[0].softmax(-1)
    terms = [[math.log(translation[i, w]) for i, w in enumerate(ended)]]
    for before in (context, [EOS]):
        logits = lm(torch.tensor([[*before, *ids]]))[0, len(before) - 1 :]
        p = (logits.double() / options.temperature).softmax(-1)
        p = (p + options.alpha / p.size(-1)) / (1 + options.alpha)
        terms.append([math.log(p[i, w]) for i, w in enumerate(ended)])
    return terms[0], terms[1], terms[2]


def naive_beam(
    nmt: Transformer, lm: DocumentLM, name: str, source: Ids, context: Ids, options: BeamOptions
) -> list[tuple[tuple[int, ...], float]]:
    """The same search with lists, one sentence, no cache and no batch."""
    wanted = objective(name)
    vocabulary = nmt.config.target_vocabulary
    limit = int(options.max_length_ratio * len(source)) + options.max_length_extra

    def token_scores(ids: tuple[int, ...]) -> list[float]:
        with torch.inference_mode():
            translation = nmt(torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *ids]]))[0, -1].log_softmax(
                -1
            )
            lm_terms = []
            for before in (context, [EOS]):
                p = (lm(torch.tensor([[*before, *ids]]))[0, -1] / options.temperature).softmax(-1)
                lm_terms.append(((p + options.alpha / vocabulary) / (1 + options.alpha)).log())
            scores: list[float] = wanted.score(translation, *lm_terms).tolist()
            return scores

    live: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    finished: list[tuple[tuple[int, ...], float]] = []
    topped = False
    for length in range(limit + 1):
        candidates = [
            ((*ids, token), score + more)
            for ids, score in live
            for token, more in enumerate(token_scores(ids))
            if length < limit or token == EOS
        ]
        candidates.sort(key=lambda candidate: -candidate[1])
        ended = [candidate for candidate in candidates[: options.beam] if candidate[0][-1] == EOS]
        finished += [(ids[:-1], score) for ids, score in ended]
        topped |= candidates[0][0][-1] == EOS
        if options.length_penalty and len(finished) >= options.beam:
            break
        if not options.length_penalty and topped and len(finished) >= options.wanted:
            break
        live = [candidate for candidate in candidates if candidate[0][-1] != EOS][: options.beam]
    finished.sort(key=lambda made: -made[1] / (len(made[0]) + 1) ** options.length_penalty)
    return finished[: options.wanted]


def assert_same(found: Sequence[BeamHypothesis], expected: Sequence[BeamHypothesis]) -> None:
    assert [made.ids for made in found] == [made.ids for made in expected]
    for made, other in zip(found, expected, strict=True):
        assert dataclasses.astuple(made)[1:] == pytest.approx(dataclasses.astuple(other)[1:], abs=TOLERANCE)


@pytest.mark.parametrize("name", SEARCHABLE)
@pytest.mark.parametrize(
    "options",
    [
        BeamOptions(),
        BeamOptions(beam=3, temperature=4.0),
        BeamOptions(beam=2, alpha=0.3, hypotheses=1),
        BeamOptions(beam=5, temperature=2.0, alpha=0.1, length_penalty=1.0),
        BeamOptions(beam=4, max_length_ratio=0.5, max_length_extra=2),
        BeamOptions(beam=16),
    ],
    ids=["plain", "temperature", "alpha", "length penalty", "short", "wide"],
)
def test_it_finds_what_a_naive_search_finds(name: str, options: BeamOptions) -> None:
    found = BeamSearch(NMT, LM, objective(name), options).search(SOURCES, CONTEXTS)
    for source, context, hypotheses in zip(SOURCES, CONTEXTS, found, strict=True):
        expected = naive_beam(NMT, LM, name, source, context, options)
        assert [made.ids for made in hypotheses] == [ids for ids, _ in expected]
        assert [made.score for made in hypotheses] == pytest.approx(
            [score for _, score in expected], abs=TOLERANCE
        )


@pytest.mark.parametrize("name", ["sentence", "c-score"])
def test_a_beam_as_wide_as_all_there_is_finds_the_best(name: str) -> None:
    nmt, lm = models(vocabulary=6)
    source, context, length = [4, 5], [EOS, 5, EOS], 3
    options = BeamOptions(beam=6**length, max_length_ratio=0, max_length_extra=length)
    (found,) = BeamSearch(nmt, lm, objective(name), options).search([source], [context])
    said = [token for token in range(6) if token != EOS]
    every = [ids for size in range(length + 1) for ids in itertools.product(said, repeat=size)]
    terms = [naive_terms(nmt, lm, source, context, ids, options) for ids in every]
    scores = [objective(name).score(*map(sum, parts)) for parts in terms]
    best = max(range(len(every)), key=scores.__getitem__)
    assert found[0].ids == every[best]
    assert found[0].score == pytest.approx(scores[best], abs=TOLERANCE)
    assert {made.ids for made in found} == set(every)


@pytest.mark.parametrize("name", SEARCHABLE)
def test_reported_terms_are_those_of_the_hypothesis_scored_alone(name: str) -> None:
    options = BeamOptions(temperature=2.0, alpha=0.05, max_length_ratio=0.5, max_length_extra=3)
    search = BeamSearch(NMT, LM, objective(name), options)
    uses = (True, search.objective.uses_conditional, search.objective.uses_free)
    for source, context, found in zip(SOURCES, CONTEXTS, search.search(SOURCES, CONTEXTS), strict=True):
        for made in found:
            terms = [sum(part) for part in naive_terms(NMT, LM, source, context, made.ids, options)]
            expected = [term if used else 0.0 for term, used in zip(terms, uses, strict=True)]
            reported = [made.translation, made.conditional, made.free]
            assert reported == pytest.approx(expected, abs=TOLERANCE)
            assert made.score == pytest.approx(search.objective.score(*terms), abs=TOLERANCE)


def test_weight_0_is_the_plain_beam() -> None:
    plain = BeamSearch(NMT, None, objective("sentence")).search(SOURCES, CONTEXTS)
    weightless = BeamSearch(NMT, LM, objective("c-score", 0.0)).search(SOURCES, CONTEXTS)
    for found, expected in zip(weightless, plain, strict=True):
        assert [(made.ids, made.score) for made in found] == [(made.ids, made.score) for made in expected]


def test_without_context_the_c_score_is_the_plain_beam_exactly() -> None:
    empty = [[EOS]] * len(SOURCES)
    plain = BeamSearch(NMT, None, objective("sentence")).search(SOURCES, empty)
    aware = BeamSearch(NMT, LM, objective("c-score"), BeamOptions(temperature=3.0)).search(SOURCES, empty)
    for found, expected in zip(aware, plain, strict=True):
        assert [(made.ids, made.score) for made in found] == [(made.ids, made.score) for made in expected]
        assert all(made.conditional == made.free for made in found)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(4, 19), max_size=5), st.lists(st.lists(st.integers(4, 19)), max_size=3)
        ),
        min_size=1,
        max_size=10,
    ),
    st.sampled_from(["c-score", "conditional-shallow-fusion", "shallow-fusion", "sentence"]),
    st.integers(1, 5),
    st.booleans(),
)
def test_together_as_one_by_one(
    pairs: list[tuple[list[int], list[list[int]]]], name: str, beam: int, first_only: bool
) -> None:
    sources = [source for source, _ in pairs]
    contexts = [[EOS, *(token for part in parts for token in [*part[:8], EOS])] for _, parts in pairs]
    options = BeamOptions(beam=beam, hypotheses=1 if first_only else None, max_length_extra=6)
    search = BeamSearch(NMT, LM, objective(name), options)
    together = search.search(sources, contexts)
    for source, context, found in zip(sources, contexts, together, strict=True):
        assert_same(found, search.search([source], [context])[0])


def test_sentences_that_end_at_once_leave_the_others_alone() -> None:
    nmt, lm = models(seed=5)
    with torch.no_grad():
        nmt.output.bias[EOS] += 4
    search = BeamSearch(nmt, lm, objective("c-score"), BeamOptions(hypotheses=1))
    together = search.search(SOURCES, CONTEXTS)
    lengths = {len(found[0].ids) for found in together}
    assert 0 in lengths and max(lengths) > 0
    for source, context, found in zip(SOURCES, CONTEXTS, together, strict=True):
        assert_same(found, search.search([source], [context])[0])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_plain_beam_of_1_is_greedy(seed: int) -> None:
    nmt, _ = models(seed=seed)
    search = BeamSearch(nmt, None, objective("sentence"), BeamOptions(beam=1))
    for source in SOURCES:
        (found,) = search.search([source], [[EOS]])
        assert [list(made.ids) for made in found] == greedy(nmt, [source])


def test_one_hypothesis_of_the_plain_beam_is_the_best_of_all() -> None:
    every = BeamSearch(NMT, None, objective("sentence")).search(SOURCES, CONTEXTS)
    first = BeamSearch(NMT, None, objective("sentence"), BeamOptions(hypotheses=1)).search(SOURCES, CONTEXTS)
    for found, expected in zip(first, every, strict=True):
        assert_same(found, expected[:1])


def test_translations_stay_within_all_limits() -> None:
    nmt, lm = models(positions=24)
    with torch.no_grad():
        nmt.output.bias[EOS] -= 50
    context = [EOS, *[5] * 17, EOS]  # room for 5 more
    search = BeamSearch(nmt, lm, objective("c-score"), BeamOptions(max_length_extra=8))
    short, long, crowded = search.search([[], [5] * 10, [5] * 10], [[EOS], [EOS], context])
    assert {len(made.ids) for made in short} == {8}
    assert {len(made.ids) for made in long} == {23}
    assert {len(made.ids) for made in crowded} == {5}
    assert all(math.isfinite(made.score) for made in [*short, *long, *crowded])


def test_what_does_not_fit_is_refused() -> None:
    search = BeamSearch(NMT, LM, objective("c-score"))
    with pytest.raises(CadecError, match="leaves no room"):
        search.search([[5]], [[EOS, *[5] * 62, EOS]])
    with pytest.raises(CadecError, match="too long"):
        search.search([[5] * 64], [[EOS]])
    with pytest.raises(ValueError, match="EOS"):
        search.search([[5]], [[]])
    with pytest.raises(CadecError, match="needs a language model"):
        BeamSearch(NMT, None, objective("c-score"))
    with pytest.raises(CadecError, match=r"beam must be at least 1.*temperature"):
        BeamOptions(beam=0, temperature=0)
    assert search.search([], []) == []


@pytest.mark.skipif(not int8_available(), reason="this build of torch has no int8 linears")
def test_int8_models_can_be_searched_too() -> None:
    nmt, lm = quantised(NMT), quantised(LM)
    search = BeamSearch(nmt, lm, objective("c-score"), BeamOptions(max_length_extra=4))
    for source, context, found in zip(SOURCES, CONTEXTS, search.search(SOURCES, CONTEXTS), strict=True):
        for made in found:
            terms = naive_terms(nmt, lm, source, context, made.ids, search.options)
            reported = [made.translation, made.conditional, made.free]
            assert reported == pytest.approx([sum(part) for part in terms], abs=0.5)


@torch.inference_mode()
def test_a_roomy_cache_holds_what_a_plain_one_holds() -> None:
    tokens = torch.randint(4, 20, (3, 30))
    plain, roomy = Cache(), RoomyCache()
    for start, end in [(0, 4), (4, 5), (5, 18), (18, 19), (19, 30)]:
        expected = LM.hidden(tokens[:, start:end], cache=plain)
        torch.testing.assert_close(LM.hidden(tokens[:, start:end], cache=roomy), expected)
        assert roomy.length == plain.length == end
        order = torch.tensor([2, 0, 1])
        tokens, plain, roomy = tokens[order], plain.rows(order), roomy.rows(order)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_plain_beam_agrees_with_ctranslate2(seed: int, tmp_path: Path) -> None:
    nmt, _ = models(seed=seed)
    with torch.no_grad():
        nmt.output.bias[EOS] += 2
    pieces = [*SPECIAL_PIECES, *(f"p{index}" for index in range(4, 20))]
    convert_translation_model(nmt, pieces, pieces, tmp_path / "model", "float32")
    translator = ctranslate2.Translator(str(tmp_path / "model"), device="cpu", compute_type="float32")
    sources = [source for source in SOURCES if source]  # it answers an empty one without asking the model
    compared = 0
    for beam, wanted in [(1, 1), (4, 1), (4, 4), (6, 3)]:
        options = BeamOptions(beam=beam, hypotheses=wanted, max_length_ratio=0, max_length_extra=40)
        found = BeamSearch(nmt, None, objective("sentence"), options).search(sources, [[EOS]] * len(sources))
        results = translator.translate_batch(
            [[pieces[token] for token in [*source, EOS]] for source in sources],
            beam_size=beam,
            num_hypotheses=wanted,
            length_penalty=0,
            max_input_length=0,
            min_decoding_length=0,
            max_decoding_length=40,
            return_scores=True,
        )
        for hypotheses, result in zip(found, results, strict=True):
            if max(map(len, result.hypotheses)) == 40:
                continue  # it cuts such a translation off, we end it
            made = [[pieces[token] for token in hypothesis.ids] for hypothesis in hypotheses]
            assert made == result.hypotheses
            assert [hypothesis.score for hypothesis in hypotheses] == pytest.approx(result.scores, abs=1e-3)
            compared += 1
    assert compared >= 12
