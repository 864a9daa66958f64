"""Why a translation fits its context, token by token: one function for --explain, /why and --errors.

It computes what it shows, whatever the search or the objective looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cadec_cli.decoding.translation import TranslatedPart
from cadec_cli.engines.protocols import LanguageModel, trie_for
from cadec_cli.errors import CadecError
from cadec_cli.method.context import Context, room
from cadec_cli.method.hypotheses import Ids, NBest
from cadec_cli.method.options import ScoringOptions


@dataclass(frozen=True)
class ExplainedText:
    """A translation to be explained: with its log p(y|x), unless that is unknown."""

    name: str
    nbest: NBest  # a list of one
    log_prob: float | None

    @classmethod
    def of(cls, name: str, part: TranslatedPart, index: int) -> ExplainedText:
        """One of the hypotheses of a part."""
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
        """What the context does to it."""
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
    """What was read as context, and the translations that are compared."""

    context: tuple[str, ...]
    rows: tuple[ExplainedRow, ...]


def explain(
    language: LanguageModel | None,
    rows: Sequence[ExplainedText],
    context: Context,
    scoring_options: ScoringOptions,
) -> Explanation:
    """Score the tokens of some translations after a context and without it.

    After an empty context the two are one and the same, so that PMI is 0 exactly.
    """
    if language is None:
        raise CadecError("this bundle has no document language model: context changes nothing")
    text = language.text
    ids: list[Ids] = [row.nbest.ids_for(text)[0] for row in rows]
    tries = [trie_for(language, [sentence]) for sentence in ids]
    free = language.score(tries, [Context()] * len(tries), scoring_options)
    # Memory is of what was searched; here everything is read anew, as far as it fits before the longest.
    longest = max((trie.depth for trie in tries), default=0)
    read = context.without_memory().truncate(room(language.positions, longest))
    conditional = language.score(tries, [read] * len(tries), scoring_options) if read.sentences else free
    explained = []
    for row, sentence, after, alone in zip(rows, ids, conditional, free, strict=True):
        pieces = text.display_tokens([*sentence, text.boundary])
        scores = zip(after.tokens(0).tolist(), alone.tokens(0).tolist(), strict=True)
        tokens = tuple(TokenPMI(piece, c, f) for piece, (c, f) in zip(pieces, scores, strict=False))
        explained.append(ExplainedRow(row.name, row.log_prob, tokens))
    return Explanation(tuple(text.decode(sentence) for sentence in read.sentences), tuple(explained))
