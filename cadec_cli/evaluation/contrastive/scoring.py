"""Scores contrastive groups: the log-probabilities of every candidate, and which objectives can use them.

The candidates of a group differ in a word or two, so they make one small trie. Many groups go through the
network in one row, and every temperature is computed from the same logits. A bundle's models score by
this process or by a pool of workers. `evaluate` judges the groups by the scores.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from cadec_cli.arrays import Floats
from cadec_cli.bundle.load import LoadedModels
from cadec_cli.decoding.explain import ExplainedText, Explanation, explain
from cadec_cli.decoding.scorer import Scorer
from cadec_cli.engines.context_free_terms import build_terms
from cadec_cli.engines.protocols import (
    AnyTerm,
    ContextTerm,
    DocumentModel,
    LanguageModel,
    Passage,
    TranslationModel,
)
from cadec_cli.errors import CadecError, as_usage_error, option
from cadec_cli.evaluation.contrastive.sets import Accuracy, ContrastiveSet, Group, Verdict, accuracy, judge
from cadec_cli.jobs.model_request import ModelRequest
from cadec_cli.method.context import Context, ContextPolicy, Pair
from cadec_cli.method.hypotheses import Hypothesis, Ids, NBest
from cadec_cli.method.objectives import (
    DOCUMENT_OBJECTIVES,
    LM_TERMS,
    NMT,
    OBJECTIVES,
    TARGET,
    Objective,
    objective,
    pmi_of,
)
from cadec_cli.method.options import ScoringOptions, named_weights, with_flags
from cadec_cli.method.terms import NEEDS, TERMS, Scoring, Terms, missing_options, parse_term_options
from cadec_cli.parallel import Task, WorkerPool, in_order
from cadec_cli.text.moses import MosesText

# Groups that are scored together.
CHUNK = 128


@dataclass(frozen=True)
class ContrastiveScorer(Scoring):
    """An objective at one of the D-LM's temperatures; without temperature if it uses no D-LM."""

    temperature: float | None = None


def scorers(objectives: Sequence[Objective], temperatures: Sequence[float]) -> list[ContrastiveScorer]:
    """Every objective at every temperature; objectives without a D-LM only once."""
    return [
        scorer
        for chosen in objectives
        for scorer in (
            [ContrastiveScorer(chosen, index, temperature) for index, temperature in enumerate(temperatures)]
            if chosen.uses_lm
            else [ContrastiveScorer(chosen)]
        )
    ]


def usable_objectives(
    names: Sequence[str],
    weights: Mapping[str, float] | None = None,
    *,
    has_translation: bool,
    has_lm: bool,
    has_backward: bool = False,
    documents: Sequence[str] = (),
    own: Objective | None = None,
    reads: str = TARGET,
    term_options: Mapping[str, str] | None = None,
    where: str = "this bundle",
) -> list[Objective]:
    """The named objectives; if none is named, or `all`, those that the models can compute.

    `documents` names the models that read several sentences: each is an objective of its own. `own` is the
    bundle's objective with the bundle's weights; all others start with the weights of their formula.
    `reads` is what the D-LM reads: target, pairs or both.
    `weights` must fit every named objective. With `all`, each objective takes the weights that it has.
    `term_options` are the options of terms, as text.
    """
    given = weights or {}
    there = {"language": has_lm, "backward": has_backward}
    in_table = {name: OBJECTIVES[name].reading(reads) for name in names if name in OBJECTIVES}
    if not names or "all" in names:
        in_table = {one.name: one.reading(reads) for one in OBJECTIVES.usable()}
    everything = {**in_table, **DOCUMENT_OBJECTIVES}
    if own is not None:
        everything[own.name] = own

    def term_misfit(chosen: Objective, name: str) -> str:
        try:
            term = TERMS[name]
        except KeyError:
            return f"nothing here computes {name}, which {chosen.name} needs"
        except CadecError as error:
            return error.marked_message
        for need in term.needs:
            if not there[need]:
                return f"{chosen.name} needs {NEEDS[need]}, and {where} has none"
        missing = missing_options(term, term_options or {})
        return f"{chosen.name} needs {option('term', f'{missing[0]}=…')}" if missing else ""

    def misfit(chosen: Objective) -> str:
        if chosen.name in DOCUMENT_OBJECTIVES:
            return "" if chosen.name in documents else f"{where} has no {chosen.name} model"
        for name in chosen.terms:
            if name not in (NMT, *LM_TERMS) and (problem := term_misfit(chosen, name)):
                return problem
        if chosen.uses(NMT) and not has_translation:
            return f"{chosen.name} needs an S-NMT, and {where} has none"
        if chosen.uses_lm and not has_lm:
            return f"{chosen.name} needs a D-LM, and {where} has none"
        return ""

    unknown = [name for name in names if name != "all" and name not in everything]
    if unknown:
        raise CadecError(
            f"no objective {unknown[0]!r}", f"there are {', '.join([*OBJECTIVES, *DOCUMENT_OBJECTIVES])}"
        )
    named = [everything[name] for name in dict.fromkeys(names) if name != "all"]
    for problem in filter(None, map(misfit, named)):
        raise CadecError(problem, "pmi and conditional need a D-LM alone, sentence an S-NMT alone")
    if names and "all" not in names:
        return [chosen.with_weights(given) for chosen in named]
    unknown = [name for name in given if all(name not in known.weights for known in in_table.values())]
    if unknown:
        raise CadecError(f"no objective has a weight {', '.join(unknown)}")
    return [
        chosen.with_weights({name: weight for name, weight in given.items() if name in chosen.weights})
        for chosen in everything.values()
        if not misfit(chosen)
    ]


