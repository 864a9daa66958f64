"""Translates the documents of generative sets in several ways at once, in this process or by workers.

The n-best lists of a document are made once, in the largest size of all rows; a row of a smaller size reads
the beginning of each. All rows of a size that rerank choose from them in one pass of the D-LM, each in the
context of its own choices; lattice searches follow their paths through the same lists. The sentence level is
the first hypothesis of each list. Searches that make no lists translate on their own.

Parts of a set are logged when they are done, in the user's directory of states: an interrupted evaluation
can be resumed, and finds what an uninterrupted one finds.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import json
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from cadec_cli.decoding.search.lattice import LatticeSearch
from cadec_cli.decoding.state import State
from cadec_cli.decoding.translator import Listed, Translator
from cadec_cli.decoding.units import waves
from cadec_cli.engines.protocols import AnyTerm
from cadec_cli.errors import CadecError, Interrupted, WriteError
from cadec_cli.evaluation.generative.sets import GenerativeSet
from cadec_cli.evaluation.tuning.search import rerank_with_all
from cadec_cli.fs.atomic import write_errors
from cadec_cli.fs.locks import remove_if_unlocked
from cadec_cli.fs.paths import state_directory
from cadec_cli.jobs.done import DoneDocuments
from cadec_cli.jobs.job import TranslationJob
from cadec_cli.jobs.model_request import ModelRequest
from cadec_cli.method.hypotheses import NBest
from cadec_cli.method.objectives import NMT, OPTIONAL, Objective
from cadec_cli.method.options import (
    ScoringOptions,
    TranslationOptions,
    named_weights,
    options_as_data,
    with_flags,
)
from cadec_cli.method.searches import LISTS, search_kind
from cadec_cli.method.terms import Scoring
from cadec_cli.parallel import Results, Task, WorkerLostError, WorkerPool, in_order

# Documents that are translated together: the same ones in one process and in many, resumed or not.
TOGETHER = 8
SENTENCE = "sentence"
# Logs of interrupted evaluations that are kept; the oldest go first.
MOST_LOGS = 20

Documents = Sequence[Sequence[str]]
Pieces = Sequence[Sequence[NBest]]  # the lists of every document, one per piece of a sentence


def rows_of(
    options: TranslationOptions,
    searches: Sequence[str] = (),
    objectives: Sequence[str] = (),
    temperatures: Sequence[float] = (),
    weights: Sequence[str] = (),
    sizes: Sequence[int] = (),
    terms: Sequence[str] = (),
    readings: Sequence[str] = (),
) -> list[TranslationOptions]:
    """Every search with every objective, weight, temperature, size of lists, and what the D-LM reads.

    What is not given is that of `options`. Weights are texts such as `lm=0.5`, terms such as
    `glossary.file=words.tsv`. A search that uses no objective makes one row, as does an objective that uses
    no D-LM for all temperatures. The sentence level makes none: it is always measured.
    """
    rows: list[TranslationOptions] = []
    for search in searches or [options.search]:
        if search == SENTENCE:
            continue
        if not search_kind(search).reads_context:
            rows.append(with_flags(options, {"search": search}))
            continue
        from_lists = search_kind(search).needs == LISTS
        asked_for: tuple[Sequence[Any], ...] = (objectives, readings, weights, temperatures, sizes)
        for objective, reads, weight, temperature, size in itertools.product(
            *(some or [None] for some in asked_for)
        ):
            objective = objective or options.objective
            given = named_weights(weight) or (options.weight if objective == options.objective else {})
            if objective == SENTENCE and not any(name in OPTIONAL and given[name] for name in given):
                continue
            asked: dict[str, Any] = {"search": search, "objective": objective, "weight": weight}
            if reads is not None:
                asked["reads"] = reads
            row = with_flags(options, {**asked, **({"term": terms} if terms else {})})
            if temperature is not None and row.weighted_objective.uses_lm:
                row = with_flags(row, {"temperature": temperature})
            rows.append(with_flags(row, {"nbest": size}) if size is not None and from_lists else row)
    return [row for number, row in enumerate(rows) if row not in rows[:number]]


def list_sizes(options: TranslationOptions, rows: Sequence[TranslationOptions]) -> list[int]:
    """The sizes of lists that the rows choose from, in ascending order; `options` has it if none does."""
    sizes = {row.nbest for row in rows if search_kind(row.search).needs == LISTS}
    return sorted(sizes or {options.nbest})


@dataclass(frozen=True)
class Hypotheses:
    """The n-best list of a sentence as it would be written, best first, with log p(y|x).

    Ranks are counted from 0. They have gaps where hypotheses would be written alike, and repetitions where a
    sentence has several pieces with a list each.
    """

    texts: tuple[str, ...]
    log_probs: tuple[float, ...]
    ranks: tuple[int, ...]

    def beginning(self, size: int) -> Hypotheses:
        """What a list of this size would have."""
        kept = [number for number, rank in enumerate(self.ranks) if rank < size]
        return Hypotheses(
            tuple(self.texts[number] for number in kept),
            tuple(self.log_probs[number] for number in kept),
            tuple(self.ranks[number] for number in kept),
        )


@dataclass(frozen=True)
class Translated:
    """A document in several translations: sentence by sentence, at the sentence level and by every row."""

    level: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    last: Hypotheses  # of the last sentence

    def record(self) -> list[Any]:
        """The translations as plain data, for the log."""
        last = self.last
        return [self.level, self.rows, [last.texts, last.log_probs, last.ranks]]

    @classmethod
    def of_record(cls, record: Any) -> Translated:
        """Read a record."""
        level, rows, (texts, log_probs, ranks) = record
        last = Hypotheses(tuple(texts), tuple(log_probs), tuple(ranks))
        return cls(tuple(level), tuple(map(tuple, rows)), last)


class DocumentTranslators:
    """The models of a job, ready to translate documents by all rows."""

    def __init__(self, job: TranslationJob, rows: Sequence[TranslationOptions]) -> None:
        """Build the searches of all rows; options that the models can't serve are a CadecError."""
        language = job.languages.source_code
        plain = dataclasses.replace(
            job.options,
            search="rerank",
            objective=SENTENCE,
            weight={},
            term={},
            formality="auto",
            nbest=list_sizes(job.options, rows)[-1],
        )
        self.rows = tuple(rows)
        self._lists = Translator(job.models, plain, language=language)
        self._translators = [Translator(job.models, row, language=language) for row in rows]

    def translate(self, documents: Documents) -> list[Translated]:
        """Translate documents by all rows."""
        lists = iter(self._lists.lists([sentence for document in documents for sentence in document]))
        listed = [[next(lists) for _ in document] for document in documents]
        pieces = [[piece.nbest for sentence in document for piece in sentence] for document in listed]
        level = [[0] * len(document) for document in pieces]
        reranked = self._rerank(pieces)
        by_row = []
        for number, (row, translator) in enumerate(zip(self.rows, self._translators, strict=True)):
            if number in reranked:
                by_row.append(_texts(listed, reranked[number]))
            elif isinstance(translator.search, LatticeSearch):
                by_row.append(_texts(listed, _best_paths(translator.search, _beginnings(pieces, row.nbest))))
            else:
                by_row.append(_translate(translator, documents))
        return [
            Translated(first, tuple(of_row[number] for of_row in by_row), _hypotheses(document[-1]))
            for number, (document, first) in enumerate(zip(listed, _texts(listed, level), strict=True))
        ]

    @cached_property
    def _reranking(self) -> dict[int, dict[int, LatticeSearch]]:
        """The searches of the rows that rerank, by the size of their lists and the number of the row."""
        by_size: dict[int, dict[int, LatticeSearch]] = {}
        for number, (row, translator) in enumerate(zip(self.rows, self._translators, strict=True)):
            if row.search == "rerank" and isinstance(translator.search, LatticeSearch):
                by_size.setdefault(row.nbest, {})[number] = translator.search
        return by_size

    def _rerank(self, pieces: Pieces) -> dict[int, list[list[int]]]:
        """The hypotheses that the rows that rerank choose, by the number of the row: documents × pieces."""
        chosen: dict[int, list[list[int]]] = {}
        for size, searches in self._reranking.items():
            search, scorings = _join(list(searches.values()))
            lists = _beginnings(pieces, size)
            columns = iter(search.columns([nbest for document in lists for nbest in document]))
            prepared = [[next(columns) for _ in document] for document in lists]
            chosen |= zip(searches, rerank_with_all(search, prepared, scorings), strict=True)
        return chosen


