"""How many errors `cadec check` finds: a script puts them into a translation that is taken to be right.

python -m bench.checks SOURCE TARGET [ERRORS [SEED]]

One line per sentence, a blank line between documents. First what is found in the translation as it is, then,
by kind of error, how many of ERRORS (200) are found at their line. SEED (1) chooses where they are.
"""

import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cadec_cli.evaluation.checks.findings import CheckedText, CheckResults, Pair
from cadec_cli.evaluation.checks.pairs import read_pairs
from cadec_cli.evaluation.checks.table import CHECKS, run_checks

# The pairs that an error at a place changes, with their new translations; None if it can't be there.
Change = Callable[[Sequence[Pair], int, random.Random], dict[int, str] | None]

_FRENCH = (
    "Je ne sais pas ce que vous voulez dire, mais nous partirons demain.",
    "Il est dans la maison avec les enfants, et elle ne veut pas sortir.",
    "Nous avons perdu la bataille, et le roi est mort dans la forêt.",
)
_FAMILIAR = {"ты": "вы", "тебя": "вас", "тебе": "вам", "тобой": "вами", "твой": "ваш", "твоя": "ваша"}
_SWITCH = _FAMILIAR | {other: one for one, other in _FAMILIAR.items()}


def _digit(pairs: Sequence[Pair], number: int, rng: random.Random) -> dict[int, str] | None:
    target = pairs[number].target
    digits = [found.start() for found in re.finditer(r"\d", target)]
    if not digits or not re.search(r"\d", pairs[number].source):
        return None
    place = rng.choice(digits)
    other = rng.choice([digit for digit in "123456789" if digit != target[place]])
    return {number: target[:place] + other + target[place + 1 :]}


def _number_lost(pairs: Sequence[Pair], number: int, rng: random.Random) -> dict[int, str] | None:
    changed = re.sub(r"\d+%?\s?", "", pairs[number].target)
    return {number: changed} if changed != pairs[number].target else None


def _tag_lost(pairs: Sequence[Pair], number: int, rng: random.Random) -> dict[int, str] | None:
    tags = list(re.finditer(r"<[^<>]*>", pairs[number].target))
    if not tags:
        return None
    tag = rng.choice(tags)
    return {number: pairs[number].target[: tag.start()] + pairs[number].target[tag.end() :]}


def _placeholder(pairs: Sequence[Pair], number: int, rng: random.Random) -> dict[int, str] | None:
    found = re.search(r"\$\w+", pairs[number].target)
    if found is None:
        return None
    return {number: pairs[number].target.replace(found[0], found[0][:-1] + "x", 1)}


def _untranslated(pairs: Sequence[Pair], number: int, rng: random.Random) -> dict[int, str] | None:
    return {number: pairs[number].source}


def _half_translated(pairs: Sequence[Pair], number: int, rng: random.Random) -> dict[int, str] | None:
    sentences = re.split(r"(?<=[.!?])\s+", pairs[number].source)
    others = re.split(r"(?<=[.!?])\s+", pairs[number].target)
    if len(sentences) < 2 or len(others) != len(sentences):
        return None
    return {number: " ".join([*others[:-1], sentences[-1]])}


def _french(pairs: Sequence[Pair], number: int, rng: random.Random) -> dict[int, str] | None:
    return {number: rng.choice(_FRENCH)}


def _empty(pairs: Sequence[Pair], number: int, rng: random.Random) -> dict[int, str] | None:
    return {number: ""}


def _repeated(pairs: Sequence[Pair], number: int, rng: random.Random) -> dict[int, str] | None:
    if not number or pairs[number - 1].document != pairs[number].document:
        return None
    return {number: pairs[number - 1].target}


