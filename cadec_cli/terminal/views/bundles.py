"""Bundles and the catalogue on the terminal: the parts of a bundle, and the models that can be pulled."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from cadec_cli.bundle.catalogue import Entry, LanguageEntry, TranslationEntry
from cadec_cli.terminal.views.translations import stdout_console

if TYPE_CHECKING:
    from cadec_cli.bundle.describe import BundleDescription, PartDescription

# Longer values, such as two hundred languages, are shown whole by --json only.
_MAX_LENGTH = 160
_CHECKSUM = 12


def show(bundle: BundleDescription) -> None:
    """Print a bundle's description: the bundle first, then part by part."""
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


def catalogue_records(
    translations: Iterable[TranslationEntry], languages: Iterable[LanguageEntry], fetched: Collection[str]
) -> Iterator[dict[str, Any]]:
    """One object per model."""
    for kind, entries in (("translation", translations), ("language", languages)):
        for entry in entries:
            yield {"kind": kind, **dataclasses.asdict(entry), "fetched": entry.repository in fetched}


def show_catalogue(
    translations: Iterable[TranslationEntry],
    languages: Iterable[LanguageEntry],
    here: Mapping[str, Path],
    fetched: Collection[str],
) -> None:
    """Print the models that can be pulled, whether each was fetched before, then the local bundles."""
    out = stdout_console()
    for title, entries in (("translation models", translations), ("language models", languages)):
        table = Table(
            "name", "languages", "size", "licence", "fetched", "", title=title, title_justify="left"
        )
        for entry in entries:
            table.add_row(
                entry.name,
                _languages(entry),
                _download_size(entry),
                Text(entry.licence),
                Text("yes" if entry.repository in fetched else "", "green"),
                Text(entry.note, "dim"),
            )
        out.print(table)
    out.print(Text("any other OPUS-MT pair: opus-mt-SOURCE-TARGET", "dim"))
    out.print(Text("fetched: in the hub's cache, and can be pulled without a network", "dim"))
    out.print()
    if not here:
        out.print(Text("no bundle was pulled or added yet: cadec models pull opus-mt-en-ru+gemma-3-270m"))
        return
    table = Table("here", "directory", title="bundles", title_justify="left")
    for name, directory in here.items():
        table.add_row(Text(name, "bold"), Text(str(directory), overflow="fold"))
    out.print(table)


def show_entries(entries: Iterable[Entry]) -> None:
    """Print the catalogue's entries of some models."""
    out = stdout_console()
    for entry in entries:
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim")
        table.add_row("repository", Text(entry.repository))
        table.add_row("languages", _languages(entry))
        table.add_row("size", _download_size(entry))
        table.add_row("licence", Text(entry.licence))
        if isinstance(entry, LanguageEntry):
            table.add_row("T", f"{entry.temperature:g}")
        if entry.note:
            table.add_row("note", Text(entry.note))
        out.print(Text(entry.name, "bold"))
        out.print(table)


def _languages(entry: Entry) -> str:
    if isinstance(entry, TranslationEntry):
        return f"{' '.join(entry.sources)} → {' '.join(entry.targets)}" if entry.targets else "many"
    assert isinstance(entry, LanguageEntry)
    return " ".join(entry.languages) or "many"


def _download_size(entry: Entry) -> str:
    return f"{entry.megabytes:,} MB" if entry.megabytes is not None else ""
