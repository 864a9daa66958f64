"""Contrastive tests: does a scorer put the true translation above its variants, given what was said before?

Published sets put the true candidate first in every group, so that a scorer which can't tell candidates apart
looks perfect to a script that breaks ties by order. Here the true candidate has to beat every other one
strictly: a tie is wrong, and counted.

Knows nothing of models or files: groups and their scores in, figures out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cadec_cli.errors import CadecError
from cadec_cli.method.trie import Floats

SAMPLES, SEED = 1000, 1
# Antecedents further away than this are one class, as in ContraPro's own evaluation.
FAR = 3


@dataclass(frozen=True)
class Group:
    """One question: which of the candidates is the translation of `source` after `context`?

    Text is as the file has it. Contexts are oldest first; `context` is what the true translation comes after.
    """

    source: str
    context_source: tuple[str, ...]
    context: tuple[str, ...]
    candidates: tuple[str, ...]
    truth: int
    distance: int | None = None  # sentences between this one and the one that settles it
    name: str = ""  # what the group is called in messages: its number in the file

    def __post_init__(self) -> None:
        if not 0 <= self.truth < len(self.candidates):
            raise CadecError(
                f"the true candidate is number {self.truth} of {len(self.candidates)}, counted from 0"
            )
        if self.distinct < 2:
            raise CadecError("there are fewer than two different candidates")

    @property
    def distinct(self) -> int:
        """How many different candidates there are."""
        return len(set(self.candidates))

    @property
    def rivals(self) -> tuple[int, ...]:
        """The candidates that the true one has to beat: not those that are the same string."""
        true = self.candidates[self.truth]
        return tuple(index for index, text in enumerate(self.candidates) if text != true)


@dataclass(frozen=True)
class ContrastiveSet:
    """The groups of one file."""

    path: Path
    layout: str
    groups: tuple[Group, ...]
    tokenised: bool = False  # the text is in Moses' tokens, which are to be joined before it is encoded

    @property
    def name(self) -> str:
        """What tables call it."""
        name = self.path.name.split(".")[0] or self.path.name
        return name.encode("utf-8", "replace").decode()

    @property
    def chance(self) -> float:
        """The accuracy of a guess: the mean of one in so many different candidates."""
        return sum(1 / group.distinct for group in self.groups) / len(self.groups)


@dataclass(frozen=True)
class Verdict:
    """How a group ended."""

    right: bool
    tied: bool  # the true candidate is as good as the best of the others: wrong, but by a hair
    rival: int  # the best of the others


def judge(group: Group, scores: Sequence[float] | Floats) -> Verdict:
    """Tell whether the true candidate strictly beats all that differ from it."""
    if any(math.isnan(score) for score in scores):
        raise CadecError(
            f"group {group.name}: a score is not a number", "the weights of a model may be damaged"
        )
    rival = max(group.rivals, key=lambda index: float(scores[index]))
    true, best = float(scores[group.truth]), float(scores[rival])
    return Verdict(true > best, true == best, rival)


@dataclass(frozen=True)
class Accuracy:
    """The share of groups that a scorer got right, with its 95 % interval."""

    right: int
    groups: int
    ties: int
    low: float
    high: float
    by_distance: Mapping[str, tuple[int, int]]  # right, groups; empty where the set has no distances

    @property
    def share(self) -> float:
        """Right of all."""
        return self.right / self.groups


def accuracy(groups: Sequence[Group], verdicts: Sequence[Verdict], seed: int = SEED) -> Accuracy:
    """Count what is right, over all groups and by the distance of the antecedent."""
    right = sum(verdict.right for verdict in verdicts)
    low, high = interval(right, len(groups), seed)
    by_distance: dict[str, tuple[int, int]] = {}
    paired = zip(groups, verdicts, strict=True)
    placed = [(group.distance, verdict) for group, verdict in paired if group.distance is not None]
    for distance, verdict in sorted(placed, key=lambda item: item[0]):
        label = str(distance) if distance <= FAR else f">{FAR}"
        good, count = by_distance.get(label, (0, 0))
        by_distance[label] = (good + verdict.right, count + 1)
    ties = sum(verdict.tied for verdict in verdicts)
    return Accuracy(right, len(groups), ties, low, high, by_distance)


def interval(right: int, groups: int, seed: int = SEED) -> tuple[float, float]:
    """The 95 % bootstrap interval of an accuracy.

    A group is right or wrong, so the number right among as many groups drawn with replacement is a binomial
    variable: drawing it is the same as drawing the groups.
    """
    drawn = np.random.default_rng(seed).binomial(groups, right / groups, SAMPLES) / groups
    low, high = np.percentile(drawn, (2.5, 97.5))
    return float(low), float(high)
