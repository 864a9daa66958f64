"""Finds the bundle that a user names: a directory, a named bundle of theirs, or the one that came with cadec.

Named bundles are in one directory of the user's. Nothing here looks into a bundle.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from cadec_cli.bundle.manifest import MANIFEST
from cadec_cli.errors import CadecError, option
from cadec_cli.fs.atomic import restore_directory
from cadec_cli.fs.paths import data_directory, expand_user

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


EMBEDDED = Path(__file__).parents[1] / "embedded"


def find_bundle(given: Path | None = None) -> Path:
    """The bundle to use: the given one, else $CADEC_BUNDLE, else the one that came with cadec.

    A bundle is given as a directory, or by the name of one that was pulled or added.
    """
    if given is None and (named := os.environ.get("CADEC_BUNDLE")):
        given = expand_user(named)
    if given is not None:
        restore_directory(given)
        return given if given.exists() else named_bundle(given) or given
    if (EMBEDDED / MANIFEST).is_file():
        return EMBEDDED
    raise CadecError(
        "no bundle to work with, and none came with this installation",
        f"name one with {option('bundle')} or CADEC_BUNDLE; `cadec convert` builds one from trained models",
    )


def is_embedded(directory: Path) -> bool:
    """Tell whether a directory is the bundle that came with cadec, by whatever path it is named."""
    return directory.exists() and EMBEDDED.exists() and directory.samefile(EMBEDDED)
