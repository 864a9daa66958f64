"""Standard streams that every command can rely on, and the one console on standard error.

Messages, progress and colour go to the console; results are plain text on standard output (`write_result`).
Results are UTF-8, whatever the locale or PYTHONIOENCODING says: they are read by programs, and Cyrillic has
to work under LC_ALL=C too. Messages are in the terminal's encoding; characters that it lacks are escaped.
Lone surrogates, which no encoding has, are escaped in both.

A closed stream (`>&-`) is replaced by one that raises an error when it is read or written. Its file
descriptor is taken, so that no file that is opened later becomes standard output by accident.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.text import Text

from cadec_cli.errors import CadecError, as_flags
from cadec_cli.validation import is_showable

if TYPE_CHECKING:
    from cadec_cli.evaluation.aligned import Advance, CountProgress


T = TypeVar("T")

_MAX_LENGTH = 2000  # characters of a message
_WIDTH = len("n-best 128/256")  # characters before a bar, so that it stays in its place


class SafeConsole(Console):
    """A console that shows control characters instead of obeying them, such as an ESC in a file's name.

    Text in tables should still go through `visible`, because widths are counted before this.
    """

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render untrusted text; Rich's own control codes, for colours and the cursor, stay."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield segment._replace(text=visible_lines(segment.text))


# Rich honours NO_COLOR and FORCE_COLOR by itself.
stderr = SafeConsole(stderr=True, highlight=False, soft_wrap=True)

_state = {"quiet": False, "debug": False, "drawing": False}
# The bar of `track` that is drawn, its task and what it says.
_bar: list[tuple[Progress, TaskID, str]] = []


def set_quiet(quiet: bool) -> None:
    """Silence notes and progress; errors are still shown."""
    _state["quiet"] = quiet


def is_quiet() -> bool:
    """Tell whether the user asked for silence."""
    return _state["quiet"]


def set_debug(debug: bool) -> None:
    """Show tracebacks."""
    _state["debug"] = debug


def debugging() -> bool:
    """Tell whether the user asked for tracebacks."""
    return _state["debug"]


def note(message: str) -> None:
    """Print a note for the person at the terminal, unless the user asked for quiet."""
    if not _state["quiet"]:
        stderr.print(_harmless(message), style="dim")


def warn(message: str) -> None:
    """Print a warning."""
    stderr.print(f"[yellow]warning:[/yellow] {_harmless(message)}")


def error(message: str, hint: str = "") -> None:
    """Print an error, in red, and a hint at what to do about it."""
    stderr.print(f"[bold red]error:[/bold red] {_harmless(message)}")
    if hint:
        stderr.print(f"[dim]hint: {_harmless(hint)}[/dim]")


def visible(text: str) -> str:
    """Replace control characters (ESC above all) by visible symbols, line ends included.

    Marked option names in messages of the library are shown as flags.
    """
    if text.isascii() and text.isprintable():
        return text
    text = as_flags(text)
    return "".join(
        character
        if is_showable(character)
        else chr(0x2400 + ord(character))
        if ord(character) < 0x20
        else "\ufffd"
        for character in text
    )


def visible_lines(text: str) -> str:
    """Do the same, but keep line breaks."""
    return "\n".join(map(visible, text.split("\n")))


def _harmless(message: str) -> str:
    """Make a message with untrusted text safe: escape markup and control characters, and limit its length."""
    message = as_flags(message)
    if len(message) > _MAX_LENGTH:  # for example, it quotes a file that is one long line
        message = f"{message[:_MAX_LENGTH]} …"
    return escape(visible_lines(message))


def live() -> bool:
    """Tell whether progress may be drawn: on a terminal, unless the user asked for quiet."""
    return stderr.is_terminal and not _state["quiet"]


def track(items: Iterable[T], description: str, total: int | None = None, unit: str = "lines") -> Iterator[T]:
    """Yield the items and draw a progress bar with the count, the speed and the time left."""
    if not live():
        yield from items
        return
    with progress(unit) as bar:
        task = bar.add_task(visible(description).ljust(_WIDTH), total=total)
        _bar.append((bar, task, description))
        try:
            for item in items:
                yield item
                bar.advance(task)
        finally:
            _bar.pop()


def preparing(what: str, done: int, total: int) -> None:
    """Say in the bar of `track` how much of the next work is prepared; once all is, the bar is as before."""
    if _bar:
        bar, task, description = _bar[-1]
        now = f"{what} {done}/{total}" if done < total else description
        bar.update(task, description=visible(now).ljust(_WIDTH))


@contextmanager
def loading(what: str) -> Iterator[None]:
    """Show that something is being loaded, and for how long, unless something else is drawn already."""
    if not live() or _state["drawing"]:
        yield
        return
    columns = SpinnerColumn(style="dim"), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with _drawing(), Progress(*columns, console=stderr, transient=True) as shown:
        shown.add_task(visible(f"loading {what} …"), total=None)
        yield


@contextmanager
def _drawing() -> Iterator[None]:
    """Mark that something is being drawn: a terminal has room for one live display."""
    before, _state["drawing"] = _state["drawing"], True
    try:
        yield
    finally:
        _state["drawing"] = before


@contextmanager
def progress(unit: str = "lines") -> Iterator[Progress]:
    """Open a progress display in the project's style; nothing is drawn unless `live`."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        _Count(),
        _Rate(unit),
        TimeElapsedColumn(),
        _Left(),
    )
    with _drawing(), Progress(*columns, console=stderr, disable=not live(), transient=True) as bar:
        yield bar


