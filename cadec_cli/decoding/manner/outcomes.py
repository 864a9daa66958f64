"""What became of the manner that was asked for: kept, changed, not kept or impossible.

All of it follows from the hypotheses and the choice among them, so that every command says the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from cadec_cli.decoding.confidence import FlaggedSentence
from cadec_cli.decoding.glossary.outcomes import CHANGED, IMPOSSIBLE, KEPT, NOT_KEPT
from cadec_cli.decoding.translation import TranslatedPart, Translation
from cadec_cli.text.manner import NAMES, agreements, other

_ASKED = " was asked for"


@dataclass(frozen=True)
class MannerOutcome:
    """A demand on a sentence, and what became of it.

    `wanted` is formal, informal, feminine or masculine. `outcome` is "kept" if the S-NMT's own translation is
    so too, "changed" if the demand made the difference, "not kept" if another hypothesis was chosen
    nevertheless, and "impossible" if none is so. A translation that shows neither form has no outcome.
    """

    wanted: str
    outcome: str
    opposite: str = ""

    @property
    def is_met(self) -> bool:
        """Tell whether the translation is as demanded."""
        return self.outcome in (KEPT, CHANGED)

    @property
    def flag(self) -> str:
        """What is wrong, in words for a person."""
        return f"{self.opposite}, though {self.wanted}{_ASKED}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {"wanted": self.wanted, "outcome": self.outcome}

    def __str__(self) -> str:
        return f"{self.wanted}: {self.outcome}"


def manner_outcomes(parts: Iterable[TranslatedPart]) -> tuple[MannerOutcome, ...]:
    """Return what became of the demands on the parts of a sentence, in their order."""
    return tuple(outcome for part in parts for outcome in _of_part(part))


def _of_part(part: TranslatedPart) -> Iterator[MannerOutcome]:
    manner, choice = part.nbest.manner, part.choice
    if manner is None or choice is None:
        return
    texts = [one.text for one in part.hypotheses]
    for demand, found in zip(manner.demands, agreements(manner, texts), strict=True):
        chosen = found[choice.index]
        if chosen is None:
            continue
        met, unmet = KEPT if found[0] else CHANGED, NOT_KEPT if True in found else IMPOSSIBLE
        outcome = met if chosen else unmet
        yield MannerOutcome(NAMES[demand], outcome, NAMES[other(demand)])


def manner_flags(parts: Iterable[TranslatedPart]) -> tuple[str, ...]:
    """Return the demands that translations do not meet, in words for a person."""
    return tuple(dict.fromkeys(one.flag for one in manner_outcomes(parts) if not one.is_met))


@dataclass
class UnmetDemands:
    """Counts the sentences that are not as demanded, by what is wrong with them."""

    found: Counter[str] = field(default_factory=Counter)

    def add(self, flags: Iterable[str]) -> None:
        """Count a sentence, given all of its flags."""
        self.found.update(flag for flag in flags if flag.endswith(_ASKED))

    def add_flagged(self, sentences: Iterable[FlaggedSentence]) -> None:
        """Count flagged sentences."""
        for one in sentences:
            self.add(one.reasons)

    def watch(self, translations: Iterable[Translation]) -> Iterator[Translation]:
        """Yield translations unchanged, and count them."""
        for translation in translations:
            self.add(manner_flags(translation.parts))
            yield translation
