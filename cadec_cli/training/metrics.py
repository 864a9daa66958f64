"""metrics.jsonl, one object per line: {"update", "loss", …}, and {"update", "dev_loss", …} at evaluations."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cadec_cli.errors import CadecError
from cadec_cli.files import reading
from cadec_cli.whole_files import atomic_file, writing

Record = dict[str, Any]


class Metrics:
    """Appends to metrics.jsonl; `path` None writes nothing (processes other than the first)."""

    def __init__(self, path: Path | None, update: int = 0) -> None:
        self._path = path
        if path is not None:
            with writing(path):
                path.parent.mkdir(parents=True, exist_ok=True)
            self._forget_after(update)

    def write(self, record: Record) -> None:
        """Append a record."""
        if self._path is None:
            return
        with writing(self._path), self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(record) + "\n")

    def _forget_after(self, update: int) -> None:
        """Drop what a killed run wrote after the checkpoint that it is continued from."""
        assert self._path is not None
        kept = [r for r in read_metrics(self._path) if r["update"] <= update] if self._path.exists() else []
        with atomic_file(self._path) as stream:
            stream.writelines((json.dumps(record) + "\n").encode() for record in kept)


def read_metrics(path: Path) -> Iterator[Record]:
    """Yield the records of a metrics.jsonl; a last line cut short by a crash is passed over."""
    with reading(path):
        lines = path.read_text("utf-8").split("\n")
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line) if line else None
        except ValueError:
            if number < len(lines):
                raise CadecError(f"{path}: line {number} is not JSON") from None
            return
        if isinstance(record, dict) and "update" in record:
            yield record
