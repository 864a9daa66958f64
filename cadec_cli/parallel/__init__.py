"""Pools of workers that all do the same to many items: in this process, in others, or on other machines.

Knows nothing of translation. A task says how a worker starts (it loads models, say) and what it then does to
each item. A pool hands out the items, returns the results, and begins again what a lost worker had in hand.
`processes` has a pool of processes, `ray` one of Ray actors.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, cast

from cadec_cli.errors import CadecError

Item = TypeVar("Item")
Result = TypeVar("Result")

# How often an item is begun before it is blamed for the loss of its workers.
ATTEMPTS = 3


class WorkerLostError(CadecError):
    """Too many workers were lost; `number` is that of the item, from 0, if an item is to blame."""

    def __init__(self, message: str, hint: str, number: int | None = None) -> None:
        super().__init__(message, hint)
        self.number = number


# Items' numbers, each with its result, or with the error that its workers were lost.
Results: TypeAlias = Iterator[tuple[int, Result | WorkerLostError]]


@dataclass(frozen=True)
class Task(Generic[Item, Result]):
    """What all workers do: `begin(*arguments)`, once in each, returns what is then called with every item.

    `begin` is a top-level function; arguments, items and results can be pickled. With a `window`, no item is
    begun that comes so many or more after the first one that is not done: for results that are wanted in
    order, and would have to wait for that one in memory.
    """

    begin: Callable[..., Callable[[Item], Result]]
    arguments: tuple[Any, ...] = ()
    window: int | None = None


class WorkerPool(Protocol):
    """Workers that do a task."""

    @property
    def size(self) -> int:
        """How many work at a time."""

    def run(self, task: Task[Item, Result], items: Iterable[Item]) -> Results[Result]:
        """Yield each item's number with its result, as they are done.

        Items are begun in their order, and taken only as fast as workers get free: a few more than there are
        workers are in memory. What a lost worker had in hand is begun again by another, up to ATTEMPTS times.
        Then its result is a WorkerLostError, and the rest is done nevertheless, unless several of these
        follow each other. An error that the task raises ends everything and is raised here, as it was raised
        there. To close the generator ends the workers' work.
        """


class SerialPool:
    """A pool of one: this process."""

    size = 1

    def run(self, task: Task[Item, Result], items: Iterable[Item]) -> Results[Result]:
        """Do one item after the other."""
        work = task.begin(*task.arguments)
        for number, item in enumerate(items):
            yield number, work(item)


def in_order(results: Results[Result]) -> Iterator[Result]:
    """The results of a pool in the order of the items; those that come early wait in memory.

    A WorkerLostError is raised at once: all results after it would have to wait. The workers' work ends when
    this does, however it ends.
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
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
