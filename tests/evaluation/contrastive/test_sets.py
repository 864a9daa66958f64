"""Accuracy, ties, chance and interval, on examples that can be checked by hand."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.errors import CadecError
from cadec_cli.evaluation.contrastive.sets import (
    ContrastiveSet,
    Group,
    Verdict,
    accuracy,
    accuracy_interval,
    judge,
)


def group(*candidates: str, truth: int = 0, distance: int | None = None) -> Group:
    return Group("x", (), ("c",), candidates, truth, distance, "7")


@pytest.mark.parametrize(
    ("candidates", "truth", "scores", "verdict"),
    [
        (("a", "b"), 0, (-1.0, -2.0), Verdict(True, False, 1)),
        (("a", "b"), 1, (-1.0, -2.0), Verdict(False, False, 0)),
        (("a", "b"), 0, (-1.0, -1.0), Verdict(False, True, 1)),  # a constant scorer knows nothing
        (("a", "b", "a"), 0, (-1.0, -2.0, -1.0), Verdict(True, False, 1)),  # its twin is no rival
        (("a", "b", "a"), 2, (-1.0, -2.0, -1.0), Verdict(True, False, 1)),
        (("a", "b", "c"), 0, (-2.0, -2.0, -1.0), Verdict(False, False, 2)),  # lost, not tied
        (("a", "b", "c"), 1, (-3.0, -2.0, -2.5), Verdict(True, False, 2)),
        (("a", "b"), 0, (-math.inf, -math.inf), Verdict(False, True, 1)),
    ],
)
def test_the_true_candidate_must_beat_every_other_one(
    candidates: tuple[str, ...], truth: int, scores: tuple[float, ...], verdict: Verdict
) -> None:
    assert judge(group(*candidates, truth=truth), scores) == verdict
    assert judge(group(*candidates, truth=truth), np.array(scores)) == verdict


@pytest.mark.parametrize("scores", [(math.nan, -1.0), (-1.0, math.nan)])
def test_what_is_no_number_is_refused(scores: tuple[float, ...]) -> None:
    with pytest.raises(CadecError, match="group 7"):
        judge(group("a", "b"), scores)


@given(st.permutations([-1.0, -2.0, -3.0]), st.integers(0, 2))
def test_the_order_of_candidates_does_not_matter(scores: list[float], truth: int) -> None:
    verdict = judge(group("a", "b", "c", truth=truth), scores)
    assert verdict.right == (scores[truth] == -1.0)
    assert not verdict.tied


@pytest.mark.parametrize("truth", [-1, 2])
def test_the_true_candidate_is_one_of_them(truth: int) -> None:
    with pytest.raises(CadecError, match=f"number {truth} of 2"):
        group("a", "b", truth=truth)


@pytest.mark.parametrize("candidates", [("a",), ("a", "a")])
def test_one_candidate_is_no_question(candidates: tuple[str, ...]) -> None:
    with pytest.raises(CadecError, match="two different"):
        group(*candidates)


def test_chance_counts_different_candidates() -> None:
    groups = (group("a", "b"), group("a", "b", "c", "d"), group("a", "b", "a", "b"))
    assert ContrastiveSet(Path("s.json"), "jsonl", groups).chance == pytest.approx(
        (1 / 2 + 1 / 4 + 1 / 2) / 3
    )


def test_figures_by_distance() -> None:
    right, wrong, tied = Verdict(True, False, 1), Verdict(False, False, 1), Verdict(False, True, 1)
    distances = [3, 1, 1, 7, 4, None]
    found = accuracy(
        [group("a", "b", distance=distance) for distance in distances],
        [right, right, tied, right, wrong, right],
    )
    assert (found.right, found.groups, found.ties) == (4, 6, 1)
    assert found.share == pytest.approx(4 / 6)
    assert dict(found.by_distance) == {"1": (1, 2), "3": (1, 1), ">3": (1, 2)}
    assert list(found.by_distance) == ["1", "3", ">3"]


def test_the_interval_of_what_is_always_right_or_wrong_is_a_point() -> None:
    assert accuracy_interval(5, 5) == (1.0, 1.0)
    assert accuracy_interval(0, 5) == (0.0, 0.0)
    assert accuracy_interval(1, 1) == (1.0, 1.0)


def test_two_groups_are_both_right_or_both_wrong_in_a_quarter_of_the_samples() -> None:
    assert accuracy_interval(1, 2) == (0.0, 1.0)


def test_the_interval_is_that_of_groups_drawn_with_replacement() -> None:
    rng = np.random.default_rng(5)
    outcomes = np.array([1] * 60 + [0] * 40)
    drawn = outcomes[rng.integers(0, 100, (20_000, 100))].mean(1)
    assert accuracy_interval(60, 100) == pytest.approx(np.percentile(drawn, (2.5, 97.5)), abs=0.011)
    assert accuracy_interval(60, 100) == accuracy_interval(60, 100)  # the same seed
    assert accuracy_interval(600, 1000)[1] < accuracy_interval(60, 100)[1]
