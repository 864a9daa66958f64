"""The errors that users see: what happened, and what to do about it.

The library does not know the command line. Where a message names an option, it marks it with `option`: Python
shows it as a keyword argument, and the terminal as a flag.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

# Private-use characters, which do not occur in ordinary text.
_START, _VALUE, _END = "\ue000", "\ue001", "\ue002"
# Keyword arguments whose name differs from the option's, and switches.
_KEYWORDS = {
    "from": "source_language",
    "to": "target_language",
    "force": "force=True",
    "resume": "resume=True",
}
_MARK = re.compile(f"{_START}([^{_VALUE}{_END}]*)(?:{_VALUE}([^{_END}]*))?{_END}")


def option(name: str, value: str = "") -> str:
    """Mark the name of an option in a message or a hint, and a suggested value, if there is one."""
    return f"{_START}{name}{_VALUE}{value}{_END}" if value else f"{_START}{name}{_END}"


def as_flags(text: str) -> str:
    """Write the options in a text as flags: `--long split`."""
    return _MARK.sub(lambda mark: f"--{mark[1]} {mark[2]}" if mark[2] else f"--{mark[1]}", text)


def as_keywords(text: str) -> str:
    """Write the options in a text as keyword arguments: `long="split"`."""
    return _MARK.sub(_keyword, text)


def _keyword(mark: re.Match[str]) -> str:
    name = _KEYWORDS.get(mark[1], mark[1].replace("-", "_"))
    return f'{name}="{mark[2]}"' if mark[2] else name


class CadecError(Exception):
    """An error that the user can act on: what happened, and a hint what to do about it.

    `message` and `hint` are for people who write Python. The terminal shows `marked_message` and
    `marked_hint`, in one red line and a hint, with options as flags and never with a traceback.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.marked_message = message
        self.marked_hint = hint

    @property
    def message(self) -> str:
        """What happened."""
        return as_keywords(self.marked_message)

    @property
    def hint(self) -> str:
        """What to do about it; empty if there is nothing to suggest."""
        return as_keywords(self.marked_hint)

    def __str__(self) -> str:
        return self.message


class WriteError(CadecError):
    """A file or directory could not be written: no space, no permission, a failing disk."""


class Interrupted(Exception):  # noqa: N818 - not an error
    """Ctrl-C, with a message about the work that was interrupted.

    Not a KeyboardInterrupt: Typer handles those, and prints no message.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.marked_message = message

    def __str__(self) -> str:
        return as_keywords(self.marked_message)


class UsageError(CadecError):
    """A request that contradicts itself or is out of range. The terminal exits with code 2."""


@contextmanager
def as_usage_error() -> Iterator[None]:
    """Turn any CadecError in this block into a UsageError."""
    try:
        yield
    except UsageError:
        raise
    except CadecError as error:
        raise UsageError(error.marked_message, error.marked_hint) from error
