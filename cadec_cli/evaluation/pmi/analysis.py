"""The paper's PMI analysis: does a sentence need its context as much in the target language as in the source?

If so, the PMI of source sentences correlates with that of their translations for true contexts, and does not
for random ones. Log-probabilities correlate either way, because long sentences are unlikely in every
language. The random contexts of the two languages are drawn independently: a place drawn for both would make
them correlate by itself.

PMI of a sentence with its context is log p(ỹ | c̃) − log p(ỹ | </s>), under a D-LM; no translation model is
involved. The context consists of the preceding sentences of the same document or, as a control, of another
document. A sentence without context has a PMI of 0 by definition, which says nothing: `in_context` marks the
sentences with context, so that means and correlations can leave the others out.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from cadec_cli.arrays import Bools, Floats, Ints
from cadec_cli.decoding.scorer import Scorer
from cadec_cli.engines.protocols import LanguageModel
from cadec_cli.errors import CadecError, option
from cadec_cli.evaluation.aligned import AlignedText, CountProgress, no_progress
from cadec_cli.fs.atomic import atomic_file
from cadec_cli.method.context import Context, ContextPolicy
from cadec_cli.method.hypotheses import Ids

# Sentences that are scored together, between two reports of progress.
_CHUNK = 64


@dataclass(frozen=True)
class ContextScores:
    """Log-probabilities of all sentences of a text, in order: (sentences,)."""

    conditional: Floats  # log p(ỹ | c̃)
    free: Floats  # log p(ỹ | </s>)
    in_context: Bools  # whether there is any context

    @property
    def pmi(self) -> Floats:
        """PMI(c, y); exactly 0 without context."""
        return self.conditional - self.free


@dataclass(frozen=True)
class EncodedText:
    """Documents in a D-LM's ids, and the log p(ỹ | </s>) of every sentence."""

    name: str
    documents: tuple[tuple[Ids, ...], ...]
    free: Floats

    @property
    def sentences(self) -> list[Ids]:
        """The sentences of all documents, in order."""
        return [sentence for document in self.documents for sentence in document]


@dataclass(frozen=True)
class TextScorer:
    """A D-LM that scores texts of its language."""

    model: LanguageModel
    language: str

    @classmethod
    def open(cls, directory: Path, *, device: str = "auto", threads: int = 0) -> TextScorer:
        """Load the D-LM of a bundle, in full precision: PMI is a small difference of large numbers."""
        from cadec_cli.bundle.bundle import Bundle
        from cadec_cli.bundle.load import load_models  # torch, which BLEU alone does not need

        bundle = Bundle.open(directory)
        models = load_models(bundle, device=device, compute_type="float32", threads=threads)
        if models.language is None:
            raise CadecError(
                f"the bundle {directory} has no D-LM, and PMI needs one",
                f"`cadec convert {option('lm')} … {option('target-pipeline')} … -o …` makes a bundle "
                "that can score a language",
            )
        return cls(models.language, bundle.target_language)

    def encode(self, text: AlignedText, counted: CountProgress = no_progress) -> EncodedText:
        """Turn a text into ids and score it without context, each distinct sentence once."""
        documents = tuple(
            tuple(tuple(self.model.text.encode(sentence)) for sentence in document)
            for document in text.documents
        )
        sentences = [sentence for document in documents for sentence in document]
        distinct = list(dict.fromkeys(sentences))
        scorer = Scorer(self.model)
        free: dict[Ids, float] = {}
        what = f"{text.name}, no context"
        with counted(what, len(distinct)) as advance:
            for start in range(0, len(distinct), _CHUNK):
                chunk = distinct[start : start + _CHUNK]
                totals = scorer.free([scorer.trie([sentence]) for sentence in chunk])
                free.update(zip(chunk, (float(of_sentence[0, 0]) for of_sentence in totals), strict=True))
                advance(len(chunk))
        return EncodedText(
            text.name, documents, _check_finite(np.array([free[sentence] for sentence in sentences]), what)
        )

    def after(
        self,
        text: EncodedText,
        contexts: Sequence[Context],
        policy: ContextPolicy,
        what: str = "own contexts",
        counted: CountProgress = no_progress,
    ) -> ContextScores:
        """Score every sentence after the part of its context that the policy reads."""
        scorer = Scorer(self.model, policy=policy)
        sentences = text.sentences
        read = [
            scorer.context(context, [sentence]) for sentence, context in zip(sentences, contexts, strict=True)
        ]
        in_context = np.array([bool(context.sentences) for context in read], dtype=bool)
        conditional = np.empty_like(text.free)
        # Sentences without context come last: they cost nothing, and would leave other batches half empty.
        order = np.argsort(~in_context, kind="stable")
        what = f"{text.name}, {what}"
        with counted(what, len(order)) as advance:
            for start in range(0, len(order), _CHUNK):
                chunk = order[start : start + _CHUNK]
                scores = scorer.after(
                    [scorer.trie([sentences[index]]) for index in chunk],
                    [read[index] for index in chunk],
                    [text.free[index].reshape(1, 1) for index in chunk],
                )
                conditional[chunk] = [one.totals[0, 0] for one in scores]
                advance(len(chunk))
        return ContextScores(_check_finite(conditional, what), text.free, in_context)