@dataclass(frozen=True)
class Wording:
    """Turns the texts of a set into ordinary text, which each model splits in its own way."""

    source_language: str = "en"
    target_language: str = "en"

    @cached_property
    def _source(self) -> MosesText:
        return MosesText(self.source_language)

    @cached_property
    def _target(self) -> MosesText:
        return MosesText(self.target_language)

    def source(self, of_set: ContrastiveSet, text: str) -> str:
        """A source sentence."""
        return self._source.detokenise(text.split()) if of_set.tokenised else text

    def target(self, of_set: ContrastiveSet, text: str) -> str:
        """A target sentence."""
        return self._target.detokenise(text.split()) if of_set.tokenised else text


def parts(of_set: ContrastiveSet) -> Iterator[ContrastiveSet]:
    """Cut a set into the parts that are scored together: the same parts in one process and in many."""
    for start in range(0, len(of_set.groups), CHUNK):
        yield replace(of_set, groups=of_set.groups[start : start + CHUNK])


@dataclass(frozen=True)
class ContrastiveModels:
    """The models that score groups; any one of them is enough."""

    translation: TranslationModel | None
    language: LanguageModel | None
    scoring_options: ScoringOptions = field(default_factory=ScoringOptions)
    policy: ContextPolicy = field(default_factory=ContextPolicy)
    wording: Wording = field(default_factory=Wording)
    extra_terms: tuple[AnyTerm, ...] = ()
    documents: Mapping[str, DocumentModel] = field(default_factory=dict)  # by the name of their term
    readings: tuple[str, ...] = (TARGET,)  # of the D-LM

    def __post_init__(self) -> None:
        if self.policy.sentences < 0:
            raise CadecError("context can't be negative", "0 means no context; the paper uses 3")

    @property
    def scorers(self) -> tuple[Scorer, ...]:
        """The scorers of candidates in context, by what the D-LM reads; none without a D-LM."""
        if self.language is None:
            return ()
        return tuple(
            Scorer(self.language, self.scoring_options, self.policy, reads) for reads in self.readings
        )

    def terms(self, of_set: ContrastiveSet) -> Iterator[Terms]:
        """The log-probabilities of every group of a set, in order; terms without a model are absent."""
        self.check(of_set)
        for part in parts(of_set):
            chunk = part.groups
            terms: list[dict[str, Floats]] = [{} for _ in chunk]
            if self.translation is not None:
                for of_group, scores in zip(terms, self._translations(of_set, chunk), strict=True):
                    of_group[NMT] = scores
            for scorer in self.scorers:
                for of_group, totals in zip(terms, self._lm_terms(of_set, chunk, scorer), strict=True):
                    of_group |= totals
            for source in self.extra_terms:
                for of_group, known in zip(terms, self._extra(of_set, chunk, source), strict=True):
                    of_group |= {name: np.asarray(values) for name, values in known.items()}
            for name, model in self.documents.items():
                for of_group, scores in zip(terms, self._in_passages(of_set, chunk, model), strict=True):
                    of_group[name] = scores
            yield from terms

    def check(self, of_set: ContrastiveSet) -> None:
        """Raise a CadecError if a group is too long for a model, before any group is scored."""
        for group in of_set.groups:
            if self.translation is not None:
                if not self.translation.fits(self.wording.source(of_set, group.source)):
                    raise _too_long(of_set, group, "the source", "S-NMT")
                targets = (self.wording.target(of_set, text) for text in group.candidates)
                if not all(self.translation.fits("", target) for target in targets):
                    raise _too_long(of_set, group, "a candidate", "S-NMT")
            # A token has at least one character, but rare characters are written as up to four byte tokens.
            if self.language is not None and any(
                4 * len(text) >= self.language.positions
                and len(self._ids(of_set, text)) >= self.language.positions
                for text in group.candidates
            ):
                raise _too_long(of_set, group, "a candidate", "D-LM")

    def explain(
        self, of_set: ContrastiveSet, group: Group, candidates: Mapping[str, int], temperature: int
    ) -> Explanation | None:
        """Score some candidates token by token, at one of the temperatures; None if there is no D-LM."""
        if self.language is None:
            return None
        ids = self._candidate_ids(of_set, group)
        identity = self.language.text.identity
        rows = [
            ExplainedText(name, NBest(group.source, (Hypothesis("", 0.0, ids[index]),), identity), None)
            for name, index in candidates.items()
        ]
        options = self.scoring_options
        reading = ScoringOptions((options.temperatures[temperature],), options.alpha)
        source = self.wording.source(of_set, group.source)
        before = self._before(of_set, group)
        read = self.policy.translations(before, self.scorers[0].context(before, ids, source), source)
        sources = self.policy.sources(read)
        return explain(self.language, rows, read, reading, self.readings, source, sources)

    def _lm_terms(
        self, of_set: ContrastiveSet, chunk: Sequence[Group], scorer: Scorer
    ) -> list[dict[str, Floats]]:
        """log p(ỹ|c̃) and log p(ỹ|</s>) of all candidates, (temperatures, candidates) per group."""
        candidates = [self._candidate_ids(of_set, group) for group in chunk]
        sources = [self.wording.source(of_set, group.source) for group in chunk]
        contexts = [
            scorer.context(self._before(of_set, group), ids, source)
            for group, ids, source in zip(chunk, candidates, sources, strict=True)
        ]
        asked = [
            [(scorer.source_read(source), ids) for ids in of_group]
            for of_group, source in zip(candidates, sources, strict=True)
        ]
        alone = scorer.free_by_sentence(one for of_group in asked for one in of_group)
        free = [np.stack([alone[one] for one in of_group], axis=1) for of_group in asked]
        conditional = scorer.after([scorer.trie(of_group) for of_group in candidates], contexts, free)
        return [
            {scorer.conditional_term: after.totals, scorer.free_term: without}
            for after, without in zip(conditional, free, strict=True)
        ]

    def _candidate_ids(self, of_set: ContrastiveSet, group: Group) -> list[Ids]:
        return [self._ids(of_set, text) for text in group.candidates]

    def _before(self, of_set: ContrastiveSet, group: Group) -> Context:
        """A group's context, with its sources as far as the set has them."""
        sentences = tuple(self._ids(of_set, text) for text in group.context)
        return Context(sentences, pairs=self._all_pairs(of_set, group))

    def _ids(self, of_set: ContrastiveSet, text: str) -> Ids:
        assert self.language is not None
        return tuple(self.language.text.encode(self.wording.target(of_set, text)))

    def _extra(self, of_set: ContrastiveSet, chunk: Sequence[Group], source: AnyTerm) -> list[dict[str, Any]]:
        """The values of one of `extra_terms` for every group."""
        lists = self._lists(of_set, chunk)
        if not isinstance(source, ContextTerm):
            return source.terms(lists)
        return source.terms_after(lists, [self._pairs(of_set, group) for group in chunk])

    def _pairs(self, of_set: ContrastiveSet, group: Group) -> Sequence[Pair]:
        """The part of a group's context that terms read."""
        return self.policy.pairs(Context(pairs=self._all_pairs(of_set, group)))

    def _all_pairs(self, of_set: ContrastiveSet, group: Group) -> tuple[Pair, ...]:
        """A group's context as texts. Sources that the set does not have are empty."""
        sources = [self.wording.source(of_set, text) for text in group.context_source]
        targets = [self.wording.target(of_set, text) for text in group.context]
        sources = ["" for _ in targets[len(sources) :]] + sources[max(0, len(sources) - len(targets)) :]
        return tuple(map(Pair, sources, targets))

    def _lists(self, of_set: ContrastiveSet, chunk: Sequence[Group]) -> list[NBest]:
        """Groups as n-best lists with texts alone; their log-probabilities are 0."""
        return [
            NBest(
                self.wording.source(of_set, group.source),
                tuple(Hypothesis(self.wording.target(of_set, text), 0.0) for text in group.candidates),
            )
            for group in chunk
        ]

    def _in_passages(
        self, of_set: ContrastiveSet, chunk: Sequence[Group], model: DocumentModel
    ) -> list[Floats]:
        """log p of all candidates by a model that reads several sentences.

        The model is given all sentences of a group; those before the last are the true context.
        """
        passages: list[Passage] = []
        targets: list[tuple[str, ...]] = []
        for group in chunk:
            sources, context = _parallel_sentences(group)
            written = [self.wording.source(of_set, text) for text in sources]
            passage = model.last_passage(written)
            before = [self.wording.target(of_set, text) for text in context]
            before = before[len(before) - passage.place :]
            for candidate in group.candidates:
                passages.append(passage)
                targets.append((*before, self.wording.target(of_set, candidate)))
        scores = iter(model.log_probs(passages, targets))
        return [np.array([next(scores) for _ in group.candidates]) for group in chunk]

    def _translations(self, of_set: ContrastiveSet, chunk: Sequence[Group]) -> list[Floats]:
        """log p(ỹ|x) of all candidates."""
        assert self.translation is not None
        sources, targets = [], []
        for group in chunk:
            source = self.wording.source(of_set, group.source)
            sources += [source] * len(group.candidates)
            targets += [self.wording.target(of_set, candidate) for candidate in group.candidates]
        scores = iter(self.translation.log_probs(sources, targets))
        return [np.array([next(scores) for _ in group.candidates]) for group in chunk]


