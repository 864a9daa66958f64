"""The catalogue on the terminal, and as plain data."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from cadec_cli.bundle.catalogue import Entry, LanguageEntry, TranslationEntry
from cadec_cli.terminal.views.translations import stdout_console


def records(
    translations: Iterable[TranslationEntry], languages: Iterable[LanguageEntry], fetched: Collection[str]
) -> Iterator[dict[str, Any]]:
    """One object per model."""
    for kind, entries in (("translation", translations), ("language", languages)):
        for entry in entries:
            yield {"kind": kind, **dataclasses.asdict(entry), "fetched": entry.repository in fetched}


def show(
    translations: Iterable[TranslationEntry],
    languages: Iterable[LanguageEntry],
    here: Mapping[str, Path],
    fetched: Collection[str],
) -> None:
    """What can be pulled, what of it was fetched before, then the bundles that are here."""
    out = stdout_console()
    for title, entries in (("translation models", translations), ("language models", languages)):
        table = Table(
            "name", "languages", "size", "licence", "fetched", "", title=title, title_justify="left"
        )
        for entry in entries:
            table.add_row(
                entry.name,
                _languages(entry),
                _size(entry),
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
    """All that is known of some models."""
    out = stdout_console()
    for entry in entries:
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim")
        table.add_row("repository", Text(entry.repository))
        table.add_row("languages", _languages(entry))
        table.add_row("size", _size(entry))
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


def _size(entry: Entry) -> str:
    return f"{entry.megabytes:,} MB" if entry.megabytes is not None else ""
