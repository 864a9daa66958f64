"""What a kill leaves is cleared by the next who writes the same, and by nobody else; nothing is lost."""

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import cadec_cli.fs.atomic
import cadec_cli.main
from cadec_cli.fs.atomic import atomic_directory, atomic_file, restore_directory, scratch_directory
from tests.helpers.directory_contents import contents

# Killed: what is left is cleared by the next, and by nobody else.

_WRITER = """
import sys, time
from pathlib import Path
from cadec_cli.fs.atomic import atomic_directory, atomic_file
path = Path(sys.argv[1])
with atomic_file(path / "file") as stream, atomic_directory(path / "d") as part:
    stream.write(b"half")
    stream.flush()
    (part / "a").write_bytes(b"half")
    print("here", flush=True)
    time.sleep(600)
"""


@contextlib.contextmanager
def somebody_writing(directory: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A process in the middle of writing `file` and `d`."""
    with subprocess.Popen([sys.executable, "-c", _WRITER, str(directory)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == b"here\n"
            yield process
        finally:
            process.kill()


def test_what_a_kill_left_is_cleared_and_what_is_being_written_is_not(tmp_path: Path) -> None:
    (tmp_path / ".file.cadec-00000000.part.txt").touch()  # somebody's own, whatever it is
    (tmp_path / ".file.abcdefgh.part").touch()
    (tmp_path / ".file.cadec-00000001.part").symlink_to(tmp_path / ".file.abcdefgh.part")
    own = set(tmp_path.iterdir())
    with somebody_writing(tmp_path) as living:
        parts = set(tmp_path.iterdir()) - own
        assert len(parts) == 2
        with somebody_writing(tmp_path) as killed:
            assert len(set(tmp_path.iterdir()) - own) == 4
            killed.send_signal(signal.SIGKILL)
            killed.wait()
        assert len(set(tmp_path.iterdir()) - own) == 4
        with atomic_file(tmp_path / "file") as stream, atomic_directory(tmp_path / "d"):
            stream.write(b"whole")
        assert set(tmp_path.iterdir()) - own == {*parts, tmp_path / "file", tmp_path / "d"}
        living.send_signal(signal.SIGKILL)
        living.wait()
    with atomic_file(tmp_path / "file") as stream, atomic_directory(tmp_path / "d"):
        pass
    assert set(tmp_path.iterdir()) - own == {tmp_path / "file", tmp_path / "d"}


def test_long_names_are_cleared_too_and_others_left(tmp_path: Path) -> None:
    name = "я" * 127
    with pytest.raises(RuntimeError), atomic_file(tmp_path / name):
        leftover = next(tmp_path.iterdir())
        os.link(leftover, tmp_path / "kept")
        raise RuntimeError
    (tmp_path / "kept").rename(leftover)
    with atomic_file(tmp_path / f"{name[:-1]}а"):
        assert leftover.exists()
    with atomic_file(tmp_path / name):
        assert not leftover.exists()


def test_a_scratch_directory_goes_and_so_does_one_that_a_kill_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with scratch_directory() as first, scratch_directory() as second:
        assert first != second and first.stat().st_mode & 0o777 == 0o700
    assert not list(tmp_path.iterdir())
    first.mkdir()
    (first / "a").touch()
    with scratch_directory():
        assert not first.exists()


_MANY_TIMES = """
import sys
from pathlib import Path
import cadec_cli.fs.atomic
from cadec_cli.fs.atomic import atomic_directory, atomic_file
place, own = Path(sys.argv[1]), sys.argv[2]
if own == "in two steps":
    cadec_cli.fs.atomic._exchange = lambda one, other: False
for _ in range(40):
    with atomic_file(place / "file") as stream, atomic_directory(place / "d") as part:
        for name in "ab":
            (part / name).write_text(own)
            stream.write(own.encode())
"""


def test_many_at_once_leave_one_of_them_whole(tmp_path: Path) -> None:
    names = ["1", "22", "in two steps"]
    running = [
        subprocess.Popen([sys.executable, "-c", _MANY_TIMES, str(tmp_path), name], stderr=subprocess.PIPE)
        for name in names
    ]
    for process in running:
        assert process.communicate(timeout=300)[1] == b"" and process.returncode == 0
    found = contents(tmp_path)
    assert sorted(found) == ["d/a", "d/b", "file"] and found["d/a"] == found["d/b"]
    assert found["d/a"].decode() in names and found["file"].decode() in [name * 2 for name in names]


# Two steps: where names can't be swapped, what is replaced is out of the way for a moment.


@pytest.fixture(params=[True, False], ids=["swapped", "in two steps"])
def swapping(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Systems that can swap names, and those that can't."""
    if not request.param:
        monkeypatch.setattr(cadec_cli.fs.atomic, "_exchange", lambda one, other: False)
    return bool(request.param)


@pytest.mark.usefixtures("swapping")
def test_a_directory_is_replaced_again_and_again(tmp_path: Path) -> None:
    for text in (b"1", b"2", b"3"):
        with atomic_directory(tmp_path / "d") as part:
            (part / text.decode()).write_bytes(text)
        assert contents(tmp_path) == {f"d/{text.decode()}": text}


@pytest.mark.usefixtures("swapping")
def test_two_may_write_one_directory(tmp_path: Path) -> None:
    for _ in range(2):
        with atomic_directory(tmp_path / "d") as first, atomic_directory(tmp_path / "d") as second:
            (first / "a").write_bytes(b"1")
            (second / "b").write_bytes(b"2")
    assert contents(tmp_path) == {"d/a": b"1"}


_CUT_SHORT = """
import os, signal, sys
from pathlib import Path
import cadec_cli.fs.atomic
from cadec_cli.fs.atomic import atomic_directory
if sys.argv[2] == "two steps":
    cadec_cli.fs.atomic._exchange = lambda one, other: False
rename = Path.rename
def rename_and_die(path, target):
    rename(path, target)
    os.kill(os.getpid(), signal.SIGKILL)
Path.rename = rename_and_die
cadec_cli.fs.atomic.shutil.rmtree = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)
with atomic_directory(Path(sys.argv[1])) as part:
    (part / "a").write_bytes(b"after")
"""


@pytest.mark.parametrize(("how", "found"), [("two steps", b"before"), ("swapped", b"after")])
def test_a_kill_while_a_directory_takes_its_place_loses_nothing(
    tmp_path: Path, how: str, found: bytes
) -> None:
    place = tmp_path / "d"
    with atomic_directory(place) as part:
        (part / "a").write_bytes(b"before")
    done = subprocess.run([sys.executable, "-c", _CUT_SHORT, str(place), how])
    assert done.returncode == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 2
    if how == "two steps":
        assert not place.exists()
    with pytest.raises(RuntimeError), atomic_directory(place):
        assert contents(place) == {"a": found}
        raise RuntimeError
    assert contents(tmp_path) == {"d/a": found}


def _left_aside(place: Path) -> None:
    """A directory as a kill between the two steps of replacing it leaves it."""
    place.rename(place.with_name(f".{place.name}.cadec-0123abcd.old"))
    place.with_name(f".{place.name}.cadec-0123abcd.part").mkdir()


def test_what_a_kill_left_aside_is_found_by_whoever_reads_it(
    made_up_bundle: Path, corpora: Path, tmp_path: Path
) -> None:
    from cadec_cli.bundle.bundle import Bundle
    from cadec_cli.bundle.find import find_bundle
    from cadec_cli.data.shards import Shard
    from cadec_cli.models.storage import load_model, model_directory
    from cadec_cli.text.pipeline import TextPipeline

    run = tmp_path / "run"
    run.mkdir()
    shutil.copytree(made_up_bundle.parent / "lm" / "model", run / "model")
    opened: dict[str, tuple[Path, Callable[[Path], object]]] = {
        "bundle": (made_up_bundle, lambda place: Bundle.open(find_bundle(place))),
        "manifest": (made_up_bundle, lambda place: cadec_cli.main.exit_code(["info", str(place)]) == 0),
        "corpus": (corpora / "docs", Shard),
        "pipeline": (made_up_bundle / "target", TextPipeline.load),
        "model": (run / "model", load_model),
        "run": (run, lambda place: load_model(model_directory(place, print))),
    }
    for name, (whole, open_it) in opened.items():
        place = tmp_path / f"{name} here"
        shutil.copytree(whole, place)
        _left_aside(place)
        assert open_it(place), name
        assert contents(place) == contents(whole)
    _left_aside(tmp_path / "run here" / "model")
    assert load_model(model_directory(tmp_path / "run here", print))


def test_what_somebody_is_just_replacing_is_left_to_them(tmp_path: Path) -> None:
    place, old = tmp_path / "d", tmp_path / ".d.cadec-0123abcd.old"
    old.mkdir()
    descriptor = os.open(old, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    restore_directory(place)
    assert old.exists() and not place.exists()
    os.close(descriptor)
    (tmp_path / "link").symlink_to("d")
    restore_directory(tmp_path / "link")
    assert place.is_dir() and not old.exists()
    for name in ("a\0b", "a\ud800", "x" * 300):
        restore_directory(tmp_path / name)
