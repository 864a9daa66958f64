"""Scores hypotheses with the D-LM after a context and without one: the two halves of PMI.

    PMI(c, y) = log p(ỹ | c̃) − log p(ỹ | </s>)

Searches, contrastive tests, explanations and PMI figures all score here. An empty context gives the scores
without context themselves, so that PMI is exactly 0, and the D-LM is not run for it again.

A list can be scored only when the choices before it are known. With one document, or few, some cores would
then be idle. `ScoreCache` lets them score later lists, as if the S-NMT's first hypothesis were chosen until
then, which is right about four times out of five. A right guess saves a call of the D-LM; a wrong one is
never read.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from cadec_cli.arrays import Floats
from cadec_cli.engines.protocols import LanguageModel, SideBySide, check_temperatures, trie_for
from cadec_cli.method.context import Context, ContextPolicy, Pair, room
from cadec_cli.method.hypotheses import Ids, NBest
from cadec_cli.method.objectives import FREE
from cadec_cli.method.options import ScoringOptions
from cadec_cli.method.trie import ScoredTrie, Trie

# Nodes of a trie that merges the sentences of many lists.
MERGED_NODES = 640


@dataclass(frozen=True)
class ConditionalScores:
    """log p(ỹ | c̃) of every hypothesis of a list."""

    totals: Floats  # (temperatures, hypotheses)
    scored: ScoredTrie | None = None  # absent if the D-LM was not run

    def memory_after(self, index: int) -> object | None:
        """The D-LM's memory of the context followed by a hypothesis, if it was asked to remember."""
        return None if self.scored is None else self.scored.memory_after(index)


@dataclass(frozen=True)
class TokenLogProbs:
    """log p of every token of a sentence, the boundary last, at the first temperature."""

    conditional: Floats  # (tokens,)
    free: Floats  # (tokens,)


@dataclass(frozen=True)
class Scorer:
    """A D-LM, how its probabilities are read, and the policy that decides which context it reads."""

    language: LanguageModel
    options: ScoringOptions = field(default_factory=ScoringOptions)
    policy: ContextPolicy = field(default_factory=ContextPolicy)

    def __post_init__(self) -> None:
        check_temperatures(self.language, self.options.temperatures)

    def trie(self, hypotheses: Sequence[Ids]) -> Trie:
        """Merge hypotheses; tokens beyond the D-LM's positions are not scored."""
        return trie_for(self.language, hypotheses)

    def room(self, hypotheses: Sequence[Ids]) -> int:
        """How many tokens of context fit before the longest hypothesis."""
        return room(self.language.positions, max(map(len, hypotheses), default=0))

    def context(self, before: Context, hypotheses: Sequence[Ids]) -> Context:
        """The part of the preceding sentences that the D-LM reads before these hypotheses."""
        return self.policy.read(before, self.room(hypotheses))

    def free(self, tries: Sequence[Trie]) -> list[Floats]:
        """log p(ỹ | </s>) of the hypotheses of each trie, (temperatures, hypotheses), in one call."""
        return [scored.totals for scored in self._score_free(tries)]

    def free_by_sentence(self, sentences: Iterable[Ids]) -> dict[Ids, Floats]:
        """log p(ỹ | </s>) of each distinct sentence, (temperatures,).

        Use it for lists that share sentences or beginnings: those of all lists are merged into few tries.
        """
        pools = list(_pools(sorted(set(sentences))))
        totals = self.free([self.trie(pool) for pool in pools])
        return {
            ids: scores
            for pool, of_pool in zip(pools, totals, strict=True)
            for ids, scores in zip(pool, of_pool.T, strict=True)
        }

    def needs_model(self, context: Context, free: Floats | None) -> bool:
        """Tell whether the D-LM has to run to score a list after `context`, given its free scores if known.

        A rolling context needs the D-LM even if it is empty: its memory starts there.
        """
        return bool(context.sentences) or free is None or self.policy.rolling

    def after(
        self, tries: Sequence[Trie], contexts: Sequence[Context], free: Sequence[Floats | None]
    ) -> list[ConditionalScores]:
        """Score each trie after its context, which must fit, in one call of the D-LM.

        `free` has the totals of each trie without context, or None where they are not known. They are the
        scores after an empty context.
        """
        asked = [
            number
            for number, (context, known) in enumerate(zip(contexts, free, strict=True))
            if self.needs_model(context, known)
        ]
        made: dict[int, ScoredTrie] = {}
        if asked:
            results = self.language.score(
                [tries[number] for number in asked],
                [contexts[number] for number in asked],
                self.options,
                remember=self.policy.rolling,
            )
            made = dict(zip(asked, results, strict=True))
        scores = []
        for number, (context, known) in enumerate(zip(contexts, free, strict=True)):
            scored = made.get(number)
            if known is not None and not context.sentences:
                scores.append(ConditionalScores(known, scored))
            else:
                assert scored is not None
                scores.append(ConditionalScores(scored.totals, scored))
        return scores

    def tokens(self, sentences: Sequence[Ids], context: Context) -> list[TokenLogProbs]:
        """Score the tokens of each sentence after one context, which must fit, and without it."""
        tries = [self.trie([ids]) for ids in sentences]
        free = self._score_free(tries)
        conditional = free
        if context.sentences:
            conditional = self.language.score(tries, [context] * len(tries), self.options)
        return [
            TokenLogProbs(after.tokens(0), alone.tokens(0))
            for after, alone in zip(conditional, free, strict=True)
        ]

    def _score_free(self, tries: Sequence[Trie]) -> list[ScoredTrie]:
        return self.language.score(tries, [Context()] * len(tries), self.options)


