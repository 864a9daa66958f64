"""The cache: made once, whoever asks; damaged entries are made again; no cache is no catastrophe."""

import contextlib
import json
import multiprocessing
import os
import resource
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from cadec_cli.bundle.conversion_cache import converted_once
from cadec_cli.errors import CadecError
from cadec_cli.fs.atomic import atomic_directory
from tests.helpers.unprivileged import agreed_by_another


class Converter:
    """Writes a file and counts."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, directory: Path) -> None:
        self.calls += 1
        with atomic_directory(directory) as part:
            (part / "model.bin").write_text("weights")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CADEC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_it_is_made_once(cache: Path) -> None:
    convert = Converter()
    first = converted_once("key", convert)
    assert converted_once("key", convert) == first
    assert first.is_relative_to(cache)
    assert convert.calls == 1
    converted_once("other", convert)
    assert convert.calls == 2


def _replaced(path: Path, content: str) -> None:
    path.unlink()
    path.write_text(content)


def _moved(path: Path) -> Path:
    path.rename(path.parent.parent / "elsewhere")
    return path


def _linked(path: Path) -> None:
    _moved(path).symlink_to(path.parent.parent / "elsewhere")


def _dangling(path: Path) -> None:
    _moved(path).symlink_to("nowhere")


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _sealed_as(directory: Path, sealed: object) -> None:
    (directory / "cadec.json").write_text(json.dumps(sealed))


# What may have become of a directory in the cache, and who is to blame: a crash, a disk, somebody.
DAMAGE: dict[str, Callable[[Path], object]] = {
    "changed": lambda made: (made / "model.bin").write_text("weighty"),
    "emptied": lambda made: (made / "model.bin").write_text(""),
    "removed": lambda made: (made / "model.bin").unlink(),
    "more than was sealed": lambda made: (made / "shared_vocabulary.json").write_text("[]"),
    "a hidden file more": lambda made: (made / ".model.bin.part").write_text(""),
    "a directory more": lambda made: (made / "more").mkdir(),
    "a link in a file's place": lambda made: _linked(made / "model.bin"),
    "a FIFO in a file's place": lambda made: _fifo(made / "model.bin"),
    "a link in the directory's place": _linked,
    "a file in the directory's place": lambda made: _moved(made).write_text(""),
    "a dangling link in its place": _dangling,
    "writable by all": lambda made: (made / "model.bin").chmod(0o666),
    "in a directory writable by all": lambda made: made.chmod(0o777),
    "unsealed": lambda made: (made / "cadec.json").unlink(),  # killed between writing and sealing
    "bad seal": lambda made: _replaced(made / "cadec.json", "["),
    "a seal of no characters": lambda made: (made / "cadec.json").write_bytes(b"\xff\xfe\xff"),
    "a seal that is a list": lambda made: _sealed_as(made, ["model.bin"]),
    "a seal of numbers": lambda made: _sealed_as(made, {"model.bin": 7}),
    "an empty seal": lambda made: _sealed_as(made, {}),
    "a seal of names that can't be": lambda made: _sealed_as(made, {"model.bin\0": "", "": "", "../key": ""}),
    "a deep seal": lambda made: _replaced(made / "cadec.json", "[" * 60_000),
    "a huge seal": lambda made: os.truncate(made / "cadec.json", 1 << 40),
    "a seal that is a directory": lambda made: _directory(made / "cadec.json"),
    "a seal that is a FIFO": lambda made: _fifo(made / "cadec.json"),
    "a seal that is a link": lambda made: _linked(made / "cadec.json"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_damaged_is_made_again(damage: str, cache: Path) -> None:
    convert = Converter()
    notes: list[str] = []
    directory = converted_once("key", convert, notes.append)
    DAMAGE[damage](directory)
    assert converted_once("key", convert, notes.append) == directory
    assert convert.calls == 2
    assert stat.S_ISDIR(directory.lstat().st_mode)
    assert {path.name for path in directory.iterdir()} == {"model.bin", "cadec.json"}
    assert (directory / "model.bin").read_text() == "weights"
    assert converted_once("key", convert, notes.append) == directory
    assert (convert.calls, notes) == (2, [])


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o022, 0o027, 0o077])
def test_others_may_read_what_the_umask_lets_them_and_never_write(umask: int, cache: Path) -> None:
    before = os.umask(umask)
    try:
        made = converted_once("key", Converter())
    finally:
        os.umask(before)
    for path in (cache, cache / "ctranslate2", made, *made.iterdir()):
        expected = (0o755 if path.is_dir() else 0o644) & ~umask
        assert stat.S_IMODE(path.stat().st_mode) == expected, path


def test_a_cache_of_root_serves_everybody(cache: Path) -> None:
    before = os.umask(0o022)
    try:
        made = converted_once("key", Converter())
    finally:
        os.umask(before)
    convert = Converter()

    def serves() -> bool:
        return converted_once("key", convert) == made and (made / "model.bin").read_text() == "weights"

    assert agreed_by_another(lambda: serves() and convert.calls == 0, cache)


def test_a_cache_that_others_could_write_to_is_closed_to_them(cache: Path) -> None:
    (cache / "ctranslate2").mkdir(parents=True)
    (cache / "ctranslate2").chmod(0o777)
    notes: list[str] = []
    assert converted_once("key", Converter(), notes.append).is_relative_to(cache)
    assert stat.S_IMODE((cache / "ctranslate2").stat().st_mode) == 0o755
    assert notes == []


def _give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a file another user's, which only root can; or us another user."""
    if os.geteuid() == 0:
        os.chown(path, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)


