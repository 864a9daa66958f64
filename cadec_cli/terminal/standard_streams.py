"""Standard streams that every command can rely on, however the process was started.

Results are UTF-8, whatever the locale or PYTHONIOENCODING says: they are read by programs, and Cyrillic has
to work under LC_ALL=C too. Messages are in the terminal's encoding; characters that it lacks are escaped.
Lone surrogates, which no encoding has, are escaped in both.

A closed stream (`>&-`) is replaced by one that raises an error when it is read or written. Its file
descriptor is taken, so that no file that is opened later becomes standard output by accident.
"""

import io
import os
import sys
from pathlib import Path
from typing import Any

from cadec_cli.errors import CadecError


def prepare() -> None:
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
    from cadec_cli.terminal.console import visible_lines

    if not any(character < " " or "\x7f" <= character < "\xa0" for character in text):
        return text
    return "\t".join(map(visible_lines, text.replace("\r\n", "\n").split("\t")))
