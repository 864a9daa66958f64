"""Sizes of networks and options of training: types and bounds, named where something is out of them."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from cadec_cli.errors import CadecError
from cadec_cli.models.configs import CONFIGURATIONS, DocTransformerConfig, DocumentLMConfig, TransformerConfig
from cadec_cli.models.pretrained_settings import (
    LANGUAGE_SETTINGS,
    TRANSLATION_SETTINGS,
    LanguageSettings,
    TextSettings,
    TranslationSettings,
    read_language_settings,
    read_translation_settings,
    write_settings,
)
from cadec_cli.training.presets import TrainingOptions, load_preset
from cadec_cli.validation import (
    Bound,
    Number,
    OneOf,
    Truth,
    Whole,
    misfits,
    quote_value,
    showable,
    text_misfit,
)

NONE_OF_THEM = [10**18, 10**5000, -1, True, 2.0, "2", None, float("nan"), float("inf"), [2]]
REQUIRED = {
    DocumentLMConfig: ("vocabulary",),
    TransformerConfig: ("source_vocabulary", "target_vocabulary"),
    DocTransformerConfig: ("source_vocabulary", "target_vocabulary"),
}


@pytest.mark.parametrize("kind", CONFIGURATIONS)
def test_every_size_has_a_type_and_bounds(kind: str) -> None:
    config: Any = CONFIGURATIONS[kind]
    required = dict.fromkeys(REQUIRED[config], 40)
    good = config(**required)
    for name, value in vars(good).items():
        for wrong in NONE_OF_THEM:
            if type(value) is bool and wrong is True:
                continue
            with pytest.raises(CadecError, match=name):
                config(**{**required, name: wrong})
    assert config(**vars(good)) == good


def test_every_option_of_training_has_a_type_and_bounds() -> None:
    options: Any = TrainingOptions
    for name, value in vars(options()).items():
        if name == "device":  # which names are devices, torch knows
            continue
        for wrong in (10**18, 10**5000, -1, None, float("nan"), float("inf"), [2], "2"):
            if name == "seed" and wrong == 10**18:
                continue
            with pytest.raises(CadecError, match=f"{name} must be"):
                options(**{name: wrong})
        if type(value) is not bool:
            with pytest.raises(CadecError, match=f"{name} must be"):
                options(**{name: True})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[training]\nseed = " + "9" * 5000, "is not valid TOML"),
        ("\xff", ": line 1 is not utf-8"),
        ("[model]\nlayers = nan]", "is not valid TOML"),
    ],
)
def test_a_preset_that_is_none_is_one_error(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(CadecError, match=rf"mine\.toml ?{told}"):
        load_preset("lm", str(path))


def test_bounds_are_told() -> None:
    bounds: dict[str, Bound] = {
        "a": Whole(1, 9),
        "b": Number(0, 1, below=True),
        "c": Truth(),
        "d": OneOf(("x", "y")),
    }
    assert misfits({"a": 9, "b": 0, "c": False, "d": "y"}, bounds) == []
    assert misfits({"a": 10, "b": 1, "c": 1, "d": "\x1b"}, bounds) == [
        "a must be a whole number from 1 to 9, not 10",
        "b must be a number from 0 to below 1, not 1",
        "c must be true or false, not 1",
        "d must be one of x, y, not '\\x1b'",
    ]
    assert not Number(0, 1, above=True).allows(0)
    assert quote_value(10**5000) == "a number of 5,001 digits" and len(quote_value("x" * 999)) < 80


def test_what_can_be_shown_in_a_line() -> None:
    for text in ("en-ru", "Русский", "\u06a9\u062a\u0627\u0628\u200c\u0647\u0627", "👩\u200d💻", ""):
        assert text_misfit(text, 30) is None and showable(text, 30) == text
    for text in ("a\nb", "\x1b[31m", "\x9b31m", "\u202ea", "a\u2028b", "\ud800", "\x7f", "\ufeffa"):
        assert text_misfit(text, 30) is not None
        assert text_misfit(showable(text, 30), 30) is None
    assert text_misfit("x" * 31, 30) is not None and text_misfit(3, 30) is not None


COMMON: dict[str, Any] = {
    "family": "gpt2",
    "origin": "gpt2",
    "licence": None,
    "weights": "0",
    "positions": 64,
}
SIDE = TextSettings(kind="sentencepiece", files=("a.spm",))


@pytest.mark.parametrize(
    "change",
    [
        *({"positions": wrong} for wrong in (10**18, -1, 1, True, 64.0, "64", None)),
        *(
            {name: wrong}
            for name in ("family", "origin", "licence", "verified")
            for wrong in ("\x1b", 3, "\n")
        ),
    ],
)
def test_settings_of_pretrained_models_have_bounds(change: dict[str, Any], tmp_path: Path) -> None:
    language = LanguageSettings(**COMMON, boundary="\n", start=None)
    translation = TranslationSettings(**COMMON, source=SIDE, target=SIDE)
    write_settings(tmp_path / LANGUAGE_SETTINGS, language)
    write_settings(tmp_path / TRANSLATION_SETTINGS, translation)
    assert read_language_settings(tmp_path) == language
    assert read_translation_settings(tmp_path) == translation
    for name in (LANGUAGE_SETTINGS, TRANSLATION_SETTINGS):
        stored = json.loads((tmp_path / name).read_text())
        (tmp_path / name).write_text(json.dumps({**stored, **change}))
    with pytest.raises(CadecError, match=LANGUAGE_SETTINGS):
        read_language_settings(tmp_path)
    with pytest.raises(CadecError, match=TRANSLATION_SETTINGS):
        read_translation_settings(tmp_path)


def test_a_template_for_pairs_is_stored_if_there_is_one(tmp_path: Path) -> None:
    plain = LanguageSettings(**COMMON, boundary="\n", start=None)
    write_settings(tmp_path / LANGUAGE_SETTINGS, plain)
    assert "template" not in (tmp_path / LANGUAGE_SETTINGS).read_text() and "pairs" not in plain.details()
    of_pairs = dataclasses.replace(plain, template="English: {source}\nFrench:\n{target}\n")
    write_settings(tmp_path / LANGUAGE_SETTINGS, of_pairs)
    assert read_language_settings(tmp_path) == of_pairs and "French" in of_pairs.details()["pairs"]


@pytest.mark.parametrize(
    "template",
    [
        *(
            "",
            7,
            "{source}\n",
            "{target}\n{source}\n",
            "{source} {target}\n",
            "{source}\n{target} {target}\n",
        ),
        *("{source}{source}\n{target}\n", "{target}\n{source}\n{target}\n"),
        "{source}\n{target}\n" + "x" * 3000,
    ],
)
def test_a_template_has_each_side_once_and_the_target_last(template: Any, tmp_path: Path) -> None:
    write_settings(tmp_path / LANGUAGE_SETTINGS, LanguageSettings(**COMMON, boundary="\n", start=None))
    stored = json.loads((tmp_path / LANGUAGE_SETTINGS).read_text())
    (tmp_path / LANGUAGE_SETTINGS).write_text(json.dumps({**stored, "template": template}))
    with pytest.raises(CadecError, match=LANGUAGE_SETTINGS):
        read_language_settings(tmp_path)


@pytest.mark.parametrize("name", ["../a.spm", "/etc/passwd", "a/b", "..", ""])
def test_tokenizers_are_beside_their_settings(name: str) -> None:
    with pytest.raises(CadecError, match="is not a file name"):
        TranslationSettings(**COMMON, source=SIDE, target=TextSettings(kind="sentencepiece", files=(name,)))


@pytest.mark.parametrize("language", ["/../../pwned", "<2/../../pwned>", "..", "ru\\x", "", "r\nu"])
def test_a_model_s_languages_are_no_paths(language: str) -> None:
    given = ("<2ru>", language)
    with pytest.raises(CadecError, match="is not a language"):
        TranslationSettings(**COMMON, source=SIDE, target=SIDE, source_languages=given)
    with pytest.raises(CadecError, match="is not a language"):
        TranslationSettings(**COMMON, source=SIDE, target=SIDE, target_languages=given)
    with pytest.raises(CadecError, match="is not a language"):
        LanguageSettings(**COMMON, boundary="\n", start=None, no_context={language: ()})
