"""BLEU against contrastive accuracy: what a setting gives up of one for the other.

BLEU hardly sees what context is for; contrastive sets see nothing else. No single figure weighs the two, so
what is worth a look is the front: settings that no other one beats at both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cadec_cli.evaluation.contrastive.groups import ContrastiveSet
from cadec_cli.evaluation.contrastive.results import evaluate
from cadec_cli.evaluation.contrastive.scoring import ContrastiveModels, Scorer
from cadec_cli.evaluation.reporting import CountProgress, no_progress
from cadec_cli.evaluation.tuning.points import Point
from cadec_cli.method.objectives import objective
from cadec_cli.method.terms import Terms


@dataclass(frozen=True)
class ContrastiveTest:
    """Sets, and the models that score them at all temperatures that are tried."""

    models: ContrastiveModels
    sets: tuple[ContrastiveSet, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """What tables call the sets."""
        return tuple(one.name for one in self.sets)

    def check(self) -> None:
        """Refuse sets that the models can't read, before the work."""
        for one in self.sets:
            self.models.check(one)

    def with_accuracies(
        self, name: str, level: Point, points: Sequence[Point], counted: CountProgress = no_progress
    ) -> tuple[Point, list[Point]]:
        """The points with what their settings make of every set; groups are scored once for all of them."""
        temperatures = self.models.scoring_options.temperatures
        scorers = [
            Scorer(objective("sentence")),
            *(
                Scorer(
                    objective(name, point.setting.weights),
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
    """The points that no other one beats, by accuracy; of points that are equal in both, all."""

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
