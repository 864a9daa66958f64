"""Presets are files, flags win over them, and what is misspelt is refused."""

import itertools
from pathlib import Path

import pytest

from cadec_cli.errors import CadecError
from cadec_cli.main import exit_code
from cadec_cli.models.configs import DocumentLMConfig, TransformerConfig
from cadec_cli.training.kinds import KINDS, Kind
from cadec_cli.training.loop import learning_rate
from cadec_cli.training.presets import (
    SCHEDULES,
    TrainingOptions,
    check_known,
    choices,
    choosable,
    choose,
    load_preset,
    preset_names,
)


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
@pytest.mark.parametrize("name", ["tiny", "small", "paper"])
def test_every_preset_holds_only_known_keys(kind: Kind, name: str) -> None:
    assert name in preset_names(kind.preset_family)
    tables = load_preset(kind.preset_family, name)
    check_known(tables["model"], (kind.config,), name)
    check_known(tables["training"], (TrainingOptions, kind.data_options), name)
    choose(TrainingOptions, tables["training"])
    choices(kind.config, tables["model"])


def test_presets_of_one_family_are_not_anothers() -> None:
    assert preset_names("lm") == preset_names("nmt") == ["paper", "small", "tiny"]
    assert preset_names("mt") == preset_names("m") == []  # though "nmt-tiny.toml" has an "mt" in it


def test_the_papers_sizes_are_the_papers() -> None:
    lm = DocumentLMConfig(vocabulary=16_000, **choices(DocumentLMConfig, load_preset("lm", "paper")["model"]))
    assert (lm.layers, lm.width, lm.heads, lm.inner, lm.positions) == (12, 768, 12, 3072, 512)
    sizes = choices(TransformerConfig, load_preset("nmt", "paper")["model"])
    nmt = TransformerConfig(source_vocabulary=16_000, target_vocabulary=16_000, **sizes)
    assert (nmt.encoder_layers, nmt.decoder_layers, nmt.width, nmt.heads, nmt.inner) == (6, 6, 512, 8, 2048)
    assert choose(TrainingOptions, load_preset("lm", "paper")["training"]).update_tokens == 32_000


def test_later_layers_win_and_none_is_not_given() -> None:
    options = choose(TrainingOptions, {"warmup": 5, "clip": 2}, {"warmup": 7, "clip": None})
    assert options.warmup == 7 and options.clip == 2.0


def test_a_misspelt_key_and_a_wrong_type_are_refused() -> None:
    with pytest.raises(CadecError, match="warm_up"):
        check_known({"warm_up": 5}, (TrainingOptions,), "my.toml")
    with pytest.raises(CadecError, match="warmup must be of type int"):
        choose(TrainingOptions, {"warmup": "long"})


def test_a_preset_of_ones_own(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text("[model]\nlayers = 3\n[training]\nwarmup = 9\n")
    assert load_preset("lm", str(own)) == {"model": {"layers": 3}, "training": {"warmup": 9}}
    own.write_text("[modell]\nlayers = 3\n")
    with pytest.raises(CadecError, match="modell"):
        load_preset("lm", str(own))
    own.write_text("layers = ")
    with pytest.raises(CadecError, match="not valid TOML"):
        load_preset("lm", str(own))


@pytest.mark.parametrize(
    "content",
    [b"\xd0[model]", b"[model]\nlayers = " + b"7" * 5000, b"a = " + b"[" * 5000, b"[" * 5000],
    ids=["not UTF-8", "5000 digits", "lists in lists", "tables in tables"],
)
def test_a_preset_that_is_no_toml_is_one_clear_error(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_bytes(content)
    with pytest.raises(CadecError, match=r"not valid TOML|not utf-8|nested deeper"):
        load_preset("lm", str(tmp_path / "mine.toml"))


def test_every_option_is_a_flag(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for kind in KINDS.values():
        exit_code(["train", kind.name, "--help"])
        text = capsys.readouterr().out
        for options in (TrainingOptions, kind.data_options, kind.config):
            for field in choosable(options):
                assert f"--{field.name.replace('_', '-')}" in text
        assert "-vocabulary" not in text  # its size is the data's to say


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_learning_rates_rise_to_the_peak_and_never_above(schedule: str) -> None:
    options = TrainingOptions(schedule=schedule, warmup=10, max_updates=100, learning_rate=2.0)
    rates = [learning_rate(options, update) for update in range(1, 101)]
    assert rates[:10] == pytest.approx([0.2 * update for update in range(1, 11)])
    assert all(before >= after for before, after in itertools.pairwise(rates[9:]))
    assert rates[-1] == pytest.approx({"inverse-sqrt": 2 * 0.1**0.5, "constant": 2.0}.get(schedule, 0.0))
