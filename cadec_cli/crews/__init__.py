"""Pools: workers that all do the same to many items, in this process, in others or on other machines.

Knows nothing of translation. A task says how a worker begins (it loads models, say) and what it then does to
each item; a pool hands out the items, brings back what was made of them, and begins again what a lost worker
had in hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from cadec_cli.errors import CadecError

Item = TypeVar("Item")
Result = TypeVar("Result")

# How often an item is begun before it counts as what takes workers down.
ATTEMPTS = 3


class WorkerLostError(CadecError):
    """Too many workers were lost; `number` is that of the item, from 0, if it was one that took them down."""

    def __init__(self, message: str, hint: str, number: int | None = None) -> None:
        super().__init__(message, hint)
        self.number = number


# Items' numbers, each with what was made of it, or with the error that it takes workers down.
Results: TypeAlias = Iterator[tuple[int, Result | WorkerLostError]]


@dataclass(frozen=True)
class Task(Generic[Item, Result]):
    """What all workers do: `begin(*arguments)`, once in each, returns what is then called with every item.

    `begin` is a top-level function; arguments, items and results can be pickled.
    """

    begin: Callable[..., Callable[[Item], Result]]
    arguments: tuple[Any, ...] = ()


class WorkerPool(Protocol):
    """Those who do a task."""

    @property
    def size(self) -> int:
        """How many work at a time."""

    def run(self, task: Task[Item, Result], items: Iterable[Item]) -> Results[Result]:
        """Yield each item's number with what was made of it, as they are done.

        Items are begun in their order, and taken only as fast as workers get free: a few more than there are
        workers are in memory, however many there will be. What a lost worker had in hand is begun again by
        another, up to ATTEMPTS times; then a LostMembersError is all that was made of it, and the rest is
        done nevertheless, unless several of these follow each other. An error that the task raises ends all
        of it and is raised here, as it was raised there. Whoever stops listening ends the workers' work.
        """


class SerialPool:
    """A pool of one: this process."""

    size = 1

    def run(self, task: Task[Item, Result], items: Iterable[Item]) -> Results[Result]:
        """One item after the other."""
        work = task.begin(*task.arguments)
        for number, item in enumerate(items):
            yield number, work(item)


def in_order(results: Iterable[tuple[int, Result | WorkerLostError]]) -> Iterator[Result]:
    """What was made of all items, in the items' order; what comes too early is kept.

    One that is lost ends it at once: everything after it would have to be kept.
    """
    early: dict[int, Result] = {}
    following = 0
    for number, result in results:
        if isinstance(result, WorkerLostError):
            raise result
        early[number] = result
        while following in early:
            yield early.pop(following)
            following += 1
