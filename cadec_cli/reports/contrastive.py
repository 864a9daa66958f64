"""The page of a contrastive test: accuracies by scorer and set, and failed groups token by token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from cadec_cli.evaluation.contrastive.scoring import ContrastiveScorer, Failure, ScorerResult, SetResults
from cadec_cli.evaluation.contrastive.sets import SAMPLES
from cadec_cli.method.objectives import CONDITIONAL, FREE, NMT
from cadec_cli.reports.page import Figures, Page, write_page
from cadec_cli.reports.segments import ReportHypothesis, ReportPart, ReportSegment, plain
from cadec_cli.reports.translations import report_tokens

# Failed groups per scorer and set that a page shows by default.
SHOWN = 50


def write_contrastive_page(
    path: Path,
    results: Sequence[SetResults],
    *,
    context: int,
    kept: int,
    languages: tuple[str, str] = ("", ""),
) -> None:
    """Write the results of scorers on sets; `kept` is the most failures per scorer and set."""
    temperatures = sorted({t for _, result in _all(results) if (t := result.scorer.temperature) is not None})
    facts = {
        "sets": ", ".join(of_set.contrastive_set.name for of_set in results),
        "context": f"{context} sentences",
        "temperature": ", ".join(f"{temperature:g}" for temperature in temperatures),
        "failed groups": f"the first {kept} of each scorer and set",
    }
    segments = (
        segment_of(of_set, result, failed) for of_set, result in _all(results) for failed in result.failures
    )
    page = Page(
        "Contrastive evaluation",
        "failed groups",
        ("source", "true", "preferred"),
        {name: value for name, value in facts.items() if value},
        languages,
        tuple(_figures(results)),
        empty="No group failed.",
        groups="sets and scorers",
        details="candidates",
    )
    write_page(path, page, map(plain, segments))


def segment_of(of_set: SetResults, result: ScorerResult, failed: Failure) -> ReportSegment:
    """A failed group: the true candidate, the one preferred to it, and the scores of all candidates."""
    group, verdict = failed.group, failed.verdict
    rows = failed.explanation.rows if failed.explanation is not None else ()
    true, rival = (report_tokens(row.tokens) for row in rows) if rows else ((), ())
    order = sorted(range(len(group.candidates)), key=lambda index: -float(failed.scores[index]))
    part = ReportPart(
        tuple(_candidate(failed, index) for index in order),
        failed.explanation.context if failed.explanation is not None else None,
        rival,
        true,
    )
    distance = (f"distance {group.distance}",) if group.distance is not None else ()
    return ReportSegment(
        f"{of_set.contrastive_set.name}: {scorer_name(result.scorer)}",
        group.name,
        group.source,
        group.candidates[verdict.rival],
        group.candidates[group.truth],
        flags=("tie",) * verdict.tied,
        notes=distance,
        parts=(part,),
    )


def scorer_name(scorer: ContrastiveScorer) -> str:
    """The objective with its weight and temperature, if it has them."""
    weight = scorer.objective.weights.get("lm")
    name = scorer.objective.name + (f" × {weight:g}" if weight is not None else "")
    return name + (f", T {scorer.temperature:g}" if scorer.temperature is not None else "")


def _candidate(failed: Failure, index: int) -> ReportHypothesis:
    terms = failed.terms
    pmi = terms[CONDITIONAL] - terms[FREE] if CONDITIONAL in terms and FREE in terms else None
    return ReportHypothesis(
        failed.group.candidates[index],
        float(failed.scores[index]),
        float(terms[NMT][index]) if NMT in terms else None,
        float(pmi[index]) if pmi is not None else None,
        index == failed.verdict.rival,
        "true" if index == failed.group.truth else "",
    )


def _all(results: Sequence[SetResults]) -> Iterator[tuple[SetResults, ScorerResult]]:
    return ((of_set, result) for of_set in results for result in of_set.scorers)


def _figures(results: Sequence[SetResults]) -> Iterator[Figures]:
    """A table of accuracies, scorers by sets; then one table by distance for each set that has distances."""
    sets = [of_set.contrastive_set for of_set in results]
    rows = zip(*(of_set.scorers for of_set in results), strict=True)
    yield Figures(
        "Accuracy, %",
        ("scorer", *(f"{one.name}\n{len(one.groups):,} groups" for one in sets)),
        (
            *((scorer_name(row[0].scorer), *map(_accuracy, row)) for row in rows),
            ("chance", *(f"{100 * one.chance:.1f}" for one in sets)),
        ),
        f"Below each its 95 % interval, of {SAMPLES:,} bootstrap samples of groups. A tie is wrong.",
    )
    for of_set in results:
        distances = of_set.scorers[0].accuracy.by_distance
        if distances:
            yield Figures(
                f"{of_set.contrastive_set.name}: by distance of the antecedent, %",
                ("scorer", *(f"{label}\n{groups:,} groups" for label, (_, groups) in distances.items())),
                tuple((scorer_name(result.scorer), *_by_distance(result)) for result in of_set.scorers),
                "Distance in sentences.",
            )


def _accuracy(result: ScorerResult) -> str:
    figure = result.accuracy
    ties = f"\n{figure.ties:,} {'tie' if figure.ties == 1 else 'ties'}" if figure.ties else ""
    return f"{100 * figure.share:.1f}\n{100 * figure.low:.1f}–{100 * figure.high:.1f}{ties}"


def _by_distance(result: ScorerResult) -> Iterator[str]:
    return (f"{100 * right / groups:.1f}" for right, groups in result.accuracy.by_distance.values())
