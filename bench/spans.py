"""What share of URLs, numbers, code and the like comes through a translation unchanged.

    python -m bench.spans [--bundle B] [--before] [--lost] [--options "--search sentence"]

The text is bench/texts/spans.en.txt; spans.en.jsonl beside it says of each sentence which spans it has and
what has to be in the translation for each: the span itself, or of a date in words and a quantity its numbers.
It goes through `cadec translate` as a user's file would, a line a sentence. With --before it goes through
twice, first with the protection of spans switched off.
"""

import argparse
import json
import re
import shlex
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cadec_cli.main import app, exit_code

TEXT = Path(__file__).parent / "texts" / "spans.en.txt"
ANNOTATION = TEXT.with_suffix(".jsonl")
UNPROTECTED = "--no-protect"


@dataclass(frozen=True)
class Span:
    kind: str
    text: str
    must: tuple[str, ...]  # what has to be in the translation


@dataclass(frozen=True)
class Annotated:
    sentence: str
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class Fate:
    """What became of a span: still there, and no more often than it should be."""

    span: Span
    survives: bool
    exact: bool


def read_annotation(path: Path = ANNOTATION) -> list[Annotated]:
    rows: list[dict[str, Any]] = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [
        Annotated(
            row["sentence"],
            tuple(Span(span["kind"], span["text"], tuple(span["must"])) for span in row["spans"]),
        )
        for row in rows
    ]


def occurrences(span: str, text: str) -> int:
    """Count a span where it stands for itself: 17 is not in 1742."""
    before = r"(?<!\w)" if span[:1].isalnum() else ""
    after = r"(?!\w)" if span[-1:].isalnum() else ""
    return len(re.findall(before + re.escape(span) + after, text))


def fates(annotated: Annotated, translation: str) -> list[Fate]:
    """Tell of each span of a sentence whether it is in the translation; one place serves one span."""
    wanted = {must for span in annotated.spans for must in span.must}
    found = {must: occurrences(must, translation) for must in wanted}
    as_often = {must for must in wanted if found[must] == occurrences(must, annotated.sentence)}
    left = Counter(found)
    results = []
    for span in annotated.spans:
        survives = all(left[must] > 0 for must in span.must)
        if survives:
            left.subtract(span.must)
        results.append(Fate(span, survives, survives and as_often.issuperset(span.must)))
    return results


def translated(bundle: str | None, options: Sequence[str]) -> list[str]:
    """Translate the text by the command; blank lines between its documents are left out again."""
    chosen = ["--bundle", bundle] if bundle else []
    with tempfile.TemporaryDirectory() as directory:
        output = Path(directory) / "translation.txt"
        arguments = ["translate", str(TEXT), "--lines", "-o", str(output), *chosen, *options]
        if code := exit_code(arguments):
            raise SystemExit(code)
        lines = zip(TEXT.read_text("utf-8").split("\n"), output.read_text("utf-8").split("\n"), strict=True)
        return [translation for source, translation in lines if source]


def can_be_switched_off() -> bool:
    """Tell whether this cadec protects spans at all."""
    command: Any = typer.main.get_command(app)
    parameters = command.commands["translate"].params
    return any(UNPROTECTED in (*parameter.opts, *parameter.secondary_opts) for parameter in parameters)


def _share(hits: Iterable[bool]) -> str:
    counted = list(hits)
    return f"{100 * sum(counted) / len(counted):.1f}" if counted else "–"


def table_of(runs: dict[str, list[list[Fate]]]) -> Table:
    """One row a kind: how many there are, and for each run which share survives, and is there as often."""
    table = Table("kind", title="spans that survive, %", title_justify="left")
    table.add_column("spans", justify="right")
    for name in runs:
        table.add_column(name, justify="right")
        table.add_column("as often", justify="right")
    all_fates = {name: [fate for row in rows for fate in row] for name, rows in runs.items()}
    first = next(iter(all_fates.values()))
    kinds = sorted({fate.span.kind for fate in first})
    for kind in [*kinds, "all"]:
        cells = []
        for found in all_fates.values():
            chosen = [fate for fate in found if kind in (fate.span.kind, "all")]
            cells += [_share(fate.survives for fate in chosen), _share(fate.exact for fate in chosen)]
        count = sum(kind in (fate.span.kind, "all") for fate in first)
        table.add_row(kind, str(count), *cells, end_section=kind == kinds[-1])
    cells = []
    for rows in runs.values():
        filled = [row for row in rows if row]
        cells += [
            _share(all(fate.survives for fate in row) for row in filled),
            _share(all(fate.exact for fate in row) for row in filled),
        ]
    table.add_row("whole sentences", str(sum(map(bool, next(iter(runs.values()))))), *cells)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.spans", description="What share of spans survives a translation."
    )
    parser.add_argument("--bundle", help="the bundle to translate with [default: the embedded one]")
    parser.add_argument("--options", default="", help="options of `cadec translate`, in one string")
    parser.add_argument("--before", action="store_true", help=f"translate with {UNPROTECTED} too, and first")
    parser.add_argument("--lost", action="store_true", help="show the sentences that lost something")
    asked = parser.parse_args()
    console = Console()
    options = shlex.split(asked.options)
    ways = {"protected": options} if can_be_switched_off() else {"as it is": options}
    if asked.before and can_be_switched_off():
        ways = {"before": [*options, UNPROTECTED], **ways}
    annotation = read_annotation()
    texts = {name: translated(asked.bundle, way) for name, way in ways.items()}
    runs = {
        name: [fates(row, line) for row, line in zip(annotation, lines, strict=True)]
        for name, lines in texts.items()
    }
    console.print(table_of(runs))
    controls = [number for number, row in enumerate(annotation) if not row.spans]
    if len(texts) > 1:
        before, after = texts.values()
        same = sum(before[number] == after[number] for number in controls)
        console.print(f"sentences without spans that are translated the same: {same} of {len(controls)}")
    if asked.lost:
        name, rows = list(runs.items())[-1]
        for row, line, found in zip(annotation, texts[name], rows, strict=True):
            if lost := [fate.span.text for fate in found if not fate.exact]:
                console.print(escape(f"{row.sentence}\n  {line}\n  {lost}"))


if __name__ == "__main__":
    main()
