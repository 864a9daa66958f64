"""A PMI analysis as a page (correlations of source and target, scatter plots and outliers) and as a figure.

The panels are as wide as a page of a paper, with Okabe and Ito's colours, which everyone can tell apart,
small translucent points and embedded fonts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cadec_cli.errors import UsageError
from cadec_cli.evaluation.pmi.analysis import PMI, Analysis, Outlier, OutputOutliers, Panel
from cadec_cli.plotting import FORMATS, can_draw, figure_bytes, require_matplotlib, save_figure
from cadec_cli.reports.page import Figures, Page, Picture, ReportSegment, plain, write_page
from cadec_cli.validation import showable

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_BLUE, _ORANGE, _GREEN, _GREY = "#0072B2", "#D55E00", "#009E73", "#555555"
_STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "pdf.fonttype": 42,  # TrueType: publishers refuse Type 3
}
# More points than this are drawn as a bitmap inside the PDF, which viewers could not open otherwise.
_VECTOR_POINTS = 20_000


def check_figure(path: Path) -> None:
    """Raise an error if a figure can't be written there; call it before long work begins."""
    if path.suffix.lower().removeprefix(".") not in FORMATS:
        raise UsageError(
            f"{path}: a figure is a {', '.join(FORMATS[:-1])} or {FORMATS[-1]} file", "name it pmi.pdf"
        )
    require_matplotlib()


def draw_panels(
    compared: Sequence[tuple[Panel, Panel]], outputs: Sequence[Panel], path: Path, *, source: str, target: str
) -> None:
    """Draw panels into a file."""
    check_figure(path)
    with _style():
        save_figure(panels_figure(compared, outputs, source=source, target=target), path)


def panels_figure(
    compared: Sequence[tuple[Panel, Panel]], outputs: Sequence[Panel], *, source: str, target: str
) -> Figure:
    """Draw scatter plots two in a row: compared ones side by side to one scale, then those of outputs.

    `source` and `target` are the languages, for the axes.
    """
    from matplotlib.figure import Figure

    panels = [panel for pair in compared for panel in pair]
    first_output = len(panels)
    panels += outputs
    rows = (len(panels) + 1) // 2
    with _style():
        figure = Figure(figsize=(7.0, 3.05 * rows), dpi=300, layout="constrained")
        grid = figure.subplots(rows, 2, squeeze=False).ravel()
        for axes in grid[len(panels) :]:
            axes.set_visible(False)
        for number, (axes, panel) in enumerate(zip(grid, panels, strict=False)):
            _draw(axes, panel, chr(ord("a") + number % 26), output=number >= first_output)
            axes.set_xlabel(_label(panel, "x", source))
            axes.set_ylabel(_label(panel, "y", target))
        # The same value with own and with random contexts has the same scale.
        for left, right in zip(grid[:first_output:2], grid[1:first_output:2], strict=True):
            _same_limits(left, right)
        for axes, panel in zip(grid, panels, strict=False):
            _tell_hidden(axes, panel)
        return figure


def _style() -> AbstractContextManager[None]:
    """The style, needed both when a figure is drawn and when it is written."""
    import matplotlib

    style: AbstractContextManager[None] = matplotlib.rc_context(_STYLE)
    return style


def _label(panel: Panel, sentence: str, language: str) -> str:
    value = f"PMI(c, {sentence})" if panel.value == PMI else f"log p({sentence} | c)"
    return f"{value}, {language}"


def _draw(axes: Any, panel: Panel, letter: str, *, output: bool) -> None:
    colour = _GREEN if output else _BLUE if panel.contexts == "own" else _GREY
    points = len(panel.source)
    look = {
        "s": 7 if points < 2000 else 4,
        "alpha": float(np.clip(300 / max(points, 1), 0.12, 0.6)),
        "linewidths": 0,
        "rasterized": points > _VECTOR_POINTS,
    }
    if panel.value == PMI:
        axes.axhline(0, color="black", linewidth=0.5, zorder=1)
        axes.axvline(0, color="black", linewidth=0.5, zorder=1)
        _count_quadrants(axes, panel)
    axes.scatter(panel.source, panel.target, color=colour, zorder=2, **look)
    if output:
        far = panel.far
        axes.scatter(
            panel.source[far],
            panel.target[far],
            s=9,
            facecolors="none",
            edgecolors=_ORANGE,
            linewidths=0.6,
            zorder=3,
        )
        _write(axes, 0.5, 0.985, f"{far.sum():,} far above the source", _ORANGE)
    axes.set_title(f"({letter}) {_title(panel, output)}", loc="left", parse_math=False)
    axes.set_title(f"R = {panel.pearson:.2f}" if np.isfinite(panel.pearson) else "R undefined", loc="right")
    _limit(axes, panel)


def _title(panel: Panel, output: bool) -> str:
    if output:
        name = showable(Path(panel.text).name)
        return f"PMI, {name if len(name) <= 28 else name[:27] + '…'}"
    value = "PMI" if panel.value == PMI else "log-probability"
    return f"{value}, {'true' if panel.contexts == 'own' else 'random'} contexts"


def _count_quadrants(axes: Any, panel: Panel) -> None:
    counted = panel.quadrants
    if counted is None:
        return
    corners = (
        (0.985, 0.985, counted.both_positive),
        (0.015, 0.985, counted.only_y_positive),
        (0.015, 0.015, counted.both_negative),
        (0.985, 0.015, counted.only_x_positive),
    )
    for x, y, count in corners:
        _write(axes, x, y, f"{count:,}", _GREY)


def _write(axes: Any, x: float, y: float, text: str, colour: str) -> None:
    """Write text into a panel; x and y are fractions of its width and height."""
    side = "center" if x == 0.5 else "right" if x > 0.5 else "left"
    edge = "top" if y > 0.5 else "bottom"
    axes.text(
        x,
        y,
        text,
        transform=axes.transAxes,
        ha=side,
        va=edge,
        fontsize=7,
        color=colour,
        zorder=4,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.8},
    )


def _limit(axes: Any, panel: Panel) -> None:
    """Limit the axes, so that a single outlier does not squeeze all other points into a line."""
    for values, put in ((panel.source, axes.set_xlim), (panel.target, axes.set_ylim)):
        if not len(values):
            return
        low, high = np.percentile(values, [0.5, 99.5])
        low, high = max(values.min(), 2 * low - high), min(values.max(), 2 * high - low)
        margin = 0.08 * (high - low) or 1.0
        put(low - margin, high + margin)


def _tell_hidden(axes: Any, panel: Panel) -> None:
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    x, y = panel.source, panel.target
    hidden = int(((x < left) | (x > right) | (y < bottom) | (y > top)).sum())
    if hidden:
        _write(axes, 0.5, 0.015, f"{hidden:,} further out", _GREY)


def _same_limits(left: Any, right: Any) -> None:
    for get, put in (("get_xlim", "set_xlim"), ("get_ylim", "set_ylim")):
        lows, highs = zip(getattr(left, get)(), getattr(right, get)(), strict=True)
        for axes in (left, right):
            getattr(axes, put)(min(lows), max(highs))


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
