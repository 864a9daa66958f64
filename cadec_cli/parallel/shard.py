"""Shards: which of many items one of several jobs does, when the jobs know nothing of each other.

Every job computes the same division, from the sizes of the items alone.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from cadec_cli.errors import UsageError


@dataclass(frozen=True)
class Shard:
    """The part of one job: its number, from 1, and how many there are."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read `2/8`, the second of eight."""
        first, _, second = text.partition("/")
        # `isdigit` accepts digits that `int` does not; and nobody has a million jobs.
        if all(part.isascii() and part.isdigit() and len(part) < 6 for part in (first, second)):
            shard = cls(int(first), int(second))
            if 1 <= shard.number <= shard.of:
                return shard
        raise UsageError(f"{text!r} is no shard", "give its number and how many there are, e.g. 2/8")

    def of_sizes(self, sizes: Sequence[int]) -> list[int]:
        """The numbers of this shard's items, in their order.

        The largest items go first, each to the shard with least so far: so all are about equal.
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
