"""The claims that results must meet, and the results as plain tables and as files."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cadec_cli.fs.atomic import atomic_file
from cadec_cli.reproduction.measurements import Accuracy, Quality, Results, Row
from cadec_cli.reproduction.scales import ExperimentPaths

# The paper's claims, which must hold for the made-up pair, where everything is known.


# Sets whose ambiguity only the target side resolves, the one that either side resolves, and the one where
# frequency misleads.
ONLY_TARGET, EITHER_SIDE, MISLEADING = ("address", "names"), "ellipsis", "rare-words"
# How far a guesser's share may be from chance, with a few hundred groups; the share that counts as solved.
_CLOSE, _SOLVED = 0.12, 0.9


@dataclass(frozen=True)
class Claim:
    """A statement, and a function that tells whether results confirm it."""

    text: str
    holds: Callable[[Results], bool]


def failing(results: Results) -> list[str]:
    """The claims that do not hold."""
    return [claim.text for claim in CLAIMS if not claim.holds(results)]


def _accuracy_of(results: Results, name: str, of_set: str) -> float:
    return results.row(name).accuracies[of_set].share


def _chance(results: Results, of_set: str) -> float:
    return results.row("sentence").accuracies[of_set].chance


def _solves(name: str, *sets: str) -> Callable[[Results], bool]:
    return lambda results: all(_accuracy_of(results, name, one) >= _SOLVED for one in sets)


def _guesses(name: str, *sets: str) -> Callable[[Results], bool]:
    return lambda results: all(
        abs(_accuracy_of(results, name, one) - _chance(results, one)) <= _CLOSE for one in sets
    )


def _above_chance(name: str, *sets: str) -> Callable[[Results], bool]:
    return lambda results: all(
        _accuracy_of(results, name, one) - _chance(results, one) > 2 * _CLOSE for one in sets
    )


def _beats(first: str, second: str, *sets: str) -> Callable[[Results], bool]:
    return lambda results: all(
        _accuracy_of(results, first, one) > _accuracy_of(results, second, one) for one in sets
    )


def _nearest(results: Results, name: str, of_set: str) -> float:
    return results.row(name).accuracies[of_set].by_distance["1"]


def _correlations(results: Results, contexts: str) -> float:
    """Pearson's R between the PMI of sources and of their human translations; 0 if undefined."""
    panel = next(one for one in results.panels if one.value == "PMI" and one.contexts == contexts)
    return panel.pearson or 0.0


CONTEXTUAL = (*ONLY_TARGET, EITHER_SIDE)

CLAIMS: tuple[Claim, ...] = (
    Claim("a model of sentences can only guess", _guesses("sentence", *CONTEXTUAL)),
    Claim("C-score resolves all three kinds of context dependence", _solves("rerank", *CONTEXTUAL)),
    Claim("C-score beats the sentence level on contrastive tests", _beats("rerank", "sentence", *CONTEXTUAL)),
    Claim(
        "C-score beats conditional shallow fusion on contrastive tests",
        _beats("rerank", "conditional-shallow-fusion", *ONLY_TARGET),
    ),
    Claim("shallow fusion without context can only guess", _guesses("shallow-fusion", *CONTEXTUAL)),
    Claim("Bayes DocReranker uses the context", _solves("bayes", *ONLY_TARGET)),
    Claim(
        "Bayes DocReranker without context can only guess", _guesses("bayes-without-context", *ONLY_TARGET)
    ),
    Claim(
        "PMI beats conditional probability where frequency misleads", _beats("pmi", "conditional", MISLEADING)
    ),
    Claim(
        "DocTransformer, which reads the source, resolves what the source shows",
        _solves("doc-nmt", EITHER_SIDE),
    ),
    Claim("DocTransformer can't resolve what only the target shows", _guesses("doc-nmt", *ONLY_TARGET)),
    Claim("2-to-2 resolves what the sentence before shows", _solves("2-to-2", EITHER_SIDE)),
    Claim(
        "2-to-2 sees the target sentence before, and no further",
        lambda results: (
            _nearest(results, "2-to-2", "address") >= _SOLVED
            and _accuracy_of(results, "2-to-2", "address") < _SOLVED
        ),
    ),
    Claim("DocRepair makes sentences agree", _above_chance("repair", "address")),
    Claim(
        "PMI with true contexts correlates with the source's",
        lambda results: _correlations(results, "own") > 0.2,
    ),
    Claim(
        "PMI with random contexts does not",
        lambda results: abs(_correlations(results, "random")) < 0.5 * _correlations(results, "own"),
    ),
    Claim(
        "every system translates about as well as the sentence level, or better",
        lambda results: all(
            row.quality["BLEU"].score > 0.8 * results.row("sentence").quality["BLEU"].score
            for row in results.rows
        ),
    ),
    Claim(
        "C-aware rerank translates better than the sentence level",
        lambda results: (
            results.row("rerank").quality["BLEU"].score > results.row("sentence").quality["BLEU"].score
        ),
    ),
)


