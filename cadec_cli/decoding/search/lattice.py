"""Search over the n-best lists of a document with a beam of B′ paths; with one path it is reranking.

The context of a path is its earlier choices, so each path scores the next list after its own context. Two
paths with the same context have the same future: only the better one is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cadec_cli.arrays import Floats
from cadec_cli.decoding.preceding_context import context_policy
from cadec_cli.decoding.scorer import Column, ConditionalScores, Request, ScoreCache, Scorer
from cadec_cli.decoding.state import DocumentState, PartialPath, State
from cadec_cli.decoding.translation import Choice, TranslatedPart
from cadec_cli.decoding.units import Wave
from cadec_cli.engines.protocols import (
    AnyTerm,
    ContextTerm,
    LanguageModel,
    Models,
    ReadsLists,
    trie_for,
)
from cadec_cli.errors import CadecError
from cadec_cli.method.context import Context, ContextPolicy
from cadec_cli.method.hypotheses import Ids, NBest
from cadec_cli.method.objectives import (
    CONDITIONAL,
    DEFECTS,
    FREE,
    GLOSSARY,
    LM_TERMS,
    MANNER,
    NAMES,
    NMT,
    PAIRS,
    TARGET,
    Objective,
    follow_manner,
    penalise_defects,
    reward_names,
    reward_terms,
)
from cadec_cli.method.options import ScoringOptions, TranslationOptions
from cadec_cli.method.terms import Scoring
from cadec_cli.method.trie import Trie


def reranking(models: Models, options: TranslationOptions, extra_terms: Sequence[AnyTerm]) -> LatticeSearch:
    """C-aware rerank: choose the best of each list, one after the other."""
    return _search(models, options, extra_terms, 1)


def lattice(models: Models, options: TranslationOptions, extra_terms: Sequence[AnyTerm]) -> LatticeSearch:
    """Lattice search: follow several paths through the lists of a document."""
    return _search(models, options, extra_terms, options.paths)


def sentence_level(
    models: Models, options: TranslationOptions, extra_terms: Sequence[AnyTerm]
) -> LatticeSearch:
    """Choose the S-NMT's best, whatever the context."""
    return _search(models, options, extra_terms, 1)


def _search(
    models: Models, options: TranslationOptions, extra_terms: Sequence[AnyTerm], width: int
) -> LatticeSearch:
    objective = options.weighted_objective
    names = {name for source in extra_terms for name in source.names}
    chosen = reward_terms(objective, options.glossary_weight) if GLOSSARY in names else objective
    chosen = follow_manner(chosen, options.manner_weight) if MANNER in names else chosen
    chosen = reward_names(chosen, options.names_weight) if NAMES in names else chosen
    policy = context_policy(models, options)
    # With a seed, what was chosen says more than the lists, which do not know what the user asked for.
    reads_lists = any(isinstance(term, ReadsLists) and term.reads_lists for term in extra_terms)
    policy = replace(policy, lists=reads_lists and not policy.seed_pairs)
    return LatticeSearch(
        penalise_defects(chosen) if DEFECTS in names else chosen,
        models.language if objective.uses_lm else None,
        scoring_options=options.scoring_options,
        width=width,
        policy=policy,
        extra_terms=extra_terms,
    )


# All that a path remembers, the column to score after it, and the next columns of its document.
_Asked = tuple[Context, Column, Sequence[Column]]


@dataclass(frozen=True)
class _Extension:
    """A path about to be extended by a column, which was scored after the context that the path reads."""

    path: PartialPath
    column: Column
    scoring: Scoring
    context: Context  # the sentences that the D-LM read, as translations
    conditional: Mapping[str, ConditionalScores]  # by term, as far as the objective uses them
    context_terms: Mapping[str, Floats]  # those of `extra_terms` that depend on the context

    @property
    def terms(self) -> dict[str, Floats]:
        """The terms of the column after this path."""
        after = {name: scores.totals for name, scores in self.conditional.items()}
        return {**self.column.terms, **self.context_terms, **after}


