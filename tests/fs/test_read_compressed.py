"""Compressed files of any number of frames: all that is in them is read, or there is an error."""

import gzip
import lzma
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from cadec_cli.errors import CadecError
from cadec_cli.fs.read import read_lines, read_text

PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "xz": partial(lzma.compress, preset=0),
    "zst": zstandard.compress,
}
# In what multiples zeros may stand between frames and after the last: as the formats' own tools have it.
PADDING = {"gz": 1, "xz": 4, "zst": None}
LINES = st.lists(st.text("abя", max_size=5)).map(lambda lines: "".join(f"{line}\n" for line in lines))


@dataclass(frozen=True)
class Piece:
    """A frame of some text, or zeros, or what is neither."""

    text: str | None = None
    zeros: int = 0
    garbage: bytes = b""

    def packed(self, kind: str) -> bytes:
        frame = b"" if self.text is None else PACKED[kind](self.text.encode())
        return frame + bytes(self.zeros) + self.garbage


FRAMES = LINES.map(lambda text: Piece(text=text))
ZEROS = st.sampled_from([1, 2, 4, 8, 12, 1023, 1024, 4096]).map(lambda count: Piece(zeros=count))
GARBAGE = st.binary(max_size=2000).map(lambda after: Piece(garbage=b"\1" + after))


def text_of(pieces: list[Piece], kind: str) -> str | None:
    """What a file of these pieces holds; None if it is none."""
    if not pieces or pieces[0].text is None or any(piece.garbage for piece in pieces):
        return None
    unit, run = PADDING[kind], 0
    for piece in [*pieces, Piece(text="")]:
        run += piece.zeros
        if piece.text is not None:
            if run and (unit is None or run % unit):
                return None
            run = 0
    return "".join(piece.text or "" for piece in pieces)


def read(path: Path) -> str | None:
    """What both readers find in a file; None if both refuse it."""
    found: list[str | None] = []
    readers: list[Callable[[], str]] = [
        lambda: read_text(path).text,
        lambda: "".join(f"{line}\n" for line in read_lines(path)),
    ]
    for reader in readers:
        try:
            found.append(reader())
        except CadecError as error:
            assert error.message.startswith(f"can't read {path}: ") and "nternal" not in error.message
            found.append(None)
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize("kind", PACKED)
@given(pieces=st.lists(st.one_of(FRAMES, FRAMES, ZEROS, GARBAGE), max_size=5))
def test_everything_is_read_or_refused(
    kind: str, pieces: list[Piece], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / f"a.{kind}"
    path.write_bytes(b"".join(piece.packed(kind) for piece in pieces))
    assert read(path) == text_of(pieces, kind)


@pytest.mark.parametrize("kind", PACKED)
@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_truncated_file_is_refused_wherever_it_ends(kind: str, before: int, tmp_path: Path) -> None:
    whole, last = PACKED[kind](b"first\n") * before, PACKED[kind](b"last\n" * 9)
    path = tmp_path / f"a.{kind}"
    for end in range(0 if not before else 1, len(last)):
        path.write_bytes(whole + last[:end])
        assert read(path) is None, end


@pytest.mark.parametrize("kind", PACKED)
def test_many_small_frames(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"a.{kind}"
    path.write_bytes(PACKED[kind](b"one\n") + PACKED[kind](b"two\n") * 1000)
    assert read(path) == "one\n" + "two\n" * 1000


def test_frames_that_say_that_they_hold_no_text_are_skipped(tmp_path: Path) -> None:
    skippable = bytes([0x5A, 0x2A, 0x4D, 0x18]) + (3000).to_bytes(4, "little") + b"n" * 3000
    one, two = zstandard.compress(b"one\n"), zstandard.compress(b"two\n")
    path = tmp_path / "a.zst"
    path.write_bytes(skippable + one + skippable * 2 + two + skippable)
    assert read(path) == "one\ntwo\n"
    path.write_bytes(one + skippable[:-1])
    assert read(path) is None
