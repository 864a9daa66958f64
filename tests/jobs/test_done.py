"""Records of files that are finished: what is in their place, or beside them, may be anybody's."""

import contextlib
import os
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cadec_cli.errors import CadecError
from cadec_cli.jobs.done import RECORD, FinishedFile, FinishedFiles

WAY = {"options": "some"}
FILE = FinishedFile("a.ru.srt", "0" * 64, "a.srt", "1" * 64)


def linked(place: Path) -> None:
    place.symlink_to(place.parent.parent / "precious")


def linked_to_nothing(place: Path) -> None:
    place.symlink_to(place.parent.parent / "nothing")


@pytest.fixture
def files(tmp_path: Path) -> FinishedFiles:
    (tmp_path / "precious").write_text("mine\n")
    (tmp_path / "out").mkdir()
    return FinishedFiles(tmp_path / "out" / RECORD, WAY)


@pytest.mark.parametrize("make", [linked, linked_to_nothing, os.mkfifo, Path.mkdir])
def test_what_is_in_a_records_place_is_neither_followed_nor_replaced(
    files: FinishedFiles, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(files.path)
    for attempt in (files.check, lambda: files.add([FILE])):
        with pytest.raises(CadecError, match="is not a plain file"):
            attempt()
    assert (tmp_path / "precious").read_text() == "mine\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "precious"]


def test_a_record_elsewhere_is_none_of_these(files: FinishedFiles, tmp_path: Path) -> None:
    FinishedFiles(tmp_path / "record", WAY).add([FILE])
    (tmp_path / "out" / f"{RECORD}-1-of-2").symlink_to(tmp_path / "record")
    assert files.read() == set()


def test_a_pipe_among_the_records_does_not_block(files: FinishedFiles) -> None:
    files.add([FILE])
    pipe = files.path.with_name(f"{RECORD}-1-of-2")
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as threads:
        known = threads.submit(files.read)
        try:
            assert known.result(timeout=20) == {FILE}
        finally:
            with contextlib.suppress(OSError):  # nobody waits
                os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))


@pytest.mark.parametrize("begins_like_ours", [True, False])
def test_a_line_without_an_end_takes_no_memory(files: FinishedFiles, begins_like_ours: bool) -> None:
    files.add([FILE])
    huge = files.path.with_name(f"{RECORD}-1-of-2")
    huge.write_bytes(files.path.read_bytes() if begins_like_ours else b"")
    os.truncate(huge, 1 << 26)
    tracemalloc.start()
    try:
        assert files.read() == {FILE}
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()
