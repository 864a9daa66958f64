"""Where things are kept between runs."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cadec_cli.fs.paths import cache_directory, state_directory


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
