"""Scores of contrastive groups: every candidate's log-probabilities, and what each objective makes of them.

The candidates of a group differ in a word or two: they are one trie, scored after their context in one pass,
many groups in a row of the network, every temperature from the same logits.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from cadec_cli.bundle.loading import Models
from cadec_cli.decoding.search.lattice import TokenScores
from cadec_cli.engines.ctranslate2_nmt import NBestGenerator
from cadec_cli.engines.torch_lm import ROW, LMScorer
from cadec_cli.errors import CadecError
from cadec_cli.evaluation.contrastive.groups import Accuracy, ContrastiveSet, Group, Verdict, accuracy, judge
from cadec_cli.method.context import Context, Ids
from cadec_cli.method.objectives import OBJECTIVES, Objective, objective
from cadec_cli.method.trie import Floats, Trie
from cadec_cli.text.pipeline import TextPipeline

if TYPE_CHECKING:
    from cadec_cli.bundle.opening import Bundle

# Groups that are in memory as tensors at a time.
CHUNK = 128


@dataclass(frozen=True)
class Scorer:
    """An objective at one of the temperatures that the D-LM is read with."""

    objective: Objective
    temperature: float | None  # None where no D-LM is used
    index: int = 0  # of the temperature

    def scores(self, terms: Terms) -> Floats:
        """The score of every candidate of a group."""
        nothing = np.zeros(terms.size)
        found: Floats = self.objective.score(
            nothing if terms.translation is None else terms.translation,
            nothing if terms.conditional is None else terms.conditional[self.index],
            nothing if terms.free is None else terms.free[self.index],
        )
        return found


@dataclass(frozen=True)
class Terms:
    """The log-probabilities of a group's candidates; None where the model was not needed."""

    size: int  # candidates
    translation: Floats | None  # (candidates,)
    conditional: Floats | None  # (temperatures, candidates)
    free: Floats | None  # (temperatures, candidates)


def scorers(objectives: Sequence[Objective], temperatures: Sequence[float]) -> list[Scorer]:
    """Every objective at every temperature; those without a D-LM once."""
    return [
        scorer
        for one in objectives
        for scorer in (
            [Scorer(one, temperature, index) for index, temperature in enumerate(temperatures)]
            if one.uses_lm
            else [Scorer(one, None)]
        )
    ]


def usable_objectives(bundle: Bundle, names: Sequence[str], weight: float | None = None) -> list[Objective]:
    """The named objectives; of none or `all`, those that the bundle's models can compute."""
    found = [objective(name, weight) for name in dict.fromkeys(names) if name != "all"]
    for one in found:
        for needed, there, part in (
            (one.uses_translation, bundle.has_translation, "an S-NMT"),
            (one.uses_lm, bundle.has_lm, "a D-LM"),
        ):
            if needed and not there:
                raise CadecError(
                    f"{one.name} needs {part}, and the bundle {bundle.directory} has none",
                    "pmi and conditional need a D-LM alone, sentence an S-NMT alone",
                )
    if names and "all" not in names:
        return found
    every = [objective(name, weight) for name in OBJECTIVES]
    return [
        one
        for one in every
        if (bundle.has_translation or not one.uses_translation) and (bundle.has_lm or not one.uses_lm)
    ]


@dataclass(frozen=True)
class TranslationModel:
    """An S-NMT with its text pipelines; `positions` is how many tokens it reads and writes, EOS included."""

    generator: NBestGenerator
    source: TextPipeline
    target: TextPipeline
    positions: int


@dataclass(frozen=True)
class LanguageModel:
    """A D-LM, as it is to be read, with its text pipeline."""

    scorer: LMScorer
    text: TextPipeline


