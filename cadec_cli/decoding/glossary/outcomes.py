"""What became of terms and names in a translation: kept, changed, not kept or impossible.

All of it follows from the hypotheses and the choice among them, so that every command says the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cadec_cli.decoding.translation import TranslatedPart
from cadec_cli.text.glossary.entries import Mention

KEPT, CHANGED, NOT_KEPT, IMPOSSIBLE = "kept", "changed", "not kept", "impossible"


@dataclass(frozen=True)
class TermOutcome:
    """A term of a source text, and what became of it.

    `text` is the term as the source has it, `targets` what it is to be called, `rendering` how the
    translation calls it, or None. `outcome` is "kept" if the S-NMT's own translation has it too, "changed" if
    the glossary made the difference, "not kept" if another hypothesis was chosen nevertheless, and
    "impossible" if none has it. `must` tells whether the translation is wrong without it.
    """

    term: str
    text: str
    targets: tuple[str, ...]
    outcome: str
    rendering: str | None = None
    must: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; a rendering that is not there is left out."""
        found = {"rendering": self.rendering} if self.rendering is not None else {}
        must = {"must": True} if self.must else {}
        return {"term": self.term, "text": self.text, "outcome": self.outcome, **found, **must}

    def __str__(self) -> str:
        return f"{self.text} → {self.rendering or self.targets[0]}: {self.outcome}"


def term_outcomes(parts: Iterable[TranslatedPart]) -> tuple[TermOutcome, ...]:
    """Return what became of the terms in the parts of a sentence, in the order of the source.

    Nothing is known of parts that were read from a file.
    """
    return tuple(
        outcome
        for part in parts
        if part.unit is not None
        for outcome in _of_part(part, part.unit.core.mentions)
    )


def name_outcomes(parts: Iterable[TranslatedPart]) -> tuple[TermOutcome, ...]:
    """Return what became of the names whose renderings were found in the text, likewise."""
    return tuple(
        outcome for part in parts if part.unit is not None for outcome in _of_part(part, part.unit.core.names)
    )


def _of_part(part: TranslatedPart, mentions: Sequence[Mention]) -> Iterator[TermOutcome]:
    chosen = part.chosen_hypothesis
    if chosen is None:
        return
    for mention in mentions:
        rendering = mention.rendering(chosen.text)
        entry = mention.entry
        yield TermOutcome(
            entry.source,
            mention.text,
            entry.targets,
            _outcome(mention, rendering, part),
            rendering,
            entry.must,
        )


def _outcome(mention: Mention, rendering: str | None, part: TranslatedPart) -> str:
    if rendering is not None:
        first = part.hypotheses[0]
        return KEPT if mention.rendering(first.text) is not None else CHANGED
    others = (mention.rendering(one.text) for one in part.hypotheses)
    return NOT_KEPT if any(one is not None for one in others) else IMPOSSIBLE


def count_outcomes(outcomes: Iterable[TermOutcome]) -> dict[str, int]:
    """Count outcomes by their names; all names are there, in the order from good to bad."""
    counts = dict.fromkeys((KEPT, CHANGED, NOT_KEPT, IMPOSSIBLE), 0)
    for one in outcomes:
        counts[one.outcome] += 1
    return counts
