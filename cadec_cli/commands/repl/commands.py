"""What the REPL does with a line: a sentence is translated, a command obeyed; nothing ends it but /quit.

Knows the session and where results go, not where lines come from: a prompt (repl_prompt.py) or a pipe.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path
from typing import IO, cast

from cadec_cli import console
from cadec_cli.commands.repl import settings as repl_settings
from cadec_cli.commands.repl import views as repl_show
from cadec_cli.commands.repl.state import Autosave, write_session
from cadec_cli.commands.repl.views import Output, counted
from cadec_cli.decoding.session import Entry, Session, ranked_part
from cadec_cli.decoding.session_files import is_session, stored_session
from cadec_cli.errors import CadecError
from cadec_cli.files import read_json, whole_file, writing
from cadec_cli.text.formats import TextFile, read_text_file
from cadec_cli.text.formats.plain import one_line

NBEST_ROWS = 10


@dataclass(frozen=True)
class Command:
    """A command as /help shows it; the method of Repl that obeys has its name."""

    usage: str
    help: str

    @property
    def name(self) -> str:
        """The word after the slash."""
        return self.usage[1:].split(" ")[0]


COMMANDS = {
    command.name: command
    for command in (
        Command("/context [n]", "the document so far, or its last n sentences: source and target"),
        Command("/nbest [n]", f"the n best hypotheses of the last sentence (n = {NBEST_ROWS}), with scores"),
        Command("/pick k", "take hypothesis k of /nbest; the context follows"),
        Command("/edit [text]", "correct the last translation by hand; the correction becomes context"),
        Command("/why", "what the context does to the last translation, token by token"),
        Command("/undo", "remove the last sentence"),
        Command("/new", "begin a new document"),
        Command("/set [name value]", "show or change options: T, beam, nbest, context, search, objective …"),
        Command("/compare on|off", "show the sentence level beside every translation"),
        Command("/save FILE", "write the session; FILE.txt gets the translations only"),
        Command("/load FILE", "take up a saved session"),
        Command("/open FILE", "translate a text or subtitle file, and go on after it"),
        Command("/help", "this"),
        Command("/quit", "leave; so does Ctrl-D"),
    )
}


class Repl:
    """A session that obeys lines."""

    def __init__(
        self,
        session: Session,
        output: Output,
        autosave: Autosave,
        *,
        compare: bool = False,
        encoding: str = "utf-8",
    ) -> None:
        self.session = session
        self.output = output
        self.comparing = compare
        self.ask: Callable[[str], str | None] | None = None  # lets a person edit a text, where one is there
        self._autosave = autosave
        self._encoding = encoding  # of the files that are opened
        self._more = False  # lines are waiting
        self._written: set[Path] = set()  # by this session, which may write them again

    def read(self, stream: IO[bytes]) -> None:
        """Obey the lines of a pipe, each at once."""
        try:
            for number, (raw, more) in enumerate(_lines(stream), 1):
                try:
                    line = raw.decode("utf-8").removeprefix("\ufeff" if number == 1 else "")
                except UnicodeDecodeError:
                    console.error(f"line {number} is not UTF-8")
                    continue
                if not self._enter(line, more):
                    return
        finally:
            self._autosave.finish(self.session)

    def enter(self, text: str) -> bool:
        """Obey one line, or several that were pasted; tell whether to go on. Failures are said."""
        *first, last = text.split("\n")
        try:
            return all(self._enter(line, more=True) for line in first) and self._enter(last)
        finally:
            self._autosave.finish(self.session)

    def _enter(self, line: str, more: bool = False) -> bool:
        """Obey a line; with more of them waiting, saving the session may wait as well."""
        self._more = more
        try:
            return self._obey(line.rstrip("\r"))
        except CadecError as error:
            console.error(error.message, error.hint)
        except OSError:
            raise  # nobody reads the results any more
        except Exception as error:
            if console.debugging():
                raise
            console.error(f"{type(error).__name__}: {error}", "this is a bug in cadec; --debug shows where")
        return True

    def _obey(self, line: str) -> bool:
        # Two slashes begin a sentence that begins with one.
        if not line.startswith("/") or line.startswith("//"):
            self._translate(line.removeprefix("/"))
            return True
        name, _, rest = line[1:].partition(" ")
        if name not in COMMANDS:
            raise CadecError(f"unknown command /{name}", _suggestion(name))
        if name == "quit":
            _no_argument(name, rest.strip())
            return False
        getattr(self, f"_{name}")(rest.strip())
        return True

    def _translate(self, line: str) -> None:
        for entry in self.session.translate(self.session.sentences(line)):
            self._changed(at_once=not self._more)
            self._show(entry)

    def _show(self, entry: Entry) -> None:
        self.output.translation(entry.text, self._sentence_level(entry) if self.comparing else None)

    def _sentence_level(self, entry: Entry) -> str:
        firsts = self.session.sentence_level(entry)
        return " ".join(
            first.text if first is not None else part.source
            for first, part in zip(firsts, entry.parts, strict=True)
        )

    def _changed(self, at_once: bool = True) -> None:
        self._autosave.save(self.session, at_once=at_once)

    def _context(self, rest: str) -> None:
        entries = self.session.current
        count = _number("context", rest) if rest else len(entries)
        if not entries:
            console.note("the document is still empty")
            return
        in_use = len(self.session.in_use.sentences)
        first = max(0, len(entries) - count)
        self.output.show(*repl_show.document(entries, first, len(self.session.documents), in_use))

    def _nbest(self, rest: str) -> None:
        count = _number("nbest", rest) if rest else NBEST_ROWS
        entry = self.session.last
        ranked_part(entry)
        first = self.session.sentence_level(entry)[-1]
        self.output.show(*repl_show.hypotheses(entry, count, first.text if first is not None else None))

    def _pick(self, rest: str) -> None:
        entry = self.session.pick(_number("pick", rest))
        self._changed()
        self._show(entry)

    def _edit(self, rest: str) -> None:
        text: str | None = rest
        if not rest:
            before = self.session.last.text
            if self.ask is None:
                raise CadecError("/edit needs the text", "as in: /edit TEXT")
            text = self.ask(before)
            if text is None or text == before:
                console.note("nothing was changed")
                return
        entry = self.session.edit(text or "")
        self._changed()
        self.output.translation(entry.text)

    def _why(self, rest: str) -> None:
        _no_argument("why", rest)
        self.output.show(*repl_show.explanation(self.session.explain()))

    def _undo(self, rest: str) -> None:
        _no_argument("undo", rest)
        removed = self.session.undo()
        self._changed()
        console.note("back in the document before" if removed is None else f"removed: {_short(removed)}")

    def _new(self, rest: str) -> None:
        _no_argument("new", rest)
        self.session.new()
        self._changed()
        console.note(f"document {len(self.session.documents)}")

    def _set(self, rest: str) -> None:
        if not rest:
            self.output.show(repl_show.settings(repl_settings.rows(self.session.options)))
            return
        name, _, value = rest.partition(" ")
        if not value.strip():
            raise CadecError(f"/set {name} needs a value", "as in: /set T 4; /set alone shows all")
        self.session.configure(repl_settings.changed(self.session.options, name, value.strip()))
        self._changed()
        console.note(f"{name} is {value.strip()} from the next sentence on")

    def _compare(self, rest: str) -> None:
        if rest not in ("on", "off"):
            raise CadecError(
                f"/compare is on or off, not {rest!r}" if rest else "/compare on, or /compare off"
            )
        self.comparing = rest == "on"

    def _save(self, rest: str) -> None:
        path = _file("save", rest)
        texts = path.suffix.lower() == ".txt"
        with writing(path):
            taken = path.exists() and path.resolve() not in self._written
        if taken and (texts or not _holds_session(path)):
            raise CadecError(f"{path} exists and is no saved session", "choose another name")
        if texts:
            documents = [
                "".join(f"{one_line(e.text)}\n" for e in document) for document in self.session.documents
            ]
            with whole_file(path) as stream:
                stream.write("\n".join(text for text in documents if text).encode())
        else:
            write_session(path, self.session)
        self._written.add(path.resolve())
        console.note(f"saved {_counted(self.session)} to {path}")

    def _load(self, rest: str) -> None:
        path = _file("load", rest)
        stored = stored_session(read_json(path), self.session.bundle, str(path), self.session.options)
        self._autosave.finish(self.session)  # of what is replaced, the last state is kept
        if stored.options is not None:
            self.session.configure(stored.options)
        self.session.documents = [list(document) for document in stored.documents] or [[]]
        self._autosave.begin_anew()
        self._changed()
        self._written.add(path.resolve())
        other = "" if stored.options is not None else ", source and target only"
        console.note(f"loaded {_counted(self.session)} from {path}{other}")

    def _open(self, rest: str) -> None:
        path = _file("open", rest)
        if str(path) == "-":
            raise CadecError("/open needs a file, and - is none")
        language = self.session.bundle.source_language or ""
        file = read_text_file(path, language=language, encoding=self._encoding)
        total = sum(map(len, file.documents))
        if not total:
            raise CadecError(f"{path} has no sentences")
        for _ in console.track(self._opened(file), "translate", total=total, unit="sentences"):
            self._changed(at_once=False)
        console.note(f"opened {path}: {counted(total, 'sentence')}; the next one goes on after")

    def _opened(self, file: TextFile) -> Iterator[Entry]:
        """Translate a file's documents as documents of the session; the last stays the current one."""
        for document in file.documents:
            self.session.new()
            yield from self.session.translate(
                [text.encode("utf-8", "replace").decode() for text in document.texts]
            )

    def _help(self, rest: str) -> None:
        _no_argument("help", rest)
        rows = [(command.usage, command.help) for command in COMMANDS.values()]
        self.output.show(
            repl_show.help_table([*rows, ("//text", "a sentence that begins with a slash")]),
        )


