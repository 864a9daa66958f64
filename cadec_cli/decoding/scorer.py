"""Scores hypotheses with the D-LM after a context and without one: the two halves of PMI.

    PMI(c, y) = log p(ỹ | c̃) − log p(ỹ | </s>)

Searches, contrastive tests, explanations and PMI figures all score here. An empty context gives the scores
without context themselves, so that PMI is exactly 0, and the D-LM is not run for it again.

A scorer reads the translations before, or pairs: then both halves know the source x of the sentence itself,
PMI(c, y) = log p(ỹ | pairs, x) − log p(ỹ | x), and there is one scorer for each of the two ways.

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
from cadec_cli.engines.protocols import (
    LanguageModel,
    SideBySide,
    check_temperatures,
    pairs_reader,
    trie_for,
)
from cadec_cli.method.context import Context, ContextPolicy, Pair, room
from cadec_cli.method.hypotheses import Ids, NBest
from cadec_cli.method.objectives import LM_TERMS_OF, PAIRS, TARGET
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
    """A D-LM, how its probabilities are read, and the policy that decides which context it reads.

    `reads` is target or pairs. The sources that methods are given matter to pairs only.
    """

    language: LanguageModel
    options: ScoringOptions = field(default_factory=ScoringOptions)
    policy: ContextPolicy = field(default_factory=ContextPolicy)
    reads: str = TARGET

    def __post_init__(self) -> None:
        check_temperatures(self.language, self.options.temperatures)
        if self.reads == PAIRS:
            pairs_reader(self.language)

    @property
    def conditional_term(self) -> str:
        """The name of the term log p after the context."""
        return LM_TERMS_OF[self.reads][0]

    @property
    def free_term(self) -> str:
        """The name of the term log p without it."""
        return LM_TERMS_OF[self.reads][1]

    def trie(self, hypotheses: Sequence[Ids]) -> Trie:
        """Merge hypotheses; tokens beyond the D-LM's positions are not scored."""
        return trie_for(self.language, hypotheses)

    def room(self, hypotheses: Sequence[Ids]) -> int:
        """How many tokens of context fit before the longest hypothesis."""
        return room(self.language.positions, max(map(len, hypotheses), default=0))

    def context(self, before: Context, hypotheses: Sequence[Ids], source: str = "") -> Context:
        """The part of the preceding sentences that the D-LM reads before these hypotheses, as it reads it."""
        return read_context(self.language, self.reads, self.policy, before, self.room(hypotheses), source)

    def source_read(self, source: str) -> str:
        """The part of a source that scores without context depend on: nothing, or all of it."""
        return source if self.reads == PAIRS else ""

    def free(self, tries: Sequence[Trie], sources: Sequence[str] | None = None) -> list[Floats]:
        """log p(ỹ | </s>) of the hypotheses of each trie, (temperatures, hypotheses), in one call."""
        return [scored.totals for scored in self._score_free(tries, sources)]

    def free_by_sentence(self, sentences: Iterable[tuple[str, Ids]]) -> dict[tuple[str, Ids], Floats]:
        """log p(ỹ | </s>) of each distinct sentence, (temperatures,), given with what is read of its source.

        Use it for lists that share sentences or beginnings: those of all lists are merged into few tries.
        """
        by_source: dict[str, set[Ids]] = {}
        for source, ids in sentences:
            by_source.setdefault(source, set()).add(ids)
        pools = [(source, pool) for source, found in by_source.items() for pool in _pools(sorted(found))]
        totals = self.free([self.trie(pool) for _, pool in pools], [source for source, _ in pools])
        return {
            (source, ids): scores
            for (source, pool), of_pool in zip(pools, totals, strict=True)
            for ids, scores in zip(pool, of_pool.T, strict=True)
        }

    def needs_model(self, context: Context, free: Floats | None) -> bool:
        """Tell whether the D-LM has to run to score a list after `context`, given its free scores if known.

        A rolling context needs the D-LM even if it is empty: its memory starts there.
        """
        return bool(context.sentences) or free is None or self.remembers

    @property
    def remembers(self) -> bool:
        """Tell whether the D-LM's memory of a context is kept for the next one, which is longer."""
        return self.policy.rolling and self.reads == TARGET

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
                remember=self.remembers,
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

    def tokens(
        self, sentences: Sequence[Ids], context: Context, sources: Sequence[str] | None = None
    ) -> list[TokenLogProbs]:
        """Score the tokens of each sentence after one context, which must fit, and without it."""
        tries = [self.trie([ids]) for ids in sentences]
        free = self._score_free(tries, sources)
        conditional = free
        if context.sentences:
            conditional = self.language.score(tries, [context] * len(tries), self.options)
        return [
            TokenLogProbs(after.tokens(0), alone.tokens(0))
            for after, alone in zip(conditional, free, strict=True)
        ]

    def _score_free(self, tries: Sequence[Trie], sources: Sequence[str] | None) -> list[ScoredTrie]:
        contexts = [Context()] * len(tries)
        if self.reads == PAIRS:
            reader = pairs_reader(self.language)
            lines = [reader.before_target(source) for source in sources or [""] * len(tries)]
            contexts = [
                Context(source=own).truncate(room(self.language.positions, trie.depth))
                for trie, own in zip(tries, lines, strict=True)
            ]
        return self.language.score(tries, contexts, self.options)