def _join(searches: Sequence[LatticeSearch]) -> tuple[LatticeSearch, list[Scoring]]:
    """One search that computes what several that rerank need, and each one's scoring."""
    with_lm = [search for search in searches if search.language is not None] or searches
    own = [search.scoring_options.temperatures[0] for search in searches]
    temperatures = tuple(dict.fromkeys(search.scoring_options.temperatures[0] for search in with_lm))
    extra_terms: dict[tuple[str, ...], AnyTerm] = {
        tuple(term.names): term for search in searches for term in search.extra_terms
    }
    terms = dict.fromkeys(term for search in searches for term in search.objective.terms)
    shared = dataclasses.replace(
        with_lm[0],
        objective=Objective("every row's terms", lambda t, w: t[NMT], tuple(terms)),
        scoring_options=ScoringOptions(temperatures, with_lm[0].scoring_options.alpha),
        extra_terms=tuple(extra_terms.values()),
        policy=dataclasses.replace(with_lm[0].policy, lists=any(search.policy.lists for search in searches)),
    )
    scorings = [
        Scoring(search.objective, temperatures.index(temperature) if search.language is not None else 0)
        for search, temperature in zip(searches, own, strict=True)
    ]
    return shared, scorings


def _beginnings(pieces: Pieces, size: int) -> Pieces:
    """The first `size` hypotheses of every list."""
    return [
        [
            dataclasses.replace(nbest, hypotheses=nbest.hypotheses[:size])
            if len(nbest.hypotheses) > size
            else nbest
            for nbest in document
        ]
        for document in pieces
    ]


