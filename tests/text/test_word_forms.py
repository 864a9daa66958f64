"""Forms of a word, by their letters."""

import pytest

from cadec_cli.text.word_forms import WORD, are_forms, are_name_forms, common_beginning


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


@pytest.mark.parametrize(
    ("language", "one", "other", "same"),
    [
        ("ru", "аурелия", "аурелией", True),
        ("ru", "тобиас", "тобиасом", True),
        ("ru", "павел", "павла", True),
        ("ru", "ян", "яна", True),
        ("ru", "том", "тоби", False),
        ("ru", "марь", "марью", True),
        ("ru", "аурелия", "аурелиа", False),
        ("ru", "тобис", "тоби", False),
        ("ru", "харгрейв", "харгрив", False),
        ("fr", "aurélie", "aurélia", False),
        ("fr", "marian", "marianne", False),
        ("de", "tobias", "tobias", True),
        ("de", "hargreave", "hargreaves", True),
        ("de", "marian", "mariane", False),
        ("fi", "tobias", "tobiasta", True),
        ("cs", "aurelie", "aurelií", True),
        ("cs", "aurelie", "aurora", False),
    ],
)
def test_forms_of_names(language: str, one: str, other: str, *, same: bool) -> None:
    assert are_name_forms(one, other, language) == are_name_forms(other, one, language) == same