def read_context(
    language: LanguageModel, reads: str, policy: ContextPolicy, before: Context, room: int, source: str
) -> Context:
    """What a D-LM reads before translations of `source`: `room` tokens at most, target or pairs."""
    if reads == TARGET:
        return policy.read(before, room, source)
    return policy.read_pairs(before, room, pairs_reader(language).before_target, source)


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

    @classmethod
    def of(cls, scorer: Scorer, column: Column, before: Context, upcoming: Sequence[Column] = ()) -> Request:
        """The request to score a column after all that a path remembers."""
        return cls(column, before, scorer.context(before, column.ids, column.nbest.source), upcoming)

    def following(self, scorer: Scorer) -> Request:
        """The request for the next column if this one's first hypothesis is chosen."""
        before = scorer.policy.trim(self.column.extend(self.before, 0))
        column, *upcoming = self.upcoming
        return Request.of(scorer, column, before, upcoming)


class ScoreCache:
    """Answers requests, and remembers the answers until `keep_only` drops them.

    With `look_ahead`, guessed later requests fill the D-LM's batches, if it can score several lists in the
    time of one.
    """

    def __init__(self, scorer: Scorer, *, look_ahead: bool = False) -> None:
        self.scorer = scorer
        self._known: dict[tuple[Column, tuple[Ids, ...]], ConditionalScores] = {}
        language = scorer.language
        # The memory of a rolling context belongs to one path, so that nothing can be scored for another.
        look_ahead = look_ahead and not scorer.policy.rolling
        self.batch_size = language.batch_size if look_ahead and isinstance(language, SideBySide) else 1

    def scores(self, requests: Sequence[Request]) -> list[ConditionalScores]:
        """log p(ỹ | c̃) for every request, in one call of the D-LM at most."""
        if self.scorer.remembers:
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
                    latest[place] = request.following(self.scorer)
                    yield latest[place]

    def _needs_model(self, request: Request) -> bool:
        return self.scorer.needs_model(request.context, self._free(request))

    def _free(self, request: Request) -> Floats | None:
        return request.column.terms.get(self.scorer.free_term)

    def _score(self, requests: Sequence[Request]) -> list[ConditionalScores]:
        return self.scorer.after(
            [_trie(request.column) for request in requests],
            [request.context for request in requests],
            [self._free(request) for request in requests],
        )


def _trie(column: Column) -> Trie:
    assert column.trie is not None, "only columns that a D-LM reads are scored"
    return column.trie
