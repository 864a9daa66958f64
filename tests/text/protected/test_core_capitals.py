"""Words in capitals are translated in lower case and written in capitals again; abbreviations stay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.text.protected.core import core_of

WORDS = [
    ("CHAPTER SIX", "Chapter six"),
    ("THE END", "The end"),
    ("CONTENTS", "Contents"),
    ("WARNING", "Warning"),
    ("STOP!", "Stop!"),
    ("NO!", "No!"),
    ("CHAPTER 6", "Chapter 6"),
    ("[DOOR SLAMS]", "Door slams"),
    ("- RUN. DON'T LOOK BACK.", "Run. Don't look back."),
    ("AM I DEAD, OR AM I NOT? I'M NOT.", "Am I dead, or am I not? I'm not."),
    ("“GO AWAY!” SHE CRIED.", "“Go away!” she cried."),
    ("ВЫХОД", "Выход"),
    ("ГЛАВА ШЕСТАЯ", "Глава шестая"),
]
KEPT = [
    "NATO",
    "NASA, ESA",
    "USA",
    "IBM",
    "HTTPS",
    "JSON",
    "UTF-8",
    "ISO 9001",
    "I",
    "OK",
    "Stop!",
    "X!",
    "A B",
    "東京",
]


@pytest.mark.parametrize(("text", "read"), WORDS)
def test_words_in_capitals_are_read_in_lower_case(text: str, read: str) -> None:
    core = core_of(text, "ru" if text[0] > "z" and text[0].isalpha() else "en")
    assert (core.text, core.capitals) == (read, True)
    assert core.case(core.text) == read.upper()
    assert core.before + core.case(core.text) + core.after == text


def test_a_sound_has_no_full_stop_that_its_source_lacks() -> None:
    assert core_of("[DOOR SLAMS]", "en").case("Дверь хлопает.") == "ДВЕРЬ ХЛОПАЕТ"
    assert core_of("(sighs.)", "en").case("вздыхает.") == "вздыхает."
    assert core_of("He sighs", "en").case("Он вздыхает.") == "Он вздыхает."


@pytest.mark.parametrize("text", KEPT)
def test_abbreviations_stay(text: str) -> None:
    assert not core_of(text, "en").capitals


@given(st.text("ABCXYZ IÉßİ.!?'\"-–ДЯ1", max_size=40), st.sampled_from(["en", "ru", ""]))
def test_the_text_is_as_long_as_before(text: str, language: str) -> None:
    core = core_of(text, language)
    if core.capitals:
        assert len(core.before) + len(core.text) + len(core.after) == len(text)
        assert core.text.upper() == text[len(core.before) : len(text) - len(core.after)].upper()