@dataclass(frozen=True)
class PlainTable:
    """Cells are text; the first column names the row."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def tables(results: Results) -> list[PlainTable]:
    """All tables that have rows."""
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
        "best: highest BLEU; strongest: the D-LM with most influence that does not lower BLEU",
    )


def settings_line(results: Results) -> str:
    """Sizes, updates and minutes as text."""
    sizes = ", ".join(f"{name} {value:,}" for name, value in results.sizes.items())
    updates = ", ".join(f"{name} {value:,}" for name, value in results.updates.items())
    took = f"Steps took {results.minutes:,.0f} minutes (of one that was interrupted, the last part)."
    return f"Sizes: {sizes}. Updates: {updates}. {took}"


# The tables as Markdown, JSON, and one self-contained HTML page.


_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 75em; margin: 2em auto; color: #222; }
table { border-collapse: collapse; margin: .6em 0; }
th, td { padding: .25em .8em; border-bottom: 1px solid #ddd; text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 2px solid #888; }
p.note { color: #666; font-size: 13px; margin-top: 0; }
.scroll { overflow-x: auto; }
img { max-width: 100%; }
"""


def write_reports(places: ExperimentPaths, results: Results) -> list[Path]:
    """Write report.md, report.json and report.html into the working directory."""
    contents = {
        "report.md": markdown(results),
        "report.json": json.dumps(results.record(), ensure_ascii=False, indent=2) + "\n",
        "report.html": page(results),
    }
    for name, content in contents.items():
        with atomic_file(places.work / name) as stream:
            stream.write(content.encode())
    return [places.work / name for name in contents]


def markdown(results: Results) -> str:
    """All tables as Markdown."""
    parts = [f"# Reproduction, {results.scale} scale, {results.date}", settings_line(results)]
    for table in tables(results):
        lines = [f"## {table.title}", "", _line(table.headings)]
        lines.append(_line(["---", *["---:"] * (len(table.headings) - 1)]))
        lines += [_line(row) for row in table.rows]
        parts.append("\n".join(lines))
        if table.note:
            parts.append(table.note[0].upper() + table.note[1:] + ".")
    return "\n\n".join(parts) + "\n"


def page(results: Results) -> str:
    """All tables and the figure as one HTML page."""
    title = f"cadec: reproduction, {results.scale} scale"
    parts = [
        f"<h1>{html.escape(title)}</h1>",
        f"<p>{results.date}. {html.escape(settings_line(results))}</p>",
    ]
    parts += [_html_table(table) for table in tables(results)]
    if results.figure is not None:
        picture = base64.b64encode(results.figure.read_bytes()).decode()
        parts.append(
            "<h2>PMI of sources and of translations</h2>\n"
            f'<img alt="Scatter plots of PMI" src="data:image/png;base64,{picture}">'
        )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{html.escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def _line(cells: list[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _html_table(table: PlainTable) -> str:
    head = "".join(f"<th>{html.escape(one)}</th>" for one in table.headings)
    body = "\n".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
    )
    note = f'\n<p class="note">{html.escape(table.note)}</p>' if table.note else ""
    return (
        f'<h2>{html.escape(table.title)}</h2>\n<div class="scroll"><table>\n<thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>{note}"
    )
