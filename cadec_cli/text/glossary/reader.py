"""Glossaries in files: a table of two columns (tab-separated or CSV), or TBX.

    # what the village is full of
    lamp	лампа
    Aurelia	Аурелия|Аурелии|Аурелию
    Black Knight	!Чёрный рыцарь
    Rosebud	=

A line of a tab-separated table that begins with # is a comment. `=` keeps the source as it is, `|` separates
targets or their forms, and `!` before them (or after them) marks a term that a translation must respect.
Further columns are for people. Of TBX the terms of the source's language and of the other one are read.

A term that a file has twice may be called by the targets of either line. Of two files the later one decides.
Nothing in a glossary is a pattern.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from cadec_cli.errors import CadecError, UsageError, option
from cadec_cli.fs.paths import is_stream
from cadec_cli.fs.read import UNPACKED, decode, name_of, read_data
from cadec_cli.text.glossary.entries import Entry, Glossary
from cadec_cli.text.safe_xml import walk_xml
from cadec_cli.text.sentences import base_language

KEEP, MUST, OR, COMMENT = "=", "!", "|", "#"
# The first line of a table of names that were found in a text.
NAMES_HEADING = f"{COMMENT} name\trendering, in its forms\ttimes\totherwise\twhere\n"
_HINT = f"write a term, a tab and its translation; {KEEP} keeps a term as it is"
_LONGEST = 500  # characters of a term; nothing longer is one
_MOST_TARGETS = 64
_HEADINGS = {"source", "target", "term", "translation"}
# (term, what it is called, where it is written)
_Row = tuple[str, str, str]


def read_glossary(sources: Sequence[str], language: str = "") -> Glossary:
    """Read a glossary from files, whose names `sources` has; the language is that of the source text.

    A source with a tab is not a name, but lines of a glossary. What is wrong is one CadecError.
    """
    return _glossary(tuple((source, _data(source)) for source in sources), language)


def glossary_origin(sources: Iterable[str]) -> list[tuple[str, str]]:
    """Checksums of glossaries, on which results depend."""
    return [
        (f"glossary {number}", hashlib.sha256(_data(source)).hexdigest())
        for number, source in enumerate(sources, 1)
    ]


def glossary_lines(terms: Mapping[str, str | Iterable[str]]) -> str:
    """Return the lines of a glossary of the given terms, for Python: a target, or several."""
    return "".join(
        f"{term}\t{targets if isinstance(targets, str) else OR.join(targets)}\n"
        for term, targets in terms.items()
    )


def is_written_out(source: str) -> bool:
    """Tell whether a source of `read_glossary` is lines of a glossary, not a name."""
    return "\t" in source


def _data(source: str) -> bytes:
    if is_written_out(source):
        return source.encode("utf-8", "replace")
    path = Path(source)
    if str(path) == "-" or is_stream(path):
        raise UsageError(f"{option('glossary')} needs a file: it is read several times, and a pipe can't be")
    return read_data(path)


@lru_cache(maxsize=4)
def _glossary(files: tuple[tuple[str, bytes], ...], language: str) -> Glossary:
    entries: dict[str, Entry] = {}
    for source, data in files:
        entries |= _entries(source, data, language)
    return Glossary(entries.values(), language)


def _entries(source: str, data: bytes, language: str) -> dict[str, Entry]:
    """The entries of one file by their terms."""
    lines = is_written_out(source)
    name = "the glossary" if lines else name_of(Path(source))
    path = Path("" if lines else source)
    ending = (path.with_suffix("") if path.suffix in UNPACKED else path).suffix.lower()
    if ending in (".tbx", ".xml"):
        rows: Iterable[_Row] = _tbx(data, name, language)
    else:
        text = decode(data, None, name)[0].removeprefix("\ufeff")
        if "\0" in text:
            raise CadecError(f"{name} is not a glossary: it has NUL characters", _HINT)
        rows = _csv(text, name) if ending == ".csv" else _table(text, name)
    found: dict[str, list[Entry]] = {}
    for term, targets, where in rows:
        found.setdefault(term, []).append(_entry(term, targets, where))
    if not found and not data.startswith(NAMES_HEADING.encode()):  # a text in which no name recurs
        raise CadecError(f"{name} has no terms", _HINT)
    return {term: _merge(entries) for term, entries in found.items()}


def _table(text: str, name: str) -> Iterator[_Row]:
    # not splitlines(), which also splits at characters that a term may have
    for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        if not line.strip() or line.startswith(COMMENT):
            continue
        where = f"{name}: line {number}"
        columns = line.split("\t")
        if len(columns) < 2:
            raise CadecError(f"{where} has no tab: {line[:60]!r}", _HINT)
        if not _is_heading(number, columns):
            yield columns[0], columns[1], where


def _csv(text: str, name: str) -> Iterator[_Row]:
    first = text.partition("\n")[0]
    reader = csv.reader(
        text.replace("\r\n", "\n").replace("\r", "\n").split("\n"),
        delimiter=";" if first.count(";") > first.count(",") else ",",
        strict=True,
    )
    try:
        for columns in reader:
            if not any(map(str.strip, columns)) or columns[0].startswith(COMMENT):
                continue
            where = f"{name}: line {reader.line_num}"
            if len(columns) < 2:
                raise CadecError(f"{where} has one column: {columns[0][:60]!r}", _HINT)
            if not _is_heading(reader.line_num, columns):
                yield columns[0], columns[1], where
    except csv.Error as error:
        raise CadecError(f"{name}: line {reader.line_num} is not CSV: {error}") from None


def _is_heading(number: int, columns: Sequence[str]) -> bool:
    return number == 1 and all(column.strip().lower() in _HEADINGS for column in columns[:2])


def _entry(term: str, targets: str, where: str) -> Entry:
    """Make an entry; an empty or endless side is a CadecError."""
    term, targets = " ".join(term.split()), " ".join(targets.split())
    must = targets.startswith(MUST) or (targets.endswith(MUST) and not term.endswith(MUST))
    if must:
        targets = targets.removeprefix(MUST) if targets.startswith(MUST) else targets.removesuffix(MUST)
    names = tuple(dict.fromkeys(name for part in targets.split(OR) if (name := part.strip())))
    if not term or not names:
        raise CadecError(f"{where} has no {'translation' if term else 'term'}", _HINT)
    if max(map(len, (term, *names))) > _LONGEST or len(names) > _MOST_TARGETS:
        raise CadecError(f"{where} is too long for a term: {term[:60]!r}…", _HINT)
    if names == (KEEP,):
        return Entry(term, (term,), must, keep=True)
    return Entry(term, tuple(term if name == KEEP else name for name in names), must)


def _merge(entries: Sequence[Entry]) -> Entry:
    """Make one entry of those of one term: any of their targets will do."""
    if len(entries) == 1:
        return entries[0]
    targets = tuple(dict.fromkeys(target for entry in entries for target in entry.targets))
    return Entry(
        entries[0].source,
        targets,
        any(entry.must for entry in entries),
        keep=all(entry.keep for entry in entries),
    )


class _TermBase:
    """Collects the terms of a TBX file, by concept and language, as its XML is parsed."""

    def __init__(self) -> None:
        self.concepts: list[dict[str, list[str]]] = []
        self._language = ""
        self._term: list[str] | None = None

    def start(self, name: str, attributes: dict[str, str]) -> None:
        local = name.rpartition(":")[2]
        if local in ("termEntry", "conceptEntry"):
            self.concepts.append({})
        elif local in ("langSet", "langSec"):
            self._language = base_language(attributes.get("xml:lang", attributes.get("lang", "")))
        elif local == "term":
            self._term = []

    def end(self, name: str) -> None:
        if name.rpartition(":")[2] == "term" and self._term is not None:
            if self.concepts:
                self.concepts[-1].setdefault(self._language, []).append("".join(self._term))
            self._term = None

    def text(self, data: str) -> None:
        if self._term is not None:
            self._term.append(data)


def _tbx(data: bytes, name: str, language: str) -> Iterator[_Row]:
    """Yield the terms of a TBX file; one that declares entities is refused, and nothing external is read."""
    terms = _TermBase()
    walk_xml(data, name, "TBX", start=terms.start, end=terms.end, text=terms.text)
    languages = sorted({code for concept in terms.concepts for code in concept})
    source = base_language(language) or (languages[0] if len(languages) == 2 else "")
    others = [code for code in languages if code != source]
    if source not in languages or len(others) != 1:
        listed = ", ".join(code or "none" for code in languages) or "none"
        raise CadecError(
            f"{name} has terms in these languages: {listed}",
            f"it needs {source or 'two languages'}" + (" and one other" if source else ""),
        )
    for number, concept in enumerate(terms.concepts, 1):
        targets = [_literal(target) for target in concept.get(others[0], ()) if target.strip()]
        for term in concept.get(source, ()):
            if targets and term.strip():
                yield term, OR.join(targets), f"{name}: concept {number}"


def _literal(target: str) -> str:
    """Return a target without the marks that our tables give a meaning."""
    return re.sub(r"^[!=]+|!+$|\|", " ", target.strip())
