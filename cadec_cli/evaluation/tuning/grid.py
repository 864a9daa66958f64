"""A development set, reranked with many settings at once.

Every setting reranks the whole set: its choices are its own contexts, so each runs as documents of its own,
in step with all others, through the search that translates and from the lists that it chooses from. Settings
mostly choose alike, and what several of them ask (one list after one context) is scored once, with all
temperatures in one pass. N-best lists and context-free scores are computed once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from cadec_cli.decoding.search.lattice import Column, LatticeSearch
from cadec_cli.decoding.state import PartialPath
from cadec_cli.decoding.translator import Translator
from cadec_cli.engines.protocols import Models
from cadec_cli.errors import CadecError
from cadec_cli.evaluation.reporting import Advance, CountProgress, no_progress
from cadec_cli.evaluation.tuning.points import Point, measure_settings
from cadec_cli.evaluation.tuning.settings import Setting
from cadec_cli.method.options import ScoringOptions, TranslationOptions
from cadec_cli.method.terms import Scoring
from cadec_cli.text.sentences import split_sentences

CHUNK = 256  # sentences translated at once

# A document of the lattice; None where there is nothing to choose from.
Columns = Sequence[Column | None]


def reranking_translator(
    models: Models, options: TranslationOptions, name: str, language: str = ""
) -> Translator:
    """What translates with some options, by reranking and with another objective, whose weights are tuned."""
    if models.language is None:
        raise CadecError("this bundle has no document language model: there is nothing to tune")
    reranking = dataclasses.replace(options, search="rerank", objective=name, weight={})
    return Translator(models, reranking, language=language)


def grid_search(translator: Translator, settings: Sequence[Setting]) -> LatticeSearch:
    """The translator's search for all settings at once: it reads the D-LM at all their temperatures."""
    assert isinstance(translator.search, LatticeSearch), "only lists are reranked"
    temperatures = tuple(dict.fromkeys(setting.temperature for setting in settings))
    return dataclasses.replace(
        translator.search, scoring_options=ScoringOptions(temperatures, translator.options.alpha)
    )


def rerank_with_all(
    search: LatticeSearch,
    documents: Sequence[Columns],
    settings: Sequence[Setting],
    advance: Advance = lambda sentences: None,
) -> list[list[list[int]]]:
    """What each setting chooses: settings × documents × sentences."""
    temperatures = search.scoring_options.temperatures
    scorings = [
        Scoring(search.objective.with_weights(setting.weights), temperatures.index(setting.temperature))
        for setting in settings
    ]
    chosen: list[list[list[int]]] = [[[] for _ in documents] for _ in settings]
    beams = [[[PartialPath()] for _ in documents] for _ in settings]
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
            beams[place][number] = [
                PartialPath(context=beam[0].context)
            ]  # what was chosen is taken down here
            chosen[place][number].append(choice.index)
        for number in live:
            if documents[number][step] is None:
                for of_setting in chosen:
                    of_setting[number].append(0)
        advance(len(live))
    return chosen


@dataclass(frozen=True)
class PreparedLists:
    """A development set whose lists are made and scored as far as no context is needed."""

    search: LatticeSearch
    documents: Sequence[Columns]
    texts: Sequence[Sequence[Sequence[str]]]
    references: Sequence[Sequence[str]]
    lines: Sequence[int]

    def points(
        self, settings: Sequence[Setting], counted: CountProgress = no_progress
    ) -> tuple[Point, list[Point]]:
        """Translate it with every setting; the sentence level's figures come first."""
        with counted("reranked", sum(map(len, self.documents))) as advance:
            chosen = rerank_with_all(self.search, self.documents, settings, advance)
        return measure_settings(settings, chosen, self.texts, self.references, self.lines)


def prepare_lists(
    translator: Translator,
    sources: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    settings: Sequence[Setting],
    *,
    split_language: str | None = None,
    counted: CountProgress = no_progress,
) -> PreparedLists:
    """Make the lists that a translator would choose from, to be reranked at the temperatures of settings.

    With `split_language` a line is a paragraph of that language: its sentences are translated one by one, and
    measured as one.
    """
    lines = [
        [[line] if split_language is None else split_sentences(line, split_language) for line in document]
        for document in sources
    ]
    sentences = [sentence for document in lines for line in document for sentence in line]
    search = grid_search(translator, settings)
    made: list[list[tuple[Column | None, Sequence[str]]]] = []
    with counted("translated", len(sentences)) as advance:
        for start in range(0, len(sentences), CHUNK):
            lists = translator.lists(sentences[start : start + CHUNK])
            columns = iter(search.columns([piece.nbest for pieces in lists for piece in pieces]))
            made += [[(next(columns), piece.texts) for piece in pieces] for pieces in lists]
            advance(len(lists))
    of_sentence = iter(made)
    by_line = [
        [[piece for _ in line for piece in next(of_sentence)] for line in document] for document in lines
    ]
    pieces = [[piece for line in document for piece in line] for document in by_line]
    return PreparedLists(
        search,
        [[column for column, _ in document] for document in pieces],
        [[texts for _, texts in document] for document in pieces],
        references,
        [len(line) for document in by_line for line in document],
    )