def _parallel_sentences(group: Group) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The source sentences of a group, the current one last, and the translations of those before it.

    A sentence without a counterpart, or with a blank one, is left out, and so are all sentences before it.
    """
    pairs: list[tuple[str, str]] = []
    for source, target in zip(reversed(group.context_source), reversed(group.context), strict=False):
        if not source.strip() or not target.strip():
            break
        pairs.insert(0, (source, target))
    return (*(source for source, _ in pairs), group.source), tuple(target for _, target in pairs)


def _too_long(of_set: ContrastiveSet, group: Group, what: str, model: str) -> CadecError:
    return CadecError(
        f"{of_set.path}: group {group.name}: {what} is longer than the {model} has positions for",
        "leave the group out, or use models with more positions",
    )


def term_records(group: Group, terms: Terms, scores: Floats) -> Iterator[dict[str, Any]]:
    """The candidates of a group with all their terms as plain data, at the first temperature."""
    for index, text in enumerate(group.candidates):
        record: dict[str, Any] = {
            "group": group.name,
            "candidate": index,
            "text": text,
            "true": index == group.truth,
        }
        if NMT in terms:
            record["log_prob"] = float(terms[NMT][index])
        for name in terms:
            if name in LM_TERMS:
                record[name] = float(terms[name][0, index])
        for name in terms:
            if name not in (NMT, *LM_TERMS):
                record[name] = float(terms[name][index])
        if (pmi := pmi_of(record)) is not None:
            record["pmi"] = pmi
        yield record | {"score": float(scores[index])}


def contrastive_models(
    opened: LoadedModels,
    names: Sequence[str],
    weight: str | None,
    scoring_options: ScoringOptions,
    context: int | None,
    term: Sequence[str] = (),
    reads: str | None = None,
) -> tuple[list[Objective], ContrastiveModels]:
    """The named objectives, and those of a bundle's models that they need.

    The bundle's own objective has the bundle's weights, as in translating; `weight` overrides them. `term`
    has the options of terms, such as `["glossary.file=words.tsv"]`; `reads` is what the D-LM reads, if not
    what the bundle says.
    """
    bundle = opened.bundle
    reads = reads or bundle.defaults.reads
    own = bundle.defaults if reads == bundle.defaults.reads else with_flags(bundle.defaults, {"reads": reads})
    with as_usage_error():
        weights = named_weights(weight)
        term_options = parse_term_options(term)
    objectives = usable_objectives(
        names,
        weights,
        has_translation=bundle.has_translation,
        has_lm=bundle.has_lm,
        has_backward=bundle.has_backward,
        documents=bundle.document_kinds,
        own=objective(own.objective, own.weight, reads),
        reads=reads,
        term_options=term_options,
        where=f"the bundle {bundle.directory}",
    )
    extra_terms = {
        one.names: one for chosen in objectives for one in build_terms(opened, chosen, (), term_options)
    }
    models = ContrastiveModels(
        opened.translation if any(chosen.uses(NMT) for chosen in objectives) else None,
        opened.language if any(chosen.uses_lm for chosen in objectives) else None,
        scoring_options,
        ContextPolicy(bundle.defaults.context if context is None else context),
        Wording(opened.languages.source_code, opened.languages.target_code),
        tuple(extra_terms.values()),
        {chosen.name: model for chosen in objectives if (model := opened.document(chosen.name)) is not None},
        tuple(dict.fromkeys(one for chosen in objectives for one in chosen.readings)),
    )
    return objectives, models


@dataclass(frozen=True)
class ContrastiveOptions:
    """How contrastive sets are scored; plain data, since it is sent to workers."""

    objectives: tuple[str, ...]
    weight: str | None
    scoring_options: ScoringOptions
    context: int | None
    term: tuple[str, ...] = ()
    reads: str | None = None  # None: what the bundle says

    def models(self, opened: LoadedModels) -> tuple[list[Objective], ContrastiveModels]:
        """The objectives, and those of a bundle's models that they need."""
        return contrastive_models(
            opened, self.objectives, self.weight, self.scoring_options, self.context, self.term, self.reads
        )


