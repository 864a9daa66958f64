"""How settings did on a development set, and how far one is above another.

Figures come from statistics of every line, which are kept: a difference between two settings is paired
bootstrap over the same lines. Settings mostly choose alike, and no line is counted twice for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

import numpy as np

from cadec_cli.arrays import Floats
from cadec_cli.evaluation.quality.measures import Count, Measure, bleu_measure, chrf_measure
from cadec_cli.evaluation.quality.significance import Difference, Resampling, difference
from cadec_cli.evaluation.tuning.settings import Setting


@dataclass(frozen=True)
class Point:
    """How a setting did; `changed` is the share of sentences that it translates otherwise than the S-NMT."""

    setting: Setting
    bleu: float
    chrf: float
    changed: float
    accuracies: tuple[float, ...] = ()  # on the contrastive sets, if there are any
    counts: Floats | None = field(default=None, repr=False, compare=False)  # BLEU's, (lines, statistics)

    @property
    def accuracy(self) -> float:
        """The mean over the contrastive sets, of which there must be one."""
        return sum(self.accuracies) / len(self.accuracies)


def above(baseline: Point, points: Sequence[Point]) -> list[Difference]:
    """How far each of the points is above the baseline in BLEU; all see the same samples of lines."""
    counts = [point.counts for point in (baseline, *points) if point.counts is not None]
    assert len(counts) == len(points) + 1, "these points were not measured here"
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

    References are of lines; `lines` tells how many sentences each has, all one where it is not given.
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
    """What was chosen, line by line."""
    sentences = (
        hypotheses[index] if hypotheses else ""
        for document, indices in zip(texts, chosen, strict=True)
        for hypotheses, index in zip(document, indices, strict=True)
    )
    return [" ".join(islice(sentences, size)) for size in lines]
