"""Plain text comes back byte for byte when nothing was translated."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.text.documents import Document
from cadec_cli.text.formats.layout import Layout, LineCutter, Source
from cadec_cli.text.formats.plain import read_plain


def read(text: str, language: str = "en", lines: bool = False) -> tuple[tuple[Document, ...], Layout]:
    return read_plain(Source(text, name="f", format="text", language=language, lines=lines))


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
    documents, layout = read(text)
    assert [list(document.texts) for document in documents] == expected
    assert "".join(layout.restore(text for texts in expected for text in texts)) == text


def test_lines_are_sentences() -> None:
    documents, layout = read("One. Two.\n  three \n\nFour", lines=True)
    assert [document.texts for document in documents] == [("One. Two.", "three"), ("Four",)]
    assert "".join(layout.restore(["1", "2", "3"])) == "1\n  2 \n\n3"


def test_translations_take_the_place_of_sentences() -> None:
    _, layout = read("  Hello.  Bye. \r\n\r\nNew.")
    assert "".join(layout.restore(["Привет.", "Пока.", "Новое."])) == "  Привет.  Пока. \r\n\r\nНовое."


def test_a_line_break_in_a_translation_adds_no_line() -> None:
    _, layout = read("Hello.\n")
    assert "".join(layout.restore(["При\nвет.\r\n"])) == "При вет. \n"


def test_streams() -> None:
    _, layout = read("One.\nTwo.\n")
    taken: list[str] = []

    def translations() -> Iterator[str]:
        for text in ("Раз.", "Два."):
            taken.append(text)
            yield text

    pieces = layout.restore(translations())
    assert next(pieces) == "Раз."
    assert taken == ["Раз."]


@pytest.mark.parametrize("translations", [[], ["a"], ["a", "b", "c"]])
def test_as_many_translations_as_sentences(translations: list[str]) -> None:
    _, layout = read("One.\nTwo.\n")
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
    documents, layout = read(text, language=language, lines=lines)
    assert all(document.texts for document in documents)
    assert "".join(layout.restore(sentence for document in documents for sentence in document.texts)) == text


@given(TEXTS)
def test_line_count_is_kept(text: str) -> None:
    documents, layout = read(text, lines=True)
    count = sum(map(len, documents))
    assert "".join(layout.restore(["x"] * count)).count("\n") == text.count("\n")


@given(st.text("ab\r\n"), st.lists(st.integers(0, 20)))
def test_lines_are_the_same_however_the_text_is_cut(text: str, cuts: list[int]) -> None:
    places = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
    cutter = LineCutter(old_ends=True)
    lines = [line for start, stop in pairwise(places) for line in cutter.cut(text[start:stop])]
    lines += cutter.end()
    assert "".join(line + end for line, end in lines) == text
    end = "\n" if "\n" in text else "\r"
    *complete, last = text.split(end)
    assert lines == [(line, end) for line in complete] + [(last, "")] * bool(last)