def test_a_cache_of_another_user_is_not_used(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    convert = Converter()
    converted_once("others", convert)
    _give_away(cache / "ctranslate2", monkeypatch)
    notes: list[str] = []
    assert not converted_once("others", convert, notes.append).is_relative_to(cache)
    assert convert.calls == 2
    (note,) = notes
    assert f"{cache / 'ctranslate2'} is not used (it belongs to another user)" in note


@pytest.mark.parametrize("left", [".", "model.bin", "cadec.json"])
def test_what_another_user_left_is_not_loaded(
    left: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    convert = Converter()
    made = converted_once(f"{left} left", convert)
    with monkeypatch.context() as patched:
        _give_away(made / left, patched)
        converted_once(f"{left} left", convert)
    assert convert.calls == 2
    if os.geteuid() == 0:
        assert converted_once(f"{left} left", convert) == made
        assert convert.calls == 2
        assert {path.stat().st_uid for path in (made, *made.iterdir())} == {0}


@pytest.mark.parametrize("kind", ["link", "directory"])
def test_a_lock_that_is_none_is_told_and_left_alone(kind: str, cache: Path, tmp_path: Path) -> None:
    (cache / "ctranslate2").mkdir(parents=True)
    place = cache / "ctranslate2" / f".locked by a {kind}.lock"
    other = tmp_path / "other"
    other.write_text("not to be emptied")
    place.symlink_to(other) if kind == "link" else place.mkdir()
    notes: list[str] = []
    made = converted_once(f"locked by a {kind}", Converter(), notes.append)
    assert (made / "model.bin").read_text() == "weights"
    (note,) = notes
    assert str(place) in note and "delete it" in note
    assert other.read_text() == "not to be emptied"


def test_a_failed_conversion_fails_and_leaves_nothing(cache: Path) -> None:
    def fail(directory: Path) -> None:
        raise CadecError("it does not fit")

    with pytest.raises(CadecError, match="does not fit"):
        converted_once("key", fail)
    assert not (cache / "ctranslate2" / "key").exists()


def test_without_a_writable_cache_a_temporary_one_serves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("CADEC_CACHE", str(tmp_path / "file" / "cache"))
    convert = Converter()
    notes: list[str] = []
    first = converted_once("only-here", convert, notes.append)
    assert (first / "model.bin").read_text() == "weights"
    assert converted_once("only-here", convert, notes.append) == first
    assert convert.calls == 1
    (note,) = notes
    assert str(tmp_path / "file" / "cache") in note
    converted_once("only-there", convert)
    assert "".join(capsys.readouterr()) == ""


# A limit on the size of files is as real as a full disk, and needs none.
@contextlib.contextmanager
def _room_for(size: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary directories go."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "elsewhere"))
    return tmp_path / "elsewhere"


def test_a_full_cache_is_told_and_a_temporary_directory_serves(cache: Path, elsewhere: Path) -> None:
    calls = []

    def convert(directory: Path) -> None:
        calls.append(directory)
        with (
            _room_for(4096 if directory.is_relative_to(cache) else 1_000_000),
            atomic_directory(directory) as part,
        ):
            (part / "model.bin").write_bytes(bytes(100_000))

    notes: list[str] = []
    made = converted_once("too large", convert, notes.append)
    assert made.is_relative_to(elsewhere)
    assert (made / "model.bin").stat().st_size == 100_000
    (note,) = notes
    assert f"{cache / 'ctranslate2'} is not used (no space left" in note
    assert [path.name for path in (cache / "ctranslate2").iterdir()] == [".too large.lock"]
    assert converted_once("too large", convert, notes.append) == made
    assert (len(calls), len(notes)) == (2, 1)


def test_no_room_for_the_seal_is_no_room(cache: Path, elsewhere: Path) -> None:
    convert = Converter()
    notes: list[str] = []
    with _room_for(16):  # more than the weights of the test, less than a checksum
        made = converted_once("unsealable", convert, notes.append)
    assert made.is_relative_to(elsewhere)
    assert (convert.calls, len(notes)) == (2, 1)
    assert [path.name for path in (cache / "ctranslate2").iterdir()] == [".unsealable.lock"]


def test_no_room_anywhere_is_one_error_that_says_what_to_do(cache: Path, elsewhere: Path) -> None:
    notes: list[str] = []
    with _room_for(4), pytest.raises(CadecError, match="no space left") as refused:
        converted_once("nowhere", Converter(), notes.append)
    assert "CADEC_CACHE" in refused.value.hint
    assert len(notes) == 1
    assert list(elsewhere.iterdir()) == []
    assert [path.name for path in (cache / "ctranslate2").iterdir()] == [".nowhere.lock"]
    assert converted_once("nowhere", Converter(), notes.append).is_relative_to(cache)


_IN_A_TEMPORARY_DIRECTORY = """
import os, sys
from pathlib import Path
from cadec_cli.bundle.conversion_cache import converted_once
def convert(directory):
    directory.mkdir()
for key in ("one", "two"):
    assert converted_once(key, convert).is_dir()
if sys.argv[1] == "killed":
    os.kill(os.getpid(), 9)
"""


def test_temporary_directories_go_with_their_process_or_the_next(elsewhere: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    environment = {**os.environ, "CADEC_CACHE": str(tmp_path / "file" / "cache"), "TMPDIR": str(elsewhere)}
    for how, left in (("killed", 2), ("ended", 0)):
        subprocess.run([sys.executable, "-c", _IN_A_TEMPORARY_DIRECTORY, how], env=environment)
        assert len(list(elsewhere.iterdir())) == left


def _ask(cache: str, log: str, barrier: Barrier) -> None:
    import os
    import time

    os.environ["CADEC_CACHE"] = cache

    def convert(directory: Path) -> None:
        with Path(log).open("a") as stream:
            stream.write("converted\n")
        with atomic_directory(directory) as part:
            time.sleep(0.3)
            (part / "model.bin").write_text("weights")

    barrier.wait()
    assert (converted_once("key", convert) / "model.bin").read_text() == "weights"


def test_processes_that_ask_at_once_get_one_conversion(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(3)
    arguments = (str(tmp_path / "cache"), str(tmp_path / "log"), barrier)
    processes = [context.Process(target=_ask, args=arguments) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert (tmp_path / "log").read_text() == "converted\n"


def _begin_and_hang(cache: str, pipe: Connection) -> None:
    import time

    os.environ["CADEC_CACHE"] = cache

    def convert(directory: Path) -> None:
        with atomic_directory(directory) as part:
            (part / "model.bin").write_text("weig")
            pipe.send("writing")
            time.sleep(60)

    converted_once("key", convert)


def test_who_waits_for_a_process_that_is_killed_goes_on(cache: Path, tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    killed = context.Process(target=_begin_and_hang, args=(str(cache), theirs))
    killed.start()
    assert ours.poll(60) and ours.recv() == "writing"
    barrier = context.Barrier(2)
    waiting = context.Process(target=_ask, args=(str(cache), str(tmp_path / "log"), barrier))
    waiting.start()
    barrier.wait(60)
    waiting.join(0.2)
    assert waiting.is_alive() and not (tmp_path / "log").exists()  # it waits
    killed.kill()
    waiting.join(60)
    assert waiting.exitcode == 0
    assert (tmp_path / "log").read_text() == "converted\n"
    convert = Converter()
    assert (converted_once("key", convert) / "model.bin").read_text() == "weights"
    assert convert.calls == 0


def test_what_a_kill_left_of_a_key_that_nobody_asks_for_is_cleared(cache: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_begin_and_hang, args=(str(cache), theirs))
    process.start()
    assert ours.poll(60) and ours.recv() == "writing"
    converted_once("other", Converter())
    assert len(list((cache / "ctranslate2").glob("*.part"))) == 1  # it lives
    process.kill()
    process.join(60)
    converted_once("third", Converter())
    assert list((cache / "ctranslate2").glob("*.part")) == []
