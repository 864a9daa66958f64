"""Scores of lists after contexts, each computed once, and a few of them before they are needed.

A list can be scored only when it is known what was chosen before it. With one document, or few, some cores
would then be idle. They score the lists to come instead, as if the S-NMT's first hypothesis were chosen until
then, which is right about four times out of five. A right guess saves a call of the D-LM; a wrong one is
never looked at.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from cadec_cli.arrays import Floats
from cadec_cli.decoding.scorer import ConditionalScores, Scorer
from cadec_cli.engines.protocols import SideBySide
from cadec_cli.method.context import Context
from cadec_cli.method.hypotheses import Ids, NBest
from cadec_cli.method.objectives import FREE
from cadec_cli.method.trie import Trie


@dataclass(frozen=True, eq=False)
class Column:
    """One sentence of the lattice: its hypotheses in the D-LM's ids, and the terms that need no context.

    A term is (hypotheses,), or (temperatures, hypotheses) if it is the D-LM's.
    """

    nbest: NBest
    ids: tuple[Ids, ...]
    terms: dict[str, Floats]
    trie: Trie | None  # absent if no D-LM reads it


@dataclass(frozen=True)
class Request:
    """A column to be scored after the context of a path."""

    column: Column
    before: Context  # all that the path remembers
    context: Context  # what the D-LM reads of it
    upcoming: Sequence[Column] = ()  # the next columns of the document

    @property
    def key(self) -> tuple[Column, tuple[Ids, ...]]:
        """Requests with equal keys have the same scores."""
        return self.column, self.context.sentences

    def following(self, scorer: Scorer) -> Request:
        """The request for the next column if this one's first hypothesis is chosen."""
        before = scorer.policy.trim(self.before.followed_by(self.column.ids[0]))
        column, *upcoming = self.upcoming
        return Request(column, before, scorer.context(before, column.ids), upcoming)


class ScoreCache:
    """Answers requests, and remembers the answers until `keep_only` drops them.

    With `look_ahead`, requests to come fill the D-LM's batches, if it says that it scores several lists in
    the time of one.
    """

    def __init__(self, scorer: Scorer, *, look_ahead: bool = False) -> None:
        self._scorer = scorer
        self._known: dict[tuple[Column, tuple[Ids, ...]], ConditionalScores] = {}
        language = scorer.language
        # What a rolling context remembers belongs to one path, so that nothing can be scored for another.
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
        """Requests to come, the nearest first."""
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
