"""The paired bootstrap, on units few enough to list all samples."""

import itertools

import numpy as np
import pytest

from cadec_cli.errors import CadecError
from cadec_cli.evaluation.quality.measures import (
    FEWEST,
    Measure,
    Resampling,
    System,
    compare,
    difference,
    mean_measure,
    middle_of_samples,
)

MEAN = mean_measure("mean", "")


def system(name: str, values: list[float]) -> System:
    """A system whose score is the mean of some values."""
    return System(name, {"mean": np.array([[value, 1.0] for value in values])})


def test_p_by_hand() -> None:
    # Differences of five samples: mean 1, off it by 1, 0, 1, 2, 2. Two of five are as large as Δ = 1.5.
    deltas = np.array([0.0, 1.0, 2.0, 3.0, -1.0])
    found = difference(1.5, deltas + 10, np.full(5, 10.0), units=9)
    assert found.p == pytest.approx((2 + 1) / (5 + 1))
    assert found.wins == pytest.approx(3 / 5)
    assert not found.significant
    assert (found.low, found.high) == middle_of_samples(deltas)
    # Those that are exactly as large count: Δ = 1 has four.
    assert difference(-1.0, deltas + 10, np.full(5, 10.0), units=9).p == pytest.approx((4 + 1) / (5 + 1))


def test_equal_systems_do_not_differ() -> None:
    values = [0.1, 0.7, 0.3, 0.9, 0.2, 0.4]
    first, second = compare([MEAN], [system("a", values), system("b", values)], Resampling(np.arange(6)))
    assert first["mean"].difference is None
    found = second["mean"].difference
    assert found is not None
    assert (found.delta, found.low, found.high, found.p, found.wins) == (0, 0, 0, 1, 0)


def test_samples_are_those_of_all_drawings() -> None:
    # Six sentences: 46,656 equally likely samples can be listed, and the bootstrap must come near them.
    ours, theirs = [3.1, 1.0, 2.0, 2.7, 0.6, 1.9], [1.0, 1.53, 2.0, 1.1, 1.27, 1.4]
    deltas = np.array(
        [sum(ours[i] - theirs[i] for i in drawn) / 6 for drawn in itertools.product(range(6), repeat=6)]
    )
    delta = float(deltas.mean())
    exact = float((np.abs(deltas - deltas.mean()) >= delta - 1e-9).mean())
    _, figures = compare(
        [MEAN], [system("a", ours), system("b", theirs)], Resampling(np.arange(6), samples=20_000)
    )
    found = figures["mean"].difference
    assert found is not None
    assert found.delta == pytest.approx(delta)
    assert found.p == pytest.approx(exact, abs=0.02)
    assert found.wins == pytest.approx(float((deltas > 0).mean()), abs=0.02)


def test_documents_are_drawn_whole() -> None:
    # Two documents: a sample has both of one, both of the other, or one of each; never one sentence.
    statistics = np.array([[1.0], [10.0], [100.0]])
    sums = Resampling(np.array([0, 0, 1]), samples=500).sums(statistics)
    assert set(sums[:, 0].tolist()) == {22.0, 111.0, 200.0}


def test_all_systems_see_the_same_samples() -> None:
    # The second is always above the first by 1, whatever is drawn.
    rng = np.random.default_rng(5)
    values = rng.normal(size=50)
    below, above = system("a", list(values)), system("b", list(values + 1))
    _, figures = compare([MEAN], [below, above], Resampling(np.arange(50)))
    found = figures["mean"].difference
    assert found is not None
    assert (found.delta, found.low, found.high) == pytest.approx((-1, -1, -1))
    assert found.p == pytest.approx(1 / 1001)
    assert found.significant


def test_a_seed_repeats_and_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    from cadec_cli.evaluation.quality import measures

    statistics = np.random.default_rng(1).normal(size=(30, 4))
    whole = Resampling(np.arange(30), samples=40, seed=3).sums(statistics)
    monkeypatch.setattr(measures, "_DRAWN", 100)
    np.testing.assert_allclose(Resampling(np.arange(30), samples=40, seed=3).sums(statistics), whole)
    assert not np.allclose(Resampling(np.arange(30), samples=40, seed=4).sums(statistics), whole)


@pytest.mark.parametrize("units", [2, 5, 6])
def test_too_few_units_are_not_tested(units: int) -> None:
    assert 2 / 2 ** (FEWEST - 1) > 0.05 > 2 / 2**FEWEST
    for seed in range(5):
        both = [system("a", [float(one + 1) for one in range(units)]), system("b", [0.0] * units)]
        _, figures = compare([MEAN], both, Resampling(np.arange(units), seed=seed))
        found = figures["mean"].difference
        assert found is not None and found.delta > 0
        assert (found.p is None) == (found.wins is None) == (units < FEWEST)
        assert not (found.significant and found.p is None)
        assert ("p" in found.record()) == ("wins" in found.record()) == (units >= FEWEST)


def test_one_unit_can_not_be_compared() -> None:
    one = [system("a", [1.0, 2.0]), system("b", [0.0, 1.0])]
    with pytest.raises(CadecError, match="only one unit"):
        compare([MEAN], one, Resampling(np.zeros(2, dtype=np.int64)))
    (alone,) = compare([MEAN], one[:1], Resampling(np.zeros(2, dtype=np.int64)))
    assert alone["mean"].score == 1.5


def test_a_system_without_a_measure_has_no_figure_for_it() -> None:
    other = Measure("other", "", MEAN.scores)
    values = system("a", [1.0, 2.0]).statistics["mean"]
    first = System("a", {"mean": values, "other": values})
    figures = compare([other, MEAN], [first, system("b", [1.0, 2.5])], Resampling(np.arange(2)))
    assert list(figures[0]) == ["other", "mean"]
    assert list(figures[1]) == ["mean"]
