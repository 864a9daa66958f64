"""Measures of translations, each as sufficient statistics per sentence and a formula over their sums.

BLEU and chrF are sacreBLEU's: it tokenises, counts and signs; only the formulas are written again here, for
many samples at once (the tests hold them equal to sacreBLEU's). multi-BLEU is multi-bleu.perl's on text
tokenised by Moses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from cadec_cli.arrays import Floats
from cadec_cli.errors import CadecError, option
from cadec_cli.evaluation.quality.multi_bleu import bleu_scores, ngram_statistics, words_of
from cadec_cli.evaluation.quality.significance import (
    Difference,
    Resampling,
    difference,
    middle_of_samples,
)
from cadec_cli.text.moses import MARKS, MosesText

CHARACTER_ORDERS = 6
_BETA = 2

Count = Callable[[str, str], Sequence[float]]


@dataclass(frozen=True)
class Measure:
    """A figure with its signature; `scores` turns sums of statistics into the figure.

    `count` gives the statistics of a hypothesis and its reference, where they are what is measured.
    """

    name: str
    signature: str
    scores: Callable[[Floats], Floats]  # (…, statistics) → (…)
    count: Count | None = None


def bleu_measure(*, tokenize: str = "13a", lowercase: bool = False) -> Measure:
    """sacreBLEU's BLEU."""
    from sacrebleu.metrics.bleu import BLEU

    if tokenize not in BLEU.TOKENIZERS:
        raise CadecError(
            f"sacreBLEU has no tokeniser {tokenize!r}", f"there are {', '.join(sorted(BLEU.TOKENIZERS))}"
        )
    try:
        metric = BLEU(force=True, tokenize=tokenize, lowercase=lowercase)
        signature = _signature(metric)
    except (ImportError, RuntimeError) as error:
        raise CadecError(f"sacreBLEU's tokeniser {tokenize!r} can't be used: {error}") from None

    def count(hypothesis: str, reference: str) -> list[float]:
        score = metric.corpus_score([hypothesis], [[reference]])
        return [score.sys_len, score.ref_len, *score.counts, *score.totals]

    return Measure("BLEU", signature, lambda sums: bleu_scores(sums, smooth=True), count)


def chrf_measure(*, lowercase: bool = False) -> Measure:
    """sacreBLEU's chrF2."""
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.helpers import extract_all_char_ngrams

    def count(hypothesis: str, reference: str) -> list[float]:
        lines = (hypothesis.lower(), reference.lower()) if lowercase else (hypothesis, reference)
        statistics: list[float] = []
        ngrams = (extract_all_char_ngrams(line, CHARACTER_ORDERS) for line in lines)
        for given, wanted in zip(*ngrams, strict=True):
            # n-grams of an order that the reference is too short for are no mistakes
            statistics += [given.total() if wanted else 0, wanted.total(), (given & wanted).total()]
        return statistics

    metric = CHRF(char_order=CHARACTER_ORDERS, beta=_BETA, lowercase=lowercase)
    return Measure("chrF2", _signature(metric), chrf_scores, count)


def chrf_scores(sums: Floats) -> Floats:
    """chrF2, in per cent, of sums of (hypothesis, reference, common) for every order: (…, 18) → (…)."""
    by_order = sums.reshape(*sums.shape[:-1], CHARACTER_ORDERS, 3)
    hypothesis, reference, common = by_order[..., 0], by_order[..., 1], by_order[..., 2]
    counted = (hypothesis > 0) & (reference > 0)
    orders = np.maximum(counted.sum(-1), 1)
    precision = np.where(counted, common / np.maximum(hypothesis, 1), 0).sum(-1) / orders
    recall = np.where(counted, common / np.maximum(reference, 1), 0).sum(-1) / orders
    factor = _BETA**2
    below = factor * precision + recall
    scores: Floats = 100 * (1 + factor) * precision * recall / np.where(below > 0, below, 1)
    return scores


def multi_bleu_measure(*, language: str | None, lowercase: bool = False) -> Measure:
    """multi-bleu.perl's BLEU; without a language the text is tokenised already."""
    tokenise = moses_words(language) if language is not None else None

    def count(hypothesis: str, reference: str) -> list[int]:
        lines = (tokenise(hypothesis), tokenise(reference)) if tokenise else (hypothesis, reference)
        given, wanted = (words_of(line, lowercase=lowercase) for line in lines)
        return ngram_statistics(given, wanted)

    case = "lc[ascii]" if lowercase else "mixed"
    tokens = f"moses[{language}]|norm:moses" if language is not None else "none"
    signature = f"nrefs:1|case:{case}|eff:no|tok:{tokens}|smooth:none|script:multi-bleu.perl"
    return Measure("multi-BLEU", signature, lambda sums: bleu_scores(sums, smooth=False), count)


def moses_words(language: str) -> Callable[[str], str]:
    """Normalise and tokenise as Moses does, without the marks that our own text pipelines add."""
    moses = MosesText(language)

    @lru_cache(maxsize=1 << 17)  # references come again with every system
    def tokenise_line(line: str) -> str:
        return " ".join(token for token in moses.tokenise(moses.normalise(line)) if token not in MARKS)

    return tokenise_line


def mean_measure(name: str, signature: str) -> Measure:
    """A mean over sentences; the statistics are (value, 1), or (0, 0) for a sentence without one."""

    def scores(sums: Floats) -> Floats:
        means: Floats = sums[..., 0] / np.maximum(sums[..., 1], 1)
        return means

    return Measure(name, signature, scores)


def _signature(metric: Any) -> str:
    """A metric knows its number of references only after it has seen some."""
    metric.corpus_score(["a"], [["a"]])
    return str(metric.get_signature())


@dataclass(frozen=True)
class System:
    """A text with its statistics (sentences, n) by the names of measures."""

    name: str
    statistics: Mapping[str, Floats] = field(default_factory=dict)


@dataclass(frozen=True)
class MeasuredFigure:
    """A system's score with its 95 % interval, and how far the first system is above it."""

    score: float
    low: float
    high: float
    difference: Difference | None


def compare(
    measures: Sequence[Measure], systems: Sequence[System], resampling: Resampling
) -> list[dict[str, MeasuredFigure]]:
    """The figures of every system, by measure; all but the first are its baselines."""
    if len(systems) > 1 and resampling.count < 2:
        raise CadecError(
            "there is only one unit to resample, so every sample is the whole text",
            f"use {option('by', 'sentence')}, or leave out the baselines",
        )
    cells = [
        (row, measure, system.statistics[measure.name])
        for row, system in enumerate(systems)
        for measure in measures
        if measure.name in system.statistics
    ]
    everything = [statistics for _, _, statistics in cells]
    ends = np.cumsum([statistics.shape[1] for statistics in everything])
    # One drawing for all of them: that is what makes the test a paired one.
    sampled = np.split(resampling.sums(np.hstack(everything)), ends[:-1], axis=1)
    figures: list[dict[str, MeasuredFigure]] = [{} for _ in systems]
    firsts: dict[str, tuple[float, Floats]] = {}
    for (row, measure, statistics), sums in zip(cells, sampled, strict=True):
        score = float(measure.scores(statistics.sum(0)))
        sample = measure.scores(sums)
        against = None
        if row and measure.name in firsts:
            first, first_sample = firsts[measure.name]
            against = difference(first - score, first_sample, sample, units=resampling.count)
        elif not row:
            firsts[measure.name] = (score, sample)
        figures[row][measure.name] = MeasuredFigure(score, *middle_of_samples(sample), against)
    return figures
