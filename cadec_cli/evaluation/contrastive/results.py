"""Results of scorers on contrastive sets: accuracies, and explanations of failed groups."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from cadec_cli.arrays import Floats
from cadec_cli.decoding.explain import Explanation
from cadec_cli.evaluation.contrastive.scoring import ContrastiveModels, ContrastiveScorer
from cadec_cli.evaluation.contrastive.sets import Accuracy, ContrastiveSet, Group, Verdict, accuracy, judge
from cadec_cli.method.terms import Terms


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
