"""The journal of a translation in step: a record per sentence, and snapshots of the search.

Every record names its sentence or its moment, so the order of records does not matter. A snapshot says how
much of each document was translated by then. A sentence whose record was lost is therefore noticed, and is
translated again from the snapshot before it.

Snapshots are taken by time, between waves. Where a wave ends never depends on time, so neither does a result.
The n-best lists of the next waves are recorded too if they take long to make.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from cadec_cli.decoding.state import State, list_json, list_of
from cadec_cli.decoding.units import BATCH, WAVE
from cadec_cli.errors import CadecError, option
from cadec_cli.fs.append_log import (
    START_OVER_HINT,
    AppendLog,
    LinePosition,
    LogHeader,
    close_on_error,
    damage_report,
)
from cadec_cli.method.hypotheses import NBest

Sentence = tuple[int, int]  # the number of its document, and its number in the document

SAVE_EVERY = 2.0  # seconds between snapshots; a fast translation has one for every BATCH sentences, too


@dataclass(frozen=True)
class Gap:
    """Sentences that are missing between two snapshots."""

    log: AppendLog
    before: LinePosition | None  # the first of the two snapshots; None at the beginning of the translation
    lost: frozenset[Sentence]

    @property
    def path(self) -> Path:
        """The path of the journal."""
        return self.log.path

    def start(self) -> State | None:
        """The state of the search before the gap; None at the beginning of the translation."""
        return None if self.before is None else _state(self.log, self.before)


class Journal:
    """The journal of one translation, open for appending.

    `outputs` are the outputs of all sentences up to `start`, where the translation continues, except those in
    `gaps`, which must be added before the first checkpoint. `damage` is a message for the user; `clock`
    returns seconds.
    """

    resume_hint = f"the same command with {option('resume')} continues"

    def __init__(self, log: AppendLog, clock: Callable[[], float] = time.monotonic) -> None:
        self.outputs: dict[Sentence, Any] = {}
        self.start: State | None = None
        self.gaps: tuple[Gap, ...] = ()
        self.damage = ""
        self.kept = 0  # how many outputs a resumed translation need not make again
        self._log = log
        self._done: Counter[int] = Counter()
        self._taken = 0
        self._lists: dict[str, list[Any]] = {}
        self._has_lists = False
        self._new_lists: list[tuple[str, list[NBest]]] = []
        self._clock, self._saved, self._listed = clock, clock(), clock()

    @classmethod
    def begin(
        cls, path: Path, header: Mapping[str, Any], clock: Callable[[], float] = time.monotonic
    ) -> Journal:
        """Start a journal; a CadecError if there is one already, of an unfinished translation."""
        return cls(AppendLog.begin(path, LogHeader("translation", header)), clock)

    @classmethod
    def resume(
        cls, path: Path, header: Mapping[str, Any], clock: Callable[[], float] = time.monotonic
    ) -> Journal:
        """Open a journal, up to its last undamaged snapshot; start one if there is none."""
        log = AppendLog.resume(path, LogHeader("translation", header))
        with close_on_error(log):
            journal = cls(log, clock)
            journal._restore()
        return journal

    def add(self, document: int, sentence: int, output: Any) -> None:
        """Record the output of a sentence."""
        self.outputs[document, sentence] = output
        self._done[document] += 1
        self._log.append({"document": document, "sentence": sentence, "output": output})

    def checkpoint(self, state: State) -> None:
        """Record the state of the search if it is time; everything added so far is complete up to here."""
        self._listed = self._clock()
        self._new_lists.clear()  # they were quick to make
        new = len(self.outputs) - self.kept
        enough = new >= min(max(self.kept, WAVE), BATCH)  # a short translation has snapshots, too
        moved = new or state.taken != self._taken  # a lattice may move on and settle nothing
        if not enough and (not moved or self._clock() - self._saved < SAVE_EVERY):
            return
        done = [self._done[number] for number in range(max(self._done, default=-1) + 1)]
        self._log.append({"snapshot": state.to_json(), "done": done})
        self.kept = len(self.outputs)
        self._log.sync()
        self._taken, self._saved = state.taken, self._clock()

    def recall(self, key: str) -> list[NBest] | None:
        """Return the n-best lists that an interrupted run kept with a key; None if there are none."""
        try:
            return [list_of(data) for data in self._lists[key]]
        except (KeyError, TypeError, ValueError, AttributeError):
            return None

    def keep(self, key: str, lists: list[NBest]) -> None:
        """Keep n-best lists; they are recorded if making them, and those before them, has taken long."""
        self._new_lists.append((key, lists))
        if self._clock() - self._listed >= SAVE_EVERY:
            for made, of_batch in self._new_lists:
                self._log.append({"key": made, "lists": [list_json(nbest) for nbest in of_batch]})
            self._new_lists.clear()
            self._has_lists, self._listed = True, self._clock()

    def finish(self) -> None:
        """Remove the journal after the output is written."""
        self._log.remove()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not (self.outputs or self._has_lists):  # an empty journal is of no use
            self._log.remove()
        self._log.close()

    def _restore(self) -> None:
        """Read the log, and drop what comes after its last snapshot."""
        found = _Records()
        damaged = int(self._log.header_is_damaged)
        for position, record in self._log.records():
            damaged += not found.take(record, position)
        snapshots = found.keep(self._log)
        if snapshots:
            self.start = _state(self._log, snapshots[-1].position)
            self._taken = self.start.taken
        self.outputs, self.kept, self._lists = found.outputs, len(found.outputs), found.lists
        self._has_lists = bool(found.lists)
        self._done.update(document for document, _ in self.outputs)
        self.gaps = tuple(_gaps(self._log, snapshots, self.outputs))
        lost = sum(len(gap.lost) for gap in self.gaps)
        self.damage = damage_report(self._log.path, damaged, lost, "sentence")


@dataclass(frozen=True)
class _Snapshot:
    """How many sentences of each document that had begun were done at a moment of the search."""

    taken: int  # waves
    done: tuple[int, ...]
    position: LinePosition

    def has(self, sentence: Sentence) -> bool:
        document, number = sentence
        return 0 <= document < len(self.done) and 0 <= number < self.done[document]


@dataclass
class _Records:
    """The undamaged records of a log."""

    outputs: dict[Sentence, Any] = field(default_factory=dict)
    positions: dict[Sentence, LinePosition] = field(default_factory=dict)
    snapshots: list[_Snapshot] = field(default_factory=list)
    lists: dict[str, list[Any]] = field(default_factory=dict)
    list_positions: dict[str, LinePosition] = field(default_factory=dict)

    def take(self, record: Any, position: LinePosition) -> bool:
        """Add a record; return False if it is not valid."""
        match record:
            case {"snapshot": {"taken": int(taken), "documents": {}}, "done": [*done]}:
                if not all(type(count) is int for count in done):
                    return False
                self.snapshots.append(_Snapshot(taken, tuple(done), position))
            case {"document": int(document), "sentence": int(sentence), "output": output}:
                if (document, sentence) not in self.outputs:  # a repeated line counts once
                    self.outputs[document, sentence] = output
                    self.positions[document, sentence] = position
            case {"key": str(key), "lists": [*lists]}:
                self.lists.pop(key, None)  # the newest are the last
                self.lists[key] = lists
                self.list_positions[key] = position
                while sum(map(len, self.lists.values())) > BATCH + WAVE:  # those before the last batch
                    del self.lists[next(iter(self.lists))]
            case _:
                return False
        return True

    def keep(self, log: AppendLog) -> list[_Snapshot]:
        """Drop what comes after the last snapshot, here and in the log; return the snapshots in order."""
        snapshots = sorted(self.snapshots, key=lambda snapshot: snapshot.taken)
        self.outputs = {
            sentence: output
            for sentence, output in self.outputs.items()
            if snapshots and snapshots[-1].has(sentence)
        }
        kept = [snapshot.position for snapshot in snapshots]
        kept += [self.list_positions[key] for key in self.lists]
        kept += [self.positions[sentence] for sentence in self.outputs]
        kept.sort(key=lambda position: position.start)
        moved = dict(zip(kept, log.keep(kept), strict=True))
        return [replace(snapshot, position=moved[snapshot.position]) for snapshot in snapshots]


def _gaps(log: AppendLog, snapshots: list[_Snapshot], outputs: dict[Sentence, Any]) -> Iterator[Gap]:
    """The gaps between each snapshot and the next."""
    before: _Snapshot | None = None
    for snapshot in snapshots:
        earlier = before.done if before is not None else ()
        lost = frozenset(
            (document, sentence)
            for document, (first, end) in enumerate(
                itertools.zip_longest(earlier[: len(snapshot.done)], snapshot.done, fillvalue=0)
            )
            for sentence in range(first, end)
            if (document, sentence) not in outputs
        )
        if lost:
            yield Gap(log, before.position if before is not None else None, lost)
        before = snapshot


def _state(log: AppendLog, position: LinePosition) -> State:
    """Read the state of the search from a snapshot."""
    try:
        return State.from_json(log.read(position)["snapshot"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CadecError(
            f"{log.path} has an invalid snapshot: {error!r}", f"delete it, or {START_OVER_HINT}"
        ) from None
