"""Pools of workers that apply one task to many items: in this process, in others, or on other machines.

Knows nothing of translation. A task defines how a worker starts (it loads models, say) and how it then
processes an item. A pool hands out the items, returns the results, and retries the item of a lost worker.
`processes` has a pool of processes, `ray` one of Ray actors.

Jobs that know nothing of each other divide many items by themselves: a `JobShard` is the share of one.
"""

from __future__ import annotations

import contextlib
import heapq
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast

from cadec_cli.errors import CadecError, UsageError

Item = TypeVar("Item")
Result = TypeVar("Result")

# How often an item is tried before it is blamed for the loss of its workers.
ATTEMPTS = 3


class WorkerLostError(CadecError):
    """Too many workers were lost; `number` is the number, from 0, of the item to blame, if there is one."""

    def __init__(self, message: str, hint: str, number: int | None = None) -> None:
        super().__init__(message, hint)
        self.number = number


# Item numbers, each with the item's result, or with an error if its workers were lost.
Results: TypeAlias = Iterator[tuple[int, Result | WorkerLostError]]


@dataclass(frozen=True)
class Task(Generic[Item, Result]):
    """The work of every worker: call `begin(*arguments)` once, and the function it returns with each item.

    `begin` is a top-level function; arguments, items and results can be pickled. `window` is for results that
    are wanted in order: an item is begun only if it is fewer than `window` items after the first unfinished
    one, since its result has to wait in memory for that one.
    """

    begin: Callable[..., Callable[[Item], Result]]
    arguments: tuple[Any, ...] = ()
    window: int | None = None


class WorkerPool(Protocol):
    """Workers that do a task."""

    @property
    def size(self) -> int:
        """The number of workers at a time."""

    def run(self, task: Task[Item, Result], items: Iterable[Item]) -> Results[Result]:
        """Yield each item's number with its result, in the order in which results arrive.

        Items are begun in order, and taken only as fast as workers become free, so few more items than
        workers are in memory. The item of a lost worker is given to another, ATTEMPTS times in all. Then its
        result is a WorkerLostError, and the other items are still processed, unless several such errors
        follow each other. An error raised by the task ends the work and is raised here unchanged. Closing
        the generator ends the workers.
        """


class SerialPool:
    """A pool of one: this process."""

    size = 1

    def run(self, task: Task[Item, Result], items: Iterable[Item]) -> Results[Result]:
        """Process the items one by one."""
        work = task.begin(*task.arguments)
        for number, item in enumerate(items):
            yield number, work(item)


def in_order(results: Results[Result]) -> Iterator[Result]:
    """Yield the results of a pool in the order of the items; results that come early wait in memory.

    A WorkerLostError is raised at once: all results after it would have to wait. The workers end when this
    generator does, however it ends.
    """
    early: dict[int, Result] = {}
    following = 0
    with contextlib.closing(cast("Generator[Any, None, None]", results)):
        for number, result in results:
            if isinstance(result, WorkerLostError):
                raise result
            early[number] = result
            while following in early:
                yield early.pop(following)
                following += 1


def available_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class JobShard:
    """The share of one job: its number, from 1, and the number of shards."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> JobShard:
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
