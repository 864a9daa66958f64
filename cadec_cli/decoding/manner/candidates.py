"""Candidates said as the user asks for, for sentences whose n-best lists have none that is likely.

- The model translates once more without the pronouns and verb endings of the other form of address
  (`Avoids`).
- In what it wrote, words that may be imperatives are put into the form that is asked for, and words that
  agree with the speaker into the speaker's gender. The translation model says which of these are words: a
  change that costs too much is taken back.

Whatever comes of it is scored exactly, log p(y|x); the best of it joins the list, and the search chooses.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cadec_cli.decoding.glossary.candidates import as_hypothesis, respected
from cadec_cli.engines.manner_term import manner_values
from cadec_cli.engines.protocols import Avoids, TranslationModel
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.text.address import address_words
from cadec_cli.text.address_verbs import FAMILIAR, POLITE, Proposal, other_forms, verb_endings
from cadec_cli.text.manner import Manner, agreements, other, shown
from cadec_cli.text.protected.core import Core
from cadec_cli.text.token_text import TokenText

_MARGIN = 3.0  # a hypothesis as demanded that is less likely than the first by more does not do
_BASES = 2  # hypotheses, and translations without the other form, of which words are changed
_AGAIN = 4  # translations without the other form
_EDITS = 6  # words of a text that are tried as imperatives
# Nats that the change of one word may cost, if it is known as an imperative and if not; else it is no word.
_COST, _COST_OF_UNKNOWN = 7.0, 3.5
_COST_OF_GENDER = 10.0
_HOPELESS = 25.0  # nats below the first hypothesis
_Scores = dict[str, float]


@dataclass(frozen=True)
class MannerCandidates:
    """Makes candidates with a translation model; `text` is the vocabulary that lists may have ids of.

    The weights are those of the terms manner and glossary.
    """

    model: TranslationModel
    text: TokenText | None
    weight: float
    glossary_weight: float

    def complete(self, cores: Sequence[Core], lists: Sequence[NBest]) -> list[NBest]:
        """Return the lists, with candidates in the place of their last hypotheses where they are needed.

        Lists keep their lengths and their first hypotheses.
        """
        completed = list(lists)
        asked = {
            number: one for number, one in enumerate(lists) if _lacks(one) and self.model.fits(one.source)
        }
        scores = {
            number: {one.text: one.log_prob for one in nbest.hypotheses} for number, nbest in asked.items()
        }
        again = self._without_other_form(asked)
        self._score(asked, scores, again)
        bases = {
            number: [*(one.text for one in _to_change(nbest)), *again.get(number, ())[:_BASES]]
            for number, nbest in asked.items()
        }
        self._change_imperatives(asked, scores, bases)
        self._change_gender(asked, scores)
        for number, nbest in asked.items():
            completed[number] = self._join(cores[number], nbest, scores[number])
        return completed

    def _without_other_form(self, asked: Mapping[int, NBest]) -> dict[int, list[str]]:
        """Translate again, without the other form of address, where a likely hypothesis has it."""
        if not isinstance(self.model, Avoids):
            return {}
        found: dict[int, list[str]] = {}
        for manner in dict.fromkeys(one.manner for one in asked.values()):
            if manner is None or not manner.address:
                continue
            form, language = other(manner.address), manner.language
            here = [
                number
                for number, one in asked.items()
                if one.manner == manner and any(form in forms for forms in _shown(one))
            ]
            words = address_words(form, language)
            if here and words:
                texts = self.model.avoid(
                    [asked[number].source for number in here], _AGAIN, words, verb_endings(form, language)
                )
                found.update(zip(here, texts, strict=True))
        return found

    def _change_imperatives(
        self, asked: Mapping[int, NBest], scores: dict[int, _Scores], bases: Mapping[int, Sequence[str]]
    ) -> None:
        """Try words as imperatives, one by one; then all of a text together that the model took for words."""
        tried = {
            (number, base): _proposals(base, manner)
            for number, nbest in asked.items()
            for manner in [nbest.manner]
            if manner is not None and manner.address
            for base in bases[number]
            if base in scores[number]
        }
        self._score(
            asked,
            scores,
            _by_number(
                (number, _edit(base, [one])) for (number, base), all_ in tried.items() for one in all_
            ),
        )
        together = []
        listed = {number: {one.text for one in nbest.hypotheses} for number, nbest in asked.items()}
        for (number, base), proposals in tried.items():
            known = scores[number]
            good: dict[int, Proposal] = {}  # the likeliest at each place
            for one in sorted(proposals, key=lambda one: known.get(_edit(base, [one]), -math.inf)):
                text = _edit(base, [one])
                cost = _COST if one.known else _COST_OF_UNKNOWN
                if known.get(text, -math.inf) > known[base] - cost:
                    good[one.start] = one
                elif text not in listed[number]:
                    known.pop(text, None)
            if len(good) > 1:
                together.append((number, _edit(base, list(good.values()))))
        self._score(asked, scores, _by_number(together))

    def _change_gender(self, asked: Mapping[int, NBest], scores: dict[int, _Scores]) -> None:
        changed = [
            (number, text, other_text)
            for number, nbest in asked.items()
            for manner in [nbest.manner]
            if manner is not None
            for text in scores[number]
            if (other_text := manner.in_genders(text)) != text
        ]
        listed = {number: {one.text for one in nbest.hypotheses} for number, nbest in asked.items()}
        self._score(asked, scores, _by_number((number, text) for number, _, text in changed))
        for number, base, text in changed:
            known = scores[number]
            cheap = base in known and known.get(text, -math.inf) > known[base] - _COST_OF_GENDER
            if not cheap and text not in listed[number]:
                known.pop(text, None)

    def _score(
        self, asked: Mapping[int, NBest], scores: dict[int, _Scores], texts: Mapping[int, Iterable[str]]
    ) -> None:
        """Add the log p of new texts; those that the model can't write are left out."""
        new = [
            (number, text)
            for number, own in texts.items()
            for text in dict.fromkeys(own)
            if text and text not in scores[number] and self.model.fits(asked[number].source, text)
        ]
        if new:
            found = self.model.log_probs(
                [asked[number].source for number, _ in new], [text for _, text in new]
            )
            for (number, text), log_prob in zip(new, found, strict=True):
                scores[number][text] = log_prob

    def _join(self, core: Core, nbest: NBest, scores: _Scores) -> NBest:
        """Put the best candidates into the places of the hypotheses that are worth least."""
        manner = nbest.manner
        assert manner is not None
        size = len(nbest.hypotheses)
        first = nbest.hypotheses[0]
        texts = tuple(scores)
        values = dict(zip(texts, manner_values(manner, texts), strict=True))
        listed = {one.text: one for one in nbest.hypotheses}
        best = max(values[text] for text in listed)

        def worth(text: str) -> float:
            terms = self.glossary_weight * len(respected(core.mentions, text)) if core.mentions else 0.0
            return scores[text] + self.weight * values[text] + terms

        new = [
            text
            for text in texts
            if text not in listed
            and scores[text] > first.log_prob - _HOPELESS
            and values[text] >= best
            and values[text] > values[first.text]
        ]
        if not new:
            return nbest
        made = sorted(new, key=worth, reverse=True)[: max(1, size // 2)]
        kept = sorted((text for text in listed if text != first.text), key=worth, reverse=True)
        if size == 1:
            chosen = [max([first.text, *made], key=worth)]
        else:
            chosen = [first.text, *kept[: size - 1 - len(made)], *made]
        hypotheses = [
            listed.get(text) or as_hypothesis(self.model, self.text, text, scores[text], nbest.vocabulary)
            for text in chosen
        ]
        ordered = [*hypotheses[:1], *sorted(hypotheses[1:], key=lambda one: -one.log_prob)]
        return replace(nbest, hypotheses=tuple(ordered))


def _to_change(nbest: NBest) -> tuple[Hypothesis, ...]:
    """The hypotheses of which words are changed: only the first if none addresses anybody, as it seems."""
    addresses = any(forms & {FAMILIAR, POLITE} for forms in _shown(nbest))
    return nbest.hypotheses[: _BASES if addresses else 1]


def _shown(nbest: NBest) -> tuple[frozenset[str], ...]:
    assert nbest.manner is not None
    return shown(tuple(one.text for one in nbest.hypotheses), nbest.manner.language)


def _lacks(nbest: NBest) -> bool:
    """Tell whether a list has no likely hypothesis that is as demanded."""
    if nbest.manner is None or not nbest.hypotheses:
        return False
    of_demands = agreements(nbest.manner, [one.text for one in nbest.hypotheses])
    likely = max(one.log_prob for one in nbest.hypotheses) - _MARGIN
    return not any(
        hypothesis.log_prob >= likely and False not in found and True in found
        for hypothesis, found in zip(nbest.hypotheses, zip(*of_demands, strict=True), strict=True)
    )


def _proposals(text: str, manner: Manner) -> list[Proposal]:
    return list(itertools.islice(other_forms(text, manner.language, manner.address), _EDITS))


def _edit(text: str, edits: Sequence[Proposal]) -> str:
    for one in sorted(edits, key=lambda one: -one.start):
        text = text[: one.start] + one.word + text[one.end :]
    return text


def _by_number(items: Iterable[tuple[int, str]]) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for number, text in items:
        found.setdefault(number, []).append(text)
    return found
