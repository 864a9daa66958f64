"""The C-aware beam finds what a naive search finds, alone or in company, and falls back to the plain beam."""

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
from cadec_cli.method.context import Context
from cadec_cli.method.hypotheses import Ids
from cadec_cli.method.lengths import LengthLimits
from cadec_cli.method.objectives import CONDITIONAL, FREE, NMT, OBJECTIVES, Objective, objective
from cadec_cli.method.options import ScoringOptions
from cadec_cli.models.int8.block import quantise
from cadec_cli.models.int8.linear import int8_available
from cadec_cli.models.layers import Cache, RoomyCache
from cadec_cli.text.subwords import BOS, EOS
from cadec_cli.training.loop import greedy
from converters.own_networks import convert_translation_model
from tests.helpers.beam_pairs import PLAIN, Pair, models

TOLERANCE = 1e-4
SEARCHABLE = [name for name in OBJECTIVES if objective(name).uses(NMT) and objective(name).by_token]


MODELS = models()
SOURCES = [[5, 6, 7], [8], [9, 10, 11, 12, 13], [], [14, 5, 9], [8], [7, 7]]
CONTEXTS = [
    Context(),
    Context(((4, 5),)),
    Context(((9,), (10, 11, 12))),
    Context(((6,),)),
    Context(((5, 5, 5, 5, 5, 5),)),
    Context(),
    Context(((6,),)),
]


@torch.inference_mode()
def naive_terms(
    models: Pair, source: Sequence[int], context: Context, ids: Ids, scoring_options: ScoringOptions
) -> dict[str, float]:
    """log p of the tokens and of the end, summed, by full passes over this one hypothesis."""
    ended = [*ids, EOS]
    translation = models.nmt(torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *ids]]))[0].softmax(-1)
    terms = {NMT: sum(math.log(translation[i, w]) for i, w in enumerate(ended))}
    for name, before in ((CONDITIONAL, context.tokens(EOS)), (FREE, [EOS])):
        logits = models.lm(torch.tensor([[*before, *ids]]))[0, len(before) - 1 :]
        p = (logits.double() / scoring_options.temperatures[0]).softmax(-1)
        p = (p + scoring_options.alpha / p.size(-1)) / (1 + scoring_options.alpha)
        terms[name] = sum(math.log(p[i, w]) for i, w in enumerate(ended))
    return terms


def naive_beam(
    models: Pair,
    name: str,
    source: Sequence[int],
    context: Context,
    options: BeamOptions,
    scoring_options: ScoringOptions,
) -> list[tuple[Ids, float]]:
    """The same search with lists, one sentence, no cache and no batch."""
    wanted = objective(name)
    vocabulary = models.nmt.config.target_vocabulary
    limit = (options.limits or models.translation.limits).most(len(source))

    @torch.inference_mode()
    def token_scores(ids: Ids) -> list[float]:
        logits = models.nmt(torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *ids]]))[0, -1]
        terms = {NMT: logits.log_softmax(-1)}
        for term, before in ((CONDITIONAL, context.tokens(EOS)), (FREE, [EOS])):
            p = (models.lm(torch.tensor([[*before, *ids]]))[0, -1] / scoring_options.temperatures[0]).softmax(
                -1
            )
            terms[term] = ((p + scoring_options.alpha / vocabulary) / (1 + scoring_options.alpha)).log()
        scores: list[float] = wanted.score(terms).tolist()
        return scores

    live: list[tuple[Ids, float]] = [((), 0.0)]
    finished: list[tuple[Ids, float]] = []
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
        if topped and len(finished) >= options.beam:
            break
        live = [candidate for candidate in candidates if candidate[0][-1] != EOS][: options.beam]
    finished.sort(key=lambda made: -made[1])
    return finished[: options.beam]


def assert_same(found: Sequence[BeamHypothesis], expected: Sequence[BeamHypothesis]) -> None:
    assert [made.ids for made in found] == [made.ids for made in expected]
    for made, other in zip(found, expected, strict=True):
        assert made.score == pytest.approx(other.score, abs=TOLERANCE)
        assert made.terms == pytest.approx(other.terms, abs=TOLERANCE)


