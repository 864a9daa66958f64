"""Results of generative tests for people: shares of systems, the same by rule; or as JSON."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from cadec_cli.evaluation.contrastive.sets import SAMPLES
from cadec_cli.evaluation.generative.results import INTERVALS, Figure, SetResults, SystemResult
from cadec_cli.method.objectives import PAIRS
from cadec_cli.method.options import TranslationOptions
from cadec_cli.method.searches import LISTS, search_kind
from cadec_cli.terminal.console import visible


def unsayable(results: SetResults) -> str:
    """Say how many items no translation can pass, and why; empty if there is none."""
    if not results.unsayable:
        return ""
    count = results.unsayable
    return (
        f"{results.generative_set.name}: {results.judging.signature} never finds the expected form of "
        f"{count:,} {'item' if count == 1 else 'items'}, whatever the translation"
    )


def everything(results: Sequence[SetResults], options: TranslationOptions) -> Iterator[Table]:
    """Tables of every set: shares, and shares by rule if the set has rules."""
    for of_set in results:
        yield shares(of_set, options)
        if of_set.rules:
            yield by_rule(of_set)


def shares(results: SetResults, options: TranslationOptions) -> Table:
    """One row per system, the sentence level first and the lists' oracles last."""
    of_set = results.generative_set
    table = _table(f"{visible(of_set.name)}: expected word said, %")
    table.caption = _caption(results, options)
    count = len(of_set.items)
    drawn = "" if count == of_set.in_file else f" of {of_set.in_file:,}"
    table.add_column(Text("said").append(f"\n{count:,}{drawn} items", "dim"), no_wrap=True)
    _add_over(table, results)
    if results.has_addresses:
        table.add_column(Text("address").append("\nas the reference's", "dim"), no_wrap=True)
        _add_over(table, results)
    for result in results.systems:
        cells = [_share(result.said), _over(result.said)]
        if results.has_addresses:
            address = _share(result.address, counted=True)
            if result.forms:
                address.append(f"\n  {result.forms}", "dim")
            cells += [address, _over(result.address)]
        table.add_row(_name(result), *cells)
    for oracle in results.oracles:
        table.add_row(Text(oracle.name, "dim"), _share(oracle.said))
    return table


def by_rule(results: SetResults) -> Table:
    """The same rows for every rule of the set."""
    table = _table(f"{visible(results.generative_set.name)}: by rule, %")
    table.columns[0].header, table.columns[0].max_width = Text("rule"), 32
    table.add_column("system", overflow="fold")
    table.add_column("said", no_wrap=True)
    _add_over(table, results)
    for rule, count in results.rules.items():
        items = Text(f"{count:,} {'item' if count == 1 else 'items'}", "dim")
        names = itertools.chain([Text(visible(rule)), items], itertools.repeat(Text()))
        for result, name in zip(results.systems, names, strict=False):
            figure = result.by_rule[rule]
            table.add_row(name, _name(result), _share(figure), _over(figure, between="  "))
        for oracle in results.oracles:
            table.add_row(next(names), Text(oracle.name, "dim"), _share(oracle.by_rule[rule]))
        table.add_section()
    return table


def records(results: Sequence[SetResults]) -> Iterator[dict[str, Any]]:
    """All results as plain data, one object per set and system; the lists' oracles are the last of a set."""
    for of_set in results:
        for result in of_set.systems:
            yield record(of_set, result)
        for oracle in of_set.oracles:
            yield {
                **_shared(of_set),
                "system": oracle.name,
                "kind": "oracle",
                "nbest": oracle.size,
                **oracle.said.record(),
                "by_rule": {rule: figure.record() for rule, figure in oracle.by_rule.items()},
            }


def record(results: SetResults, result: SystemResult) -> dict[str, Any]:
    """A result as plain data, with how it was obtained; what was not computed is absent."""
    found: dict[str, Any] = {**_shared(results), "system": result.system.name}
    if not result.system.documents:
        found["kind"] = "other"
    elif result.system.options is None:
        found |= {"kind": "sentence level", "nbest": results.oracles[-1].size}
    else:
        found |= {"kind": "row", **_settings(result.system.options)}
    found |= result.said.record()
    found["by_rule"] = {rule: figure.record() for rule, figure in result.by_rule.items()}
    if result.address is not None:
        by_form = {form: figure.record() for form, figure in result.by_address.items()}
        found["address"] = {**result.address.record(), "by_form": by_form}
    return found


def _shared(results: SetResults) -> dict[str, Any]:
    of_set = results.generative_set
    return {
        "set": str(of_set.path),
        "format": of_set.layout,
        "signature": results.judging.signature,
        "in_file": of_set.in_file,
        "unsayable": results.unsayable,
        "baseline": results.baseline,
        "samples": SAMPLES,
    }


def _settings(options: TranslationOptions) -> dict[str, Any]:
    """The options that a row depends on."""
    if not search_kind(options.search).reads_context:
        return {"search": options.search}
    used = options.weighted_objective
    settings: dict[str, Any] = {
        "search": options.search,
        "objective": used.name,
        "weight": dict(used.weights),
    }
    if search_kind(options.search).needs == LISTS:
        settings["nbest"] = options.nbest
    if used.uses_lm:
        settings |= {"temperature": options.temperature, "alpha": options.alpha}
    if options.reads_context:
        settings["context"] = options.context
        if options.retrieve:
            settings["retrieve"] = options.retrieve
    if PAIRS in used.readings:
        settings["reads"] = options.reads
    return settings


def _table(title: str) -> Table:
    table = Table(title=title, title_justify="left", caption_justify="left", title_style="bold")
    table.add_column("system", overflow="fold")
    return table


def _add_over(table: Table, results: SetResults) -> None:
    """Add the column of differences from the baseline."""
    table.add_column(Text("over ").append(visible(results.baseline)), no_wrap=True)


def _caption(results: SetResults, options: TranslationOptions) -> str:
    retrieved = f" and up to {options.retrieve} retrieved" if options.retrieve else ""
    settled = [f"context of {options.context} sentences{retrieved}", results.judging.signature]
    return f"{', '.join(settled)}; {INTERVALS}"


def _name(result: SystemResult) -> Text:
    return Text(visible(result.system.name), "" if result.system.documents else "italic")


def _share(figure: Figure | None, *, counted: bool = False) -> Text:
    if figure is None:
        return Text("–", "dim")
    share = figure.share
    text = Text(f"{100 * share.share:5.1f}").append(f"  {100 * share.low:.1f}–{100 * share.high:.1f}", "dim")
    items = "item" if share.items == 1 else "items"
    return text.append(f"\n  of {share.items:,} {items}", "dim") if counted else text


def _over(figure: Figure | None, between: str = "\n") -> Text:
    if figure is None or (difference := figure.over_baseline) is None:
        return Text()
    colour = ("green" if difference.delta > 0 else "red") if difference.significant else ""
    text = Text(f"{difference.delta:+5.1f}", colour)
    text.append(f"  {difference.low:+.1f}…{difference.high:+.1f}", "dim")
    return text.append(f"{between}{difference.p_text}" if difference.p is not None else "", "dim")
