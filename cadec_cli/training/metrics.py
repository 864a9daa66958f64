"""metrics.jsonl, one object per line: {"update", "loss", …}, and {"update", "dev_loss", …} at evaluations.

What is there is for people: a line that was damaged is left out, and a run goes on without it.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cadec_cli import console
from cadec_cli.files import read_errors
from cadec_cli.whole_files import atomic_file, write_errors

Record = dict[str, Any]

# More than any figure is that was measured.
_MOST = 1 << 62


class Metrics:
    """Appends to metrics.jsonl; `path` None writes nothing (processes other than the first)."""

    def __init__(self, path: Path | None, update: int = 0) -> None:
        self._path = path
        if path is not None:
            with write_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
            self._forget_after(update)

    def write(self, record: Record) -> None:
        """Append a record."""
        if self._path is None:
            return
        with write_errors(self._path), self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record) + "\n")

    def _forget_after(self, update: int) -> None:
        """Drop what a killed run wrote after the checkpoint that it is continued from."""
        assert self._path is not None
        kept = [r for r in read_metrics(self._path) if r["update"] <= update] if self._path.exists() else []
        with atomic_file(self._path) as stream:
            stream.writelines((json.dumps(record) + "\n").encode() for record in kept)


def read_metrics(path: Path) -> Iterator[Record]:
    """Yield the records of a metrics.jsonl; damaged lines are left out, which is said at the end.

    Nothing is said of a last line that was cut short by a crash.
    """
    damaged = 0
    with read_errors(path), path.open("rb") as stream:
        for line in stream:
            record = _parse_record(line)
            if record is not None:
                yield record
            elif line.strip() and line.endswith(b"\n"):
                damaged += 1
    if damaged:
        console.warn(f"{path}: {damaged:,} damaged line{'s are' if damaged > 1 else ' is'} left out")


def _parse_record(line: bytes) -> Record | None:
    """The record of a line: figures by name, one of which is the update that they were taken at."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or not all(map(_is_figure, record.values())):
        return None
    update = record.get("update")
    return record if type(update) is int and update >= 0 else None


def _is_figure(value: Any) -> bool:
    """Tell whether a value can have been measured: a number, perhaps infinite, but none that is absurd."""
    return type(value) is float or (type(value) is int and abs(value) < _MOST)
