"""How far a translation can be trusted: one number from 0 to 1, computed from the results of decoding.

The number comes from a small logistic model over `Signals`, fitted by `python -m bench.confidence`;
docs/confidence.md says how well it does. It estimates the probability that a sentence is any good at all:
that it has clearly more in common with a person's translation than with that of another sentence (a chrF of
GOOD or more). No network is run. Text that must stay unchanged is not checked here, but by the `defects`
that a caller may pass.

`Judge` gives the confidence of a translation, `FlagCollector` and `flagged_sentences` collect the sentences
that somebody should look at.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from cadec_cli.text.documents import Document

if TYPE_CHECKING:  # help texts import FLAG_BELOW, and should not wait for what decoding needs
    from cadec_cli.decoding.translation import Choice, TranslatedPart, Translation

# The chrF from which a translation counts as good: hardly any reaches it against an unrelated reference.
GOOD = 20
# Below this, a translation is more likely bad than good.
FLAG_BELOW = 0.5
# The confidence of a translation with a defect is at most this.
DEFECTIVE = 0.1
# SLACK letters are added before lengths are compared, LETTERS of them count as a token: the shorter a text,
# the less its length says. «Hi!» may well become four times as long.
SLACK, LETTERS = 10, 3
# How many letters of other scripts a Chinese, Japanese or Korean character counts for.
WIDE = 2.5


class Defects(Protocol):
    """Finds errors of a translation that need no model to see, such as a missing number."""

    def __call__(self, source: str, parts: Sequence[TranslatedPart], /) -> tuple[str, ...]:
        """Return the defects of a sentence's translation, given its parts, each defect in a few words."""
        ...


@dataclass(frozen=True)
class Signals:
    """The known signals of a chosen hypothesis; a signal that was not computed is None.

    `margin` is its score minus that of the best hypothesis that differs in more than punctuation and case;
    if none does, minus the lowest score of all. Tokens are the translation model's. Without their ids
    (lists of other toolkits, models that score several sentences at once) nothing is known per token.
    """

    hypotheses: int
    margin: float | None = None
    log_prob_per_token: float | None = None
    pmi: float | None = None
    length_ratio: float | None = None  # letters of the translation per letter of the source
    letters_per_token: float | None = None  # low if words were assembled from small pieces

    @property
    def comparison(self) -> str:
        """How the translation compares with the source: longer or shorter."""
        return "longer" if (self.length_ratio or 0.0) > 1 else "shorter"


@dataclass(frozen=True)
class Confidence:
    """How far to trust a translation, and the reasons against it, the weightiest first."""

    value: float
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Weighing:
    """How a signal counts: `weight` times the difference of its feature from the `typical` one.

    A higher feature is better. The signal is given as a reason if the feature is below `flag_below`, or if
    no other signal counts more against the translation.
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
    return max(-2.0, -max(-longer, longer - 0.2, 0))  # a little longer does no harm


def _letters_per_token(known: Signals) -> float | None:
    letters = known.letters_per_token
    return None if letters is None else _clip(math.log(letters), 0, math.log(3.5))


# Fitted with the embedded English-Russian bundle at its defaults, on the dialogues of Wesnoth: `typical` is a
# mean, `weight` a coefficient per unit. Probabilities per token and margins mean much the same for other
# models; lengths and letters per token do so less. No weight may be below 0.1 per standard deviation. Those
# of margin and PMI would be, because chrF does not see which of two words was meant.
INTERCEPT = 1.09
WEIGHINGS: dict[str, Weighing] = {
    "margin": Weighing(_margin, 0.54, 0.28, 0.1, "another translation is nearly as likely"),
    "log p per token": Weighing(_log_prob, -0.83, 1.34, -1.2, "unlikely words"),
    "PMI": Weighing(_pmi, 0.09, 0.07, -3.0, "the context speaks against it"),
    "length ratio": Weighing(_length, -0.15, 1.87, math.log(0.6), "much {compared} than the source"),
    "letters per token": Weighing(_letters_per_token, 1.06, 1.87, math.log(2.2), "rare or made-up words"),
}


def signals(part: TranslatedPart) -> Signals | None:
    """The signals of a part's translation; None if the part was only copied."""
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
    """How far to trust a translation: as far as its weakest part. None if it was only copied."""
    return Judge(defects=defects).of(translation)


@dataclass(frozen=True)
class Judge:
    """Says how far translations can be trusted, and flags those whose confidence is below `below`."""

    below: float = FLAG_BELOW
    defects: Defects = nothing_wrong

    def of(self, translation: Translation) -> Confidence | None:
        """The confidence in a sentence; None if it was only copied."""
        return self.of_parts(translation.source, translation.parts)

    def of_parts(self, source: str, parts: Sequence[TranslatedPart]) -> Confidence | None:
        """The confidence in the weakest part, lowered by defects of the whole sentence."""
        found = [weigh_signals(known) for part in parts if (known := signals(part)) is not None]
        if not found:
            return None
        weakest = min(found, key=lambda one: one.value)
        wrong = self.defects(source, parts)
        if not wrong:
            return weakest
        reasons = dict.fromkeys((*wrong, *weakest.reasons))  # without duplicates: both may say "too short"
        return Confidence(min(weakest.value, DEFECTIVE), tuple(reasons))

    def is_flagged(self, found: Confidence) -> bool:
        """Tell whether somebody should look at a translation of this confidence."""
        return found.value < self.below


def weigh_signals(known: Signals) -> Confidence:
    """Apply the logistic model. An absent signal counts neither for nor against."""
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
    """A text without punctuation, spaces and capitals, which hardly matter."""
    return "".join(
        character for character in text.casefold() if unicodedata.category(character)[0] not in "PZC"
    )


def _letters(text: str) -> float:
    """The length of a text in letters; a character that is a word of its own counts for several."""
    return sum(WIDE if unicodedata.east_asian_width(character) in "WF" else 1.0 for character in text.strip())


def _clip(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


@dataclass(frozen=True)
class FlaggedSentence:
    """A sentence that somebody should look at, and why."""

    document: int
    sentence: int
    source: str
    text: str
    confidence: float
    reasons: tuple[str, ...]
    place: str = field(default="", compare=False)  # where to find it in its file


@dataclass
class FlagCollector:
    """Collects the flagged sentences of a stream of translations."""

    judge: Judge
    found: list[FlaggedSentence] = field(default_factory=list)
    sentences: int = 0

    def watch(self, translations: Iterable[Translation]) -> Iterator[Translation]:
        """Yield the translations unchanged, and add the flagged ones to `found`."""
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
    """The flagged sentences among a journal's outputs, text or JSON, in the order of the documents."""
    for (document, sentence), output in sorted(outputs.items(), key=lambda item: item[0]):
        parts = output if isinstance(output, list) else [output]
        flagged = [part for part in parts if "flags" in part]
        if flagged:
            weakest = min(flagged, key=lambda part: float(part["confidence"]))
            source = documents[document].sentences[sentence]
            reasons, confidence = tuple(weakest["flags"]), weakest["confidence"]
            text = text_of(output)
            yield FlaggedSentence(document, sentence, source.text, text, confidence, reasons, source.place)


def text_of(output: Any) -> str:
    """The translation in a journal's output of a sentence: a text with its confidence, or JSON objects."""
    parts = output if isinstance(output, list) else [output]
    return " ".join(part["translation"] if "translation" in part else part["text"] for part in parts)
