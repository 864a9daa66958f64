"""A tuning run: translate a development set with all settings, and choose one of them."""

from __future__ import annotations

import dataclasses
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from cadec_cli.bundle.build import lengths_of_pairs
from cadec_cli.bundle.find import is_embedded
from cadec_cli.bundle.manifest import MANIFEST, save_defaults, save_lengths
from cadec_cli.errors import CadecError, UsageError, option
from cadec_cli.evaluation.aligned import CountProgress, Warn, no_progress
from cadec_cli.evaluation.contrastive.scoring import ContrastiveModels, ContrastiveScorer, evaluate
from cadec_cli.evaluation.contrastive.sets import ContrastiveSet
from cadec_cli.evaluation.quality.measures import Difference
from cadec_cli.evaluation.tuning.search import (
    Decision,
    Point,
    Trial,
    above,
    coordinate_search,
    decide,
    prepare_lists,
    present_setting,
    reranking_translator,
)
from cadec_cli.jobs.job import TranslationJob
from cadec_cli.method.objectives import objective
from cadec_cli.method.options import DecodingDefaults
from cadec_cli.method.terms import Terms

# The trade-off between BLEU and contrastive accuracy.


@dataclass(frozen=True)
class ContrastiveTest:
    """Sets, and the models that score them at all temperatures that are tried."""

    models: ContrastiveModels
    sets: tuple[ContrastiveSet, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sets in tables."""
        return tuple(one.name for one in self.sets)

    def check(self) -> None:
        """Raise a CadecError if the models can't read a set; call it before the work."""
        for one in self.sets:
            self.models.check(one)

    def with_accuracies(
        self,
        name: str,
        reads: str,
        level: Point,
        points: Sequence[Point],
        counted: CountProgress = no_progress,
    ) -> tuple[Point, list[Point]]:
        """The points with their accuracies on every set; groups are scored once for all settings.

        `reads` is what the D-LM reads for the objective `name`.
        """
        temperatures = self.models.scoring_options.temperatures
        scorers = [
            ContrastiveScorer(objective("sentence")),
            *(
                ContrastiveScorer(
                    objective(name, point.setting.weights, reads),
                    temperatures.index(point.setting.temperature),
                    point.setting.temperature,
                )
                for point in points
            ),
        ]
        results = [evaluate(one, self._terms(one, counted), scorers).scorers for one in self.sets]
        shares = [tuple(result.accuracy.share for result in row) for row in zip(*results, strict=True)]
        return replace(level, accuracies=shares[0]), [
            replace(point, accuracies=of_sets) for point, of_sets in zip(points, shares[1:], strict=True)
        ]

    def _terms(self, one: ContrastiveSet, counted: CountProgress) -> list[Terms]:
        found: list[Terms] = []
        with counted(one.name, len(one.groups)) as advance:
            for terms in self.models.terms(one):
                found.append(terms)
                advance(1)
        return found


def front(points: Sequence[Point]) -> list[Point]:
    """The Pareto front, sorted by accuracy; points that are equal in both figures are all kept."""

    def beaten(point: Point) -> bool:
        return any(
            other.bleu >= point.bleu
            and other.accuracy >= point.accuracy
            and (other.bleu, other.accuracy) != (point.bleu, point.accuracy)
            for other in points
        )

    return sorted(
        (point for point in points if not beaten(point)), key=lambda point: (point.accuracy, -point.bleu)
    )


Documents = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Tuning:
    """The result of a run; `over_level` has each point's difference from the sentence level in BLEU."""

    trial: Trial
    protocol: str
    level: Point
    points: tuple[Point, ...]
    over_level: tuple[Difference, ...]
    decision: Decision | CadecError  # an error if no setting fits the protocol
    sets: tuple[str, ...] = ()  # the contrastive sets

    @property
    def choice(self) -> Point | None:
        """The point to use; None if no setting fits the protocol."""
        return self.decision.point if isinstance(self.decision, Decision) else None

    @property
    def present(self) -> Point:
        """The point of the present setting."""
        return next(point for point in self.points if point.setting == self.trial.present)

    @cached_property
    def front(self) -> list[Point]:
        """The Pareto front of BLEU and contrastive accuracy; empty without sets."""
        return front(self.points) if self.sets else []

    def remarks(self, point: Point) -> list[str]:
        """The remarks that tables show beside a point."""
        best = max(self.points, key=lambda one: one.bleu)
        said = {
            "chosen": point is self.choice,
            "present": point is self.present,
            "best BLEU": point.bleu == best.bleu,
            "Pareto": any(point is one for one in self.front),
        }
        return [remark for remark, holds in said.items() if holds]

    def record(self, bundle: str) -> dict[str, Any]:
        """The run as plain data."""
        choice = self.choice
        differences = dict(zip(map(id, self.points), self.over_level, strict=True))
        record: dict[str, Any] = {
            "bundle": bundle,
            "objective": self.trial.objective,
            "protocol": self.protocol,
            "present": dataclasses.asdict(self.trial.present),
            "sentence_level": self._point(self.level, None),
            "points": [self._point(point, differences[id(point)]) for point in self.points],
            "choice": self._point(choice, differences[id(choice)]) if choice is not None else None,
        }
        if isinstance(self.decision, Decision):
            against = self.decision.difference
            record["reason"] = self.decision.reason
            record["difference"] = against.record() if against is not None else None
        if self.sets:
            record["contrastive"] = list(self.sets)
        return record

    def _point(self, point: Point, over_level: Difference | None) -> dict[str, Any]:
        record: dict[str, Any] = {
            "setting": dataclasses.asdict(point.setting),
            "bleu": point.bleu,
            "chrf": point.chrf,
            "changed": point.changed,
        }
        if over_level is not None:
            record["over_sentence_level"] = over_level.record()
        if self.sets:
            record["accuracies"] = dict(zip(self.sets, point.accuracies, strict=True))
            record["pareto"] = any(point is one for one in self.front)
        return record


def run_tuning(
    job: TranslationJob,
    sources: Documents,
    references: Documents,
    trial: Trial,
    protocol: str = "best",
    *,
    split: bool = False,
    contrastive: ContrastiveTest | None = None,
    counted: CountProgress = no_progress,
) -> Tuning:
    """Translate a development set with every setting of a trial, and choose.

    All else is as in the job: lists, protection and context are those of its translations. With `split`,
    lines are paragraphs, whose sentences are translated one by one.
    """
    if sum(map(len, references)) < 2:
        raise CadecError(
            "a development set of one line can't tell a difference from noise", "use many hundred lines"
        )
    if contrastive is not None:
        contrastive.check()
    language = job.languages.source_code
    development = prepare_lists(
        reranking_translator(job.models, job.options, trial.objective, language),
        sources,
        references,
        trial.settings,
        split_language=language if split else None,
        counted=counted,
    )
    if trial.together:
        start, *others = trial.settings
        level, points = coordinate_search(development, start.weights, start.temperature, counted=counted)
        if others:  # the present setting, at another temperature
            points += development.points(others, counted)[1]
    else:
        level, points = development.points(trial.settings, counted)
    if contrastive is not None:
        level, points = contrastive.with_accuracies(
            trial.objective, job.options.reads, level, points, counted
        )
    present = next(point for point in points if point.setting == trial.present)
    decision: Decision | CadecError
    try:
        decision = decide(protocol, level, points, present)
    except CadecError as error:
        decision = error
    return Tuning(
        trial,
        protocol,
        level,
        tuple(points),
        tuple(above(level, points)),
        decision,
        contrastive.names if contrastive is not None else (),
    )


# The choice is saved in a bundle of the user's own, never in the one that comes with cadec.


_UNTOUCHED = "the bundle that comes with cadec is never changed"


def may_save(directory: Path, asked: bool | None) -> bool:
    """Tell whether to write the choice into a bundle; a CadecError before the work if that can't be done."""
    if is_embedded(directory):
        if asked:
            raise UsageError(_UNTOUCHED, f"tune one of your own: `cadec convert {directory} -o my-bundle`")
        return False
    wanted = asked is not False
    if wanted and not os.access(directory / MANIFEST, os.W_OK):
        raise CadecError(f"{directory} can't be written to", f"{option('no-save')} only reports the choice")
    return wanted


def save_choice(
    directory: Path, before: DecodingDefaults, after: DecodingDefaults, save: bool, note: Warn
) -> None:
    """Write the choice into the bundle, or show how to use and keep it."""
    place = shlex.quote(str(directory))
    if before == after:
        note(f"{directory} has it already: nothing to write")
    elif save:
        save_defaults(directory, after)
        note(f"written into {directory}; `cadec convert {place} {option('temperature')} …` changes it")
    else:
        flags = " ".join(_flags(before, after))
        if is_embedded(directory):
            note(f"not saved: {_UNTOUCHED}")
        note(f"to use it: `cadec translate {flags}`")
        note(f"to keep it: `cadec convert {place} {flags} -o my-bundle`")


def save_learnt_lengths(job: TranslationJob, pairs: Sequence[tuple[str, str]], note: Warn) -> None:
    """Save length limits, learnt from a development set, in a bundle that has none.

    A bundle with limits keeps them: they come from a text that its makers chose.
    """
    bundle = job.bundle
    own = (bundle.source_language, bundle.target_language)
    if bundle.manifest.lengths is None and (job.languages.source, job.languages.target) == own:
        lengths = lengths_of_pairs(bundle, pairs)
        save_lengths(bundle.directory, lengths)
        note(f"translations may have up to {lengths}: written into {bundle.directory}")


def _flags(before: DecodingDefaults, after: DecodingDefaults) -> list[str]:
    """The chosen setting, and all other changed defaults, as flags of `translate` and `convert`."""
    others = [
        part
        for name in ("objective", "context", "retrieve", "nbest")
        if getattr(after, name) != getattr(before, name)
        for part in (f"--{name}", str(getattr(after, name)))
    ]
    return [*others, *present_setting(after, after.objective).flags]
