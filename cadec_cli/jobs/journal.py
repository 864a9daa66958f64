"""A journal as it is found, damaged or not: what of it is whole, what is missing, and where to go on.

Every record says which sentence or which moment it is about, so it does not matter where it stands. What was
translated by a moment is known from its snapshot: a sentence without its record is found missing, however it
was lost, and can be made again from the snapshot before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from cadec_cli.decoding.state import State
from cadec_cli.errors import CadecError, option
from cadec_cli.jobs.records import (
    DAMAGED,
    LinePosition,
    RecordFile,
    damage_report,
    header_content,
    parse_content,
    read_records,
)

Sentence = tuple[int, int]  # its document's number, and its own in that


@dataclass(frozen=True)
class Gap:
    """Sentences that are missing between two snapshots, and the first of these as it was written."""

    path: Path
    before: bytes | None  # none where it all began
    lost: frozenset[Sentence]

    def start(self) -> State | None:
        """Where the search stood before any of them."""
        return None if self.before is None else _state(self.path, self.before)


@dataclass(frozen=True)
class JournalContent:
    """What can be gone on with: outputs up to a moment, but for the gaps, and where they are in the file."""

    outputs: dict[Sentence, Any]
    start: State | None
    gaps: tuple[Gap, ...]
    kept_places: tuple[LinePosition, ...]
    damage: str


@dataclass(frozen=True)
class _Snapshot:
    """What was done of each document at a moment of the search."""

    taken: int
    done: tuple[int, ...]
    place: LinePosition

    def has(self, sentence: Sentence) -> bool:
        document, number = sentence
        return 0 <= document < len(self.done) and 0 <= number < self.done[document]


@dataclass
class _Lines:
    """All lines that are whole."""

    outputs: dict[Sentence, Any] = field(default_factory=dict)
    places: dict[Sentence, LinePosition] = field(default_factory=dict)
    snapshots: list[_Snapshot] = field(default_factory=list)

    def take(self, record: Any, place: LinePosition) -> bool:
        """Tell whether a record is one of ours, and remember it if so."""
        match record:
            case {"snapshot": {"taken": int(taken), "documents": [*documents]}, "done": [*done]}:
                if len(done) != len(documents) or not all(type(count) is int for count in done):
                    return False
                self.snapshots.append(_Snapshot(taken, tuple(done), place))
            case {"document": int(document), "sentence": int(sentence), "output": output}:
                if (document, sentence) not in self.outputs:  # a line that stands twice counts once
                    self.outputs[document, sentence] = output
                    self.places[document, sentence] = place
            case _:
                return False
        return True


def read_journal(path: Path, header: bytes) -> JournalContent | None:
    """What a journal with this header has; None where it was killed before it had one."""
    with path.open("rb") as stream:
        lines = _Lines()
        damaged = read_records(path, stream, header, lines.take)
        return None if damaged is None else _journal_content(path, stream, lines, damaged)


def _journal_content(path: Path, stream: IO[bytes], lines: _Lines, damaged: int) -> JournalContent:
    snapshots = sorted(lines.snapshots, key=lambda snapshot: snapshot.taken)
    if not snapshots:
        return JournalContent({}, None, (), (), damage_report(path, damaged, 0, "sentence"))
    last = snapshots[-1]
    outputs = {sentence: output for sentence, output in lines.outputs.items() if last.has(sentence)}
    kept = [*(snapshot.place for snapshot in snapshots), *(lines.places[sentence] for sentence in outputs)]
    gaps = tuple(_gaps(path, stream, snapshots, outputs))
    return JournalContent(
        outputs,
        _state(path, last.place.of(stream)),
        gaps,
        tuple(sorted(kept, key=lambda place: place.start)),
        damage_report(path, damaged, sum(len(gap.lost) for gap in gaps), "sentence"),
    )


def _gaps(
    path: Path, stream: IO[bytes], snapshots: list[_Snapshot], outputs: dict[Sentence, Any]
) -> Iterator[Gap]:
    """What is missing between each snapshot and the next."""
    before: _Snapshot | None = None
    for snapshot in snapshots:
        earlier = before.done if before is not None else (0,) * len(snapshot.done)
        lost = frozenset(
            (document, sentence)
            for document, (first, end) in enumerate(zip(earlier, snapshot.done, strict=False))
            for sentence in range(first, end)
            if (document, sentence) not in outputs
        )
        if lost:
            yield Gap(path, before.place.of(stream) if before is not None else None, lost)
        before = snapshot


def _state(path: Path, line: bytes) -> State:
    """The state of the search that a snapshot's line has."""
    content = line.rstrip(b"\r\n").partition(b" ")[2]
    try:
        return State.from_json(parse_content(content)["snapshot"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CadecError(f"{path} has a snapshot that is none: {error!r}", DAMAGED) from None


# What a translation has done so far, on disk: so that Ctrl-C, a crash or a full disk loses nothing.


_NOTHING = JournalContent({}, None, (), (), "")


class Journal:
    """The journal of one translation, open for appending.

    `gaps` is what is missing among the outputs up to `start`, where the translation goes on; all of it has to
    be added before the first checkpoint. `damage` is what a user should be told.
    """

    resume_hint = f"the same command with {option('resume')} goes on"

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
