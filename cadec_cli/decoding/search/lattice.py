"""Search over the n-best lists of a document: a beam of B′ paths; with one path it is reranking.

A path's context is what it chose before, so each path scores the next list after its own context. Two paths
with the same context have the same future: of those only the better goes on.

A list can only be scored when it is known what was chosen before it, so with one document, or few, cores
would have nothing to do. They score the lists to come, as if the S-NMT's first were chosen until then, which
it is four times out of five: the answer is then known when it is asked for, and else it is never looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from cadec_cli.arrays import Floats
from cadec_cli.decoding.preceding_context import context_policy
from cadec_cli.decoding.state import DocumentState, PartialPath, State
from cadec_cli.decoding.translation import Choice, TranslatedPart
from cadec_cli.decoding.waves import Wave
from cadec_cli.engines.protocols import ContextFreeTerm, LanguageModel, Models, SideBySide, trie_for
from cadec_cli.errors import CadecError
from cadec_cli.method.context import Context, ContextPolicy, room
from cadec_cli.method.hypotheses import Ids, NBest
from cadec_cli.method.objectives import CONDITIONAL, DEFECTS, FREE, NMT, Objective, penalise_defects
from cadec_cli.method.options import ScoringOptions, TranslationOptions
from cadec_cli.method.terms import Scoring
from cadec_cli.method.trie import ScoredTrie, Trie


def reranking(
    models: Models, options: TranslationOptions, extra_terms: Sequence[ContextFreeTerm]
) -> LatticeSearch:
    """C-aware rerank: the best of each list, one after the other."""
    return _search(models, options, extra_terms, 1)


def lattice(
    models: Models, options: TranslationOptions, extra_terms: Sequence[ContextFreeTerm]
) -> LatticeSearch:
    """Several paths through the lists of a document."""
    return _search(models, options, extra_terms, options.paths)


def sentence_level(
    models: Models, options: TranslationOptions, extra_terms: Sequence[ContextFreeTerm]
) -> LatticeSearch:
    """The S-NMT's best, whatever the context."""
    return _search(models, options, extra_terms, 1)


def _search(
    models: Models, options: TranslationOptions, extra_terms: Sequence[ContextFreeTerm], width: int
) -> LatticeSearch:
    objective = options.weighted_objective
    return LatticeSearch(
        penalise_defects(objective) if any(DEFECTS in source.names for source in extra_terms) else objective,
        models.language if objective.uses_lm else None,
        scoring_options=options.scoring_options,
        width=width,
        policy=context_policy(models, options),
        extra_terms=extra_terms,
    )


@dataclass(frozen=True, eq=False)
class Column:
    """One sentence of the lattice: its hypotheses in the D-LM's ids, and terms known ahead of any context.

    A term is (hypotheses,), or (temperatures, hypotheses) where it is the D-LM's.
    """

    ids: tuple[Ids, ...]
    terms: dict[str, Floats]
    trie: Trie | None  # where a D-LM reads it


@dataclass(frozen=True)
class _Job:
    """A path about to be extended by a column, after the context that it reads."""

    partial: PartialPath
    column: Column
    scoring: Scoring
    context: Context
    coming: Sequence[Column] = ()  # the next ones of its document


# A column after a context; what is remembered of a context is a path's own, and such a question has a number.
ScoreKey = tuple[Column, tuple[Ids, ...]] | int
ScoreCache = dict[ScoreKey, ScoredTrie]


