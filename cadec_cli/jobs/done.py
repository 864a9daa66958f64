"""Logs of what a translation by document has done: documents, identified by content, and finished files.

`DoneDocuments` is the log of unfinished work: of a translation, or of an evaluation of several. Since
documents are found by content, files may be renamed, left out or reordered before the work is resumed.
`FinishedFiles` stays beside the outputs, so that the same command recognises them. Memory holds only the
position of each document's record.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from cadec_cli.errors import CadecError, option
from cadec_cli.fs.append_log import (
    AppendLog,
    LinePosition,
    LogHeader,
    close_on_error,
    damage_report,
    read_log,
    write_log,
)
from cadec_cli.fs.locks import refuse_special

# The last record of finished work, before the log is removed.
_COMPLETE = {"complete": True}

RECORD = ".cadec-finished"
# The most bytes per line of that file. A line usually has a few hundred; a path has 4,096 at most.
_MAX_LENGTH = 1 << 16


def document_key(
    texts: Sequence[str],
    before: Sequence[str] = (),
    *,
    speakers: bool = False,
    given: Mapping[int, str] | None = None,
    rooms: Sequence[float | None] = (),
    names: str = "",
    speaker_names: Sequence[str] = (),
) -> str:
    """A document's key: a checksum of everything that its translation depends on.

    That is its sentences, the target sentences before it, the translations that are given, whether it has
    names of speakers, as subtitles do, which are not translated, and the room that the translations have, if
    it matters. `names` is the checksum of the names that recur in its file, if there are any; `speaker_names`
    are those that are beside its sentences.
    """
    parts: list[Any] = [list(texts), list(before), speakers]
    if given:
        parts.append(given)
    if rooms:
        parts.append(list(rooms))
    if names:
        parts.append({"names": names})
    if speaker_names:
        parts.append({"speakers": list(speaker_names)})
    content = json.dumps(parts, ensure_ascii=False)
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


class DoneDocuments:
    """The finished documents of one translation, open for more; `damage` is a message for the user."""

    resume_hint = f"the same command with {option('resume')} continues"

    def __init__(self, log: AppendLog) -> None:
        self.damage = ""
        self._log = log
        self._documents: dict[str, LinePosition] = {}
        self._written: dict[str, str] = {}

    @classmethod
    def begin(cls, path: Path, header: Mapping[str, Any], subject: str = "translation") -> DoneDocuments:
        """Start a log; a CadecError if there is one already, of unfinished work on the same subject."""
        return cls(AppendLog.begin(path, _log_header(header, subject)))

    @classmethod
    def resume(
        cls, path: Path, header: Mapping[str, Any], subject: str = "translation", unit: str = "document"
    ) -> DoneDocuments:
        """Open a log with its undamaged records; start one if there is none.

        `unit` is what messages call a document.
        """
        log = AppendLog.resume(path, _log_header(header, subject))
        with close_on_error(log):
            done = cls(log)
            found = _Records.read(log)
            moved = dict(zip(found.kept, log.keep(found.kept), strict=True))
            done._documents = {key: moved[position] for key, position in found.documents.items()}
            done._written = found.written
            done.damage = damage_report(path, found.damaged, None, unit)
        return done

    def __contains__(self, key: str) -> bool:
        return key in self._documents

    def __len__(self) -> int:
        return len(self._documents)

    def sentences(self, key: str, count: int) -> list[Any]:
        """The records of a document's `count` sentences."""
        record = self._log.read(self._documents[key])
        if record is None or len(record["sentences"]) != count:
            raise CadecError(
                f"{self._log.path} was changed",
                f"run it again with {option('resume')}: lost sentences are translated again",
            )
        return list(record["sentences"])

    def add(self, key: str, sentences: Sequence[Any]) -> None:
        """Record the sentences of a finished document."""
        self._documents[key] = self._log.append({"document": key, "sentences": list(sentences)})

    def is_own(self, name: str, digest: str) -> bool:
        """Tell whether a file of this name and content was written by this translation."""
        return self._written.get(name) == digest

    def note_output(self, name: str, digest: str) -> None:
        """Record a file before it is written, so that it is recognised as this translation's own."""
        self._log.append({"written": name, "sha256": digest})
        self._written[name] = digest
        self._log.sync()

    def complete(self) -> None:
        """Record that all files are written: a run killed before `finish` then leaves nothing to resume."""
        self._log.append(_COMPLETE)
        self._log.sync()

    def finish(self) -> None:
        """Remove the log after all files are written."""
        self._log.remove()

    def __enter__(self) -> DoneDocuments:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not self._documents and not self._written:  # an empty log is of no use
            self._log.remove()
        self._log.close()


