"""Documents that are done, on disk, by what they are and not by where they stand.

A file of records: a {"document"} by its key, with what its sentences became, a {"written"} for every file
that was put together, and that it is {"complete"}. Files may be renamed, left out or given in another order:
what is known is known. In memory there is only where each record is.
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
from cadec_cli.fs.atomic import atomic_file
from cadec_cli.fs.locks import refuse_special
from cadec_cli.jobs.records import (
    LinePosition,
    RecordFile,
    damage_report,
    encode_line,
    header_content,
    key_of,
    pack_places,
    read_records,
)

# The last record, of what is to be removed next.
_COMPLETE = {"complete": True}


def document_key(texts: Sequence[str], before: Sequence[str] = (), *, speakers: bool = False) -> str:
    """What a document is known by: its sentences, and those that come before it in the target language.

    And by whether it is of subtitles, where names of speakers are not translated.
    """
    content = json.dumps([list(texts), list(before), speakers], ensure_ascii=False)
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass
class _DocumentRecords:
    """What a file of records has."""

    documents: dict[str, LinePosition] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    places: list[LinePosition] = field(default_factory=list)
    complete: bool = False
    damage: str = ""

    @property
    def kept_places(self) -> Sequence[LinePosition]:
        return self.places

    def take(self, record: Any, place: LinePosition) -> bool:
        """Tell whether a record is one of ours, and remember it if so."""
        self.complete = record == _COMPLETE  # if nothing follows
        match record:
            case {"document": str(key), "sentences": [*_]}:
                if key not in self.documents:  # a line that stands twice counts once
                    self.documents[key] = place
                    self.places.append(place)
            case {"written": str(name), "sha256": str(digest)}:
                self.written[name] = digest
                self.places.append(place)
            case _:
                return self.complete
        return True

    def relocate(self, header: bytes) -> None:
        """The lines that are kept stand one after the other now."""
        there = dict(zip(self.places, pack_places(self.places, header), strict=True))
        self.documents = {key: there[place] for key, place in self.documents.items()}


class DoneDocuments:
    """The documents of one translation that are done, open for more.

    `damage_report` is what a user should be told.
    """

    resume_hint = f"the same command with {option('resume')} goes on"

    def __init__(self, file: RecordFile, found: _DocumentRecords | None = None) -> None:
        found = found or _DocumentRecords()
        self.damage = found.damage
        self._documents = found.documents
        self._written = found.written
        self._file = file

    @classmethod
    def begin(cls, path: Path, header: Mapping[str, Any]) -> DoneDocuments:
        """Start a file; one that is there already belongs to an unfinished translation."""
        return cls(RecordFile.begin(path, _content(header)))

    @classmethod
    def resume(cls, path: Path, header: Mapping[str, Any]) -> DoneDocuments:
        """Take a file up again with all that is whole in it; without one, start it."""
        content = _content(header)
        file, found = RecordFile.resume(path, content, _read)
        if found is not None:
            found.relocate(content)
        return cls(file, found)

    def __contains__(self, key: str) -> bool:
        return key in self._documents

    def __len__(self) -> int:
        return len(self._documents)

    def sentences(self, key: str, count: int) -> list[Any]:
        """What the sentences of a document became, as many as it has."""
        record = self._file.read(self._documents[key])
        if record is None or len(record["sentences"]) != count:
            raise CadecError(
                f"{self._file.path} is not as it was written",
                f"run it again with {option('resume')}: what was lost is translated again",
            )
        return list(record["sentences"])

    def add(self, key: str, sentences: Sequence[Any]) -> None:
        """Note what the sentences of a document became."""
        self._documents[key] = self._file.add({"document": key, "sentences": list(sentences)})

    def is_own(self, name: str, digest: str) -> bool:
        """Tell whether a file of this name and content was written by this translation."""
        return self._written.get(name) == digest

    def note_output(self, name: str, digest: str) -> None:
        """Note a file that is to be written next: whoever finds it may know it as ours."""
        self._file.add({"written": name, "sha256": digest})
        self._written[name] = digest
        self._file.sync()

    def complete(self) -> None:
        """Note that all is written: whoever is killed before this is removed leaves nothing to take up."""
        self._file.add(_COMPLETE)
        self._file.sync()

    def finish(self) -> None:
        """All is written: there is nothing to take up."""
        self._file.remove()

    def __enter__(self) -> DoneDocuments:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not self._documents and not self._written:  # it would only be in the way
            self._file.remove()
        self._file.close()


def remove_complete(path: Path, header: Mapping[str, Any]) -> None:
    """Remove what is there of work that was complete, and killed just before it did that itself."""
    if os.path.lexists(path):
        file, found = RecordFile.resume(path, _content(header), _read)
        if found is None or found.complete:
            file.remove()
        file.close()


def _content(header: Mapping[str, Any]) -> bytes:
    return header_content({"documents": "each by itself", **header})


def _read(path: Path, header: bytes) -> _DocumentRecords | None:
    found = _DocumentRecords()
    with path.open("rb") as stream:
        damaged = read_records(path, stream, header, found.take)
    if damaged is None:
        return None
    found.damage = damage_report(path, damaged, None, "document")
    return found


# Files that a translation has finished, on record beside them: so that the same command knows them again.


RECORD = ".cadec-finished"
# Bytes of a line, of which one has a few hundred; paths have 4,096 at most.
_MAX_LENGTH = 1 << 16


@dataclass(frozen=True, order=True)
class FinishedFile:
    """A file that was written, and what of."""

    output: str  # its place, seen from the record's
    content: str  # its checksum
    source: str  # the name of the input
    source_content: str  # its checksum


@dataclass(frozen=True)
class FinishedFiles:
    """The files that one way of translating has finished; `way` is all that they depend on but the inputs."""

    path: Path
    way: Mapping[str, Any]

    def check(self) -> None:
        """Refuse, before the work, what is in the record's place and can't be one: it would be replaced."""
        refuse_special(self.path)

    def read(self) -> set[FinishedFile]:
        """All that are on record here, also by jobs with other parts."""
        records = {self.path, *self.path.parent.glob(f"{RECORD}*")}
        return {file for record in records for file in self._read(record)}

    def add(self, files: Iterable[FinishedFile]) -> None:
        """Put files on record, besides those that are."""
        kept = {file.output: file for file in [*self._read(self.path), *files]}
        header = self._header()
        self.check()  # an output that is a link is followed; nobody asked for this one
        with atomic_file(self.path) as stream:
            stream.write(encode_line(header))
            for file in sorted(kept.values()):
                content = json.dumps(dataclasses.asdict(file), ensure_ascii=False)
                stream.write(encode_line(content.encode("utf-8", "surrogatepass"), key_of(header)))

    def _read(self, path: Path) -> list[FinishedFile]:
        """What a record has, as far as it is whole and of this way."""
        found: list[FinishedFile] = []

        def take(record: Any, place: LinePosition) -> bool:
            names = {field.name for field in dataclasses.fields(FinishedFile)}
            if not isinstance(record, dict) or record.keys() != names:
                return False
            if not all(isinstance(value, str) for value in record.values()):
                return False
            found.append(FinishedFile(**record))
            return True

        # Nothing is lost with a record but the knowledge: whoever needs it says that it is missing.
        with contextlib.suppress(OSError, CadecError):
            refuse_special(path)
            with path.open("rb") as stream:
                read_records(path, stream, self._header(), take, _MAX_LENGTH)
        return found

    def _header(self) -> bytes:
        return header_content({"files": "finished", **self.way})
