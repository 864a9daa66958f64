"""A development set, reranked with many settings at once.

Every setting reranks the whole set. Its choices are its own contexts, so each setting has its own copy of
the documents. All run in step, with the search and the lists of an ordinary translation. Settings mostly
choose alike: a list that several of them read after the same context is scored once, with all temperatures
in one pass. N-best lists and context-free scores are computed once.

For the C-score, temperature and weight are tried together: a higher weight at a higher temperature is a
different trade-off from a temperature alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

import numpy as np

from cadec_cli.arrays import Floats
from cadec_cli.decoding.scorer import Column
from cadec_cli.decoding.search.lattice import LatticeSearch
from cadec_cli.decoding.state import PartialPath
from cadec_cli.decoding.translator import Translator
from cadec_cli.engines.protocols import Models
from cadec_cli.errors import CadecError, option
from cadec_cli.evaluation.aligned import Advance, CountProgress, no_progress
from cadec_cli.evaluation.quality.measures import (
    FEWEST,
    Count,
    Difference,
    Measure,
    Resampling,
    bleu_measure,
    chrf_measure,
    difference,
)
from cadec_cli.method import objectives
from cadec_cli.method.options import DecodingDefaults, ScoringOptions, TranslationOptions
from cadec_cli.method.terms import Scoring
from cadec_cli.text.sentences import split_sentences

# Tried by default: for the C-score, every weight at every temperature; for the fusions, which the paper does
# not T-scale, the weights alone.
TEMPERATURES: tuple[float, ...] = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
WEIGHTS = (0.5, 1.0, 2.0, 4.0)
FUSION_WEIGHTS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5)


@dataclass(frozen=True)
class Setting:
    """A temperature and the D-LM's weight, or an objective's weights by name."""

    temperature: float
    weight: float = 1.0
    named: tuple[tuple[str, float], ...] = ()  # if there are several
    added: tuple[tuple[str, float], ...] = ()  # those of terms that are added to the formula, and stay

    def __str__(self) -> str:
        """The setting as messages show it."""
        shown = [f"{name} {value:g}" for name, value in self.named] or [f"weight {self.weight:g}"]
        shown += [f"{name} {value:g}" for name, value in self.added]
        return f"T = {self.temperature:g}, {', '.join(shown)}"

    @property
    def weights(self) -> dict[str, float]:
        """All weights by name."""
        return {**(dict(self.named) or {"lm": self.weight}), **dict(self.added)}

    @property
    def strength(self) -> tuple[float, float]:
        """The key to sort settings by the influence of the D-LM.

        A temperature divides the logits, so roughly weight / T counts; among equals, the larger weight.
        """
        return (self.weight / self.temperature, self.weight)

    @property
    def flags(self) -> tuple[str, ...]:
        """The setting as flags of `translate` and `convert`."""
        weights = f"{self.weight:g}"
        if self.named or self.added:
            weights = ",".join(f"{name}={value:g}" for name, value in self.weights.items())
        return "--temperature", f"{self.temperature:g}", "--weight", weights


@dataclass(frozen=True)
class Trial:
    """The settings to try for an objective; the present setting is always among them."""

    objective: str
    present: Setting
    settings: tuple[Setting, ...]
    together: bool = False  # several weights, tuned one after the other from the first setting on

    @property
    def temperatures(self) -> tuple[float, ...]:
        """All temperatures at which the D-LM is read."""
        return tuple(dict.fromkeys(setting.temperature for setting in self.settings))


def trial_of(
    defaults: DecodingDefaults,
    name: str,
    temperatures: Sequence[float] = (),
    weights: Sequence[float] = (),
    protocol: str = "best",
    fixed: float | None = None,
) -> Trial:
    """The settings to try for an objective; given temperatures or weights replace the default ones.

    For the C-score, if only one of the two is given, the other stays as it is in the bundle. `fixed` is the
    only temperature at which the D-LM can be read, if there is one: it replaces the default temperatures.
    """
    formula = objectives.objective(name, reads=defaults.reads)
    if not formula.weights:
        tunable = [name for name, known in objectives.OBJECTIVES.items() if known.weights]
        raise CadecError(f"{name} has nothing to tune", f"these have: {', '.join(tunable)}")
    present = present_setting(defaults, name)
    usual, several = 1.0, TEMPERATURES
    if fixed is not None:
        usual, several = fixed, (fixed,)
        present = dataclasses.replace(present, temperature=fixed)
    if present.named:
        if weights or protocol != "best" or len(temperatures) > 1:
            raise CadecError(
                f"the weights of {name} are found together, by BLEU and at one temperature",
                f"leave out {option('weight')} and {option('protocol')}, and give one "
                f"{option('temperature')} at most",
            )
        start = dataclasses.replace(present, temperature=(*temperatures, usual)[0])
        return Trial(name, present, tuple(dict.fromkeys((start, present))), together=True)
    if name != "c-score":
        temperatures, weights = temperatures or (usual,), weights or FUSION_WEIGHTS
    elif not temperatures and not weights:
        temperatures, weights = several, WEIGHTS
    tried = [
        Setting(temperature, weight, added=present.added)
        for weight in weights or (present.weight,)
        for temperature in temperatures or (present.temperature,)
    ]
    first = () if present in tried else (present,)
    return Trial(name, present, tuple(dict.fromkeys((*first, *tried))))


def present_setting(defaults: DecodingDefaults, name: str) -> Setting:
    """The setting an objective has now; its weights are the bundle's if it is the bundle's objective."""
    own = defaults.weight if name == defaults.objective else {}
    weights = dict(objectives.objective(name, own, defaults.reads).weights)
    formula = objectives.objective(name, reads=defaults.reads).weights
    if formula.keys() == {"lm"}:
        lm = weights.pop("lm")
        return Setting(defaults.temperature, lm, added=tuple(weights.items()))
    return Setting(defaults.temperature, named=tuple(weights.items()))


def changed_defaults(
    defaults: DecodingDefaults,
    name: str,
    setting: Setting,
    context: int | None,
    nbest: int | None,
    retrieve: int | None = None,
) -> DecodingDefaults:
    """A bundle's defaults with the setting found, and with the objective, context and n-best of the run."""
    stays = name == defaults.objective and setting == present_setting(defaults, name)
    return dataclasses.replace(
        defaults,
        objective=name,
        weight=defaults.weight if stays else setting.weights,
        temperature=setting.temperature,
        context=defaults.context if context is None else context,
        nbest=nbest or defaults.nbest,
        retrieve=defaults.retrieve if retrieve is None else retrieve,
    )


