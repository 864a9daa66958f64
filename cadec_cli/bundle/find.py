"""Finds the bundle that a user names: a directory, one of the user's named bundles, or the embedded one.

Named bundles are in one directory of the user. Nothing here reads the content of a bundle.
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
    """Return the paths of all named bundles, by name."""
    root = data_directory() / "bundles"
    found = sorted(root.iterdir()) if root.is_dir() else []
    return {path.name: path for path in found if (path / MANIFEST).is_file() and is_name(path.name)}


def path_of(name: str) -> Path:
    """Return the path that a bundle of this name has, or would have."""
    if not is_name(name):
        raise CadecError(f"{name!r} can't be a bundle's name", "letters, digits and . _ + - are allowed")
    return data_directory() / "bundles" / name


def named_bundle(given: Path) -> Path | None:
    """Return the path of the bundle that a word on the command line names; None if there is none."""
    name = str(given)
    if is_name(name):
        restore_directory(path_of(name))
    return named_bundles().get(name) if is_name(name) else None


def is_name(text: str) -> bool:
    """Tell whether a bundle can have this name."""
    return _NAME.fullmatch(text) is not None


def remove_named(name: str) -> Path:
    """Delete a named bundle and return its path; a CadecError for an unknown name lists the known ones."""
    bundles = named_bundles()
    if name not in bundles:
        raise CadecError(
            f"there is no bundle {name!r} to remove",
            f"there are {', '.join(bundles)}" if bundles else "none was pulled or added yet",
        )
    # Without its manifest, a half-removed bundle is not taken for a bundle.
    (bundles[name] / MANIFEST).unlink()
    shutil.rmtree(bundles[name])
    return bundles[name]


EMBEDDED = Path(__file__).parents[1] / "embedded"


def find_bundle(given: Path | None = None) -> Path:
    """Return the path of the bundle to use: the given one, else $CADEC_BUNDLE, else the embedded one.

    `given` is a directory, or the name of a bundle that was pulled or added.
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
