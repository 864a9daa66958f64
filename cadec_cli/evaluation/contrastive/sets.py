"""Contrastive tests: does a scorer prefer the true translation to its variants, given what was said before?

Published sets put the true candidate first in every group, so that a scorer that can't tell candidates apart
looks perfect to a script that breaks ties by order. Here the true candidate has to beat every other one
strictly. A tie is wrong, and ties are counted.

Files are recognised by their keys: the published layouts and one of our own, see docs/contrastive-sets.md. A
malformed set raises one error that names the file and the group, counted from 1. A group whose candidates are
all equal is not malformed (a published set has one): it is left out, and the set records it. Texts are
returned as they are in the file. This module knows nothing of models.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from cadec_cli.arrays import Floats
from cadec_cli.errors import CadecError
from cadec_cli.fs.read import MAX_INPUT_BYTES, read_text
from cadec_cli.validation import (
    Record,
    lines_of,
    number_of,
    object_of,
    optional_number,
    text_of,
    texts_of,
    try_json,
    value_of,
)

T = TypeVar("T")

SAMPLES, SEED = 1000, 1
# Antecedents further away than this form one class, as in ContraPro's own evaluation.
FAR = 3


class NothingToChooseError(CadecError):
    """All candidates of a group are equal, or there is only one: no scorer can be right or wrong."""

    def __init__(self, candidates: int) -> None:
        super().__init__("there are fewer than two different candidates")
        self.candidates = candidates


@dataclass(frozen=True)
class Group:
    """One question: which of the candidates is the translation of `source` after `context`?

    Texts are as in the file. Contexts are oldest first; `context` stands before the true translation.
    """

    source: str
    context_source: tuple[str, ...]
    context: tuple[str, ...]
    candidates: tuple[str, ...]
    truth: int
    distance: int | None = None  # sentences back to the antecedent, if the set says so
    name: str = ""  # its number in the file, for messages

    def __post_init__(self) -> None:
        if not 0 <= self.truth < len(self.candidates):
            raise CadecError(
                f"the true candidate is number {self.truth} of {len(self.candidates)}, counted from 0"
            )
        if self.distinct < 2:
            raise NothingToChooseError(len(self.candidates))

    @property
    def distinct(self) -> int:
        """How many different candidates there are."""
        return len(set(self.candidates))

    @property
    def rivals(self) -> tuple[int, ...]:
        """The candidates that the true one has to beat: all whose text differs from it."""
        true = self.candidates[self.truth]
        return tuple(index for index, text in enumerate(self.candidates) if text != true)


@dataclass(frozen=True)
class Undecidable:
    """A group that was left out because all of its candidates are equal."""

    name: str
    candidates: int
    place: int  # how many groups of the set come before it


@dataclass(frozen=True)
class ContrastiveSet:
    """The groups of one file, without the undecidable ones."""

    path: Path
    layout: str
    groups: tuple[Group, ...]
    tokenised: bool = False  # texts are Moses tokens, to be joined before a model encodes them
    undecidable: tuple[Undecidable, ...] = ()

    @property
    def left_out(self) -> int:
        """How many groups of the file are left out of every figure."""
        return len(self.undecidable)

    @property
    def name(self) -> str:
        """The set's name in tables: the name of the file without its extensions."""
        name = self.path.name.split(".")[0] or self.path.name
        return name.encode("utf-8", "replace").decode()

    @property
    def chance(self) -> float:
        """The expected accuracy of a random choice among the different candidates."""
        return sum(1 / group.distinct for group in self.groups) / len(self.groups)

    def in_file_order(self, of_groups: Iterable[T]) -> Iterator[T | Undecidable]:
        """Yield the items, one per group, with the undecidable groups at their places in the file.

        Score files are matched by position, so they need a line for every candidate of the file.
        """
        remaining = iter(of_groups)
        done = 0
        for gap in self.undecidable:
            yield from itertools.islice(remaining, gap.place - done)
            done = gap.place
            yield gap
        yield from remaining


@dataclass(frozen=True)
class Verdict:
    """Whether a scorer got a group right."""

    right: bool
    tied: bool  # the true candidate scores the same as the best of the others
    rival: int  # the best of the others


def judge(group: Group, scores: Sequence[float] | Floats) -> Verdict:
    """Tell whether the true candidate strictly beats all candidates that differ from it."""
    if any(math.isnan(score) for score in scores):
        raise CadecError(
            f"group {group.name}: a score is not a number", "the weights of a model may be damaged"
        )
    rival = max(group.rivals, key=lambda index: float(scores[index]))
    true, best = float(scores[group.truth]), float(scores[rival])
    return Verdict(true > best, true == best, rival)


@dataclass(frozen=True)
class Accuracy:
    """The share of groups that a scorer got right, with its 95 % interval."""

    right: int
    groups: int
    ties: int
    low: float
    high: float
    by_distance: Mapping[str, tuple[int, int]]  # right, groups; empty if the set has no distances

    @property
    def share(self) -> float:
        """Right groups among all."""
        return self.right / self.groups


