"""Reads a source and its translation as pairs of lines or cues.

Both are of one kind: plain text, JSON lines, subtitles, or any installed format. Or one file has both sides:
a table with tabs, or JSON lines with a "translation" (also those that `translate --json` writes).

- Lines of text are paired by their numbers, as blank lines stand between documents. If the sides have other
  numbers of lines, the likeliest pairs are found, and a remark says where they part.
- Cues are paired by their times. Cues of one sentence are one pair, since words move among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from cadec_cli.errors import CadecError, UsageError
from cadec_cli.evaluation.checks.alignment import align
from cadec_cli.evaluation.checks.findings import ERROR, WARNING, CheckedText, Pair, Remark
from cadec_cli.evaluation.checks.language_guess import guess_language
from cadec_cli.fs.read import MAX_INPUT_BYTES, name_of, parse_json, read_text
from cadec_cli.text.formats import COMPRESSED, FORMATS, TEXT, format_named, format_of, read_text_file
from cadec_cli.text.formats.layout import LineCutter
from cadec_cli.text.languages import is_language, iso_code
from cadec_cli.text.sentences import visible_span

JSONL, TABLE = "jsonl", "table"
_TABLE_ENDINGS = (".tsv", ".tab")


@dataclass(frozen=True)
class _Line:
    text: str
    place: str
    document: object = None  # lines of another one are in another document


@dataclass(frozen=True)
class _Side:
    """The lines of a file; None stands for the end of a document."""

    name: str
    lines: tuple[_Line | None, ...]

    @property
    def filled(self) -> list[_Line]:
        """The lines that have text, or that stand for a sentence without one."""
        return [line for line in self.lines if line is not None]

    @property
    def shape(self) -> list[int]:
        """How many lines each document has."""
        return [len(list(run)) for ends, run in groupby(self.lines, lambda line: line is None) if not ends]


def read_pairs(
    source: Path,
    target: Path | None = None,
    *,
    encoding: str | None = None,
    format: str | None = None,
    languages: tuple[str, str] = ("", ""),
    most: int = MAX_INPUT_BYTES,
) -> CheckedText:
    """Read both sides; without `target`, `source` has both. Languages that are not given are guessed.

    Files that can't be brought together are a CadecError that says where they differ.
    """
    if str(source) == "-" and target is not None and str(target) == "-":
        raise UsageError(
            "standard input can be read only once", "give - for one of them, a path for the other"
        )
    kinds = [_kind(path, format) for path in (source, target) if path is not None]
    if len(kinds) == 2 and _has_cues(kinds[0]) != _has_cues(kinds[1]):
        text, cues = (source, target) if _has_cues(kinds[1]) else (target, source)
        raise CadecError(
            f"{name_of(cues or source)} has cues, and {name_of(text or source)} has lines",
            "both sides must be subtitles, or both text",
        )
    remarks: list[Remark] = []
    if target is None:
        pairs = _both_sides(source, kinds[0], encoding, most)
    elif _has_cues(kinds[0]):
        from cadec_cli.evaluation.checks.cue_pairs import read_cue_pairs  # pysubs2, which text does not need

        pairs = read_cue_pairs((source, kinds[0]), (target, kinds[1]), remarks, encoding=encoding, most=most)
    else:
        sides = [
            _read_side(path, kind, encoding, most) for path, kind in ((source, kinds[0]), (target, kinds[1]))
        ]
        pairs = _line_pairs(sides[0], sides[1], remarks)
    shown = name_of(target or source)
    if not any(pair.source for pair in pairs) or not any(pair.target for pair in pairs):
        empty = name_of(source) if not any(pair.source for pair in pairs) else shown
        raise _no_text(empty)
    found = _languages(source, target, pairs, languages)
    return CheckedText(shown, tuple(pairs), *found, has_cues=_has_cues(kinds[0]), remarks=tuple(remarks))


def _no_text(name: str) -> CadecError:
    return CadecError(f"{name} has no text", "one line per sentence or paragraph")


def _kind(path: Path, format: str | None) -> str:
    if format is not None:
        return format_named(format).name
    suffixes = [one.lower() for one in path.suffixes if one.lower() not in COMPRESSED]
    return TABLE if suffixes and suffixes[-1] in _TABLE_ENDINGS else format_of(path)


def _has_cues(kind: str) -> bool:
    return kind != TABLE and FORMATS[kind].has_cues


# ---- languages


def _languages(
    source: Path, target: Path | None, pairs: Sequence[Pair], given: tuple[str, str]
) -> tuple[str, str]:
    """The languages that were given, else those in the files' names, else those that the words tell."""
    return (
        given[0] or (_named(source) if target else "") or guess_language(pair.source for pair in pairs),
        given[1] or (_named(target) if target else "") or guess_language(pair.target for pair in pairs),
    )


