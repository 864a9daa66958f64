"""Pages that explain choices token by token: of a translation, and of a contrastive test.

A translation's page has every sentence beside the S-NMT's own; a test's has accuracies by scorer and set, and
failed groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cadec_cli.decoding.confidence import Judge
from cadec_cli.decoding.explain import ExplainedTranslation, Explanation, TokenPMI
from cadec_cli.decoding.glossary.outcomes import KEPT, term_outcomes
from cadec_cli.decoding.manner.outcomes import manner_outcomes
from cadec_cli.decoding.translation import TranslatedPart
from cadec_cli.evaluation.contrastive.scoring import ContrastiveScorer, Failure, ScorerResult, SetResults
from cadec_cli.evaluation.contrastive.sets import SAMPLES
from cadec_cli.jobs.cue_checks import CueChecks
from cadec_cli.jobs.in_step import SegmentRecord, SideOutput
from cadec_cli.jobs.job import TranslationJob
from cadec_cli.method.objectives import NMT, pmi_of
from cadec_cli.method.options import AUTO, TranslationOptions
from cadec_cli.reports.page import (
    Figures,
    Page,
    ReportHypothesis,
    ReportPart,
    ReportSegment,
    ReportToken,
    plain,
    put,
    with_notes,
    write_page,
)
from cadec_cli.text.formats.subtitles.cues import clock
from cadec_cli.text.glossary.reader import is_written_out

COLUMNS = ("source", "sentence level", "in context")


def translation_report(
    path: Path, job: TranslationJob, names: Sequence[str], cues: CueChecks | None = None
) -> SideOutput:
    """A report that is written along with a translation; `names` are the names of the files to show.

    `cues` has the cues of all files that are too fast or too long, as soon as the files are complete.
    """
    checked = cues or CueChecks()

    def write(records: Iterable[SegmentRecord]) -> None:
        codes = (job.languages.source_code, job.languages.target_code)
        page = _page(names, job.options, job.bundle.name, codes)
        segments = (
            with_notes(put(one.made, group(one), _label(one.place, one.sentence)), notes)
            for one, notes in _with_cues(records, checked)
        )
        write_page(path, replace(page, figures=tuple(_cue_figures(names, checked))), segments)

    def group(one: SegmentRecord) -> str:
        document = f"document {one.document + 1}"
        return f"{names[one.file]}, {document}" if len(names) > 1 else document

    return SideOutput(path, plain_segment, write)


def plain_segment(explained: ExplainedTranslation, judge: Judge) -> dict[str, Any]:
    """A segment of the page as plain data; `put` gives it its place."""
    return plain(translated_segment(explained, judge))


def _with_cues(
    records: Iterable[SegmentRecord], cues: CueChecks
) -> Iterator[tuple[SegmentRecord, list[str]]]:
    """Yield sentences with remarks on their cues."""
    file, number = -1, 0
    for one in records:
        file, number = one.file, number + 1 if one.file == file else 0
        found = cues.found[file].of_sentence(number) if file in cues.found else []
        yield one, [f"cue {problem.number}: {'; '.join(problem.reasons)}" for problem in found]


def _cue_figures(names: Sequence[str], cues: CueChecks) -> Iterator[Figures]:
    """A table of the cues that are too fast or too long; none if there are none."""
    if not cues.in_order:
        return
    rows = (
        (
            *((names[file],) if len(names) > 1 else ()),
            f"{one.number}",
            clock(one.start),
            f"{one.characters}",
            f"{one.cps:.1f}" if one.too_fast else "",
            " + ".join(map(str, one.widths)) if one.too_long else "",
        )
        for file, one in cues.in_order
    )
    limits = cues.in_order[0][1].limits
    before = cues.found.values()
    yield Figures(
        "Cues that are too fast or too long",
        (
            *(("file",) if len(names) > 1 else ()),
            *("cue", "time", "characters", "characters per second", "characters of its lines"),
        ),
        tuple(rows),
        f"More than {limits.max_cps:g} characters per second or {limits.max_chars} per line. In the source "
        f"{sum(one.too_fast_in_source for one in before):,} are too fast and "
        f"{sum(one.too_long_in_source for one in before):,} too long.",
    )


def _page(names: Sequence[str], options: TranslationOptions, bundle: str, languages: tuple[str, str]) -> Page:
    facts = {"files": ", ".join(names), "bundle": bundle, **_facts(options)}
    return Page(
        f"Translation of {names[0] if len(names) == 1 else f'{len(names)} files'}",
        "sentences",
        COLUMNS,
        {name: value for name, value in facts.items() if value},
        languages,
        changed="changed by context" if options.search != "sentence" else "",
    )


def _label(place: str, sentence: int) -> str:
    """The number of a sentence in its document."""
    return place.removeprefix("line ") or str(sentence + 1)


def translated_segment(explained: ExplainedTranslation, judge: Judge) -> ReportSegment:
    """A sentence as a page shows it, without a group."""
    translation = explained.translation
    confidence = judge.of(translation)
    flagged = confidence is not None and judge.is_flagged(confidence)
    explanations: Sequence[Explanation | None] = explained.explanations or [None] * len(translation.parts)
    return ReportSegment(
        "",
        _label(translation.place, translation.sentence),
        translation.source,
        translation.text,
        explained.sentence_level,
        confidence.value if confidence is not None else None,
        confidence.reasons if confidence is not None and flagged else (),
        (
            *map(str, term_outcomes(translation.parts)),
            *(str(one) for one in manner_outcomes(translation.parts) if one.outcome != KEPT),
        ),
        parts=tuple(
            _part(part, explanation)
            for part, explanation in zip(translation.parts, explanations, strict=True)
        ),
    )


def _part(part: TranslatedPart, explanation: Explanation | None) -> ReportPart:
    choice = part.choice
    if choice is None:
        return ReportPart()
    pmi = choice.pmi
    hypotheses = tuple(
        ReportHypothesis(
            part.hypotheses[index].text,
            choice.shown_score(index),
            part.hypotheses[index].log_prob,
            pmi[index] if pmi is not None else None,
            index == choice.index,
            "broken" if choice.is_broken(index) else "S-NMT's first" if index == 0 and choice.index else "",
        )
        for index in choice.ranking
    )
    if explanation is None:
        return ReportPart(hypotheses)
    rows = {row.name: report_tokens(row.tokens) for row in explanation.rows}
    return ReportPart(hypotheses, explanation.lines, rows.get("chosen", ()), rows.get("first", ()))


def report_tokens(tokens: Sequence[TokenPMI]) -> tuple[ReportToken, ...]:
    """The tokens of an explanation as a page shows them."""
    return tuple(ReportToken(token.text, token.pmi) for token in tokens)


def _facts(options: TranslationOptions) -> dict[str, str]:
    """The options that matter for this search."""
    facts = {"search": options.search}
    if options.weighted_objective.uses_lm:
        weights = "".join(
            f", {name} = {value:g}" for name, value in options.weighted_objective.weights.items()
        )
        facts |= {
            "objective": options.objective + weights,
            "temperature": f"{options.temperature:g}",
            "context": "all that fits" if options.policy.rolling else f"{options.context} sentences",
        }
        if options.retrieve:
            facts["retrieved"] = f"up to {options.retrieve} earlier sentences"
    if options.glossary:
        names = ("typed in" if is_written_out(source) else Path(source).name for source in options.glossary)
        facts["glossary"] = f"{', '.join(names)}, {options.glossary_weight:g} per term"
    if options.formality != AUTO:
        facts["formality"] = options.formality
    facts |= {name: Path(given).name for name in ("cast", "about") if (given := getattr(options, name))}
    return facts | {"hypotheses": str(options.list_size)}


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
        failed_segment(of_set, result, failed)
        for of_set, result in _all(results)
        for failed in result.failures
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


def failed_segment(of_set: SetResults, result: ScorerResult, failed: Failure) -> ReportSegment:
    """A failed group: the true candidate, the one preferred to it, and the scores of all candidates."""
    group, verdict = failed.group, failed.verdict
    rows = failed.explanation.rows if failed.explanation is not None else ()
    true, rival = (report_tokens(row.tokens) for row in rows) if rows else ((), ())
    order = sorted(range(len(group.candidates)), key=lambda index: -float(failed.scores[index]))
    part = ReportPart(
        tuple(_candidate(failed, index) for index in order),
        failed.explanation.lines if failed.explanation is not None else None,
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
    pmi = pmi_of(terms)
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
