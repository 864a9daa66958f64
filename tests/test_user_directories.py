"""Where things are kept, and that two can't hold one lock."""

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from cadec_cli.user_directories import cache_directory, lock, state_directory


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
    with Path(path).open("w") as file:
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
        with path.open("w") as file:
            assert not lock(file, wait=False)
            process.kill()
            process.join(60)
            assert lock(file, wait=True)
    finally:
        process.kill()


def test_a_lock_ends_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with path.open("w") as first, path.open("w") as second:
        assert lock(first, wait=False)
        assert not lock(second, wait=False)
        first.close()
        assert lock(second, wait=False)