@dataclass(frozen=True)
class LatticeSearch:
    """How paths are extended: by which objective and D-LM, and after how much context."""

    objective: Objective
    language: LanguageModel | None
    scoring_options: ScoringOptions = field(default_factory=ScoringOptions)
    width: int = 1
    policy: ContextPolicy = field(default_factory=ContextPolicy)
    extra_terms: Sequence[AnyTerm] = ()

    @property
    def scorers(self) -> tuple[Scorer, ...]:
        """The scorers of hypotheses in context, one for each way that the D-LM reads; none without a D-LM.

        A D-LM that the objective does not use reads the target.
        """
        if self.language is None:
            return ()
        return tuple(
            Scorer(self.language, self.scoring_options, self.policy, reads)
            for reads in self.objective.readings or (TARGET,)
        )

    def run(self, waves: Iterable[Wave[NBest]], state: State) -> Iterator[tuple[int, TranslatedPart]]:
        """Choose from the lists of all documents, in step."""
        for wave in waves:
            with_columns = wave.map(lambda lists: zip(lists, self.columns(lists), strict=True))
            caches = self._caches()
            ahead = max((cache.batch_size for cache in caches), default=1)
            for number, step in enumerate(with_columns.steps()):
                later = slice(number + 1, number + ahead)
                upcoming = {
                    document: [column for _, column in with_columns.documents[document][later] if column]
                    for document in step
                }
                self._step(state, step, upcoming, caches)
                for document in step:
                    at_end = with_columns.is_last(document, number)
                    for part in _settle(state.documents[document], at_end):
                        yield document, part

    def _step(
        self,
        state: State,
        step: dict[int, tuple[NBest, Column | None]],
        upcoming: dict[int, list[Column]],
        caches: Sequence[ScoreCache],
    ) -> None:
        """Extend every document of the step by one sentence."""
        filled = [(number, column) for number, (_, column) in step.items() if column is not None]
        beams = self.advance(
            [state.documents[number].beam for number, _ in filled],
            [column for _, column in filled],
            upcoming=[upcoming[number] for number, _ in filled],
            caches=caches,
        )
        for cache in caches:
            cache.keep_only({column for columns in upcoming.values() for column in columns})
        for (number, _), beam in zip(filled, beams, strict=True):
            state.documents[number].beam = beam
        for number, (nbest, _) in step.items():
            state.documents[number].lists.append(nbest)

    def columns(self, lists: Sequence[NBest]) -> list[Column | None]:
        """Prepare lists for the search: their terms that need no context are computed together.

        Equal lists become one column; an empty list has none.
        """
        distinct = list(dict.fromkeys(nbest for nbest in lists if nbest.hypotheses))
        ids = [self._ids(nbest) for nbest in distinct]
        terms = self._context_free_scores(distinct)
        tries: dict[tuple[Ids, ...], Trie] = {}
        if self.language is not None and self.objective.uses_lm:
            tries = {key: trie_for(self.language, key) for key in dict.fromkeys(ids)}
        for scorer in self.scorers:
            if self.objective.uses(scorer.free_term):
                read = [(key, scorer.source_read(one.source)) for key, one in zip(ids, distinct, strict=True)]
                asked = list(dict.fromkeys(read))
                made = scorer.free([tries[key] for key, _ in asked], [source for _, source in asked])
                free = dict(zip(asked, made, strict=True))
                for own, both in zip(terms, read, strict=True):
                    own[scorer.free_term] = free[both]
        columns = {
            nbest: Column(nbest, key, own, tries.get(key))
            for nbest, key, own in zip(distinct, ids, terms, strict=True)
        }
        return [columns.get(nbest) for nbest in lists]

    def _ids(self, nbest: NBest) -> tuple[Ids, ...]:
        if self.language is None:
            return tuple(hypothesis.ids for hypothesis in nbest.hypotheses)
        return nbest.ids_for(self.language.text)

    def _context_free_scores(self, lists: Sequence[NBest]) -> list[dict[str, Floats]]:
        """log p(y|x) of every list, and the `extra_terms` that this objective uses."""
        terms = [{NMT: np.array([h.log_prob for h in nbest.hypotheses])} for nbest in lists]
        for source in self.extra_terms:
            if not isinstance(source, ContextTerm) and self.objective.uses(*source.names):
                for own, given in zip(terms, source.terms(lists), strict=True):
                    own |= {name: np.asarray(values) for name, values in given.items()}
        missing = [
            name
            for name in self.objective.terms
            if name not in (NMT, *LM_TERMS) and not any(name in s.names for s in self.extra_terms)
        ]
        if missing:
            raise CadecError(f"nothing here computes {', '.join(missing)}, which {self.objective.name} needs")
        return terms

    def advance(
        self,
        beams: Sequence[list[PartialPath]],
        columns: Sequence[Column],
        scorings: Sequence[Scoring] | None = None,
        *,
        upcoming: Sequence[Sequence[Column]] | None = None,
        caches: Sequence[ScoreCache] = (),
    ) -> list[list[PartialPath]]:
        """Extend the paths of several documents by one sentence each, all scored in one call of the D-LM.

        `scorings` gives each document an objective of its own; scores that several need are computed once.
        `upcoming` are the next columns of each document: `caches` may score some of them along.
        """
        own = scorings if scorings is not None else [Scoring(self.objective)] * len(beams)
        later = upcoming if upcoming is not None else [()] * len(beams)
        paths = [
            (path.context, column, following)
            for beam, column, following in zip(beams, columns, later, strict=True)
            for path in beam
        ]
        scored = iter(self._conditional(paths, caches or self._caches()))
        context_terms = iter(self._context_terms(paths))
        extensions = (
            [_Extension(path, column, scoring, *next(scored), next(context_terms)) for path in beam]
            for beam, column, scoring in zip(beams, columns, own, strict=True)
        )
        return [self._best(of_beam) for of_beam in extensions]

    def _context_terms(self, paths: Sequence[_Asked]) -> list[dict[str, Floats]]:
        """The `extra_terms` that depend on the context, for every path."""
        terms: list[dict[str, Floats]] = [{} for _ in paths]
        for source in self.extra_terms:
            if isinstance(source, ContextTerm) and self.objective.uses(*source.names):
                contexts = [self.policy.pairs(before) for before, _, _ in paths]
                found = source.terms_after([column.nbest for _, column, _ in paths], contexts)
                for own, given in zip(terms, found, strict=True):
                    own |= {name: np.asarray(values) for name, values in given.items()}
        return terms

    def _conditional(
        self, paths: Sequence[_Asked], caches: Sequence[ScoreCache]
    ) -> list[tuple[Context, dict[str, ConditionalScores]]]:
        """What the D-LM reads of each path's context, used or not, and its scores."""
        read = [Context()] * len(paths)
        scores: list[dict[str, ConditionalScores]] = [{} for _ in paths]
        for cache in reversed(caches):  # with several, the first one says what was read: the target
            scorer = cache.scorer
            requests = [Request.of(scorer, column, before, following) for before, column, following in paths]
            read = [self._read(request, scorer) for request in requests]
            if self.objective.uses(scorer.conditional_term):
                for own, found in zip(scores, cache.scores(requests), strict=True):
                    own[scorer.conditional_term] = found
        return list(zip(read, scores, strict=True))

    def _read(self, request: Request, scorer: Scorer) -> Context:
        """The translations of a path's context that a scorer reads."""
        if scorer.reads == TARGET:
            return request.context
        source = request.column.nbest.source
        return self.policy.translations(request.before, request.context, source)

    def _caches(self) -> list[ScoreCache]:
        # With several paths, lists are scored after all of them: there is enough to do without guesses.
        return [ScoreCache(scorer, look_ahead=self.width == 1) for scorer in self.scorers]

    def _best(self, extensions: Sequence[_Extension]) -> list[PartialPath]:
        """The best continuations of all paths of a document, no two of them with the same future."""
        terms = [one.terms for one in extensions]
        scores = [one.scoring.scores(of_path) for one, of_path in zip(extensions, terms, strict=True)]
        if any(np.isnan(of_path).any() for of_path in scores):
            raise CadecError(
                f"a score of {extensions[0].scoring.objective.name} is not a number",
                "a model or one of the objective's terms may be damaged",
            )
        # Ties go to the better path, then to the S-NMT's order.
        ordered = sorted(
            (-(one.path.total + float(score)), rank, index)
            for rank, (one, of_path) in enumerate(zip(extensions, scores, strict=True))
            for index, score in enumerate(of_path)
        )
        kept: list[PartialPath] = []
        seen = set()
        for negative, rank, index in ordered:
            one = extensions[rank]
            future = self.policy.future(one.column.extend(one.path.context, index))
            if self.width > 1 and future in seen:
                continue
            seen.add(future)
            choice = self._choice(index, one.scoring.at(terms[rank]), scores[rank], one.context)
            kept.append(PartialPath(-negative, self._next_context(one, index), choice, one.path))
            if len(kept) == self.width:
                break
        return kept

    def _next_context(self, extension: _Extension, index: int) -> Context:
        column, conditional = extension.column, extension.conditional
        if not self.policy.rolling:
            return self.policy.trim(column.extend(extension.path.context, index))
        of_target = conditional.get(CONDITIONAL)
        memory = of_target.memory_after(index) if of_target is not None else None
        return self.policy.trim(column.extend(extension.context, index, memory))

    def _choice(self, index: int, terms: dict[str, Floats], scores: Floats, context: Context) -> Choice:
        computed = (CONDITIONAL, FREE, *(name for name in terms if name not in (NMT, CONDITIONAL, FREE)))
        return Choice(
            index,
            tuple(scores.tolist()),
            {name: tuple(terms[name].tolist()) for name in computed if name in terms},
            context.sentences,
            context.pinned,
            self.policy.sources(context) if PAIRS in self.objective.readings else (),
        )


def settled_choices(beam: Sequence[PartialPath], at_end: bool = False) -> list[Choice]:
    """Take out the choices that all paths share (at the end, those of the best path), oldest first.

    The paths forget them, so that memory holds only open choices, however long the document.
    """
    if at_end or len(beam) == 1:
        common: PartialPath | None = beam[0]
    else:
        shared = set.intersection(*({id(partial) for partial in best.back()} for best in beam))
        common = next((partial for partial in beam[0].back() if id(partial) in shared), None)
    if common is None:
        return []
    choices = [partial.choice for partial in common.back() if partial.choice is not None]
    common.choice = common.before = None
    return choices[::-1]


def _settle(document: DocumentState, at_end: bool) -> Iterator[TranslatedPart]:
    """Pair the settled choices with their lists. An empty list has no choice and never waits for one."""
    choices = iter(settled_choices(document.beam, at_end))
    while document.lists:
        nbest = document.lists[0]
        choice = next(choices, None) if nbest.hypotheses else None
        if nbest.hypotheses and choice is None:
            return
        document.lists.pop(0)
        yield TranslatedPart(nbest, choice)
