"""All settings at once choose what each chooses alone; protocols choose as the paper says, noise never."""

import dataclasses

import numpy as np
import pytest
import sacrebleu

from cadec_cli.decoding.search.lattice import LatticeSearch, settled_choices
from cadec_cli.decoding.state import PartialPath
from cadec_cli.decoding.translator import Translator
from cadec_cli.engines.protocols import ModelSet
from cadec_cli.engines.torch_lm import TorchLanguageModel
from cadec_cli.errors import CadecError
from cadec_cli.evaluation.benchmark import WordText
from cadec_cli.evaluation.tuning.search import (
    TEMPERATURES,
    WEIGHTS,
    Point,
    Setting,
    above,
    changed_defaults,
    choose,
    decide,
    grid_search,
    measure_settings,
    prepare_lists,
    present_setting,
    rerank_with_all,
    reranking_translator,
    scorings_of,
    trial_of,
)
from cadec_cli.evaluation.tuning.trials import front
from cadec_cli.method.context import ContextPolicy
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.method.objectives import objective
from cadec_cli.method.options import DecodingDefaults, ScoringOptions, TranslationOptions
from tests.helpers.bundle_parts import tiny_lm
from tests.helpers.fakes import TableLM, TableNMT

LM = TorchLanguageModel(tiny_lm(30), WordText(30))
SETTINGS = [Setting(1.0, 1.0), Setting(3.0, 1.0), Setting(1.0, 0.4), Setting(8.0, 2.0)]


def lists(seed: int, sentences: int) -> list[NBest]:
    """A document of made-up n-best lists; every fourth sentence has none."""
    random = np.random.default_rng(seed)

    def hypothesis() -> Hypothesis:
        ids = tuple(random.integers(4, 30, random.integers(1, 6)).tolist())
        return Hypothesis(LM.text.decode(ids), float(random.normal(-3, 1)), ids)

    return [
        NBest(
            f"sentence {number}",
            tuple(hypothesis() for _ in range(random.integers(1, 7))) if number % 4 != 3 else (),
            LM.text.identity,
        )
        for number in range(sentences)
    ]


@pytest.mark.parametrize("name", ["c-score", "shallow-fusion", "conditional-shallow-fusion"])
@pytest.mark.parametrize("context", [0, 2])
def test_all_at_once_is_each_alone(name: str, context: int) -> None:
    documents = [lists(seed, length) for seed, length in ((1, 9), (2, 4), (3, 7), (4, 0))]
    together = grid_search(
        reranking_translator(
            ModelSet(TableNMT({}), LM), TranslationOptions(context=context, protect=False), name
        ),
        SETTINGS,
    )
    assert together.scoring_options.temperatures == (1.0, 3.0, 8.0)
    columns = [together.columns(document) for document in documents]
    found = rerank_with_all(together, columns, scorings_of(together, SETTINGS))
    for setting, chosen in zip(SETTINGS, found, strict=True):
        alone = LatticeSearch(
            objective(name, {"lm": setting.weight}),
            LM,
            scoring_options=ScoringOptions((setting.temperature,)),
            policy=ContextPolicy(context),
        )
        for document, indices in zip(documents, chosen, strict=True):
            beam = [PartialPath()]
            for nbest in document:
                (column,) = alone.columns([nbest])
                if column is not None:
                    (beam,) = alone.advance([beam], [column])
            expected = [choice.index for choice in settled_choices(beam, True)]
            filled = [index for index, nbest in zip(indices, document, strict=True) if nbest.hypotheses]
            assert filled == expected
            assert len(indices) == len(document)
    if name == "c-score":  # without context, it has nothing to say
        assert (found[0] != found[3]) == bool(context)


def point(temperature: float, weight: float, bleu: float, chrf: float = 0.0) -> Point:
    return Point(Setting(temperature, weight), bleu, chrf, 0.0)


def test_the_two_protocols() -> None:
    level = point(1, 0, 20.0)
    points = [point(1, 1, 19.0), point(2, 1, 20.0), point(4, 1, 21.0), point(8, 1, 20.5)]
    assert choose("best", level, points).setting.temperature == 4
    assert choose("strongest", level, points).setting.temperature == 2
    weights = [point(1, 0.1, 20.3), point(1, 0.2, 20.1), point(1, 0.4, 19.9)]
    assert choose("best", level, weights).setting.weight == 0.1
    assert choose("strongest", level, weights).setting.weight == 0.2
    assert choose("best", level, [point(1, 1, 20.0, 40), point(2, 1, 20.0, 41)]).setting.temperature == 2
    with pytest.raises(CadecError, match="lower BLEU"):
        choose("strongest", level, [point(1, 1, 19.99)])


