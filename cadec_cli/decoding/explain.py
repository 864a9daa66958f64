"""Explains why a translation fits its context, token by token.

An explanation always has both scores of every token, whichever of them the search or the objective used. If
the D-LM reads both the target and pairs, they are the sums of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cadec_cli.decoding.scorer import Scorer
from cadec_cli.decoding.translation import TranslatedPart, Translation
from cadec_cli.engines.protocols import LanguageModel
from cadec_cli.errors import CadecError
from cadec_cli.method.context import Context, ContextPolicy, Pair
from cadec_cli.method.hypotheses import NBest
from cadec_cli.method.objectives import PAIRS, TARGET
from cadec_cli.method.options import ScoringOptions


@dataclass(frozen=True)
class ExplainedText:
    """A translation to explain, with its log p(y|x) if that is known."""

    name: str
    nbest: NBest  # a list of one
    log_prob: float | None

    @classmethod
    def of(cls, name: str, part: TranslatedPart, index: int) -> ExplainedText:
        """A hypothesis of a translated part."""
        hypothesis = part.hypotheses[index]
        return cls(name, NBest(part.source, (hypothesis,), part.nbest.vocabulary), hypothesis.log_prob)


@dataclass(frozen=True)
class TokenPMI:
    """A token as people read it, and its log p after the context and without it."""

    text: str
    conditional: float
    free: float

    @property
    def pmi(self) -> float:
        """How much the context raises its log p."""
        return self.conditional - self.free


@dataclass(frozen=True)
class ExplainedRow:
    """A translation with its tokens, the boundary last."""

    name: str
    log_prob: float | None
    tokens: tuple[TokenPMI, ...]

    @property
    def pmi(self) -> float:
        """PMI of the whole sentence with the context."""
        return sum(token.pmi for token in self.tokens)


@dataclass(frozen=True)
class Explanation:
    """The context that was read, and the translations that are compared.

    If the D-LM read pairs, `sources` are the sources of the context; those that are not known are empty.
    """

    context: tuple[str, ...]
    rows: tuple[ExplainedRow, ...]
    sources: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """The context as the D-LM read it: each sentence after its source, if it read pairs."""
        if not self.sources:
            return self.context
        return tuple(f"{x} | {y}" if x else y for x, y in zip(self.sources, self.context, strict=True))


@dataclass(frozen=True)
class ExplainedTranslation:
    """A translation with all that a terminal or a report shows beside it; views run no models themselves."""

    translation: Translation
    sentence_level: str | None = None  # the S-NMT's own translation, if requested
    explanations: Sequence[Explanation] = ()  # one per part, if requested


def explain(
    language: LanguageModel | None,
    rows: Sequence[ExplainedText],
    context: Context,
    scoring_options: ScoringOptions,
    readings: Sequence[str] = (TARGET,),
    source: str = "",
    sources: Sequence[str] = (),
) -> Explanation:
    """Score the tokens of some translations of a source after a context and without it.

    `readings` are what the D-LM reads: target, pairs, or both of them. The source, and the sources of the
    last sentences of the context, matter to pairs only.
    """
    if language is None:
        raise CadecError("this bundle has no document language model: context changes nothing")
    text = language.text
    ids = [row.nbest.ids_for(text)[0] for row in rows]
    # Only the sentences matter: they are read again, as far as they fit, without the search's memory of them.
    seed_sources = tuple(sources)[: context.pinned] if len(sources) == len(context.sentences) else ()
    whole = ContextPolicy(
        len(context.own), seed=context.sentences[: context.pinned], seed_sources=seed_sources
    )
    before = Context(context.sentences, pinned=context.pinned, pairs=tuple(Pair(one, "") for one in sources))
    scorers = [Scorer(language, scoring_options, whole, reads) for reads in readings or (TARGET,)]
    contexts = [scorer.context(before, ids, source) for scorer in scorers]
    shown = whole.translations(before, contexts[0])
    found = [
        scorer.tokens(ids, read, [source] * len(ids)) for scorer, read in zip(scorers, contexts, strict=True)
    ]
    explained = []
    for row, sentence, scores in zip(rows, ids, zip(*found, strict=True), strict=True):
        pieces = text.display_tokens([*sentence, text.boundary])
        conditional = np.sum([one.conditional for one in scores], axis=0)
        free = np.sum([one.free for one in scores], axis=0)
        figures = zip(conditional.tolist(), free.tolist(), strict=True)
        tokens = tuple(TokenPMI(piece, c, f) for piece, (c, f) in zip(pieces, figures, strict=False))
        explained.append(ExplainedRow(row.name, row.log_prob, tokens))
    return Explanation(
        tuple(text.decode(sentence) for sentence in shown.sentences),
        tuple(explained),
        whole.sources(shown) if PAIRS in readings else (),
    )
