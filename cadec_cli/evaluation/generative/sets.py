"""Generative test sets: documents to translate, and the word that the last sentence has to say in context.

Two layouts are read: JSON lines of your own, and the pairs of files that ctxPro publishes (Wicks & Post
2023), a list of items as JSON and their documents as text. Translations of other systems are read too, one
line per item. A malformed file raises one error that names the file and the item, counted from 1. This
module knows nothing of models.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cadec_cli.errors import CadecError, option
from cadec_cli.fs.read import MAX_INPUT_BYTES, name_of, read_text
from cadec_cli.text.sentences import split_sentences
from cadec_cli.validation import (
    Record,
    lines_of,
    object_of,
    text_of,
    texts_of,
    try_json,
    value_of,
)

# An example of each layout, for error messages.
LAYOUTS = {
    "jsonl": '{"document": ["A", "B"], "expected": "w", "rule": "R", "reference": "C w D"}, one per line',
    "ctxpro": '[{"src segment": "B", "expected": "w", "rule": "R", "ref segment": "C w D"}, …], '
    "and a file with A<eos> B on the line of each item",
}
_SEPARATOR = re.compile(r"\s*<eos>\s*")


@dataclass(frozen=True)
class Item:
    """A document, oldest sentence first, and what the translation of its last sentence is to say."""

    document: tuple[str, ...]
    expected: str
    rule: str = ""  # the class that the set puts the item in
    reference: str | None = None  # of the last sentence
    name: str = ""  # its number in the file

    @property
    def source(self) -> str:
        """The sentence that is judged."""
        return self.document[-1]


@dataclass(frozen=True)
class GenerativeSet:
    """The items of one set, or some of them."""

    path: Path
    layout: str
    items: tuple[Item, ...]
    places: tuple[int, ...]  # of the items in the file, from 0
    in_file: int  # how many items the file has

    @property
    def name(self) -> str:
        """The set's name in tables: the name of the file without its extensions."""
        name = re.sub(r"(\.(jsonl?|gz|xz|zst))+$", "", self.path.name) or self.path.name
        return name.encode("utf-8", "replace").decode()

    def sample(self, limit: int) -> GenerativeSet:
        """At most `limit` items, spread evenly over the file, since published sets are sorted by rule."""
        if limit >= len(self.items):
            return self
        numbers = [number * len(self.items) // limit for number in range(limit)]
        return replace(
            self,
            items=tuple(self.items[number] for number in numbers),
            places=tuple(self.places[number] for number in numbers),
        )


def read_sets(
    paths: Sequence[Path],
    inputs: Sequence[Path] = (),
    limit: int | None = None,
    *,
    most: int = MAX_INPUT_BYTES,
) -> list[GenerativeSet]:
    """Read sets; `inputs` has the documents of those in ctxPro's layout, in their order.

    With `limit`, only so many items of each set are kept.
    """
    remaining = list(inputs)
    sets = []
    for path in paths:
        one = read_set(path, remaining[0] if remaining else None, most=most)
        if one.layout == "ctxpro":
            del remaining[:1]
        sets.append(one if limit is None else one.sample(limit))
    if remaining:
        raise CadecError(
            f"{name_of(remaining[0])} belongs to no set", "only sets in ctxPro's layout have such a file"
        )
    return sets


def read_set(path: Path, inputs: Path | None = None, *, most: int = MAX_INPUT_BYTES) -> GenerativeSet:
    """Read a set of at most `most` bytes; `-` is standard input, and compressed files are decompressed.

    `inputs` has the documents of a set in ctxPro's layout; if it is not given, it is looked for where ctxPro
    has it. Sets in the other layout have their documents in them.
    """
    file = read_text(path, most=most)
    text = file.text.removeprefix("\ufeff")
    if not text.strip():
        raise CadecError(f"{file.name} is empty", _expectation())
    value, problem = try_json(text)
    if problem and text.lstrip().startswith("["):
        raise CadecError(f"{file.name} is not valid JSON: {problem}", _expectation("ctxpro"))
    layout = "ctxpro" if isinstance(value, list) else "jsonl"
    if value == []:
        raise CadecError(f"{file.name} has no items", _expectation())
    if layout == "ctxpro":
        items = _ctxpro(path, file.name, value, inputs, most)
    else:
        items = list(_items(file.name, layout, lines_of(text), _own))
    return GenerativeSet(path, layout, tuple(items), tuple(range(len(items))), len(items))


def system_files(given: Sequence[str], sets: int) -> dict[str, list[Path]]:
    """The files of other systems by name, from NAME=FILE: one per set for every name."""
    files: dict[str, list[Path]] = {}
    for one in given:
        name, equals, path = one.partition("=")
        if not (name.strip() and equals and path):
            raise CadecError(f"{one!r} does not name a system and its file", "give them as NAME=FILE")
        files.setdefault(name.strip(), []).append(Path(path))
    for name, paths in files.items():
        if len(paths) != sets:
            raise CadecError(
                f"the system {name} has {len(paths)} files, and there are {sets} sets",
                f"give {option('system')} once per set, in the order of the sets",
            )
    return files


def read_system(
    path: Path, of_set: GenerativeSet, language: str | None = None, *, most: int = MAX_INPUT_BYTES
) -> tuple[str, ...]:
    """Read another system's translations of a set's items: one line per item of the whole file.

    A line is the translation of the last sentence; of sentences joined by `<eos>`, the last one is taken.
    With `language`, lines are split into sentences of that language, and the last one is taken.
    """
    lines = _lines(path, most)
    if len(lines) != of_set.in_file:
        raise CadecError(
            f"{name_of(path)} has {len(lines):,} lines, "
            f"and {name_of(of_set.path)} has {of_set.in_file:,} items",
            "translations of another system have one line per item, an empty one if there is none",
        )
    _check_lines(path, of_set, lines)
    texts = (_SEPARATOR.split(lines[place])[-1].strip() for place in of_set.places)
    if language is None:
        return tuple(texts)
    return tuple((split_sentences(text, language) or [""])[-1] for text in texts)


# References that are looked for in a file of translations. A line is like a reference, or unlike it, if it
# has so large a share of the words of both.
_LOOKED_FOR = 50
_LIKE, _UNLIKE = 0.6, 0.2


def _check_lines(path: Path, of_set: GenerativeSet, lines: Sequence[str]) -> None:
    """Refuse translations in another order: most references that are like a line are like another's."""
    words = [frozenset(_SEPARATOR.split(line)[-1].lower().split()) for line in lines]
    sample = of_set.sample(_LOOKED_FOR)
    like = misplaced = 0
    example = ""
    for place, item in zip(sample.places, sample.items, strict=True):
        wanted = frozenset((item.reference or "").lower().split())
        if len(wanted) < 4:  # others may be like it by chance
            continue
        shares = [len(wanted & found) / len(wanted | found) for found in words]
        best = max(range(len(shares)), key=shares.__getitem__)
        if shares[best] >= _LIKE:
            like += 1
            if shares[place] < _UNLIKE:
                misplaced += 1
                example = example or f"line {best + 1} translates item {item.name}"
    if misplaced >= 3 and 2 * misplaced > like:
        raise CadecError(
            f"{name_of(path)} is not in the order of {name_of(of_set.path)}: {example}",
            "line N is the translation of item N of the whole set",
        )


def _expectation(layout: str | None = None) -> str:
    if layout is not None:
        return f"{layout} looks like this: {LAYOUTS[layout]}"
    return "\n".join(["expected one of these", *(f"{name}: {shape}" for name, shape in LAYOUTS.items())])


def _items(
    name: str, layout: str, records: Iterator[tuple[str, Any]], parse: Callable[[str, Record], Item]
) -> Iterator[Item]:
    """Parse records; an error gets the name of the file and the number of the item."""
    for number, record in records:
        try:
            yield parse(number, object_of(record))
        except CadecError as error:
            hint = error.marked_hint or _expectation(layout)
            raise CadecError(f"{name}: item {number}: {error.marked_message}", hint) from None


def _own(number: str, record: Record) -> Item:
    reference = record.get("reference")
    return Item(
        tuple(texts_of(record, "document")),
        _expected(record),
        _rule(record),
        None if reference is None else text_of(reference, "reference"),
        number,
    )


def _expected(record: Record) -> str:
    return text_of(value_of(record, "expected"), "expected").strip()


def _rule(record: Record) -> str:
    rule = record.get("rule")
    return "" if rule is None else text_of(rule, "rule")


def _ctxpro(path: Path, name: str, records: Sequence[Any], inputs: Path | None, most: int) -> list[Item]:
    """The items of a JSON list, with their documents from another file."""

    def parse(number: str, record: Record) -> Item:
        source = text_of(value_of(record, "src segment"), "src segment")
        reference = text_of(value_of(record, "ref segment"), "ref segment")
        return Item((source,), _expected(record), _rule(record), reference, number)

    numbered = ((str(number), record) for number, record in enumerate(records, 1))
    items = list(_items(name, "ctxpro", numbered, parse))
    found = inputs or _find_inputs(path)
    if found is None:
        raise CadecError(
            f"{name} has no documents, and ctxPro's file with them is not beside it",
            f"give it with {option('inputs')}: one line per item, sentences joined by <eos>",
        )
    lines = _lines(found, most)
    if len(lines) != len(items):
        raise CadecError(f"{name_of(found)} has {len(lines):,} lines, and {name} has {len(items):,} items")
    with_documents = [
        replace(item, document=_sentences(found, place, line))
        for place, (item, line) in enumerate(zip(items, lines, strict=True), 1)
    ]
    _check_order(found, name, items, with_documents)
    return with_documents


def _find_inputs(path: Path) -> Path | None:
    """ctxPro's documents of a set: NAME for NAME.json, in the same directory or in ../inputs."""
    name = path.name.partition(".json")[0]
    for place in (path.parent / name, path.parent.parent / "inputs" / name):
        if place != path and place.is_file():
            return place
    return None


def _sentences(path: Path, place: int, line: str) -> tuple[str, ...]:
    sentences = tuple(filter(None, (part.strip() for part in _SEPARATOR.split(line))))
    if not sentences:
        raise CadecError(f"{name_of(path)}: line {place} has no sentence")
    return sentences


def _check_order(inputs: Path, name: str, items: Sequence[Item], found: Sequence[Item]) -> None:
    """Refuse documents that are not those of the items, or are in another order.

    Published files may differ in a few characters, so a line may end with another sentence, if that is no
    other item's and most lines are right.
    """
    sentences = {" ".join(item.source.split()): item.name for item in items}
    wrong = [
        (place, other.source)
        for place, (item, other) in enumerate(zip(items, found, strict=True), 1)
        if item.source.split() != other.source.split()
    ]
    swapped = [(place, source) for place, source in wrong if " ".join(source.split()) in sentences]
    if swapped or 2 * len(wrong) > len(items):
        place, source = (swapped or wrong)[0]
        owner = f", the sentence of item {sentences[' '.join(source.split())]}" if swapped else ""
        raise CadecError(
            f"{name_of(inputs)} does not belong to {name}: line {place} ends with {source[:60]!r}{owner}",
            "the last sentence of a line is the item's “src segment”",
        )


def _lines(path: Path, most: int) -> list[str]:
    """The lines of a file; its last line break ends the last line."""
    text = read_text(path, most=most).text.removeprefix("\ufeff")
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines if lines[-1] else lines[:-1]