def test_figures_of_choices() -> None:
    texts: list[list[list[str]]] = [
        [["a cat sat on a mat", "the cat sat on the mat"], ["yes , it did", "no"]],
        [[]],
    ]
    references = [["the cat sat on the mat", "yes , it did"], [""]]
    settings = [Setting(1.0, 1.0), Setting(2.0, 1.0)]
    level, (right, wrong) = measure_settings(settings, [[[1, 0], [0]], [[1, 1], [0]]], texts, references)
    assert right.bleu == pytest.approx(100) and right.changed == pytest.approx(1 / 3)
    assert level.bleu < right.bleu and wrong.bleu < right.bleu
    assert level.changed == 0 and wrong.changed == pytest.approx(2 / 3)
    wanted = [references[0][0], references[0][1], ""]
    for found, picked in ((level, [texts[0][0][0], texts[0][1][0], ""]), (wrong, [wanted[0], "no", ""])):
        assert found.bleu == pytest.approx(sacrebleu.corpus_bleu(picked, [wanted]).score)
        assert found.chrf == pytest.approx(sacrebleu.corpus_chrf(picked, [wanted]).score)


def test_sentences_of_a_line_are_measured_as_one() -> None:
    texts = [[["a cat sat", "the cat sat"], ["on a mat", "on the mat"], ["yes , it did", "no"]]]
    references = [["the cat sat on the mat", "yes , it did"]]
    _, (right,) = measure_settings([Setting(1.0, 1.0)], [[[1, 1, 0]]], texts, references, [2, 1])
    assert right.bleu == pytest.approx(100) and right.changed == pytest.approx(2 / 3)


@pytest.mark.parametrize("formality", ["auto", "formal"])
def test_what_is_tuned_is_what_translates(formality: str) -> None:
    """The same lists and the same search: protection, defects, affixes, long sentences and the seed."""
    table = {
        "i see 25 of you": {"mi vidas vin": -1.0, "mi vidas 25 de vi": -1.5, "mi vidas 25 de ci": -1.6},
        "go on": {"iru iru iru iru iru iru": -0.1, "vi iru plu": -2.0, "ci iru plu": -2.1},
        "come": {"venu vi": -1.0, "venu ci": -1.3},
    }
    long = " ".join(["come", "go on"] * 6)
    document = ["i see 25 of you", "- go on", "12:30", "<b>come</b>", "COME", long, "## come"]
    calls = {("vi", "ci"): 0.4, ("ci", "ci"): 0.4, ("sinjoro", "vi"): 3.0}
    models = ModelSet(
        TableNMT({**table, "COME": table["come"]}, most=6), TableLM(calls), seeds={"formal": ["sinjoro"]}
    )
    options = TranslationOptions(formality=formality, context=2, nbest=3)
    settings = [Setting(1.0, 1.0), Setting(4.0, 1.0), Setting(1.0, 6.0)]
    outcomes = []
    for setting in settings:
        own = dataclasses.replace(
            options, temperature=setting.temperature, weight={"lm": setting.weight}, search="rerank"
        )
        outcomes.append([one.text for one in Translator(models, own, language="en").translate(document)])
    assert any("ci" in " ".join(texts) for texts in outcomes) == (formality == "auto")
    for setting, texts in zip(settings, outcomes, strict=True):
        translator = reranking_translator(models, options, "c-score", "en")
        _, points = prepare_lists(translator, [document], [texts], settings).points(settings)
        assert points[settings.index(setting)].bleu == pytest.approx(100)
        assert points[settings.index(setting)].chrf == pytest.approx(100)


def improved(better: int, worse: int, lines: int = 60) -> tuple[Point, Point, Point]:
    """The sentence level, which is what is used at present, and a setting that changes some lines of it."""
    texts = [[[f"the cat number {n} sat there", f"a cat number {n} sat there"] for n in range(lines)]]
    wanted = [texts[0][n][1 if n < better else 0] for n in range(lines)]
    chosen = [[1 if n < better or n >= lines - worse else 0 for n in range(lines)]]
    settings = [Setting(4.0), Setting(2.0)]
    level, (present, other) = measure_settings(settings, [[[0] * lines], chosen], texts, [wanted])
    return level, present, other


@pytest.mark.parametrize(
    ("better", "worse", "moves"), [(30, 0, True), (30, 5, True), (2, 1, False), (1, 0, False)]
)
def test_the_best_is_taken_only_if_it_is_more_than_noise(better: int, worse: int, moves: bool) -> None:
    level, present, other = improved(better, worse)
    assert other.bleu > present.bleu
    decision = decide("best", level, [present, other], present)
    assert decision.point is (other if moves else present)
    assert decision.difference is not None and decision.difference.significant == moves
    assert ("within noise" in decision.reason) != moves
    assert ("T = 4, weight 1 stays" in decision.reason) != moves


def test_what_is_no_better_never_moves_the_present() -> None:
    level, present, other = improved(0, 3)
    assert decide("best", level, [present, other], present).point is present
    level, present, other = improved(0, 0)  # equal, and of equals the other would come first
    assert decide("best", level, [other, present], present).point is present


