"""Forms of a word, by their letters."""

import pytest

from cadec_cli.text.word_forms import WORD, are_forms, common_beginning


@pytest.mark.parametrize(
    ("one", "other", "forms"),
    [
        ("лампа", "лампу", True),
        ("маг", "магом", True),
        ("маг", "магазин", False),
        ("я", "я", True),
        ("я", "яд", False),
        ("дорога", "дорогой", True),
        ("finding", "findings", True),
        ("lamp", "limp", False),
    ],
)
def test_forms_differ_in_their_last_letters(one: str, other: str, forms: bool) -> None:
    assert are_forms(one, other) == are_forms(other, one) == forms


def test_a_limit_for_the_letters_that_differ() -> None:
    assert are_forms("consistent", "consistently") and are_forms("consistency", "consistent")
    assert are_forms("конституция", "конституционный")
    assert not are_forms("конституция", "конституционный", 3)


def test_letters_keep_their_marks() -> None:
    assert [match[0] for match in WORD.finditer("cafe\u0301 o'clock snake_case R2D2")] == [
        *("cafe\u0301", "o", "clock", "snake", "case", "R2D2")
    ]
    assert common_beginning("ломать", "ломка") == 3
