"""What a check works on, and what it reports: pairs of texts, languages, findings and how grave they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

ERROR, WARNING, HINT = "error", "warning", "hint"
# The gravest first. An error is wrong in nearly all cases, a warning is worth a look, a hint may be a choice.
SEVERITIES = (ERROR, WARNING, HINT)


def at_least(severity: str, least: str) -> bool:
    """Tell whether a severity is as grave as another one, or graver."""
    return SEVERITIES.index(severity) <= SEVERITIES.index(least)


@dataclass(frozen=True)
class Pair:
    """A line, a cue or a few cues of the source, and their translation; one side may be empty.

    Places are where a person finds them in their files, such as a line number, or a cue with its time.
    """

    source: str
    target: str
    document: int  # from 1
    source_place: str
    target_place: str


@dataclass(frozen=True)
class CheckedText:
    """A source and its translation, pair by pair; languages are codes, "" where they are not known."""

    name: str  # of the translation
    pairs: tuple[Pair, ...]
    source_language: str = ""
    target_language: str = ""
    has_cues: bool = False
    remarks: tuple[Remark, ...] = ()  # what was seen when the sides were brought together
    misaligned: frozenset[int] = field(default=frozenset())  # pairs that do not belong together

    @cached_property
    def whole(self) -> tuple[int, ...]:
        """The pairs that have text on both sides and belong together."""
        return tuple(
            number
            for number, pair in enumerate(self.pairs)
            if pair.source and pair.target and number not in self.misaligned
        )

    @cached_property
    def documents(self) -> tuple[tuple[int, ...], ...]:
        """The numbers of the pairs of each document."""
        found: dict[int, list[int]] = {}
        for number, pair in enumerate(self.pairs):
            found.setdefault(pair.document, []).append(number)
        return tuple(map(tuple, found.values()))

    @property
    def aligned(self) -> Iterator[tuple[int, Pair]]:
        """The pairs of `whole`, with their numbers."""
        return ((number, self.pairs[number]) for number in self.whole)


@dataclass(frozen=True)
class Remark:
    """What a check says of a pair, which it names by its number; a pair of -1 stands for the whole text."""

    pair: int
    severity: str
    message: str
    source_part: str = ""  # the part of the source that it is about, if there is one
    target_part: str = ""


@dataclass(frozen=True)
class Finding:
    """A remark with the name of its check, and its pair unless it is about the whole text."""

    check: str
    severity: str
    message: str
    pair: Pair | None
    source_part: str = ""
    target_part: str = ""


@dataclass(frozen=True)
class CheckResults:
    """All findings in the order of the text, and the checks that could not be made, with the reason."""

    text: CheckedText
    checks: tuple[str, ...]  # those that were made
    findings: tuple[Finding, ...]
    skipped: Sequence[tuple[str, str]]

    def count(self, severity: str, check: str | None = None) -> int:
        """How many findings of a severity there are, of all checks or of one."""
        return sum(one.severity == severity and check in (None, one.check) for one in self.findings)