# The figures of settings on a development set, and the differences between them.


@dataclass(frozen=True)
class Point:
    """A setting's figures; `changed` is the share of sentences translated differently from the S-NMT."""

    setting: Setting
    bleu: float
    chrf: float
    changed: float
    accuracies: tuple[float, ...] = ()  # on the contrastive sets, if there are any
    counts: Floats | None = field(default=None, repr=False, compare=False)  # BLEU's, (lines, statistics)

    @property
    def accuracy(self) -> float:
        """The mean accuracy over the contrastive sets; there must be at least one."""
        return sum(self.accuracies) / len(self.accuracies)


def above(baseline: Point, points: Sequence[Point]) -> list[Difference]:
    """How far each of the points is above the baseline in BLEU; all see the same samples of lines."""
    counts = [point.counts for point in (baseline, *points) if point.counts is not None]
    assert len(counts) == len(points) + 1, "points without counts can't be compared"
    resampling = Resampling(np.arange(len(counts[0])))
    sums = resampling.sums(np.hstack(counts))
    first, *samples = map(bleu_measure().scores, np.split(sums, len(counts), axis=1))
    return [
        difference(point.bleu - baseline.bleu, sample, first, units=resampling.count)
        for point, sample in zip(points, samples, strict=True)
    ]


def measure_settings(
    settings: Sequence[Setting],
    chosen: Sequence[Sequence[Sequence[int]]],
    texts: Sequence[Sequence[Sequence[str]]],
    references: Sequence[Sequence[str]],
    lines: Sequence[int] | None = None,
) -> tuple[Point, list[Point]]:
    """The sentence level's figures and each setting's; `texts` are the hypotheses of every sentence.

    `references` has one text per line; `lines` has the number of sentences of each line, by default one.
    """
    wanted = [text for document in references for text in document]
    sizes = lines or [1] * len(wanted)
    counters = [_Counter.of(measure) for measure in (bleu_measure(), chrf_measure())]

    def point(setting: Setting, indices: Sequence[Sequence[int]]) -> Point:
        picked = _pick_texts(indices, texts, sizes)
        bleu, chrf = (counter.counts(picked, wanted) for counter in counters)
        changed = [index != 0 for of_document in indices for index in of_document]
        return Point(
            setting,
            counters[0].score(bleu),
            counters[1].score(chrf),
            sum(changed) / max(len(changed), 1),
            counts=bleu,
        )

    level = point(Setting(1.0, 0.0), [[0] * len(document) for document in texts])
    return level, [point(setting, indices) for setting, indices in zip(settings, chosen, strict=True)]


