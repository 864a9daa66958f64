"""Translation memories: pairs of sentences that were translated before.

Of a TMX file the segments of the two languages are read; of a catalogue (`.po`, XLIFF) what is translated; of
two files, named `SOURCE=TARGET`, the text from one place that both have to the next: a line, or the time of a
cue. Any other file is a table, of which the first two columns of each line are read, source and target.
Nothing in a memory is a pattern, and nothing that its XML declares is expanded.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from cadec_cli.errors import CadecError, UsageError, option
from cadec_cli.fs.paths import is_stream
from cadec_cli.fs.read import UNPACKED, decode, name_of, read_data
from cadec_cli.text.formats import read_text_file
from cadec_cli.text.safe_xml import walk_xml
from cadec_cli.text.sentences import base_language

TMX, TABLE, CATALOGUES = ".tmx", ".tsv", (".po", ".xlf", ".xliff")
_BETWEEN = "="  # the names of two files
_HINT = "write a source, a tab and its translation per line"
# Elements of a segment that hold the markup of another program, not text.
_CODES = ("bpt", "ept", "ph", "it", "ut")
# Two files that are less alike than this in their places are not translations of each other.
_ALIKE = 0.5
Pairs = tuple[tuple[str, str], ...]


def read_memory(sources: Sequence[str], source_language: str = "", target_language: str = "") -> Pairs:
    """Read the pairs of memories, in their order; what is wrong with one is one CadecError.

    A source is the name of a file, or of two; one with a tab is lines of a table. TMX needs the languages
    if it has more than two.
    """
    languages = base_language(source_language), base_language(target_language)
    return _read(tuple((source, *map(_data, _names(source))) for source in sources), *languages)


def memory_origin(sources: Iterable[str]) -> list[tuple[str, str]]:
    """Checksums of memories, on which results depend."""
    return [
        (f"memory {number}", hashlib.sha256(b"\0".join(map(_data, _names(source)))).hexdigest())
        for number, source in enumerate(sources, 1)
    ]


def memory_lines(pairs: Iterable[tuple[str, str]]) -> str:
    """Return the lines of a table of the given pairs, for Python."""
    return "".join("\t".join(" ".join(side.split()) for side in pair) + "\n" for pair in pairs) or "\t\n"


def memory_files(sources: Iterable[str]) -> list[Path]:
    """The files that memories are read from."""
    return [Path(name) for source in sources for name in _names(source) if not _is_written_out(name)]


def preceding_text(after: Path) -> tuple[Path | None, tuple[str, ...]]:
    """Tell what the name of a preceding text stands for: a text, if it has one, and memories.

    A translation memory has no end that could be context; the translation of two files is the text.
    """
    if not os.path.lexists(after) and len(names := _names(str(after))) == 2:
        return Path(names[1]), (str(after),)
    return (None, (str(after),)) if _ending(str(after)) in (TMX, TABLE, *CATALOGUES) else (after, ())


def _names(source: str) -> list[str]:
    """The names of the files that a source stands for: one, or two; lines of a table as they are."""
    if _is_written_out(source) or os.path.lexists(source):
        return [source]
    parts = source.split(_BETWEEN)
    both = [(_BETWEEN.join(parts[:place]), _BETWEEN.join(parts[place:])) for place in range(1, len(parts))]
    found = [names for names in both if all(map(os.path.lexists, names))] or both[:1]
    return [*found[0]] if found else [source]


def _is_written_out(source: str) -> bool:
    return "\t" in source


def _ending(name: str) -> str:
    path = Path(name)
    return (path.with_suffix("") if path.suffix in UNPACKED else path).suffix.lower()


def _data(source: str) -> bytes:
    if _is_written_out(source):
        return source.encode("utf-8", "replace")
    path = Path(source)
    if str(path) == "-" or is_stream(path):
        raise UsageError(f"{option('memory')} needs a file: it is read several times, and a pipe can't be")
    return read_data(path)


@lru_cache(maxsize=2)
def _read(files: tuple[tuple[str | bytes, ...], ...], source_language: str, target_language: str) -> Pairs:
    pairs: list[tuple[str, str]] = []
    for source, *contents in files:
        assert isinstance(source, str)
        if len(contents) == 2:
            found = list(_of_two(*map(Path, _names(source))))
        else:
            (data,) = contents
            assert isinstance(data, bytes)
            name = "the memory" if _is_written_out(source) else name_of(Path(source))
            ending = "" if _is_written_out(source) else _ending(source)
            if ending == TMX:
                found = list(_tmx(data, name, source_language, target_language))
            elif ending in CATALOGUES:
                found = list(_catalogue(Path(source), source_language))
            else:
                found = list(_table(data, name))
        clean = [(_on_one_line(one), _on_one_line(other)) for one, other in found]
        pairs += [pair for pair in clean if all(pair)]
    return tuple(pairs)


def _on_one_line(text: str) -> str:
    return " ".join(text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8").split())


def _table(data: bytes, name: str) -> Iterator[tuple[str, str]]:
    text = decode(data, None, name)[0].removeprefix("\ufeff")
    if "\0" in text:
        raise CadecError(f"{name} is not a translation memory: it has NUL characters", _HINT)
    # not splitlines(), which also splits at characters that a sentence may have
    for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), 1):
        if not line.strip():
            continue
        source, tab, rest = line.partition("\t")
        if not tab:
            raise CadecError(f"{name}: line {number} has no tab: {line[:60]!r}", _HINT)
        yield source, rest.partition("\t")[0]


def _catalogue(path: Path, language: str) -> Iterator[tuple[str, str]]:
    documents = read_text_file(path, language=language).documents
    sentences = [one for document in documents for one in document.sentences if one.given]
    if not sentences:
        raise CadecError(f"{name_of(path)} has no translations")
    yield from ((sentence.text, sentence.given) for sentence in sentences)


def _of_two(source: Path, target: Path) -> Iterator[tuple[str, str]]:
    """Yield what two files have between the places that both have: lines, or times of cues."""
    sides = [_by_place(path) for path in (source, target)]
    common = sides[0].keys() & sides[1].keys()
    if len(common) < _ALIKE * max(map(len, sides)):
        raise CadecError(
            f"{name_of(source)} and {name_of(target)} have only {len(common):,} lines or cues in common, "
            f"of {len(sides[0]):,} and {len(sides[1]):,}",
            "a translation has the same lines, or cues at the same times",
        )
    ours, theirs = (_blocks(side, common) for side in sides)
    yield from ((ours[place], theirs[place]) for place in ours if place in theirs)


def _by_place(path: Path) -> dict[str, str]:
    """The sentences of a file that begin at each place, as one text."""
    found: dict[str, list[str]] = {}
    for number, document in enumerate(read_text_file(path, language="").documents):
        for sentence in document.sentences:
            found.setdefault(sentence.place or str(number), []).append(sentence.text)
    if not found:
        raise CadecError(f"{name_of(path)} has no sentences")
    return {place: " ".join(texts) for place, texts in found.items()}


def _blocks(side: dict[str, str], common: set[str]) -> dict[str, str]:
    """The text from each common place to the next."""
    blocks: dict[str, list[str]] = {}
    here: list[str] = []
    for place, text in side.items():
        if place in common:
            here = blocks.setdefault(place, [])
        here.append(text)
    return {place: " ".join(texts) for place, texts in blocks.items()}


class _Units:
    """Collects the segments of a TMX file, by unit and language, as its XML is parsed."""

    def __init__(self) -> None:
        self.units: list[dict[str, str]] = []
        self.source = ""  # the language that the header calls the source
        self._language = ""
        self._segment: list[str] | None = None
        self._codes = 0  # how many elements of markup are open

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "header":
            self.source = base_language(attributes.get("srclang", ""))
        elif name == "tu":
            self.units.append({})
        elif name == "tuv":
            self._language = base_language(attributes.get("xml:lang", attributes.get("lang", "")))
        elif name == "seg":
            self._segment, self._codes = [], 0
        elif name in _CODES:
            self._codes += 1

    def end(self, name: str) -> None:
        if name == "seg" and self._segment is not None:
            if self.units:
                self.units[-1].setdefault(self._language, "".join(self._segment))
            self._segment = None
        elif name in _CODES:
            self._codes -= 1

    def text(self, data: str) -> None:
        if self._segment is not None and not self._codes:
            self._segment.append(data)


def _tmx(data: bytes, name: str, source: str, target: str) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a TMX file; one that declares entities is refused, and nothing external is read."""
    units = _Units()
    walk_xml(data, name, "TMX", start=units.start, end=units.end, text=units.text)
    languages = sorted({code for unit in units.units for code in unit})
    source, target = _directed(languages, source, target, units.source)
    if source not in languages or target not in languages:
        listed = ", ".join(code or "none" for code in languages) or "none"
        raise CadecError(
            f"{name} has segments in these languages: {listed}",
            f"it needs {source or 'two languages'}" + (f" and {target}" if target else ""),
        )
    yield from ((unit[source], unit[target]) for unit in units.units if source in unit and target in unit)


def _directed(languages: Sequence[str], source: str, target: str, first: str) -> tuple[str, str]:
    """The languages to read: those asked for; if one is not known, the file's other one."""
    if len(languages) == 2:
        source = source or (_other(languages, target) if target else first)
        target = target or (_other(languages, source) if source else "")
    return source, target


def _other(languages: Sequence[str], one: str) -> str:
    return next((code for code in languages if code != one), "")
