"""Hard-wrapped lines are read as their paragraphs, wrapped again, and nothing else is joined."""

import io
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.fs.read import TextStream
from cadec_cli.text.formats import stream_lines
from cadec_cli.text.formats.hard_wrap import fill, find_paragraphs
from cadec_cli.text.formats.layout import Layout, Source
from cadec_cli.text.formats.plain import read_plain

SENTENCES = (
    "The next morning, when he came down to breakfast, he found that his wife had left him a letter.",
    "She said nothing about the children, nor about the well-known quarrel; she only wrote that she was"
    " going to her sister in the country.",
    "He read it twice.",
    "“I shall go,” he said to Mrs. Smith, who had come in with the tea and was looking at him as if he had"
    " lost his mind.",
    "Why?",
    "There was a train at 12.30, and the station was not far, so that he could still catch it if he hurried.",
    "The garden -- or what was left of it -- lay under snow, and nobody had been there for days.",
    "He took his hat (the grey one, which she had always hated), his stick and the letter, and went out.",
)  # fmt: skip
TEXTS = st.lists(st.permutations(SENTENCES).map(" ".join), min_size=2, max_size=3)


def read(
    text: str, *, lines: bool = False, remarks: list[str] | None = None
) -> tuple[list[list[str]], Layout]:
    documents, layout = read_plain(Source(text, name="f", format="text", language="en", lines=lines))
    if remarks is not None:
        remarks += getattr(layout, "notes", ())
    return [list(document.texts) for document in documents], layout


def wrap(paragraph: str, width: int, first: str = "", rest: str = "") -> str:
    return textwrap.fill(
        paragraph, width, initial_indent=first, subsequent_indent=rest, break_long_words=False
    )


@given(TEXTS, st.integers(50, 100), st.sampled_from(["\n", "\r\n"]), st.sampled_from(["", "> ", "    "]))
def test_wrapped_text_has_the_sentences_of_the_same_text_unwrapped(
    paragraphs: list[str], width: int, end: str, before: str
) -> None:
    wrapped = "\n\n".join(wrap(one, width, before, before) for one in paragraphs)
    documents, layout = read(wrapped.replace("\n", end))
    alone, _ = read("\n\n".join(paragraphs))
    assert documents == alone
    texts = [text for of_document in documents for text in of_document]
    assert "".join(layout.restore(texts)) == wrapped.replace("\n", end)
    changed = "".join(layout.restore(text.upper() for text in texts))
    assert all(len(line) <= width and line.startswith(before) for line in changed.split(end) if line)
    assert [" ".join(one.split()) for one in changed.replace(before.strip() or "\0", "").split(end * 2)] == [
        " ".join(one.upper().split()) for one in paragraphs
    ]


@given(TEXTS, st.integers(50, 80))
def test_book_paragraphs_without_blank_lines(paragraphs: list[str], width: int) -> None:
    wrapped = "\n".join(wrap(one, width, "   ") for one in paragraphs)
    alone, _ = read("\n".join(paragraphs))
    assert read(wrapped)[0] == alone


PROSE = wrap(" ".join(SENTENCES), 70)
KEPT = {
    "verse": "Shall I compare thee to a summer’s day?\nThou art more lovely and more temperate:\n"
    "Rough winds do shake the darling buds of May,\nAnd summer’s lease hath all too short a date;\n",
    "free verse": "when the evening comes and the last of the boats has gone home\nand nobody is left\n"
    "i think of what you said about the sea\nand of what you did not say, which was everything\nto me\n"
    "and the lamps go on, one after the other, along the road\n",
    "a list": "- milk\n- bread from the baker\n- two newspapers\n",
    "a list of sentences": "1. Put the water into the large pot and wait until it boils for a minute\n"
    "2. Put the salt and the rice into the pot, and close it with the lid now\n"
    "3. After twenty minutes take the pot from the fire and wait for a while\n",
    "a dialogue": "- Where have you been all night, and why did you not call me at once?\n"
    "- With my brother, who has come back from the sea and wants to stay on.\n"
    "- Then you could have told me, because I was waiting for you until now.\n",
    "sentences": "The first sentence of these is about as long as a line of wrapped text.\n"
    "It is followed by another that is about as long as the first one was it.\n"
    "A third one has the same length as well, so that the width would be right.\n",
    "a table": "name       of the thing         what it costs\n"
    "bread      at the baker's       two pounds fifty\n"
    "milk       at the corner        one pound or so\n",
    "code": "```\nit is not for reading and nobody should ever try to translate these lines of\n"
    "text, because they are code, which is what the fences around them have said\n```\n",
    "line breaks of Markdown": "this line ends with two spaces, and so a break has to come after it,  \n"
    "which is what the writer meant by that, and nobody should ever join it  \n"
    "to another line, because it would then look different from what it was  \n",
}  # fmt: skip


