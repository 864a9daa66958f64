"""How long work tells how far it is, and what it has to say, without knowing of any terminal.

Whoever starts the work hands in where it goes; unless they do, nobody hears of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

Warn = Callable[[str], None]
Advance = Callable[[int], None]
# (what is done, how many sentences it is) → while that is done, a function to say how many more are
CountProgress = Callable[[str, int], AbstractContextManager[Advance]]


def no_warning(message: str) -> None:
    """Tell nobody."""


@contextmanager
def no_progress(what: str, total: int) -> Iterator[Advance]:
    """Draw nothing."""
    yield lambda sentences: None
