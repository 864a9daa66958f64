"""Converted models kept in the user's cache: made once, whole, whoever asks and however many at a time.

It knows directories and their checksums, not what is converted.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from cadec_cli.errors import CadecError
from cadec_cli.files import read_json, sha256
from cadec_cli.user_directories import cache_directory, lock
from cadec_cli.whole_files import write_json

# Written last: the checksums of all the others. A directory without it is none of ours, or unfinished.
_SEAL = "cadec.json"

# Directories that stand in for an unwritable cache; they go when the process ends.
_temporary: dict[str, tempfile.TemporaryDirectory[str]] = {}

Note = Callable[[str], None]


def silence(message: str) -> None:
    """Say nothing, where whoever asks has nobody to tell."""


def converted_once(key: str, convert: Callable[[Path], None], note: Note = silence) -> Path:
    """The directory that `convert` fills, taken from the cache if it is there and sound.

    The key names all that the result depends on. Where the cache can't be written, that is noted, and a
    temporary directory serves for as long as the process runs.
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
        note(f"can't write to the cache {parent} ({error.strerror}); converting into a temporary directory")
        temporary = tempfile.TemporaryDirectory(prefix="cadec-")
        convert(Path(temporary.name) / key)
        _temporary[key] = temporary
        return Path(temporary.name) / key
    with (parent / f".{key}.lock").open("w") as file:
        lock(file, wait=True)
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
