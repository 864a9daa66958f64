"""The page of a translation: every sentence beside what the S-NMT alone would have said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cadec_cli.decoding.confidence import Judge
from cadec_cli.decoding.explaining import Explanation, TokenPMI
from cadec_cli.decoding.file_translation import Companion, FileTranslation
from cadec_cli.decoding.streaming import StreamTranslation
from cadec_cli.decoding.translations import TranslatedPart, Translation
from cadec_cli.decoding.translator import Translator
from cadec_cli.method.options import TranslationOptions
from cadec_cli.reports.page import Page, write_page
from cadec_cli.reports.segments import ReportHypothesis, ReportPart, ReportSegment, ReportToken, plain

COLUMNS = ("source", "sentence level", "in context")


def report_beside(
    path: Path,
    work: FileTranslation | StreamTranslation,
    names: Sequence[str],
    *,
    bundle: str = "",
    languages: tuple[str, str],
) -> Companion:
    """A report that is made along with a translation; `names` are those of the files, to be shown."""
    groups = _groups(work, names) if isinstance(work, FileTranslation) and len(names) > 1 else []

    def of(translation: Translation) -> dict[str, Any]:
        group = groups[translation.document] if groups else f"document {translation.document + 1}"
        return plain(segment_of(work.translator, translation, group, work.judge))

    def write(segments: list[dict[str, Any]]) -> None:
        facts = {"files": ", ".join(names), "bundle": bundle, **_facts(work.translator.options)}
        page = Page(
            f"Translation of {names[0] if len(names) == 1 else f'{len(names)} files'}",
            "sentences",
            COLUMNS,
            {name: value for name, value in facts.items() if value},
            languages,
            changed="changed by context" if work.translator.options.search != "sentence" else "",
        )
        write_page(path, page, segments)

    return Companion(of, write)


def segment_of(
    translator: Translator,
    translation: Translation,
    group: str,
    judge: Judge | None = None,
) -> ReportSegment:
    """A sentence as a page shows it; its tokens are scored anew, if there is a D-LM to ask."""
    alone = translator.options.search == "sentence"
    explained = translator.options.maximised.uses_lm and translator.models.language is not None
    judge = judge or Judge()
    confidence = judge.of(translation)
    doubted = confidence is not None and judge.doubts(confidence)
    return ReportSegment(
        group,
        translation.place.removeprefix("line ") or str(translation.sentence + 1),
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


def _groups(work: FileTranslation, names: Sequence[str]) -> list[str]:
    """What each document of several files is called."""
    return [
        f"{name}, document {number + 1}"
        for name, file in zip(names, work.files, strict=True)
        for number in range(len(file.documents))
    ]


def _facts(options: TranslationOptions) -> dict[str, str]:
    """How it was translated, as far as that counts for this search."""
    facts = {"search": options.search}
    if options.maximised.uses_lm:
        weights = "".join(f", {name} = {value:g}" for name, value in options.maximised.weights.items())
        facts |= {
            "objective": options.objective + weights,
            "temperature": f"{options.temperature:g}",
            "context": "all that fits" if options.policy.rolling else f"{options.context} sentences",
        }
    return facts | {"hypotheses": str(options.list_size)}