def _named(path: Path) -> str:
    """The language that a file's name ends in, as in film.fr.srt or dev.ru; "" if there is none."""
    for suffix in reversed(path.suffixes):
        if suffix.lower() in COMPRESSED or suffix.lower() in (".txt", ".text", ".jsonl", ".md"):
            continue
        if FORMATS.own and any(suffix.lower() in known.endings for known in FORMATS.own):
            continue
        code = suffix.removeprefix(".")
        return iso_code(code) if 2 <= len(code) <= 8 and is_language(code) else ""
    return ""


# ---- lines


def _read_side(path: Path, kind: str, encoding: str | None, most: int) -> _Side:
    name = name_of(path)
    if kind == TEXT:
        return _Side(name, tuple(_trim_ends([_plain_line(*one) for one in _lines(path, encoding, most)])))
    if kind == JSONL:
        found = _json_side(name, _lines(path, encoding, most), translated=True)
        return _Side(name, tuple(_trim_ends(list(found))))
    if kind == TABLE:
        raise CadecError(
            f"{name} is a table with both sides",
            "give it alone: cadec check FILE, source and translation apart by a tab",
        )
    file = read_text_file(path, language="", lines=True, format=kind, tags=True, most=most)
    lines: list[_Line | None] = []
    for document in file.documents:
        lines += [_Line(one.text, one.place) for one in document.sentences]
        lines.append(None)
    return _Side(name, tuple(_trim_ends(lines)))


def _lines(path: Path, encoding: str | None, most: int) -> Iterator[tuple[int, str]]:
    """The lines of a text file with their numbers, without the white space around them."""
    for number, line in _whole_lines(path, encoding, most):
        start, end = visible_span(line, 0, len(line))
        yield number, line[start:end]


def _whole_lines(path: Path, encoding: str | None, most: int) -> Iterator[tuple[int, str]]:
    file = read_text(path, encoding, most=most)
    if "\0" in file.text:
        raise CadecError(f"{file.name} is not text: it has zero bytes", "is it a binary file, or UTF-16?")
    cutter = LineCutter(old_ends=True)
    for number, (line, _) in enumerate([*cutter.cut(file.text), *cutter.end()], 1):
        yield number, line.removesuffix("\r")


def _plain_line(number: int, line: str) -> _Line | None:
    return _Line(line, f"line {number}") if line else None


def _trim_ends(lines: list[_Line | None]) -> list[_Line | None]:
    """Drop the ends of documents at the beginning and at the end of a file."""
    kept = [number for number, line in enumerate(lines) if line is not None]
    return lines[kept[0] : kept[-1] + 1] if kept else []


_HINT = 'a line is an object with "text" or "sentences", and "translation"'


def _json_side(name: str, numbered: Iterable[tuple[int, str]], *, translated: bool) -> Iterator[_Line | None]:
    """The sentences of one side of JSON lines: the translations if wanted and there, else the texts."""
    before: object = None
    for number, line in numbered:
        if not line:
            yield None
            continue
        record = _json_record(line, f"{name}, line {number}")
        values = _values(record, ("translation",)) if translated else None
        values = (
            values if values is not None else _values(record, ("text", "source", "sentences", "document"))
        )
        if values is None:
            raise CadecError(f"{name}, line {number} has no text", _HINT)
        is_list = isinstance(record.get("sentences"), list) or isinstance(record.get("document"), list)
        document = None if is_list else record.get("document")
        if is_list or document != before:
            yield None
        before = document
        for value in values:
            yield _Line(" ".join(value.split()), f"line {number}")
        if is_list:
            yield None


def _json_record(line: str, where: str) -> dict[str, Any]:
    try:
        record = parse_json(line)
    except ValueError as error:
        raise CadecError(f"{where} is not JSON: {error}", _HINT) from None
    if not isinstance(record, dict):
        raise CadecError(f"{where} is JSON but not an object", _HINT)
    return record


def _values(record: dict[str, Any], keys: Iterable[str]) -> list[str] | None:
    """The texts under the first of some keys that has any."""
    for key in keys:
        value = record.get(key)
        if isinstance(value, str) and key != "document":
            return [value]
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            return value
    return None