def accuracy(groups: Sequence[Group], verdicts: Sequence[Verdict], seed: int = SEED) -> Accuracy:
    """Count the right groups, over all and by the distance of the antecedent."""
    right = sum(verdict.right for verdict in verdicts)
    low, high = accuracy_interval(right, len(groups), seed)
    by_distance: dict[str, tuple[int, int]] = {}
    paired = zip(groups, verdicts, strict=True)
    placed = [(group.distance, verdict) for group, verdict in paired if group.distance is not None]
    for distance, verdict in sorted(placed, key=lambda item: item[0]):
        label = str(distance) if distance <= FAR else f">{FAR}"
        good, count = by_distance.get(label, (0, 0))
        by_distance[label] = (good + verdict.right, count + 1)
    ties = sum(verdict.tied for verdict in verdicts)
    return Accuracy(right, len(groups), ties, low, high, by_distance)


def accuracy_interval(right: int, groups: int, seed: int = SEED) -> tuple[float, float]:
    """The 95 % bootstrap interval of an accuracy.

    A group is right or wrong, so the number right among as many groups drawn with replacement is a binomial
    variable: drawing it is the same as drawing the groups.
    """
    drawn = np.random.default_rng(seed).binomial(groups, right / groups, SAMPLES) / groups
    low, high = np.percentile(drawn, (2.5, 97.5))
    return float(low), float(high)


SEPARATOR = "_eos"

# An example of each layout, for error messages.
LAYOUTS = {
    "voita": '[{"src": "A . _eos B .", "dst": ["C . _eos D .", "C . _eos E ."], "true_ind": 0}, …]',
    "contrapro": '[{"src segment": "B", "ref segment": "D", "errors": [{"contrastive": "E"}, …]}, …]',
    "discevalmt": '{"1": {"examples": [{"src": ["A", "B"], "trg": {"correct": ["C", "D"], '
    '"incorrect": ["C", "E"]}}, …]}, …}',
    "jsonl": '{"source": "B", "context": ["C"], "candidates": ["D", "E"], "truth": 0}, one per line',
}

Named = tuple[str, Any]


def read_set(path: Path, layout: str | None = None, *, most: int = MAX_INPUT_BYTES) -> ContrastiveSet:
    """Read a set of at most `most` bytes; `-` is standard input, and compressed files are decompressed."""
    if layout is not None and layout not in LAYOUTS:
        raise CadecError(f"no layout {layout!r} of contrastive sets", f"there are {', '.join(LAYOUTS)}")
    file = read_text(path, most=most)
    text = file.text.removeprefix("\ufeff")
    if not text.strip():
        raise CadecError(f"{file.name} is empty", _expectation())
    value, problem = try_json(text)
    kind = layout or _detect_layout(value, text)
    if kind is None and problem:
        raise CadecError(f"{file.name} is not valid JSON: {problem}", _expectation())
    if kind is None:
        raise CadecError(f"{file.name} is not a contrastive set of a known layout", _expectation())
    if kind != "jsonl" and problem:
        raise CadecError(f"{file.name} is not valid JSON: {problem}", _expectation(kind))
    groups: list[Group] = []
    undecidable: list[Undecidable] = []
    name = ""
    try:
        for name, record in _records(kind, value, text):
            try:
                groups.append(_PARSERS[kind](name, object_of(record)))
            except NothingToChooseError as error:
                undecidable.append(Undecidable(name, candidates=error.candidates, place=len(groups)))
    except CadecError as error:
        where = f"{file.name}: group {name}" if name else file.name
        raise CadecError(
            f"{where}: {error.marked_message}", error.marked_hint or _expectation(kind)
        ) from None
    if undecidable and not groups:
        raise CadecError(f"{file.name}: no group has two different candidates", _expectation(kind))
    if not groups:
        raise CadecError(f"{file.name} has no groups", _expectation(layout))
    return ContrastiveSet(
        path, kind, tuple(groups), tokenised=kind == "voita", undecidable=tuple(undecidable)
    )


def _detect_layout(value: Any, text: str) -> str | None:
    """Recognise a layout by any of its keys in any record, so that the error can name a missing key."""
    if isinstance(value, list):
        keys = {key for record in value if isinstance(record, dict) for key in record}
        if not value or keys & {"dst", "true_ind"}:
            return "voita"
        return "contrapro" if keys & {"src segment", "ref segment", "errors"} else None
    if isinstance(value, dict):
        if value.keys() & {"candidates", "truth"}:
            return "jsonl"
        keys = {key for block in value.values() if isinstance(block, dict) for key in block}
        return "discevalmt" if keys & {"examples", "trg"} else None
    first, problem = try_json(text.strip().splitlines()[0])
    return "jsonl" if not problem and isinstance(first, dict) else None


def _expectation(layout: str | None = None) -> str:
    if layout is not None:
        return f"{layout} looks like this: {LAYOUTS[layout]}"
    return "\n".join(["expected one of these", *(f"{name}: {shape}" for name, shape in LAYOUTS.items())])


