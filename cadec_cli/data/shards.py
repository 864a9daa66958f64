"""Encoded corpora on disk, memory-mapped: what `cadec prepare` writes and training reads.

A shard is a directory:

    shard.json               languages, pipeline checksums, counts; checksums of the files below, and its own
    documents.bin            int64: for each document, the number of sentences up to its end
    0-<language>.tokens.bin  uint16 or uint32: the boundary, then every sentence followed by it
    0-<language>.ends.bin    int64: for each sentence, the number of tokens up to its end, boundary included

The boundary is EOS, or its counterpart in the tokenizer of a pretrained model. The one at the very start
makes every document, with its opening and closing boundary, one contiguous slice, as the D-LM is trained on.
Monolingual shards have one side; parallel ones have a second, 1-<language>, with as many sentences.

Opening a shard checks sizes alone. `verify`, called before training, reads the indices and, if the corpus is
not too large, all other files; ids are checked when they are read.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from cadec_cli.arrays import Ints
from cadec_cli.errors import CadecError
from cadec_cli.fs.atomic import atomic_directory, restore_directory, write_json
from cadec_cli.fs.read import read_json, sha256
from cadec_cli.text.subwords import EOS
from cadec_cli.text.token_text import CorpusText

FORMAT_VERSION = 1

# Bytes of a shard up to which `verify` reads all of it, in some seconds. A corpus of 100 GB would take many
# minutes each time that a run is continued.
READ_WHOLE = 2 << 30
# Entries of an index that are checked together.
_BLOCK = 1 << 20
_AGAIN = "prepare the corpus again"

Tokens = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]


@dataclass(frozen=True)
class SideInfo:
    """The pipeline that encoded one side of a shard: language, checksum, vocabulary size, boundary."""

    language: str
    pipeline_checksum: str
    vocabulary_size: int
    boundary: int = EOS
    text: str = "pipeline"  # the kind of text

    def __post_init__(self) -> None:
        """Refuse impossible values."""
        texts = (self.language, self.pipeline_checksum, self.text)
        if not all(isinstance(text, str) for text in texts) or "/" in self.language:
            raise ValueError("a side has a language, a checksum and a kind of text")
        if type(self.vocabulary_size) is not int or not 0 < self.vocabulary_size <= 1 << 32:
            raise ValueError(f"a vocabulary can't have {self.vocabulary_size!r} pieces")
        if type(self.boundary) is not int or not 0 <= self.boundary < self.vocabulary_size:
            raise ValueError(f"the boundary can't be {self.boundary!r}")

    @classmethod
    def of(cls, text: CorpusText) -> SideInfo:
        """The description of a text pipeline."""
        return cls(text.language, text.checksum, len(text), text.boundary, text.kind)


@dataclass(frozen=True)
class Side:
    """One language of a shard."""

    info: SideInfo
    tokens: Tokens
    ends: Ints

    @property
    def lengths(self) -> Ints:
        """Tokens of every sentence, its EOS included."""
        return np.diff(self.ends, prepend=np.int64(1))

    @property
    def starts(self) -> Ints:
        """The position of the first token of every sentence."""
        return np.concatenate([[np.int64(1)], self.ends[:-1]])

    def sentence(self, index: int) -> Tokens:
        """One sentence, with its EOS."""
        return self.between(index, index)

    def between(self, first: int, last: int) -> Tokens:
        """Consecutive sentences, each with its EOS; empty if the last comes before the first."""
        start = self.ends[first - 1] if first else 1
        return self.cut(start, self.ends[last]) if last >= first else self.tokens[:0]

    def cut(self, start: int | np.int64, end: int | np.int64) -> Tokens:
        """The tokens between two positions; an id outside the vocabulary is a CadecError."""
        tokens = self.tokens[start:end]
        if len(tokens) and tokens.max() >= self.info.vocabulary_size:
            raise CadecError(
                f"{getattr(self.tokens.base, 'filename', 'a corpus')} is damaged: "
                f"it has an id that is not in its vocabulary of {self.info.vocabulary_size:,}",
                _AGAIN,
            )
        return tokens


class Shard:
    """A shard opened for reading. It is memory-mapped: data is read when it is used."""

    def __init__(self, directory: Path) -> None:
        restore_directory(directory)
        if not (directory / "shard.json").is_file():
            raise CadecError(
                f"{directory} is not a prepared corpus (it has no shard.json)",
                "make one with `cadec prepare text`",
            )
        meta = read_json(directory / "shard.json")
        if not isinstance(meta, dict) or meta.get("format") != FORMAT_VERSION:
            raise CadecError(f"{directory}/shard.json is not of format {FORMAT_VERSION}", _AGAIN)
        # Shards of earlier versions have no checksums.
        if "checksum" in meta and meta["checksum"] != _checksum(meta):
            raise CadecError(f"{directory}/shard.json is damaged: its checksum is wrong", _AGAIN)
        self.directory = directory
        try:
            self.sides = tuple(
                Side(
                    info := SideInfo(**side),
                    _map(directory / f"{index}-{info.language}.tokens.bin", _dtype(info.vocabulary_size)),
                    _map(directory / f"{index}-{info.language}.ends.bin", np.dtype(np.int64)),
                )
                for index, side in enumerate(meta["sides"])
            )
            self.document_ends: Ints = _map(directory / "documents.bin", np.dtype(np.int64))
            expected = (meta["documents"], meta["sentences"], meta["tokens"])
            self._checksums = dict(meta.get("checksums", {}))
        except (KeyError, TypeError, OSError, ValueError) as error:
            raise CadecError(f"{directory} is damaged: {error}", _AGAIN) from None
        # Only the last entries are checked: reading all would take the memory that mapping saves.
        found = (_last(self.document_ends), [_last(side.ends, 1) for side in self.sides])
        sizes = (len(self.document_ends), *{len(side.ends) for side in self.sides})
        counts = [len(side.tokens) for side in self.sides]
        if (*sizes, counts) != expected or found != (len(self), counts):
            raise CadecError(
                f"{directory} is damaged: its files do not have the sizes given in shard.json", _AGAIN
            )

    def verify(self) -> None:
        """Raise a CadecError if the corpus is damaged, as far as that can be checked in reasonable time."""
        indices = {"documents.bin": self.document_ends}
        names = ["documents.bin"]
        for number, side in enumerate(self.sides):
            tokens, ends = (f"{number}-{side.info.language}.{what}.bin" for what in ("tokens", "ends"))
            indices[ends] = side.ends
            names += [tokens, ends]
        for name, found in indices.items():
            if not _ascending(found, int(name != "documents.bin")):
                raise CadecError(f"{self.directory / name} is damaged: its entries do not ascend", _AGAIN)
        paths = [self.directory / name for name in names if name in self._checksums]
        if sum(path.stat().st_size for path in paths) > READ_WHOLE:
            return
        for path in paths:
            if sha256(path) != self._checksums[path.name]:
                raise CadecError(f"{path} is damaged: its checksum is wrong", _AGAIN)

    def __len__(self) -> int:
        """The number of sentences (or pairs)."""
        return len(self.sides[0].ends)


class ShardWriter:
    """Appends documents to a shard, keeping nothing in memory. Use `writing_shard`."""

    def __init__(self, directory: Path, sides: Sequence[SideInfo], stack: contextlib.ExitStack) -> None:
        self._directory = directory
        self._sides = sides
        self._dtypes = [_dtype(side.vocabulary_size) for side in sides]

        self._written: dict[str, _HashedFile] = {}

        def create(name: str) -> _HashedFile:
            file = _HashedFile(stack.enter_context((directory / name).open("wb")))
            self._written[name] = file
            return file

        self._documents = create("documents.bin")
        self._tokens = [create(f"{index}-{side.language}.tokens.bin") for index, side in enumerate(sides)]
        self._ends = [create(f"{index}-{side.language}.ends.bin") for index, side in enumerate(sides)]
        for stream, dtype, side in zip(self._tokens, self._dtypes, sides, strict=True):
            stream.write(np.array([side.boundary], dtype).tobytes())
        self.token_counts = [1] * len(sides)
        self.sentences = 0
        self.documents = 0
        self._document_open = False

    def add(self, *sides: Sequence[int] | npt.NDArray[np.int32]) -> None:
        """Append a sentence to the current document: its ids on every side, without the boundary."""
        for index, ids in enumerate(sides):
            boundary = self._sides[index].boundary
            self._tokens[index].write(np.array([*ids, boundary], self._dtypes[index]).tobytes())
            self.token_counts[index] += len(ids) + 1
            self._ends[index].write(self.token_counts[index].to_bytes(8, "little"))
        self.sentences += 1
        self._document_open = True

    def end_document(self) -> None:
        """Close the current document; one without sentences is not written."""
        if self._document_open:
            self._documents.write(self.sentences.to_bytes(8, "little"))
            self.documents += 1
            self._document_open = False

    def finish(self) -> None:
        """Write shard.json."""
        self.end_document()
        meta: dict[str, Any] = {
            "format": FORMAT_VERSION,
            "sides": [vars(side) for side in self._sides],
            "documents": self.documents,
            "sentences": self.sentences,
            "tokens": self.token_counts,
            "checksums": {name: file.digest.hexdigest() for name, file in self._written.items()},
        }
        write_json(self._directory / "shard.json", {**meta, "checksum": _checksum(meta)})


class _HashedFile:
    """A file that is being written, with the checksum of its content so far."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.digest = hashlib.sha256()

    def write(self, content: bytes) -> None:
        self._stream.write(content)
        self.digest.update(content)


