"""A tuning run: the development set is translated with all settings, and one of them is taken."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cadec_cli.engines.protocols import Models
from cadec_cli.errors import CadecError
from cadec_cli.evaluation.quality.significance import Difference
from cadec_cli.evaluation.reporting import CountProgress, no_progress
from cadec_cli.evaluation.tuning.choosing import Decision, decide
from cadec_cli.evaluation.tuning.coordinates import coordinate_search
from cadec_cli.evaluation.tuning.grid import prepare_lists, reranking_translator
from cadec_cli.evaluation.tuning.pareto import ContrastiveTest, front
from cadec_cli.evaluation.tuning.points import Point, above
from cadec_cli.evaluation.tuning.settings import Trial
from cadec_cli.method.options import TranslationOptions

Documents = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Tuning:
    """What a run found; `over_level` tells how far each point is above the sentence level in BLEU."""

    trial: Trial
    protocol: str
    level: Point
    points: tuple[Point, ...]
    over_level: tuple[Difference, ...]
    decision: Decision | CadecError  # an error where no setting is what the protocol asks for
    sets: tuple[str, ...] = ()  # the contrastive sets

    @property
    def choice(self) -> Point | None:
        """What is taken."""
        return self.decision.point if isinstance(self.decision, Decision) else None

    @property
    def present(self) -> Point:
        """How what is used at present did."""
        return next(point for point in self.points if point.setting == self.trial.present)

    @cached_property
    def front(self) -> list[Point]:
        """The points that no other one beats at both BLEU and contrastive accuracy; none without sets."""
        return front(self.points) if self.sets else []

    def remarks(self, point: Point) -> list[str]:
        """What there is to say of a point."""
        best = max(self.points, key=lambda one: one.bleu)
        said = {
            "chosen": point is self.choice,
            "present": point is self.present,
            "best BLEU": point.bleu == best.bleu,
            "Pareto": any(point is one for one in self.front),
        }
        return [remark for remark, holds in said.items() if holds]

    def record(self, bundle: str) -> dict[str, Any]:
        """All of it as plain data."""
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
    models: Models,
    sources: Documents,
    references: Documents,
    trial: Trial,
    protocol: str = "best",
    *,
    options: TranslationOptions,
    language: str = "",
    split_language: str | None = None,
    contrastive: ContrastiveTest | None = None,
    counted: CountProgress = no_progress,
) -> Tuning:
    """Translate a development set with every setting of a trial, and choose.

    All else is as the options say, for text in a language: lists, protection and context are those of a
    translation with them.
    """
    if sum(map(len, references)) < 2:
        raise CadecError(
            "a development set of one line can't tell a difference from noise", "some hundred lines are few"
        )
    if contrastive is not None:
        contrastive.check()
    development = prepare_lists(
        reranking_translator(models, options, trial.objective, language),
        sources,
        references,
        trial.settings,
        split_language=split_language,
        counted=counted,
    )
    if trial.together:
        start, *others = trial.settings
        level, points = coordinate_search(development, start.weights, start.temperature, counted=counted)
        if others:  # what is used at present, at another temperature
            points += development.points(others, counted)[1]
    else:
        level, points = development.points(trial.settings, counted)
    if contrastive is not None:
        level, points = contrastive.with_accuracies(trial.objective, level, points, counted)
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
