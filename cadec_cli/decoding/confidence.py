"""How far a translation can be trusted: one number from 0 to 1, made of what decoding knows anyway.

The number is a small logistic model over `Signals`, fitted by `python -m bench.confidence`; how well it does
is in docs/confidence.md. It estimates how likely a sentence is to be any good at all: to have clearly more in
common with a person's translation than with one of another sentence (chrF of GOOD or more). It runs no
network, and knows nothing of what must come through unchanged: whoever does hands in `defects`.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from cadec_cli.decoding.translation import Choice, TranslatedPart, Translation
from cadec_cli.text.documents import Document

# chrF from which a translation counts as good: next to none reaches it against another sentence's reference.
GOOD = 20
# Below this, more likely bad than good.
FLAG_BELOW = 0.5
# What has a defect is trusted no further than this.
DEFECTIVE = 0.1
# Letters, in tokens of so many, that are added before lengths are compared: the shorter a text, the less they
# say. «Hi!» may well become four times as long.
SLACK, LETTERS = 10, 3
# Letters of other scripts that say as much as one of these (Chinese, Japanese, Korean).
WIDE = 2.5


class Defects(Protocol):
    """Finds what is plainly wrong with a translation."""

    def __call__(self, source: str, parts: Sequence[TranslatedPart], /) -> tuple[str, ...]:
        """Return the defects of a sentence's translation, given its parts, each defect in a few words."""
        ...


@dataclass(frozen=True)
class Signals:
    """What is known of a chosen hypothesis; what was not computed is absent.

    `margin` is its score less that of the best hypothesis which differs in more than punctuation and case;
    where none does, less the worst of its likes. Tokens are the translation model's: without their ids (lists
    of other toolkits, models whose probability is of several sentences) nothing is known per token.
    """

    hypotheses: int
    margin: float | None = None
    log_prob_per_token: float | None = None
    pmi: float | None = None
    length_ratio: float | None = None  # letters of the translation for one of the source
    letters_per_token: float | None = None  # few where words were put together from scraps

    @property
    def comparison(self) -> str:
        """What the translation is beside the source."""
        return "longer" if (self.length_ratio or 0.0) > 1 else "shorter"


@dataclass(frozen=True)
class Confidence:
    """How far to trust a translation, and what speaks against it, the weightiest first."""

    value: float
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Weighing:
    """How a signal counts: a feature of it, the more the better, by how much it is above the typical one.

    Below `flag_below` it is worth a word to a person, whatever its weight; so is what weighs most.
    """

    feature: Callable[[Signals], float | None]
    typical: float
    weight: float
    flag_below: float
    reason: str


def _margin(known: Signals) -> float | None:
    return None if known.margin is None else _clip(known.margin, -1, 1)


def _log_prob(known: Signals) -> float | None:
    return None if known.log_prob_per_token is None else _clip(known.log_prob_per_token, -2.5, 0)


def _pmi(known: Signals) -> float | None:
    return None if known.pmi is None else _clip(known.pmi, -4, 4)


def _length(known: Signals) -> float | None:
    if known.length_ratio is None:
        return None
    longer = math.log(known.length_ratio)
    return max(-2.0, -max(-longer, longer - 0.2, 0))  # a little longer is no harm


def _letters_per_token(known: Signals) -> float | None:
    letters = known.letters_per_token
    return None if letters is None else _clip(math.log(letters), 0, math.log(3.5))


# Fitted with the embedded English-Russian bundle at its defaults, on the dialogues of Wesnoth: `typical` is a
# mean, `weight` a coefficient per unit. Probabilities per token and margins mean much the same for other
# models; how long a translation is and how many letters a token has, less so. No weight may be below 0.1 per
# standard deviation, and those of margin and PMI would be: chrF does not see which of two words was meant.
INTERCEPT = 1.09
WEIGHINGS: dict[str, Weighing] = {
    "margin": Weighing(_margin, 0.54, 0.28, 0.1, "another translation is nearly as likely"),
    "log p per token": Weighing(_log_prob, -0.83, 1.34, -1.2, "unlikely words"),
    "PMI": Weighing(_pmi, 0.09, 0.07, -3.0, "the context speaks against it"),
    "length ratio": Weighing(_length, -0.15, 1.87, math.log(0.6), "much {compared} than the source"),
    "letters per token": Weighing(_letters_per_token, 1.06, 1.87, math.log(2.2), "rare or made-up words"),
}


def signals(part: TranslatedPart) -> Signals | None:
    """What is known of a part's translation; nothing where it was only copied."""
    choice, chosen = part.choice, part.chosen_hypothesis
    if choice is None or chosen is None:
        return None
    around = _letters(part.nbest.before) + _letters(part.nbest.after)
    source, target = max(0.0, _letters(part.source) - around), _letters(chosen.text)
    tokens = len(chosen.ids) + 1 if chosen.ids else None  # with the end of the sentence
    return Signals(
        len(part.hypotheses),
        _margin_of(part, choice),
        None if tokens is None else chosen.log_prob / tokens,
        None if choice.pmi is None else choice.pmi[choice.index],
        (target + SLACK) / (source + SLACK) if source else None,
        None if tokens is None else (target + SLACK) / (tokens + SLACK / LETTERS),
    )


