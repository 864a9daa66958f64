"""`import cadec_cli` is all it takes, and nothing heavy before it is used."""

import subprocess
import sys
from pathlib import Path

import pytest

import cadec_cli
from cadec_cli.engines.protocols import ModelSet
from cadec_cli.errors import CadecError
from tests.helpers.fakes import TableLM, TableNMT

HEAVY = {"torch", "ctranslate2", "numpy", "sacremoses", "sentencepiece"}


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[1],
    )
    return done.stdout.strip()


def test_a_bundle_becomes_a_translator_that_streams(made_up_bundle: Path) -> None:
    translator = cadec_cli.load(str(made_up_bundle), options={"nbest": 5}, compute_type="float32")
    assert isinstance(translator, cadec_cli.Translator)
    assert translator.options == cadec_cli.TranslationOptions(nbest=5)
    found = translator.translate(["good day sir.", "you see the lamp."])
    first = next(found)
    assert isinstance(first, cadec_cli.Translation)
    assert (first.source, first.text) == ("good day sir.", "Bondia senor.")
    assert [translation.text for translation in found] == ["Vos videz la lampo."]


def test_a_string_is_no_document() -> None:
    translator = cadec_cli.Translator(ModelSet(TableNMT({}), TableLM({})))
    with pytest.raises(TypeError, match=r"translate\(\['Who are you\?'\]\)"):
        translator.translate("Who are you?")
    for documents in ("Who are you?", ["Who are you?"], [["Who are you?"], "I saw you."]):
        with pytest.raises(TypeError, match="each a sequence of sentences"):
            translator.translate_documents(documents)


def test_options_are_the_bundles_but_for_what_is_said(made_up_bundle: Path) -> None:
    options = cadec_cli.TranslationOptions(search="sentence", beam=2)
    assert cadec_cli.load(made_up_bundle, options=options).options is options
    weighted = cadec_cli.load(made_up_bundle, options={"weight": "lm=0.5"})
    assert weighted.options.weight == {"lm": 0.5}
    with pytest.raises(CadecError, match="no option temprature"):
        cadec_cli.load(made_up_bundle, options={"temprature": 2})
    with pytest.raises(CadecError, match="invalid decoding options"):
        cadec_cli.load(made_up_bundle, options={"temperature": -2})
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = cadec_cli.nothing


def test_importing_it_imports_nothing_heavy() -> None:
    assert not HEAVY & set(run("import sys, cadec_cli; print(*sys.modules)").split())


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({}, "PASSIVE 10000"),
        ({"GOMP_SPINCOUNT": "7"}, "PASSIVE 7"),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE None"),
    ],
)
def test_waiting_threads_sleep_unless_the_user_says_otherwise(given: dict[str, str], kept: str) -> None:
    names = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    code = (
        f"import os; [os.environ.pop(name, None) for name in {names}]; os.environ.update({given})\n"
        f"import cadec_cli; print(*(os.environ.get(name) for name in {names}))"
    )
    assert run(code) == kept
