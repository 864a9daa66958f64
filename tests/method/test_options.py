"""Options: what follows from them, what is refused, and how weights are named."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.errors import CadecError, UsageError
from cadec_cli.method.options import (
    FORMALITY_TEMPERATURE,
    DecodingDefaults,
    ScoringOptions,
    TranslationOptions,
    named_weights,
    with_flags,
)


@given(st.dictionaries(st.sampled_from(["lm", "nmt", "back"]), st.floats(0, 100), min_size=1))
def test_weights_can_be_written_and_read(weights: dict[str, float]) -> None:
    assert named_weights(",".join(f"{name}={value!r}" for name, value in weights.items())) == weights
    assert named_weights(weights) == weights


def test_a_bare_number_is_the_weight_of_the_language_model() -> None:
    assert named_weights("0.5") == named_weights(0.5) == {"lm": 0.5}
    assert named_weights(None) == {}
    with pytest.raises(CadecError, match="'much' is not a weight"):
        named_weights("lm=0.5,much")


def test_flags_replace_what_they_name_and_nothing_else() -> None:
    options = TranslationOptions(objective="bayes", weight={"nmt": 2.0, "back": 1.0}, context=5)
    changed = with_flags(options, {"weight": "back=0.25", "nbest": 7})
    assert (changed.nbest, changed.context) == (7, 5)
    assert changed.weight == {"nmt": 2.0, "back": 0.25}
    # The weights of another objective are its own.
    assert with_flags(options, {"objective": "c-score"}).weight == {}
    with pytest.raises(CadecError, match="no option colour"):
        with_flags(options, {"colour": "red"})


def test_a_formality_lowers_the_temperature_of_the_beam_unless_one_is_given() -> None:
    options = TranslationOptions(temperature=4.0)
    assert with_flags(options, {"formality": "formal"}).temperature == 4.0  # lists need no such help
    beam = dataclasses.replace(options, search="beam")
    assert with_flags(beam, {"formality": "formal"}).temperature == FORMALITY_TEMPERATURE
    assert with_flags(beam, {"formality": "formal", "temperature": 8.0}).temperature == 8.0
    assert with_flags(dataclasses.replace(beam, temperature=0.5), {"formality": "formal"}).temperature == 0.5
    assert with_flags(beam, {"formality": "auto"}).temperature == 4.0


@pytest.mark.parametrize(
    ("search", "size", "rolling", "reads"),
    [
        ("rerank", 20, True, True),
        ("lattice", 20, True, True),
        ("beam", 4, False, True),
        ("sentence", 4, True, False),
    ],
)
def test_what_a_search_makes_of_the_options(search: str, size: int, rolling: bool, reads: bool) -> None:
    options = TranslationOptions(search=search, rolling=True, context=2)
    assert options.list_size == size
    assert (options.policy.sentences, options.policy.rolling) == (2, rolling)
    assert options.reads_context == options.weighted_objective.uses_lm == reads
    assert options.scoring_options == ScoringOptions((options.temperature,), options.alpha)


@pytest.mark.parametrize(
    ("given_options", "problem"),
    [
        ({"search": "guess"}, "search"),
        ({"temperature": 0.0}, "temperature"),
        ({"context": -1}, "context"),
        ({"nbest": 0}, "nbest"),
        ({"weight": {"lm": -1.0}}, "weight must be from 0"),
        ({"weight": {"length": 1.0}}, "c-score has no weight length"),
        ({"alpha": -1.0}, "alpha"),
        ({"search": "beam", "objective": "pmi"}, "does not look at the source"),
        ({"search": "beam", "objective": "bayes"}, "scores whole sentences"),
        ({"search": "doc-nmt", "formality": "formal"}, "has neither"),
        ({"search": "beam", "cast": "cast.tsv"}, "can't follow a cast"),
        ({"search": "sentence", "about": "about.txt"}, "reads none"),
    ],
)
def test_impossible_options_are_refused(given_options: dict[str, object], problem: str) -> None:
    with pytest.raises(CadecError, match=problem):
        TranslationOptions(**given_options)  # type: ignore[arg-type]


def test_probabilities_are_read_at_temperatures_above_0() -> None:
    for temperatures in ((), (0.0,), (1.0, -1.0), (float("inf"),), (float("nan"),)):
        with pytest.raises(UsageError, match="temperature"):
            ScoringOptions(temperatures)
    for alpha in (-0.1, float("inf"), float("nan")):
        with pytest.raises(UsageError, match="alpha"):
            ScoringOptions(alpha=alpha)


def test_earlier_bundles_have_a_number_beside_objectives_without_weights() -> None:
    assert DecodingDefaults(objective="pmi", weight=0.5).weight == {}  # type: ignore[arg-type]