def _check_finite(totals: Floats, what: str) -> Floats:
    if not np.isfinite(totals).all():
        raise CadecError(
            f"{what}: the D-LM gives a log-probability that is not finite", "its weights are damaged"
        )
    return totals


def own_contexts(documents: Sequence[Sequence[Ids]], policy: ContextPolicy) -> list[Context]:
    """The context before every sentence in its own document."""
    return [context for document in documents for context in _before(document, policy)[:-1]]


def random_contexts(
    documents: Sequence[Sequence[Ids]], policy: ContextPolicy, rng: np.random.Generator
) -> list[Context]:
    """For every sentence, the context before a random place of another document.

    The first sentence of a document has no context here either, so that the same sentences are compared.
    """
    if len(documents) < 2:
        raise CadecError(
            "random contexts come from another document, and there is only one",
            "separate the documents by blank lines",
        )
    places = [_before(document, policy) for document in documents]
    contexts: list[Context] = []
    for this, document in enumerate(documents):
        for number in range(len(document)):
            other = int(rng.integers(len(documents) - 1))
            other += other >= this
            place = int(rng.integers(1, len(documents[other]) + 1))
            contexts.append(places[other][place] if number else Context())
    return contexts


def _before(document: Sequence[Ids], policy: ContextPolicy) -> list[Context]:
    """The context before every sentence and after the last; empty sentences are skipped."""
    contexts = [Context()]
    for ids in document:
        before = contexts[-1]
        contexts.append(policy.trim(before.followed_by(ids)) if ids else before)
    return contexts


def own_scores(
    scorer: TextScorer, text: AlignedText, policy: ContextPolicy, counted: CountProgress = no_progress
) -> ContextScores:
    """Score a text with its own contexts."""
    encoded = scorer.encode(text, counted)
    return scorer.after(encoded, own_contexts(encoded.documents, policy), policy, counted=counted)


def pmi_statistics(scores: ContextScores) -> Floats:
    """The summands of a text's mean PMI: (PMI, 1) per sentence, (0, 0) for one without context."""
    return np.stack([np.where(scores.in_context, scores.pmi, 0.0), scores.in_context.astype(float)], axis=1)


# The median absolute deviation of a normal distribution times this is its standard deviation.
_MAD_TO_DEVIATION = 1.4826


def pearson(x: Floats, y: Floats) -> float:
    """Pearson's R; NaN if there are fewer than two points, or if a column does not vary."""
    if len(x) < 2:
        return float("nan")
    x, y = x - x.mean(), y - y.mean()
    spread = float(np.sqrt((x @ x) * (y @ y)))
    return float(x @ y) / spread if spread > 0 else float("nan")


def spearman(x: Floats, y: Floats) -> float:
    """Spearman's ρ: Pearson's R of the ranks."""
    return pearson(ranks(x), ranks(y))


