"""Measures of translations, each as sufficient statistics per sentence and a formula over their sums.

BLEU and chrF are sacreBLEU's: it tokenises, counts and makes the signature. Only the formulas are
reimplemented here, for many samples at once (the tests compare them with sacreBLEU's). multi-BLEU is
multi-bleu.perl's on text tokenised by Moses.

Systems are compared by paired bootstrap resampling (Koehn 2004) over the same statistics. A sample draws as
many units (sentences, or whole documents) as there are, with replacement; all systems and measures see the
same samples. p is two-sided. The differences Δ* of the samples, moved so that their mean is 0, stand for the
differences of two equal systems by chance; p is how often these are as large as the observed difference Δ:

    p = (#{ |Δ* − mean Δ*| ≥ |Δ| } + 1) / (samples + 1)

Fewer than FEWEST units are not tested: there is no p.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from cadec_cli.arrays import Floats, Ints
from cadec_cli.errors import CadecError, option
from cadec_cli.text.moses import MARKS, MosesText

CHARACTER_ORDERS = 6
_BETA = 2

Count = Callable[[str, str], Sequence[float]]


@dataclass(frozen=True)
class Measure:
    """A figure with its signature; `scores` turns sums of statistics into the figure.

    `count` returns the statistics of a hypothesis and its reference; None if the measure has no reference.
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
            # n-grams of an order that the reference is too short for are not counted as errors
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

    @lru_cache(maxsize=1 << 17)  # all systems have the same references
    def tokenise_line(line: str) -> str:
        return " ".join(token for token in moses.tokenise(moses.normalise(line)) if token not in MARKS)

    return tokenise_line


def mean_measure(name: str, signature: str) -> Measure:
    """A mean over sentences; the statistics are (value, 1), or (0, 0) for a sentence without a value."""

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
    """The figures of every system, by measure; all systems but the first are baselines."""
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
    # All cells share one draw of samples, which makes the test a paired one.
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


ORDERS = 4

_WORD = re.compile(r"[^ \t\n\r\f\v]+")
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


def words_of(line: str, *, lowercase: bool = False) -> list[str]:
    """The words of a tokenised line, as multi-bleu.perl splits it."""
    return _WORD.findall(line.translate(_LOWER) if lowercase else line)


def ngram_statistics(hypothesis: Sequence[str], reference: Sequence[str]) -> list[int]:
    """The ten statistics of one sentence, counts clipped to the reference's."""
    common, totals = [], []
    for order in range(1, ORDERS + 1):
        given, wanted = _ngrams(hypothesis, order), _ngrams(reference, order)
        common.append((given & wanted).total())
        totals.append(given.total())
    return [len(hypothesis), len(reference), *common, *totals]


def _ngrams(words: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[start : start + order]) for start in range(len(words) - order + 1))


def bleu_scores(sums: Floats, *, smooth: bool) -> Floats:
    """BLEU, in per cent, of summed statistics: (…, 10) → (…).

    With `smooth`, the k-th order without a match counts as 1/2^k of a match (NIST's way, sacreBLEU's `exp`).
    """
    common, totals = sums[..., 2 : 2 + ORDERS], sums[..., 2 + ORDERS :]
    divisors = np.maximum(totals, 1)  # an order without n-grams has no match either
    precisions = common / divisors
    if smooth:
        missing = (common == 0) & (totals > 0)
        precisions = np.where(missing, 0.5 ** missing.cumsum(-1) / divisors, precisions)
    defined = (precisions > 0).all(-1) & (common > 0).any(-1)
    logs = np.log(np.where(precisions > 0, precisions, 1.0)).mean(-1)
    scores: Floats = np.where(defined, 100 * brevity_penalty(sums) * np.exp(logs), 0.0)
    return scores


def brevity_penalty(sums: Floats) -> Floats:
    """1 for hypotheses not shorter than their references, 0 for empty ones: (…, 10) → (…)."""
    hypothesis, reference = sums[..., 0], sums[..., 1]
    ratio = reference / np.maximum(hypothesis, 1)
    short = np.where(hypothesis > 0, np.exp(np.minimum(0.0, 1 - ratio)), 0.0)
    penalty: Floats = np.where(hypothesis < reference, short, 1.0)
    return penalty


