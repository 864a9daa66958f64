"""The checks on small texts: a right one gives no finding, and each mistake is found at its line."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.errors import UsageError
from cadec_cli.evaluation.checks.findings import ERROR, CheckedText, CheckResults, Pair
from cadec_cli.evaluation.checks.table import CHECKS, NAMES, PMI, choose_checks, run_checks
from cadec_cli.terminal.flags import CHECK_NAMES, SEVERITY_LEVELS

# A small story whose translation is right.
STORY = [
    ("Good evening, Amelia.", "Добрый вечер, Амелия."),
    ("In 1999 I left Berlin with 25 books.", "В 1999 году я уехал из Берлина с 25 книгами."),
    ("Do you see the light over there?", "Видишь ли ты там свет?"),
    ("It is at https://a.example/x, they say.", "Говорят, он на https://a.example/x, вон там."),
    ("We met Amelia again in the garden.", "Мы снова встретили Амелию в саду."),
    ("She looks <b>tired</b>, and the wind is cold.", "Она выглядит <b>уставшей</b>, и ветер холодный."),
    ("Hello, {name}! Come in and sit down.", "Здравствуй, {name}! Входи и садись."),
    ("Nobody answered the door for a long time.", "Долгое время никто не открывал дверь."),
    ("Then the old captain began to laugh.", "Потом старый капитан начал смеяться."),
    ("Are you alone, Amelia?", "Ты одна, Амелия?"),
    ("Yes, and I will wait here until morning.", "Да, и я буду ждать здесь до утра."),
    ("The ship leaves at 10:45, so hurry up!", "Корабль уходит в 10:45, так что поторопись!"),
]


def text_of(
    pairs: list[tuple[str, str]], source: str = "en", target: str = "ru", documents: int = 1
) -> CheckedText:
    lines = [(one, number) for number in range(1, documents + 1) for one in pairs]
    return CheckedText(
        "story",
        tuple(
            Pair(*both, document, f"line {line}", f"line {line}")
            for line, (both, document) in enumerate(lines, 1)
        ),
        source,
        target,
    )


def check(text: CheckedText, *names: str) -> CheckResults:
    return run_checks(text, names or tuple(CHECKS))


def found(results: CheckResults) -> list[tuple[str, str]]:
    return [(one.check, one.pair.target_place if one.pair else "") for one in results.findings]


def changed(number: int, target: str) -> CheckedText:
    """The story with another translation of a line, from 1."""
    pairs = list(STORY)
    pairs[number - 1] = (pairs[number - 1][0], target)
    return text_of(pairs)


def test_a_right_translation_gives_no_finding() -> None:
    results = check(text_of(STORY, documents=3))
    assert found(results) == []
    assert results.checks == tuple(CHECKS) and not results.skipped


MISTAKES = {
    "a digit": (2, "В 1998 году я уехал из Берлина с 25 книгами.", "numbers"),
    "a number that is missing": (2, "В 1999 году я уехал из Берлина с книгами.", "numbers"),
    "a time": (12, "Корабль уходит в 10:54, так что поторопись!", "numbers"),
    "a URL": (4, "Говорят, он на https://a.example/y, вон там.", "copied"),
    "a placeholder": (7, "Здравствуй, {имя}! Входи и садись.", "copied"),
    "a tag": (6, "Она выглядит <b>уставшей, и ветер холодный.", "tags"),
    "a pair of tags": (6, "Она выглядит уставшей, и ветер холодный.", "tags"),
    "no translation": (8, "", "empty"),
    "no words": (8, "…", "empty"),
    "a line as it was": (9, "Then the old captain began to laugh.", "untranslated"),
    "words as they were": (9, "Потом старый captain began to смеяться.", "untranslated"),
    "another language": (9, "Puis le vieux capitaine se mit à rire dans la nuit.", "language"),
    "a neighbour of it": (9, "Потім вони сказали, що не знають її, і він був радий.", "language"),
    "the line before": (9, "Долгое время никто не открывал дверь.", "repeated"),
    "a line that breaks off": (11, "Да, и я буду", "length"),
    "a loop": (11, "Да, и я буду ждать, ждать, ждать, ждать, ждать, ждать здесь до утра.", "damage"),
    "a character that is no text": (11, "Да, и я буду ждать здесь до утра\ufffd.", "damage"),
    "a bracket": (11, "Да, и я буду ждать здесь (до утра.", "damage"),
    "a name": (10, "Ты одна, Аммелия?", "names"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_is_found_where_it_is(mistake: str) -> None:
    number, target, name = MISTAKES[mistake]
    assert (name, f"line {number}") in found(check(changed(number, target)))
    assert {place for _, place in found(check(changed(number, target)))} == {f"line {number}"}


def test_a_source_that_is_not_there() -> None:
    assert found(check(text_of([*STORY, ("", "Лишняя строка.")]))) == [("empty", "line 13")]


@given(st.permutations(STORY), st.integers(1, 2))
def test_a_text_that_is_its_own_translation(pairs: list[tuple[str, str]], documents: int) -> None:
    """Each line with words of the language is found, and nothing else is said of it."""
    same = text_of([(source, source) for source, _ in pairs], documents=documents)
    results = check(same)
    assert {one.check for one in results.findings} == {"untranslated"}
    assert len(results.findings) == len(same.pairs)
    errors = [one for one in results.findings if one.severity == ERROR]
    assert 2 * len(errors) > len(results.findings)  # others have no common word of English


@given(
    st.lists(st.tuples(st.text(max_size=40), st.text(max_size=40)), max_size=8),
    st.sampled_from(["", "ru", "ja"]),
)
def test_any_text_can_be_checked(pairs: list[tuple[str, str]], language: str) -> None:
    for finding in check(text_of(pairs, language, language)).findings:
        assert finding.check in CHECKS and finding.message


RIGHT: dict[str, Callable[[], CheckedText]] = {
    "numbers in other notations": lambda: text_of(
        [
            ("It costs 1,000 dollars.", "Это стоит 1000 долларов."),
            ("It is 1.5 metres long.", "Длина 1,5 метра."),
            ("Come at 5 p.m. on 12/31/2024.", "Приходите в 17 часов 31.12.2024."),
            ("In the 1990s there were 4 of us.", "В 90-х нас было 4."),
            ("Chapter 4 of the 19th century.", "Глава IV, XIX век."),
            ("They paid 10,000 for it.", "За это заплатили 10 тысяч."),
        ]
    ),
    "names that stay": lambda: text_of(
        [
            ("Where is Sean Connery?", "Где Sean Connery?"),
            ("OK.", "OK."),
            ("Netflix", "Netflix"),
            ("1984", "1984"),
        ]
    ),
    "words that both languages have": lambda: text_of(
        [("No.", "No."), ("Hotel Royal", "Hotel Royal"), ("Radio, television.", "Radio, television.")],
        "en",
        "es",
    ),
    "a quotation in a third language": lambda: text_of(
        [("<i>Quid pro quo</i>, my friend.", "<i>Quid pro quo</i>, мой друг."), *STORY]
    ),
    "a refrain": lambda: text_of([("Never again will we go there!", "Мы туда больше не пойдём!")] * 3),
    "sources that say the same": lambda: text_of(
        [
            ("I do not know that man.", "Я не знаю этого человека."),
            ("I don't know this man.", "Я не знаю этого человека."),
        ]
    ),
    "several people": lambda: text_of([("You and your men, wait. You too.", "Вы и твои люди, подождите.")]),
}


@pytest.mark.parametrize("what", RIGHT)
def test_what_may_differ_is_not_reported(what: str) -> None:
    assert [one for one in check(RIGHT[what]()).findings if one.severity == ERROR] == []


def long_story(count: int = 40) -> list[tuple[str, str]]:
    """Lines of many lengths, with numbers and questions, as a text has them."""
    rng = random.Random(7)
    ends = [(".", "."), ("?", "?"), ("!", "!")]
    lines = []
    for number in range(count):
        middle = rng.randrange(1, 9)
        end, other = ends[number % 3]
        extra = (f" {number + 30} times", f" {number + 30} раз") if number % 4 == 0 else ("", "")
        lines.append(
            (f"We go on{' and on' * middle}{extra[0]}{end}", f"Мы идём{' и идём' * middle}{extra[1]}{other}")
        )
    return lines


def test_translations_one_line_late() -> None:
    pairs = long_story()
    targets = [target for _, target in pairs]
    late = [*targets[:10], targets[9], *targets[10:24], *targets[25:]]
    text = text_of([(source, target) for (source, _), target in zip(pairs, late, strict=True)])
    (finding,) = check(text, "aligned").findings
    assert finding.pair is not None and "one line after" in finding.message
    assert finding.pair.target_place in ("line 10", "line 11", "line 12")
    assert found(check(text_of(pairs), "aligned")) == []


def test_two_lines_that_are_swapped() -> None:
    pairs = long_story()
    targets = [target for _, target in pairs]
    targets[12], targets[13] = targets[13], targets[12]
    text = text_of([(source, target) for (source, _), target in zip(pairs, targets, strict=True)])
    assert found(check(text, "aligned")) == [("aligned", "line 13")]


def test_lines_that_are_misaligned_are_named_once() -> None:
    story = enumerate(long_story(), 100)
    pairs = [(f"{number}: {source}", f"{number}: {target}") for number, (source, target) in story]
    targets = [target for _, target in pairs]
    targets[12], targets[13] = targets[13], targets[12]
    text = text_of([(source, target) for (source, _), target in zip(pairs, targets, strict=True)])
    assert found(check(text)) == [("aligned", "line 13")]


def test_a_line_far_too_long() -> None:
    pairs = [
        (f"The {number} riders went over the hills.", f"Через холмы ехали всадники, {number}.")
        for number in range(30, 60)
    ]
    pairs[4] = (
        pairs[4][0],
        pairs[4][1] + " А потом они остановились, долго спорили о дороге и повернули к морю.",
    )
    assert found(check(text_of(pairs), "length")) == [("length", "line 5")]


def test_address_of_one_person() -> None:
    right = [("Are you ready?", "Sind Sie bereit? Haben Sie alles?")] * 9
    text = text_of([*right, ("Did you see it?", "Hast du das gesehen?")], "en", "de")
    (finding,) = check(text, "address").findings
    assert finding.pair is not None and finding.pair.target_place == "line 10"
    both = text_of([("You know that I like you.", "Du weißt, dass ich Sie mag.")], "en", "de")
    assert [one.message for one in check(both, "address").findings] == ["address is both familiar and polite"]


def test_languages_that_are_not_known_have_fewer_checks() -> None:
    results = check(replace(text_of(STORY), target_language="xx"))
    assert [name for name, _ in results.skipped] == ["language", "address"]
    assert all("xx" in reason for _, reason in results.skipped)
    assert found(results) == []
    unknown = check(replace(text_of(STORY), source_language="", target_language=""))
    assert [name for name, _ in unknown.skipped] == ["language", "address"]


def test_checks_are_chosen_by_name() -> None:
    assert choose_checks() == tuple(CHECKS)
    assert choose_checks(["tags", "empty"]) == ("empty", "tags")
    assert "tags" not in choose_checks((), ["tags"])
    assert choose_checks(pmi=True) == NAMES and choose_checks([PMI]) == (PMI,)
    for only, skip in (([], list(NAMES)), (["tags"], ["tags"]), (["spelling"], [])):
        with pytest.raises(UsageError):
            choose_checks(only, skip)


def test_the_command_knows_all_names() -> None:
    assert CHECK_NAMES == NAMES
    assert SEVERITY_LEVELS[:3] == tuple(
        dict.fromkeys(["error", *(one.severity for one in CHECKS.values()), "hint"])
    )
