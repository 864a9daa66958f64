"""What the REPL does with a line: a sentence is translated, a command obeyed; nothing ends it but /quit.

Knows the session and where results go, not where lines come from: a prompt (prompt.py) or a pipe. The
commands are a table that it is given (commands.py).
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


class Quit(Exception):  # noqa: N818 - it is no error
    """The person wants to leave."""


@dataclass(frozen=True)
class Command:
    """A command as /help shows it, and what it does with the text after its name."""

    usage: str
    help: str
    obey: Callable[[Repl, str], None]
    takes_file: bool = False

    @property
    def name(self) -> str:
        """The word after the slash."""
        return self.usage[1:].split(" ")[0]


class Repl:
    """A session that obeys lines."""

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
        self.ask: Callable[[str], str | None] | None = None  # lets a person edit a text, where one is there
        self.autosave = autosave
        self.encoding = encoding  # of the files that are opened
        self.max_input = max_input  # bytes of one of them
        self.written: set[Path] = set()  # by this session, which may write them again
        self.unheard: float | None = None  # the temperature before a formality was asked for
        self._more = False  # lines are waiting
        self._failures = 0

    def read(self, stream: IO[bytes]) -> bool:
        """Obey the lines of a pipe, each at once; tell whether none of them failed.

        A blank line ends a document, as it does in files, and is one in the output, too.
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
        """Obey one line, or several that were pasted; tell whether to go on. Failures are said.

        A blank line between others ends a document. Alone it is nothing: people press Enter to see whether
        anybody is there.
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
        """Obey a line; with more of them waiting, saving the session may wait as well."""
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
        for entry in self.session.translate(self.session.sentences(line)):
            self.save(at_once=not self._more)
            self.show(entry)
            judge = self.session.judge
            self.output.flag(judge.of_parts(entry.source, entry.parts), judge)

    def show(self, entry: Entry) -> None:
        """Show a translation, beside the sentence level's if that is wanted."""
        alone = join_first_hypotheses(self.session.sentence_level(entry)) if self.comparing else None
        self.output.translation(entry.text, alone)

    def save(self, at_once: bool = True) -> None:
        """Have what has changed saved, now or soon."""
        self.autosave.save(self.session, at_once=at_once)


def _lines(stream: IO[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Lines as they arrive, and whether others came with them."""
    rest = b""
    while chunk := cast(BufferedIOBase, stream).read1(1 << 16):
        *whole, rest = (rest + chunk).split(b"\n")
        if len(rest) > MAX_LINE_LENGTH:
            raise CadecError(
                "standard input has a line that never ends", "end every sentence with a line break"
            )
        for number, line in enumerate(whole, 1):
            yield line, number < len(whole)
    if rest:
        yield rest, False
