"""The page of a PMI analysis: correlations of source and target, scatter plots and outliers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from cadec_cli.evaluation.pmi.analysis import Analysis, Outlier, OutputOutliers, Panel
from cadec_cli.evaluation.pmi.figure import panels_figure
from cadec_cli.plotting import can_draw, figure_bytes
from cadec_cli.reports.page import Figures, Page, Picture, ReportSegment, plain, write_page


def write_pmi_page(
    path: Path, analysis: Analysis, outputs: Sequence[OutputOutliers], *, source: str, target: str
) -> None:
    """Write an analysis. The scatter plots are drawn if matplotlib is installed."""
    texts = [text.name for text in (analysis.source, *analysis.translations)]
    page = Page(
        "PMI of source and target",
        "outliers",
        ("source", "", "translation"),
        {"texts": ", ".join(texts), "languages": f"{source} → {target}"},
        (source, target),
        (_figures(analysis.panels),),
        tuple(_pictures(analysis, source, target)),
        empty="No translation is far above its source.",
        groups="outputs",
    )
    write_page(path, page, (plain(_segment(one)) for output in outputs for one in output.furthest))


def _segment(outlier: Outlier) -> ReportSegment:
    return ReportSegment(
        outlier.text,
        f"{outlier.document}.{outlier.sentence}",
        outlier.source,
        outlier.translation,
        notes=(
            f"{outlier.deviations:.1f} deviations",
            f"PMI {outlier.source_pmi:+.2f} → {outlier.target_pmi:+.2f}",
        ),
    )


def _pictures(analysis: Analysis, source: str, target: str) -> Iterator[Picture]:
    if can_draw():
        figure = panels_figure(
            analysis.reference_panels, analysis.output_panels, source=source, target=target
        )
        yield Picture("Scatters of source against target", "image/png", figure_bytes(figure, "png", dpi=160))


def _figures(panels: Sequence[Panel]) -> Figures:
    return Figures(
        "Do source and target go together?",
        ("text", "value", "contexts", "points", "R", "ρ", "+ +", "− +", "− −", "+ −"),
        tuple(_row(panel) for panel in panels),
        "R Pearson's, ρ Spearman's; signs are those of (source, target). "
        "Sentences without context are left out: their PMI would be 0.",
    )


def _row(panel: Panel) -> tuple[str, ...]:
    counted = panel.quadrants
    signs = (
        (counted.both_positive, counted.only_y_positive, counted.both_negative, counted.only_x_positive)
        if counted is not None
        else ()
    )
    cells = [f"{value:+.3f}" if value == value else "–" for value in (panel.pearson, panel.spearman)]
    counts = [f"{count:,}" for count in signs] or [""] * 4
    return (panel.text, panel.value, panel.contexts, f"{len(panel.source):,}", *cells, *counts)
