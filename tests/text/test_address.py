"""Addresses are known where forms leave no doubt."""

import json
from importlib import resources

import pytest

from cadec_cli.text.address import ADDRESS_LANGUAGES, address


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("T'as de l'argent ?", "fr", "T"),
        ("Votre clé, madame.", "fr", "V"),
        ("Vous et ton père.", "fr", None),
        ("Il pleut.", "fr", None),
        ("Haben Sie Zeit?", "de", "V"),
        ("Sie hat Zeit.", "de", None),  # she
        ("Er sagt: Sie hat Zeit.", "de", None),
        ("Ich sehe sie.", "de", None),
        ("Hast du Zeit?", "de", "T"),
        ("È sua, signora, o di Lei?", "it", "V"),
        ("Вас зовут?", "ru", "V"),
        ("Где твоя мама?", "ru", "T"),
        ("¿Usted lo sabe?", "es", "V"),
        ("Heeft u dat?", "nl", "V"),
        ("Widzę cię.", "pl", "T"),
        ("Você sabe.", "pt-BR", "V"),
        ("Tu sais.", "xx", None),
    ],
)
def test_forms_of_address(text: str, language: str, expected: str | None) -> None:
    assert address(text, language) == expected


def test_seeds_of_a_register_have_its_address() -> None:
    """Sentences that cadec itself uses to show how people are addressed."""
    seeds = json.loads(resources.files("cadec_cli.text").joinpath("formality.json").read_text("utf-8"))
    assert set(seeds) == set(ADDRESS_LANGUAGES)
    for language, of_language in seeds.items():
        for register, wanted in (("formal", "V"), ("informal", "T")):
            found = {address(sentence, language) for sentence in of_language[register]}
            assert found <= {wanted, None}, (language, register)
            # in these two the polite seeds have no form that means nothing else
            assert wanted in found or (language in ("it", "pt") and wanted == "V"), (language, register)