@dataclass(frozen=True)
class _Counter:
    """A measure that remembers the lines it has counted."""

    measure: Measure
    count: Count

    @classmethod
    def of(cls, measure: Measure) -> _Counter:
        assert measure.count is not None
        return cls(measure, lru_cache(maxsize=None)(measure.count))

    def counts(self, picked: Sequence[str], wanted: Sequence[str]) -> Floats:
        return np.array([self.count(*pair) for pair in zip(picked, wanted, strict=True)], dtype=np.float64)

    def score(self, counts: Floats) -> float:
        return float(self.measure.scores(counts.sum(0)))


def _pick_texts(
    chosen: Sequence[Sequence[int]], texts: Sequence[Sequence[Sequence[str]]], lines: Sequence[int]
) -> list[str]:
    """The chosen hypotheses, line by line."""
    sentences = (
        hypotheses[index] if hypotheses else ""
        for document, indices in zip(texts, chosen, strict=True)
        for hypotheses, index in zip(document, indices, strict=True)
    )
    return [" ".join(islice(sentences, size)) for size in lines]


# Which of the settings to take: the paper's two protocols, and whether a difference is more than noise.


PROTOCOLS = ("best", "strongest")
UNTESTED = f"fewer than {FEWEST} lines can't be tested"


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


@dataclass(frozen=True)
class Decision:
    """The setting to use, the reason, and the difference of the protocol's choice from its baseline."""

    point: Point
    reason: str
    difference: Difference | None = None


def decide(protocol: str, level: Point, points: Sequence[Point], present: Point) -> Decision:
    """Choose by a protocol; `best` keeps the present setting unless its choice is significantly better.

    p is that of one comparison. The best of many settings is a little better by chance than a single one, so
    even a p just below 0.05 is weak evidence.

    `strongest` is the paper's protocol unchanged, since its aim is not BLEU: a BLEU not below the sentence
    level's is enough, and p is reported with it.
    """
    candidate = choose(protocol, level, points)
    if protocol != "best":
        (over_level,) = above(level, [candidate])
        gain = f"BLEU {over_level.delta:+.2f} over the sentence level"
        reason = f"{candidate.setting}: {gain} ({over_level.p_text or UNTESTED})"
        return Decision(candidate, reason, over_level)
    if candidate.bleu <= present.bleu:
        return Decision(present, f"{present.setting} stays: nothing tried has a higher BLEU")
    (over_present,) = above(present, [candidate])
    gain = f"BLEU {over_present.delta:+.2f} over {present.setting}"
    tested = over_present.p_text or UNTESTED
    if over_present.significant:
        return Decision(candidate, f"{candidate.setting}: {gain} ({tested})", over_present)
    reason = f"within noise ({tested}): {present.setting} stays; {candidate.setting} has {gain}"
    return Decision(present, reason, over_present)


CHUNK = 256  # sentences translated at once

# A document of the lattice; None where there is nothing to choose from.
Columns = Sequence[Column | None]


def reranking_translator(
    models: Models, options: TranslationOptions, name: str, language: str = ""
) -> Translator:
    """A translator with the given options that reranks by the objective `name`, whose weights are tuned.

    If the options are of this objective, their terms that are added to the formula stay.
    """
    if models.language is None:
        raise CadecError("this bundle has no document language model: there is nothing to tune")
    own = options.weight if name == options.objective else {}
    added = {term: weight for term, weight in own.items() if term in objectives.OPTIONAL}
    reranking = dataclasses.replace(options, search="rerank", objective=name, weight=added)
    return Translator(models, reranking, language=language)