def ranks(values: Floats) -> Floats:
    """The rank of every value, from 1; equal values share their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    means: Floats = (last - (counts - 1) / 2)[inverse]
    return means


@dataclass(frozen=True)
class Quadrants:
    """The numbers of points by the signs of (x, y); points on an axis are not counted."""

    both_positive: int
    only_y_positive: int
    both_negative: int
    only_x_positive: int


def quadrants(x: Floats, y: Floats) -> Quadrants:
    """Count the points of each quadrant."""
    return Quadrants(
        both_positive=int(((x > 0) & (y > 0)).sum()),
        only_y_positive=int(((x < 0) & (y > 0)).sum()),
        both_negative=int(((x < 0) & (y < 0)).sum()),
        only_x_positive=int(((x > 0) & (y < 0)).sum()),
    )


def excesses(x: Floats, y: Floats) -> Floats:
    """How far y − x is above its median, in robust standard deviations (from the MAD): (points,).

    If more than half of the differences are equal, the MAD is 0, and all excesses are 0.
    """
    differences = y - x
    if not len(differences):
        return differences
    above: Floats = differences - np.median(differences)
    deviation = _MAD_TO_DEVIATION * float(np.median(np.abs(above)))
    return above / deviation if deviation > 0 else np.zeros_like(above)


PMI = "PMI"
CONDITIONAL = "log p"

# Robust standard deviations above the median from which a difference of PMI makes an outlier.
FAR = 3.0

_COLUMNS = ("conditional", "free", "pmi")


@dataclass(frozen=True)
class Panel:
    """One scatter plot: a value of source sentences against that of their translations."""

    text: str  # the file of the translations
    value: str  # PMI or CONDITIONAL
    contexts: str  # own or random
    source: Floats
    target: Floats
    places: Ints  # which sentence of the text each point is

    @cached_property
    def pearson(self) -> float:
        """Pearson's R."""
        return pearson(self.source, self.target)

    @cached_property
    def spearman(self) -> float:
        """Spearman's ρ."""
        return spearman(self.source, self.target)

    @cached_property
    def quadrants(self) -> Quadrants | None:
        """Points by their signs; None for log-probabilities, which are all negative."""
        return quadrants(self.source, self.target) if self.value == PMI else None

    @cached_property
    def excesses(self) -> Floats:
        """How far the target's value is above the one expected from the source's."""
        return excesses(self.source, self.target)

    @property
    def far(self) -> Bools:
        """Which points are outliers."""
        return self.excesses > FAR


@dataclass(frozen=True)
class Outlier:
    """A translation whose PMI is far above its source's; the paper takes that for a sign of an error."""

    text: str
    document: int  # from 1
    sentence: int  # in its document, from 1
    source_pmi: float
    target_pmi: float
    deviations: float
    source: str
    translation: str


@dataclass(frozen=True)
class OutputOutliers:
    """The outliers of an output: how many there are, and the furthest of them."""

    text: str
    count: int
    furthest: tuple[Outlier, ...]  # furthest first


@dataclass(frozen=True)
class _Pairing:
    """Source and translation, scored with the same kind of contexts."""

    text: str
    contexts: str
    source: ContextScores
    target: ContextScores

    def panel(self, value: str) -> Panel:
        places = np.flatnonzero(self.source.in_context & self.target.in_context)
        source, target = (
            (scores.pmi if value == PMI else scores.conditional)[places]
            for scores in (self.source, self.target)
        )
        return Panel(self.text, value, self.contexts, source, target, places)


