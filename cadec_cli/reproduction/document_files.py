"""Plain text with a blank line between documents: read and written in one way."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from cadec_cli.fs.atomic import atomic_file
from cadec_cli.fs.read import read_lines
from cadec_cli.text.documents import document_lines, documents_of, is_blank


def read_documents(path: Path) -> Iterator[list[str]]:
    """The lines of each document, as a stream."""
    return (list(lines) for lines in documents_of(read_lines(path), is_blank))


def write_documents(path: Path, documents: Iterable[Sequence[str]], *, most: int | None = None) -> int:
    """Write documents, up to the first that would make it more than `most` lines; tell how many lines."""
    written = 0

    def fits(document: Sequence[str]) -> bool:
        return most is None or written + len(document) <= most

    with atomic_file(path) as stream:
        kept: Iterable[Sequence[str]] = itertools.takewhile(fits, documents)
        for line in document_lines(kept):
            stream.write(line.encode())
            written += 1
    return written