def _records(layout: str, value: Any, text: str) -> Iterator[Named]:
    """The raw records of the groups with their names; nothing in them is checked yet."""
    if layout == "jsonl":
        yield from lines_of(text)
    elif layout == "discevalmt":
        yield from _examples(value)
    elif isinstance(value, list):
        yield from ((str(number), record) for number, record in enumerate(value, 1))
    else:
        raise CadecError("it is not a list")


def _examples(value: Any) -> Iterator[Named]:
    """The examples of DiscEvalMT's blocks, in the order of its own script: by number."""
    blocks = object_of(value)
    numbered = all(key.isdecimal() and len(key) < 20 for key in blocks)
    for key in sorted(blocks, key=int) if numbered else blocks:
        block = blocks[key]
        if isinstance(block, dict) and isinstance(block.get("examples"), list):  # lexical-choice.json
            examples = block["examples"]
        elif isinstance(block, dict) and isinstance(block.get("trg"), list):  # anaphora.json
            examples = [{"src": block.get("src"), "trg": target} for target in block["trg"]]
        else:
            yield key, CadecError("it has neither a list of “examples” nor of “trg”")
            return
        yield from ((f"{key}.{number}", example) for number, example in enumerate(examples, 1))


def _voita(name: str, record: Record) -> Group:
    """Voita et al. 2019: sentences joined by a separator; the last one differs."""
    targets = [_segments(text, "dst") for text in texts_of(record, "dst")]
    source = _segments(text_of(value_of(record, "src"), "src"), "src")
    truth = number_of(value_of(record, "true_ind"), "true_ind")
    for target in targets:
        if len(target) != len(source):
            raise CadecError(f"“src” has {len(source)} sentences, one of “dst” has {len(target)}")
    return _group(
        name, source=source, targets=targets, truth=truth, distance=optional_number(record, "ctx_dist")
    )


def _contrapro(name: str, record: Record) -> Group:
    """Müller et al. 2018; their file has no contexts, but they may be added to it."""
    errors = value_of(record, "errors")
    if not isinstance(errors, list) or not errors:
        raise CadecError("“errors” is not a list of contrastive translations")
    wrong = [text_of(value_of(object_of(error), "contrastive"), "contrastive") for error in errors]
    return Group(
        source=text_of(value_of(record, "src segment"), "src segment"),
        context_source=_context(record, "src context"),
        context=_context(record, "ref context"),
        candidates=(text_of(value_of(record, "ref segment"), "ref segment"), *wrong),
        truth=0,
        distance=optional_number(record, "ante distance"),
        name=name,
    )


def _discevalmt(name: str, record: Record) -> Group:
    """Bawden et al. 2018: pairs of (sentence before, current sentence)."""
    target = object_of(value_of(record, "trg"))
    true = "correct" if "correct" in target else "semi-correct"
    return _group(
        name,
        source=texts_of(record, "src"),
        targets=[texts_of(target, true), texts_of(target, "incorrect")],
        truth=0,
    )


def _own(name: str, record: Record) -> Group:
    return Group(
        source=text_of(value_of(record, "source"), "source"),
        context_source=_context(record, "context_source"),
        context=_context(record, "context", required=True),
        candidates=tuple(texts_of(record, "candidates")),
        truth=number_of(value_of(record, "truth"), "truth"),
        distance=optional_number(record, "distance"),
        name=name,
    )


_PARSERS: dict[str, Callable[[str, Record], Group]] = {
    "voita": _voita,
    "contrapro": _contrapro,
    "discevalmt": _discevalmt,
    "jsonl": _own,
}


def _group(
    name: str,
    *,
    source: Sequence[str],
    targets: Sequence[Sequence[str]],
    truth: int,
    distance: int | None = None,
) -> Group:
    """A group of whole passages: the last sentences are scored after the context of the true one."""
    if not 0 <= truth < len(targets):
        raise CadecError(f"the true candidate is number {truth} of {len(targets)}, counted from 0")
    return Group(
        source=source[-1],
        context_source=tuple(source[:-1]),
        context=tuple(targets[truth][:-1]),
        candidates=tuple(target[-1] for target in targets),
        truth=truth,
        distance=distance,
        name=name,
    )


def _segments(text: str, key: str) -> list[str]:
    segments = [segment.strip() for segment in re.split(rf"(?<!\S){SEPARATOR}(?!\S)", text)]
    if len(segments) < 2:
        raise CadecError(f"“{key}” has no separator “ {SEPARATOR} ” between sentences")
    if not all(segments):
        raise CadecError(f"“{key}” has an empty sentence")
    return segments


def _context(record: Record, key: str, required: bool = False) -> tuple[str, ...]:
    """Sentences before the current one; some sets write an empty one if there is none."""
    value = value_of(record, key) if required else record.get(key)
    if value is None and not required:
        return ()
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise CadecError(f"“{key}” is not a list of sentences")
    return tuple(text_of(text, key) for text in value if text.strip())