@dataclass(frozen=True)
class Analysis:
    """All scores: the reference with its own and with random contexts, then outputs with their own."""

    source: AlignedText
    translations: tuple[AlignedText, ...]  # the reference first
    pairings: tuple[_Pairing, ...]

    @cached_property
    def reference_panels(self) -> list[tuple[Panel, Panel]]:
        """The paper's four panels: each value with own contexts, beside the same with random ones."""
        own, random, *_ = self.pairings
        return [(own.panel(value), random.panel(value)) for value in (PMI, CONDITIONAL)]

    @cached_property
    def output_panels(self) -> list[Panel]:
        """One panel per output."""
        return [output.panel(PMI) for output in self.pairings[2:]]

    @property
    def panels(self) -> list[Panel]:
        """The reference's panels, then the outputs'."""
        return [*itertools.chain.from_iterable(self.reference_panels), *self.output_panels]

    def outliers(self, most: int) -> list[OutputOutliers]:
        """The outliers of each output, with the `most` furthest sentences."""
        return [
            OutputOutliers(panel.text, int(panel.far.sum()), self.furthest(panel, most))
            for panel in self.output_panels
        ]

    def furthest(self, panel: Panel, most: int) -> tuple[Outlier, ...]:
        """The `most` furthest outliers of an output, furthest first."""
        text = next(text for text in self.translations if text.name == panel.text)
        far = np.flatnonzero(panel.far)
        furthest = far[np.argsort(-panel.excesses[far], kind="stable")][:most]
        return tuple(
            Outlier(
                text=text.name,
                document=int(self.source.document_numbers[place]) + 1,
                sentence=int(self.source.sentence_numbers[place]) + 1,
                source_pmi=float(panel.source[point]),
                target_pmi=float(panel.target[point]),
                deviations=float(panel.excesses[point]),
                source=self.source.sentences[place],
                translation=text.sentences[place],
            )
            for point, place in zip(furthest, panel.places[furthest], strict=True)
        )

    def write_points(self, path: Path) -> None:
        """Write a row per sentence, text and kind of context; sentences without context have PMI 0."""
        table = io.StringIO()
        writer = csv.writer(table, lineterminator="\n")
        sides = [f"{side}_{column}" for side in ("source", "target") for column in _COLUMNS]
        writer.writerow(["text", "contexts", "document", "sentence", "in_context", *sides])
        for pairing in self.pairings:
            seen = pairing.source.in_context & pairing.target.in_context
            values = [
                getattr(scores, column) for scores in (pairing.source, pairing.target) for column in _COLUMNS
            ]
            for place in range(len(seen)):
                numbers = (self.source.document_numbers[place], self.source.sentence_numbers[place])
                row = [f"{column[place]:.6f}" for column in values]
                where = [int(number) + 1 for number in numbers]
                writer.writerow([pairing.text, pairing.contexts, *where, int(seen[place]), *row])
        with atomic_file(path) as stream:
            stream.write(table.getvalue().encode())


def analyse(
    source_lm: TextScorer,
    target_lm: TextScorer,
    source: AlignedText,
    reference: AlignedText,
    outputs: Sequence[AlignedText] = (),
    *,
    context: int = 3,
    seed: int = 1,
    counted: CountProgress = no_progress,
) -> Analysis:
    """Score source and translations, with their own contexts and with random ones."""
    source_rng, target_rng = (np.random.default_rng([seed, side]) for side in range(2))
    policy = ContextPolicy(context)

    def with_own(scorer: TextScorer, text: EncodedText) -> ContextScores:
        return scorer.after(text, own_contexts(text.documents, policy), policy, "own contexts", counted)

    def with_random(scorer: TextScorer, text: EncodedText, contexts: Sequence[Context]) -> ContextScores:
        return scorer.after(text, contexts, policy, "random contexts", counted)

    encoded = source_lm.encode(source, counted)
    source_scores = with_own(source_lm, encoded)
    # Drawn before the target is scored, so that a text of a single document fails early.
    elsewhere = random_contexts(encoded.documents, policy, source_rng)
    target = target_lm.encode(reference, counted)
    target_elsewhere = random_contexts(target.documents, policy, target_rng)
    pairings = [
        _Pairing(reference.name, "own", source_scores, with_own(target_lm, target)),
        _Pairing(
            reference.name,
            "random",
            with_random(source_lm, encoded, elsewhere),
            with_random(target_lm, target, target_elsewhere),
        ),
    ]
    for output in outputs:
        scores = with_own(target_lm, target_lm.encode(output, counted))
        pairings.append(_Pairing(output.name, "own", source_scores, scores))
    return Analysis(source, (reference, *outputs), tuple(pairings))
