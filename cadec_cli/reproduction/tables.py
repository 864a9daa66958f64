"""The results as plain tables: titles, headings and cells, for whoever draws them."""

from __future__ import annotations

from dataclasses import dataclass

from cadec_cli.reproduction.results import Accuracy, Quality, Results, Row


@dataclass(frozen=True)
class PlainTable:
    """Cells are text; the first column names the row."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def tables(results: Results) -> list[PlainTable]:
    """All tables that have anything in them."""
    made = [_quality(results), _accuracy(results), _distances(results), _speed(results), _panels(results)]
    made.append(_tuning(results))
    return [table for table in made if table.rows]


def _quality(results: Results) -> PlainTable:
    measures = list(dict.fromkeys(name for row in results.rows for name in row.quality))
    return PlainTable(
        f"Translation of {results.sentences or 0:,} lines",
        ("system", *measures),
        tuple(
            (row.label, *(_figure(row.quality.get(name)) for name in measures))
            for row in results.rows
            if row.quality
        ),
        "in brackets p of the difference from the sentence level (paired bootstrap, two-sided)",
    )


def _figure(quality: Quality | None) -> str:
    if quality is None:
        return ""
    return f"{quality.score:.2f}" + (f" ({quality.p:.3f})" if quality.p is not None else "")


def _accuracy(results: Results) -> PlainTable:
    rows = _scorers(results)
    chances = {name: row.accuracies[name].chance for row in rows for name in row.accuracies}
    return PlainTable(
        "Accuracy on contrastive sets, %",
        ("scorer", *(f"{name} (chance {100 * chances.get(name, 0):.0f})" for name in results.sets)),
        tuple((row.scorer, *(_share(row.accuracies.get(name)) for name in results.sets)) for row in rows),
        "with 95 % intervals; T = 1 and the objectives' own weights, as the paper's authors did; "
        "all context is the reference's",
    )


def _scorers(results: Results) -> list[Row]:
    """One row for all systems that score alike."""
    rows = [row for row in (*results.rows, *results.alone) if row.accuracies]
    return list({row.scorer: row for row in reversed(rows)}.values())[::-1]


def _share(accuracy: Accuracy | None) -> str:
    if accuracy is None:
        return ""
    return f"{100 * accuracy.share:.1f} [{100 * accuracy.low:.1f}, {100 * accuracy.high:.1f}]"


def _distances(results: Results) -> PlainTable:
    rows = _scorers(results)
    columns = [
        (name, distance)
        for name in results.sets
        for distance in dict.fromkeys(d for row in rows for d in _of(row, name))
    ]
    columns = [one for one in columns if sum(name == one[0] for name, _ in columns) > 1]
    return PlainTable(
        "By distance of the antecedent, %",
        ("scorer", *(f"{name} {distance}" for name, distance in columns)),
        tuple(
            (row.scorer, *(_percent(_of(row, name).get(distance)) for name, distance in columns))
            for row in rows
            if columns
        ),
    )


def _of(row: Row, name: str) -> dict[str, float]:
    accuracy = row.accuracies.get(name)
    return dict(accuracy.by_distance) if accuracy is not None else {}


def _percent(share: float | None) -> str:
    return f"{100 * share:.1f}" if share is not None else ""


def _speed(results: Results) -> PlainTable:
    timed = [row for row in results.rows if row.per_second is not None]
    first = timed[0].per_second if timed else None
    return PlainTable(
        "Sentences per second",
        ("system", "here", "of the sentence level's", "paper, TITAN Xp", "of the sentence level's"),
        tuple(
            (
                row.label,
                f"{row.per_second:.1f}",
                f"{row.per_second / first:.3f}" if first else "",
                f"{row.paper_speed:g}" if row.paper_speed is not None else "",
                f"{row.paper_speed / 66:.3f}" if row.paper_speed is not None else "",
            )
            for row in timed
            if row.per_second is not None
        ),
    )


def _panels(results: Results) -> PlainTable:
    return PlainTable(
        "Correlation of sources and translations",
        ("text", "value", "contexts", "points", "Pearson", "Spearman"),
        tuple(
            (
                one.text,
                one.value,
                one.contexts,
                f"{one.points:,}",
                _format_signed(one.pearson),
                _format_signed(one.spearman),
            )
            for one in results.panels
        ),
        "sentences without context are left out",
    )


def _format_signed(value: float | None) -> str:
    return f"{value:+.3f}" if value is not None else "–"


def _tuning(results: Results) -> PlainTable:
    return PlainTable(
        "Tuning",
        ("objective", "protocol", "chosen"),
        tuple(
            (objective, protocol, ", ".join(f"{name} {value:g}" for name, value in chosen.items()))
            for objective, protocols in results.tuning.items()
            for protocol, chosen in protocols.items()
        ),
        "best: highest BLEU; strongest: the D-LM that says most without lowering it",
    )


def settings_line(results: Results) -> str:
    """Sizes and updates, in a sentence."""
    sizes = ", ".join(f"{name} {value:,}" for name, value in results.sizes.items())
    updates = ", ".join(f"{name} {value:,}" for name, value in results.updates.items())
    took = f"Steps took {results.minutes:,.0f} minutes (of one that was interrupted, the last part)."
    return f"Sizes: {sizes}. Updates: {updates}. {took}"
