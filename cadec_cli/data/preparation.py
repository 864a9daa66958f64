"""From rows of text to shards: split, clean, encode, in many processes and in order, in bounded memory."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cadec_cli.data.cleaning import Cleaner, CleaningOptions
from cadec_cli.data.corpora import CHUNK, CHUNKS_AHEAD, Row, chunk_items
from cadec_cli.data.shards import ShardWriter
from cadec_cli.errors import CadecError, UsageError, option
from cadec_cli.parallel import Task, in_order
from cadec_cli.parallel.processes import local_pool
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.text.protected.spans import PLACEHOLDERS, with_placeholders
from cadec_cli.text.sentences import split_sentences
from cadec_cli.text.token_text import CorpusText, Loader


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