def _best_paths(search: LatticeSearch, pieces: Pieces) -> list[list[int]]:
    chosen: list[list[int]] = [[] for _ in pieces]
    for number, part in search.run(waves(pieces), State.at_start(len(pieces))):
        chosen[number].append(part.choice.index if part.choice is not None else 0)
    return chosen


def _texts(
    listed: Sequence[Sequence[Sequence[Listed]]], chosen: Sequence[Sequence[int]]
) -> list[tuple[str, ...]]:
    """The sentences of every document, made of the chosen hypotheses of their pieces."""
    written = []
    for document, indices in zip(listed, chosen, strict=True):
        following = iter(indices)
        written.append(
            tuple(" ".join(piece.texts[next(following)] for piece in sentence) for sentence in document)
        )
    return written


def _translate(translator: Translator, documents: Documents) -> list[tuple[str, ...]]:
    written: list[list[str]] = [[] for _ in documents]
    for translation in translator.translate_documents(documents):
        written[translation.document].append(translation.text)
    return list(map(tuple, written))


def _hypotheses(pieces: Sequence[Listed]) -> Hypotheses:
    """The hypotheses of a sentence, the first one first.

    If the sentence has several pieces, each hypothesis differs from the first in one of them.
    """
    first = [piece.texts[0] for piece in pieces]
    best = sum(piece.nbest.hypotheses[0].log_prob for piece in pieces if piece.nbest.hypotheses)
    found = {" ".join(first): (best, 0)}
    for number, piece in enumerate(pieces):
        for rank, (text, hypothesis) in enumerate(zip(piece.texts, piece.nbest.hypotheses, strict=False)):
            whole = " ".join([*first[:number], text, *first[number + 1 :]])
            log_prob = best + hypothesis.log_prob - piece.nbest.hypotheses[0].log_prob
            found.setdefault(whole, (log_prob, rank))
    log_probs, ranks = zip(*found.values(), strict=True)
    return Hypotheses(tuple(found), log_probs, ranks)


def start_generative_worker(
    request: ModelRequest, options: TranslationOptions, rows: Sequence[TranslationOptions]
) -> Callable[[Documents], list[Translated]]:
    """Open the job in a worker process; return a function that translates some documents."""
    return DocumentTranslators(TranslationJob.open(request, options), rows).translate