def _lines(stream: IO[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Lines as they arrive, and whether others came with them."""
    rest = b""
    while chunk := cast(BufferedIOBase, stream).read1(1 << 16):
        *whole, rest = (rest + chunk).split(b"\n")
        for number, line in enumerate(whole, 1):
            yield line, number < len(whole)
    if rest:
        yield rest, False


def _suggestion(name: str) -> str:
    near = difflib.get_close_matches(name.lower(), COMMANDS, 1, cutoff=0.5)
    return f"did you mean /{near[0]}? /help lists all" if near else "/help lists all"


def _no_argument(name: str, rest: str) -> None:
    if rest:
        raise CadecError(f"/{name} takes nothing after it, not {rest!r}")


def _number(name: str, rest: str) -> int:
    try:
        number = int(rest)
    except ValueError:
        number = 0
    if number < 1:
        raise CadecError(f"/{name} needs a number from 1" + (f", not {rest!r}" if rest else ""))
    return number


def _file(name: str, rest: str) -> Path:
    if not rest:
        raise CadecError(f"/{name} needs a file", f"as in: /{name} FILE")
    if "\0" in rest:
        raise CadecError(f"no file can be named {rest!r}")
    try:
        return Path(rest).expanduser()
    except RuntimeError:  # ~ of somebody nobody knows
        return Path(rest)


def _holds_session(path: Path) -> bool:
    try:
        return is_session(read_json(path))
    except CadecError:
        return False


def _short(entry: Entry) -> str:
    return entry.source if len(entry.source) <= 60 else f"{entry.source[:59]}…"


def _counted(session: Session) -> str:
    sentences = sum(map(len, session.documents))
    return f"{counted(sentences, 'sentence')} in {counted(len(session.documents), 'document')}"