@contextlib.contextmanager
def writing_shard(directory: Path, sides: Sequence[SideInfo]) -> Iterator[ShardWriter]:
    """Write a shard that appears only when it is complete."""
    with atomic_directory(directory, marker="shard.json") as part:
        with contextlib.ExitStack() as stack:
            writer = ShardWriter(part, sides, stack)
            yield writer
            writer.end_document()
        writer.finish()


def _dtype(vocabulary_size: int) -> np.dtype[np.uint16] | np.dtype[np.uint32]:
    return np.dtype("<u2") if vocabulary_size <= 1 << 16 else np.dtype("<u4")


def _checksum(meta: Mapping[str, Any]) -> str:
    """The checksum of the rest of shard.json."""
    told = {name: value for name, value in meta.items() if name != "checksum"}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _ascending(ends: Ints, start: int) -> bool:
    """Tell whether the entries ascend strictly."""
    for first in range(0, len(ends), _BLOCK):
        block = ends[first : first + _BLOCK]
        if block[0] <= start or not (block[1:] > block[:-1]).all():
            return False
        start = int(block[-1])
    return True


def _last(ends: Ints, empty: int = 0) -> int:
    return int(ends[-1]) if len(ends) else empty


def _map(path: Path, dtype: np.dtype) -> np.ndarray:
    if path.stat().st_size == 0:  # an empty file can't be mapped
        return np.zeros(0, dtype)
    # A plain array: a slice of a memmap is a memmap, and making one takes longer than reading a sentence.
    return np.memmap(path, dtype, mode="r").view(np.ndarray)
