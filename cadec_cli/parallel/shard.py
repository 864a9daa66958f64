"""Shares: which of many items one of several jobs does, when the jobs know nothing of each other.

Every job finds the same division by itself, from the items' sizes alone.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from cadec_cli.errors import UsageError


@dataclass(frozen=True)
class Shard:
    """The share of one job, counted from 1, of as many as there are."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read `2/8`, the second of eight."""
        first, _, second = text.partition("/")
        # Not everything that is a digit somewhere is one that `int` reads; and nobody has so many jobs.
        if all(part.isascii() and part.isdigit() and len(part) < 6 for part in (first, second)):
            share = cls(int(first), int(second))
            if 1 <= share.number <= share.of:
                return share
        raise UsageError(f"no share is {text!r}", "give its number and of how many it is one, e.g. 2/8")

    def of_sizes(self, sizes: Sequence[int]) -> list[int]:
        """The numbers of this share's items, in their order.

        The largest go first, each to the share that has least so far: all of them are about equal.
        """
        filled = [(0, number) for number in range(1, self.of + 1)]  # a heap
        own = []
        for item in sorted(range(len(sizes)), key=lambda item: -sizes[item]):
            size, number = filled[0]
            heapq.heapreplace(filled, (size + sizes[item], number))
            if number == self.number:
                own.append(item)
        return sorted(own)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"
