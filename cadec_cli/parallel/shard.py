"""Shards: how several jobs that know nothing of each other divide many items among themselves.

Every job computes the same division, from the sizes of the items alone.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from cadec_cli.errors import UsageError


@dataclass(frozen=True)
class Shard:
    """The share of one job: its number, from 1, and the number of shards."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read `2/8`, the second of eight."""
        first, _, second = text.partition("/")
        # `isdigit` accepts digits that `int` does not. The limit is far above any number of jobs.
        if all(part.isascii() and part.isdigit() and len(part) < 6 for part in (first, second)):
            shard = cls(int(first), int(second))
            if 1 <= shard.number <= shard.of:
                return shard
        raise UsageError(f"invalid shard {text!r}: expected I/N with 1 ≤ I ≤ N", "the second of eight is 2/8")

    def of_sizes(self, sizes: Sequence[int]) -> list[int]:
        """Return the numbers of this shard's items, in order.

        The largest items go first, each to the shard that is smallest so far, so shards are about equal.
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
