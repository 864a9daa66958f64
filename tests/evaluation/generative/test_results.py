"""Figures count what they say: the same in all and by rule, and equal systems never differ."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cadec_cli.errors import CadecError
from cadec_cli.evaluation.generative.forms import Judging
from cadec_cli.evaluation.generative.results import (
    LEVEL,
    SetResults,
    Share,
    System,
    check_names,
    evaluate,
    other_systems,
    row_names,
    systems_of,
)
from cadec_cli.evaluation.generative.run import Hypotheses, Translated
from cadec_cli.evaluation.generative.sets import GenerativeSet, Item
from cadec_cli.method.options import TranslationOptions

TEXTS = ("Je te vois.", "Je vous vois.", "Je vois.", "Je t'ai vu.", "Votre clé, tu vois ?")
JUDGING = Judging("words", "fr")


def results(
    texts: list[tuple[str, str]],
    expected: list[str],
    other: list[str] | None = None,
    failures: int = 0,
    baseline: str = LEVEL,
) -> SetResults:
    """The sentence level and a row say the texts; the list of an item holds both."""
    items = tuple(
        Item(("Hello.", "I see you."), form, f"R{number % 2}", f"Je {form} vois.", str(number + 1))
        for number, form in enumerate(expected)
    )
    of_set = GenerativeSet(Path("set.jsonl"), "jsonl", items, tuple(range(len(items))), len(items))
    translated = [
        Translated(
            ("Salut.", first), (("Bonjour.", second),), Hypotheses((first, second), (-1.0, -2.0), (0, 1))
        )
        for first, second in texts
    ]
    systems = systems_of([TranslationOptions()], translated)
    if other is not None:
        systems.append(System("other", tuple(other)))
    return evaluate(of_set, JUDGING, translated, systems, (1, 2), baseline=baseline, failures=failures)


def test_what_is_counted() -> None:
    texts = [(TEXTS[0], TEXTS[0]), (TEXTS[1], TEXTS[0]), (TEXTS[2], TEXTS[1]), (TEXTS[3], TEXTS[4])]
    found = results(texts, ["te", "te", "vous", "te"], [TEXTS[1], "", TEXTS[1], TEXTS[0]])
    level, row = found.systems[:2]
    assert [one.system.name for one in found.systems] == [LEVEL, *row_names([TranslationOptions()]), "other"]
    assert row.system.name == "rerank: c-score × 1, T 1"
    assert [one.said.share.right for one in found.systems] == [2, 3, 2]
    assert [(one.size, one.said.share.right) for one in found.oracles] == [(1, 2), (2, 4)]
    assert {rule: one.share.right for rule, one in level.by_rule.items()} == {"R0": 1, "R1": 1}
    assert level.said.over_baseline is None and row.said.over_baseline is not None
    assert row.said.over_baseline.delta == 25.0
    assert row.said.over_baseline.p is None  # too few to test
    # T and T, V and T, nothing, T and T; then T, T, V, and both
    addresses = [one.address.share if one.address is not None else None for one in found.systems]
    assert [(share.right, share.items) if share is not None else None for share in addresses] == [
        (2, 3),
        (3, 3),
        (2, 3),
    ]
    by_form = [{f: one.share.right for f, one in result.by_address.items()} for result in found.systems]
    assert [(one.address.share.right if one.address else 0) for one in found.systems] == [
        sum(forms.values()) for forms in by_form
    ]
    assert by_form[1] == {"T": 2, "V": 1}
    assert row.forms == "T 100.0, V 100.0"


def test_any_system_can_be_the_baseline() -> None:
    texts = [(TEXTS[1], TEXTS[0])] * 40
    one = results(texts, ["te"] * 40, [TEXTS[0]] * 20 + [TEXTS[1]] * 20)
    other = results(texts, ["te"] * 40, [TEXTS[0]] * 20 + [TEXTS[1]] * 20, baseline="other")
    assert other.systems[2].said.over_baseline is None and one.systems[0].said.over_baseline is None
    forward, back = one.systems[2].said.over_baseline, other.systems[0].said.over_baseline
    assert forward is not None and back is not None
    assert (forward.delta, forward.low, forward.high) == (-back.delta, -back.high, -back.low)
    assert forward.delta == 50.0 and forward.p == back.p


def test_intervals_of_few_items() -> None:
    """Wilson's, as published: 0 of 10 is below 0.28, and 9 of 10 between 0.60 and 0.98."""
    none, most = Share.of(0, 10), Share.of(9, 10)
    assert (none.low, round(none.high, 4)) == (0.0, 0.2775)
    assert (round(most.low, 4), round(most.high, 4)) == (0.5958, 0.9821)
    assert Share.of(10, 10).high == 1.0 and Share.of(400, 400).low > 0.99


def test_a_failure_shows_the_list_that_the_row_chose_from() -> None:
    last = Hypotheses(("a b", "c b", "a d", "e b"), (-1.0, -2.0, -3.0, -4.0), (0, 1, 1, 2))
    assert last.beginning(2) == Hypotheses(("a b", "c b", "a d"), (-1.0, -2.0, -3.0), (0, 1, 1))
    assert last.beginning(9) == last


