"""What a translation by document has done: its documents, known by their content, and its finished files.

Both are logs. `DoneDocuments` is that of unfinished work: files may be renamed, left out or given in another
order, and what is known is still known. `FinishedFiles` stays beside the outputs, so that the same command
recognises them. In memory there is only the position of each document's record.
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

# The last record of work that is finished, before the log is removed.
_COMPLETE = {"complete": True}

RECORD = ".cadec-finished"
# Bytes of a line of that, of which one has a few hundred; paths have 4,096 at most.
_MAX_LENGTH = 1 << 16


def document_key(texts: Sequence[str], before: Sequence[str] = (), *, speakers: bool = False) -> str:
    """The key that a document is known by: a checksum of everything that its translation depends on.

    That is its sentences, the target sentences that come before it, and whether it is of subtitles, where
    names of speakers are not translated.
    """
    content = json.dumps([list(texts), list(before), speakers], ensure_ascii=False)
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


class DoneDocuments:
    """The documents of one translation that are done, open for more; `damage` is what to tell the user."""

    resume_hint = f"the same command with {option('resume')} goes on"

    def __init__(self, log: AppendLog) -> None:
        self.damage = ""
        self._log = log
        self._documents: dict[str, LinePosition] = {}
        self._written: dict[str, str] = {}

    @classmethod
    def begin(cls, path: Path, header: Mapping[str, Any]) -> DoneDocuments:
        """Start a log; one that is there already belongs to an unfinished translation."""
        return cls(AppendLog.begin(path, _log_header(header)))

    @classmethod
    def resume(cls, path: Path, header: Mapping[str, Any]) -> DoneDocuments:
        """Open a log again with all that is undamaged in it; start it where there is none."""
        log = AppendLog.resume(path, _log_header(header))
        with close_on_error(log):
            done = cls(log)
            found = _Records.read(log)
            moved = dict(zip(found.kept, log.keep(found.kept), strict=True))
            done._documents = {key: moved[position] for key, position in found.documents.items()}
            done._written = found.written
            done.damage = damage_report(path, found.damaged, None, "document")
        return done

    def __contains__(self, key: str) -> bool:
        return key in self._documents

    def __len__(self) -> int:
        return len(self._documents)

    def sentences(self, key: str, count: int) -> list[Any]:
        """What the `count` sentences of a document became."""
        record = self._log.read(self._documents[key])
        if record is None or len(record["sentences"]) != count:
            raise CadecError(
                f"{self._log.path} is not as it was written",
                f"run it again with {option('resume')}: what was lost is translated again",
            )
        return list(record["sentences"])

    def add(self, key: str, sentences: Sequence[Any]) -> None:
        """Note what the sentences of a document became."""
        self._documents[key] = self._log.append({"document": key, "sentences": list(sentences)})

    def is_own(self, name: str, digest: str) -> bool:
        """Tell whether a file of this name and content was written by this translation."""
        return self._written.get(name) == digest

    def note_output(self, name: str, digest: str) -> None:
        """Note a file that is written next, so that it is recognised as this translation's own."""
        self._log.append({"written": name, "sha256": digest})
        self._written[name] = digest
        self._log.sync()

    def complete(self) -> None:
        """Note that all is written: after a kill between this and `finish` there is nothing to resume."""
        self._log.append(_COMPLETE)
        self._log.sync()

    def finish(self) -> None:
        """Remove the log: all is written."""
        self._log.remove()

    def __enter__(self) -> DoneDocuments:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not self._documents and not self._written:  # it would only be in the way
            self._log.remove()
        self._log.close()


def remove_complete(path: Path, header: Mapping[str, Any]) -> None:
    """Remove the log of work that was complete, and killed just before it did that itself."""
    if os.path.lexists(path):
        with AppendLog.resume(path, _log_header(header)) as log:
            found = _Records.read(log)
            if found.complete or found.is_empty:
                log.remove()


@dataclass
class _Records:
    """What the undamaged lines of a log say."""

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
        """Nothing was done yet."""
        return not (self.kept or self.damaged)

    def take(self, record: Any, position: LinePosition) -> bool:
        """Remember a record; tell whether it is one of these."""
        self.complete = record == _COMPLETE  # if nothing follows
        match record:
            case {"document": str(key), "sentences": [*_]}:
                if key not in self.documents:  # a line that stands twice counts once
                    self.documents[key] = position
                    self.kept.append(position)
            case {"written": str(name), "sha256": str(digest)}:
                self.written[name] = digest
                self.kept.append(position)
            case _:
                return self.complete
        return True


def _log_header(header: Mapping[str, Any]) -> LogHeader:
    return LogHeader("translation", {"documents": "each by itself", **header})


@dataclass(frozen=True, order=True)
class FinishedFile:
    """A file that was written, and its input."""

    output: str  # its path, relative to the record's directory
    content: str  # its checksum
    source: str  # the name of the input
    source_content: str  # its checksum


@dataclass(frozen=True)
class FinishedFiles:
    """The files that one way of translating has finished; `way` is all that they depend on but the inputs."""

    path: Path
    way: Mapping[str, Any]

    def check(self) -> None:
        """Raise a CadecError, before the work, if something that is no record would have to be replaced."""
        refuse_special(self.path)

    def read(self) -> set[FinishedFile]:
        """All files on record here, also those of other shards."""
        records = {self.path, *self.path.parent.glob(f"{RECORD}*")}
        return {file for record in records for file in self._read(record)}

    def add(self, files: Iterable[FinishedFile]) -> None:
        """Put files on record, besides those that are."""
        kept = {file.output: file for file in [*self._read(self.path), *files]}
        self.check()  # an output that is a link is followed; nobody asked for this one
        write_log(self.path, self._header, map(dataclasses.asdict, sorted(kept.values())))

    def _read(self, path: Path) -> list[FinishedFile]:
        """The undamaged records of a file, if it is of this way."""
        found: list[FinishedFile] = []
        names = {field.name for field in dataclasses.fields(FinishedFile)}
        # With a record nothing is lost but the knowledge: a file that is not on record is made again.
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
