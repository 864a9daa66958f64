"""Files that a translation has finished, on record beside them: so that the same command knows them again.

A scheduler starts jobs again, finished ones as well. What proves that a file is this work's: it was written
in the same way, from an input of the same name and content, and is as it was written. Where one of these is
not on record nothing is known, and that is said.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cadec_cli.claims import refuse_special
from cadec_cli.decoding.checked_lines import encode_line, key_of
from cadec_cli.decoding.record_files import LinePosition, header_content, read_records
from cadec_cli.errors import CadecError
from cadec_cli.whole_files import atomic_file

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
