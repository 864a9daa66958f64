"""PMI of every sentence of a text with its context under a D-LM; no translation model is involved.

    PMI(c, y) = log p(ỹ | c̃) − log p(ỹ | </s>)

The context consists of the preceding sentences of the same document or, as a control, of another document.
A sentence without context has a PMI of 0 by definition, which says nothing: `in_context` marks the sentences
with context, so that means and correlations can leave the others out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cadec_cli.arrays import Bools, Floats
from cadec_cli.decoding.scorer import Scorer
from cadec_cli.engines.protocols import LanguageModel
from cadec_cli.errors import CadecError, option
from cadec_cli.evaluation.aligned import AlignedText, CountProgress, no_progress
from cadec_cli.method.context import Context, ContextPolicy
from cadec_cli.method.hypotheses import Ids

# Sentences that are scored together, between two reports of progress.
_CHUNK = 64


@dataclass(frozen=True)
class ContextScores:
    """Log-probabilities of all sentences of a text, in order: (sentences,)."""

    conditional: Floats  # log p(ỹ | c̃)
    free: Floats  # log p(ỹ | </s>)
    in_context: Bools  # whether there is any context

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
        """Load the D-LM of a bundle, in full precision: PMI is a small difference of large numbers."""
        from cadec_cli.bundle.bundle import Bundle
        from cadec_cli.bundle.load import load_models  # torch, which BLEU alone does not need

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
        scorer = Scorer(self.model)
        free: dict[Ids, float] = {}
        what = f"{text.name}, no context"
        with counted(what, len(distinct)) as advance:
            for start in range(0, len(distinct), _CHUNK):
                chunk = distinct[start : start + _CHUNK]
                totals = scorer.free([scorer.trie([sentence]) for sentence in chunk])
                free.update(zip(chunk, (float(of_sentence[0, 0]) for of_sentence in totals), strict=True))
                advance(len(chunk))
        return EncodedText(
            text.name, documents, _check_finite(np.array([free[sentence] for sentence in sentences]), what)
        )

    def after(
        self,
        text: EncodedText,
        contexts: Sequence[Context],
        policy: ContextPolicy,
        what: str = "own contexts",
        counted: CountProgress = no_progress,
    ) -> ContextScores:
        """Score every sentence after the part of its context that the policy reads."""
        scorer = Scorer(self.model, policy=policy)
        sentences = text.sentences
        read = [
            scorer.context(context, [sentence]) for sentence, context in zip(sentences, contexts, strict=True)
        ]
        in_context = np.array([bool(context.sentences) for context in read], dtype=bool)
        conditional = np.empty_like(text.free)
        # Sentences without context come last: they cost nothing, and would leave other batches half empty.
        order = np.argsort(~in_context, kind="stable")
        what = f"{text.name}, {what}"
        with counted(what, len(order)) as advance:
            for start in range(0, len(order), _CHUNK):
                chunk = order[start : start + _CHUNK]
                scores = scorer.after(
                    [scorer.trie([sentences[index]]) for index in chunk],
                    [read[index] for index in chunk],
                    [text.free[index].reshape(1, 1) for index in chunk],
                )
                conditional[chunk] = [one.totals[0, 0] for one in scores]
                advance(len(chunk))
        return ContextScores(_check_finite(conditional, what), text.free, in_context)


def _check_finite(totals: Floats, what: str) -> Floats:
    if not np.isfinite(totals).all():
        raise CadecError(
            f"{what}: the D-LM gives a log-probability that is not finite", "its weights are damaged"
        )
    return totals


def own_contexts(documents: Sequence[Sequence[Ids]], policy: ContextPolicy) -> list[Context]:
    """The context before every sentence in its own document."""
    return [context for document in documents for context in _before(document, policy)[:-1]]


def random_contexts(
    documents: Sequence[Sequence[Ids]], policy: ContextPolicy, rng: np.random.Generator
) -> list[Context]:
    """For every sentence, the context before a random place of another document.

    The first sentence of a document has no context here either, so that the same sentences are compared.
    """
    if len(documents) < 2:
        raise CadecError(
            "random contexts come from another document, and there is only one",
            "separate the documents by blank lines",
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
    """The context before every sentence and after the last; empty sentences are skipped."""
    contexts = [Context()]
    for ids in document:
        before = contexts[-1]
        contexts.append(policy.trim(before.followed_by(ids)) if ids else before)
    return contexts


def own_scores(
    scorer: TextScorer, text: AlignedText, policy: ContextPolicy, counted: CountProgress = no_progress
) -> ContextScores:
    """Score a text with its own contexts."""
    encoded = scorer.encode(text, counted)
    return scorer.after(encoded, own_contexts(encoded.documents, policy), policy, counted=counted)


def pmi_statistics(scores: ContextScores) -> Floats:
    """The summands of a text's mean PMI: (PMI, 1) per sentence, (0, 0) for one without context."""
    return np.stack([np.where(scores.in_context, scores.pmi, 0.0), scores.in_context.astype(float)], axis=1)