def script_line(sums: Floats) -> str:
    """The line that multi-bleu.perl prints for summed statistics (10,)."""
    hypothesis, reference = int(sums[0]), int(sums[1])
    if not reference:
        return "BLEU = 0, 0/0/0/0 (BP=0, ratio=0, hyp_len=0, ref_len=0)"
    precisions = 100 * sums[2 : 2 + ORDERS] / np.maximum(sums[2 + ORDERS :], 1)
    return (
        f"BLEU = {float(bleu_scores(sums, smooth=False)):.2f}, {'/'.join(f'{p:.1f}' for p in precisions)} "
        f"(BP={float(brevity_penalty(sums)):.3f}, ratio={hypothesis / reference:.3f}, "
        f"hyp_len={hypothesis}, ref_len={reference})"
    )


# The fewest units that are tested. An exact paired test flips the sign of each unit's difference: n units
# have 2ⁿ outcomes, so its smallest two-sided p is 2/2ⁿ, which is below 0.05 from n = 6 on (0.031; for n = 5
# it is 0.0625). With fewer units no outcome can be significant, and a small p of the bootstrap only shows
# how few different samples there are: three for two units.
FEWEST = 6
# The most random numbers in memory at a time.
_DRAWN = 8_000_000


@dataclass(frozen=True)
class Resampling:
    """How samples are drawn. `units` has the unit of every sentence, numbered from 0."""

    units: Ints
    samples: int = 1000
    seed: int = 1

    @property
    def count(self) -> int:
        """How many units there are."""
        return int(self.units.max()) + 1

    def sums(self, statistics: Floats) -> Floats:
        """Sum the statistics (sentences, n) over every sample: (samples, n)."""
        count = self.count
        by_unit = np.zeros((count, statistics.shape[1]))
        np.add.at(by_unit, self.units, statistics)
        rng = np.random.default_rng(self.seed)
        sums = []
        for start in range(0, self.samples, step := max(1, _DRAWN // count)):
            drawn = rng.integers(count, size=(min(step, self.samples - start), count))
            times = np.stack([np.bincount(sample, minlength=count) for sample in drawn])
            sums.append(times @ by_unit)
        return np.concatenate(sums)


@dataclass(frozen=True)
class Difference:
    """How far a system is above another, with a 95 % interval; untested where there are too few units."""

    delta: float
    low: float
    high: float
    p: float | None
    wins: float | None  # the share of samples in which the system is the better one

    @property
    def significant(self) -> bool:
        """Tell whether p is below 0.05; an untested difference is not significant."""
        return self.p is not None and self.p < 0.05

    @property
    def p_text(self) -> str:
        """The p-value as people read it; empty if the difference is untested."""
        if self.p is None:
            return ""
        return f"p = {self.p:.2g}" if self.p >= 0.001 else "p < 0.001"

    def record(self) -> dict[str, Any]:
        """The difference as plain data, without values that were not computed."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}


def difference(delta: float, system: Floats, baseline: Floats, *, units: int) -> Difference:
    """Compare the scores of two systems in the same samples.

    `delta` is the difference on the whole text, `units` the number of units in a sample.
    """
    deltas = system - baseline
    # Equal systems differ by rounding alone, which does not count as a difference.
    deltas[np.abs(deltas) < 1e-9] = 0.0
    low, high = middle_of_samples(deltas)
    if units < FEWEST:
        return Difference(delta, low, high, None, None)
    by_chance = np.abs(deltas - deltas.mean())
    extreme = int((by_chance >= abs(delta) - 1e-9).sum())
    return Difference(delta, low, high, (extreme + 1) / (len(deltas) + 1), float((deltas > 0).mean()))


def middle_of_samples(scores: Floats) -> tuple[float, float]:
    """The middle 95 % of the samples' scores."""
    low, high = np.percentile(scores, [2.5, 97.5])
    return float(low), float(high)
