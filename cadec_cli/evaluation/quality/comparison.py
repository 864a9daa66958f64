"""Translations measured against a reference and by their PMI, and compared with those of other systems.

Reads files, scores them with D-LMs, and returns figures; how these are shown is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from cadec_cli.arrays import Floats, Ints
from cadec_cli.bundle.manifest import read_manifest
from cadec_cli.errors import CadecError, option
from cadec_cli.evaluation.aligned import (
    AlignedText,
    CountProgress,
    Warn,
    no_progress,
    no_warning,
    read_aligned,
)
from cadec_cli.evaluation.pmi.analysis import (
    ContextScores,
    TextScorer,
    own_scores,
    pearson,
    pmi_statistics,
    spearman,
)
from cadec_cli.evaluation.quality.consistency import Repetition, repetitions
from cadec_cli.evaluation.quality.measures import (
    FEWEST,
    Measure,
    MeasuredFigure,
    Resampling,
    System,
    bleu_measure,
    chrf_measure,
    compare,
    mean_measure,
    multi_bleu_measure,
    script_line,
)
from cadec_cli.fs.read import MAX_INPUT_BYTES
from cadec_cli.method.context import ContextPolicy

PMI, MULTI_BLEU = "PMI", "multi-BLEU"
NAMES, TERMS = "names", "terms"  # consistency

_FEW_DOCUMENTS = 10


@dataclass(frozen=True)
class Texts:
    """The translations to measure, and the texts to compare them with, sentence by sentence."""

    hypotheses: AlignedText
    baselines: tuple[AlignedText, ...] = ()
    reference: AlignedText | None = None
    source: AlignedText | None = None

    @property
    def systems(self) -> tuple[AlignedText, ...]:
        """The translations: the hypotheses first, then the baselines."""
        return (self.hypotheses, *self.baselines)


def read_texts(
    hypotheses: Path,
    baselines: Sequence[Path] = (),
    reference: Path | None = None,
    source: Path | None = None,
    *,
    encoding: str | None = None,
    warn: Warn = no_warning,
    most: int = MAX_INPUT_BYTES,
) -> Texts:
    """Read files that must agree with the reference, else with the source, else with the hypotheses."""
    paths = [path for path in (reference, source) if path is not None]
    texts = iter(read_aligned([*paths, hypotheses, *baselines], encoding, warn, most=most))
    reference_text = next(texts) if reference is not None else None
    source_text = next(texts) if source is not None else None
    return Texts(next(texts), tuple(texts), reference_text, source_text)


@dataclass(frozen=True)
class StringOptions:
    """How translations are compared with a reference; multi-BLEU needs a language, or text in tokens."""

    language: str | None = None
    tokenized: bool = False
    tokenize: str = "13a"
    lowercase: bool = False

    @property
    def measures(self) -> list[Measure]:
        """BLEU and chrF, and multi-BLEU where it can be computed."""
        chosen = [
            bleu_measure(tokenize=self.tokenize, lowercase=self.lowercase),
            chrf_measure(lowercase=self.lowercase),
        ]
        if self.tokenized or self.language is not None:
            language = None if self.tokenized else self.language
            chosen.append(multi_bleu_measure(language=language, lowercase=self.lowercase))
        return chosen


@dataclass(frozen=True)
class PMIOptions:
    """The D-LMs that PMI is measured with: the target language's and, optionally, the source language's."""

    name: str
    target: TextScorer
    source: TextScorer | None = None
    policy: ContextPolicy = field(default_factory=ContextPolicy)

    @classmethod
    def open(
        cls, bundle: Path, source_lm: Path | None, *, context: int, device: str = "auto", threads: int = 0
    ) -> PMIOptions:
        """Load the D-LM of a bundle, and that of another bundle for the first one's source language."""
        manifest = read_manifest(bundle)
        target = TextScorer.open(bundle, device=device, threads=threads)
        source = None
        if source_lm is not None:
            source = TextScorer.open(source_lm, device=device, threads=threads)
            wanted = manifest.source_language
            if wanted is not None and source.language != wanted:
                raise CadecError(
                    f"{source_lm} has a D-LM of {source.language!r}, and {bundle} translates from {wanted!r}",
                    f"{option('source-lm')} is a bundle that scores the source language",
                )
        return cls(manifest.name, target, source, ContextPolicy(context))

    @property
    def measure(self) -> Measure:
        """The mean over sentences that have context."""
        return mean_measure(PMI, f"context:{self.policy.sentences}|lm:{self.name}|mean:in context")


