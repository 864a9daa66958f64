"""Translates the documents of generative sets in several ways at once, in this process or by workers.

The n-best lists of a document are made once. All rows that rerank choose from them in one pass of the D-LM,
each in the context of its own choices; lattice searches follow their paths through the same lists. The
sentence level is the first hypothesis of each list. Searches that make no lists translate on their own.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cadec_cli.decoding.search.lattice import LatticeSearch
from cadec_cli.decoding.state import State
from cadec_cli.decoding.translator import Listed, Translator
from cadec_cli.decoding.units import waves
from cadec_cli.engines.protocols import AnyTerm
from cadec_cli.evaluation.generative.sets import GenerativeSet, Item
from cadec_cli.evaluation.tuning.search import rerank_with_all
from cadec_cli.jobs.job import TranslationJob
from cadec_cli.jobs.model_request import ModelRequest
from cadec_cli.method.hypotheses import NBest
from cadec_cli.method.objectives import NMT, Objective
from cadec_cli.method.options import ScoringOptions, TranslationOptions, with_flags
from cadec_cli.method.searches import search_kind
from cadec_cli.method.terms import Scoring
from cadec_cli.parallel import Task, WorkerPool, in_order

# Documents that are translated together: the same ones in one process and in many.
TOGETHER = 8
SENTENCE = "sentence"

Documents = Sequence[Sequence[str]]


def rows_of(
    options: TranslationOptions,
    searches: Sequence[str] = (),
    objectives: Sequence[str] = (),
    temperatures: Sequence[float] = (),
    flags: Mapping[str, Any] | None = None,
) -> list[TranslationOptions]:
    """Every search with every objective at every temperature; what is not given is that of `options`.

    `flags` are options of the objective, by name. Searches that use no objective, and objectives that use no
    D-LM, make one row. The sentence level makes none: it is always measured.
    """
    rows: list[TranslationOptions] = []
    for search in searches or [options.search]:
        if search == SENTENCE:
            continue
        if not search_kind(search).reads_context:
            rows.append(with_flags(options, {"search": search}))
            continue
        for objective in objectives or [options.objective]:
            if objective == SENTENCE:
                continue
            asked = {**(flags or {}), "search": search, "objective": objective}
            one = with_flags(options, asked)
            if one.weighted_objective.uses_lm and temperatures:
                rows += [with_flags(options, {**asked, "temperature": t}) for t in temperatures]
            else:
                rows.append(one)
    return [row for number, row in enumerate(rows) if row not in rows[:number]]


@dataclass(frozen=True)
class Hypotheses:
    """The n-best list of a sentence as it would be written, best first, with log p(y|x)."""

    texts: tuple[str, ...]
    log_probs: tuple[float, ...]


@dataclass(frozen=True)
class Translated:
    """A document in several translations: sentence by sentence, at the sentence level and by every row."""

    level: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    last: Hypotheses  # of the last sentence


class DocumentTranslators:
    """The models of a job, ready to translate documents by all rows."""

    def __init__(self, job: TranslationJob, rows: Sequence[TranslationOptions]) -> None:
        """Build the searches of all rows; options that the models can't serve are a CadecError."""
        language = job.languages.source_code
        plain = dataclasses.replace(
            job.options, search="rerank", objective=SENTENCE, weight={}, term={}, formality="auto"
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
        reranked = iter(self._rerank(pieces))
        by_row = []
        for row, translator in zip(self.rows, self._translators, strict=True):
            if row.search == "rerank":
                by_row.append(_texts(listed, next(reranked)))
            elif isinstance(translator.search, LatticeSearch):
                by_row.append(_texts(listed, _best_paths(translator.search, pieces)))
            else:
                by_row.append(_translate(translator, documents))
        return [
            Translated(first, tuple(of_row[number] for of_row in by_row), _hypotheses(document[-1]))
            for number, (document, first) in enumerate(zip(listed, _texts(listed, level), strict=True))
        ]

    @cached_property
    def _reranking(self) -> tuple[LatticeSearch, list[Scoring]] | None:
        """One search that computes what all rows that rerank need, and each row's scoring."""
        searches = [
            translator.search
            for row, translator in zip(self.rows, self._translators, strict=True)
            if row.search == "rerank" and isinstance(translator.search, LatticeSearch)
        ]
        if not searches:
            return None
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
        )
        scorings = [
            Scoring(search.objective, temperatures.index(temperature) if search.language is not None else 0)
            for search, temperature in zip(searches, own, strict=True)
        ]
        return shared, scorings

    def _rerank(self, pieces: Sequence[Sequence[NBest]]) -> list[list[list[int]]]:
        """The hypotheses that the rows that rerank choose: rows × documents × pieces."""
        if self._reranking is None:
            return []
        search, scorings = self._reranking
        columns = iter(search.columns([nbest for document in pieces for nbest in document]))
        return rerank_with_all(search, [[next(columns) for _ in document] for document in pieces], scorings)


def _best_paths(search: LatticeSearch, pieces: Sequence[Sequence[NBest]]) -> list[list[int]]:
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
    found = {" ".join(first): best}
    for number, piece in enumerate(pieces):
        for text, hypothesis in zip(piece.texts, piece.nbest.hypotheses, strict=False):
            whole = " ".join([*first[:number], text, *first[number + 1 :]])
            found.setdefault(whole, best + hypothesis.log_prob - piece.nbest.hypotheses[0].log_prob)
    return Hypotheses(tuple(found), tuple(found.values()))


def start_generative_worker(
    request: ModelRequest, options: TranslationOptions, rows: Sequence[TranslationOptions]
) -> Callable[[Documents], list[Translated]]:
    """Open the job in a worker process; return a function that translates some documents."""
    return DocumentTranslators(TranslationJob.open(request, options), rows).translate


def translate_sets(
    sets: Sequence[GenerativeSet],
    job: TranslationJob,
    rows: Sequence[TranslationOptions],
    pool: WorkerPool | None,
    threads: int,
) -> Iterator[tuple[GenerativeSet, Iterator[Translated]]]:
    """Translate sets with a pool, whose workers have `threads` threads each, or in this process.

    Yields each set with the translations of its items. Consume them before the next set: all sets share one
    stream of results.
    """
    parts = ([item.document for item in part] for one in sets for part in _parts(one.items))
    if pool is None:
        translators = DocumentTranslators(job, rows)
        results: Iterator[list[Translated]] = map(translators.translate, parts)
    else:
        task: Task[Documents, list[Translated]] = Task(
            start_generative_worker, (job.request.for_workers(job.bundle, threads), job.options, tuple(rows))
        )
        finished = pool.run(task, parts)
        results = in_order(finished)
    translations = itertools.chain.from_iterable(results)
    for one in sets:
        yield one, itertools.islice(translations, len(one.items))


def _parts(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    return (items[start : start + TOGETHER] for start in range(0, len(items), TOGETHER))