def test_the_strongest_is_the_paper_s_and_says_its_p() -> None:
    level, present, other = improved(1, 0)
    decision = decide("strongest", level, [present, other], present)
    assert decision.point is other and decision.difference is not None
    assert f"p = {decision.difference.p:.2g}" in decision.reason


def test_differences_are_paired() -> None:
    _, present, other = improved(9, 2)
    (forth,), (back,) = above(present, [other]), above(other, [present])
    assert (forth.delta, forth.low, forth.high) == pytest.approx((-back.delta, -back.high, -back.low))
    assert forth.p == back.p
    (same,) = above(present, [present])
    assert (same.delta, same.low, same.high, same.p) == (0, 0, 0, 1)


DEFAULTS = DecodingDefaults(temperature=5.0, weight={"lm": 3.0})


@pytest.mark.parametrize(
    ("name", "temperatures", "weights", "tried"),
    [
        ("c-score", (), (), {(t, w) for t in TEMPERATURES for w in WEIGHTS}),
        ("c-score", (2.0, 7.0), (), {(2.0, 3.0), (7.0, 3.0)}),
        ("c-score", (), (1.0, 2.0), {(5.0, 1.0), (5.0, 2.0)}),
        ("c-score", (5.0,), (3.0,), set()),
        ("shallow-fusion", (1.0,), (0.2,), {(1.0, 0.2)}),
    ],
)
def test_what_is_used_at_present_is_tried_once_with_the_others(
    name: str, temperatures: tuple[float, ...], weights: tuple[float, ...], tried: set[tuple[float, float]]
) -> None:
    trial = trial_of(DEFAULTS, name, temperatures, weights)
    present = (5.0, 3.0 if name == "c-score" else 0.1)
    found = [(setting.temperature, setting.weight) for setting in trial.settings]
    assert sorted(found) == sorted(tried | {present})
    assert (trial.present.temperature, trial.present.weight) == present


def test_a_model_with_one_temperature_is_tuned_at_that_one() -> None:
    for name in ("c-score", "shallow-fusion", "bayes"):
        trial = trial_of(DEFAULTS, name, fixed=1.0)
        assert trial.temperatures == (1.0,)
        assert len(trial.settings) > 1 or trial.together
    assert {setting.weight for setting in trial_of(DEFAULTS, "c-score", fixed=1.0).settings} == {
        *WEIGHTS,
        3.0,
    }
    assert trial_of(DEFAULTS, "c-score", (), (2.0,), fixed=1.0).temperatures == (1.0,)


def test_defaults_change_by_what_was_found_alone() -> None:
    unweighted = DecodingDefaults(temperature=5.0)
    assert changed_defaults(unweighted, "c-score", Setting(5.0, 1.0), None, None) == unweighted
    changed = changed_defaults(unweighted, "c-score", Setting(2.0, 4.0), 1, 7)
    assert (changed.temperature, changed.weight, changed.context, changed.nbest) == (2.0, {"lm": 4.0}, 1, 7)
    assert present_setting(changed, "c-score") == Setting(2.0, 4.0)


def test_the_weight_of_an_added_term_stays() -> None:
    """A vote on the form of address is part of the search that is tuned, and of what is saved."""
    voted = DecodingDefaults(temperature=5.0, weight={"lm": 0.5, "address": 0.25})
    trial = trial_of(voted, "c-score", (1.0, 5.0), (2.0,))
    assert trial.present == Setting(5.0, 0.5, added=(("address", 0.25),))
    assert not trial.together and len(trial.settings) == 3
    assert all(setting.weights["address"] == 0.25 for setting in trial.settings)
    changed = changed_defaults(voted, "c-score", trial.settings[1], None, None)
    assert changed.weight == {"lm": 2.0, "address": 0.25}
    assert trial.settings[1].flags == ("--temperature", "1", "--weight", "lm=2,address=0.25")
    # Another objective has its own weights.
    assert not present_setting(voted, "shallow-fusion").added


def test_the_front_beats_all_others_and_nothing_beats_it() -> None:
    random = np.random.default_rng(5)

    def beats(one: Point, other: Point) -> bool:
        figures = (one.bleu, one.accuracy), (other.bleu, other.accuracy)
        return all(a >= b for a, b in zip(*figures, strict=True)) and figures[0] != figures[1]

    for _ in range(30):
        points = [
            Point(Setting(n + 1.0), float(bleu), 0.0, 0.0, (float(accuracy), 0.5))
            for n, (bleu, accuracy) in enumerate(random.integers(0, 5, (12, 2)))
        ]
        best = front(points)
        assert [point.accuracy for point in best] == sorted(point.accuracy for point in best)
        for point in points:
            assert (point in best) != any(beats(other, point) for other in best)
            assert not (point in best and any(beats(other, point) for other in points))
