"""An ordered, many-process map over a stream: results in order, memory bounded, Ctrl-C clean."""

import contextlib
import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from cadec_cli.errors import CadecError

Item = TypeVar("Item")
Result = TypeVar("Result")


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
                "a worker process has died", "perhaps memory ran out: try fewer --processes"
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
