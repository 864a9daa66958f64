"""The errors that users see: what happened, and what to do about it. And what Ctrl-C leaves."""

from collections.abc import Iterator
from contextlib import contextmanager


class CadecError(Exception):
    """Something the user can act on. Printed as one red line and a hint, never as a traceback."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class WriteError(CadecError):
    """A file or directory could not be written: no space, no permission, a disk in trouble."""


class Interrupted(Exception):  # noqa: N818 - it is no error
    """Ctrl-C, with what there is to say of the work that it stopped.

    Not a KeyboardInterrupt: those are Typer's, which says nothing.
    """


class UsageError(CadecError):
    """What was typed can't be meant: flags that contradict each other, values out of range. Exit code 2."""


@contextmanager
def as_usage_error() -> Iterator[None]:
    """What fails in here is about what was typed, not about a file: a usage error."""
    try:
        yield
    except UsageError:
        raise
    except CadecError as error:
        raise UsageError(error.message, error.hint) from error
