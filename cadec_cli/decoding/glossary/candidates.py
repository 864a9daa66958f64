"""Candidates that respect a glossary, for sentences whose n-best lists have none. Works with any model.

A term takes the place of what the best hypotheses say instead, in each of the forms that the glossary lists.
Where the model can complete a beginning (`Completes`), it writes the word before the term again, and all that
follows it, so that they agree. Whatever comes of it is scored exactly, log p(y|x): the best of it joins the
list, and the search chooses.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cadec_cli.decoding.protection.tag_placement import align_range
from cadec_cli.engines.protocols import Completes, TranslationModel
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.text.glossary.entries import Mention, has_no_spaces
from cadec_cli.text.protected.core import Core
from cadec_cli.text.token_text import TokenText

_BASES = 2  # hypotheses that a term is put into
_PLACES = 2  # the best places of a term
_REWRITTEN = 2  # of which the rest of the sentence is written again
_LEFT, _RIGHT = 5, 3  # completions before and after a term
_KEPT = 12  # translations with one term
_WORD = re.compile(r"[^\W_](?:[\w’'-]*[^\W_])?")


@dataclass(frozen=True)
class _Draft:
    """A translation with a term at `start` to `end`, and its log p."""

    text: str
    start: int
    end: int
    log_prob: float = 0.0

    def with_term(self, term: str) -> _Draft:
        """Return the translation with another text as the term; at its beginning it keeps the capital."""
        if self.start == 0 and self.text[:1].isupper():
            term = term[:1].upper() + term[1:]
        return _Draft(
            self.text[: self.start] + term + self.text[self.end :], self.start, self.start + len(term)
        )


@dataclass(frozen=True)
class TermCandidates:
    """Makes candidates with a translation model; `text` is the vocabulary that lists may have ids of."""

    model: TranslationModel
    text: TokenText | None = None

    def complete(self, core: Core, nbest: NBest, weight: float) -> NBest:
        """Return the list with candidates in the place of its last hypotheses, if none respects all terms.

        The list keeps its length and its first hypothesis; `weight` is the reward per respected term.
        """
        mentions = core.mentions
        if not mentions or not nbest.hypotheses or not self.model.fits(core.text):
            return nbest
        size = len(nbest.hypotheses)
        found: dict[str, Hypothesis] = {one.text: one for one in nbest.hypotheses}
        for mention in mentions:
            best = max(len(respected(mentions, text)) for text in found)
            if best == len(mentions):
                break
            likely = sorted(found.values(), key=lambda one: (_lacks(mentions, one.text)[1], -one.log_prob))
            if mention in respected(mentions, likely[0].text):
                continue
            bases = [one.text for one in likely[:_BASES]]
            for inserted in (False, True):
                drafts = self._with_mention(core.text, mention, bases, inserted=inserted)
                new = {
                    one.text: as_hypothesis(self.model, self.text, one.text, one.log_prob, nbest.vocabulary)
                    for one in drafts
                }
                found = {**new, **found}
                if any(len(respected(mentions, text)) > best for text in new):
                    break  # else the bases do not say at all what the term says

        def value(one: Hypothesis) -> tuple[int, float]:
            return _lacks(mentions, one.text)[0], -one.log_prob - weight * len(respected(mentions, one.text))

        first, *others = nbest.hypotheses
        least = min(_lacks(mentions, one.text) for one in nbest.hypotheses)
        better = [one for one in found.values() if _lacks(mentions, one.text) < least]
        if not better:
            return nbest
        made = sorted(better, key=value)[: max(1, size // 2)]
        if size == 1:
            return replace(nbest, hypotheses=(min([first, *made], key=value),))
        kept = [*others[: size - 1 - len(made)], *made]
        return replace(nbest, hypotheses=(first, *sorted(kept, key=lambda one: -one.log_prob)))

    def _with_mention(
        self, source: str, mention: Mention, bases: Sequence[str], *, inserted: bool
    ) -> list[_Draft]:
        """Return translations that have a term, the likeliest first; `inserted` adds it to the words."""
        first, *others = mention.entry.targets if not mention.entry.keep else (mention.text,)
        drafts = [
            _Draft(base, start, end).with_term(first)
            for base in bases
            for base, start, end in self._places(source, mention, base, inserted)
        ]
        best = _best(self._score(source, drafts), _PLACES)
        best += self._score(source, [one.with_term(target) for one in best for target in others])
        best = _best([*best, *self._rewrite(source, [first, *others], _best(best, _REWRITTEN))], _KEPT)
        return [one for one in best if mention.rendering(one.text) is not None]

    def _places(self, source: str, mention: Mention, base: str, inserted: bool) -> list[tuple[str, int, int]]:
        """Return where a translation seems to say a term, with the translation; also single words there.

        With `inserted`, these are the places after each word. Where no spaces separate words there are none.
        """
        if has_no_spaces(base):
            return []
        if inserted:
            ends = [match.end() for match in _WORD.finditer(base)]
            return [(f"{base[:end]} {base[end:]}", end + 1, end + 1) for end in ends]
        start, end = align_range(source, mention.start, mention.end, base, self.model)
        words = [match.span() for match in _WORD.finditer(base)]
        inside = [word for word in words if word[0] < end and start < word[1]]
        if not inside:
            return []
        first, last = inside[0], inside[-1]
        return [(base, *place) for place in sorted({(first[0], last[1]), first, last})]

    def _rewrite(self, source: str, targets: Sequence[str], drafts: Sequence[_Draft]) -> list[_Draft]:
        """Let the model write what is before a term again, and then all that follows it.

        One word takes the place of the last or the last two: “à la porte” becomes “au portail”.
        """
        model = self.model
        if not isinstance(model, Completes) or not drafts:
            return []
        found = list(drafts)
        for draft in drafts:
            before = draft.text[: draft.start].split()
            kept = [" ".join(before[:-dropped]) for dropped in (1, 2) if dropped <= len(before)]
            lefts = [
                " ".join([*start.split(), *other[len(start) :].split()[:1], ""])
                for start, others in zip(kept, model.completions(source, kept, _LEFT), strict=True)
                for other in others
                if other.startswith(start)
            ]
            found += [
                _Draft(left + draft.text[draft.start :], len(left), len(left) + draft.end - draft.start)
                for left in dict.fromkeys(lefts)
            ]
        found = _best(self._score(source, found), _REWRITTEN)
        found += self._score(source, [one.with_term(target) for one in found for target in targets])
        best = _best(found, _REWRITTEN)
        asked = [one.text[: one.end] for one in best]
        for draft, texts in zip(best, model.completions(source, asked, _RIGHT), strict=True):
            same = [text for text in texts if text.startswith(draft.text[: draft.end])]
            # shorter ones are likelier, because they leave something out
            least = len(draft.text.split())
            whole = [
                text
                for text in same
                if len(text.split()) >= least and not text[draft.end : draft.end + 1].isalnum()
            ]
            found += self._score(source, [replace(draft, text=text) for text in whole])
        return found

    def _score(self, source: str, drafts: Iterable[_Draft]) -> list[_Draft]:
        """Give drafts their log p; those that the model can't write are left out."""
        distinct = list({one.text: one for one in drafts if self.model.fits(source, one.text)}.values())
        scores = self.model.log_probs([source] * len(distinct), [one.text for one in distinct])
        return [replace(one, log_prob=score) for one, score in zip(distinct, scores, strict=True)]


