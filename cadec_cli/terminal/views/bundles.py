"""A bundle on the terminal: what it is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from cadec_cli.terminal.views.translations import stdout_console

if TYPE_CHECKING:
    from cadec_cli.bundle.describe import BundleDescription, PartDescription

# A list of two hundred languages is for --json.
_MAX_LENGTH = 160
_CHECKSUM = 12


def show(bundle: BundleDescription) -> None:
    """Print it: the bundle first, then part by part."""
    out = stdout_console()
    languages = " → ".join(filter(None, (bundle.source_language, bundle.target_language)))
    out.print(Text.assemble((bundle.name, "bold"), f"  {languages}  {_size(bundle.size)}"))
    table = Table.grid(padding=(0, 2))
    table.add_row("directory", Text(bundle.directory))
    table.add_row("identity", Text(bundle.identity[:_CHECKSUM]))
    if bundle.card:
        table.add_row("model card", "MODEL_CARD.md")
    told = {name: value for name, value in bundle.defaults.items() if value or name == "context"}
    table.add_row("defaults", Text(", ".join(f"{name} {_value(value)}" for name, value in told.items())))
    if bundle.lengths is not None:
        table.add_row("lengths", f"translations up to {bundle.lengths}")
    versions = ", ".join(f"{name} {version}" for name, version in bundle.versions.items())
    table.add_row("made with", Text(versions))
    out.print(table)
    for part in bundle.parts:
        out.print()
        _show_part(part, bundle)


def _show_part(part: PartDescription, bundle: BundleDescription) -> None:
    out = stdout_console()
    out.print(Text.assemble((f"{part.part}/", "bold"), f"  {part.what}  {_size(part.size)}"))
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    if part.origin is not None:
        table.add_row("  origin", Text(part.origin))
        table.add_row(
            "  licence", Text(part.licence or ("see the model card" if bundle.card else "not stated"))
        )
    if part.engine is not None:
        table.add_row("  engine", Text(part.engine))
    for name, value in part.details.items():
        short = value if len(value) <= _MAX_LENGTH else value[:_MAX_LENGTH].rsplit(" ", 1)[0] + " …"
        table.add_row(f"  {name}", Text(short[:_CHECKSUM] if name == "weights" else short))
    for name, place in bundle.links.items():
        if name.startswith(f"{part.part}/"):
            table.add_row("  linked", Text(f"{name} → {place}"))
    table.add_row("  checksum", Text(part.checksum[:_CHECKSUM]))
    out.print(table)


def _value(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={number:g}" for name, number in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)


def _size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} kB"
