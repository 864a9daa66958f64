"""How the REPL handles a line: it translates a sentence and executes a command; only /quit ends it.

Knows the session and where results go, but not where lines come from: a prompt (prompt.py) or a pipe. It is
given the table of commands (commands.py).
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path
from typing import IO, cast

from cadec_cli.commands.repl.autosave import Autosave
from cadec_cli.commands.repl.views import Output
from cadec_cli.decoding.translation import join_first_hypotheses
from cadec_cli.errors import CadecError
from cadec_cli.fs.read import MAX_INPUT_BYTES, MAX_LINE_LENGTH
from cadec_cli.session.session import Entry, Session
from cadec_cli.terminal import console
from cadec_cli.text.documents import Sentence


class Quit(Exception):  # noqa: N818 - it is not an error
    """The user wants to leave."""


@dataclass(frozen=True)
class Command:
    """A command as /help shows it, and the function that gets the text after its name."""

    usage: str
    help: str
    obey: Callable[[Repl, str], None]
    takes_file: bool = False

    @property
    def name(self) -> str:
        """The word after the slash."""
        return self.usage[1:].split(" ")[0]


class Repl:
    """A session that executes lines."""

    def __init__(
        self,
        session: Session,
        output: Output,
        autosave: Autosave,
        commands: Mapping[str, Command],
        *,
        compare: bool = False,
        encoding: str = "utf-8",
        max_input: int = MAX_INPUT_BYTES,
    ) -> None:
        self.session = session
        self.output = output
        self.commands = commands
        self.comparing = compare
        self.ask: Callable[[str], str | None] | None = None  # lets a user edit a text; None in a pipe
        self.autosave = autosave
        self.encoding = encoding  # of the files that /open reads
        self.max_input = max_input  # the most bytes of such a file
        self.written: set[Path] = set()  # files of this session, which may write them again
        self.unheard: float | None = None  # the temperature before a formality was set
        self._more = False  # lines are waiting
        self._failures = 0

    def read(self, stream: IO[bytes]) -> bool:
        """Execute the lines of a pipe, each at once; return False if any of them failed.

        A blank line ends a document, as it does in files, and is written to the output, too.
        """
        try:
            for number, (raw, more) in enumerate(_lines(stream), 1):
                try:
                    line = raw.decode("utf-8").removeprefix("\ufeff" if number == 1 else "")
                except UnicodeDecodeError:
                    self._fail(f"line {number} is not UTF-8")
                    continue
                if not line.strip():
                    self.output.blank()
                    self._end_document()
                elif not self._enter(line, more):
                    break
        finally:
            self.autosave.finish(self.session)
        return not self._failures

    def enter(self, text: str) -> bool:
        """Execute one line, or several pasted ones; return False to quit. Failures are printed.

        A blank line between others ends a document. Alone it does nothing: people press Enter to see whether
        the program responds.
        """
        *first, last = text.strip("\n").split("\n")
        try:
            for line in first:
                if not line.strip():
                    self._end_document()
                elif not self._enter(line, more=True):
                    return False
            return self._enter(last)
        finally:
            self.autosave.finish(self.session)

    def _end_document(self) -> None:
        self.session.new()
        self.save(at_once=False)

    def _enter(self, line: str, more: bool = False) -> bool:
        """Execute a line; if more of them are waiting, saving the session may wait as well."""
        self._more = more
        try:
            return self._obey(line.rstrip("\r"))
        except CadecError as error:
            self._fail(error.marked_message, error.marked_hint)
        except OSError:
            raise  # nobody reads the results any more
        except Exception as error:
            if console.debugging():
                raise
            self._fail(f"{type(error).__name__}: {error}", "this is a bug in cadec; --debug shows where")
        return True

    def _fail(self, message: str, hint: str = "") -> None:
        self._failures += 1
        console.error(message, hint)

    def _obey(self, line: str) -> bool:
        # Two slashes begin a sentence that begins with one.
        if not line.startswith("/") or line.startswith("//"):
            self._translate(line.removeprefix("/"))
            return True
        name, _, rest = line[1:].partition(" ")
        if name not in self.commands:
            raise CadecError(f"unknown command /{name}", self._suggestion(name))
        try:
            self.commands[name].obey(self, rest.strip())
        except Quit:
            return False
        return True

    def _suggestion(self, name: str) -> str:
        near = difflib.get_close_matches(name.lower(), self.commands, 1, cutoff=0.5)
        return f"did you mean /{near[0]}? /help lists all" if near else "/help lists all"

    def _translate(self, line: str) -> None:
        sentences = self.session.sentences(line)
        in_line = [Sentence(text, goes_on=number > 0) for number, text in enumerate(sentences)]
        for entry in self.session.translate(in_line):
            self.save(at_once=not self._more)
            self.show(entry)
            judge = self.session.judge
            self.output.flag(judge.of_parts(entry.source, entry.parts), judge)

    def show(self, entry: Entry) -> None:
        """Show a translation, beside that of the sentence level if the user wants to compare."""
        alone = join_first_hypotheses(self.session.sentence_level(entry)) if self.comparing else None
        self.output.translation(entry.text, alone)

    def save(self, at_once: bool = True) -> None:
        """Save the changes, now or soon."""
        self.autosave.save(self.session, at_once=at_once)


def _lines(stream: IO[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yield lines as they arrive, each with whether more are already waiting."""
    rest = b""
    while chunk := cast(BufferedIOBase, stream).read1(1 << 16):
        *whole, rest = (rest + chunk).split(b"\n")
        if len(rest) > MAX_LINE_LENGTH:
            raise CadecError(
                "standard input has a line without an end", "end every sentence with a line break"
            )
        for number, line in enumerate(whole, 1):
            yield line, number < len(whole)
    if rest:
        yield rest, False