def _cut(pairs: Sequence[Pair], number: int, rng: random.Random) -> dict[int, str] | None:
    words = pairs[number].target.split()
    return {number: " ".join(words[: len(words) // 2]).rstrip(",;:–— ")} if len(words) > 7 else None


def _loop(pairs: Sequence[Pair], number: int, rng: random.Random) -> dict[int, str] | None:
    words = pairs[number].target.split()
    return {number: " ".join([*words, *words[-2:] * 6])} if len(words) > 5 else None


def _name(pairs: Sequence[Pair], number: int, rng: random.Random) -> dict[int, str] | None:
    """A name that the text has often is spelt in another way."""
    target = pairs[number].target
    names = [
        found for found in re.finditer(r"(?<=[\w,] )[А-ЯЁ][а-яё]{4,}", target) if _often(pairs)[found[0]] >= 4
    ]
    if not names:
        return None
    name = rng.choice(names)
    place = rng.randrange(1, 4)
    letter = rng.choice("аеиоулнрт")
    spelt = name[0][:place] + letter + name[0][place:]
    return {number: target[: name.start()] + spelt + target[name.end() :]}


_counted: dict[int, Counter[str]] = {}


def _often(pairs: Sequence[Pair]) -> Counter[str]:
    if id(pairs) not in _counted:
        words = (word for pair in pairs for word in re.findall(r"(?<=[\w,] )[А-ЯЁ][а-яё]{4,}", pair.target))
        _counted[id(pairs)] = Counter(words)
    return _counted[id(pairs)]


def _address(pairs: Sequence[Pair], number: int, rng: random.Random) -> dict[int, str] | None:
    """One of several forms of address in a line is switched."""
    target = pairs[number].target
    forms = [found for found in re.finditer(r"\w+", target) if found[0].lower() in _SWITCH]
    if len(forms) < 2:
        return None
    form = rng.choice(forms)
    return {number: target[: form.start()] + _SWITCH[form[0].lower()] + target[form.end() :]}


def _shift(pairs: Sequence[Pair], number: int, rng: random.Random) -> dict[int, str] | None:
    """Eight translations stand one line late; the first stands twice."""
    lines = range(number, number + 9)
    if lines[-1] >= len(pairs) or pairs[lines[-1]].document != pairs[number].document:
        return None
    return {line: pairs[max(number, line - 1)].target for line in lines}


def _swap(pairs: Sequence[Pair], number: int, rng: random.Random) -> dict[int, str] | None:
    if number + 1 >= len(pairs) or pairs[number + 1].document != pairs[number].document:
        return None
    return {number: pairs[number + 1].target, number + 1: pairs[number].target}


# Kinds of errors, with their share and the checks that may find them.
KINDS: dict[str, tuple[int, Change, tuple[str, ...]]] = {
    "a digit changed": (20, _digit, ("numbers", "copied")),
    "a number lost": (10, _number_lost, ("numbers", "copied")),
    "a tag lost": (15, _tag_lost, ("tags",)),
    "a placeholder misspelt": (10, _placeholder, ("copied",)),
    "a line not translated": (20, _untranslated, ("untranslated",)),
    "a sentence not translated": (15, _half_translated, ("untranslated",)),
    "a line in French": (10, _french, ("language",)),
    "a line empty": (20, _empty, ("empty",)),
    "the line before repeated": (15, _repeated, ("repeated", "length", "aligned")),
    "a line cut in half": (15, _cut, ("length",)),
    "a loop": (10, _loop, ("damage", "length")),
    "a name misspelt": (15, _name, ("names",)),
    "address changed": (10, _address, ("address",)),
    "eight lines shifted": (5, _shift, ("aligned",)),
    "two lines swapped": (10, _swap, ("aligned",)),
}


@dataclass(frozen=True)
class Error:
    """An error that was put in: its kind, and the pairs that it changed."""

    kind: str
    lines: frozenset[int]


def with_errors(text: CheckedText, count: int, seed: int) -> tuple[CheckedText, list[Error]]:
    """Put errors into a translation; no two are in neighbouring lines."""
    rng = random.Random(seed)
    pairs, changed = list(text.pairs), list(text.pairs)
    errors: list[Error] = []
    taken: set[int] = set()
    shares = sum(share for share, _, _ in KINDS.values())
    for kind, (share, change, _) in KINDS.items():
        wanted, places = round(share * count / shares), list(range(len(pairs)))
        rng.shuffle(places)
        for number in places:
            if wanted == 0:
                break
            new = change(pairs, number, rng)
            around = {near for line in new or () for near in range(line - 2, line + 3)}
            if (
                new is None
                or around & taken
                or all(pairs[line].target == target for line, target in new.items())
            ):
                continue
            taken |= around
            for line, target in new.items():
                changed[line] = replace(changed[line], target=target)
            errors.append(Error(kind, frozenset(new)))
            wanted -= 1
    return replace(text, pairs=tuple(changed)), errors


def found_by_kind(results: CheckResults, errors: Sequence[Error]) -> Iterator[tuple[str, int, int, int]]:
    """Of each kind: errors, those found by a check made for them, and those found by any."""
    numbers = {id(pair): number for number, pair in enumerate(results.text.pairs)}
    at: dict[int, set[str]] = {}
    for finding in results.findings:
        if finding.pair is not None:
            at.setdefault(numbers[id(finding.pair)], set()).add(finding.check)
    for kind, (_, _, checks) in KINDS.items():
        of_kind = [error for error in errors if error.kind == kind]
        near = [{check for line in error.lines for check in at.get(line, ())} for error in of_kind]
        yield kind, len(of_kind), sum(bool(one & set(checks)) for one in near), sum(map(bool, near))


def main(arguments: Sequence[str]) -> None:
    source, target = map(Path, arguments[:2])
    count, seed = (int(value) for value in (*arguments[2:4], *("200", "1")[len(arguments) - 2 :]))
    text = read_pairs(source, target)
    clean = run_checks(text, tuple(CHECKS))
    print(f"{len(text.pairs):,} lines; as they are:")
    for name in clean.checks:
        print(f"  {name:14}", *(f"{clean.count(one, name):3} {one}s" for one in ("error", "warning", "hint")))
    damaged, errors = with_errors(text, count, seed)
    results = run_checks(damaged, tuple(CHECKS))
    print(f"with {len(errors)} errors (seed {seed}): put in, found by the check for it, found by any")
    totals = [0, 0, 0]
    for kind, *figures in found_by_kind(results, errors):
        totals = [sum(both) for both in zip(totals, figures, strict=True)]
        print(f"  {kind:26}", *(f"{figure:4}" for figure in figures))
    print(f"  {'all':26}", *(f"{figure:4}" for figure in totals))
    print(f"findings: {len(clean.findings)} before, {len(results.findings)} after")


if __name__ == "__main__":
    main(sys.argv[1:])
