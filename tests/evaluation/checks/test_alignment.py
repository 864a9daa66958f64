"""Texts of different lengths are brought together; names are alike however they are spelt."""

import pytest

from cadec_cli.evaluation.checks.alignment import Likeness, align, name_key

SOURCE = [
    "Where is Delfador?",
    "He went to Weldyn with 30 men.",
    "I do not believe it!",
    "The road is long, and winter comes early in the hills this year.",
    "Who told you that, Kalenz?",
    "Nobody.",
]
TARGET = [
    "Где Дельфадор?",
    "Он ушёл в Велдин с 30 людьми.",
    "Я в это не верю!",
    "Дорога длинна, а зима в этом году в горах начинается рано.",
    "Кто тебе это сказал, Каленз?",
    "Никто.",
]


@pytest.mark.parametrize(
    ("one", "other"),
    [("Delfador", "Дельфадора"), ("Kalenz", "Каленз"), ("Weldyn", "Вельдина"), ("Chantal", "Шанталь")],
)
def test_names_are_alike_in_other_letters(one: str, other: str) -> None:
    assert name_key(one) == name_key(other) != ""


def test_short_words_have_no_key() -> None:
    assert name_key("Ann") == name_key("") == name_key("аеи") == ""


def test_lines_that_belong_together_are_more_alike() -> None:
    likeness = Likeness(SOURCE, TARGET)
    for line in range(len(SOURCE)):
        scores = [likeness.score(line, other) for other in range(len(TARGET))]
        assert max(range(len(TARGET)), key=scores.__getitem__) == line


@pytest.mark.parametrize("line", range(len(SOURCE)))
def test_a_line_that_is_missing_is_named(line: int) -> None:
    steps = align(SOURCE, TARGET[:line] + TARGET[line + 1 :])
    assert (range(line, line + 1), range(line, line)) in steps
    assert sum(len(rows) == len(columns) == 1 for rows, columns in steps) == len(SOURCE) - 1


def test_two_lines_that_became_one() -> None:
    joined = [*TARGET[:2], f"{TARGET[2]} {TARGET[3]}", *TARGET[4:]]
    assert (range(2, 4), range(2, 3)) in align(SOURCE, joined)
    assert (range(2, 3), range(2, 4)) in align(joined, SOURCE)


def test_every_line_is_in_one_step() -> None:
    for targets in (TARGET, TARGET[2:], [*TARGET, "Конец."], TARGET[:1]):
        steps = align(SOURCE, targets)
        assert [line for rows, _ in steps for line in rows] == list(range(len(SOURCE)))
        assert [line for _, columns in steps for line in columns] == list(range(len(targets)))
