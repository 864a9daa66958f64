"""The page of a translation: every sentence beside the S-NMT's own translation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cadec_cli.decoding.confidence import Judge
from cadec_cli.decoding.explain import ExplainedTranslation, Explanation, TokenPMI
from cadec_cli.decoding.translation import TranslatedPart
from cadec_cli.jobs.in_step import SegmentRecord, SideOutput
from cadec_cli.jobs.job import TranslationJob
from cadec_cli.method.options import TranslationOptions
from cadec_cli.reports.page import Page, write_page
from cadec_cli.reports.segments import ReportHypothesis, ReportPart, ReportSegment, ReportToken, plain, put

COLUMNS = ("source", "sentence level", "in context")


def translation_report(path: Path, job: TranslationJob, names: Sequence[str]) -> SideOutput:
    """A report that is written along with a translation; `names` are the names of the files to show."""

    def write(records: Iterable[SegmentRecord]) -> None:
        segments = (put(one.made, group(one), _label(one.place, one.sentence)) for one in records)
        codes = (job.languages.source_code, job.languages.target_code)
        write_page(path, _page(names, job.options, job.bundle.name, codes), segments)

    def group(one: SegmentRecord) -> str:
        document = f"document {one.document + 1}"
        return f"{names[one.file]}, {document}" if len(names) > 1 else document

    return SideOutput(path, plain_segment, write)


def plain_segment(explained: ExplainedTranslation, judge: Judge) -> dict[str, Any]:
    """A segment of the page as plain data; `put` gives it its place."""
    return plain(segment_of(explained, judge))


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


def segment_of(explained: ExplainedTranslation, judge: Judge) -> ReportSegment:
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
    return ReportPart(hypotheses, explanation.context, rows.get("chosen", ()), rows.get("first", ()))


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
    return facts | {"hypotheses": str(options.list_size)}
