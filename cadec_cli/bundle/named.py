"""Bundles that have a name: kept in one directory of the user's, used by name wherever a bundle is.

It knows places and names, not what is in a bundle.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from cadec_cli.bundle.manifest import MANIFEST
from cadec_cli.errors import CadecError
from cadec_cli.unfinished import restore_directory
from cadec_cli.user_directories import data_directory

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


def named_bundles() -> dict[str, Path]:
    """All of them, by name."""
    root = data_directory() / "bundles"
    found = sorted(root.iterdir()) if root.is_dir() else []
    return {path.name: path for path in found if (path / MANIFEST).is_file() and is_name(path.name)}


def path_of(name: str) -> Path:
    """Where the bundle of a name is, or would be."""
    if not is_name(name):
        raise CadecError(f"{name!r} can't be a bundle's name", "letters, digits and . _ + - are allowed")
    return data_directory() / "bundles" / name


def named_bundle(given: Path) -> Path | None:
    """The bundle that a word on the command line names, if it is a name and there is one."""
    name = str(given)
    if is_name(name):
        restore_directory(path_of(name))
    return named_bundles().get(name) if is_name(name) else None


def is_name(text: str) -> bool:
    """Tell whether a bundle can have this name."""
    return _NAME.fullmatch(text) is not None


def remove_named(name: str) -> Path:
    """Delete a bundle; another name is an error that says which there are."""
    bundles = named_bundles()
    if name not in bundles:
        raise CadecError(
            f"there is no bundle {name!r} to remove",
            f"there are {', '.join(bundles)}" if bundles else "none was pulled or added yet",
        )
    # What is half removed has no manifest any more, and is no bundle.
    (bundles[name] / MANIFEST).unlink()
    shutil.rmtree(bundles[name])
    return bundles[name]