@dataclass(frozen=True)
class ConsistencyOptions:
    """The languages of source and translations, as far as they are known: words are elided in some."""

    source: str = ""
    target: str = ""

    @property
    def measures(self) -> list[Measure]:
        """The share of repeated names, and that of repeated terms, rendered as the last time, in per cent."""
        how = "same as before|stems:prefix|clear cases"
        return [mean_measure(name, f"{how}:{name}") for name in (NAMES, TERMS)]


@dataclass(frozen=True)
class Sampling:
    """What the bootstrap resamples (`sentence` or `document`), and how often."""

    by: str = "sentence"
    samples: int = 1000
    seed: int = 1

    def units(self, text: AlignedText) -> Ints:
        """The unit that each sentence belongs to."""
        return text.document_numbers if self.by == "document" else np.arange(len(text.sentences))


@dataclass(frozen=True)
class Correlation:
    """The correlation of a text's PMI with its source's."""

    sentences: int
    pearson: float
    spearman: float


@dataclass(frozen=True)
class SystemResult:
    """A text's figures by the names of measures; figures that were not measured are absent."""

    name: str
    part: str  # hypothesis, baseline or reference
    figures: Mapping[str, MeasuredFigure]
    source_pmi: Correlation | None
    script_line: str | None  # what multi-bleu.perl prints
    repetitions: tuple[Repetition, ...] | None = None  # of names and terms


@dataclass(frozen=True)
class Evaluation:
    """All figures, and how they were measured; the first system is compared with the others."""

    sentences: int
    documents: int
    sampling: Sampling
    measures: tuple[Measure, ...]
    systems: tuple[SystemResult, ...]


