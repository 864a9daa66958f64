"""Where things are kept, and that two can't hold one lock."""

import multiprocessing
import os
import stat
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from cadec_cli.errors import CadecError
from cadec_cli.fs.paths import cache_directory, lock, open_lock, state_directory


@pytest.mark.parametrize(
    ("directory", "variables", "expected"),
    [
        (cache_directory, {"CADEC_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, "/a"),
        (cache_directory, {"CADEC_CACHE": "~/a"}, "/home/me/a"),
        (cache_directory, {"XDG_CACHE_HOME": "/b"}, "/b/cadec"),
        (cache_directory, {"XDG_CACHE_HOME": "relative"}, "/home/me/.cache/cadec"),
        (cache_directory, {"XDG_STATE_HOME": "/b"}, "/home/me/.cache/cadec"),
        (state_directory, {"XDG_STATE_HOME": "/b", "CADEC_CACHE": "/a"}, "/b/cadec"),
        (state_directory, {"XDG_STATE_HOME": "relative"}, "/home/me/.local/state/cadec"),
        (state_directory, {}, "/home/me/.local/state/cadec"),
    ],
)
def test_where_things_are_kept(
    directory: Callable[[], Path],
    variables: dict[str, str],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("CADEC_CACHE", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/me", **variables}.items():
        monkeypatch.setenv(name, value)
    assert directory() == Path(expected)


def _hold(path: str, pipe: Connection) -> None:
    with open_lock(Path(path)) as file:
        pipe.send(lock(file, wait=False))
        pipe.recv()


def test_a_lock_is_held_by_one_process_and_freed_when_it_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_hold, args=(str(path), theirs))
    process.start()
    try:
        assert ours.poll(60) and ours.recv() is True
        with open_lock(path) as file:
            assert not lock(file, wait=False)
            process.kill()
            process.join(60)
            assert lock(file, wait=True)
    finally:
        process.kill()


def test_a_lock_ends_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with open_lock(path) as first, open_lock(path) as second:
        assert lock(first, wait=False)
        assert not lock(second, wait=False)
        first.close()
        assert lock(second, wait=False)


def test_a_lock_is_private_and_leaves_what_it_finds(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with open_lock(path) as file:
        assert lock(file, wait=False)
        assert not os.get_inheritable(file.fileno())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("somebody's own")
    with open_lock(path) as file:
        assert lock(file, wait=False)
    assert path.read_text() == "somebody's own"


@pytest.mark.parametrize("kind", ["link", "dangling link", "directory", "FIFO", "device"])
def test_a_lock_is_a_file_of_its_own(tmp_path: Path, kind: str) -> None:
    path, other = tmp_path / "lock", tmp_path / "other"
    if kind == "link":
        other.write_text("not to be emptied")
        path.symlink_to(other)
    elif kind == "dangling link":
        path.symlink_to(other)
    elif kind == "directory":
        path.mkdir()
    elif kind == "FIFO":
        os.mkfifo(path)
    else:
        path = Path(os.devnull)
    with pytest.raises(CadecError, match=str(path)) as refused:
        open_lock(path)
    assert "delete it" in refused.value.hint
    assert not other.exists() if kind != "link" else other.read_text() == "not to be emptied"


def test_a_lock_that_may_not_be_opened_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError):
        open_lock(tmp_path / "file" / "lock")
