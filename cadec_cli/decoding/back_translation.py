"""Target-side documents to pseudo-parallel ones: every line translated back, documents parted as they were.

Line for line, as a stream: what is done is in a file beside the output, so that after a kill the lines in it
need not be made again. Which model translates, and how, is not known here.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cadec_cli.errors import CadecError
from cadec_cli.files import read_lines
from cadec_cli.places import beside, is_stream
from cadec_cli.whole_files import append_privately, atomic_file, writing

# Lines translated, and written, at a time.
CHUNK = 512

Translate = Callable[[Sequence[str]], list[str]]


@dataclass(frozen=True)
class PairFile:
    """The output: `translation TAB line`, blank where the input is; `origin` is all that it depends on."""

    output: Path
    origin: Mapping[str, str]

    @property
    def part(self) -> Path:
        """What is done so far."""
        return beside(self.output, ".cadec-part")

    def done(self, *, resume: bool) -> int:
        """How many lines are done; unfinished work is gone on with only if that is asked for."""
        if is_stream(self.output) or not self.part.is_file():
            return 0
        if not resume:
            raise CadecError(
                f"{self.part} holds unfinished work", "--resume continues it; delete it to begin anew"
            )
        lines = 0
        with self.part.open("rb") as stream:
            first = stream.readline()
            if not first.endswith(b"\n"):  # killed before there was anything
                os.truncate(self.part, 0)
                return 0
            if first != self._header():
                raise CadecError(
                    f"{self.part} was made of other files, or with other options",
                    "give the same ones, or delete it to begin anew",
                )
            end = stream.tell()
            for line in stream:
                if not line.endswith(b"\n"):
                    break
                end += len(line)
                lines += 1
        os.truncate(self.part, end)
        return lines

    def write(self, chunks: Iterable[Sequence[str]]) -> None:
        """Append chunks of lines; the last one makes it whole. Into a pipe they go as they come."""
        if is_stream(self.output):
            with atomic_file(self.output) as stream:
                for lines in chunks:
                    stream.write("".join(f"{line}\n" for line in lines).encode())
                    stream.flush()
            return
        with writing(self.output, "what is done so far is kept; --resume continues it"):
            with append_privately(self.part) as stream:
                if not stream.tell():
                    stream.write(self._header())
                    stream.flush()
                for lines in chunks:
                    stream.write("".join(f"{line}\n" for line in lines).encode())
                    stream.flush()
                os.fsync(stream.fileno())
            self._without_header()

    def _without_header(self) -> None:
        with self.part.open("rb") as stream, atomic_file(self.output) as target:
            stream.readline()
            while piece := stream.read(1 << 20):
                target.write(piece)
        self.part.unlink()

    def _header(self) -> bytes:
        digest = hashlib.sha256(json.dumps(dict(self.origin), sort_keys=True).encode())
        return f"# cadec back-translation {digest.hexdigest()}\n".encode()


def input_lines(paths: Sequence[Path], encoding: str | None = None) -> Iterator[str]:
    """The lines of all files, a blank one after each file but the last."""
    for number, path in enumerate(paths):
        if number:
            yield ""
        yield from read_lines(path, encoding)


def paired(lines: Iterable[str], translate: Translate, size: int = CHUNK) -> Iterator[list[str]]:
    """Chunks of lines with their translations before them; blank ones stay blank."""
    stream = iter(lines)
    while chunk := list(itertools.islice(stream, size)):
        texts = [" ".join(line.split()) for line in chunk]
        found = iter(translate([text for text in texts if text]))
        yield [f"{_one_line(next(found))}\t{text}" if text else "" for text in texts]


def _one_line(text: str) -> str:
    return " ".join(text.split())