class _Count(MofNCompleteColumn):
    """The number of finished items, and the total if it is known."""

    def render(self, task: Task) -> Text:
        known = task.total is not None
        return super().render(task) if known else Text(f"{task.completed:,.0f}", style="progress.download")


class _Left(TimeRemainingColumn):
    """The time left, if the total is known."""

    def render(self, task: Task) -> Text:
        return Text("left ").append_text(super().render(task)) if task.total is not None else Text("")


class _Rate(TextColumn):
    def __init__(self, unit: str) -> None:
        super().__init__("")
        self.unit = unit

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.0f} {self.unit}/s" if speed else "", style="dim")


# Progress bars for cadec_cli.evaluation, which draws none itself.


@contextmanager
def progress_bar(what: str, total: int) -> Iterator[Advance]:
    """Show one bar, removed when the work is done."""
    with progress_bars() as each, each(what, total) as advance:
        yield advance


@contextmanager
def progress_bars() -> Iterator[CountProgress]:
    """Show bars one below the other, all removed at the end."""
    with progress("sentences") as bar:

        @contextmanager
        def one_more(what: str, total: int) -> Iterator[Advance]:
            task = bar.add_task(visible(what), total=total)
            yield lambda sentences: bar.advance(task, sentences)

        yield one_more


def prepare_streams() -> None:
    """Make the standard streams usable; calling it again does no harm."""
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _take_numbers()
    if sys.stdin is None:
        sys.stdin = io.TextIOWrapper(io.BufferedReader(_ClosedInput()), "utf-8")
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(_ClosedOutput()), "utf-8", write_through=True)
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the process ends
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors="backslashreplace")


def _take_numbers() -> None:
    """Open /dev/null under each of the three file descriptors that is free."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)


class _ClosedInput(io.RawIOBase):
    """Standard input that is closed: reading it is an error."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        raise CadecError("standard input is closed", "name a file, or pipe something in")


class _ClosedOutput(io.RawIOBase):
    """Standard output that is closed: writing the first result is an error."""

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 1

    def write(self, data: Any) -> int:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - nothing fails twice
        raise CadecError(
            "standard output is closed: the results can't be written",
            "name a file with --output, or leave out >&-",
        )


def write_result(data: bytes) -> None:
    """Write part of a result, at once.

    A pipe or a file gets the bytes. On a terminal, control characters in them are made visible, not obeyed.
    """
    if not sys.stdout.isatty():
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    sys.stdout.write(shown_result(data.decode("utf-8", "replace")))
    sys.stdout.flush()


def shown_result(text: str) -> str:
    """Make a result safe for a terminal: control characters become visible, line breaks and tabs stay."""

    if not any(character < " " or "\x7f" <= character < "\xa0" for character in text):
        return text
    return "\t".join(map(visible_lines, text.replace("\r\n", "\n").split("\t")))
