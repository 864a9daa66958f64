"""Expected forms are found as words, elided or not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.errors import CadecError
from cadec_cli.evaluation.generative.forms import (
    RULES,
    Judging,
    says_ctxpro,
    says_words,
)
from cadec_cli.terminal.flags import GENERATIVE_RULES

WORDS = st.lists(st.sampled_from(["tu", "es", "là", "vous", "Dis", "moi"]), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("text", "expected", "language", "by_words", "by_ctxpro"),
    [
        ("Je te vois.", "te", "fr", True, True),
        ("Je t'aime.", "te", "fr", True, False),
        ("Je t’aime.", "t'", "fr", True, False),
        ("Je te vois.", "t'", "fr", True, False),
        ("Je te vois.", "t’", "fr-CA", True, False),
        ("Il a-t-il tort ?", "t'", "fr", False, False),
        ("- J'accepte.", "accepte", "fr", True, False),
        ("Dis-lui toi-même.", "Dis", "fr", True, False),
        ("Je l'ai vu.", "le", "fr", True, False),
        ("Je l'ai vu.", "la", "fr", True, False),
        ("Je la vois.", "le", "fr", False, False),
        ("ARRÊTE !", "arrête", "fr", True, True),
        ("ARRE\u0302TE !", "arrête", "fr", True, False),
        ("Tu arrêtes ?", "arrête", "fr", False, False),
        ("Je suis « tu » ici", "tu", "fr", True, True),
        ("It's mine.", "it", "en", True, False),
        ("Das t'", "te", "de", False, False),
        ("Non ti vedo.", "t'", "it", True, False),
        ("Я люблю тебя, мама.", "тебя", "ru", True, True),
        ("avec vous deux", "vous deux", "fr", True, True),
        ("vous, tous les deux", "vous deux", "fr", False, False),
        ("", "te", "fr", False, False),
        ("你好吗？", "你", "zh", True, False),
        ("你们好吗？", "您", "zh", False, False),
        ("तुम कैसे हो?", "तु", "hi", False, False),  # vowel signs belong to their word
        ("तुम कैसे हो?", "तुम", "hi", True, True),
        ("คุณสบายดีไหม", "คุณ", "th", True, False),
    ],
)
def test_the_two_rules(text: str, expected: str, language: str, by_words: bool, by_ctxpro: bool) -> None:
    assert says_words(text, expected, language) == by_words
    assert says_ctxpro(text, expected, language) == by_ctxpro


@given(WORDS, WORDS)
def test_without_marks_the_rules_agree(text: list[str], expected: list[str]) -> None:
    said, form = " ".join(text), " ".join(expected)
    assert says_words(said, form, "fr") == says_ctxpro(said, form)
    assert says_words(f"- {said} !", form, "fr") == says_words(said, form, "fr")


@given(WORDS)
def test_whatever_is_said_is_found(words: list[str]) -> None:
    for judging in (Judging(rule, "fr") for rule in RULES):
        assert judging.can_be_said(" ".join(words))


def test_what_ctxpro_never_finds() -> None:
    assert not Judging("ctxpro", "fr").can_be_said("t'")
    assert Judging("words", "fr").can_be_said("t'")
    assert not Judging("words", "fr").can_be_said("…")
    assert Judging("words", "fr").signature == "rule:words|lang:fr"
    assert Judging("ctxpro", "fr").signature == "rule:ctxpro"
    with pytest.raises(CadecError, match="no rule 'luck'"):
        Judging("luck", "fr")


def test_the_flag_knows_the_rules() -> None:
    assert tuple(RULES) == GENERATIVE_RULES