def nothing_wrong(source: str, parts: Sequence[TranslatedPart], /) -> tuple[str, ...]:
    """Report no defects, without looking for any."""
    return ()


def confidence(translation: Translation, defects: Defects = nothing_wrong) -> Confidence | None:
    """How far to trust a translation: as far as its weakest part. None where it was only copied."""
    return Judge(defects=defects).of(translation)


@dataclass(frozen=True)
class Judge:
    """Says how far translations can be trusted, and which are worth a look."""

    below: float = FLAG_BELOW
    defects: Defects = nothing_wrong

    def of(self, translation: Translation) -> Confidence | None:
        """The confidence in a sentence."""
        return self.of_parts(translation.source, translation.parts)

    def of_parts(self, source: str, parts: Sequence[TranslatedPart]) -> Confidence | None:
        """The confidence in the weakest part, with whatever is wrong with the whole."""
        found = [weigh_signals(known) for part in parts if (known := signals(part)) is not None]
        if not found:
            return None
        weakest = min(found, key=lambda one: one.value)
        wrong = self.defects(source, parts)
        if not wrong:
            return weakest
        reasons = dict.fromkeys((*wrong, *weakest.reasons))  # both may say that it is too short
        return Confidence(min(weakest.value, DEFECTIVE), tuple(reasons))

    def is_flagged(self, found: Confidence) -> bool:
        """Tell whether that is worth a look."""
        return found.value < self.below


def weigh_signals(known: Signals) -> Confidence:
    """The logistic model. An absent signal speaks neither for nor against."""
    features = {name: weighing.feature(known) for name, weighing in WEIGHINGS.items()}
    votes = {
        name: WEIGHINGS[name].weight * (feature - WEIGHINGS[name].typical)
        for name, feature in features.items()
        if feature is not None
    }
    against = sorted((name for name in votes if votes[name] < 0), key=lambda name: votes[name])
    said = [
        name for name in against if name == against[0] or (features[name] or 0.0) < WEIGHINGS[name].flag_below
    ]
    reasons = [WEIGHINGS[name].reason.format(compared=known.comparison) for name in said]
    value = 1 / (1 + math.exp(-INTERCEPT - sum(votes.values())))
    return Confidence(value, tuple(reasons))


def _margin_of(part: TranslatedPart, choice: Choice) -> float | None:
    if len(choice.scores) < 2:
        return None
    own = _words(part.hypotheses[choice.index].text)
    others = [
        score
        for hypothesis, score in zip(part.hypotheses, choice.scores, strict=True)
        if _words(hypothesis.text) != own
    ]
    return choice.scores[choice.index] - (max(others) if others else min(choice.scores))


def _words(text: str) -> str:
    """A text without what hardly matters: punctuation, spaces, capitals."""
    return "".join(
        character for character in text.casefold() if unicodedata.category(character)[0] not in "PZC"
    )


def _letters(text: str) -> float:
    """The length of a text; where a character is a word, it counts for several."""
    return sum(WIDE if unicodedata.east_asian_width(character) in "WF" else 1.0 for character in text.strip())


def _clip(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


# Which sentences of a translation are worth a look: collected as they come, or from what a journal has.


@dataclass(frozen=True)
class FlaggedSentence:
    """A sentence that is worth a look, and why."""

    document: int
    sentence: int
    source: str
    text: str
    confidence: float
    reasons: tuple[str, ...]
    place: str = field(default="", compare=False)  # where a person finds it


@dataclass
class FlagCollector:
    """The doubtful ones among translations that pass by, in the order in which they pass."""

    judge: Judge
    found: list[FlaggedSentence] = field(default_factory=list)
    sentences: int = 0

    def watch(self, translations: Iterable[Translation]) -> Iterator[Translation]:
        """Yield translations as they are, and remember the doubtful ones."""
        for translation in translations:
            self.sentences += 1
            confidence = self.judge.of(translation)
            if confidence is not None and self.judge.is_flagged(confidence):
                self.found.append(
                    FlaggedSentence(
                        translation.document,
                        translation.sentence,
                        translation.source,
                        translation.text,
                        confidence.value,
                        confidence.reasons,
                        translation.place,
                    )
                )
            yield translation


def flagged_sentences(
    outputs: Mapping[tuple[int, int], Any], documents: Sequence[Document]
) -> Iterator[FlaggedSentence]:
    """The doubtful ones of a journal's outputs, text or JSON, in the order of the documents."""
    for (document, sentence), output in sorted(outputs.items(), key=lambda item: item[0]):
        parts = output if isinstance(output, list) else [output]
        flagged = [part for part in parts if "flags" in part]
        if flagged:
            weakest = min(flagged, key=lambda part: float(part["confidence"]))
            text = " ".join(part["translation"] if "translation" in part else part["text"] for part in parts)
            source = documents[document].sentences[sentence]
            reasons, confidence = tuple(weakest["flags"]), weakest["confidence"]
            yield FlaggedSentence(document, sentence, source.text, text, confidence, reasons, source.place)