def _both_sides(path: Path, kind: str, encoding: str | None, most: int) -> list[Pair]:
    """The pairs of a file that has both sides."""
    name = name_of(path)
    if kind == JSONL:
        lines = list(_lines(path, encoding, most))
        sides = [_Side(name, tuple(_json_side(name, lines, translated=both))) for both in (False, True)]
        if sides[0].lines == sides[1].lines:
            raise CadecError(f"{name} has no translations", _HINT)
        remarks: list[Remark] = []
        if len(sides[0].filled) != len(sides[1].filled):
            raise CadecError(f"{name} does not have a translation for each sentence", _HINT)
        return _line_pairs(sides[0], sides[1], remarks)
    if kind not in (TABLE, TEXT):
        raise UsageError("the translation is missing", "cadec check SOURCE TARGET")
    pairs, document, begun = [], 1, False
    for number, line in _whole_lines(path, encoding, most):
        if not line.strip():
            document, begun = document + begun, False
            continue
        source, tab, target = line.partition("\t")
        if not tab:
            if kind == TEXT:
                raise UsageError(
                    "the translation is missing",
                    "cadec check SOURCE TARGET, or one table: source, tab, translation",
                )
            raise CadecError(
                f"{name}, line {number} has no tab", "a line is a source, a tab and its translation"
            )
        place = f"line {number}"
        pairs.append(Pair(source.strip(), target.split("\t")[0].strip(), document, place, place))
        begun = True
    return pairs


_MOST_CELLS = 4_000_000  # pairs of lines that are compared to bring two sides together


def _line_pairs(source: _Side, target: _Side, remarks: list[Remark]) -> list[Pair]:
    """Pair the lines of two sides."""
    if source.shape == target.shape:
        chosen = [([one], [other]) for one, other in zip(source.filled, target.filled, strict=True)]
        return _as_pairs(chosen, source)
    if len(source.lines) == len(target.lines):
        both = zip(source.lines, target.lines, strict=True)
        chosen = [([one] if one else [], [other] if other else []) for one, other in both if one or other]
        return _as_pairs(chosen, source)
    lines, others = source.filled, target.filled
    for side in (source, target):
        if not any(line.text for line in side.filled):
            raise _no_text(side.name)
    plural = "s" if len(others) != 1 else ""
    counts = f"{target.name} has {len(others):,} line{plural}, and {source.name} has {len(lines):,}"
    apart = abs(len(lines) - len(others))
    few = 2 * min(len(lines), len(others)) < max(len(lines), len(others))
    if few or apart * len(lines) > _MOST_CELLS:
        raise CadecError(counts, "they can't be brought together: is it the same text, one line per line?")
    if len(lines) == len(others):  # blank lines in other places
        return _as_pairs([([one], [other]) for one, other in zip(lines, others, strict=True)], source)
    steps = align([line.text for line in lines], [line.text for line in others])
    chosen = [([lines[n] for n in rows], [others[n] for n in columns]) for rows, columns in steps]
    pairs = _as_pairs(chosen, source)
    parted = next(number for number, (rows, columns) in enumerate(steps) if len(rows) != len(columns))
    remarks.append(Remark(parted, ERROR, f"{counts}: they part at {_where(pairs[parted])}"))
    for number, (rows, columns) in enumerate(steps):
        if len(rows) > 1 or len(columns) > 1:
            remarks.append(
                Remark(
                    number,
                    WARNING,
                    "two lines are one in the translation"
                    if len(rows) > 1
                    else "is two lines in the translation",
                )
            )
    return pairs


def _where(pair: Pair) -> str:
    """Where two sides part, by the place that is there."""
    if pair.source_place and pair.target_place:
        return f"{pair.source_place}, which is {pair.target_place} here"
    return f"{pair.source_place} of the source" if pair.source_place else pair.target_place


def _as_pairs(chosen: Iterable[tuple[Sequence[_Line], Sequence[_Line]]], source: _Side) -> list[Pair]:
    """Make pairs of lines that belong together; documents are the source's."""
    of_line: dict[int, int] = {}
    document, begun = 1, False
    for line in source.lines:
        if line is None:
            document, begun = document + begun, False
        else:
            of_line[id(line)], begun = document, True
    pairs: list[Pair] = []
    for lines, others in chosen:
        before = pairs[-1].document if pairs else 1
        pairs.append(
            Pair(
                " ".join(line.text for line in lines),
                " ".join(line.text for line in others),
                of_line[id(lines[0])] if lines else before,
                _span(lines),
                _span(others),
            )
        )
    return pairs


def _span(lines: Sequence[_Line]) -> str:
    if len(lines) < 2:
        return lines[0].place if lines else ""
    return f"{lines[0].place}–{lines[-1].place.rpartition(' ')[2]}"
