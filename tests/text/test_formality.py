"""Sentences that tell how people are addressed: a table that is whole, and files of the same form."""

import json
from pathlib import Path

import pytest

from cadec_cli.errors import CadecError, UsageError
from cadec_cli.text.formality import REGISTERS, read_seeds, seed_sentences
from cadec_cli.text.languages import is_language, iso_code

OURS = Path(__file__).parents[2] / "cadec_cli" / "text" / "formality.json"


def test_every_language_has_a_few_sentences_of_either_register() -> None:
    table = read_seeds(OURS)
    assert {"ru", "uk", "de", "fr", "es", "it", "pl", "pt", "nl", "cs"} <= set(table)
    for language, registers in table.items():
        assert is_language(language) and iso_code(language) == language
        for register in REGISTERS:
            assert seed_sentences(register, language) == registers[register]
            assert 2 <= len(registers[register]) <= 4
            assert all(text == text.strip() and text[-1] in ".?!" for text in registers[register])
        assert not set(registers["formal"]) & set(registers["informal"])


def test_a_language_that_nobody_wrote_sentences_for_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="'zu'") as raised:
        seed_sentences("formal", "zu")
    assert "cs, de, es, fr" in raised.value.hint


def test_a_file_adds_languages_and_replaces_sentences(tmp_path: Path) -> None:
    own = {"ru": {"formal": ["Вы?"], "informal": ["Ты?"]}, "zu": {"formal": ["A."], "informal": ["B."]}}
    path = tmp_path / "formality.json"
    path.write_text(json.dumps(own))
    assert seed_sentences("formal", "ru", path) == ("Вы?",)
    assert seed_sentences("informal", "zu", path) == ("B.",)
    assert seed_sentences("informal", "de", path) == seed_sentences("informal", "de")


@pytest.mark.parametrize(
    "data",
    [
        [],
        {"ru": []},
        {"ru": {"formal": ["x"]}},
        {"ru": {"formal": ["x"], "informal": []}},
        {"ru": {"formal": "x", "informal": ["y"]}},
        {"ru": {"formal": [1], "informal": ["y"]}},
        {"ru": {"formal": ["x"] * 101, "informal": ["y"]}},
        {"ru": {"formal": ["x" * 1001], "informal": ["y"]}},
    ],
)
def test_what_is_no_table_is_one_clear_error(tmp_path: Path, data: object) -> None:
    path = tmp_path / "formality.json"
    path.write_text(json.dumps(data))
    with pytest.raises(CadecError, match="not a table of seed sentences"):
        seed_sentences("formal", "ru", path)
