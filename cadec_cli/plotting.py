"""Pictures by matplotlib, which is an extra: `cadec[plot]`."""

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
    """Tell whether there is something to draw with."""
    return importlib.util.find_spec("matplotlib") is not None


def require_matplotlib(*, instead: str = "") -> None:
    """Refuse before the work, not after it, where nothing can be drawn; `instead` is what else would do."""
    if not can_draw():
        raise CadecError(
            "pictures need matplotlib", f"pip install 'cadec[plot]'{instead and ', or '}{instead}"
        )


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure in the format of its name, whole or not at all; the same figure gives the same file."""
    kind = path.suffix.lower().removeprefix(".")
    undated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}.get(kind)
    with atomic_file(path) as stream:
        figure.savefig(stream, format=kind, metadata=undated)


def figure_bytes(figure: Figure, kind: str, *, dpi: int) -> bytes:
    """A figure as what a file of that format would hold, for pages that have their pictures in them."""
    stream = io.BytesIO()
    figure.savefig(stream, format=kind, dpi=dpi)
    return stream.getvalue()
