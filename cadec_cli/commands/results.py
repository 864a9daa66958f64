"""Results on standard output: bytes for programs, and something to look at for people."""

import sys

from cadec_cli.console import visible_lines


def write_result(data: bytes) -> None:
    """Write part of a result, at once.

    A pipe or a file gets its bytes. A terminal shows them: what a text or a model says must not command it.
    """
    if not sys.stdout.isatty():
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    sys.stdout.write(shown_result(data.decode("utf-8", "replace")))
    sys.stdout.flush()


def shown_result(text: str) -> str:
    """A result as a terminal may have it: lines stay lines, and columns columns."""
    if not any(character < " " or "\x7f" <= character < "\xa0" for character in text):
        return text
    return "\t".join(map(visible_lines, text.replace("\r\n", "\n").split("\t")))