def remove_complete(path: Path, header: Mapping[str, Any]) -> None:
    """Remove the log of a complete translation that was killed before it could remove it."""
    if os.path.lexists(path):
        with AppendLog.resume(path, _log_header(header)) as log:
            found = _Records.read(log)
            if found.complete or found.is_empty:
                log.remove()


@dataclass
class _Records:
    """The undamaged records of a log."""

    documents: dict[str, LinePosition] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    kept: list[LinePosition] = field(default_factory=list)
    complete: bool = False
    damaged: int = 0

    @classmethod
    def read(cls, log: AppendLog) -> _Records:
        found = cls(damaged=int(log.header_is_damaged))
        for position, record in log.records():
            found.damaged += not found.take(record, position)
        return found

    @property
    def is_empty(self) -> bool:
        """Tell whether the log has no records."""
        return not (self.kept or self.damaged)

    def take(self, record: Any, position: LinePosition) -> bool:
        """Add a record; return False if it is not valid."""
        self.complete = record == _COMPLETE  # if nothing follows
        match record:
            case {"document": str(key), "sentences": [*_]}:
                if key not in self.documents:  # a repeated line counts once
                    self.documents[key] = position
                    self.kept.append(position)
            case {"written": str(name), "sha256": str(digest)}:
                self.written[name] = digest
                self.kept.append(position)
            case _:
                return self.complete
        return True


def _log_header(header: Mapping[str, Any], subject: str = "translation") -> LogHeader:
    return LogHeader(subject, {"documents": "each by itself", **header})


@dataclass(frozen=True, order=True)
class FinishedFile:
    """A file that was written, and its input."""

    output: str  # its path, relative to the record's directory
    content: str  # its checksum
    source: str  # the name of the input
    source_content: str  # its checksum


@dataclass(frozen=True)
class FinishedFiles:
    """The files finished with the same settings; `way` is all that they depend on except the inputs."""

    path: Path
    way: Mapping[str, Any]

    def check(self) -> None:
        """Raise a CadecError, before the work, if something other than a record is in its place."""
        refuse_special(self.path)

    def read(self) -> set[FinishedFile]:
        """All recorded files, including those of other shards."""
        records = {self.path, *self.path.parent.glob(f"{RECORD}*")}
        return {file for record in records for file in self._read(record)}

    def add(self, files: Iterable[FinishedFile]) -> None:
        """Add files to the record."""
        kept = {file.output: file for file in [*self._read(self.path), *files]}
        self.check()  # links are followed for outputs, which the user names, but not here
        write_log(self.path, self._header, map(dataclasses.asdict, sorted(kept.values())))

    def _read(self, path: Path) -> list[FinishedFile]:
        """The undamaged records in a file, if its settings are the same."""
        found: list[FinishedFile] = []
        names = {field.name for field in dataclasses.fields(FinishedFile)}
        # Losing a record does little harm: the file is only translated again.
        with contextlib.suppress(OSError, CadecError):
            refuse_special(path)
            for record in read_log(path, self._header, _MAX_LENGTH):
                known = isinstance(record, dict) and record.keys() == names
                if known and all(isinstance(value, str) for value in record.values()):
                    found.append(FinishedFile(**record))
        return found

    @property
    def _header(self) -> LogHeader:
        return LogHeader("finished files", self.way)