def grid_search(translator: Translator, settings: Sequence[Setting]) -> LatticeSearch:
    """The translator's search for all settings at once: it reads the D-LM at all their temperatures."""
    assert isinstance(translator.search, LatticeSearch), "only lists are reranked"
    temperatures = tuple(dict.fromkeys(setting.temperature for setting in settings))
    return dataclasses.replace(
        translator.search, scoring_options=ScoringOptions(temperatures, translator.options.alpha)
    )


def scorings_of(search: LatticeSearch, settings: Sequence[Setting]) -> list[Scoring]:
    """The search's objective with the weights of each setting, at the setting's temperature."""
    temperatures = search.scoring_options.temperatures
    return [
        Scoring(search.objective.with_weights(setting.weights), temperatures.index(setting.temperature))
        for setting in settings
    ]


def rerank_with_all(
    search: LatticeSearch,
    documents: Sequence[Columns],
    scorings: Sequence[Scoring],
    advance: Advance = lambda sentences: None,
) -> list[list[list[int]]]:
    """The index of the hypothesis that each scoring chooses: scorings × documents × sentences.

    The search computes the terms of all scorings, at all of their temperatures.
    """
    chosen: list[list[list[int]]] = [[[] for _ in documents] for _ in scorings]
    beams = [[[PartialPath()] for _ in documents] for _ in scorings]
    for step in range(max(map(len, documents), default=0)):
        live = [number for number, document in enumerate(documents) if step < len(document)]
        jobs = [
            (place, number, column)
            for number in live
            if (column := documents[number][step]) is not None
            for place in range(len(scorings))
        ]
        extended = search.advance(
            [beams[place][number] for place, number, _ in jobs],
            [column for _, _, column in jobs],
            [scorings[place] for place, _, _ in jobs],
        )
        for (place, number, _), beam in zip(jobs, extended, strict=True):
            choice = beam[0].choice
            assert choice is not None
            beams[place][number] = [PartialPath(context=beam[0].context)]  # `chosen` keeps the choices
            chosen[place][number].append(choice.index)
        for number in live:
            if documents[number][step] is None:
                for of_setting in chosen:
                    of_setting[number].append(0)
        advance(len(live))
    return chosen


@dataclass(frozen=True)
class PreparedLists:
    """A development set with its n-best lists and their context-free scores."""

    search: LatticeSearch
    documents: Sequence[Columns]
    texts: Sequence[Sequence[Sequence[str]]]
    references: Sequence[Sequence[str]]
    lines: Sequence[int]

    def points(
        self, settings: Sequence[Setting], counted: CountProgress = no_progress
    ) -> tuple[Point, list[Point]]:
        """Rerank the set with every setting; return the sentence level's figures, then the settings'."""
        with counted("reranked", sum(map(len, self.documents))) as advance:
            scorings = scorings_of(self.search, settings)
            chosen = rerank_with_all(self.search, self.documents, scorings, advance)
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
    measured together.
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


# Tuning several weights of an objective together: one after the other, in rounds.


# The factors by which a weight is multiplied; 0 leaves its term out.
FACTORS = (0.0, 0.25, 0.5, 0.75, 1.5, 2.0, 4.0)
ROUNDS = 3


def coordinate_search(
    development: PreparedLists,
    start: Mapping[str, float],
    temperature: float = 1.0,
    *,
    rounds: int = ROUNDS,
    counted: CountProgress = no_progress,
) -> tuple[Point, list[Point]]:
    """Tune all weights; return the sentence level's figures, and those of all settings tried, in order.

    The best one is among them. BLEU never falls on the way: `start` is tried too, and left only for a better
    setting.
    """
    first = _setting(temperature, start)
    level, tried = development.points([first], counted)
    best = tried[0]
    for _ in range(rounds):
        before = best
        for name, value in start.items():
            values = dict.fromkeys(factor * (best.setting.weights[name] or value) for factor in FACTORS)
            settings = [_setting(temperature, {**best.setting.weights, name: one}) for one in values]
            known = {point.setting for point in tried}
            new = [setting for setting in settings if setting not in known]
            if new:
                tried += development.points(new, counted)[1]
                best = choose("best", level, tried)
        if best.bleu <= before.bleu:
            break
    return level, tried


def _setting(temperature: float, weights: Mapping[str, float]) -> Setting:
    return Setting(temperature, named=tuple(weights.items()))
