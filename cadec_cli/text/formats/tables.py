"""Tables: `.csv` and `.tsv`, of which some columns are translated.

Columns are named by their number or by their name in the first row. A column is translated in place;
`source=target` writes the translation of one column into the empty cells of another, and cells that are
filled there are the context of those after them. Everything else stays as it is. A table is one document,
and an empty row ends one.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from cadec_cli.errors import CadecError, UsageError, option
from cadec_cli.text.documents import Document
from cadec_cli.text.formats.catalogues.catalogue import (
    CatalogueLayout,
    Entry,
    Item,
    Outcome,
    Translated,
    catalogue,
)
from cadec_cli.text.formats.catalogues.message import read_message
from cadec_cli.text.formats.layout import Source

_CELL = {
    delimiter: re.compile(rf'"((?:[^"]|"")*)"(?=[{delimiter}\r\n]|$)|([^{delimiter}\r\n]*)')
    for delimiter in (",", ";", "\t", "|")
}
_END = re.compile(r"\r\n|\n|\r")
_SHOWN = 12  # columns that a message lists


@dataclass(frozen=True)
class _Cell:
    """A cell: where it is, quotes included, what it says, and whether it is quoted."""

    start: int
    end: int
    text: str
    quoted: bool


@dataclass(frozen=True)
class _Column:
    """The column that is translated, and the one that gets the translation."""

    source: int
    target: int


def read_table(source: Source) -> tuple[tuple[Document, ...], CatalogueLayout]:
    """Read a table; return its documents and the layout that takes their translations."""
    delimiter = "\t" if source.format == "tsv" else _delimiter(source.text)
    header = [cell.text.strip().removeprefix("\ufeff") for cell in next(_rows(source.text, delimiter))]
    return catalogue(source, _all_items(source, delimiter, *_columns(source, header)))


def _all_items(source: Source, delimiter: str, columns: list[_Column], named: bool) -> Iterator[Item]:
    section = 0
    for number, row in enumerate(_rows(source.text, delimiter), 1):
        if not any(cell.text.strip() for cell in row):
            section += 1
        if not (number == 1 and named):
            yield from _items(row, columns, number, (source, delimiter, str(section)))


def _items(
    row: list[_Cell], columns: list[_Column], number: int, about: tuple[Source, str, str]
) -> Iterator[Item]:
    source, delimiter, section = about
    found: list[tuple[int, Item]] = []
    for column in columns:
        if max(column.source, column.target) >= len(row):
            continue
        cell, target = row[column.source], row[column.target]
        place = f"row {number}"
        filled = target is not cell and target.text.strip()
        if filled and not source.retranslate:
            found.append((target.start, Translated(cell.text, target.text, place, section)))
            continue
        message = read_message(cell.text, source.language)
        if message.sentences:
            write = _writer(cell, delimiter)
            entry = Entry(
                target.start, target.end, (message,), write, place, section, fills=target is not cell
            )
            found.append((target.start, entry))
    yield from (item for _, item in sorted(found, key=lambda pair: pair[0]))


def _writer(cell: _Cell, delimiter: str) -> Callable[[Outcome], str]:
    def write(outcome: Outcome) -> str:
        text = outcome.texts[0]
        if delimiter == "\t" and not cell.quoted and '"' not in text[:1]:
            return re.sub(r"[\t\r\n]+", " ", text)
        if cell.quoted or any(sign in text for sign in (delimiter, '"', "\n", "\r")):
            return '"' + text.replace('"', '""') + '"'
        return text

    return write


def _delimiter(text: str) -> str:
    """Return what separates the cells: what occurs most often in the first line, outside quotes."""
    end = _END.search(text)
    first = re.sub(r'"[^"]*"', "", text[: end.start() if end else len(text)])
    return max((",", ";", "\t", "|"), key=first.count)


def _rows(text: str, delimiter: str) -> Iterator[list[_Cell]]:
    """Yield the rows of a table; a quoted cell may have line breaks."""
    place = int(text.startswith("\ufeff"))
    row: list[_Cell] = []
    while True:
        match = _CELL[delimiter].match(text, place)
        assert match is not None, "a cell may be empty"
        quoted = match[1] is not None
        shown = match[1].replace('""', '"') if quoted else match[2]
        row.append(_Cell(match.start(), match.end(), shown, quoted))
        place = match.end()
        if text.startswith(delimiter, place):
            place += 1
            continue
        yield row
        row = []
        end = _END.match(text, place)
        if end is None or end.end() == len(text):
            return
        place = end.end()


def _columns(source: Source, header: list[str]) -> tuple[list[_Column], bool]:
    """Return the columns that are asked for, and whether the first row names them."""
    shown = ", ".join(name for name in header[:_SHOWN] if name)[:200]
    if not source.columns:
        raise UsageError(
            f"{source.name} is a table, and which columns to translate is not known",
            f"name them with {option('columns', 'NAME,…')}, or by number; the first row has: {shown}",
        )
    columns = []
    named = False
    for asked in source.columns:
        first, _, second = asked.partition("=")
        places = []
        for name in (first.strip(), second.strip() or first.strip()):
            by_name = name in header
            named = named or by_name
            if not by_name and not (name.isascii() and name.isdigit() and 0 < int(name) <= 10_000):
                raise CadecError(f"{source.name} has no column {name[:60]!r}", f"the first row has: {shown}")
            places.append(header.index(name) if by_name else int(name) - 1)
        columns.append(_Column(*places))
    targets = [column.target for column in columns]
    if len(set(targets)) < len(targets) or any(
        column.target in {other.source for other in columns if other is not column} for column in columns
    ):
        raise UsageError("a column can be translated only once, and not into one that is translated")
    return columns, named
