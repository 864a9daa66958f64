"""Figures of generative tests: how often a system says the expected word, and addresses as references do.

Shares have Wilson's 95 % intervals, which are right for few items and for shares near 0 and 1. Systems are
compared with one of them, the baseline, by paired bootstrap resampling over items; all systems see the same
samples. A figure that can't be computed is absent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cadec_cli.arrays import Floats
from cadec_cli.errors import CadecError, option
from cadec_cli.evaluation.contrastive.sets import SAMPLES, SEED
from cadec_cli.evaluation.generative.forms import Judging
from cadec_cli.evaluation.generative.run import Hypotheses, Translated
from cadec_cli.evaluation.generative.sets import GenerativeSet, Item, read_system
from cadec_cli.evaluation.quality.measures import Difference, Resampling, difference
from cadec_cli.fs.read import MAX_INPUT_BYTES
from cadec_cli.method.objectives import PAIRS
from cadec_cli.method.options import TranslationOptions
from cadec_cli.method.searches import LISTS, search_kind

LEVEL = "sentence level"
INTERVALS = (
    f"95 % intervals: Wilson's of shares, of {SAMPLES:,} bootstrap samples of items of differences, "
    "with the p of the paired bootstrap"
)
_Z = 1.959964  # 95 % of a normal distribution are within so many standard deviations


@dataclass(frozen=True)
class Share:
    """How many of some items, with the 95 % interval of their share."""

    right: int
    items: int
    low: float
    high: float

    @classmethod
    def of(cls, right: int, items: int) -> Share:
        """Count, and compute the interval; there must be an item."""
        share, extra = right / items, _Z**2 / items
        middle = (share + extra / 2) / (1 + extra)
        half = _Z * math.sqrt(share * (1 - share) / items + extra / (4 * items)) / (1 + extra)
        return cls(right, items, min(middle - half, share), max(middle + half, share))

    @property
    def share(self) -> float:
        """Right items among all."""
        return self.right / self.items


@dataclass(frozen=True)
class Figure:
    """A share, and how far it is above the baseline's, in per cent."""

    share: Share
    over_baseline: Difference | None = None

    def record(self) -> dict[str, Any]:
        """The figure as plain data."""
        share = self.share
        found: dict[str, Any] = {
            "right": share.right,
            "items": share.items,
            "share": share.share,
            "interval": [share.low, share.high],
        }
        if self.over_baseline is not None:
            found["over_baseline"] = self.over_baseline.record()
        return found


@dataclass(frozen=True)
class System:
    """One system's translations of the last sentence of every item.

    `options` are those of a row of ours; `documents` are its translations of whole documents.
    """

    name: str
    texts: tuple[str, ...]
    options: TranslationOptions | None = None
    documents: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Failure:
    """An item whose expected word a system does not say."""

    item: Item
    text: str
    context: tuple[str, ...] | None = None  # its own translations before, if it is one of ours
    hypotheses: Hypotheses | None = None  # the n-best list, if it is one of ours
    sayers: frozenset[str] = frozenset()  # the hypotheses that say the word


@dataclass(frozen=True)
class SystemResult:
    """The result of one system on a set."""

    system: System
    said: Figure
    by_rule: Mapping[str, Figure]  # of the set's rules, the most frequent first; empty if there are none
    address: Figure | None  # of the items whose address is known in the translation and in the reference
    by_address: Mapping[str, Figure]  # the same, by the form of address in the reference
    failures: tuple[Failure, ...]  # the first few

    @property
    def forms(self) -> str:
        """Shares by form of address, as tables show them; empty if all references have one form."""
        shares = (f"{form} {100 * one.share.share:.1f}" for form, one in self.by_address.items())
        return ", ".join(shares) if len(self.by_address) > 1 else ""


@dataclass(frozen=True)
class Oracle:
    """How often some hypothesis of the n-best lists says the word: what choosing from them can reach."""

    size: int  # of the lists
    said: Figure
    by_rule: Mapping[str, Figure]

    @property
    def name(self) -> str:
        """The name of its row in tables."""
        return f"any of the {self.size}-best"


@dataclass(frozen=True)
class SetResults:
    """The results of all systems on a set: the sentence level first."""

    generative_set: GenerativeSet
    judging: Judging
    oracles: tuple[Oracle, ...]  # one per size of lists, in ascending order
    unsayable: int  # items whose expected form the rule never finds
    systems: tuple[SystemResult, ...]
    baseline: str  # the name of the system that the others are compared with

    @property
    def rules(self) -> dict[str, int]:
        """The number of items of every rule of the set, the most frequent first."""
        return {rule: figure.share.items for rule, figure in self.oracles[0].by_rule.items()}

    @property
    def has_addresses(self) -> bool:
        """Tell whether the address of some item is known, in the reference and in a translation."""
        return any(result.address is not None for result in self.systems)


