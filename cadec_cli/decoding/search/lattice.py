"""Search over the n-best lists of a document: a beam of B′ paths; with one path it is reranking.

A path's context is what it chose before, so each path scores the next list after its own context. Two paths
with the same context have the same future: of those only the better goes on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cadec_cli.engines.torch_lm import LMScorer, ScoredTrie
from cadec_cli.method.context import Context, Ids
from cadec_cli.method.objectives import Objective
from cadec_cli.method.trie import Floats


@dataclass(frozen=True)
class Candidate:
    """One sentence's hypotheses as the search sees them: log p(ỹ|x), and ids in the D-LM's vocabulary."""

    log_probs: Floats
    ids: tuple[Ids, ...]
    free: ScoredTrie | None  # None where the objective needs no D-LM


TokenScores = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Choice:
    """What a path chose for a sentence, and the terms of all hypotheses as that path saw them.

    Token by token, EOS last, only of the chosen and of the S-NMT's first: (conditional, free) log p.
    """

    index: int
    scores: tuple[float, ...]
    conditional: tuple[float, ...] = ()
    free: tuple[float, ...] = ()
    chosen_tokens: TokenScores = ()
    first_tokens: TokenScores = ()


@dataclass(eq=False)
class Path:
    """Choices so far (linked, the newest first), their total, and the context of the next sentence."""

    total: float = 0.0
    context: Context = field(default_factory=Context)
    choice: Choice | None = None
    before: Path | None = None

    def back(self) -> Iterator[Path]:
        """This path and what it continues, the newest first; settled ones are gone."""
        path: Path | None = self
        while path is not None and path.choice is not None:
            yield path
            path = path.before


def settled(beam: Sequence[Path], at_end: bool = False) -> list[Choice]:
    """Take out the choices that all paths share (at the end, those of the best), oldest first.

    They are forgotten here, so that a document of any length needs the memory of what is still open.
    """
    if at_end or len(beam) == 1:
        common: Path | None = beam[0]
    else:
        shared = set.intersection(*({id(path) for path in best.back()} for best in beam))
        common = next((path for path in beam[0].back() if id(path) in shared), None)
    if common is None:
        return []
    choices = [path.choice for path in common.back() if path.choice is not None]
    common.choice = common.before = None
    return choices[::-1]


def _choice(
    index: int, scores: Floats, conditional: ScoredTrie | None, free: ScoredTrie | None, has_context: bool
) -> Choice:
    if free is None or conditional is None:
        return Choice(index, tuple(scores.tolist()))
    given = conditional if has_context else free
    chosen, first = (
        tuple(zip(given.tokens(number).tolist(), free.tokens(number).tolist(), strict=True))
        for number in (index, 0)
    )
    return Choice(
        index,
        tuple(scores.tolist()),
        tuple(given.totals[0].tolist()),
        tuple(free.totals[0].tolist()),
        chosen,
        first,
    )


@dataclass(frozen=True)
class LatticeSearch:
    """How paths are extended: the objective, the D-LM's scores, and how much context they remember."""

    objective: Objective
    scorer: LMScorer | None
    width: int = 1
    context_sentences: int = 3
    rolling: bool = False

    def advance(self, beams: Sequence[list[Path]], candidates: Sequence[Candidate]) -> list[list[Path]]:
        """Extend the paths of several documents by one sentence each, all scored in one go."""
        jobs = [(path, candidate) for beam, candidate in zip(beams, candidates, strict=True) for path in beam]
        conditionals = iter(self._conditionals(jobs))
        return [
            self._best([(path, candidate, next(conditionals)) for path in beam])
            for beam, candidate in zip(beams, candidates, strict=True)
        ]

    def _conditionals(self, jobs: Sequence[tuple[Path, Candidate]]) -> Iterator[ScoredTrie | None]:
        """log p(ỹ|c̃) for every path; after an empty context exactly log p(ỹ|</s>), so that PMI is 0."""
        scored: dict[int, ScoredTrie] = {}
        if self.scorer is not None and self.objective.uses_conditional:
            asked = []
            for number, (path, candidate) in enumerate(jobs):
                assert candidate.free is not None
                context = self._context(path, candidate)
                if context.sentences or self.rolling:
                    asked.append((number, candidate.free.trie, context))
            results = self.scorer.score([trie for _, trie, _ in asked], [context for _, _, context in asked])
            scored = {number: result for (number, _, _), result in zip(asked, results, strict=True)}
        for number, (_, candidate) in enumerate(jobs):
            yield scored.get(number, candidate.free)

    def _context(self, path: Path, candidate: Candidate) -> Context:
        assert self.scorer is not None and candidate.free is not None
        trie = candidate.free.trie
        if not self.rolling:
            return self.scorer.fitted(path.context.last(self.context_sentences), trie)
        if len(path.context.tokens) + trie.depth <= self.scorer.positions:
            return path.context
        return self.scorer.fitted(path.context.last(self.context_sentences), trie)

    def _best(self, jobs: Sequence[tuple[Path, Candidate, ScoredTrie | None]]) -> list[Path]:
        extended = []
        for rank, (path, candidate, conditional) in enumerate(jobs):
            scores = self._scores(candidate, conditional, bool(path.context.sentences))
            for index in range(len(candidate.ids)):
                # Ties go to the better path, then to the S-NMT's order.
                extended.append(
                    (-(path.total + float(scores[index])), rank, index, path, candidate, scores, conditional)
                )
        extended.sort(key=lambda item: item[:3])
        kept: list[Path] = []
        seen = set()
        for negative, _, index, path, candidate, scores, conditional in extended:
            sentences = (*path.context.sentences, candidate.ids[index])
            future = sentences if self.rolling else Context(sentences).last(self.context_sentences).sentences
            if self.width > 1 and future in seen:
                continue
            seen.add(future)
            choice = _choice(index, scores, conditional, candidate.free, bool(path.context.sentences))
            context = self._followed(path, candidate, conditional, index)
            kept.append(Path(-negative, context, choice, path))
            if len(kept) == self.width:
                break
        return kept

    def _scores(self, candidate: Candidate, conditional: ScoredTrie | None, has_context: bool) -> Floats:
        if candidate.free is None or conditional is None:
            scores: Floats = self.objective.score(candidate.log_probs, 0.0, 0.0)
            return scores
        free = candidate.free.totals[0]
        given = conditional.totals[0] if has_context else free
        scores = self.objective.score(candidate.log_probs, given, free)
        return scores

    def _followed(
        self, path: Path, candidate: Candidate, conditional: ScoredTrie | None, index: int
    ) -> Context:
        ids = candidate.ids[index]
        if not self.rolling or conditional is None:
            return path.context.followed_by(ids).last(max(self.context_sentences, 1))
        read = self._context(path, candidate)
        return read.followed_by(ids, conditional.cache_after(index))