class ContrastiveModels:
    """The models that groups are scored with; one of them will do."""

    def __init__(
        self, translation: TranslationModel | None, language: LanguageModel | None, context: int = 3
    ) -> None:
        if context < 0:
            raise CadecError("context can't be negative", "0 is none; the paper's is 3")
        self.translation, self.language, self.context = translation, language, context

    @classmethod
    def load(
        cls,
        bundle: Bundle,
        objectives: Sequence[Objective],
        *,
        temperatures: Sequence[float] = (1.0,),
        alpha: float = 0.0,
        context: int | None = None,
        device: str = "auto",
        compute_type: str = "float32",
        threads: int = 0,
    ) -> ContrastiveModels:
        """Load what the objectives need, and no more."""
        models = Models(bundle, device=device, compute_type=compute_type, threads=threads)
        translation = language = None
        if any(one.uses_lm for one in objectives):
            scorer = LMScorer(models.language_model, temperatures=temperatures, alpha=alpha)
            language = LanguageModel(scorer, bundle.lm_pipeline)
        if any(one.uses_translation for one in objectives):
            translation = TranslationModel(
                models.generator, bundle.source, bundle.target, bundle.translation_positions
            )
        return cls(translation, language, bundle.defaults.context if context is None else context)

    def terms(self, of: ContrastiveSet) -> Iterator[Terms]:
        """The log-probabilities of every group of a set, in order."""
        groups = iter(of.groups)
        while chunk := list(itertools.islice(groups, CHUNK)):
            translation = _translations(self.translation, of, chunk) if self.translation else None
            scored = self._totals(self.language, of, chunk) if self.language else None
            for index, group in enumerate(chunk):
                yield Terms(
                    len(group.candidates),
                    translation[index] if translation else None,
                    *(scored[index] if scored else (None, None)),
                )

    def tokens(
        self, of: ContrastiveSet, group: Group, candidates: Sequence[int], temperature: int = 0
    ) -> list[tuple[list[str], TokenScores]]:
        """Pieces of some candidates, and each piece's log-probability after the context and without it."""
        if self.language is None:
            return [([], ()) for _ in candidates]
        scorer = self.language.scorer
        job = self._job(self.language, of, group)
        (free,) = scorer.free([job.trie])
        conditional = scorer.score([job.trie], [job.context])[0] if job.context.sentences else free
        pieces = self.language.text.subwords.pieces
        found = []
        for candidate in candidates:
            path = list(free.trie.paths[candidate])
            scores = zip(
                conditional.tokens(candidate, temperature), free.tokens(candidate, temperature), strict=True
            )
            own = [pieces[int(token)] for token in free.trie.edge_tokens[path[:-1]]]
            found.append((own, tuple((float(after), float(without)) for after, without in scores)))
        return found

    def _totals(
        self, language: LanguageModel, of: ContrastiveSet, chunk: Sequence[Group]
    ) -> list[tuple[Floats, Floats]]:
        """log p(ỹ|c̃) and log p(ỹ|</s>) of all candidates, (temperatures, candidates) a group.

        Where there is no context the two are one and the same, so that PMI is 0 exactly.
        """
        jobs = [self._job(language, of, group) for group in chunk]
        alone = _context_free(language.scorer, {ids for job in jobs for ids in job.candidates})
        filled = [job for job in jobs if job.context.sentences]
        scored = iter(language.scorer.score([job.trie for job in filled], [job.context for job in filled]))
        totals = []
        for job in jobs:
            free = np.stack([alone[ids] for ids in job.candidates], axis=1)
            totals.append((next(scored).totals if job.context.sentences else free, free))
        return totals

    def _job(self, language: LanguageModel, of: ContrastiveSet, group: Group) -> _Job:
        """A group in the D-LM's ids, its context as far as that counts and fits."""
        candidates = [_ids(language.text, of, text) for text in group.candidates]
        if max(map(len, candidates)) >= language.scorer.positions:
            raise _too_long(of, group, "a candidate", "D-LM")
        trie = language.scorer.trie(candidates)
        last = group.context[-self.context :] if self.context else ()
        context = Context(tuple(_ids(language.text, of, text) for text in last))
        return _Job(candidates, trie, language.scorer.fitted(context, trie))


@dataclass(frozen=True)
class _Job:
    candidates: list[Ids]
    trie: Trie
    context: Context


def _context_free(scorer: LMScorer, sentences: Iterable[Ids]) -> dict[Ids, Floats]:
    """log p(ỹ|</s>) of different sentences, (temperatures,) each.

    Groups of a set have candidates in common, and beginnings: here they are all merged, whatever their group.
    """
    found: dict[Ids, Floats] = {}
    pools = list(_pools(sorted(sentences)))
    for pool, scored in zip(pools, scorer.free([scorer.trie(pool) for pool in pools]), strict=True):
        found.update(zip(pool, scored.totals.T, strict=True))
    return found