@pytest.mark.parametrize("kind", KEPT)
@pytest.mark.parametrize("with_prose", [False, True])
def test_line_breaks_that_mean_something_stay(kind: str, with_prose: bool) -> None:
    lines = [line for line in KEPT[kind].split("\n") if line]
    text = KEPT[kind] + f"\n{PROSE}\n" * with_prose
    if kind != "code":  # which only the reader of a file knows
        assert all(paragraph.first > len(lines) for paragraph in find_paragraphs(text.split("\n")))
    documents, layout = read(text)
    texts = [text for of_document in documents for text in of_document]
    shown = "".join(layout.restore("x" + text[1:] for text in texts))
    assert len(shown.split("\n\n")[0].strip().split("\n")) == len(lines)


def test_lines_are_kept_if_every_line_is_a_sentence() -> None:
    remarks: list[str] = []
    documents, _ = read(PROSE, lines=True, remarks=remarks)
    assert documents == [PROSE.split("\n")]
    assert not remarks


def test_what_was_joined_is_said() -> None:
    remarks: list[str] = []
    read(PROSE, remarks=remarks)
    (remark,) = remarks
    assert f"{len(PROSE.splitlines())} lines are taken for 1 paragraph, wrapped at about" in remark


def test_a_sentence_has_the_number_of_the_line_where_it_begins() -> None:
    text = "Title\n\n" + PROSE
    documents, _ = read_plain(Source(text, name="f", format="text", language="en"))
    lines = text.split("\n")
    for sentence in documents[1].sentences:
        line = lines[int(sentence.place.removeprefix("line ")) - 1]
        assert sentence.text.split()[0] in line


@pytest.mark.parametrize(
    ("wrapped", "whole"),
    [
        ("the transla-\ntion", "the translation"),
        ("a well-\nknown man", "a well-known man"),
        ("he said--\nor so", "he said--or so"),
        ("he said\n--or so", "he said--or so"),
        ("he said —\nor so", "he said — or so"),
    ],
)
def test_words_over_two_lines(wrapped: str, whole: str) -> None:
    first, second = wrapped.split("\n")
    filler = "and so the translation of this word is at the end of a line that is "
    text = f"{wrap(' '.join(SENTENCES), len(filler + first))}\n\n{filler}{first}\n{second} and more"
    found = find_paragraphs(text.split("\n"))
    assert whole in found[-1].text


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("aaa bbb ccc", ["aaa bbb", "ccc"]),
        ("aaaaaaaaaa bb", ["aaaaaaaaaa", "bb"]),
        ("aaa bb - ccc", ["aaa", "bb -", "ccc"]),
        ("aaa bb 12. cc", ["aaa", "bb 12.", "cc"]),
        ("aaa  bb\u00a0c d", ["aaa", "bb\u00a0c d"]),
        ("", [""]),
        ("今日は良い天気です。", ["今日は", "良い天", "気で", "す。"]),
    ],
)
def test_fill(text: str, lines: list[str]) -> None:
    assert fill(text, width=7) == lines


@given(st.text("ab -.>#1\u00a0今。\n", max_size=60), st.integers(1, 20))
def test_filling_changes_white_space_only(text: str, width: int) -> None:
    lines = fill(text.replace("\n", " "), width=width)
    assert "".join("".join(lines).split()) == "".join(text.split())


@given(st.lists(st.text("aB -.>#1\t\ufeff\u00a0|`", max_size=90) | st.none(), max_size=12))
def test_any_lines(lines: list[str | None]) -> None:
    done = 0
    for paragraph in find_paragraphs(lines):
        assert done <= paragraph.first < paragraph.last < len(lines)
        done = paragraph.last + 1


@pytest.mark.parametrize(
    ("text", "told"), [(f"{PROSE}\n", True), (PROSE * 9, True), (KEPT["verse"] * 20, False)]
)
def test_wrapped_lines_of_a_stream_are_told_of_and_not_joined(text: str, told: bool) -> None:
    remarks: list[str] = []
    stream = TextStream(io.BytesIO(text.encode()), "f")
    lines = [one for some in stream_lines(stream, "text", language="en", note=remarks.append) for one in some]
    assert len(lines) == len(text.splitlines())
    assert [("from a pipe each is translated on its own" in remark) for remark in remarks] == [True] * told
