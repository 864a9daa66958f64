"""Converted models kept in the user's cache: made once, whole, whoever asks and however many at a time."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from cadec_cli import console
from cadec_cli.errors import CadecError
from cadec_cli.files import read_json, sha256, write_json

# Written last: the checksums of all the others. A directory without it is none of ours, or unfinished.
_SEAL = "cadec.json"

# Directories that stand in for an unwritable cache; they go when the process ends.
_temporary: dict[str, tempfile.TemporaryDirectory[str]] = {}


def cache_directory() -> Path:
    """$CADEC_CACHE, or cadec's place in the user's cache."""
    if own := os.environ.get("CADEC_CACHE"):
        return Path(own).expanduser()
    shared = os.environ.get("XDG_CACHE_HOME")
    # A relative XDG_CACHE_HOME is to be ignored, says its specification.
    return (Path(shared) if shared and Path(shared).is_absolute() else Path.home() / ".cache") / "cadec"


def converted_once(key: str, convert: Callable[[Path], None]) -> Path:
    """The directory that `convert` fills, taken from the cache if it is there and sound.

    The key tells all that the result depends on. Where the cache can't be written, a temporary directory
    serves for as long as the process runs.
    """
    if key in _temporary:
        return Path(_temporary[key].name) / key
    parent = cache_directory() / "ctranslate2"
    directory = parent / key
    if _is_sound(directory):
        return directory
    try:
        parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=parent):
            pass
    except OSError as error:
        console.note(f"can't write to the cache {parent} ({error.strerror}); converting into a temporary one")
        kept = tempfile.TemporaryDirectory(prefix="cadec-")
        convert(Path(kept.name) / key)
        _temporary[key] = kept
        return Path(kept.name) / key
    with _locked(parent / f".{key}.lock"):
        if not _is_sound(directory):
            try:
                convert(directory)
                _seal(directory)
            except CadecError:
                # Without working locks another process may have been first; its result serves as well.
                if not _is_sound(directory):
                    raise
    return directory


def _seal(directory: Path) -> None:
    write_json(directory / _SEAL, {path.name: sha256(path) for path in sorted(directory.iterdir())})


def _is_sound(directory: Path) -> bool:
    """Tell whether all files are there and as they were written; if not they are made again."""
    if not (directory / _SEAL).is_file():
        return False
    try:
        sealed = read_json(directory / _SEAL)
        return isinstance(sealed, dict) and all(sha256(directory / name) == sealed[name] for name in sealed)
    except (CadecError, TypeError):
        return False


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock between processes where the system has them; the kernel frees it if we die."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with path.open("w") as lock:
        with contextlib.suppress(OSError):  # as on some network file systems
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