def start_scoring_worker(
    request: ModelRequest, options: ContrastiveOptions
) -> Callable[[ContrastiveSet], list[Terms]]:
    """Load the models in a worker process; return a function that scores one part of a set."""
    _, models = options.models(request.open())
    return lambda part: list(models.terms(part))


def score_sets(
    sets: Sequence[ContrastiveSet],
    models: ContrastiveModels,
    pool: WorkerPool | None,
    request: ModelRequest,
    options: ContrastiveOptions,
) -> Iterator[tuple[ContrastiveSet, Iterator[Terms]]]:
    """Score sets with a pool, or in this process with `models`: each set with the terms of its groups.

    Consume all terms of a set before the next set: with a pool, all sets share one stream of results.
    """
    if pool is None:
        for one in sets:
            yield one, models.terms(one)
        return
    results = pool.run(
        Task(start_scoring_worker, (request, options)), (part for one in sets for part in parts(one))
    )
    terms = itertools.chain.from_iterable(in_order(results))
    for one in sets:
        yield one, itertools.islice(terms, len(one.groups))


@dataclass(frozen=True)
class Failure:
    """A group that a scorer got wrong. The explanation has the true candidate first, then its rival."""

    group: Group
    terms: Terms  # at the scorer's temperature
    scores: Floats
    verdict: Verdict
    explanation: Explanation | None = None


