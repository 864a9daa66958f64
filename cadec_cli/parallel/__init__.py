"""Pools: workers that all do the same to many items, in this process, in others or on other machines.

Knows nothing of translation. A task says how a worker begins (it loads models, say) and what it then does to
each item; a pool hands out the items, brings back what was made of them, and begins again what a lost worker
had in hand.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from cadec_cli.errors import CadecError, option

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


# An ordered, many-process map over a stream: results in order, memory bounded, Ctrl-C clean.


def ordered_map(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    *,
    processes: int,
    setup: Callable[..., None],
    setup_arguments: tuple[object, ...] = (),
) -> Iterator[Result]:
    """Yield function(item) for every item, in order, computed by `processes` processes.

    `setup(*setup_arguments)` runs once in each process, before anything else. Items are taken only as fast
    as results are, so an endless stream needs no endless memory. `function` and `setup` are top-level
    functions: processes are spawned, since forking a program that has loaded torch is not safe.
    """
    if processes <= 1:
        setup(*setup_arguments)
        yield from map(function, items)
        return
    context = multiprocessing.get_context("spawn")
    # Not multiprocessing.Pool: when a process dies, as by lack of memory, that one waits for ever.
    with ProcessPoolExecutor(processes, context, _initialise, (setup, setup_arguments)) as pool:
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                with hold_interrupts():
                    waiting.append(pool.submit(function, item))
                if len(waiting) > 3 * processes:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise CadecError(
                "a worker process has died", f"perhaps memory ran out: try fewer {option('processes')}"
            ) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def hold_interrupts() -> Iterator[None]:
    """Start processes deaf to Ctrl-C, which a terminal sends to all: the parent hears it and ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ignore_interrupts() -> None:
    """Be deaf to Ctrl-C where it could not be held back: what a process does first."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _initialise(setup: Callable[..., None], arguments: tuple[object, ...]) -> None:
    ignore_interrupts()
    setup(*arguments)
