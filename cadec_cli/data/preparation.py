"""From rows of text to shards: split, clean, encode, in many processes and in order, in bounded memory.

Corpora are read as a stream: lines, columns of tab-separated files, or aligned files. A row is one text per
language; None stands for the end of a document (at a blank line, or the file's end).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from cadec_cli.data.cleaning import Cleaner, CleaningOptions
from cadec_cli.data.shards import ShardWriter
from cadec_cli.errors import CadecError, UsageError, option
from cadec_cli.fs.read import read_lines
from cadec_cli.parallel import Task, in_order
from cadec_cli.parallel.processes import local_pool
from cadec_cli.text.documents import documents_of, is_blank
from cadec_cli.text.moses import MosesText
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.text.protected.spans import PLACEHOLDERS, with_placeholders
from cadec_cli.text.sentences import split_sentences
from cadec_cli.text.token_text import CorpusText, Loader

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


@dataclass(frozen=True)
class Encoded:
    """One sentence or pair, as text and as ids."""

    texts: Row
    ids: tuple[npt.NDArray[np.int32], ...]


# The result for a row: its sentences, each encoded or with the reason to leave it out; None is a boundary.
Outcome = list[Encoded | str] | None


@dataclass(frozen=True)
class PreparationOptions:
    """How rows become sentences."""

    split: bool = True  # lines into sentences; pairs are never split
    documents: bool = True  # rows between boundaries belong together; if not, each is a document
    dev_every: int = 0  # every n-th document goes to the dev shard; 0 for none
    processes: int = 0
    placeholders: bool = False  # pairs with text to copy come twice, the second time with placeholders


def prepare(
    rows: Iterable[Row | None],
    texts: Sequence[Loader],
    cleaning: CleaningOptions,
    options: PreparationOptions,
    writer: ShardWriter,
    dev_writer: ShardWriter | None = None,
) -> Iterator[Counter[str]]:
    """Fill a shard (and a dev shard); after every chunk, yield the counts so far, always the same object.

    A document ends at a sentence that is left out, so that no context reaches across the hole.
    """
    counts: Counter[str] = Counter()
    duplicates = Cleaner(CleaningOptions(drop_duplicates=cleaning.drop_duplicates))
    document = rows_of_document = 0
    pool = local_pool(options.processes, "processes")
    cleaning_alone = dataclasses.replace(cleaning, drop_duplicates=False)
    task = Task(
        _start_encoding,
        (tuple(texts), cleaning_alone, options.split, options.placeholders),
        window=CHUNKS_AHEAD * pool.size,
    )
    results = pool.run(task, chunk_items(rows, CHUNK))
    for outcomes in in_order(results):
        for outcome in outcomes:
            to_dev = options.dev_every and document % options.dev_every == options.dev_every - 1
            current = dev_writer if dev_writer is not None and to_dev else writer
            for item in outcome or ():
                reason = item if isinstance(item, str) else _duplicate_reason(item, duplicates, cleaning)
                if reason or isinstance(item, str):
                    counts[reason] += 1
                    current.end_document()
                else:
                    counts["kept"] += 1
                    current.add(*item.ids)
            rows_of_document += outcome is not None
            if outcome is None or not options.documents:
                current.end_document()
                document += rows_of_document > 0  # two blank lines are one boundary
                rows_of_document = 0
        counts["rows"] += sum(outcome is not None for outcome in outcomes)
        yield counts


def check_placeholders(texts: Sequence[CorpusText]) -> None:
    """Refuse placeholders unless the pipelines have pieces for them."""
    if len(texts) != 2:
        raise UsageError(f"{option('placeholders')} is for parallel text", "it takes two pipelines")
    for text in texts:
        if not isinstance(text, TextPipeline) or not set(PLACEHOLDERS) <= set(text.vocabulary):
            raise CadecError(
                f"the {text.language} pipeline has no pieces for placeholders",
                f"train it with `cadec train tokenizer {option('placeholders')}`",
            )


def count_documents(rows: Iterable[Row | None], enough: int, *, documents: bool = True) -> int:
    """Count the documents as `prepare` does, up to a limit."""
    count, within = 0, False
    for row in rows:
        if row is None:
            within = False
        elif not documents or not within:
            count, within = count + 1, True
            if count >= enough:
                break
    return count


def _duplicate_reason(item: Encoded, duplicates: Cleaner, cleaning: CleaningOptions) -> str:
    return "duplicate" if cleaning.drop_duplicates and not duplicates.accepts("\t".join(item.texts)) else ""


class _Worker:
    """The state that a process keeps between chunks."""

    def __init__(
        self, texts: Sequence[Loader], cleaning: CleaningOptions, split: bool, placeholders: bool
    ) -> None:
        self.texts = [load() for load in texts]
        self.placeholders = placeholders
        self.cleaner = Cleaner(cleaning, self.texts[0].language, self.texts[-1].language)
        self.split = split and len(texts) == 1

    def outcome(self, row: Row) -> list[Encoded | str]:
        if not self.split:
            encoded = [self._encode(row)]
            if self.placeholders and isinstance(encoded[0], Encoded):
                languages = (self.texts[0].language, self.texts[-1].language)
                if masked := with_placeholders(row[0], row[-1], languages):
                    encoded.append(self._encode(masked))
            return encoded
        return [self._encode((text,)) for text in split_sentences(row[0], self.texts[0].language)]

    def _encode(self, texts: Row) -> Encoded | str:
        if reason := self.cleaner.reason(*texts):
            return reason
        ids = tuple(np.array(own.encode(text), np.int32) for own, text in zip(self.texts, texts, strict=True))
        return Encoded(texts, ids) if all(map(len, ids)) else "empty"


def _start_encoding(
    texts: Sequence[Loader], cleaning: CleaningOptions, split: bool, placeholders: bool
) -> Callable[[list[Row | None]], list[Outcome]]:
    worker = _Worker(texts, cleaning, split, placeholders)
    return lambda rows: [None if row is None else worker.outcome(row) for row in rows]
