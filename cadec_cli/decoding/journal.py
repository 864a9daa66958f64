"""What a translation has done so far, on disk: so that Ctrl-C, a crash or a full disk loses nothing.

A file of records: an {"output"} for every sentence and a {"snapshot"} now and then, with the sentences of
each document that were done by then. What was written after the last snapshot is done again, with the same
result; so is a sentence whose record was damaged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from cadec_cli.decoding.journal_reading import JournalContent, read_journal
from cadec_cli.decoding.record_files import RecordFile, header_content
from cadec_cli.decoding.state import State

_NOTHING = JournalContent({}, None, (), (), "")


class Journal:
    """The journal of one translation, open for appending.

    `gaps` is what is missing among the outputs up to `start`, where the translation goes on; all of it has to
    be added before the first checkpoint. `damage` is what a user should be told.
    """

    resume_hint = "the same command with --resume goes on"

    def __init__(self, file: RecordFile, found: JournalContent | None = None) -> None:
        found = found or _NOTHING
        self.outputs = dict(found.outputs)  # (document, sentence) → what the sentence became
        self.start = found.start
        self.gaps = found.gaps
        self.damage = found.damage
        self.kept = len(self.outputs)  # how many of them a translation that is taken up again need not make
        self._file = file
        self._done = Counter(document for document, _ in self.outputs)

    @classmethod
    def begin(cls, path: Path, header: Mapping[str, Any]) -> Journal:
        """Start a journal; one that is there already belongs to an unfinished translation."""
        return cls(RecordFile.begin(path, header_content(header)))

    @classmethod
    def resume(cls, path: Path, header: Mapping[str, Any]) -> Journal:
        """Take a journal up again, up to its last snapshot that is whole; without one, start it."""
        return cls(*RecordFile.resume(path, header_content(header), read_journal))

    def add(self, document: int, sentence: int, output: Any) -> None:
        """Note what a sentence became."""
        self.outputs[document, sentence] = output
        self._done[document] += 1
        self._file.add({"document": document, "sentence": sentence, "output": output})

    def checkpoint(self, state: State) -> None:
        """Note where the search stands; all that was added before is complete up to here."""
        done = [self._done[number] for number in range(len(state.documents))]
        self._file.add({"snapshot": state.to_json(), "done": done})
        self.kept = len(self.outputs)
        self._file.sync()

    def finish(self) -> None:
        """The output is written: the journal has done its work."""
        self._file.remove()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not self.outputs:  # it would only be in the way
            self._file.remove()
        self._file.close()