def _pools(ordered: Iterable[Ids]) -> Iterator[list[Ids]]:
    """Group sorted sentences such that the trie of each group has at most MERGED_NODES nodes."""
    pool: list[Ids] = []
    nodes = 1
    for ids in ordered:
        shared = _common_prefix(pool[-1], ids) if pool else 0
        if pool and nodes + len(ids) - shared > MERGED_NODES:
            yield pool
            pool, nodes, shared = [], 1, 0
        pool.append(ids)
        nodes += len(ids) - shared
    if pool:
        yield pool


def _common_prefix(first: Ids, second: Ids) -> int:
    """How many tokens two sentences share at their beginning."""
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


@dataclass(frozen=True, eq=False)
class Column:
    """One sentence of the lattice: its hypotheses in the D-LM's ids, and the terms that need no context.

    A term is (hypotheses,), or (temperatures, hypotheses) if it is the D-LM's.
    """

    nbest: NBest
    ids: tuple[Ids, ...]
    terms: dict[str, Floats]
    trie: Trie | None  # absent if no D-LM reads it

    def extend(self, before: Context, index: int, memory: object | None = None) -> Context:
        """The context after a hypothesis; `memory` is the D-LM's memory of it."""
        pair = Pair(self.nbest.source, self.nbest.hypotheses[index].text, self.nbest)
        return before.followed_by(self.ids[index], memory, pair)


@dataclass(frozen=True)
class Request:
    """A column to be scored after the context of a path."""

    column: Column
    before: Context  # all that the path remembers
    context: Context  # the part of it that the D-LM reads
    upcoming: Sequence[Column] = ()  # the next columns of the document

    @property
    def key(self) -> tuple[Column, tuple[Ids, ...]]:
        """Requests with equal keys have the same scores."""
        return self.column, self.context.sentences

    def following(self, scorer: Scorer) -> Request:
        """The request for the next column if this one's first hypothesis is chosen."""
        before = scorer.policy.trim(self.column.extend(self.before, 0))
        column, *upcoming = self.upcoming
        return Request(column, before, scorer.context(before, column.ids), upcoming)


class ScoreCache:
    """Answers requests, and remembers the answers until `keep_only` drops them.

    With `look_ahead`, guessed later requests fill the D-LM's batches, if it can score several lists in the
    time of one.
    """

    def __init__(self, scorer: Scorer, *, look_ahead: bool = False) -> None:
        self._scorer = scorer
        self._known: dict[tuple[Column, tuple[Ids, ...]], ConditionalScores] = {}
        language = scorer.language
        # The memory of a rolling context belongs to one path, so that nothing can be scored for another.
        look_ahead = look_ahead and not scorer.policy.rolling
        self.batch_size = language.batch_size if look_ahead and isinstance(language, SideBySide) else 1

    def scores(self, requests: Sequence[Request]) -> list[ConditionalScores]:
        """log p(ỹ | c̃) for every request, in one call of the D-LM at most."""
        if self._scorer.policy.rolling:
            return self._score(requests)
        missing = {request.key: request for request in requests if request.key not in self._known}
        count = sum(map(self._needs_model, missing.values()))
        free_places = -count % self.batch_size
        for guess in self._guesses(requests):
            if not free_places:
                break
            if guess.key not in self._known and guess.key not in missing and self._needs_model(guess):
                missing[guess.key] = guess
                free_places -= 1
        self._known.update(zip(missing, self._score(list(missing.values())), strict=True))
        return [self._known[request.key] for request in requests]

    def keep_only(self, columns: Collection[Column]) -> None:
        """Forget the scores of all other columns."""
        self._known = {key: scores for key, scores in self._known.items() if key[0] in columns}

    def _guesses(self, requests: Sequence[Request]) -> Iterator[Request]:
        """Guess later requests, the nearest first."""
        latest = list(requests)
        for _ in range(max((len(request.upcoming) for request in requests), default=0)):
            for place, request in enumerate(latest):
                if request.upcoming:
                    latest[place] = request.following(self._scorer)
                    yield latest[place]

    def _needs_model(self, request: Request) -> bool:
        return self._scorer.needs_model(request.context, request.column.terms.get(FREE))

    def _score(self, requests: Sequence[Request]) -> list[ConditionalScores]:
        return self._scorer.after(
            [_trie(request.column) for request in requests],
            [request.context for request in requests],
            [request.column.terms.get(FREE) for request in requests],
        )


def _trie(column: Column) -> Trie:
    assert column.trie is not None, "only columns that a D-LM reads are scored"
    return column.trie
