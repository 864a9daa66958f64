"""The REPL at a terminal: editing, history, completion, the bar at the bottom, Ctrl-C and Ctrl-D.

Ctrl-C clears the line; on an empty line it shows how to leave, and during a translation it stops that.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import has_focus
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import Output as TerminalOutput
from prompt_toolkit.output import create_output
from prompt_toolkit.styles import Style

from cadec_cli.commands.repl import commands
from cadec_cli.commands.repl.commands import COMMANDS
from cadec_cli.commands.repl.lines import Repl
from cadec_cli.commands.repl.views import count_noun
from cadec_cli.fs.locks import append_private
from cadec_cli.method.options import AUTO
from cadec_cli.terminal import console

_STYLE = Style.from_dict({"bottom-toolbar": "noreverse fg:ansibrightblack", "prompt": "ansicyan"})


class Prompt:
    """Asks for lines; input and output are the terminal's unless given."""

    def __init__(
        self, repl: Repl, history: Path, *, input: Input | None = None, output: TerminalOutput | None = None
    ) -> None:
        self._repl = repl
        # Prompts go to the terminal, although results may go to a file.
        screen = output or create_output(always_prefer_tty=True)
        self._lines: PromptSession[str] = PromptSession(
            history=_History(history),
            completer=CommandCompleter(),
            complete_while_typing=True,
            bottom_toolbar=lambda: toolbar(repl),
            key_bindings=_keys(),
            style=_STYLE,
            reserve_space_for_menu=6,
            input=input,
            output=screen,
        )
        self._edits: PromptSession[str] = PromptSession(style=_STYLE, input=input, output=screen)

    def read(self) -> str:
        """Read one line, or several pasted ones; an EOFError if the user leaves."""
        direction = self._repl.session.direction
        number = len(self._repl.session.current) + 1
        message: StyleAndTextTuples = [("class:prompt", f"{number} {direction.source}→{direction.target}> ")]
        return _whole(self._lines.prompt(message))

    def edit(self, text: str) -> str | None:
        """Let the user correct a text; None if they cancel."""
        try:
            return _whole(self._edits.prompt([("class:prompt", "edit> ")], default=text))
        except (KeyboardInterrupt, EOFError):
            return None


def converse(repl: Repl, prompt: Prompt) -> None:
    """Execute the user's lines until they leave."""
    repl.ask = prompt.edit
    while True:
        try:
            text = prompt.read()
        except EOFError:
            return
        except KeyboardInterrupt:
            console.note("Ctrl-D or /quit leaves")
            continue
        try:
            if not repl.enter(text):
                return
        except KeyboardInterrupt:
            console.note("stopped; the sentences before are kept")


def toolbar(repl: Repl) -> str:
    """The state of the session, in one line."""
    session = repl.session
    context = session.in_use
    documents, sentences = len(session.documents), sum(map(len, session.documents))
    used = f"context {len(context.own)}"
    if session.models.reader is not None:
        used += f" ({context.length}/{session.models.reader.positions} tokens)"
    options = session.options
    parts = [count_noun(documents, "document"), count_noun(sentences, "sentence"), used, options.search]
    parts.append(f"T {options.temperature:g}")
    parts += [options.formality] if options.formality != AUTO else []
    return " · ".join([*parts, *(["compare"] if repl.comparing else [])])


def _whole(text: str) -> str:
    """Make text encodable: a terminal may send bytes that are not UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("c-c", filter=has_focus(DEFAULT_BUFFER))
    def clear(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt, style="class:aborting")

    return keys


class CommandCompleter(Completer):
    """Completes commands, the names and values of /set, and file names; sentences are left alone."""

    def __init__(self) -> None:
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Yield completions of the text before the cursor."""
        text = document.text_before_cursor
        if not text.startswith("/") or "\n" in text:
            return
        command, space, rest = text[1:].partition(" ")
        if not space:
            for name, known in COMMANDS.items():
                if name.startswith(command.lower()):
                    yield Completion(name, -len(command), f"/{name}", known.help)
        elif command in COMMANDS and COMMANDS[command].takes_file:
            yield from self._paths.get_completions(Document(rest, len(rest)), complete_event)
        elif command == "compare":
            yield from _matching(("on", "off"), rest)
        elif command == "set":
            name, space, value = rest.partition(" ")
            yield from _matching(
                commands.VALUES.get(name, ()) if space else commands.NAMES, value if space else name
            )


def _matching(words: Iterable[str], typed: str) -> Iterator[Completion]:
    for word in words:
        if word.lower().startswith(typed.lower()):
            yield Completion(word, -len(typed))


class _History(FileHistory):
    """Lines of all sessions; a history that can't be read or written counts as empty, and is not an error."""

    def load_history_strings(self) -> Iterable[str]:
        try:
            return list(super().load_history_strings())
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        try:
            # Readable by nobody else from the first line on.
            append_private(Path(os.fsdecode(self.filename))).close()
            super().store_string(_whole(string))
        except OSError:
            return
