"""What a translation has done so far, on disk: so that Ctrl-C, a crash or a full disk loses nothing.

JSON lines: a header that tells what is being translated how, then an {"output"} for every sentence and a
{"snapshot"} now and then. What was written after the last snapshot is done again, with the same result.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from cadec_cli.decoding.state import State
from cadec_cli.errors import CadecError
from cadec_cli.files import reading
from cadec_cli.whole_files import append_privately, writing

FORMAT_VERSION = 3
HINT = "free some space and run it again with --resume: nothing that was translated is lost"


class Journal:
    """The journal of one translation, open for appending."""

    goes_on = "the same command with --resume goes on"

    def __init__(
        self, path: Path, stream: IO[bytes], outputs: dict[tuple[int, int], Any], start: State | None
    ):
        self.path = path
        self.outputs = outputs  # (document, sentence) → what the sentence became
        self.start = start
        self.kept = len(outputs)  # how many of them a translation that is taken up again need not make
        self._stream = stream

    @classmethod
    def begin(cls, path: Path, header: Mapping[str, Any]) -> Journal:
        """Start a journal; one that is there already belongs to an unfinished translation."""
        refuse_unfinished(path)
        with writing(path, HINT):
            path.parent.mkdir(parents=True, exist_ok=True)
            journal = cls(path, _appending(path), {}, None)
        journal._write({"format": FORMAT_VERSION, **header})
        return journal

    @classmethod
    def resume(cls, path: Path, header: Mapping[str, Any]) -> Journal:
        """Take a journal up again, up to its last snapshot; without one, start it."""
        if not path.exists():
            return cls.begin(path, header)
        outputs: dict[tuple[int, int], Any] = {}
        kept: dict[tuple[int, int], Any] = {}
        start = None
        end = position = 0
        with reading(path), path.open("rb") as stream:
            for number, raw in enumerate(stream):
                position += len(raw)
                record = _parsed(raw)
                if number == 0 and not raw.endswith(b"\n"):
                    break  # killed before there was anything
                if number == 0:
                    _check_header(path, record, {"format": FORMAT_VERSION, **header})
                    end = position
                elif record is None:  # cut short by a crash or a full disk: nothing after it can be whole
                    break
                elif "snapshot" in record:
                    start, kept, end = State.from_json(record["snapshot"]), dict(outputs), position
                else:
                    outputs[record["document"], record["sentence"]] = record["output"]
        if not end:
            path.unlink()
            return cls.begin(path, header)
        with writing(path, HINT):
            os.truncate(path, end)
            return cls(path, _appending(path), kept, start)

    def add(self, document: int, sentence: int, output: Any) -> None:
        """Note what a sentence became."""
        self.outputs[document, sentence] = output
        self._write({"document": document, "sentence": sentence, "output": output})

    def checkpoint(self, state: State) -> None:
        """Note where the search stands; all that was added before is complete up to here."""
        self._write({"snapshot": state.to_json()})
        self.kept = len(self.outputs)
        with writing(self.path, HINT):
            os.fsync(self._stream.fileno())

    def finish(self) -> None:
        """The output is written: the journal has done its work."""
        self._stream.close()
        self.path.unlink(missing_ok=True)

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stream.close()
        if error is not None and not self.outputs:  # it would only be in the way
            self.path.unlink(missing_ok=True)

    def _write(self, record: Mapping[str, Any]) -> None:
        with writing(self.path, HINT):
            line = json.dumps(record, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
            while line:
                line = line[self._stream.write(line) :]


def refuse_unfinished(path: Path) -> None:
    """Refuse to begin anew where a translation can be taken up."""
    if path.exists():
        raise CadecError(
            f"there is an unfinished translation: {path}",
            "continue it with --resume, or start over with --force",
        )


def _appending(path: Path) -> IO[bytes]:
    # A buffer would try again, on closing, what a full disk refused.
    return append_privately(path, buffering=0)


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw) if raw.endswith(b"\n") else None
    except ValueError:
        return None


def _check_header(path: Path, found: Any, expected: Mapping[str, Any]) -> None:
    if not isinstance(found, dict):
        raise CadecError(f"{path} is damaged", "delete it and start over")
    other = [key for key in expected if found.get(key) != json.loads(json.dumps(expected[key]))]
    if other:
        raise CadecError(
            f"{path} belongs to a translation with another {', '.join(other)}",
            "resume with the same input and options, or delete that file to start over",
        )
