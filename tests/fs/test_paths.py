"""What an output's name leads to: streams are written to, and what can't be written is known ahead."""

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cadec_cli.errors import CadecError
from cadec_cli.fs.atomic import atomic_directory, atomic_file
from cadec_cli.fs.paths import check_writable, shorten_name, sibling_path
from tests.helpers.devices import device
from tests.helpers.directory_contents import contents

# Streams: what a name stands for is written to, not replaced.


@contextlib.contextmanager
def read_to_the_end(path: Path) -> Iterator[list[bytes]]:
    """Read a named pipe meanwhile; what it gave is in the list after the block."""
    given: list[bytes] = []
    reader = threading.Thread(target=lambda: given.append(path.read_bytes()), daemon=True)
    reader.start()
    yield given
    reader.join(30)


def test_a_named_pipe_is_written_through(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "link").symlink_to(pipe)
    for name in ("pipe", "link"):
        with read_to_the_end(pipe) as given, atomic_file(tmp_path / name) as stream:
            stream.write(b"text")
        assert given == [b"text"]
    assert pipe.is_fifo() and (tmp_path / "link").is_symlink()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "pipe"]


def test_a_device_is_written_through(tmp_path: Path) -> None:
    null, full = device(tmp_path, "null"), device(tmp_path, "full")
    with atomic_file(null) as stream:
        stream.write(b"text")
    assert null.is_char_device()
    with pytest.raises(CadecError, match=f"no space left to write {full}"), atomic_file(full) as stream:
        stream.write(b"text")


def test_a_descriptor_is_gone_on_with_whatever_it_leads_to(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    with atomic_file(Path(f"/dev/fd/{write_end}")) as stream:
        stream.write(b"text")
    os.close(write_end)
    with os.fdopen(read_end, "rb") as reader:
        assert reader.read() == b"text"
    with (tmp_path / "log").open("wb", buffering=0) as log:
        log.write(b"before, ")
        with atomic_file(Path(f"/proc/self/fd/{log.fileno()}")) as stream:
            stream.write(b"text")
        log.write(b", after")
    assert contents(tmp_path) == {"log": b"before, text, after"}


def test_a_reader_that_has_gone_is_no_error(tmp_path: Path) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with pytest.raises(BrokenPipeError), atomic_file(Path(f"/dev/fd/{write_end}")) as stream:
        stream.write(b"text")
    os.close(write_end)


def test_streams_that_can_not_be_written_are_an_error(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        number = file.fileno()
    with pytest.raises(CadecError, match="Bad file descriptor"), atomic_file(Path(f"/dev/fd/{number}")):
        pass
    with (
        (tmp_path / "file").open("rb") as reader,
        pytest.raises(CadecError, match="for reading only"),
        atomic_file(Path(f"/dev/fd/{reader.fileno()}")),
    ):
        pass
    with pytest.raises(CadecError, match="is not a directory"), atomic_directory(device(tmp_path, "null")):
        pass


def test_what_is_neither_file_nor_stream_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's path is short
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        for write in (atomic_file, atomic_directory):
            with pytest.raises(CadecError, match="socket is a socket"), write(Path("socket")):
                pass
        assert Path("socket").is_socket()


# Names: as long as the file system has them, and what can't be is known ahead.

LONG_NAMES = {"Latin": "x" * 255, "Cyrillic": "x" + "я" * 127, "Chinese": "字" * 85}


@pytest.mark.parametrize("name", LONG_NAMES.values(), ids=LONG_NAMES)
def test_the_longest_names_can_be_written(tmp_path: Path, name: str) -> None:
    check_writable(tmp_path / name)
    with atomic_file(tmp_path / name) as stream:
        stream.write(b"text")
    sibling_path(tmp_path / name, ".cadec-journal").touch()
    (tmp_path / name).unlink()
    with atomic_directory(tmp_path / name) as part:
        (part / "a").touch()
    for path in (tmp_path / (name + "x"), tmp_path / "new" / (name + "x"), tmp_path / (name + "x") / "a"):
        with pytest.raises(OSError, match="too long"):
            check_writable(path)
    assert not (tmp_path / "new").exists()


def test_shortened_names_are_told_apart() -> None:
    assert shorten_name("film.srt", 8) == "film.srt"
    made = {shorten_name("я" * 100 + last, room) for last in "ab" for room in range(50, 60)}
    assert all(len(os.fsencode(name)) <= 60 and name.encode() for name in made)
    assert shorten_name("я" * 100 + "a", 50) != shorten_name("я" * 100 + "b", 50)


def test_the_longest_path_is_known_ahead(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["x" * 200] * 20)
    with pytest.raises(OSError, match="path is too long"):
        check_writable(deep)


def test_a_parent_that_is_a_file_is_known_ahead(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name in ("file/a", "file/b/a"):
        with pytest.raises(OSError, match="file is a file, not a directory"):
            check_writable(tmp_path / name)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_directory_that_is_closed_is_known_ahead(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    for name in ("a", "b/a"):
        with pytest.raises(OSError, match="may not write"):
            check_writable(closed / name)


def test_another_file_system_is_not_replaced() -> None:
    for name in ("/proc", "/"):
        with pytest.raises(CadecError, match="mount point"):
            check_writable(Path(name), directory=True)