def test_names_of_systems() -> None:
    rows = [replace(TranslationOptions(), nbest=size) for size in (5, 20)]
    assert row_names(rows) == ["rerank: c-score × 1, T 1, 5-best", "rerank: c-score × 1, T 1, 20-best"]
    assert row_names(rows[:1]) == ["rerank: c-score × 1, T 1"]
    check_names(rows, ["other"], "other")
    check_names(rows, ["other"], row_names(rows)[0])
    with pytest.raises(CadecError, match="no system 'others'"):
        check_names(rows, ["other"], "others")
    with pytest.raises(CadecError, match="the name of one of our own"):
        check_names(rows, [LEVEL])


def test_failures_say_what_the_list_had() -> None:
    texts = [(TEXTS[1], TEXTS[0]), (TEXTS[1], TEXTS[2]), (TEXTS[2], TEXTS[2])]
    found = results(texts, ["te", "te", "te"], [TEXTS[2]] * 3, failures=2)
    first, second = found.systems[0].failures
    assert (first.text, first.context) == (TEXTS[1], ("Salut.",))
    assert first.sayers == {TEXTS[0]}
    assert second.item.name == "2" and second.sayers == frozenset()
    assert [one.item.name for one in found.systems[1].failures] == ["2", "3"]
    assert found.systems[1].failures[0].context == ("Bonjour.",)
    assert found.systems[2].failures[0].hypotheses is None


CHOICES = st.lists(st.tuples(*[st.sampled_from(TEXTS)] * 2, st.sampled_from(["te", "vous"])), min_size=1)


@given(CHOICES)
@settings(deadline=None, max_examples=30)
def test_whatever_is_said(drawn: list[tuple[str, str, str]]) -> None:
    pairs = [(first, second) for first, second, _ in drawn]
    expected = [form for _, _, form in drawn]
    found = results(pairs, expected, [first for first, _ in pairs], failures=len(pairs))
    level, _, same = found.systems
    assert same.said.share == level.said.share
    assert (same.address is None) == (level.address is None)
    if same.said.over_baseline is not None:
        assert (
            same.said.over_baseline.delta == same.said.over_baseline.low == same.said.over_baseline.high == 0
        )
        assert same.said.over_baseline.p in (None, 1.0)
    for one in found.systems:
        share = one.said.share
        assert share.low <= share.share <= share.high
        assert sum(figure.share.right for figure in one.by_rule.values()) == share.right
        assert sum(figure.share.items for figure in one.by_rule.values()) == share.items == len(pairs)
        assert len(one.failures) == share.items - share.right
        assert share.right <= found.oracles[-1].said.share.right
        assert one.address is None or one.address.share.items <= len(pairs)
        counted = sum(figure.share.items for figure in one.by_address.values())
        assert counted == (one.address.share.items if one.address is not None else 0)
    both = sum(JUDGING.says(a, form) or JUDGING.says(b, form) for a, b, form in drawn)
    assert found.oracles[-1].said.share.right == both


def test_a_difference_that_is_none_by_chance() -> None:
    found = results([(TEXTS[1], TEXTS[0])] * 40 + [(TEXTS[0], TEXTS[0])] * 40, ["te"] * 80)
    over = found.systems[1].said.over_baseline
    assert over is not None and over.significant and over.delta == 50.0 and over.low > 30
    assert over.wins == 1.0


def test_items_without_rule_or_reference() -> None:
    items = (Item(("I see you.",), "te"),)
    of_set = GenerativeSet(Path("a"), "jsonl", items, (0,), 1)
    translated = [Translated((TEXTS[0],), (), Hypotheses((TEXTS[0],), (-1.0,), (0,)))]
    found = evaluate(of_set, JUDGING, translated, systems_of([], translated), [1])
    (level,) = found.systems
    assert (level.by_rule, level.address, found.rules) == ({}, None, {})


@pytest.mark.parametrize("rule", ["words", "ctxpro"])
def test_forms_that_a_rule_never_finds(rule: str) -> None:
    items = (Item(("I see you.",), "t'"), Item(("I see you.",), "te"))
    of_set = GenerativeSet(Path("a"), "jsonl", items, (0, 1), 2)
    translated = [Translated((TEXTS[3],), (), Hypotheses((TEXTS[3],), (-1.0,), (0,)))] * 2
    found = evaluate(of_set, Judging(rule, "fr"), translated, systems_of([], translated), [1])
    assert found.unsayable == (rule == "ctxpro")
    assert found.oracles[-1].said.share.right == (2 if rule == "words" else 0)


def test_other_systems_of_every_set(tmp_path: Path) -> None:
    item = Item(("I see you.",), "te")
    sets = [GenerativeSet(Path(name), "jsonl", (item,), (0,), 1) for name in "ab"]
    paths = [tmp_path / name for name in "ab"]
    for path in paths:
        path.write_text(f"Oui. Je te vois, {path.name}.\n", "utf-8")
    found = other_systems({"x": paths, "y": paths[::-1]}, sets, "fr")
    named = [[(one.name, one.texts) for one in of_set] for of_set in found]
    first, second = ("Je te vois, a.",), ("Je te vois, b.",)
    assert named == [[("x", first), ("y", second)], [("x", second), ("y", first)]]
