"""The page of `cadec check`: how much of each kind was found, and every finding with its two texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from cadec_cli.evaluation.checks.findings import HINT, SEVERITIES, CheckResults
from cadec_cli.evaluation.checks.table import CHECKS, PMI_HELP
from cadec_cli.reports.page import Figures, Page, ReportSegment, plain, write_page


def write_checks_page(path: Path, results: CheckResults) -> None:
    """Write the findings, grouped by check; the gravest checks are those that find most errors."""
    text = results.text
    facts = {"translation": text.name, "lines": f"{len(text.pairs):,}"}
    if results.skipped:
        facts["not checked"] = ", ".join(f"{name} ({reason})" for name, reason in results.skipped)
    page = Page(
        "Check of a translation",
        "findings",
        ("source", "", "translation"),
        facts,
        (text.source_language, text.target_language),
        (_figures(results),),
        empty="Nothing was found.",
        groups="checks",
    )
    write_page(path, page, map(plain, _segments(results)))


def _figures(results: CheckResults) -> Figures:
    rows = [
        (name, _help(name), *(str(results.count(severity, name) or "") for severity in SEVERITIES))
        for name in results.checks
    ]
    totals = ("all", "", *(str(results.count(severity)) for severity in SEVERITIES))
    return Figures(
        "Findings", ("check", "what", *(f"{severity}s" for severity in SEVERITIES)), (*rows, totals)
    )


def _help(name: str) -> str:
    return CHECKS[name].help if name in CHECKS else PMI_HELP


def _segments(results: CheckResults) -> Iterator[ReportSegment]:
    for name in results.checks:
        for finding in results.findings:
            if finding.check != name:
                continue
            remark = f"{finding.severity}: {finding.message}"
            pair = finding.pair
            yield ReportSegment(
                name,
                (pair.target_place or pair.source_place) if pair is not None else "whole text",
                pair.source if pair is not None else "",
                pair.target if pair is not None else "",
                flags=() if finding.severity == HINT else (remark,),
                notes=(remark,) if finding.severity == HINT else (),
            )
