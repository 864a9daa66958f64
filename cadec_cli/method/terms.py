"""Named terms of hypotheses, as arrays: what was not computed is absent, never 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cadec_cli.arrays import Floats
from cadec_cli.method.objectives import Objective

# name → (hypotheses,), or (temperatures, hypotheses) where the term is a D-LM's
Terms = Mapping[str, Floats]


@dataclass(frozen=True)
class Scoring:
    """An objective, at one of the temperatures that the D-LM is read with."""

    objective: Objective
    index: int = 0  # of the temperature, among the reading's

    def at(self, terms: Terms) -> dict[str, Floats]:
        """The terms at this temperature."""
        return {name: values if values.ndim == 1 else values[self.index] for name, values in terms.items()}

    def scores(self, terms: Terms) -> Floats:
        """The score of every hypothesis."""
        scores: Floats = self.objective.score(self.at(terms))
        return scores
