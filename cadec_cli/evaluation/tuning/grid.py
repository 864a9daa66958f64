"""A development set, reranked with many settings at once.

Every setting reranks the whole set: its choices are its own contexts, so each runs as documents of its own,
in step with all others, through the search that translates. Settings mostly choose alike, and what several of
them ask (one list after one context) is scored once, with all temperatures in one pass. N-best lists and
context-free scores are computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from cadec_cli.decoding.search.lattice import Column, LatticeSearch
from cadec_cli.decoding.state import Partial
from cadec_cli.engines.ahead import known_ahead
from cadec_cli.engines.protocols import Models, TranslationModel
from cadec_cli.errors import CadecError
from cadec_cli.evaluation.reporting import Advance, Counted, uncounted
from cadec_cli.evaluation.tuning.points import Point, measured
from cadec_cli.evaluation.tuning.settings import Setting
from cadec_cli.method.context import ContextPolicy
from cadec_cli.method.hypotheses import NBest
from cadec_cli.method.objectives import objective
from cadec_cli.method.options import Reading
from cadec_cli.method.terms import Scoring
from cadec_cli.text.sentences import split_sentences

CHUNK = 256  # sentences translated at once

T = TypeVar("T")
# A document of the lattice; None where there is nothing to choose from.
Columns = Sequence[Column | None]


def grid_search(models: Models, name: str, settings: Sequence[Setting], context: int) -> LatticeSearch:
    """The reranking search of all settings at once: it reads the D-LM at all their temperatures."""
    if models.language is None:
        raise CadecError("this bundle has no document language model: there is nothing to tune")
    temperatures = tuple(dict.fromkeys(setting.temperature for setting in settings))
    return LatticeSearch(
        objective(name),
        models.language,
        reading=Reading(temperatures),
        policy=ContextPolicy(context),
        ahead=known_ahead(models, objective(name)),
    )


def rerank_with_all(
    search: LatticeSearch,
    documents: Sequence[Columns],
    settings: Sequence[Setting],
    advance: Advance = lambda sentences: None,
) -> list[list[list[int]]]:
    """What each setting chooses: settings × documents × sentences."""
    temperatures = search.reading.temperatures
    scorings = [
        Scoring(search.objective.weighted(setting.weights), temperatures.index(setting.temperature))
        for setting in settings
    ]
    chosen: list[list[list[int]]] = [[[] for _ in documents] for _ in settings]
    beams = [[[Partial()] for _ in documents] for _ in settings]
    for step in range(max(map(len, documents), default=0)):
        live = [number for number, document in enumerate(documents) if step < len(document)]
        jobs = [
            (place, number, column)
            for number in live
            if (column := documents[number][step]) is not None
            for place in range(len(settings))
        ]
        extended = search.advance(
            [beams[place][number] for place, number, _ in jobs],
            [column for _, _, column in jobs],
            [scorings[place] for place, _, _ in jobs],
        )
        for (place, number, _), beam in zip(jobs, extended, strict=True):
            choice = beam[0].choice
            assert choice is not None
            beams[place][number] = [Partial(context=beam[0].context)]  # what was chosen is taken down here
            chosen[place][number].append(choice.index)
        for number in live:
            if documents[number][step] is None:
                for of_setting in chosen:
                    of_setting[number].append(0)
        advance(len(live))
    return chosen


@dataclass(frozen=True)
class Prepared:
    """A development set whose lists are made and scored as far as no context is needed."""

    search: LatticeSearch
    documents: Sequence[Columns]
    texts: Sequence[Sequence[Sequence[str]]]
    references: Sequence[Sequence[str]]
    lines: Sequence[int]

    def points(self, settings: Sequence[Setting], counted: Counted = uncounted) -> tuple[Point, list[Point]]:
        """Translate it with every setting; the sentence level's figures come first."""
        with counted("reranked", sum(map(len, self.documents))) as advance:
            chosen = rerank_with_all(self.search, self.documents, settings, advance)
        return measured(settings, chosen, self.texts, self.references, self.lines)


def prepared(
    models: Models,
    sources: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    name: str,
    settings: Sequence[Setting],
    *,
    context: int,
    nbest: int,
    split_language: str | None = None,
    counted: Counted = uncounted,
) -> Prepared:
    """Make the lists of a development set, to be reranked at the temperatures of some settings.

    With `split_language` a line is a paragraph of that language: its sentences are translated one by one, and
    measured as one.
    """
    lines = [
        [[line] if split_language is None else split_sentences(line, split_language) for line in document]
        for document in sources
    ]
    sources = [[sentence for line in document for sentence in line] for document in lines]
    search = grid_search(models, name, settings, context)
    lists: list[NBest] = []
    columns: list[Column | None] = []
    with counted("translated", sum(map(len, sources))) as advance:
        for chunk in _chunks(models.translation, sources):
            lists += models.translation.nbest(chunk, nbest)
            columns += search.columns(lists[len(columns) :])
            advance(len(chunk))
    texts = _by_document([[hypothesis.text for hypothesis in nbest.hypotheses] for nbest in lists], sources)
    return Prepared(
        search,
        _by_document(columns, sources),
        texts,
        references,
        [len(line) for document in lines for line in document],
    )


def _chunks(model: TranslationModel, documents: Sequence[Sequence[str]]) -> list[list[str]]:
    """The sentences of all documents, so many at once: without context no document is alone."""
    sentences = [sentence for document in documents for sentence in document]
    for number, sentence in enumerate(sentences, 1):
        if not model.fits(sentence):
            raise CadecError(f"sentence {number} is too long for the model: {sentence[:60]!r}…")
    return [sentences[start : start + CHUNK] for start in range(0, len(sentences), CHUNK)]


def _by_document(flat: Sequence[T], documents: Sequence[Sequence[str]]) -> list[list[T]]:
    """One thing per sentence, put into documents again."""
    items = iter(flat)
    return [[next(items) for _ in document] for document in documents]
