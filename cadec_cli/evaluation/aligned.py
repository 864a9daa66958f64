"""Texts that belong together line by line: hypotheses, references, sources, all in the same documents.

Plain text, one sentence per line, a blank line between documents. All texts must agree with the first one in
their documents and in the sentences of each; where they do not, the first document that differs is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from cadec_cli.arrays import Ints
from cadec_cli.errors import CadecError
from cadec_cli.fs.read import MAX_INPUT_BYTES, read_text
from cadec_cli.text.documents import documents_of, is_blank
from cadec_cli.text.sentences import visible_span

# How long work reports progress and warnings, without knowing of any terminal.


Warn = Callable[[str], None]
Advance = Callable[[int], None]
# (name of the work, number of sentences) → a context that gives a function to count finished sentences
CountProgress = Callable[[str, int], AbstractContextManager[Advance]]


def no_warning(message: str) -> None:
    """Ignore a warning."""


@contextmanager
def no_progress(what: str, total: int) -> Iterator[Advance]:
    """Show no progress."""
    yield lambda sentences: None


# The most characters of a line that an error message shows.
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
    def document_numbers(self) -> Ints:
        """The document that each sentence is in, from 0: (sentences,)."""
        return np.repeat(np.arange(len(self.documents)), self.shape)

    @cached_property
    def sentence_numbers(self) -> Ints:
        """The place of each sentence in its document, from 0: (sentences,)."""
        return np.concatenate([np.arange(length) for length in self.shape])


@dataclass(frozen=True)
class _File:
    name: str
    lines: tuple[str, ...]

    def text(self) -> AlignedText:
        return AlignedText(self.name, tuple(map(tuple, documents_of(self.lines, is_blank))))


def read_aligned(
    paths: Sequence[Path],
    encoding: str | None = None,
    warn: Warn = no_warning,
    *,
    most: int = MAX_INPUT_BYTES,
) -> list[AlignedText]:
    """Read files that must agree with the first of them, sentence by sentence.

    `warn` is called if a file has empty lines where the first one has sentences. A file of more than `most`
    bytes is refused.
    """
    if sum(str(path) == "-" for path in paths) > 1:
        raise CadecError("standard input can be read only once", "give - for one file, and paths for others")
    files = [_read(path, encoding, most) for path in paths]
    first = files[0].text()
    return [first, *(_agreeing(file, files[0], first, warn) for file in files[1:])]


def _read(path: Path, encoding: str | None, most: int) -> _File:
    file = read_text(path, encoding, most=most)
    lines = [_trim(line) for line in file.text.split("\n" if "\n" in file.text else "\r")]
    if not lines[-1]:  # the last line has a line break
        lines.pop()
    if not any(lines):
        raise CadecError(
            f"{file.name} has no sentences", "one sentence per line, a blank line between documents"
        )
    return _File(file.name, tuple(lines))


def _trim(line: str) -> str:
    start, end = visible_span(line, 0, len(line))
    return line[start:end]


def _agreeing(file: _File, first: _File, standard: AlignedText, warn: Warn) -> AlignedText:
    text = file.text()
    if text.shape == standard.shape:
        return text
    restored = _with_empty_sentences(file, first, standard)
    if restored is not None:
        empty = sum(not sentence for sentence in restored.sentences)
        plural = "s" if empty != 1 else ""
        warn(f"{file.name} has {empty} empty line{plural} where {first.name} has sentences")
        return restored
    raise _disagreement(text, standard)


def _with_empty_sentences(file: _File, first: _File, standard: AlignedText) -> AlignedText | None:
    """Read blank lines as empty sentences where the first file has text at the very same lines.

    A system may give nothing for a sentence. Only line numbers can tell that from the end of a document, so
    both files must have as many lines, and every blank line of the first must be blank here too.
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
    number = next((n for n, (count, wanted) in enumerate(counts) if count != wanted), None)
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
        "both need the same number of sentences per document, one per line, a blank line between documents",
    )


def _short(line: str) -> str:
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"
