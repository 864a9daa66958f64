"""Contrastive tests: does a scorer prefer the true translation to its variants, given what was said before?

Published sets put the true candidate first in every group, so that a scorer that can't tell candidates apart
looks perfect to a script that breaks ties by order. Here the true candidate has to beat every other one
strictly. A tie is wrong, and ties are counted.

This module knows nothing of models or files: it takes groups and their scores, and gives figures.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from cadec_cli.arrays import Floats
from cadec_cli.errors import CadecError

T = TypeVar("T")

SAMPLES, SEED = 1000, 1
# Antecedents further away than this form one class, as in ContraPro's own evaluation.
FAR = 3


class NothingToChooseError(CadecError):
    """All candidates of a group are equal, or there is only one: no scorer can be right or wrong."""

    def __init__(self, candidates: int) -> None:
        super().__init__("there are fewer than two different candidates")
        self.candidates = candidates


@dataclass(frozen=True)
class Group:
    """One question: which of the candidates is the translation of `source` after `context`?

    Texts are as in the file. Contexts are oldest first; `context` stands before the true translation.
    """

    source: str
    context_source: tuple[str, ...]
    context: tuple[str, ...]
    candidates: tuple[str, ...]
    truth: int
    distance: int | None = None  # sentences back to the antecedent, if the set says so
    name: str = ""  # its number in the file, for messages

    def __post_init__(self) -> None:
        if not 0 <= self.truth < len(self.candidates):
            raise CadecError(
                f"the true candidate is number {self.truth} of {len(self.candidates)}, counted from 0"
            )
        if self.distinct < 2:
            raise NothingToChooseError(len(self.candidates))

    @property
    def distinct(self) -> int:
        """How many different candidates there are."""
        return len(set(self.candidates))

    @property
    def rivals(self) -> tuple[int, ...]:
        """The candidates that the true one has to beat: all that are another string."""
        true = self.candidates[self.truth]
        return tuple(index for index, text in enumerate(self.candidates) if text != true)


@dataclass(frozen=True)
class Undecidable:
    """A group that was left out because all of its candidates are equal."""

    name: str
    candidates: int
    place: int  # how many groups of the set come before it


@dataclass(frozen=True)
class ContrastiveSet:
    """The groups of one file, without the undecidable ones."""

    path: Path
    layout: str
    groups: tuple[Group, ...]
    tokenised: bool = False  # texts are Moses tokens, to be joined before a model encodes them
    undecidable: tuple[Undecidable, ...] = ()

    @property
    def left_out(self) -> int:
        """How many groups of the file are left out of every figure."""
        return len(self.undecidable)

    @property
    def name(self) -> str:
        """Its name in tables: that of the file without its endings."""
        name = self.path.name.split(".")[0] or self.path.name
        return name.encode("utf-8", "replace").decode()

    @property
    def chance(self) -> float:
        """The expected accuracy of a random choice among the different candidates."""
        return sum(1 / group.distinct for group in self.groups) / len(self.groups)

    def in_file_order(self, of_groups: Iterable[T]) -> Iterator[T | Undecidable]:
        """Yield the items, one per group, with the undecidable groups where they stood in the file.

        Files of scores go by position, so that they need a line for every candidate of the file.
        """
        remaining = iter(of_groups)
        done = 0
        for gap in self.undecidable:
            yield from itertools.islice(remaining, gap.place - done)
            done = gap.place
            yield gap
        yield from remaining


@dataclass(frozen=True)
class Verdict:
    """Whether a scorer got a group right."""

    right: bool
    tied: bool  # the true candidate scores the same as the best of the others
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
    by_distance: Mapping[str, tuple[int, int]]  # right, groups; empty if the set has no distances

    @property
    def share(self) -> float:
        """Right groups among all."""
        return self.right / self.groups


def accuracy(groups: Sequence[Group], verdicts: Sequence[Verdict], seed: int = SEED) -> Accuracy:
    """Count the right groups, over all and by the distance of the antecedent."""
    right = sum(verdict.right for verdict in verdicts)
    low, high = accuracy_interval(right, len(groups), seed)
    by_distance: dict[str, tuple[int, int]] = {}
    paired = zip(groups, verdicts, strict=True)
    placed = [(group.distance, verdict) for group, verdict in paired if group.distance is not None]
    for distance, verdict in sorted(placed, key=lambda item: item[0]):
        label = str(distance) if distance <= FAR else f">{FAR}"
        good, count = by_distance.get(label, (0, 0))
        by_distance[label] = (good + verdict.right, count + 1)
    ties = sum(verdict.tied for verdict in verdicts)
    return Accuracy(right, len(groups), ties, low, high, by_distance)


def accuracy_interval(right: int, groups: int, seed: int = SEED) -> tuple[float, float]:
    """The 95 % bootstrap interval of an accuracy.

    A group is right or wrong, so the number right among as many groups drawn with replacement is a binomial
    variable: drawing it is the same as drawing the groups.
    """
    drawn = np.random.default_rng(seed).binomial(groups, right / groups, SAMPLES) / groups
    low, high = np.percentile(drawn, (2.5, 97.5))
    return float(low), float(high)
