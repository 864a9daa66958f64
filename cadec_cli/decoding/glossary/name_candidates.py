"""Candidates with the rendering of a name that the rest of the document has, in its forms.

The best hypotheses of a sentence are taken, and the word that renders the name in them otherwise is replaced:
by forms of the rendering. It is a word that was found in place of the rendering elsewhere in the
document, one that is spelt much like it, or the word that becomes unlikely when the name is left out of the
source. Candidates are scored exactly, log p(y|x), those of many sentences at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cadec_cli.decoding.glossary.candidates import as_hypothesis, evidence
from cadec_cli.decoding.protection.tag_placement import align_range
from cadec_cli.engines.protocols import TokenScores, TranslationModel
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.text.glossary.entries import Mention
from cadec_cli.text.name_memory import FoundName, misspelt
from cadec_cli.text.protected.core import Core
from cadec_cli.text.token_text import TokenText
from cadec_cli.text.word_forms import common_beginning

_FORMS = (3, 1)  # by how many forms a name is replaced in the best hypothesis, and in the second
_ROUNDS = 3  # names of a sentence that are replaced, one after the other

# The rendering of a name in lower case; None if it is not known.
Known = Callable[[str], FoundName | None]


@dataclass(frozen=True)
class _Draft:
    """A translation that lacks some names, and its log p."""

    text: str
    log_prob: float


@dataclass(frozen=True)
class NameCandidates:
    """Makes candidates with a translation model; `text` is the vocabulary that lists may have ids of.

    The languages are codes; `weight` is the reward for a name.
    """

    model: TranslationModel
    weight: float
    target_language: str = ""
    text: TokenText | None = None

    def complete(self, cores: Sequence[Core], lists: Sequence[NBest], known: Sequence[Known]) -> list[NBest]:
        """Return the lists with candidates in the place of their last hypotheses.

        Only lists whose first hypothesis lacks a name get any. A list keeps its length and its first.
        """
        found = list(lists)
        bases: dict[int, list[_Draft]] = {}
        made: dict[int, dict[str, _Draft]] = {}
        for number, (core, nbest) in enumerate(zip(cores, lists, strict=True)):
            if core.names and nbest.hypotheses and _lacking(core, nbest.hypotheses[0].text):
                bases[number] = [_Draft(one.text, one.log_prob) for one in nbest.hypotheses[: len(_FORMS)]]
                made[number] = {}
        for _ in range(_ROUNDS):
            asked = [
                (number, text)
                for number, drafts in bases.items()
                for text in self._replace(cores[number], drafts, lists[number], known[number])
                if self.model.fits(cores[number].text, text)
            ]
            if not asked:
                break
            scores = self.model.log_probs([cores[number].text for number, _ in asked], [t for _, t in asked])
            bases = {}
            for (number, text), score in zip(asked, scores, strict=True):
                made[number][text] = _Draft(text, score)
                if _lacking(cores[number], text):
                    bases.setdefault(number, []).append(made[number][text])
            bases = {
                number: sorted(drafts, key=lambda one: -one.log_prob)[: len(_FORMS)]
                for number, drafts in bases.items()
            }
        for number, drafts in made.items():
            found[number] = self._with(cores[number], lists[number], list(drafts.values()))
        return found

    def _replace(self, core: Core, drafts: Sequence[_Draft], nbest: NBest, known: Known) -> list[str]:
        """Return the drafts with the first name that they lack and that can be replaced, in every form."""
        said = frozenset(form.lower() for mention in core.names for form in mention.entry.targets)
        texts: dict[str, None] = {}
        for draft, most in zip(drafts, _FORMS, strict=False):
            for mention in _lacking(core, draft.text):
                word = self._word(core, mention, draft.text, nbest, known, said)
                if word:
                    texts |= {
                        new: None
                        for form in _likely_forms(mention.entry.targets, word)[:most]
                        if (new := _with_word(draft.text, word, form)) != draft.text
                        and mention.rendering(new) is not None
                    }
                    break
        return list(texts)

    def _word(
        self, core: Core, mention: Mention, text: str, nbest: NBest, known: Known, said: frozenset[str]
    ) -> str:
        """Return the word of a translation that renders a name otherwise; empty if there seems to be none."""
        name = known(mention.entry.source.lower())
        if name is None:
            return ""
        words = misspelt(text, name, self.target_language, said)
        if words:
            return words[0]
        if text != nbest.hypotheses[0].text or not isinstance(self.model, TokenScores):
            return ""  # aligning takes long, so only the best hypothesis is aligned
        if any(mention.rendering(one.text) is not None for one in nbest.hypotheses):
            return ""
        start, end = align_range(core.text, mention.start, mention.end, text, self.model)
        aligned = [word for word in re.findall(r"\w{3,}", text[start:end]) if word.lower() not in said]
        capital = [word for word in aligned if word[0].isupper()]
        return capital[-1] if capital else aligned[0] if len(aligned) == 1 else ""

    def _with(self, core: Core, nbest: NBest, drafts: Sequence[_Draft]) -> NBest:
        """Return a list with the best drafts that have more names than its first hypothesis."""

        def value(text: str, log_prob: float) -> float:
            return log_prob - self.weight * len(_lacking(core, text))

        there = {one.text for one in nbest.hypotheses}
        most = len(_lacking(core, nbest.hypotheses[0].text))
        better = [one for one in drafts if one.text not in there and len(_lacking(core, one.text)) < most]
        if not better:
            return nbest
        size = len(nbest.hypotheses)
        best = sorted(better, key=lambda one: -value(one.text, one.log_prob))[: max(1, size // 4)]
        made = [self._hypothesis(one, nbest.vocabulary) for one in best]
        first, *others = nbest.hypotheses
        if size == 1:
            return replace(nbest, hypotheses=(max([first, *made], key=lambda h: value(h.text, h.log_prob)),))
        stay = {text for text, _ in evidence(nbest)}  # which decides on names, also later
        others = [one for one in others if one.text in stay] + [one for one in others if one.text not in stay]
        kept = [*others[: size - 1 - len(made)], *made]
        return replace(nbest, hypotheses=(first, *sorted(kept, key=lambda one: -one.log_prob)))

    def _hypothesis(self, draft: _Draft, vocabulary: str) -> Hypothesis:
        return as_hypothesis(self.model, self.text, draft.text, draft.log_prob, vocabulary)


def _likely_forms(forms: Sequence[str], word: str) -> list[str]:
    """Return forms of a rendering, those first that end as a word does in whose place they are put."""

    def ending(form: str) -> int:
        return common_beginning(form[::-1], word[::-1])

    return sorted(forms, key=lambda form: -ending(form))


def _with_word(text: str, word: str, other: str) -> str:
    """Return a text with another word in the place of one."""
    return re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", other.replace("\\", r"\\"), text)


def _lacking(core: Core, text: str) -> list[Mention]:
    return [mention for mention in core.names if mention.rendering(text) is None]