@dataclass(frozen=True)
class LatticeSearch:
    """How paths are extended: the objective, the D-LM's scores, and how much context they remember."""

    objective: Objective
    language: LanguageModel | None
    scoring_options: ScoringOptions = field(default_factory=ScoringOptions)
    width: int = 1
    policy: ContextPolicy = field(default_factory=ContextPolicy)
    extra_terms: Sequence[ContextFreeTerm] = ()

    def run(self, waves: Iterable[Wave[NBest]], state: State) -> Iterator[tuple[int, TranslatedPart]]:
        """Choose from the lists of all documents, in step."""
        for wave in waves:
            scored = wave.map(lambda lists: zip(lists, self.columns(lists), strict=True))
            answers: ScoreCache = {}
            at_once = self._at_once
            for number, step in enumerate(scored.steps()):
                later = slice(number + 1, number + at_once)
                coming = {
                    document: [column for _, column in scored.documents[document][later] if column]
                    for document in step
                }
                self._step(state, step, coming, answers)
                for document in step:
                    at_end = scored.is_last(document, number)
                    for part in _settle(state.documents[document], at_end):
                        yield document, part

    @property
    def _at_once(self) -> int:
        """How many lists are scored in the time of one, where each is for one path to choose from."""
        alone = self.width == 1 and not self.policy.rolling
        return self.language.batch_size if alone and isinstance(self.language, SideBySide) else 1

    def _step(
        self,
        state: State,
        step: dict[int, tuple[NBest, Column | None]],
        coming: dict[int, list[Column]],
        answers: ScoreCache,
    ) -> None:
        """One sentence further in every document of the step."""
        filled = [(number, column) for number, (_, column) in step.items() if column is not None]
        beams = self.advance(
            [state.documents[number].beam for number, _ in filled],
            [column for _, column in filled],
            coming=[coming[number] for number, _ in filled],
            answers=answers,
        )
        still_to_come = {column for columns in coming.values() for column in columns}
        for question in [one for one in answers if isinstance(one, int) or one[0] not in still_to_come]:
            del answers[question]
        for (number, _), beam in zip(filled, beams, strict=True):
            state.documents[number].beam = beam
        for number, (nbest, _) in step.items():
            state.documents[number].lists.append(nbest)

    def columns(self, lists: Sequence[NBest]) -> list[Column | None]:
        """Lists as the search needs them, terms ahead of any context computed together.

        Equal lists are one column; an empty one is none.
        """
        filled = [nbest for nbest in lists if nbest.hypotheses]
        distinct = list(dict.fromkeys(filled))
        if self.language is None:
            ids = [tuple(hypothesis.ids for hypothesis in nbest.hypotheses) for nbest in distinct]
        else:
            text = self.language.text
            ids = [nbest.ids_for(text) for nbest in distinct]
        terms = self._context_free_scores(distinct)
        tries = self._tries(ids)
        if self.language is not None and self.objective.uses(FREE):
            keys = list(tries)
            alone = self.language.score(
                [tries[key] for key in keys], [Context()] * len(keys), self.scoring_options
            )
            free = {key: scored.totals for key, scored in zip(keys, alone, strict=True)}
            for own, key in zip(terms, ids, strict=True):
                own[FREE] = free[key]
        made = {
            nbest: Column(key, own, tries.get(key))
            for nbest, key, own in zip(distinct, ids, terms, strict=True)
        }
        return [made.get(nbest) for nbest in lists]

    def _context_free_scores(self, lists: Sequence[NBest]) -> list[dict[str, Floats]]:
        terms = [{NMT: np.array([h.log_prob for h in nbest.hypotheses])} for nbest in lists]
        for source in self.extra_terms:
            if self.objective.uses(*source.names):
                for own, given in zip(terms, source.terms(lists), strict=True):
                    own |= {name: np.asarray(values) for name, values in given.items()}
        missing = [
            name
            for name in self.objective.terms
            if name not in (NMT, CONDITIONAL, FREE) and not any(name in s.names for s in self.extra_terms)
        ]
        if missing:
            raise CadecError(f"nothing here computes {', '.join(missing)}, which {self.objective.name} needs")
        return terms

    def _tries(self, ids: Sequence[tuple[Ids, ...]]) -> dict[tuple[Ids, ...], Trie]:
        if self.language is None or not self.objective.uses_lm:
            return {}
        return {key: trie_for(self.language, key) for key in dict.fromkeys(ids)}

    def advance(
        self,
        beams: Sequence[list[PartialPath]],
        columns: Sequence[Column],
        scorings: Sequence[Scoring] | None = None,
        *,
        coming: Sequence[Sequence[Column]] | None = None,
        answers: ScoreCache | None = None,
    ) -> list[list[PartialPath]]:
        """Extend the paths of several documents by one sentence each, all scored in one go.

        Documents may be scored in ways of their own; what several of them ask is computed once. Of the
        columns to come, some may be scored along; `answers` is where that is kept until they do.
        """
        own = scorings if scorings is not None else [Scoring(self.objective)] * len(beams)
        later = coming if coming is not None else [()] * len(beams)
        jobs = [
            [
                _Job(partial, column, scoring, self._context(partial.context, column), columns_after)
                for partial in beam
            ]
            for beam, column, scoring, columns_after in zip(beams, columns, own, later, strict=True)
        ]
        answers = answers if answers is not None else {}
        scored = self._conditionals([job for of_document in jobs for job in of_document], answers)
        return [self._best(of_document, [next(scored) for _ in of_document]) for of_document in jobs]

    def _context(self, before: Context, column: Column) -> Context:
        """What is read of a path's context before a column, whether or not the objective looks at it."""
        if self.language is None:
            return Context()
        longest = column.trie.depth if column.trie is not None else max(map(len, column.ids))
        return self.policy.read(before, room(self.language.positions, longest))

    def _conditionals(self, jobs: Sequence[_Job], answers: ScoreCache) -> Iterator[ScoredTrie | None]:
        """log p(ỹ|c̃) for every job; what is not among the answers yet is found, and put there."""
        asked: dict[ScoreKey, tuple[Trie, Context]] = {}
        questions = [self._score_key(place, job.column, job.context) for place, job in enumerate(jobs)]
        for question, job in zip(questions, jobs, strict=True):
            if question not in answers and self._is_missing(job.column, job.context):
                asked[question] = (_trie(job.column), job.context)
        if asked and self.language is not None:
            asked |= self._speculate(jobs, -len(asked) % self._at_once, {*answers, *asked})
            tries, contexts = zip(*asked.values(), strict=True)
            results = self.language.score(tries, contexts, self.scoring_options, remember=self.policy.rolling)
            answers |= zip(asked, results, strict=True)
        return iter([answers.get(question) for question in questions])

    def _score_key(self, place: int, column: Column, context: Context) -> ScoreKey:
        """Equal ones are one, unless each path remembers what it has read."""
        return place if self.policy.rolling else (column, context.sentences)

    def _is_missing(self, column: Column, context: Context) -> bool:
        """An empty context needs no scores of its own where log p(ỹ|</s>) is known already."""
        known = FREE in column.terms and not context.sentences and not self.policy.rolling
        return column.trie is not None and self.objective.uses(CONDITIONAL) and not known

    def _speculate(
        self, jobs: Sequence[_Job], count: int, there: set[ScoreKey]
    ) -> dict[ScoreKey, tuple[Trie, Context]]:
        """The questions to come, the nearest first, if the S-NMT's first is chosen until then."""
        found: dict[ScoreKey, tuple[Trie, Context]] = {}
        before = [job.partial.context for job in jobs]
        last = [job.column for job in jobs]
        for number in range(max((len(job.coming) for job in jobs), default=0)):
            for place, job in enumerate(jobs):
                if len(found) == count:
                    return found
                if number < len(job.coming):
                    before[place] = self.policy.trim(before[place].followed_by(last[place].ids[0]))
                    column = last[place] = job.coming[number]
                    context = self._context(before[place], column)
                    question = self._score_key(place, column, context)
                    if question not in there and self._is_missing(column, context):
                        found[question] = (_trie(column), context)
        return found

    def _terms(self, job: _Job, conditional: ScoredTrie | None) -> dict[str, Floats]:
        """A column's terms after a context; after an empty one exactly those without, so that PMI is 0."""
        terms = job.column.terms
        if not self.objective.uses(CONDITIONAL):
            return terms
        if conditional is None or (FREE in terms and not job.context.sentences):
            return {**terms, CONDITIONAL: terms[FREE]}
        return {**terms, CONDITIONAL: conditional.totals}

    def _best(self, jobs: Sequence[_Job], conditionals: Sequence[ScoredTrie | None]) -> list[PartialPath]:
        extended = []
        scored = []
        for rank, (job, conditional) in enumerate(zip(jobs, conditionals, strict=True)):
            terms = self._terms(job, conditional)
            scores = job.scoring.scores(terms)
            scored.append((job, conditional, terms, scores))
            # Ties go to the better path, then to the S-NMT's order.
            extended += [
                (-(job.partial.total + float(score)), rank, index) for index, score in enumerate(scores)
            ]
        kept: list[PartialPath] = []
        seen = set()
        for negative, rank, index in sorted(extended):
            job, conditional, terms, scores = scored[rank]
            before = job.partial.context.followed_by(job.column.ids[index])
            future = self.policy.future(before)
            if self.width > 1 and future in seen:
                continue
            seen.add(future)
            choice = _choice(index, job.scoring.at(terms), scores, job.context)
            context = self._next_context(job, conditional, index)
            kept.append(PartialPath(-negative, context, choice, job.partial))
            if len(kept) == self.width:
                break
        return kept

    def _next_context(self, job: _Job, conditional: ScoredTrie | None, index: int) -> Context:
        ids = job.column.ids[index]
        if not self.policy.rolling:
            return self.policy.trim(job.partial.context.followed_by(ids))
        return job.context.followed_by(
            ids, conditional.memory_after(index) if conditional is not None else None
        )


def _trie(column: Column) -> Trie:
    assert column.trie is not None, "only what a D-LM reads is asked"
    return column.trie


def _choice(index: int, terms: dict[str, Floats], scores: Floats, context: Context) -> Choice:
    computed = (CONDITIONAL, FREE, *(name for name in terms if name not in (NMT, CONDITIONAL, FREE)))
    return Choice(
        index,
        tuple(scores.tolist()),
        {name: tuple(terms[name].tolist()) for name in computed if name in terms},
        context.sentences,
        context.pinned,
    )


def settled_choices(beam: Sequence[PartialPath], at_end: bool = False) -> list[Choice]:
    """Take out the choices that all paths share (at the end, those of the best), oldest first.

    They are forgotten here, so that a document of any length needs the memory of what is still open.
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
    """Pair the choices that are settled with their lists; empty lists have none, and never wait."""
    choices = iter(settled_choices(document.beam, at_end))
    while document.lists:
        nbest = document.lists[0]
        choice = next(choices, None) if nbest.hypotheses else None
        if nbest.hypotheses and choice is None:
            return
        document.lists.pop(0)
        yield TranslatedPart(nbest, choice)
