"""Passages for translation models that read several sentences, and the models that read them joined.

A passage is a few sentences of a document, one of which is to be translated. Each model decides which
sentences it reads: the ones before, or the group that the sentence is in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cadec_cli.engines.protocols import Passage, TranslationModel
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.models.configs import PASSAGE_SENTENCES
from cadec_cli.text.pipeline import join_passage, split_passage

# The beam for the sentence-level translations that are to be repaired.
DRAFT_BEAM = 4


def sentences_before(sentences: Sequence[str], place: int, count: int) -> Passage:
    """A sentence and up to `count` before it; blank ones are left out."""
    before = [text for text in sentences[max(0, place - count) : place] if text.strip()]
    return Passage((*before, sentences[place]), len(before))


@dataclass(frozen=True)
class TwoToTwoModel:
    """Translates the preceding and the current sentence as one; the last part of the output is used."""

    model: TranslationModel

    def fits(self, sentence: str) -> bool:
        """Tell whether the model can read the whole sentence."""
        return self.model.fits(sentence)

    def passage(self, sentences: Sequence[str], place: int) -> Passage:
        """The sentence, after the one before if there is one and both fit."""
        passage = sentences_before(sentences, place, PASSAGE_SENTENCES["2-to-2"] - 1)
        return (
            passage if self.model.fits(join_passage(passage.sentences)) else Passage((passage.sentence,), 0)
        )

    def last_passage(self, sentences: Sequence[str]) -> Passage:
        """The passage of the last of the given sentences."""
        return self.passage(sentences, len(sentences) - 1)

    def nbest(self, passages: Sequence[Passage], count: int) -> list[NBest]:
        """Translations of the last sentence; of several with the same last sentence, the likeliest.

        A translation of two sentences is used only if it is two sentences. If none is, the sentence is
        translated alone.
        """
        lists = self._parts(passages, count)
        failed = [index for index, nbest in enumerate(lists) if not nbest.hypotheses]
        alone = self._parts([Passage((passages[index].sentence,), 0) for index in failed], count)
        for index, nbest in zip(failed, alone, strict=True):
            lists[index] = nbest
        return lists

    def log_probs(self, passages: Sequence[Passage], targets: Sequence[Sequence[str]]) -> list[float]:
        """log p of both sentences, the end of the second included."""
        return _joined_log_probs(self.model, [passage.sentences for passage in passages], targets)

    def _parts(self, passages: Sequence[Passage], count: int) -> list[NBest]:
        filled = [passage for passage in passages if passage.sentence.strip()]
        found = iter(self.model.nbest([join_passage(passage.sentences) for passage in filled], count))
        return [
            _at_place(passage, passage, next(found))
            if passage.sentence.strip()
            else NBest(passage.sentence, ())
            for passage in passages
        ]


@dataclass(frozen=True)
class RepairModel:
    """Rewrites groups of sentence-level translations so that they fit each other.

    `draft` returns the likeliest sentence-level translation of each sentence, with its score.
    """

    model: TranslationModel
    draft: Callable[[Sequence[str]], list[Hypothesis]]

    def fits(self, sentence: str) -> bool:
        """Return True: a draft that does not fit is left as it is."""
        return True

    def passage(self, sentences: Sequence[str], place: int) -> Passage:
        """The group that a sentence is in, counted from the beginning of the document."""
        size = PASSAGE_SENTENCES["repair"]
        first = place - place % size
        group = sentences[first : first + size]
        kept = [index for index, text in enumerate(group) if text.strip() or first + index == place]
        return Passage(tuple(group[index] for index in kept), kept.index(place - first))

    def last_passage(self, sentences: Sequence[str]) -> Passage:
        """The largest group that ends with the last of the given sentences."""
        return sentences_before(sentences, len(sentences) - 1, PASSAGE_SENTENCES["repair"] - 1)

    def nbest(self, passages: Sequence[Passage], count: int) -> list[NBest]:
        """Repaired sentences. A group is used only if its number of sentences has not changed.

        If there is none, the draft of the sentence is kept, with the score of the drafted group.
        """
        drafts = self._drafts(passages)
        groups = [self._fitting(passage, drafts) for passage in passages]
        different = list(
            dict.fromkeys(join_passage(group.sentences) for group in groups if group is not None)
        )
        lists = dict(zip(different, self.model.nbest(different, count), strict=True))
        return [
            self._repair(passage, group, lists, drafts[passage.sentence])
            for passage, group in zip(passages, groups, strict=True)
        ]

    def log_probs(self, passages: Sequence[Passage], targets: Sequence[Sequence[str]]) -> list[float]:
        """log p of all sentences of the group, given their sentence-level translations."""
        drafts = self._drafts(passages)
        sources = [tuple(drafts[text].text for text in passage.sentences) for passage in passages]
        return _joined_log_probs(self.model, sources, targets)

    def _drafts(self, passages: Sequence[Passage]) -> dict[str, Hypothesis]:
        texts = list(dict.fromkeys(text for passage in passages for text in passage.sentences))
        return dict(zip(texts, self.draft(texts), strict=True))

    def _fitting(self, passage: Passage, drafts: dict[str, Hypothesis]) -> Passage | None:
        """The drafts of a group; if they are too long, only the current sentence; None if that is, too."""
        group = Passage(tuple(drafts[text].text for text in passage.sentences), passage.place)
        if not group.sentence.strip():
            return None
        alone = Passage((group.sentence,), 0)
        return next((one for one in (group, alone) if self.model.fits(join_passage(one.sentences))), None)

    def _repair(
        self, passage: Passage, group: Passage | None, lists: Mapping[str, NBest], draft: Hypothesis
    ) -> NBest:
        if group is None:
            return NBest(passage.sentence, (draft,) if passage.sentence.strip() else ())
        text = join_passage(group.sentences)
        found = _at_place(passage, group, lists[text])
        if found.hypotheses:
            return found
        score = self.model.log_probs([text], [text])[0] if self.model.fits(text, text) else draft.log_prob
        return NBest(passage.sentence, (Hypothesis(draft.text, score),))


def _at_place(passage: Passage, read: Passage, nbest: NBest) -> NBest:
    """The part of each hypothesis at the place of the current sentence, without duplicates.

    `read` is the passage that was translated. Hypotheses with more or fewer parts, or with an empty part
    there, are left out.
    """
    best: dict[str, float] = {}
    for hypothesis in nbest.hypotheses:
        parts = split_passage(hypothesis.text)
        if len(parts) == len(read.sentences) and parts[read.place].strip():
            best.setdefault(parts[read.place], hypothesis.log_prob)
    return NBest(passage.sentence, tuple(Hypothesis(text, log_prob) for text, log_prob in best.items()))


def draft_model(model: TranslationModel) -> Callable[[Sequence[str]], list[Hypothesis]]:
    """Return a function that drafts sentences with a model; one without a translation stays as it is."""

    def draft(sentences: Sequence[str]) -> list[Hypothesis]:
        lists = model.nbest(sentences, DRAFT_BEAM)
        return [nbest.hypotheses[0] if nbest.hypotheses else Hypothesis(nbest.source, 0.0) for nbest in lists]

    return draft


@dataclass(frozen=True)
class Drafts:
    """Stands in for a translation model if the sentences already are translations.

    `model` will read them, and so knows which are too long.
    """

    model: TranslationModel

    def as_they_are(self, sentences: Sequence[str]) -> list[Hypothesis]:
        """Return each sentence as its own draft."""
        return [Hypothesis(sentence, 0.0) for sentence in sentences]

    def nbest(self, sentences: Sequence[str], count: int) -> list[NBest]:
        """Return each sentence as its only translation."""
        return [NBest(sentence, (Hypothesis(sentence, 0.0),)) for sentence in sentences]

    def log_probs(self, sentences: Sequence[str], targets: Sequence[str]) -> list[float]:
        """Return log 1 for the sentence itself, log 0 for any other."""
        return [
            0.0 if target == sentence else -math.inf
            for sentence, target in zip(sentences, targets, strict=True)
        ]

    def fits(self, sentence: str, target: str = "") -> bool:
        """Tell whether the model can read the whole sentence."""
        return self.model.fits(sentence, target)

    def split(self, sentence: str) -> list[str]:
        """Cut a sentence that does not fit."""
        return self.model.split(sentence)


def _joined_log_probs(
    model: TranslationModel, sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]]
) -> list[float]:
    """Scores of passages; a ValueError if the two sides differ in their number of sentences."""
    for source, target in zip(sources, targets, strict=True):
        if len(source) != len(target):
            raise ValueError(f"{len(target)} translations of {len(source)} sentences")
    return model.log_probs(
        [join_passage(texts) for texts in sources], [join_passage(texts) for texts in targets]
    )
