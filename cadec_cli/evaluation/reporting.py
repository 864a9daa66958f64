"""How long work tells how far it is, and what it has to say, without knowing of any terminal.

Whoever starts the work hands in where it goes; unless they do, nobody hears of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

Warn = Callable[[str], None]
Advance = Callable[[int], None]
# (what is done, how many sentences it is) → while that is done, a function to say how many more are
Counted = Callable[[str, int], AbstractContextManager[Advance]]


def unheard(message: str) -> None:
    """Tell nobody."""


@contextmanager
def uncounted(what: str, total: int) -> Iterator[Advance]:
    """Draw nothing."""
    yield lambda sentences: None