def as_hypothesis(
    model: TranslationModel, text: TokenText | None, translation: str, log_prob: float, vocabulary: str
) -> Hypothesis:
    """Return a candidate as a hypothesis of a list, with ids of the list's vocabulary if one of two has it.

    These are the model's and `text`.
    """
    known = [model.target_text] if isinstance(model, Completes) else []
    known += [text] if text is not None else []
    ids = next((one.encode(translation) for one in known if one.identity == vocabulary), ())
    return Hypothesis(translation, log_prob, tuple(ids), made=True)


def evidence(nbest: NBest) -> list[tuple[str, float]]:
    """Return the better half of a list as the S-NMT made it, each hypothesis with its probability in it.

    Candidates that were made for terms or names are left out; they take the places of the worse half.
    """
    half = (len(nbest.hypotheses) + 1) // 2
    own = [one for one in nbest.hypotheses if not one.made][:half]
    best = max((one.log_prob for one in own), default=0.0)
    weights = [math.exp(one.log_prob - best) for one in own]
    return [(one.text, weight / sum(weights)) for one, weight in zip(own, weights, strict=True)]


def respected(mentions: Sequence[Mention], text: str) -> tuple[Mention, ...]:
    """Return the mentions that a translation respects."""
    return tuple(mention for mention in mentions if mention.rendering(text) is not None)


def _lacks(mentions: Sequence[Mention], text: str) -> tuple[int, int]:
    """Count the terms that a translation must have and lacks, and all that it lacks."""
    missing = [mention for mention in mentions if mention.rendering(text) is None]
    return sum(mention.entry.must for mention in missing), len(missing)


def _best(drafts: Iterable[_Draft], count: int) -> list[_Draft]:
    return sorted({one.text: one for one in drafts}.values(), key=lambda one: -one.log_prob)[:count]