@pytest.mark.parametrize("name", SEARCHABLE)
@pytest.mark.parametrize(
    ("options", "reading"),
    [
        (BeamOptions(), PLAIN),
        (BeamOptions(beam=3), ScoringOptions((4.0,))),
        (BeamOptions(beam=2), ScoringOptions(alpha=0.3)),
        (BeamOptions(beam=5), ScoringOptions((2.0,), 0.1)),
        (BeamOptions(beam=4, limits=LengthLimits(0.5, 2)), PLAIN),
        (BeamOptions(beam=16), PLAIN),
    ],
    ids=["plain", "temperature", "alpha", "both", "short", "wide"],
)
def test_it_finds_what_a_naive_search_finds(name: str, options: BeamOptions, reading: ScoringOptions) -> None:
    found = MODELS.search(objective(name), options, reading).search(SOURCES, CONTEXTS)
    for source, context, hypotheses in zip(SOURCES, CONTEXTS, found, strict=True):
        expected = naive_beam(MODELS, name, source, context, options, reading)
        assert [made.ids for made in hypotheses] == [ids for ids, _ in expected]
        assert [made.score for made in hypotheses] == pytest.approx(
            [score for _, score in expected], abs=TOLERANCE
        )


@pytest.mark.parametrize("name", ["sentence", "c-score"])
def test_a_beam_as_wide_as_all_there_is_finds_the_best(name: str) -> None:
    small = models(vocabulary=6)
    source, context, length = [4, 5], Context(((5,),)), 3
    options = BeamOptions(beam=6**length, limits=LengthLimits(0, length))
    (found,) = small.search(objective(name), options).search([source], [context])
    said = [token for token in range(6) if token != EOS]
    every = [ids for size in range(length + 1) for ids in itertools.product(said, repeat=size)]
    scores = [objective(name).score(naive_terms(small, source, context, ids, PLAIN)) for ids in every]
    best = max(range(len(every)), key=scores.__getitem__)
    assert found[0].ids == every[best]
    assert found[0].score == pytest.approx(scores[best], abs=TOLERANCE)
    assert {made.ids for made in found} == set(every)


@pytest.mark.parametrize("name", SEARCHABLE)
def test_reported_terms_are_those_of_the_hypothesis_scored_alone(name: str) -> None:
    reading = ScoringOptions((2.0,), 0.05)
    search = MODELS.search(objective(name), BeamOptions(limits=LengthLimits(0.5, 3)), reading)
    for source, context, found in zip(SOURCES, CONTEXTS, search.search(SOURCES, CONTEXTS), strict=True):
        for made in found:
            terms = naive_terms(MODELS, source, context, made.ids, reading)
            # What the objective does not look at is absent.
            expected = {term: terms[term] for term in search.objective.terms}
            assert made.terms == pytest.approx(expected, abs=TOLERANCE)
            assert made.score == pytest.approx(search.objective.score(terms), abs=TOLERANCE)


def test_weight_0_is_the_plain_beam() -> None:
    plain = MODELS.plain().search(SOURCES, CONTEXTS)
    weightless = MODELS.search(objective("c-score", {"lm": 0.0})).search(SOURCES, CONTEXTS)
    for found, expected in zip(weightless, plain, strict=True):
        assert [(made.ids, made.score) for made in found] == [(made.ids, made.score) for made in expected]


def test_without_context_the_c_score_is_the_plain_beam_exactly() -> None:
    empty = [Context()] * len(SOURCES)
    plain = MODELS.plain().search(SOURCES, empty)
    aware = MODELS.search(objective("c-score"), scoring_options=ScoringOptions((3.0,))).search(SOURCES, empty)
    for found, expected in zip(aware, plain, strict=True):
        assert [(made.ids, made.score) for made in found] == [(made.ids, made.score) for made in expected]
        assert all(made.terms[CONDITIONAL] == made.terms[FREE] for made in found)


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
)
def test_a_batch_equals_one_by_one(
    pairs: list[tuple[list[int], list[list[int]]]], name: str, beam: int
) -> None:
    sources = [source for source, _ in pairs]
    contexts = [Context(tuple(tuple(part[:8]) for part in parts)) for _, parts in pairs]
    search = MODELS.search(objective(name), BeamOptions(beam=beam, limits=LengthLimits(2, 6)))
    together = search.search(sources, contexts)
    for source, context, found in zip(sources, contexts, together, strict=True):
        assert_same(found, search.search([source], [context])[0])


