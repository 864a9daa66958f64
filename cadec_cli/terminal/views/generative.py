"""Results of generative tests for people: shares of systems, the same by rule; or as JSON."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from cadec_cli.evaluation.contrastive.sets import SAMPLES
from cadec_cli.evaluation.generative.results import Figure, SetResults, SystemResult
from cadec_cli.evaluation.tuning.search import p_of
from cadec_cli.method.objectives import CONDITIONAL
from cadec_cli.method.options import TranslationOptions
from cadec_cli.method.searches import search_kind
from cadec_cli.terminal.console import visible


def oracle_name(options: TranslationOptions) -> str:
    """The name of the row that tells what the lists hold."""
    return f"any of the {options.nbest}-best"


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
        if of_set.oracle_by_rule:
            yield by_rule(of_set, options)


def shares(results: SetResults, options: TranslationOptions) -> Table:
    """One row per system, the sentence level first and the lists' oracle last."""
    of_set = results.generative_set
    table = _table(f"{visible(of_set.name)}: expected word said, %")
    table.caption = _caption(results, options)
    count = len(of_set.items)
    drawn = "" if count == of_set.in_file else f" of {of_set.in_file:,}"
    table.add_column(Text("said").append(f"\n{count:,}{drawn} items", "dim"), no_wrap=True)
    table.add_column("over sentence level", no_wrap=True)
    addressed = any(result.address is not None for result in results.systems)
    if addressed:
        table.add_column(Text("address").append("\nas the reference's", "dim"), no_wrap=True)
        table.add_column("over sentence level", no_wrap=True)
    for result in results.systems:
        cells = [_share(result.said), _over(result.said)]
        if addressed:
            cells += [_share(result.address, counted=True), _over(result.address)]
        table.add_row(_name(result), *cells)
    table.add_row(Text(oracle_name(options), "dim"), _share(results.oracle))
    return table


def by_rule(results: SetResults, options: TranslationOptions) -> Table:
    """The same rows for every rule of the set."""
    table = _table(f"{visible(results.generative_set.name)}: by rule, %")
    table.columns[0].header = Text("rule")
    table.add_column("system", overflow="fold")
    table.add_column("said", no_wrap=True)
    table.add_column("over sentence level", no_wrap=True)
    for rule, oracle in results.oracle_by_rule.items():
        count = oracle.share.items
        items = Text(f"{count:,} {'item' if count == 1 else 'items'}", "dim")
        names = itertools.chain([Text(visible(rule)), items], itertools.repeat(Text()))
        for result, name in zip(results.systems, names, strict=False):
            figure = result.by_rule[rule]
            table.add_row(name, _name(result), _share(figure), _over(figure, between="  "))
        table.add_row(next(names), Text(oracle_name(options), "dim"), _share(oracle), end_section=True)
    return table


def records(results: Sequence[SetResults], options: TranslationOptions) -> Iterator[dict[str, Any]]:
    """All results as plain data, one object per set and system; the lists' oracle is the last of a set."""
    for of_set in results:
        for result in of_set.systems:
            yield record(of_set, result, options)
        yield {
            **_shared(of_set, options),
            "system": oracle_name(options),
            "kind": "oracle",
            **of_set.oracle.record(),
            "by_rule": {rule: figure.record() for rule, figure in of_set.oracle_by_rule.items()},
        }


def record(results: SetResults, result: SystemResult, options: TranslationOptions) -> dict[str, Any]:
    """A result as plain data, with how it was obtained; what was not computed is absent."""
    found: dict[str, Any] = {**_shared(results, options), "system": result.system.name}
    if not result.system.documents:
        found["kind"] = "other"
    elif result.system.options is None:
        found["kind"] = "sentence level"
    else:
        found |= {"kind": "row", **_settings(result.system.options)}
    found |= result.said.record()
    found["by_rule"] = {rule: figure.record() for rule, figure in result.by_rule.items()}
    if result.address is not None:
        found["address"] = result.address.record()
    return found


def _shared(results: SetResults, options: TranslationOptions) -> dict[str, Any]:
    of_set = results.generative_set
    return {
        "set": str(of_set.path),
        "format": of_set.layout,
        "signature": results.judging.signature,
        "in_file": of_set.in_file,
        "unsayable": results.unsayable,
        "nbest": options.nbest,
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
    if used.uses_lm:
        settings |= {"temperature": options.temperature, "alpha": options.alpha}
    if used.uses(CONDITIONAL):
        settings["context"] = options.context
    return settings


def _table(title: str) -> Table:
    table = Table(title=title, title_justify="left", caption_justify="left", title_style="bold")
    table.add_column("system", overflow="fold")
    return table


def _caption(results: SetResults, options: TranslationOptions) -> str:
    settled = [f"context of {options.context} sentences", results.judging.signature]
    how = f"95 % intervals of {SAMPLES:,} bootstrap samples of items, p of the paired bootstrap"
    return f"{', '.join(settled)}; {how}"


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
    if figure is None or (difference := figure.over_level) is None:
        return Text()
    colour = ("green" if difference.delta > 0 else "red") if difference.significant else ""
    text = Text(f"{difference.delta:+5.1f}", colour)
    text.append(f"  {difference.low:+.1f}…{difference.high:+.1f}", "dim")
    return text.append(f"{between}{p_of(difference)}" if difference.p is not None else "", "dim")
