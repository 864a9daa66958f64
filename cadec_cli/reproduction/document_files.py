"""Plain text with a blank line between documents: read and written in one way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from cadec_cli.fs.atomic import atomic_file
from cadec_cli.fs.read import read_lines
from cadec_cli.text.documents import documents_of, is_blank


def read_documents(path: Path) -> Iterator[list[str]]:
    """The lines of each document, as a stream."""
    return (list(lines) for lines in documents_of(read_lines(path), is_blank))


def write_documents(path: Path, documents: Iterable[Sequence[str]], *, most: int | None = None) -> int:
    """Write documents, up to the first that would make it more than `most` lines; tell how many lines."""
    written = 0
    with atomic_file(path) as stream:
        for document in documents:
            if most is not None and written + len(document) > most:
                break
            text = "".join(f"{line}\n" for line in document)
            stream.write((f"\n{text}" if written else text).encode())
            written += len(document)
    return written
