"""PMI of every sentence of a text with its context, under a D-LM; no translation model is asked.

    PMI(c, y) = log p(ỹ | c̃) − log p(ỹ | </s>)

The context is what stands before the sentence in its own text, or, as a control, in another document.
A sentence without context has PMI 0 by definition, which tells nothing: it is marked, so that means and
correlations leave it out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cadec_cli.arrays import Bools, Floats
from cadec_cli.engines.protocols import LanguageModel, trie_for
from cadec_cli.errors import CadecError, option
from cadec_cli.evaluation.aligned import AlignedText, CountProgress, no_progress
from cadec_cli.method.context import Context, ContextPolicy, room
from cadec_cli.method.hypotheses import Ids
from cadec_cli.method.options import ScoringOptions

# Sentences handed to the D-LM at a time, between two reports of progress.
_CHUNK = 64


@dataclass(frozen=True)
class ContextScores:
    """Log-probabilities of all sentences of a text, in order: (sentences,) each."""

    conditional: Floats  # log p(ỹ | c̃)
    free: Floats  # log p(ỹ | </s>)
    in_context: Bools  # whether there was any context

    @property
    def pmi(self) -> Floats:
        """PMI(c, y); exactly 0 without context."""
        return self.conditional - self.free


@dataclass(frozen=True)
class EncodedText:
    """Documents in a D-LM's ids, and the log p(ỹ | </s>) of every sentence."""

    name: str
    documents: tuple[tuple[Ids, ...], ...]
    free: Floats

    @property
    def sentences(self) -> list[Ids]:
        """The sentences of all documents, in order."""
        return [sentence for document in self.documents for sentence in document]


@dataclass(frozen=True)
class TextScorer:
    """A D-LM that scores texts of its language."""

    model: LanguageModel
    language: str

    @classmethod
    def open(cls, directory: Path, *, device: str = "auto", threads: int = 0) -> TextScorer:
        """The D-LM of a bundle, in full precision: what is looked at here are differences."""
        from cadec_cli.bundle.bundle import Bundle
        from cadec_cli.bundle.load import load_models  # torch; whoever measures strings only needs none

        bundle = Bundle.open(directory)
        models = load_models(bundle, device=device, compute_type="float32", threads=threads)
        if models.language is None:
            raise CadecError(
                f"the bundle {directory} has no D-LM, and PMI needs one",
                f"`cadec convert {option('lm')} … {option('target-pipeline')} … -o …` makes a bundle "
                "that can score a language",
            )
        return cls(models.language, bundle.target_language)

    def encode(self, text: AlignedText, counted: CountProgress = no_progress) -> EncodedText:
        """Turn a text into ids and score it without context, each distinct sentence once."""
        documents = tuple(
            tuple(tuple(self.model.text.encode(sentence)) for sentence in document)
            for document in text.documents
        )
        sentences = [sentence for document in documents for sentence in document]
        distinct = list(dict.fromkeys(sentences))
        scores = self._score(distinct, [Context()] * len(distinct), f"{text.name}, no context", counted)
        free = dict(zip(distinct, scores, strict=True))
        return EncodedText(text.name, documents, np.array([free[sentence] for sentence in sentences]))

    def after(
        self,
        text: EncodedText,
        contexts: Sequence[Context],
        policy: ContextPolicy,
        what: str = "own contexts",
        counted: CountProgress = no_progress,
    ) -> ContextScores:
        """Score every sentence after what the policy reads of a context."""
        sentences = text.sentences
        fitted = [
            policy.read(context, room(self.model.positions, len(sentence)))
            for sentence, context in zip(sentences, contexts, strict=True)
        ]
        in_context = np.array([bool(context.sentences) for context in fitted])
        chosen = np.flatnonzero(in_context)
        conditional = text.free.copy()
        conditional[chosen] = self._score(
            [sentences[i] for i in chosen], [fitted[i] for i in chosen], f"{text.name}, {what}", counted
        )
        return ContextScores(conditional, text.free, in_context)

    def _score(
        self, sentences: Sequence[Ids], contexts: Sequence[Context], what: str, counted: CountProgress
    ) -> Floats:
        totals: list[float] = []
        with counted(what, len(sentences)) as advance:
            for start in range(0, len(sentences), _CHUNK):
                chunk = slice(start, start + _CHUNK)
                tries = [trie_for(self.model, [sentence]) for sentence in sentences[chunk]]
                scored = self.model.score(tries, contexts[chunk], ScoringOptions())
                totals += [float(trie.totals[0, 0]) for trie in scored]
                advance(len(tries))
        if not np.isfinite(totals).all():
            raise CadecError(
                f"{what}: the D-LM gives a log-probability that is no number", "its weights are damaged"
            )
        return np.array(totals)


def own_contexts(documents: Sequence[Sequence[Ids]], policy: ContextPolicy) -> list[Context]:
    """What counts as context before every sentence, in its own document."""
    return [context for document in documents for context in _before(document, policy)[:-1]]


def random_contexts(
    documents: Sequence[Sequence[Ids]], policy: ContextPolicy, rng: np.random.Generator
) -> list[Context]:
    """What counts as context before a random place in another document, for every sentence.

    The first sentence of a document gets none here either, so that the same sentences are compared.
    """
    if len(documents) < 2:
        raise CadecError(
            "random contexts come from another document, and there is only one",
            "part the documents by blank lines",
        )
    places = [_before(document, policy) for document in documents]
    contexts: list[Context] = []
    for this, document in enumerate(documents):
        for number in range(len(document)):
            other = int(rng.integers(len(documents) - 1))
            other += other >= this
            place = int(rng.integers(1, len(documents[other]) + 1))
            contexts.append(places[other][place] if number else Context())
    return contexts


def _before(document: Sequence[Ids], policy: ContextPolicy) -> list[Context]:
    """The context before every sentence and after the last; empty sentences are none, as in a translation."""
    contexts = [Context()]
    for ids in document:
        before = contexts[-1]
        contexts.append(policy.trim(before.followed_by(ids)) if ids else before)
    return contexts


def own_scores(
    scorer: TextScorer, text: AlignedText, policy: ContextPolicy, counted: CountProgress = no_progress
) -> ContextScores:
    """A text's scores with its own contexts."""
    encoded = scorer.encode(text, counted)
    return scorer.after(encoded, own_contexts(encoded.documents, policy), policy, counted=counted)


def pmi_statistics(scores: ContextScores) -> Floats:
    """What the mean PMI of a text is made of: (PMI, 1) per sentence, (0, 0) for one without context."""
    return np.stack([np.where(scores.in_context, scores.pmi, 0.0), scores.in_context.astype(float)], axis=1)
