"""The page of a generative test: shares by system and by rule, and the items that a system fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from cadec_cli.evaluation.generative.results import INTERVALS, Failure, Figure, SetResults, SystemResult
from cadec_cli.method.options import TranslationOptions
from cadec_cli.reports.page import (
    Figures,
    Page,
    ReportHypothesis,
    ReportPart,
    ReportSegment,
    plain,
    write_page,
)

# Failed items per system and set that a page shows.
SHOWN = 200


def write_generative_page(
    path: Path,
    results: Sequence[SetResults],
    options: TranslationOptions,
    *,
    languages: tuple[str, str] = ("", ""),
) -> None:
    """Write the results of systems on sets, which were translated with `options` where rows do not differ."""
    facts = {
        "sets": ", ".join(of_set.generative_set.name for of_set in results),
        "judged by": ", ".join(dict.fromkeys(of_set.judging.signature for of_set in results)),
        "context": f"{options.context} sentences",
        "failed items": f"the first {SHOWN} of each system and set",
    }
    page = Page(
        "Generative evaluation",
        "failed items",
        ("source", "reference", "translation"),
        facts,
        languages,
        tuple(figures for of_set in results for figures in _figures(of_set)),
        empty="No item failed.",
        groups="sets and systems",
    )
    segments = (
        segment_of(of_set, result, failed)
        for of_set in results
        for result in of_set.systems
        for failed in result.failures
    )
    write_page(path, page, map(plain, segments))


def segment_of(results: SetResults, result: SystemResult, failed: Failure) -> ReportSegment:
    """A failed item: reference and translation; of our own systems the context and the n-best list too."""
    item = failed.item
    return ReportSegment(
        f"{results.generative_set.name}: {result.system.name}",
        item.name,
        item.source,
        failed.text,
        item.reference,
        notes=(f"expected: {item.expected}", *([f"rule: {item.rule}"] if item.rule else ())),
        parts=tuple(_parts(failed)),
    )


def _parts(failed: Failure) -> Iterator[ReportPart]:
    listed = failed.hypotheses
    if listed is not None:
        yield ReportPart(
            tuple(
                ReportHypothesis(
                    text,
                    log_prob=log_prob,
                    chosen=text == failed.text,
                    note="says it" if text in failed.sayers else "",
                )
                for text, log_prob in zip(listed.texts, listed.log_probs, strict=True)
            ),
            failed.context,
        )


def _figures(results: SetResults) -> Iterator[Figures]:
    """A table of shares; then one by rule, if the set has rules."""
    of_set = results.generative_set
    count = len(of_set.items)
    addressed = results.has_addresses
    over = f"over {results.baseline}"
    rows = [
        (
            result.system.name,
            _share(result.said),
            _over(result.said),
            *((_address(result), _over(result.address)) if addressed else ()),
        )
        for result in results.systems
    ]
    blank = ("", "") if addressed else ()
    rows += [(oracle.name, _share(oracle.said), "", *blank) for oracle in results.oracles]
    address = ("address as the reference's", over) if addressed else ()
    yield Figures(
        f"{of_set.name}: expected word said, %",
        ("system", f"said\n{count:,} items", over, *address),
        tuple(rows),
        f"{INTERVALS}.",
    )
    if results.rules:
        yield Figures(
            f"{of_set.name}: by rule, %",
            (
                "rule",
                *(result.system.name for result in results.systems),
                *(oracle.name for oracle in results.oracles),
            ),
            tuple(
                (
                    f"{rule}\n{items:,} {'item' if items == 1 else 'items'}",
                    *(_with_over(result.by_rule[rule]) for result in results.systems),
                    *(_share(oracle.by_rule[rule]) for oracle in results.oracles),
                )
                for rule, items in results.rules.items()
            ),
            f"Δ is the difference from {results.baseline}.",
        )


def _share(figure: Figure) -> str:
    share = figure.share
    return f"{100 * share.share:.1f}\n{100 * share.low:.1f}–{100 * share.high:.1f}"


def _with_over(figure: Figure) -> str:
    over = _over(figure)
    return _share(figure) + (f"\nΔ {over}" if over else "")


def _address(result: SystemResult) -> str:
    if (figure := result.address) is None:
        return "–"
    lines = (_share(figure), f"of {figure.share.items:,} items", result.forms)
    return "\n".join(filter(None, lines))


def _over(figure: Figure | None) -> str:
    if figure is None or (difference := figure.over_baseline) is None:
        return ""
    tested = f"\n{difference.p_text}" if difference.p is not None else ""
    return f"{difference.delta:+.1f}\n{difference.low:+.1f}…{difference.high:+.1f}{tested}"
