"""Texts that belong together line by line: hypotheses, references, sources, all in the same documents.

Plain text, one sentence a line, a blank line between documents. All texts must agree with the first one in
their documents and in the sentences of each; where they do not, the first document that differs is named.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cadec_cli import console
from cadec_cli.errors import CadecError
from cadec_cli.files import open_binary, reading
from cadec_cli.text.formats import decode
from cadec_cli.text.sentences import visible_span

# As much of a line as an error message shows.
_SHOWN = 40


@dataclass(frozen=True)
class AlignedText:
    """One file's documents."""

    name: str
    documents: tuple[tuple[str, ...], ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """How many sentences each document has."""
        return tuple(map(len, self.documents))

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """The sentences of all documents, in order."""
        return tuple(sentence for document in self.documents for sentence in document)

    @cached_property
    def document_numbers(self) -> npt.NDArray[np.int64]:
        """The document that each sentence is in, from 0: (sentences,)."""
        return np.repeat(np.arange(len(self.documents)), self.shape)

    @cached_property
    def sentence_numbers(self) -> npt.NDArray[np.int64]:
        """The place of each sentence in its document, from 0: (sentences,)."""
        return np.concatenate([np.arange(length) for length in self.shape])


@dataclass(frozen=True)
class _File:
    name: str
    lines: tuple[str, ...]

    def text(self) -> AlignedText:
        documents: list[list[str]] = [[]]
        for line in self.lines:
            if line:
                documents[-1].append(line)
            elif documents[-1]:
                documents.append([])
        return AlignedText(self.name, tuple(tuple(document) for document in documents if document))


def read_aligned(paths: Sequence[Path], encoding: str = "utf-8") -> list[AlignedText]:
    """Read files that must agree with the first of them, sentence by sentence."""
    if sum(str(path) == "-" for path in paths) > 1:
        raise CadecError("standard input can be read only once", "give - for one file, and names for others")
    files = [_read(path, encoding) for path in paths]
    first = files[0].text()
    return [first, *(_agreeing(file, files[0], first) for file in files[1:])]


def _read(path: Path, encoding: str) -> _File:
    name = "standard input" if str(path) == "-" else str(path).encode("utf-8", "replace").decode()
    with reading(path):
        stream = open_binary(path)
        try:
            data = stream.read()
        finally:
            if str(path) != "-":
                stream.close()
    text, _ = decode(data, encoding, name)
    lines = [_trimmed(line) for line in text.split("\n" if "\n" in text else "\r")]
    if not lines[-1]:  # what stands after the end of the last line
        lines.pop()
    if not any(lines):
        raise CadecError(f"{name} has no sentences", "one sentence a line, a blank line between documents")
    return _File(name, tuple(lines))


def _trimmed(line: str) -> str:
    start, end = visible_span(line, 0, len(line))
    return line[start:end]


def _agreeing(file: _File, first: _File, standard: AlignedText) -> AlignedText:
    text = file.text()
    if text.shape == standard.shape:
        return text
    restored = _with_empty_sentences(file, first, standard)
    if restored is not None:
        empty = sum(not sentence for sentence in restored.sentences)
        plural = "s" if empty != 1 else ""
        console.warn(f"{file.name} has {empty} empty line{plural} where {first.name} has sentences")
        return restored
    raise _disagreement(text, standard)


def _with_empty_sentences(file: _File, first: _File, standard: AlignedText) -> AlignedText | None:
    """Read blank lines as empty sentences where the first file has text at the very same lines.

    A system may give nothing for a sentence. Only line numbers can tell that from the end of a document, so
    both files must have the same lines, and every boundary of the first must be one here too.
    """
    if len(file.lines) != len(first.lines):
        return None
    if any(line and not other for line, other in zip(file.lines, first.lines, strict=True)):
        return None
    kept = iter([line for line, other in zip(file.lines, first.lines, strict=True) if other])
    documents = tuple(tuple(next(kept) for _ in document) for document in standard.documents)
    return AlignedText(file.name, documents)


def _disagreement(text: AlignedText, standard: AlignedText) -> CadecError:
    """Name the first document that differs."""
    counts = zip(text.shape, standard.shape, strict=False)
    number = next((n for n, (one, other) in enumerate(counts) if one != other), None)
    if number is None:
        number = min(len(text.documents), len(standard.documents))
    sides = []
    for side in (text, standard):
        if number < len(side.documents):
            document = side.documents[number]
            plural = "s" if len(document) != 1 else ""
            sides.append(f"{len(document)} sentence{plural} in {side.name} ({_short(document[0])!r} …)")
        else:
            sides.append(f"none in {side.name}, which has {len(side.documents)} documents")
    totals = f"{len(text.sentences):,} and {len(standard.sentences):,} sentences in all"
    return CadecError(
        f"{text.name} does not match {standard.name}: document {number + 1} has {', '.join(sides)}; {totals}",
        "both need the same sentences a document, one a line, with a blank line between documents",
    )


def _short(line: str) -> str:
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"