@dataclass(frozen=True)
class ScorerResult:
    """The result of one scorer on a set."""

    scorer: ContrastiveScorer
    accuracy: Accuracy
    failures: tuple[Failure, ...]  # the first few


@dataclass(frozen=True)
class SetResults:
    """The results of all scorers on a set, in the same order for every set."""

    contrastive_set: ContrastiveSet
    scorers: tuple[ScorerResult, ...]


def evaluate(
    contrastive_set: ContrastiveSet,
    terms: Sequence[Terms],
    scorers: Sequence[ContrastiveScorer],
    failures: int = 0,
    models: ContrastiveModels | None = None,
) -> SetResults:
    """Judge every group by every scorer; `terms` has each group's terms, computed once for all scorers.

    The first `failures` groups that each scorer got wrong are kept. With `models` they are explained.
    """
    groups = contrastive_set.groups
    results = []
    for scorer in scorers:
        scores = [scorer.scores(of_group) for of_group in terms]
        verdicts = [judge(group, of_group) for group, of_group in zip(groups, scores, strict=True)]
        wrong = (index for index, verdict in enumerate(verdicts) if not verdict.right)
        shown = tuple(
            Failure(
                groups[index],
                scorer.at(terms[index]),
                scores[index],
                verdicts[index],
                _explain(contrastive_set, groups[index], verdicts[index], scorer, models),
            )
            for index in itertools.islice(wrong, failures)
        )
        results.append(ScorerResult(scorer, accuracy(groups, verdicts), shown))
    return SetResults(contrastive_set, tuple(results))


def _explain(
    contrastive_set: ContrastiveSet,
    group: Group,
    verdict: Verdict,
    scorer: ContrastiveScorer,
    models: ContrastiveModels | None,
) -> Explanation | None:
    if models is None:
        return None
    compared = {"true": group.truth, "tied" if verdict.tied else "won": verdict.rival}
    return models.explain(contrastive_set, group, compared, scorer.index)
