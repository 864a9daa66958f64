"""Plots with matplotlib, which is an extra: `cadec[plot]`."""

from __future__ import annotations

import importlib.util
import io
from pathlib import Path
from typing import TYPE_CHECKING

from cadec_cli.errors import CadecError
from cadec_cli.fs.atomic import atomic_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "pdf", "svg")


def can_draw() -> bool:
    """Tell whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def require_matplotlib(*, instead: str = "") -> None:
    """Raise a CadecError, before the work, if matplotlib is missing; `instead` is an alternative to name."""
    if not can_draw():
        raise CadecError(
            "pictures need matplotlib", f"pip install 'cadec[plot]'{instead and ', or '}{instead}"
        )


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the suffix, whole or not at all; equal figures give equal files."""
    kind = path.suffix.lower().removeprefix(".")
    undated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(kind)
    with atomic_file(path) as stream:
        figure.savefig(stream, format=kind, metadata=undated)


def figure_bytes(figure: Figure, kind: str, *, dpi: int) -> bytes:
    """Return a figure as the bytes of a file of that format, for pages with embedded pictures."""
    stream = io.BytesIO()
    figure.savefig(stream, format=kind, dpi=dpi)
    return stream.getvalue()
