"""What share of quoted clauses comes through a translation into French, and of the words around them.

    python -m bench.quotes --bundle B [--before] [--lost] [--options "--search sentence"]

The text is bench/texts/quotes.en.txt, 100 sentences with curly quotes; quotes.en-fr.jsonl beside it says of
each sentence which words, of which a French translation has at least one, tell that the quoted clause is
there, and which that the other clause is. It goes through `cadec translate` as a user's file would, a line a
sentence. With --before it goes through twice, first with the protection of text switched off.
"""

import argparse
import json
import re
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cadec_cli.main import exit_code

TEXT = Path(__file__).parent / "texts" / "quotes.en.txt"
ANNOTATION = TEXT.with_name("quotes.en-fr.jsonl")
MARKS = re.compile(r"«.*»|“.*”|„.*“|\".*\"")


@dataclass(frozen=True)
class Quoting:
    """A sentence, and patterns of which a translation has one if a clause of it is there."""

    sentence: str
    quoted: str
    told: str


@dataclass(frozen=True)
class Fate:
    """What became of a sentence: its quoted clause, the other one, and a pair of quotation marks."""

    quoted: bool
    told: bool
    marks: bool


def read_annotation(path: Path = ANNOTATION) -> list[Quoting]:
    return [Quoting(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]


def fate(quoting: Quoting, translation: str) -> Fate:
    """Tell which clauses a translation has."""
    quoted, told = (
        bool(re.search(pattern, translation, re.IGNORECASE)) for pattern in (quoting.quoted, quoting.told)
    )
    return Fate(quoted, told, bool(MARKS.search(translation)))


def translated(bundle: str | None, options: Sequence[str]) -> list[str]:
    """Translate the text by the command."""
    chosen = ["--bundle", bundle] if bundle else []
    with tempfile.TemporaryDirectory() as directory:
        output = Path(directory) / "translation.txt"
        arguments = ["translate", str(TEXT), "--lines", "-o", str(output), *chosen, *options]
        if code := exit_code(arguments):
            raise SystemExit(code)
        return output.read_text("utf-8").splitlines()


def table_of(runs: dict[str, list[Fate]]) -> Table:
    """One row a run: in how many sentences each clause is there, both are, and there are marks."""
    table = Table(
        "", "quoted clauses", "other clauses", "both", "quotation marks", title="sentences that have"
    )
    for name, fates in runs.items():
        counts = (
            sum(one.quoted for one in fates),
            sum(one.told for one in fates),
            sum(one.quoted and one.told for one in fates),
            sum(one.marks for one in fates),
        )
        table.add_row(name, *(f"{count} of {len(fates)}" for count in counts))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.quotes", description="What share of clauses survives."
    )
    parser.add_argument("--bundle", help="the bundle to translate with, English to French")
    parser.add_argument("--options", default="", help="options of `cadec translate`, in one string")
    parser.add_argument("--before", action="store_true", help="translate with --no-protect too, and first")
    parser.add_argument("--lost", action="store_true", help="show the sentences that lost a clause")
    asked = parser.parse_args()
    console = Console()
    options = shlex.split(asked.options)
    ways = {"protected": options}
    if asked.before:
        ways = {"before": [*options, "--no-protect"], **ways}
    annotation = read_annotation()
    texts = {name: translated(asked.bundle, way) for name, way in ways.items()}
    runs = {
        name: [fate(row, line) for row, line in zip(annotation, lines, strict=True)]
        for name, lines in texts.items()
    }
    console.print(table_of(runs))
    if asked.lost:
        name, fates = list(runs.items())[-1]
        for row, line, found in zip(annotation, texts[name], fates, strict=True):
            if not (found.quoted and found.told):
                console.print(escape(f"{row.sentence}\n  {line}"))


if __name__ == "__main__":
    main()
