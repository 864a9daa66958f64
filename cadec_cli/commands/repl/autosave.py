"""What a REPL leaves behind for the next one: the session, saved at every change, whole or not at all.

The file of the session before stays as it is until the new one has a sentence; then it is kept, with a few
before it, for /load. Of two REPLs at a time the first saves its session; the second says that it can't. What
comes through a pipe is a session apart: it never takes the place of a person's.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from cadec_cli.engines.protocols import ContextReader
from cadec_cli.errors import CadecError
from cadec_cli.fs.atomic import atomic_file
from cadec_cli.fs.paths import lock, open_lock, state_directory
from cadec_cli.session.files import StoredSession, read_session, session_json
from cadec_cli.session.session import Direction, Session
from cadec_cli.terminal import console

# Sessions kept besides the newest.
MAX_PREVIOUS = 9
# Work done between two savings of a long session, in times that a saving takes.
SAVE_INTERVAL_FACTOR = 10


def write_session(path: Path, session: Session) -> None:
    """Write a session, whole or not at all; a new file is for nobody else to read."""
    with atomic_file(path, private=True) as stream:
        stream.write(session_json(session).encode())


@dataclass
class Autosave:
    """The saved session of the user. What can't be saved is said once, and the session goes on."""

    directory: Path
    name: str = "repl-session"
    continues: bool = False  # what is there already is this session
    _broken: bool = False
    _saved: float = 0.0  # when the session was last saved
    _took: float = 0.0  # how long that took
    _waiting: bool = False  # something has changed since
    _lock: IO[str] | None = field(default=None, repr=False)  # held as long as it is open

    @classmethod
    def open(cls, *, pipe: bool = False) -> Autosave:
        """Find or make the place, for this process alone."""
        autosave = cls(state_directory(), "repl-pipe" if pipe else "repl-session")
        try:
            autosave.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make_private(autosave.directory)
            autosave._lock = open_lock(autosave.directory / f"{autosave.name}.lock")
        except OSError as error:
            autosave._give_up(f"{error.strerror}: {autosave.directory}")
        except CadecError as error:
            autosave._give_up(error.marked_message)
        else:
            if not lock(autosave._lock, wait=False):
                autosave._give_up("another cadec repl is running and saves its own")
        return autosave

    @property
    def path(self) -> Path:
        """The session as it is."""
        return self.directory / f"{self.name}.json"

    def previous(self, number: int = 1) -> Path:
        """The session before, and those before that."""
        return self.directory / f"{self.name}-previous-{number}.json"

    def begin_anew(self) -> None:
        """What is saved from now on is another session: the one that is there becomes the previous."""
        self.continues = False

    def save(self, session: Session, *, at_once: bool = True) -> None:
        """Save the session; one without a sentence takes no other's place.

        If not `at_once`, a long session is saved only so often that it does not hold up the work: call
        `finish` at the end.
        """
        if self._broken or not (self.continues or any(session.documents)):
            return
        self._waiting = True
        if at_once or time.monotonic() - self._saved >= SAVE_INTERVAL_FACTOR * self._took:
            self.finish(session)

    def finish(self, session: Session) -> None:
        """Save what has changed and is not saved yet."""
        if self._broken or not self._waiting:
            return
        started = time.monotonic()
        try:
            if not self.continues and self.path.exists():
                self._keep_previous()
            write_session(self.path, session)
        except (CadecError, OSError) as error:
            self._give_up(error.marked_message if isinstance(error, CadecError) else str(error))
        self.continues, self._waiting = True, False
        self._saved = time.monotonic()
        self._took = self._saved - started

    def _keep_previous(self) -> None:
        """Copy the session that is about to be replaced, which stays until it is."""
        for number in range(MAX_PREVIOUS - 1, 0, -1):
            if self.previous(number).exists():
                self.previous(number).replace(self.previous(number + 1))
        with atomic_file(self.previous(), private=True) as stream:
            stream.write(self.path.read_bytes())

    def _give_up(self, why: str) -> None:
        self._broken = True
        console.warn(f"this session is not saved as you go ({why}); /save FILE saves it")


def _make_private(directory: Path) -> None:
    """Close what cadec keeps of sessions to all others, as it was not always made."""
    for path in (directory, *directory.glob("repl-*")):
        with contextlib.suppress(OSError):
            if not path.is_symlink():  # which leads to what is not cadec's own
                path.chmod(path.stat().st_mode & 0o700)


def load_saved(
    autosave: Autosave, direction: Direction, reader: ContextReader | None
) -> StoredSession | None:
    """The saved session, if there is one that can be used; if not, that is said."""
    if not autosave.path.exists():
        older = f"; /load {autosave.previous()} is the one before" if autosave.previous().exists() else ""
        console.note(f"there is no session to resume; this is a new one{older}")
        return None
    try:
        stored = read_session(autosave.path, direction, reader)
    except CadecError as error:
        console.warn(f"{error.marked_message}; this is a new session")
        return None
    # With another bundle the hypotheses are gone: what is there must not be overwritten by less.
    autosave.continues = stored.options is not None
    if stored.options is None:
        console.note("the session was made with another bundle: source and target are taken, nothing else")
    return stored