def evaluate(
    texts: Texts,
    strings: StringOptions,
    pmi: PMIOptions | None = None,
    sampling: Sampling | None = None,
    *,
    consistency: ConsistencyOptions | None = None,
    counted: CountProgress = no_progress,
    warn: Warn = no_warning,
) -> Evaluation:
    """Measure translations: against the reference, if there is one, and as `pmi` and `consistency` say.

    The PMI and the consistency of the reference are measured too. Consistency needs the source.
    """
    sampling = sampling or Sampling()
    parts = [("hypothesis", texts.hypotheses), *(("baseline", text) for text in texts.baselines)]
    measures: list[Measure] = []
    statistics: list[dict[str, Floats]] = [{} for _ in parts]
    if texts.reference is not None:
        measures += strings.measures
        statistics = [_counts(text, texts.reference, measures, counted) for text in texts.systems]
    if texts.reference is not None and (pmi is not None or consistency is not None):
        parts.append(("reference", texts.reference))
        statistics.append({})
    repeated: list[tuple[Repetition, ...] | None] = [None for _ in parts]
    if consistency is not None:
        measures += consistency.measures
        repeated = [_repetitions(texts.source, text, consistency, counted) for _, text in parts]
        for counts, of_text in zip(statistics, repeated, strict=True):
            counts.update(_agreement(of_text or (), len(texts.hypotheses.sentences)))
        if texts.reference is None and pmi is None and not any(statistics):
            raise CadecError(
                "no name or term that recurs in a document has a clear rendering",
                "a longer text is needed; a blank line stands only between documents",
            )
    correlations: list[Correlation | None] = [None for _ in parts]
    if pmi is not None:
        measures.append(pmi.measure)
        source = None
        if pmi.source is not None and texts.source is not None:
            source = own_scores(pmi.source, texts.source, pmi.policy, counted)
        scores = [_pmi_scores(pmi, text, counted) for _, text in parts]
        statistics = [
            {**counts, PMI: pmi_statistics(s)} for counts, s in zip(statistics, scores, strict=True)
        ]
        correlations = [_correlation(source, s) if source is not None else None for s in scores]
    first = texts.hypotheses
    resampling = Resampling(sampling.units(first), sampling.samples, sampling.seed)
    if len(parts) > 1 and resampling.count < FEWEST:
        warn(
            f"{resampling.count} {sampling.by}s are too few for a test, which takes {FEWEST} or more: "
            "there is no p, and intervals are rough"
        )
    elif sampling.by == "document" and len(parts) > 1 and resampling.count < _FEW_DOCUMENTS:
        warn(f"intervals and p by document are rough with {resampling.count} documents")
    systems = [System(text.name, counts) for (_, text), counts in zip(parts, statistics, strict=True)]
    figures = compare(measures, systems, resampling)
    return Evaluation(
        len(first.sentences),
        len(first.documents),
        sampling,
        tuple(measures),
        tuple(
            SystemResult(
                system.name,
                part,
                figures_of_system,
                correlation,
                script_line(system.statistics[MULTI_BLEU].sum(0))
                if MULTI_BLEU in system.statistics
                else None,
                of_system,
            )
            for (part, _), system, figures_of_system, correlation, of_system in zip(
                parts, systems, figures, correlations, repeated, strict=True
            )
        ),
    )


def _counts(
    text: AlignedText, reference: AlignedText, measures: Sequence[Measure], counted: CountProgress
) -> dict[str, Floats]:
    """The statistics of a text by the names of the measures that compare it with a reference."""
    statistics = {}
    for measure in measures:
        if measure.count is None:
            continue
        counts = []
        with counted(f"{measure.name}, {text.name}", len(reference.sentences)) as advance:
            for hypothesis, wanted in zip(text.sentences, reference.sentences, strict=True):
                counts.append(measure.count(hypothesis, wanted))
                advance(1)
        statistics[measure.name] = np.array(counts, dtype=np.float64)
    return statistics


def _repetitions(
    source: AlignedText | None, text: AlignedText, options: ConsistencyOptions, counted: CountProgress
) -> tuple[Repetition, ...]:
    if source is None:
        raise CadecError("consistency is measured with the source", f"give it with {option('src')}")
    with counted(f"consistency, {text.name}", len(text.sentences)) as advance:
        found = repetitions(source.documents, text.documents, options.source, options.target)
        advance(len(text.sentences))
    return tuple(found)


def _agreement(found: Sequence[Repetition], sentences: int) -> dict[str, Floats]:
    """(100 × same, repeated) of every sentence, for names and terms; absent where nothing is repeated."""
    statistics = {}
    for name in (NAMES, TERMS):
        of_kind = [one for one in found if one.is_name == (name == NAMES)]
        if of_kind:
            statistics[name] = np.zeros((sentences, 2))
            for one in of_kind:
                statistics[name][one.sentence] += (100.0 * one.is_same, 1.0)
    return statistics


def _pmi_scores(pmi: PMIOptions, text: AlignedText, counted: CountProgress) -> ContextScores:
    scores = own_scores(pmi.target, text, pmi.policy, counted)
    if not scores.in_context.any():
        raise CadecError(
            f"no sentence of {text.name} has context: PMI can't be measured",
            "one sentence per line, a blank line only between documents",
        )
    return scores


def _correlation(source: ContextScores, target: ContextScores) -> Correlation:
    both = source.in_context & target.in_context
    columns = source.pmi[both], target.pmi[both]
    return Correlation(int(both.sum()), pearson(*columns), spearman(*columns))
