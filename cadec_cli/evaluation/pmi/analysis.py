"""The paper's PMI analysis: does a sentence need its context as much in the target language as in the source?

If so, PMI of source sentences and of their translations go together with true contexts, and do not with
random ones. Log-probability itself goes together either way: long sentences are unlikely in every language.
The random contexts of the two languages are drawn apart from each other: a context drawn for both would be a
common cause of its own.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cadec_cli.evaluation.aligned import AlignedText
from cadec_cli.evaluation.pmi.correlation import Quadrants, excesses, pearson, quadrants, spearman
from cadec_cli.evaluation.pmi.scores import (
    ContextScores,
    EncodedText,
    TextScorer,
    own_contexts,
    random_contexts,
)
from cadec_cli.files import whole_file

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

PMI = "PMI"
CONDITIONAL = "log p"

# Robust standard deviations above the median from which a difference of PMI is far off.
FAR = 3.0

_COLUMNS = ("conditional", "free", "pmi")


@dataclass(frozen=True)
class Panel:
    """One scatter: a value of source sentences against that of their translations."""

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
        """Points by their signs; log-probabilities have but one sign."""
        return quadrants(self.source, self.target) if self.value == PMI else None

    @cached_property
    def excesses(self) -> Floats:
        """How far the target's value is above what the source's lets one expect."""
        return excesses(self.source, self.target)


@dataclass(frozen=True)
class Outlier:
    """A translation whose PMI is far above its source's: the paper's sign of a broken one."""

    text: str
    document: int  # from 1
    sentence: int  # in its document, from 1
    source_pmi: float
    target_pmi: float
    deviations: float
    source: str
    translation: str


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
    """All that was scored: the reference with both kinds of contexts, then outputs with their own."""

    source: AlignedText
    translations: tuple[AlignedText, ...]  # the reference first
    pairings: tuple[_Pairing, ...]

    @cached_property
    def panels(self) -> list[Panel]:
        """The paper's four, then one for every output."""
        own, random, *outputs = self.pairings
        four = [pairing.panel(value) for value in (PMI, CONDITIONAL) for pairing in (own, random)]
        return four + [output.panel(PMI) for output in outputs]

    @property
    def output_panels(self) -> list[Panel]:
        """Those of outputs only."""
        return self.panels[4:]

    def outliers(self, panel: Panel, most: int) -> list[Outlier]:
        """The sentences of an output that are furthest off, furthest first."""
        text = next(text for text in self.translations if text.name == panel.text)
        far = np.flatnonzero(panel.excesses > FAR)
        furthest = far[np.argsort(-panel.excesses[far], kind="stable")][:most]
        return [
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
        ]

    def write_points(self, path: Path) -> None:
        """Write a row for every sentence, text and kind of context; those without context have PMI 0."""
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
        with whole_file(path) as stream:
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
) -> Analysis:
    """Score source and translations, with their own contexts and with random ones."""
    source_rng, target_rng = (np.random.default_rng([seed, side]) for side in range(2))
    encoded = source_lm.encode(source)
    own = _own(source_lm, encoded, context)
    # Drawn before anything long begins: that there is only one document should be told at once.
    elsewhere = random_contexts(encoded.documents, context, source_rng)
    target = target_lm.encode(reference)
    pairings = [
        _Pairing(reference.name, "own", own, _own(target_lm, target, context)),
        _Pairing(
            reference.name,
            "random",
            source_lm.after(encoded, elsewhere, "random contexts"),
            target_lm.after(
                target, random_contexts(target.documents, context, target_rng), "random contexts"
            ),
        ),
    ]
    for output in outputs:
        pairings.append(_Pairing(output.name, "own", own, _own(target_lm, target_lm.encode(output), context)))
    return Analysis(source, (reference, *outputs), tuple(pairings))


def _own(scorer: TextScorer, text: EncodedText, context: int) -> ContextScores:
    return scorer.after(text, own_contexts(text.documents, context))