def row_names(rows: Sequence[TranslationOptions]) -> list[str]:
    """The names of rows in tables; the size of their lists is named only if there are several."""
    several = len({row.nbest for row in rows if search_kind(row.search).needs == LISTS}) > 1
    return [
        f"{_row_name(row)}, {row.nbest}-best"
        if several and search_kind(row.search).needs == LISTS
        else _row_name(row)
        for row in rows
    ]


def _row_name(options: TranslationOptions) -> str:
    """The search, objective, weights and temperature of a row, as far as it uses them."""
    if not search_kind(options.search).reads_context:
        return options.search
    used = options.weighted_objective
    weights = ", ".join(f"{name} {value:g}" for name, value in used.weights.items())
    if used.weights.keys() == {"lm"}:
        weights = f"× {used.weights['lm']:g}"
    name = " ".join(filter(None, (f"{options.search}: {used.name}", weights)))
    if PAIRS in used.readings:
        name += f", {options.reads}"
    return f"{name}, T {options.temperature:g}" if used.uses_lm else name


def systems_of(rows: Sequence[TranslationOptions], translated: Sequence[Translated]) -> list[System]:
    """The sentence level and our rows as systems, from the translations of a set."""
    documents = [tuple(one.level for one in translated)]
    documents += [tuple(one.rows[number] for one in translated) for number in range(len(rows))]
    named = [(LEVEL, None), *zip(row_names(rows), rows, strict=True)]
    return [
        System(name, tuple(sentences[-1] for sentences in of_system), options, of_system)
        for (name, options), of_system in zip(named, documents, strict=True)
    ]


def other_systems(
    files: Mapping[str, Sequence[Path]],
    sets: Sequence[GenerativeSet],
    language: str | None = None,
    *,
    most: int = MAX_INPUT_BYTES,
) -> list[list[System]]:
    """The systems of every set, from their files: one file per set for every name; see `read_system`."""
    return [
        [System(name, read_system(paths[number], one, language, most=most)) for name, paths in files.items()]
        for number, one in enumerate(sets)
    ]


def check_names(rows: Sequence[TranslationOptions], others: Sequence[str], baseline: str = LEVEL) -> None:
    """Raise a CadecError, before the work, if two systems have one name or none has the baseline's."""
    own = [LEVEL, *row_names(rows)]
    if taken := [name for name in others if name in own]:
        raise CadecError(f"{taken[0]!r} is the name of one of our own rows", "give the system another name")
    if baseline not in (*own, *others):
        known = ", ".join(map(repr, (*own, *others)))
        raise CadecError(f"no system {baseline!r} to compare with", f"{option('baseline')} is one of {known}")


def evaluate(
    generative_set: GenerativeSet,
    judging: Judging,
    translated: Sequence[Translated],
    systems: Sequence[System],
    sizes: Sequence[int],
    *,
    baseline: str = LEVEL,
    failures: int = 0,
) -> SetResults:
    """Judge every translation of a set; the first system is the sentence level.

    There is an oracle for every one of the sizes of lists. `baseline` names the system that the others are
    compared with. The first `failures` items that each system gets wrong are kept.
    """
    items = generative_set.items
    sayers = [
        frozenset(number for number, text in enumerate(one.last.texts) if judging.says(text, item.expected))
        for item, one in zip(items, translated, strict=True)
    ]
    first = [system.name for system in systems].index(baseline)
    said = [
        _statistics(
            [(judging.says(text, item.expected), True) for item, text in zip(items, texts, strict=True)]
        )
        for texts in (system.texts for system in systems)
    ]
    addressed = [_agreement(items, system.texts, judging) for system in systems]
    by_form = {
        form: _figures([of_system[numbers] for of_system in addressed], first)
        for form, numbers in _items_of_forms(items, judging).items()
    }
    rules = _items_of_rules(items)
    by_rule = {
        rule: _figures([of_system[numbers] for of_system in said], first) for rule, numbers in rules.items()
    }
    results = []
    figures = zip(systems, said, _figures(said, first), _figures(addressed, first), strict=True)
    for place, (system, of_system, figure, address) in enumerate(figures):
        wrong = np.flatnonzero(of_system[:, 0] == 0)[:failures].tolist()
        results.append(
            SystemResult(
                system,
                _known(figure),
                {rule: _known(of_rule[place]) for rule, of_rule in by_rule.items()},
                address,
                {form: known for form, figures in by_form.items() if (known := figures[place]) is not None},
                tuple(_failure(items[n], system, n, translated[n], sayers[n]) for n in wrong),
            )
        )
    return SetResults(
        generative_set,
        judging,
        tuple(_oracle(size, translated, sayers, rules) for size in sizes),
        sum(not judging.can_be_said(item.expected) for item in items),
        tuple(results),
        baseline,
    )


