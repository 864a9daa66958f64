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
import numpy.typing as npt

from cadec_cli import console
from cadec_cli.bundle.loading import Models
from cadec_cli.bundle.opening import Bundle
from cadec_cli.engines.torch_lm import LMScorer
from cadec_cli.errors import CadecError
from cadec_cli.evaluation.aligned import AlignedText
from cadec_cli.method.context import Context, Ids
from cadec_cli.text.pipeline import TextPipeline

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

# Sentences handed to the scorer at a time, between two steps of the progress bar.
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


class TextScorer:
    """A D-LM with the text pipeline it reads by."""

    def __init__(self, scorer: LMScorer, pipeline: TextPipeline) -> None:
        self.scorer = scorer
        self.pipeline = pipeline

    @classmethod
    def open(cls, directory: Path, *, device: str = "auto", threads: int = 0) -> TextScorer:
        """The D-LM of a bundle, in full precision: what is looked at here are differences."""
        bundle = Bundle.open(directory)
        if not bundle.has_lm:
            raise CadecError(
                f"the bundle {directory} has no D-LM, and PMI needs one",
                "`cadec convert --lm … --target-pipeline … -o …` makes a bundle that can score a language",
            )
        models = Models(bundle, device=device, compute_type="float32", threads=threads)
        return cls(LMScorer(models.language_model), bundle.lm_pipeline)

    @property
    def language(self) -> str:
        """The language of the texts it can score."""
        return self.pipeline.language

    def encode(self, text: AlignedText) -> EncodedText:
        """Turn a text into ids and score it without context, each distinct sentence once."""
        documents = tuple(
            tuple(tuple(self.pipeline.encode(sentence)) for sentence in document)
            for document in text.documents
        )
        sentences = [sentence for document in documents for sentence in document]
        distinct = list(dict.fromkeys(sentences))
        scores = self._score(distinct, [Context()] * len(distinct), f"{text.name}, no context")
        found = dict(zip(distinct, scores, strict=True))
        return EncodedText(text.name, documents, np.array([found[sentence] for sentence in sentences]))

    def after(
        self, text: EncodedText, contexts: Sequence[Sequence[Ids]], what: str = "own contexts"
    ) -> ContextScores:
        """Score every sentence after a context; the oldest sentences that do not fit are dropped."""
        sentences = text.sentences
        positions = self.scorer.positions
        fitted = [
            Context(tuple(context)).fitted(positions - min(len(sentence), positions - 1))
            for sentence, context in zip(sentences, contexts, strict=True)
        ]
        in_context = np.array([bool(context.sentences) for context in fitted])
        chosen = np.flatnonzero(in_context)
        conditional = text.free.copy()
        conditional[chosen] = self._score(
            [sentences[i] for i in chosen], [fitted[i] for i in chosen], f"{text.name}, {what}"
        )
        return ContextScores(conditional, text.free, in_context)

    def _score(self, sentences: Sequence[Ids], contexts: Sequence[Context], what: str) -> Floats:
        totals: list[float] = []
        with console.progress("sentences") as bar:
            task = bar.add_task(console.visible(what), total=len(sentences))
            for start in range(0, len(sentences), _CHUNK):
                chunk = slice(start, start + _CHUNK)
                tries = [self.scorer.trie([sentence]) for sentence in sentences[chunk]]
                scored = self.scorer.score(tries, contexts[chunk])
                totals += [float(one.totals[0, 0]) for one in scored]
                bar.advance(task, len(tries))
        if not np.isfinite(totals).all():
            raise CadecError(
                f"{what}: the D-LM gives a log-probability that is no number", "its weights are damaged"
            )
        return np.array(totals)


def own_contexts(documents: Sequence[Sequence[Ids]], size: int) -> list[tuple[Ids, ...]]:
    """The last `size` sentences before every sentence, in its own document; empty ones are none."""
    return [_before(document, number, size) for document in documents for number in range(len(document))]


def random_contexts(
    documents: Sequence[Sequence[Ids]], size: int, rng: np.random.Generator
) -> list[tuple[Ids, ...]]:
    """The last `size` sentences before a random place in another document, for every sentence.

    The first sentence of a document gets none here either, so that the same sentences are compared.
    """
    if len(documents) < 2:
        raise CadecError(
            "random contexts come from another document, and there is only one",
            "part the documents by blank lines",
        )
    contexts: list[tuple[Ids, ...]] = []
    for own, document in enumerate(documents):
        for number in range(len(document)):
            other = int(rng.integers(len(documents) - 1))
            other += other >= own
            place = int(rng.integers(1, len(documents[other]) + 1))
            contexts.append(_before(documents[other], place, size) if number else ())
    return contexts


def _before(document: Sequence[Ids], number: int, size: int) -> tuple[Ids, ...]:
    return tuple(filter(None, document[max(0, number - size) : number]))


def own_scores(scorer: TextScorer, text: AlignedText, context: int) -> ContextScores:
    """A text's scores with its own contexts."""
    encoded = scorer.encode(text)
    return scorer.after(encoded, own_contexts(encoded.documents, context))


def pmi_statistics(scores: ContextScores) -> Floats:
    """What the mean PMI of a text is made of: (PMI, 1) a sentence, (0, 0) for one without context."""
    return np.stack([np.where(scores.in_context, scores.pmi, 0.0), scores.in_context.astype(float)], axis=1)
