"""Plain text comes back byte for byte when nothing was translated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.text.formats.plain import read_plain

SAMPLES = [
    ("", []),
    ("\n \n\t\n", []),
    ("Hello.", [["Hello."]]),
    ("Hello. Bye.\n", [["Hello.", "Bye."]]),
    ("Hello.\nBye.\n\nNew.\n", [["Hello.", "Bye."], ["New."]]),
    ("Hello.\r\nBye.\r\n \t\r\nNew.", [["Hello.", "Bye."], ["New."]]),
    ("one\rtwo\r\rthree", [["one", "two"], ["three"]]),
    ("\ufeff  Hello.  Bye.  \n", [["Hello.", "Bye."]]),
    ("A line that is\nwrapped by hand.", [["A line that is", "wrapped by hand."]]),
    ("Hi.\n\x00\nYou.", [["Hi."], ["You."]]),
]


@pytest.mark.parametrize(("text", "expected"), SAMPLES)
def test_documents(text: str, expected: list[list[str]]) -> None:
    documents, layout = read_plain(text, language="en")
    assert [list(document.texts) for document in documents] == expected
    assert "".join(layout.restore(text for texts in expected for text in texts)) == text


def test_lines_are_sentences() -> None:
    documents, layout = read_plain("One. Two.\n  three \n\nFour", language="en", lines=True)
    assert [document.texts for document in documents] == [("One. Two.", "three"), ("Four",)]
    assert "".join(layout.restore(["1", "2", "3"])) == "1\n  2 \n\n3"


def test_translations_take_the_place_of_sentences() -> None:
    _, layout = read_plain("  Hello.  Bye. \r\n\r\nNew.", language="en")
    assert "".join(layout.restore(["Привет.", "Пока.", "Новое."])) == "  Привет.  Пока. \r\n\r\nНовое."


def test_a_line_break_in_a_translation_adds_no_line() -> None:
    _, layout = read_plain("Hello.\n", language="en")
    assert "".join(layout.restore(["При\nвет.\r\n"])) == "При вет. \n"


def test_streams() -> None:
    _, layout = read_plain("One.\nTwo.\n", language="en")
    taken: list[str] = []

    def translations():
        for text in ("Раз.", "Два."):
            taken.append(text)
            yield text

    pieces = layout.restore(translations())
    assert next(pieces) == "Раз."
    assert taken == ["Раз."]


@pytest.mark.parametrize("translations", [[], ["a"], ["a", "b", "c"]])
def test_as_many_translations_as_sentences(translations: list[str]) -> None:
    _, layout = read_plain("One.\nTwo.\n", language="en")
    with pytest.raises(ValueError, match="translations than sentences"):
        list(layout.restore(translations))


TEXTS = st.lists(
    st.sampled_from(
        ["Hello.", "Привет!", "what?", " ", "\t", "\n", "\r\n", "\r", "\n\n", "\x00", "\ufeff", "—", "1."]
    )
    | st.text(max_size=5)
).map("".join)


@given(TEXTS, st.booleans(), st.sampled_from(["en", "ru", "xx"]))
def test_unchanged_sentences_give_the_text_back(text: str, lines: bool, language: str) -> None:
    documents, layout = read_plain(text, language=language, lines=lines)
    assert all(document.texts for document in documents)
    assert "".join(layout.restore(sentence for document in documents for sentence in document.texts)) == text


@given(TEXTS)
def test_line_count_is_kept(text: str) -> None:
    documents, layout = read_plain(text, language="en", lines=True)
    count = sum(map(len, documents))
    assert "".join(layout.restore(["x"] * count)).count("\n") == text.count("\n")
