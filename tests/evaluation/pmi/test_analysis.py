"""PMI of sentences with their contexts, and how two columns of it go together."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.arrays import Floats
from cadec_cli.engines.torch_lm import TorchLanguageModel
from cadec_cli.errors import CadecError
from cadec_cli.evaluation.aligned import AlignedText
from cadec_cli.evaluation.pmi.analysis import (
    CONDITIONAL,
    PMI,
    Analysis,
    Outlier,
    OutputOutliers,
    Panel,
    Quadrants,
    TextScorer,
    analyse,
    excesses,
    own_contexts,
    own_scores,
    pearson,
    pmi_statistics,
    quadrants,
    random_contexts,
    ranks,
    spearman,
)
from cadec_cli.method.context import ContextPolicy
from cadec_cli.reports.pmi import check_figure, draw_panels, write_pmi_page
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.text.subwords import EOS
from tests.helpers.bundle_parts import tiny_lm
from tests.helpers.report_parts import data_of

DOCUMENTS = [[(10,), (11,), (12,), (13,), (14,)], [(20,), (21,)], [(30,)]]

EN = AlignedText("en.txt", (("Tom wants it.", "Nobody sees it!", "Tom took the ship."), ("It.", "The boy?")))
RU = AlignedText("ru.txt", (("Том хочет его.", "Никто не знает!", "Том взял корабль."), ("Его.", "Мальчик?")))


def array(*values: float) -> Floats:
    return np.array(values, dtype=np.float64)


def test_pearson_by_hand() -> None:
    # x − mean = −1 0 1, y − mean = −2 1 1: 3 / √(2 · 6)
    assert pearson(array(1, 2, 3), array(1, 4, 4)) == pytest.approx(3 / math.sqrt(12))
    assert pearson(array(1, 2, 3), array(6, 4, 2)) == pytest.approx(-1)
    assert math.isnan(pearson(array(1, 2), array(3, 3)))
    assert math.isnan(pearson(array(1), array(3)))


def test_ranks_of_ties_are_averaged() -> None:
    assert ranks(array(30, 10, 20, 20)).tolist() == [4, 1, 2.5, 2.5]
    # Ranks 1 2 3 4 and 1 2.5 2.5 4: 4.5 / √(5 · 4.5)
    assert spearman(array(1, 2, 3, 40), array(5, 6, 6, 7)) == pytest.approx(4.5 / math.sqrt(22.5))
    assert spearman(array(1, 2, 3), array(1, 10, 1000)) == pytest.approx(1)


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=3, max_size=20))
def test_pearson_is_that_of_numpy(points: list[tuple[int, int]]) -> None:
    x, y = np.array(points, dtype=np.float64).T
    found = pearson(x, y)
    if x.std() > 0 and y.std() > 0:
        assert found == pytest.approx(float(np.corrcoef(x, y)[0, 1]), abs=1e-9)
    else:
        assert math.isnan(found)


def test_quadrants_leave_out_the_axes() -> None:
    x, y = array(1, 2, -1, -1, -2, 3, 0, 0), array(1, 1, 1, -1, -1, -1, 5, 0)
    assert quadrants(x, y) == Quadrants(2, 1, 2, 1)


def test_excess_is_counted_in_robust_deviations() -> None:
    # Differences 0 1 2 3 100: median 2, absolute deviations 2 1 0 1 98 with median 1.
    y = array(0, 1, 2, 3, 100)
    assert excesses(np.zeros(5), y)[-1] == pytest.approx(98 / 1.4826)
    assert excesses(np.zeros(5), array(1, 1, 1, 1, 9)).tolist() == [0] * 5  # no unit to count in


def test_own_contexts_stay_in_the_document() -> None:
    contexts = [context.sentences for context in own_contexts(DOCUMENTS, ContextPolicy(3))]
    first, second, third = contexts[:5], contexts[5:7], contexts[7:]
    assert first == [(), ((10,),), ((10,), (11,)), ((10,), (11,), (12,)), ((11,), (12,), (13,))]
    assert second == [(), ((20,),)]
    assert third == [()]


@pytest.mark.parametrize("seed", range(5))
def test_random_contexts_come_from_other_documents(seed: int) -> None:
    found, again = (
        [
            context.sentences
            for context in random_contexts(DOCUMENTS, ContextPolicy(2), np.random.default_rng(seed))
        ]
        for _ in range(2)
    )
    assert found == again
    owners = [number for number, document in enumerate(DOCUMENTS) for _ in document]
    firsts = {0, 5, 7}
    for place, (owner, context) in enumerate(zip(owners, found, strict=True)):
        assert bool(context) == (place not in firsts)
        for sentence in context:
            assert sentence[0] // 10 != owner + 1
        assert len(context) <= 2
        if len(context) == 2:  # neighbours, in order
            assert context[1][0] == context[0][0] + 1


def test_random_contexts_need_another_document() -> None:
    with pytest.raises(CadecError, match="only one"):
        random_contexts(DOCUMENTS[:1], ContextPolicy(3), np.random.default_rng(1))


@pytest.fixture(scope="module")
def english_lm(english: TextPipeline) -> TextScorer:
    return TextScorer(TorchLanguageModel(tiny_lm(len(english), seed=2), english), "en")


@pytest.fixture(scope="module")
def russian_lm(russian: TextPipeline) -> TextScorer:
    return TextScorer(TorchLanguageModel(tiny_lm(len(russian)), russian), "ru")


@torch.inference_mode()
def naive(scorer: TextScorer, before: list[str], sentence: str) -> float:
    """log p of a sentence and its end after c̃, by one pass over all of it."""
    model = scorer.model
    assert isinstance(model, TorchLanguageModel)
    tokens = [EOS]
    for text in before:
        tokens += [*model.text.encode(text), EOS]
    ids = [*model.text.encode(sentence), EOS]
    everything = torch.tensor([[*tokens, *ids]])
    logs = model.network(everything[:, :-1])[0].double().log_softmax(-1)
    return float(logs[torch.arange(len(logs)), everything[0, 1:]][-len(ids) :].sum())


def test_scores_are_those_of_each_sentence_alone(english_lm: TextScorer) -> None:
    scores = own_scores(english_lm, EN, ContextPolicy(1))
    first, second = EN.documents
    contexts: list[list[str]] = [[], [first[0]], [first[1]], [], [second[0]]]
    np.testing.assert_allclose(
        scores.conditional,
        [naive(english_lm, before, text) for before, text in zip(contexts, EN.sentences, strict=True)],
        atol=1e-4,
    )
    np.testing.assert_allclose(scores.free, [naive(english_lm, [], text) for text in EN.sentences], atol=1e-4)


def test_without_context_pmi_is_exactly_0_and_counts_for_nothing(english_lm: TextScorer) -> None:
    scores = own_scores(english_lm, EN, ContextPolicy(3))
    assert scores.in_context.tolist() == [False, True, True, False, True]
    assert scores.pmi[[0, 3]].tolist() == [0, 0]
    assert (scores.pmi[scores.in_context] != 0).all()
    assert pmi_statistics(scores).sum(0) == pytest.approx([scores.pmi.sum(), 3])


def test_a_sentence_that_leaves_no_room_has_no_context(english_lm: TextScorer) -> None:
    text = AlignedText("long.txt", (("It.", "Tom wants the ship. " * 40, "It."),))
    scores = own_scores(english_lm, text, ContextPolicy(1))
    assert scores.in_context.tolist() == [False, False, False]
    assert scores.pmi.tolist() == [0, 0, 0]
    assert np.isfinite(scores.free).all()


@pytest.fixture(scope="module")
def analysis(english_lm: TextScorer, russian_lm: TextScorer) -> Analysis:
    output = AlignedText("out.txt", (RU.documents[0], RU.documents[1][::-1]))
    return analyse(english_lm, russian_lm, EN, RU, [output], context=2)


def test_panels_hold_what_was_scored(
    analysis: Analysis, english_lm: TextScorer, russian_lm: TextScorer
) -> None:
    policy = ContextPolicy(2)
    english, russian = own_scores(english_lm, EN, policy), own_scores(russian_lm, RU, policy)
    kinds = [(panel.text, panel.value, panel.contexts) for panel in analysis.panels]
    assert kinds == [
        ("ru.txt", PMI, "own"),
        ("ru.txt", PMI, "random"),
        ("ru.txt", CONDITIONAL, "own"),
        ("ru.txt", CONDITIONAL, "random"),
        ("out.txt", PMI, "own"),
    ]
    for panel in analysis.panels:
        assert panel.places.tolist() == [1, 2, 4]
        assert (panel.quadrants is None) == (panel.value == CONDITIONAL)
    (own, random), (conditional, _) = analysis.reference_panels
    assert [*analysis.panels[:3], *analysis.panels[4:]] == [own, random, conditional, *analysis.output_panels]
    np.testing.assert_allclose(own.source, english.pmi[[1, 2, 4]], atol=1e-5)
    np.testing.assert_allclose(own.target, russian.pmi[[1, 2, 4]], atol=1e-5)
    np.testing.assert_allclose(conditional.target, russian.conditional[[1, 2, 4]], atol=1e-5)
    assert not np.allclose(own.source, random.source)


def test_points_are_written(analysis: Analysis, tmp_path: Path) -> None:
    analysis.write_points(tmp_path / "points.csv")
    with (tmp_path / "points.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 3 * 5
    assert [row["in_context"] for row in rows[:5]] == ["0", "1", "1", "0", "1"]
    assert (rows[4]["text"], rows[4]["contexts"], rows[4]["document"], rows[4]["sentence"]) == (
        "ru.txt",
        "own",
        "2",
        "2",
    )
    for row in rows:
        assert float(row["target_pmi"]) == pytest.approx(
            float(row["target_conditional"]) - float(row["target_free"]), abs=2e-6
        )
    assert float(rows[1]["source_pmi"]) == pytest.approx(analysis.panels[0].source[0], abs=1e-6)


def test_outliers_are_named_furthest_first() -> None:
    text = AlignedText("out.txt", tuple((f"first {n}", f"second {n}") for n in range(20)))
    source = AlignedText("src.txt", tuple((f"one {n}", f"two {n}") for n in range(20)))
    target = np.arange(20) / 10
    target[[3, 7]] = 30.0, 50.0
    panel = Panel("out.txt", PMI, "own", np.zeros(20), target, np.arange(1, 40, 2))
    found = Analysis(source, (text,), ()).furthest(panel, most=5)
    assert [(one.document, one.sentence, one.translation) for one in found] == [
        (8, 2, "second 7"),
        (4, 2, "second 3"),
    ]
    assert found[0].source == "two 7"
    assert found[0].target_pmi == 50
    assert len(Analysis(source, (text,), ()).furthest(panel, most=1)) == 1


@pytest.mark.parametrize("kind", ["png", "pdf", "svg"])
def test_figures_are_drawn(kind: str, analysis: Analysis, tmp_path: Path) -> None:
    path = tmp_path / f"figure.{kind}"
    draw_panels(analysis.reference_panels, analysis.output_panels, path, source="en", target="ru")
    start = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[kind]
    drawn = path.read_bytes()
    assert drawn.startswith(start)
    if kind == "pdf":
        assert b"/FontFile2" in drawn  # TrueType, embedded
        assert b"/Type3" not in drawn
        draw_panels(analysis.reference_panels, analysis.output_panels, path, source="en", target="ru")
        assert path.read_bytes() == drawn


def test_a_page_has_the_panels_and_the_outliers(analysis: Analysis, tmp_path: Path) -> None:
    outliers = [OutputOutliers("out", 1, (Outlier("out", 2, 3, 0.5, 9.25, 4.0, "<b>", "&amp;"),))]
    write_pmi_page(tmp_path / "page.html", analysis, outliers, source="en", target="ru")
    data = data_of(tmp_path / "page.html")
    (figures,), (picture,), (outlier,) = data["figures"], data["pictures"], data["segments"]
    assert [row[1:4] for row in figures["rows"]] == [
        [panel.value, panel.contexts, str(len(panel.source))] for panel in analysis.panels
    ]
    assert picture["uri"].startswith("data:image/png;base64,iVBOR")
    assert (outlier["label"], outlier["source"], outlier["text"]) == ("2.3", "<b>", ["&amp;"])
    assert outlier["notes"] == ["4.0 deviations", "PMI +0.50 → +9.25"]


def test_other_figures_are_refused_before_the_work() -> None:
    with pytest.raises(CadecError, match="png, pdf or svg"):
        check_figure(Path("figure.jpg"))