def test_sentences_that_end_at_once_leave_the_others_alone() -> None:
    hasty = models(seed=5)
    with torch.no_grad():
        hasty.nmt.output.bias[EOS] += 4
    search = hasty.search(objective("c-score"))
    together = search.search(SOURCES, CONTEXTS)
    lengths = {len(found[0].ids) for found in together}
    assert 0 in lengths and max(lengths) > 0
    for source, context, found in zip(SOURCES, CONTEXTS, together, strict=True):
        assert_same(found, search.search([source], [context])[0])


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_plain_beam_of_1_is_greedy(seed: int) -> None:
    own = models(seed=seed)
    search = own.plain(BeamOptions(beam=1, limits=LengthLimits(2, 12)))  # as `greedy` has it
    for source in SOURCES:
        (found,) = search.search([source], [Context()])
        assert [list(made.ids) for made in found] == greedy(own.nmt, [source])


def test_translations_stay_within_all_limits() -> None:
    endless = models(positions=24)
    with torch.no_grad():
        endless.nmt.output.bias[EOS] -= 50
    context = Context(((5,) * 17,))  # room for 5 more
    search = endless.search(objective("c-score"), BeamOptions(limits=LengthLimits(2, 8)))
    short, long, crowded = search.search([[], [5] * 10, [5] * 10], [Context(), Context(), context])
    assert {len(made.ids) for made in short} == {8}
    assert {len(made.ids) for made in long} == {23}
    assert {len(made.ids) for made in crowded} == {5}
    assert all(math.isfinite(made.score) for made in [*short, *long, *crowded])


def test_what_does_not_fit_is_refused() -> None:
    search = MODELS.search(objective("c-score"))
    with pytest.raises(CadecError, match="leaves no room"):
        search.search([[5]], [Context(((5,) * 62,))])
    with pytest.raises(CadecError, match="too long"):
        search.search([[5] * 64], [Context()])
    with pytest.raises(CadecError, match="needs a language model"):
        BeamSearch(MODELS.translation, None, objective("c-score"))
    with pytest.raises(CadecError, match="beam must be at least 1"):
        BeamOptions(beam=0)
    with pytest.raises(ValueError, match="one temperature"):
        MODELS.search(objective("c-score"), scoring_options=ScoringOptions((1.0, 2.0))).search(
            [[5]], [Context()]
        )
    assert search.search([], []) == []


def test_a_term_of_whole_sentences_is_refused() -> None:
    backward = Objective("backward", lambda t, w: t[NMT] + t["back"], (NMT, "back"))
    with pytest.raises(CadecError, match="can't compute back token by token"):
        MODELS.search(backward)


@pytest.mark.skipif(not int8_available(), reason="this build of torch has no int8 linears")
def test_int8_models_can_be_searched_too() -> None:
    int8 = Pair(quantise(MODELS.nmt), quantise(MODELS.lm))
    search = int8.search(objective("c-score"), BeamOptions(limits=LengthLimits(2, 4)))
    for source, context, found in zip(SOURCES, CONTEXTS, search.search(SOURCES, CONTEXTS), strict=True):
        for made in found:
            assert made.terms == pytest.approx(naive_terms(int8, source, context, made.ids, PLAIN), abs=0.5)


@torch.inference_mode()
def test_a_roomy_cache_holds_what_a_plain_one_holds() -> None:
    tokens = torch.randint(4, 20, (3, 30))
    plain, roomy = Cache(), RoomyCache()
    for start, end in [(0, 4), (4, 5), (5, 18), (18, 19), (19, 30)]:
        expected = MODELS.lm.hidden_states(tokens[:, start:end], cache=plain)
        torch.testing.assert_close(MODELS.lm.hidden_states(tokens[:, start:end], cache=roomy), expected)
        assert roomy.length == plain.length == end
        order = torch.tensor([2, 0, 1])
        tokens, plain, roomy = tokens[order], plain.rows(order), roomy.rows(order)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_plain_beam_agrees_with_ctranslate2(seed: int, tmp_path: Path) -> None:
    own = models(seed=seed)
    with torch.no_grad():
        own.nmt.output.bias[EOS] += 2
    pieces = own.translation.text.vocabulary
    convert_translation_model(own.nmt, pieces, pieces, tmp_path / "model", "float32")
    translator = ctranslate2.Translator(str(tmp_path / "model"), device="cpu", compute_type="float32")
    sources = [source for source in SOURCES if source]  # it answers an empty one without asking the model
    compared = 0
    for beam in (1, 4, 6):
        search = own.plain(BeamOptions(beam=beam, limits=LengthLimits(0, 40)))
        found = search.search(sources, [Context()] * len(sources))
        results = translator.translate_batch(
            [[pieces[token] for token in [*source, EOS]] for source in sources],
            beam_size=beam,
            num_hypotheses=beam,
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
