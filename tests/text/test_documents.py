"""Lines become documents where a blank line stands between them, in bounded memory."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.data.preparation import rows
from cadec_cli.evaluation.aligned import read_aligned
from cadec_cli.text.documents import documents_of, is_blank
from cadec_cli.text.formats import read_text_file

LINES = st.lists(st.sampled_from(["a", "b c", " d", "", " ", "\t"]))


@given(LINES)
def test_documents_are_what_stands_between_blank_lines(lines: list[str]) -> None:
    found = [list(document) for document in documents_of(lines, is_blank)]
    marked = "".join(" " if is_blank(line) else "x" for line in lines)
    assert [len(document) for document in found] == [len(run) for run in marked.split()]
    assert [line for document in found for line in document] == [line for line in lines if line.strip()]


def test_an_endless_document_is_read_as_it_comes() -> None:
    endless: Iterator[str] = itertools.chain(["", "a"], itertools.repeat("b"))
    document = next(documents_of(endless, is_blank))
    assert list(itertools.islice(document, 3)) == ["a", "b", "b"]


@pytest.mark.parametrize("text", ["a\nb\n\n\nc\n", "\n\na\r\nb\r\n \t\r\nc", "\ufeffa\nb\n\nc\n\n"])
def test_every_reader_finds_the_same_documents(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(text.encode())
    expected = (("a", "b"), ("c",))
    assert tuple(one.texts for one in read_text_file(path, language="en", lines=True).documents) == expected
    assert read_aligned([path])[0].documents == expected
    found = tuple(row and row[0] for row in rows([path], languages=1))
    assert found == ("a", "b", None, "c", None)
