"""What `cadec evaluate` does: read, measure, compare, show."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text

from cadec_cli import console
from cadec_cli.bundle.manifest import read_manifest
from cadec_cli.bundle.opening import find_bundle
from cadec_cli.commands.views.translations import stdout_console
from cadec_cli.console import visible
from cadec_cli.errors import CadecError
from cadec_cli.evaluation.aligned import AlignedText, read_aligned
from cadec_cli.evaluation.pmi.correlation import pearson, spearman
from cadec_cli.evaluation.quality.measures import (
    Figure,
    Measure,
    System,
    bleu_measure,
    chrf_measure,
    compare,
    mean_measure,
    multi_bleu_measure,
)
from cadec_cli.evaluation.quality.multi_bleu import script_line
from cadec_cli.evaluation.quality.significance import Resampling

PMI = "PMI"

_FEW_DOCUMENTS = 10


@dataclass(frozen=True)
class Correlation:
    """How a text's PMI goes with its source's."""

    sentences: int
    pearson: float
    spearman: float


@dataclass
class EvaluationRun:
    """One call of the command."""

    hypotheses: Path
    reference: Path | None
    baselines: Sequence[Path]
    source: Path | None
    language: str | None
    tokenized: bool
    tokenize: str
    lowercase: bool
    encoding: str
    by: str
    samples: int
    seed: int
    pmi: bool
    bundle: Path | None
    source_lm: Path | None
    context: int
    device: str
    threads: int

    @cached_property
    def texts(self) -> dict[str, list[AlignedText]]:
        """The files by their parts; they agree with the reference, else the source, else HYP."""
        parts = {
            "reference": [self.reference] if self.reference is not None else [],
            "source": [self.source] if self.source is not None else [],
            "system": [self.hypotheses, *self.baselines],
        }
        read = iter(read_aligned([path for paths in parts.values() for path in paths], self.encoding))
        return {part: [next(read) for _ in paths] for part, paths in parts.items()}

    @cached_property
    def systems(self) -> list[System]:
        """HYP, the baselines, and where PMI is wanted the reference, which is a text as any other."""
        named = [System(text.name) for text in self.texts["system"]]
        if self.pmi:
            named += [System(text.name) for text in self.texts["reference"]]
        return named

    @cached_property
    def measures(self) -> list[Measure]:
        """What is measured."""
        chosen: list[Measure] = []
        if self.reference is not None:
            chosen += [
                bleu_measure(tokenize=self.tokenize, lowercase=self.lowercase),
                chrf_measure(lowercase=self.lowercase),
            ]
            language = None if self.tokenized else self._language()
            if self.tokenized or language is not None:
                chosen.append(multi_bleu_measure(language=language, lowercase=self.lowercase))
            else:
                console.note("no multi-BLEU: say which language to tokenise with --language, or --tokenized")
        if self.pmi:
            signature = f"context:{self.context}|lm:{read_manifest(self._bundle()).name}|mean:in context"
            chosen.append(mean_measure(PMI, signature))
        return chosen

    @cached_property
    def correlations(self) -> dict[str, Correlation]:
        """How each text's PMI goes with the source's, by name; empty without --src."""
        return self._score_pmi() if self.pmi else {}

    @cached_property
    def figures(self) -> list[dict[str, Figure]]:
        """The figures of every system, by measure."""
        self._count()
        _ = self.correlations  # scores PMI
        first = self.texts["system"][0]
        units = first.document_numbers if self.by == "document" else np.arange(len(first.sentences))
        if self.by == "document" and len(self.systems) > 1 and len(first.documents) < _FEW_DOCUMENTS:
            console.warn(f"intervals and p by document are rough with {len(first.documents)} documents")
        return compare(self.measures, self.systems, Resampling(units, self.samples, self.seed))

    def _count(self) -> None:
        """Fill in the statistics of measures that compare strings with a reference."""
        for system, text in zip(self.systems, self.texts["system"], strict=False):
            for measure in self.measures:
                if measure.count is not None:
                    references = self.texts["reference"][0].sentences
                    pairs = zip(text.sentences, references, strict=True)
                    what = f"{measure.name}, {text.name}"
                    tracked = console.track(pairs, what, len(references), "sentences")
                    counts = [measure.count(hypothesis, reference) for hypothesis, reference in tracked]
                    system.statistics[measure.name] = np.array(counts, dtype=np.float64)

    def _score_pmi(self) -> dict[str, Correlation]:
        """Fill in PMI, and return its correlations with the source's."""
        from cadec_cli.evaluation.pmi.scores import TextScorer, own_scores, pmi_statistics

        target_lm = TextScorer.open(self._bundle(), device=self.device, threads=self.threads)
        source = None
        if self.source_lm is not None:
            source_lm = TextScorer.open(self.source_lm, device=self.device, threads=self.threads)
            wanted = read_manifest(self._bundle()).source_language
            if wanted is not None and source_lm.language != wanted:
                raise CadecError(
                    f"{self.source_lm} has a D-LM of {source_lm.language!r}, and {self._bundle()} "
                    f"translates from {wanted!r}",
                    "--source-lm is a bundle that scores the source language",
                )
            source = own_scores(source_lm, self.texts["source"][0], self.context)
        found = {}
        for system, text in zip(self.systems, [*self.texts["system"], *self.texts["reference"]], strict=True):
            scores = own_scores(target_lm, text, self.context)
            if not scores.in_context.any():
                raise CadecError(
                    f"no sentence of {text.name} has context: PMI can't be measured",
                    "one sentence a line, a blank line only between documents",
                )
            system.statistics[PMI] = pmi_statistics(scores)
            if source is not None:
                both = source.in_context & scores.in_context
                columns = source.pmi[both], scores.pmi[both]
                found[system.name] = Correlation(int(both.sum()), pearson(*columns), spearman(*columns))
        return found

    def _bundle(self) -> Path:
        return find_bundle(self.bundle)

    def _language(self) -> str | None:
        if self.language is not None:
            return self.language
        if self.bundle is not None or self.pmi:
            return read_manifest(self._bundle()).target_language
        return None

    def print_json(self) -> None:
        """Write an object a system."""
        signatures = {measure.name: measure.signature for measure in self.measures}
        rows = zip(self.systems, self.figures, strict=True)
        for number, (system, figures) in enumerate(rows):
            record: dict[str, Any] = {
                "system": system.name,
                "part": self._part(number),
                "sentences": len(self.texts["system"][0].sentences),
                "documents": len(self.texts["system"][0].documents),
                "resampling": {"by": self.by, "samples": self.samples, "seed": self.seed},
                "figures": {
                    name: {**dataclasses.asdict(figure), "signature": signatures[name]}
                    for name, figure in figures.items()
                },
            }
            if correlation := self.correlations.get(system.name):
                record["source_pmi"] = {
                    name: value if value == value else None  # JSON has no NaN
                    for name, value in dataclasses.asdict(correlation).items()
                }
            sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")

    def _part(self, number: int) -> str:
        if not number:
            return "hypothesis"
        return "baseline" if number <= len(self.baselines) else "reference"

    def print_table(self) -> None:
        """Show a row a system, and under it how the figures were obtained."""
        figures = self.figures
        out = stdout_console()
        out.print(self._table(figures))
        first = self.texts["system"][0]
        notes = [
            f"{len(first.sentences):,} sentences, {len(first.documents):,} documents; "
            f"± is half of the 95 % interval, {self.samples:,} samples by {self.by}, seed {self.seed}"
        ]
        if len(self.systems) > 1:
            notes.append(f"Δ is {self._names[0]} less the row; p of the paired bootstrap, two-sided")
        notes += [f"{measure.name}  {measure.signature}" for measure in self.measures]
        for note in notes:
            out.print(Text(note, "dim"), soft_wrap=True)
        for name, system in zip(self._names, self.systems, strict=True):
            if (statistics := system.statistics.get("multi-BLEU")) is not None:
                out.print(Text(f"{name}: {script_line(statistics.sum(0))}"), soft_wrap=True)

    @property
    def _names(self) -> list[str]:
        """What rows are called: the files' names, with their directories only where those tell them apart."""
        paths = [system.name for system in self.systems]
        names = [Path(path).name for path in paths]
        return [visible(name) for name in (names if len(set(names)) == len(names) else paths)]

    def _table(self, figures: Sequence[dict[str, Figure]]) -> Table:
        table = Table(title="cadec evaluate", title_justify="left", show_lines=len(self.systems) > 1)
        table.add_column("system", overflow="fold")
        for measure in self.measures:
            table.add_column(measure.name, justify="right", no_wrap=True)
        if self.correlations:
            table.add_column("PMI, source's", justify="right", no_wrap=True)
        for name, system, row in zip(self._names, self.systems, figures, strict=True):
            cells = [Text(name)] + [_cell(row.get(measure.name)) for measure in self.measures]
            if correlation := self.correlations.get(system.name):
                cells.append(Text(f"R {_signed(correlation.pearson)}\nρ {_signed(correlation.spearman)}"))
            table.add_row(*cells)
        return table


def _cell(figure: Figure | None) -> Text:
    """Score, difference and p, a line each."""
    if figure is None:
        return Text()
    text = Text(f"{figure.score:.2f}").append(f" ±{(figure.high - figure.low) / 2:.2f}", "dim")
    if (found := figure.difference) is not None:
        style = ("green" if found.delta > 0 else "red") if found.significant else ""
        text.append(f"\nΔ {found.delta:+.2f}", style).append(f" ±{(found.high - found.low) / 2:.2f}", "dim")
        text.append(f"\np {found.p:.3f}", style)
    return text


def _signed(value: float) -> str:
    return f"{value:+.3f}" if value == value else "–"
