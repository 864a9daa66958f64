"""The page of a translation: every sentence beside what the S-NMT alone would have said."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from cadec_cli.decoding.confidence import Judge
from cadec_cli.decoding.explain import Explanation, TokenPMI
from cadec_cli.decoding.translation import TranslatedPart, Translation
from cadec_cli.decoding.translator import Translator
from cadec_cli.jobs.in_step import SegmentRecord, SideOutput
from cadec_cli.jobs.job import TranslationJob
from cadec_cli.method.options import TranslationOptions
from cadec_cli.reports.page import Page, write_page
from cadec_cli.reports.segments import ReportHypothesis, ReportPart, ReportSegment, ReportToken, plain, put

COLUMNS = ("source", "sentence level", "in context")


def translation_report(path: Path, job: TranslationJob, names: Sequence[str]) -> SideOutput:
    """A report that is made along with a translation; `names` are those of the files, to be shown."""

    def write(records: Iterable[SegmentRecord]) -> None:
        segments = (put(one.made, group(one), _label(one.place, one.sentence)) for one in records)
        codes = (job.languages.source_code, job.languages.target_code)
        write_page(path, _page(names, job.options, job.bundle.name, codes), segments)

    def group(one: SegmentRecord) -> str:
        document = f"document {one.document + 1}"
        return f"{names[one.file]}, {document}" if len(names) > 1 else document

    return SideOutput(path, segment_maker, write)


def segment_maker(translator: Translator, judge: Judge) -> Callable[[Translation], dict[str, Any]]:
    """What turns a translation into a segment of the page, wherever it will stand."""
    return lambda translation: plain(segment_of(translator, translation, "", judge))


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
    """Which sentence of its document it is."""
    return place.removeprefix("line ") or str(sentence + 1)


def segment_of(
    translator: Translator,
    translation: Translation,
    group: str,
    judge: Judge | None = None,
) -> ReportSegment:
    """A sentence as a page shows it; its tokens are scored anew, if there is a D-LM to ask."""
    alone = translator.options.search == "sentence"
    explained = translator.options.weighted_objective.uses_lm and translator.models.language is not None
    judge = judge or Judge()
    confidence = judge.of(translation)
    doubted = confidence is not None and judge.is_flagged(confidence)
    return ReportSegment(
        group,
        _label(translation.place, translation.sentence),
        translation.source,
        translation.text,
        None if alone else translator.sentence_level_of(translation),
        confidence.value if confidence is not None else None,
        confidence.reasons if confidence is not None and doubted else (),
        parts=tuple(
            _part(part, translator.explain(part) if explained else None) for part in translation.parts
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
    """Tokens of an explanation."""
    return tuple(ReportToken(token.text, token.pmi) for token in tokens)


def _facts(options: TranslationOptions) -> dict[str, str]:
    """How it was translated, as far as that counts for this search."""
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
