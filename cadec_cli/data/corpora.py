"""Corpora as rows of text, read as a stream: lines, columns of tab-separated files, or aligned files.

A row is one text per language; None stands for the end of a document (at a blank line, or the file's end).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from cadec_cli.errors import CadecError, option
from cadec_cli.fs.read import read_lines
from cadec_cli.parallel import Task, in_order
from cadec_cli.parallel.processes import local_pool
from cadec_cli.text.documents import documents_of, is_blank
from cadec_cli.text.moses import MosesText

Row = tuple[str, ...]
T = TypeVar("T")

# Rows that a process works on at a time.
CHUNK = 256
# Chunks per process that may be finished ahead of the one whose result is next in order.
CHUNKS_AHEAD = 4


def rows(
    inputs: Sequence[Path], *, languages: int, columns: Sequence[int] = (), encoding: str | None = None
) -> Iterator[Row | None]:
    """Yield the rows of some files, and None after every document.

    With `columns` (counted from 1), files are tab-separated, with one column per language. Without them,
    one language is one text per line, and two are two files, aligned line by line.
    """
    for document in _documents(inputs, languages, columns, encoding):
        yield from document
        yield None


def _documents(
    inputs: Sequence[Path], languages: int, columns: Sequence[int], encoding: str | None
) -> Iterator[Iterator[Row]]:
    if columns:
        if len(columns) != languages:
            raise CadecError(f"{languages} languages need {languages} columns, not {len(columns)}")
        for path in inputs:
            numbered = enumerate(read_lines(path, encoding), 1)
            for document in documents_of(numbered, lambda item: is_blank(item[1])):
                yield (_cells(path, number, line, columns) for number, line in document)
    elif languages == 1:
        for path in inputs:
            for lines in documents_of(read_lines(path, encoding), is_blank):
                yield ((line,) for line in lines)
    elif len(inputs) == languages:
        yield from documents_of(_parallel_rows(inputs, encoding), lambda row: all(map(is_blank, row)))
    else:
        raise CadecError(
            f"{languages} languages need {languages} aligned files, or tab-separated ones and "
            f"{option('columns')}",
            f"for example {option('columns', '1,2')}",
        )


def tokenised_lines(
    inputs: Sequence[Path],
    language: str,
    *,
    column: int = 0,
    encoding: str | None = None,
    processes: int = 0,
) -> Iterator[str]:
    """Yield the lines of a language, normalised and tokenised but not truecased; empty ones are left out."""
    texts = (
        row[0]
        for row in rows(inputs, languages=1, columns=(column,) if column else (), encoding=encoding)
        if row
    )
    pool = local_pool(processes, "processes")
    task = Task(_start_tokenising, (language,), window=CHUNKS_AHEAD * pool.size)
    results = pool.run(task, chunk_items(texts, CHUNK))
    return itertools.chain.from_iterable(in_order(results))


def chunk_items(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the items in lists of `size`, the last one shorter."""
    iterator = iter(items)
    while chunk := list(itertools.islice(iterator, size)):
        yield chunk


def _cells(path: Path, number: int, line: str, columns: Sequence[int]) -> Row:
    cells = line.split("\t")
    if len(cells) < max(columns):
        raise CadecError(f"{path}: line {number} has {len(cells)} columns, not {max(columns)}")
    return tuple(cells[column - 1] for column in columns)


def _parallel_rows(inputs: Sequence[Path], encoding: str | None) -> Iterator[Row]:
    files = [read_lines(path, encoding) for path in inputs]
    for number, lines in enumerate(itertools.zip_longest(*files), 1):
        if any(line is None for line in lines):
            ended = inputs[[line is None for line in lines].index(True)]
            raise CadecError(
                f"the files do not align: {ended} ends at line {number - 1:,}, another file is longer"
            )
        yield lines


def _start_tokenising(language: str) -> Callable[[list[str]], list[str]]:
    moses = MosesText(language)
    return lambda texts: [line for text in texts if (line := " ".join(moses.tokenise(moses.normalise(text))))]
