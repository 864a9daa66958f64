"""The manner of a sentence that a user asks for: how its speaker addresses people, and their genders.

    address    T (familiar, as French *tu*) or V (polite, as *vous*)
    gender     f or m, of the one who says *I*: «я знала», « je suis prête »
    addressee  F or M, of the one who is called *you*: «ты знала», « tu es prête »

What is not asked for is empty. `shown` tells which of these a translation shows; it needs the other
translations of the sentence, since one alone does not always tell («уходи» beside «уходите»).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from cadec_cli.text.address import addresses
from cadec_cli.text.address_verbs import FAMILIAR, POLITE, verb_forms
from cadec_cli.text.speaker_gender import ADDRESSEE, FEMININE, MASCULINE, in_gender, person_genders

# What is asked for, and what people call it.
FORMS = {"formal": POLITE, "informal": FAMILIAR}
YOU_FEMININE, YOU_MASCULINE = "F", "M"
NAMES = {
    **{POLITE: "formal", FAMILIAR: "informal", FEMININE: "feminine", MASCULINE: "masculine"},
    **{YOU_FEMININE: "feminine you", YOU_MASCULINE: "masculine you"},
}


@dataclass(frozen=True)
class Manner:
    """How a sentence is to be said in a language; a demand that is empty is none."""

    language: str
    address: str = ""
    gender: str = ""
    addressee: str = ""

    def __post_init__(self) -> None:
        wrong = [
            value
            for value, forms in (
                (self.address, ("", FAMILIAR, POLITE)),
                (self.gender, ("", FEMININE, MASCULINE)),
                (self.addressee, ("", YOU_FEMININE, YOU_MASCULINE)),
            )
            if value not in forms
        ]
        if wrong or not isinstance(self.language, str):
            raise ValueError(f"invalid manner: {self}")

    @property
    def demands(self) -> tuple[str, ...]:
        """What is asked for: a form of address, and genders."""
        return tuple(filter(None, (self.address, self.gender, self.addressee)))

    def in_genders(self, text: str) -> str:
        """Return a text with the words that agree with the speaker or the addressee as is asked for."""
        if self.gender:
            text = in_gender(text, self.language, self.gender)
        if self.addressee:
            text = in_gender(text, self.language, self.addressee.lower(), ADDRESSEE)
        return text


def shown(texts: tuple[str, ...], language: str) -> tuple[frozenset[str], ...]:
    """The forms of address and the genders that each translation of one sentence shows."""
    return _shown(texts, language)


@lru_cache(2048)
def _shown(texts: tuple[str, ...], language: str) -> tuple[frozenset[str], ...]:
    verbs = [verb_forms(text, language) for text in texts]
    imperatives = frozenset[str]().union(*(one.counterparts for one in verbs))
    return tuple(
        addresses(text, language)
        | one.forms
        | (frozenset((FAMILIAR,)) if one.words & imperatives else frozenset())
        | person_genders(text, language)
        | frozenset(map(str.upper, person_genders(text, language, ADDRESSEE)))
        for text, one in zip(texts, verbs, strict=True)
    )


_PAIRS = ((FAMILIAR, POLITE), (FEMININE, MASCULINE), (YOU_FEMININE, YOU_MASCULINE))
_OTHER = {one: another for pair in _PAIRS for one, another in (pair, pair[::-1])}


def other(demand: str) -> str:
    """What a demand rules out."""
    return _OTHER[demand]


def agreement(demand: str, found: frozenset[str]) -> bool | None:
    """Tell whether what a translation shows is as demanded; None if it shows neither form.

    One that shows both forms is not.
    """
    if _OTHER[demand] in found:
        return False
    return True if demand in found else None


def agreements(manner: Manner, texts: Sequence[str]) -> list[list[bool | None]]:
    """For every demand, whether each translation of a sentence meets it."""
    found = shown(tuple(texts), manner.language)
    return [[agreement(demand, one) for one in found] for demand in manner.demands]
