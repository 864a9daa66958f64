"""Finding the temperature and the weight of an objective on a development set.

Every setting reranks the whole set: its choices are its own contexts, so each runs as documents of its own,
in step with all others, through the search that translates. Settings mostly choose alike, and what several of
them ask (one list after one context) is scored once, with all temperatures in one pass. N-best lists and
context-free scores are computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from cadec_cli.decoding.search.lattice import Column, LatticeSearch
from cadec_cli.decoding.state import Partial
from cadec_cli.engines.ahead import known_ahead
from cadec_cli.engines.protocols import Models, TranslationModel
from cadec_cli.errors import CadecError
from cadec_cli.evaluation.reporting import Advance, Counted, uncounted
from cadec_cli.method.context import ContextPolicy
from cadec_cli.method.hypotheses import NBest
from cadec_cli.method.objectives import objective
from cadec_cli.method.options import Reading
from cadec_cli.method.terms import Scoring
from cadec_cli.text.sentences import split_sentences

CHUNK = 256  # sentences translated at once

PROTOCOLS = ("best", "strongest")


@dataclass(frozen=True)
class Setting:
    """What is tuned: the temperature, and the D-LM's weight; or the weights of an objective by name."""

    temperature: float
    weight: float = 1.0
    named: tuple[tuple[str, float], ...] = ()  # where there are several

    @property
    def weights(self) -> dict[str, float]:
        """All weights by name."""
        return dict(self.named) or {"lm": self.weight}

    @property
    def strength(self) -> tuple[float, float]:
        """Sorts settings by how much the D-LM has to say: a large weight, then a low temperature."""
        return (self.weight, -self.temperature)


@dataclass(frozen=True)
class Point:
    """How a setting did; `changed` is the share of sentences that it translates otherwise than the S-NMT."""

    setting: Setting
    bleu: float
    chrf: float
    changed: float


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


def measured(
    settings: Sequence[Setting],
    chosen: Sequence[Sequence[Sequence[int]]],
    texts: Sequence[Sequence[Sequence[str]]],
    references: Sequence[Sequence[str]],
    lines: Sequence[int] | None = None,
) -> tuple[Point, list[Point]]:
    """The sentence level's figures and each setting's; `texts` are the hypotheses of every sentence.

    References are of lines; `lines` tells how many sentences each has, all one where it is not given.
    """
    wanted = [text for document in references for text in document]
    sizes = lines or [1] * len(wanted)
    nothing = [[0] * len(document) for document in texts]
    level = _point(Setting(1.0, 0.0), nothing, texts, wanted, sizes)
    return level, [
        _point(setting, of_setting, texts, wanted, sizes)
        for setting, of_setting in zip(settings, chosen, strict=True)
    ]


def _point(
    setting: Setting,
    chosen: Sequence[Sequence[int]],
    texts: Sequence[Sequence[Sequence[str]]],
    wanted: Sequence[str],
    lines: Sequence[int],
) -> Point:
    import sacrebleu

    sentences = (
        hypotheses[index] if hypotheses else ""
        for document, indices in zip(texts, chosen, strict=True)
        for hypotheses, index in zip(document, indices, strict=True)
    )
    picked = [" ".join(islice(sentences, size)) for size in lines]
    changed = [index != 0 for indices in chosen for index in indices]
    return Point(
        setting,
        sacrebleu.corpus_bleu(picked, [wanted]).score,
        sacrebleu.corpus_chrf(picked, [wanted]).score,
        sum(changed) / max(len(changed), 1),
    )


def choose(protocol: str, level: Point, points: Sequence[Point]) -> Point:
    """The paper's two protocols: the best BLEU; or the strongest D-LM that does not lower it."""
    if protocol == "best":
        return max(points, key=lambda point: (point.bleu, point.chrf))
    good = [point for point in points if point.bleu >= level.bleu]
    if not good:
        raise CadecError(
            f"every setting has a lower BLEU than the sentence level's {level.bleu:.2f}",
            "try higher temperatures or smaller weights",
        )
    return max(good, key=lambda point: point.setting.strength)
