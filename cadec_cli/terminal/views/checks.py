"""What `cadec check` found: as lines for people, as plain data for programs, and in one sentence."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from rich.text import Text

from cadec_cli.evaluation.checks.findings import ERROR, HINT, SEVERITIES, WARNING, CheckResults, Finding, Pair
from cadec_cli.terminal.console import visible

_STYLES = {ERROR: "bold red", WARNING: "yellow", HINT: "dim"}
_WIDTH = 74  # characters of a sentence that are shown; with its margin they fit a terminal


def lines(results: CheckResults) -> Iterator[Text]:
    """Findings by place, each with its severity and its check; below them both texts, shortened."""
    for _, group in itertools.groupby(results.findings, key=lambda finding: id(finding.pair)):
        findings = list(group)
        pair = findings[0].pair
        for finding in findings:
            line = Text(f"{place_of(finding)}: ", "bold")
            line.append(finding.severity, _STYLES[finding.severity])
            yield line.append(f": {finding.check}: {visible(finding.message)}")
        if pair is not None:
            yield from _texts(pair, findings)


def _texts(pair: Pair, findings: list[Finding]) -> Iterator[Text]:
    for side, style in (("source", "dim"), ("target", "")):
        text = getattr(pair, side)
        parts = [part for finding in findings if (part := getattr(finding, f"{side}_part"))]
        if text:
            yield Text("    ").append(visible(excerpt(text, parts[0] if parts else "")), style)


def excerpt(text: str, part: str = "", width: int = _WIDTH) -> str:
    """A text in so many characters, around the part that matters if it is there."""
    if len(text) <= width:
        return text
    place = max(0, text.find(part)) if part else 0
    start = 0 if place + len(part) < width else min(max(0, place - width // 3), len(text) - width + 1)
    end = start + width - 1 - (start > 0)
    return f"{'…' if start else ''}{text[start:end].strip()}{'…' if end < len(text) else ''}"


def place_of(finding: Finding) -> str:
    """Where a finding is, by the translation's own numbers if they differ from the source's."""
    pair = finding.pair
    if pair is None:
        return "whole text"
    if not pair.target_place:
        return f"{pair.source_place} of the source"
    return pair.target_place


def records(results: CheckResults) -> Iterator[dict[str, Any]]:
    """One object per finding; a finding about the whole text has no place and no texts."""
    for finding in results.findings:
        record: dict[str, Any] = {
            "check": finding.check,
            "severity": finding.severity,
            "message": finding.message,
        }
        if (pair := finding.pair) is not None:
            record |= {
                "document": pair.document,
                "source_place": pair.source_place,
                "target_place": pair.target_place,
                "source": pair.source,
                "target": pair.target,
            }
        for side in ("source_part", "target_part"):
            if part := getattr(finding, side):
                record[side] = part
        yield record


def summary(results: CheckResults) -> str:
    """How much was found, in how many lines, in which languages."""
    text = results.text
    counts = [_count(results.count(severity), severity) for severity in SEVERITIES]
    found = ", ".join(filter(None, counts)) or "nothing found"
    names = [code or "?" for code in (text.source_language, text.target_language)]
    what = "sentences" if text.has_cues else "lines"
    return f"{text.name}: {found} in {len(text.pairs):,} {what}, {names[0]} → {names[1]}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' if number > 1 else ''}" if number else ""


def skipped(results: CheckResults) -> str:
    """The checks that could not be made, with the reasons; "" if there is none."""
    reasons = [f"{name} ({reason})" for name, reason in results.skipped]
    return f"not checked: {', '.join(reasons)}" if reasons else ""