def _pools(ordered: Iterable[Ids]) -> Iterator[list[Ids]]:
    """Neighbours together, up to the nodes that a row of the network holds."""
    pool: list[Ids] = []
    nodes = 1
    for ids in ordered:
        shared = _shared(pool[-1], ids) if pool else 0
        if pool and nodes + len(ids) - shared > ROW:
            yield pool
            pool, nodes, shared = [], 1, 0
        pool.append(ids)
        nodes += len(ids) - shared
    if pool:
        yield pool


def _shared(first: Ids, second: Ids) -> int:
    """How many tokens two sentences begin with in common."""
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _translations(model: TranslationModel, of: ContrastiveSet, chunk: Sequence[Group]) -> list[Floats]:
    """log p(ỹ|x) of all candidates; what becomes the same ids is scored once, and ties whatever the batch."""
    pairs: list[list[tuple[str, Ids]]] = []
    for group in chunk:
        source = _plain(model.source, of, group.source)
        if not model.generator.fits(source):
            raise _too_long(of, group, "the source", "S-NMT")
        targets = [_ids(model.target, of, text) for text in group.candidates]
        if max(map(len, targets)) >= model.positions:
            raise _too_long(of, group, "a candidate", "S-NMT")
        pairs.append([(source, target) for target in targets])
    distinct = list(dict.fromkeys(pair for own in pairs for pair in own))
    found = model.generator.log_probs([source for source, _ in distinct], [ids for _, ids in distinct])
    scores = dict(zip(distinct, found, strict=True))
    return [np.array([scores[pair] for pair in own]) for own in pairs]


def _ids(pipeline: TextPipeline, of: ContrastiveSet, text: str) -> Ids:
    return tuple(pipeline.encode(_plain(pipeline, of, text)))


def _plain(pipeline: TextPipeline, of: ContrastiveSet, text: str) -> str:
    """The text as people write it: Moses' tokens are joined, to be split again as the models learnt it."""
    return pipeline.moses.detokenise(text.split()) if of.tokenised else text


def _too_long(of: ContrastiveSet, group: Group, what: str, model: str) -> CadecError:
    return CadecError(
        f"{of.path}: group {group.name}: {what} is longer than the {model} has positions for",
        "leave the group out, or use models with more positions",
    )


@dataclass(frozen=True)
class Failure:
    """A group that a scorer got wrong."""

    group: Group
    terms: Terms
    scores: Floats
    verdict: Verdict


@dataclass(frozen=True)
class Result:
    """What a scorer made of a set."""

    of: ContrastiveSet
    scorer: Scorer
    accuracy: Accuracy
    failures: tuple[Failure, ...]  # the first few


def evaluate(
    of: ContrastiveSet, terms: Sequence[Terms], some: Sequence[Scorer], failures: int = 0
) -> list[Result]:
    """Judge every group by every scorer, whose terms have been computed once for all."""
    results = []
    for scorer in some:
        scores = [scorer.scores(one) for one in terms]
        verdicts = [judge(group, own) for group, own in zip(of.groups, scores, strict=True)]
        wrong = (
            Failure(of.groups[index], terms[index], scores[index], verdict)
            for index, verdict in enumerate(verdicts)
            if not verdict.right
        )
        shown = tuple(itertools.islice(wrong, failures))
        results.append(Result(of, scorer, accuracy(of.groups, verdicts), shown))
    return results


def term_records(group: Group, terms: Terms, scores: Floats) -> Iterator[dict[str, Any]]:
    """The candidates of a group with all that is known of them, as plain data; the first temperature's."""
    for index, text in enumerate(group.candidates):
        record: dict[str, Any] = {
            "group": group.name,
            "candidate": index,
            "text": text,
            "true": index == group.truth,
        }
        if terms.translation is not None:
            record["log_prob"] = float(terms.translation[index])
        if terms.conditional is not None and terms.free is not None:
            conditional, free = float(terms.conditional[0, index]), float(terms.free[0, index])
            record |= {"conditional": conditional, "free": free, "pmi": conditional - free}
        yield record | {"score": float(scores[index])}