@dataclass(frozen=True)
class GenerativeWork:
    """Sets that a job translates by all rows; what is done is kept, so that the work can be resumed."""

    sets: Sequence[GenerativeSet]
    job: TranslationJob
    rows: Sequence[TranslationOptions]

    @contextlib.contextmanager
    def log(
        self,
        *,
        resume: bool = False,
        start_over: bool = False,
        warn: Callable[[str], None] = lambda text: None,
    ) -> Iterator[DoneDocuments | None]:
        """Open the log of what is done; it is removed at the end, if there is no error.

        Without `resume`, an unfinished log of the same work is a CadecError, unless `start_over` removes it.
        If no log can be written, the user is warned, and there is none. After Ctrl-C, `Interrupted` says how
        many items are done.
        """
        path = self._log_path
        try:
            with write_errors(path.parent):
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if start_over and not resume:
                remove_if_unlocked(path)
            if resume:
                done = DoneDocuments.resume(path, self._origin, SUBJECT, "part")
            else:
                done = DoneDocuments.begin(path, self._origin, SUBJECT)
        except WriteError as error:
            warn(f"this evaluation could not be resumed: {error.marked_message}")
            yield None
            return
        _remove_oldest(path.parent)
        with done:
            if done.damage:
                warn(done.damage)
            try:
                yield done
            except KeyboardInterrupt:
                items = sum(len(one.items) for one in self.sets)
                raise Interrupted(
                    f"{self.items_in(done):,} of {items:,} items are done; {done.resume_hint}"
                ) from None
            done.finish()

    def items_in(self, done: DoneDocuments) -> int:
        """How many items are in a log."""
        return sum(len(part) for part, key in zip(self._parts, self._keys, strict=True) if key in done)

    def translate(
        self, pool: WorkerPool | None = None, threads: int = 1, done: DoneDocuments | None = None
    ) -> Iterator[tuple[GenerativeSet, Iterator[Translated]]]:
        """Translate with a pool, whose workers have `threads` threads each, or in this process.

        Yields each set with the translations of its items. Consume them before the next set: all sets share
        one stream of results. Parts that are in the log are read from it, and the others are added to it.
        """
        known = [done is not None and key in done for key in self._keys]
        made = self._make(
            [number for number, is_known in enumerate(known) if not is_known], pool, threads, done
        )

        def results() -> Iterator[Translated]:
            for key, part, is_known in zip(self._keys, self._parts, known, strict=True):
                if done is not None and is_known:
                    yield from map(Translated.of_record, done.sentences(key, len(part)))
                else:
                    yield from next(made)

        translations = results()
        for one in self.sets:
            yield one, itertools.islice(translations, len(one.items))

    def _make(
        self, numbers: Sequence[int], pool: WorkerPool | None, threads: int, done: DoneDocuments | None
    ) -> Iterator[list[Translated]]:
        """Translate some of the parts; each is logged as soon as it is there, and yielded in its turn."""
        if not numbers:
            return
        parts = (self._parts[number] for number in numbers)
        found: Results[list[Translated]]
        if pool is None:
            found = enumerate(map(DocumentTranslators(self.job, self.rows).translate, parts))
        else:
            request = self.job.request.for_workers(self.job.bundle, threads)
            found = pool.run(Task(start_generative_worker, (request, self.job.options, self.rows)), parts)

        def log() -> Generator[tuple[int, list[Translated] | WorkerLostError]]:
            try:
                for number, result in found:
                    if done is not None and not isinstance(result, WorkerLostError):
                        done.add(self._keys[numbers[number]], [one.record() for one in result])
                    yield number, result
            finally:
                if pool is not None:
                    cast("Generator[Any, None, None]", found).close()

        yield from in_order(log())

    @cached_property
    def _parts(self) -> list[Documents]:
        """The documents of all sets, in the parts that are translated together."""
        return [
            [item.document for item in one.items[start : start + TOGETHER]]
            for one in self.sets
            for start in range(0, len(one.items), TOGETHER)
        ]

    @cached_property
    def _keys(self) -> list[str]:
        return [_digest(part) for part in self._parts]

    @property
    def _origin(self) -> dict[str, Any]:
        """Everything that the translation of a part depends on."""
        return {
            **dict(self.job.origin),
            "options": options_as_data(self.job.options),
            "rows": [options_as_data(row) for row in self.rows],
        }

    @property
    def _log_path(self) -> Path:
        """The place of the log: each kind of work has its own."""
        return state_directory() / "evaluations" / f"{_digest([self._origin, self._keys])[:32]}.log"


SUBJECT = "evaluation"


def _digest(value: Any) -> str:
    content = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    return hashlib.sha256(content).hexdigest()


def _remove_oldest(directory: Path) -> None:
    """Remove all but the newest logs, except those that another process works on."""
    with contextlib.suppress(OSError):
        logs = sorted(directory.glob("*.log"), key=os.path.getmtime, reverse=True)
        for path in logs[MOST_LOGS:]:
            with contextlib.suppress(CadecError):
                remove_if_unlocked(path)
