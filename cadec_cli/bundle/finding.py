"""Which bundle is meant: a directory, a name, or the one that came with cadec."""

from __future__ import annotations

import os
from pathlib import Path

from cadec_cli.bundle.manifest import MANIFEST
from cadec_cli.bundle.named import named_bundle
from cadec_cli.errors import CadecError
from cadec_cli.unfinished import restore_directory
from cadec_cli.user_directories import expand_user

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
        "name one with --bundle or CADEC_BUNDLE; `cadec convert` builds one from trained models",
    )


def is_embedded(directory: Path) -> bool:
    """Tell whether a directory is the bundle that came with cadec, by whatever path it is named."""
    return directory.exists() and EMBEDDED.exists() and directory.samefile(EMBEDDED)