def _oracle(
    size: int,
    translated: Sequence[Translated],
    sayers: Sequence[frozenset[int]],
    rules: Mapping[str, Sequence[int]],
) -> Oracle:
    found = [
        any(one.last.ranks[number] < size for number in numbers)
        for one, numbers in zip(translated, sayers, strict=True)
    ]

    def figure(numbers: Sequence[int]) -> Figure:
        return Figure(Share.of(sum(found[number] for number in numbers), len(numbers)))

    return Oracle(size, figure(range(len(found))), {rule: figure(numbers) for rule, numbers in rules.items()})


def _failure(
    item: Item, system: System, number: int, translated: Translated, sayers: frozenset[int]
) -> Failure:
    text = system.texts[number]
    if not system.documents:
        return Failure(item, text)
    last, options = translated.last, system.options
    if options is not None and search_kind(options.search).needs == LISTS:
        last = last.beginning(options.nbest)  # the list that it chose from
    saying = frozenset(translated.last.texts[place] for place in sayers)
    return Failure(item, text, system.documents[number][:-1], last, saying)


def _items_of_rules(items: Sequence[Item]) -> dict[str, list[int]]:
    """The numbers of the items of every rule, the most frequent first; items without a rule are left out."""
    found: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        if item.rule:
            found.setdefault(item.rule, []).append(number)
    return dict(sorted(found.items(), key=lambda pair: (-len(pair[1]), pair[0])))


def _items_of_forms(items: Sequence[Item], judging: Judging) -> dict[str, list[int]]:
    """The numbers of the items of every form of address in references, in alphabetical order."""
    found: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        form = judging.address(item.reference) if item.reference is not None else None
        if form is not None:
            found.setdefault(form, []).append(number)
    return dict(sorted(found.items()))


def _statistics(pairs: Sequence[tuple[bool, bool]]) -> Floats:
    """(right, counted) of every item, as an array of 0 and 1: (items, 2)."""
    return np.array(pairs, dtype=np.float64)


def _agreement(items: Sequence[Item], texts: Sequence[str], judging: Judging) -> Floats:
    """(agrees, known) of every item: the address in the translation, and that in the reference."""
    pairs = [
        (judging.address(text), judging.address(item.reference) if item.reference is not None else None)
        for item, text in zip(items, texts, strict=True)
    ]
    known = [None not in pair for pair in pairs]
    return _statistics([(one and pair[0] == pair[1], one) for one, pair in zip(known, pairs, strict=True)])


def _figures(statistics: Sequence[Floats], first: int) -> list[Figure | None]:
    """The share of each system, compared with `first`; None for a system of which nothing is counted."""
    sums = Resampling(np.arange(len(statistics[0])), SAMPLES, SEED).sums(np.hstack(statistics))
    samples = np.split(sums, len(statistics), axis=1)
    figures: list[Figure | None] = []
    for place, own in enumerate(statistics):
        right, count = (int(value) for value in own.sum(0))
        over = None
        if place != first:
            over = _difference(own, statistics[first], samples[place], samples[first])
        figures.append(Figure(Share.of(right, count), over) if count else None)
    return figures


def _known(figure: Figure | None) -> Figure:
    assert figure is not None, "every item is counted"
    return figure


def _difference(own: Floats, first: Floats, samples: Floats, of_first: Floats) -> Difference | None:
    """The difference of two shares; samples in which a system has nothing counted are left out."""
    totals = own.sum(0), first.sum(0)
    usable = (samples[:, 1] > 0) & (of_first[:, 1] > 0)
    if not all(total[1] for total in totals) or not usable.any():
        return None
    shares = [100 * part[usable, 0] / part[usable, 1] for part in (samples, of_first)]
    delta = 100 * float(totals[0][0] / totals[0][1] - totals[1][0] / totals[1][1])
    return difference(delta, shares[0], shares[1], units=int(min(total[1] for total in totals)))
