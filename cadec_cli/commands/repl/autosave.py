"""The saved session of a REPL, for the next one: a log to which every change is appended.

The previous session's log is left alone until the new session has a sentence. Then it is kept, with a few
older ones, for /load. If two REPLs run at a time, the first saves its session; the second warns that it
can't. A session from a pipe is kept apart: it never replaces the session of the terminal.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from cadec_cli.engines.protocols import ContextReader
from cadec_cli.errors import CadecError
from cadec_cli.fs.atomic import atomic_file
from cadec_cli.fs.locks import lock, open_lock_file
from cadec_cli.fs.paths import state_directory
from cadec_cli.session.files import LOG_SUFFIX, SessionLog, StoredSession, read_session
from cadec_cli.session.session import Direction, Session
from cadec_cli.terminal import console

# Sessions kept besides the newest.
MAX_PREVIOUS = 9


@dataclass
class Autosave:
    """The saved session of the user. If it can't be saved, the user is warned once and can continue."""

    directory: Path
    name: str = "repl-session"
    continues: bool = False  # the saved log is of this session
    _broken: bool = False
    _lock: IO[str] | None = field(default=None, repr=False)  # held as long as it is open
    _log: SessionLog | None = field(default=None, repr=False)  # open from the first sentence on

    @classmethod
    def open(cls, *, pipe: bool = False) -> Autosave:
        """Find or create the directory, and lock it for this process."""
        autosave = cls(state_directory(), "repl-pipe" if pipe else "repl-session")
        try:
            autosave.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make_private(autosave.directory)
            autosave._lock = open_lock_file(autosave.directory / f"{autosave.name}.lock")
        except OSError as error:
            autosave._give_up(f"{error.strerror}: {autosave.directory}")
        except CadecError as error:
            autosave._give_up(error.marked_message)
        else:
            if lock(autosave._lock.fileno(), wait=False) is False:
                autosave._give_up("another cadec repl is running and saves its session")
        return autosave

    @property
    def path(self) -> Path:
        """The log of the session."""
        return self.directory / f"{self.name}{LOG_SUFFIX}"

    def previous(self, number: int = 1) -> Path:
        """The log of the previous session; a higher number is an older one."""
        return self.directory / f"{self.name}-previous-{number}{LOG_SUFFIX}"

    @property
    def earlier(self) -> Path | None:
        """A session for /load if there is none to resume: the previous one, or a file in the old format."""
        candidates = (self.previous(), self.directory / f"{self.name}.json")
        return next((path for path in candidates if path.exists()), None)

    def begin_anew(self) -> None:
        """Save another session from now on: the saved one becomes the previous session."""
        self.continues = False
        if self._log is not None:
            self._log.close()
            self._log = None

    def save(self, session: Session, *, at_once: bool = True) -> None:
        """Save the changes; a session without a sentence replaces no other.

        If not `at_once`, it may be on disk only after `finish`: waiting for the disk would hold up the work.
        """
        if self._broken or not (self.continues or any(session.documents)):
            return
        try:
            if self._log is None:
                if not self.continues and self.path.exists():
                    self._keep_previous()
                self._log = SessionLog(self.path, session)
                self.continues = True
            self._log.save(session)
            if at_once:
                self._log.sync()
        except (CadecError, OSError) as error:
            self._give_up(error.marked_message if isinstance(error, CadecError) else str(error))

    def finish(self, session: Session) -> None:
        """Save everything, and wait until it is on disk."""
        if self._log is not None:
            self.save(session)

    def _keep_previous(self) -> None:
        """Copy the session that is about to be replaced; its own file stays until then."""
        for number in range(MAX_PREVIOUS - 1, 0, -1):
            if self.previous(number).exists():
                self.previous(number).replace(self.previous(number + 1))
        with atomic_file(self.previous(), private=True) as stream:
            stream.write(self.path.read_bytes())

    def _give_up(self, why: str) -> None:
        self._broken = True
        console.warn(f"this session is not saved as you go ({why}); /save FILE saves it")


def _make_private(directory: Path) -> None:
    """Make the files of sessions unreadable to other users; earlier versions left them readable."""
    for path in (directory, *directory.glob("repl-*")):
        with contextlib.suppress(OSError):
            if not path.is_symlink():  # a link leads to something that is not cadec's own
                path.chmod(path.stat().st_mode & 0o700)


def load_saved(
    autosave: Autosave, direction: Direction, reader: ContextReader | None
) -> StoredSession | None:
    """The saved session; None if no session can be used, and the user sees why."""
    if not autosave.path.exists():
        earlier = autosave.earlier
        which = f"; /load {earlier} continues an earlier one" if earlier is not None else ""
        console.note(f"there is no session to resume; this is a new one{which}")
        return None
    try:
        stored = read_session(autosave.path, direction, reader)
    except CadecError as error:
        console.warn(f"{error.marked_message}; this is a new session")
        return None
    if stored.damage:
        console.warn(stored.damage)
    # With another bundle the hypotheses are gone: the saved session must not be overwritten by less.
    autosave.continues = stored.options is not None and not stored.damage
    if stored.options is None:
        console.note("the session was made with another bundle: only source and target are loaded")
    return stored
