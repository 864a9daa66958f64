"""Progress bars for the work of the evaluation room, which draws none itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cadec_cli import console

if TYPE_CHECKING:
    from cadec_cli.evaluation.reporting import Advance, CountProgress


@contextmanager
def progress_bar(what: str, total: int) -> Iterator[Advance]:
    """One bar, gone when the work is done."""
    with progress_bars() as each, each(what, total) as advance:
        yield advance


@contextmanager
def progress_bars() -> Iterator[CountProgress]:
    """Bars one below the other, all gone at the end."""
    with console.progress("sentences") as bar:

        @contextmanager
        def one_more(what: str, total: int) -> Iterator[Advance]:
            task = bar.add_task(console.visible(what), total=total)
            yield lambda sentences: bar.advance(task, sentences)

        yield one_more
