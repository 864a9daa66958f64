"""What a translation has done so far, on disk: so that Ctrl-C, a crash or a full disk loses nothing.

Checked lines of JSON: a header that tells what is being translated how, then an {"output"} for every sentence
and a {"snapshot"} now and then, with the sentences of each document that were done by then. What was written
after the last snapshot is done again, with the same result; so is a sentence whose record was damaged.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from cadec_cli.claims import open_claimed, refuse_claimed, remove_claimed, size_of
from cadec_cli.decoding.checked_lines import key_of, sealed
from cadec_cli.decoding.journal_reading import Gap, Place, read_journal
from cadec_cli.decoding.state import State
from cadec_cli.errors import CadecError
from cadec_cli.files import reading
from cadec_cli.whole_files import atomic_file, writing

FORMAT_VERSION = 4
HINT = "free some space and run it again with --resume: nothing that was translated is lost"


class Journal:
    """The journal of one translation, open for appending.

    `gaps` is what is missing among the outputs up to `start`, where the translation goes on; all of it has to
    be added before the first checkpoint. `damage` is what a user should be told.
    """

    goes_on = "the same command with --resume goes on"

    def __init__(
        self,
        path: Path,
        stream: IO[bytes],
        key: bytes,
        outputs: dict[tuple[int, int], Any] | None = None,
        start: State | None = None,
        gaps: Sequence[Gap] = (),
        damage: str = "",
    ):
        self.path = path
        self.outputs = outputs or {}  # (document, sentence) → what the sentence became
        self.start = start
        self.gaps = gaps
        self.damage = damage
        self.kept = len(self.outputs)  # how many of them a translation that is taken up again need not make
        self._stream = stream
        self._key = key
        self._done = Counter(document for document, _ in self.outputs)

    @classmethod
    def begin(cls, path: Path, header: Mapping[str, Any]) -> Journal:
        """Start a journal; one that is there already belongs to an unfinished translation."""
        refuse_unfinished(path)
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            first = header_content(header)
            journal = cls(path, _appending(path), key_of(first))
        if size_of(journal._stream):  # another process was quicker
            journal._stream.close()
            raise _unfinished(path)
        try:
            journal._write(sealed(first))
        except BaseException:
            remove_claimed(journal._stream, path)
            raise
        return journal

    @classmethod
    def resume(cls, path: Path, header: Mapping[str, Any]) -> Journal:
        """Take a journal up again, up to its last snapshot that is whole; without one, start it."""
        if not os.path.lexists(path):
            return cls.begin(path, header)
        first = header_content(header)
        with reading(path):
            stream = _appending(path)
        try:
            if (found := read_journal(path, first)) is not None:
                stream = _keep(stream, path, sealed(first), found.kept)
        except BaseException:
            stream.close()
            raise
        if found is None:  # killed before there was anything
            remove_claimed(stream, path)
            return cls.begin(path, header)
        return cls(path, stream, key_of(first), found.outputs, found.start, found.gaps, found.damage)

    def add(self, document: int, sentence: int, output: Any) -> None:
        """Note what a sentence became."""
        self.outputs[document, sentence] = output
        self._done[document] += 1
        self._note({"document": document, "sentence": sentence, "output": output})

    def checkpoint(self, state: State) -> None:
        """Note where the search stands; all that was added before is complete up to here."""
        done = [self._done[number] for number in range(len(state.documents))]
        self._note({"snapshot": state.to_json(), "done": done})
        self.kept = len(self.outputs)
        with writing(self.path, HINT):
            os.fsync(self._stream.fileno())

    def finish(self) -> None:
        """The output is written: the journal has done its work."""
        remove_claimed(self._stream, self.path)

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not self.outputs:  # it would only be in the way
            remove_claimed(self._stream, self.path)
        self._stream.close()

    def _note(self, record: Mapping[str, Any]) -> None:
        content = json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass")
        self._write(sealed(content, self._key))

    def _write(self, line: bytes) -> None:
        with writing(self.path, HINT):
            while line:
                line = line[self._stream.write(line) :]


def header_content(header: Mapping[str, Any]) -> bytes:
    """What the first line says: all that the outcome depends on."""
    return json.dumps({"format": FORMAT_VERSION, **header}).encode()


def refuse_unfinished(path: Path) -> None:
    """Refuse to begin anew where a translation can be taken up, or is being made."""
    refuse_claimed(path)
    if os.path.lexists(path):
        raise _unfinished(path)


def _unfinished(path: Path) -> CadecError:
    return CadecError(
        f"there is an unfinished translation: {path}",
        "continue it with --resume, or start over with --force",
    )


def _appending(path: Path) -> IO[bytes]:
    # A buffer would try again, on closing, what a full disk refused.
    return open_claimed(path, "ab", buffering=0)


def _keep(claimed: IO[bytes], path: Path, header: bytes, places: Sequence[Place]) -> IO[bytes]:
    """Leave only these lines of a journal, and go on with it, claimed without a break.

    They are cut off where they are its beginning; else copied.
    """
    end = len(header)
    for place in places:
        if place.start != end:
            break
        end += place.length
    else:
        with reading(path), path.open("rb") as stream:
            begins = stream.read(len(header)) == header
        if begins:
            with writing(path, HINT):
                os.truncate(path, end)
            return claimed
    with reading(path), path.open("rb") as stream, atomic_file(path, HINT) as target:
        target.write(header)
        for place in places:
            target.write(place.of(stream))
        # Whoever writes a file holds its lock, and a copy of the descriptor goes on holding it.
        copy = os.fdopen(os.dup(target.fileno()), "ab", buffering=0)
    claimed.close()
    return copy
