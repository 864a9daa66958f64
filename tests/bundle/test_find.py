"""Which bundle is used when none is named, and what a bundle may say about decoding."""

from pathlib import Path

import pytest

from cadec_cli.bundle import find as bundle_module
from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.find import find_bundle
from cadec_cli.errors import CadecError
from cadec_cli.method.objectives import objective
from cadec_cli.method.options import DecodingDefaults, TranslationOptions, named_weights, with_flags


def test_which_bundle_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CADEC_BUNDLE", str(tmp_path / "named"))
    assert find_bundle(tmp_path / "given") == tmp_path / "given"
    assert find_bundle() == tmp_path / "named"
    monkeypatch.delenv("CADEC_BUNDLE")
    monkeypatch.setattr(bundle_module, "EMBEDDED", tmp_path / "embedded")
    with pytest.raises(CadecError, match="no bundle") as caught:
        find_bundle()
    assert "cadec convert" in caught.value.hint
    (tmp_path / "embedded").mkdir()
    (tmp_path / "embedded" / "bundle.json").write_text("{}")
    assert find_bundle() == tmp_path / "embedded"


def test_a_directory_that_is_no_bundle(tmp_path: Path) -> None:
    for directory in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(CadecError, match="is not a bundle") as caught:
            Bundle.open(directory)
        assert "cadec convert" in caught.value.hint


def test_defaults_are_checked_when_made() -> None:
    with pytest.raises(CadecError) as caught:
        DecodingDefaults(
            search="hope", objective="bleu", weight={"lm": -1}, context=-1, temperature=0, nbest=0
        )
    for name in ("search", "objective", "weight", "context", "temperature", "nbest"):
        assert f"{name} must be" in caught.value.message
    for wrong in (
        {"weight": {"lm": float("nan")}},
        {"temperature": float("inf")},
        {"beam": 1.5},
        {"beam": True},
    ):
        with pytest.raises(CadecError):
            DecodingDefaults(**wrong)


def test_a_bare_weight_is_the_d_lms_and_unknown_ones_are_refused() -> None:
    assert named_weights("0.5") == named_weights(0.5) == named_weights("lm=0.5") == {"lm": 0.5}
    assert named_weights("lm=1,back=0.5") == {"lm": 1.0, "back": 0.5}
    assert named_weights(None) == {}
    with pytest.raises(CadecError, match="c-score has no weight back"):
        DecodingDefaults(weight={"back": 1.0})
    with pytest.raises(CadecError, match="pmi has no weight lm"):
        DecodingDefaults(objective="pmi", weight={"lm": 1.0})
    with pytest.raises(CadecError, match="weight must be from 0 to 1000, not lm=nan"):
        objective("c-score", {"lm": float("nan")})
    with pytest.raises(CadecError, match="'much' is not a weight"):
        named_weights("much")


def test_weights_belong_to_their_objective() -> None:
    """Tuned for one objective, a bundle's weights say nothing about another."""
    tuned = TranslationOptions(objective="shallow-fusion", weight={"lm": 0.3})
    assert with_flags(tuned, {"nbest": 4}).weight == {"lm": 0.3}
    assert with_flags(tuned, {"objective": "c-score"}).weighted_objective.weights == {"lm": 1.0}
    assert with_flags(tuned, {"objective": "c-score", "weight": "2"}).weight == {"lm": 2.0}
    assert with_flags(tuned, {"objective": "pmi"}).weighted_objective.weights == {}
    with pytest.raises(CadecError, match="no option temprature"):
        with_flags(tuned, {"temprature": 2})


def test_an_earlier_bundles_number_beside_an_objective_without_weights_is_passed_over() -> None:
    earlier = {"objective": "pmi", "weight": 1.0}
    assert DecodingDefaults(**earlier).weight == {}  # type: ignore[arg-type]  # as JSON has it
