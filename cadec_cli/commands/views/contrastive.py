"""Results of contrastive tests for people: accuracies, the same by distance, failed groups; or as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cadec_cli.commands.views.translations import coloured, stdout_console
from cadec_cli.console import visible
from cadec_cli.evaluation.contrastive.groups import SAMPLES
from cadec_cli.evaluation.contrastive.scoring import ContrastiveModels, Failure, Result, Scorer

# Where nobody looks on, no line is broken.
_UNBROKEN = 1000
# Characters of an accuracy with its interval, of an accuracy alone, and of what parts two columns.
_ACCURACY, _FIGURE, _BORDER = 17, 5, 3


@dataclass(frozen=True)
class Settings:
    """What all scorers of a run have in common."""

    temperatures: Sequence[float]
    alpha: float
    context: int


def wide_console() -> Console:
    """Standard output; as wide as needed where it is no terminal."""
    out = stdout_console()
    if not out.is_terminal:
        out.width = _UNBROKEN
    return out


def accuracies(results: Sequence[Result], settings: Settings, width: int) -> Iterator[Table]:
    """A row a scorer, a column a set; several tables where the sets do not fit into one."""
    sets = _sets(results)
    for some in _fitting(sets, width - _longest_name(results), [_ACCURACY] * len(sets)):
        table = _table("accuracy on contrastive sets, %", results)
        table.caption = _caption(settings)
        for of in some:
            table.add_column(_heading(of[0]))
        for row in zip(*some, strict=True):
            table.add_row(_label(row[0].scorer, settings), *(_accuracy(result) for result in row))
        yield table


def by_distance(results: Sequence[Result], settings: Settings, width: int) -> Iterator[Table]:
    """The same by how far away the sentence is that settles the question, for sets that say so."""
    sets = [of for of in _sets(results) if of[0].accuracy.by_distance]
    needs = [len(of[0].accuracy.by_distance) * (_FIGURE + 1) for of in sets]
    for some in _fitting(sets, width - _longest_name(results), needs):
        table = _table("by distance of the antecedent, %", results)
        table.caption = "distance in sentences, and how many groups have it"
        for of in some:
            table.add_column(_distances(of[0]))
        for row in zip(*some, strict=True):
            table.add_row(_label(row[0].scorer, settings), *(_accuracies(result) for result in row))
        yield table


def failure(result: Result, failed: Failure, models: ContrastiveModels, settings: Settings) -> RenderableType:
    """A failed group: what was asked, the true candidate and the one that won, and why."""
    group, verdict = failed.group, failed.verdict
    title = Text(f"{visible(result.of.name)}, group {visible(group.name)}", "bold")
    title.append(" · ", "dim").append(_label(result.scorer, settings))
    if group.distance is not None:
        title.append(f" · distance {group.distance}", "dim")
    if verdict.tied:
        title.append(" · tie", "yellow")
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", justify="right")
    grid.add_column(overflow="fold")
    grid.add_row("source", Text(visible(group.source)))
    shown = group.context[-settings.context :] if settings.context else ()
    for number, sentence in enumerate(shown):
        grid.add_row("context" if number == 0 else "", Text(visible(sentence), "dim"))
    both = (group.truth, verdict.rival)
    tokens = models.tokens(result.of, group, both, result.scorer.index)
    for name, candidate, (pieces, scores) in zip(
        ("true", "tied" if verdict.tied else "won"), both, tokens, strict=True
    ):
        text = _sentence(coloured(pieces, scores)) if scores else Text(visible(group.candidates[candidate]))
        text.append("\n" + _terms(failed, candidate, result.scorer.index), "dim")
        grid.add_row(name, text)
    return Group("", title, Padding(grid, (0, 0, 0, 2), expand=False))


def record(result: Result, settings: Settings) -> dict[str, Any]:
    """A result as plain data, with how it was obtained."""
    scorer, found = result.scorer, result.accuracy
    return {
        "set": str(result.of.path),
        "format": result.of.layout,
        "objective": scorer.objective.name,
        "weight": scorer.objective.weight if _weighted(scorer) else None,
        "temperature": scorer.temperature,
        "alpha": settings.alpha if scorer.objective.uses_lm else None,
        "context": settings.context if scorer.objective.uses_conditional else None,
        "groups": found.groups,
        "right": found.right,
        "ties": found.ties,
        "accuracy": found.share,
        "interval": [found.low, found.high],
        "samples": SAMPLES,
        "chance": result.of.chance,
        "by_distance": {
            distance: {"groups": groups, "right": right, "accuracy": right / groups}
            for distance, (right, groups) in found.by_distance.items()
        },
    }


def _sets(results: Sequence[Result]) -> list[list[Result]]:
    """The results of each set, scorers in the same order."""
    sets: dict[int, list[Result]] = {}
    for result in results:
        sets.setdefault(id(result.of), []).append(result)
    return list(sets.values())


def _fitting(sets: Sequence[list[Result]], room: int, needs: Sequence[int]) -> Iterator[list[list[Result]]]:
    """Sets that stand side by side: as many as there is room for, one at the least."""
    some: list[list[Result]] = []
    left = room - _BORDER
    for of, need in zip(sets, needs, strict=True):
        if some and left < need + _BORDER:
            yield some
            some, left = [], room - _BORDER
        some.append(of)
        left -= need + _BORDER
    if some:
        yield some


def _longest_name(results: Sequence[Result]) -> int:
    return max(len(result.scorer.objective.name) for result in results)


def _table(title: str, results: Sequence[Result]) -> Table:
    table = Table(title=title, title_justify="left", caption_justify="left", title_style="bold")
    table.add_column("scorer", min_width=_longest_name(results))  # names are never broken
    return table


def _heading(result: Result) -> Text:
    heading = Text(visible(result.of.name))
    return heading.append(f"\n{result.accuracy.groups:,} groups\nchance {100 * result.of.chance:.1f}", "dim")


def _distances(result: Result) -> Text:
    found = result.accuracy.by_distance
    heading = Text(f"{visible(result.of.name)}\n" + _aligned(found))
    return heading.append("\n" + _aligned(f"{groups}" for _, groups in found.values()), "dim")


def _accuracies(result: Result) -> str:
    found = result.accuracy.by_distance.values()
    return _aligned(f"{100 * right / groups:.1f}" for right, groups in found)


def _aligned(values: Iterable[str]) -> str:
    """Values as columns within a column."""
    return " ".join(f"{value:>{_FIGURE}}" for value in values)


def _accuracy(result: Result) -> Text:
    found = result.accuracy
    better, worse = found.low > result.of.chance, found.high < result.of.chance
    text = Text(f"{100 * found.share:5.1f}", "green" if better else "red" if worse else "")
    text.append(f"  {100 * found.low:.1f}–{100 * found.high:.1f}", "dim")
    if found.ties:
        text.append(f"\n       {found.ties:,} {'tie' if found.ties == 1 else 'ties'}", "yellow")
    return text


def _label(scorer: Scorer, settings: Settings) -> Text:
    text = Text(scorer.objective.name)
    if _weighted(scorer):
        text.append(f" × {scorer.objective.weight:g}", "dim")
    if len(settings.temperatures) > 1 and scorer.temperature is not None:
        text.append(f", T {scorer.temperature:g}", "dim")
    return text


def _weighted(scorer: Scorer) -> bool:
    """Tell whether an objective weighs the D-LM against the S-NMT."""
    return scorer.objective.uses_translation and scorer.objective.uses_lm


def _caption(settings: Settings) -> str:
    settled = [f"context of {settings.context} sentences"]
    if len(settings.temperatures) == 1:
        settled.append(f"T {settings.temperatures[0]:g}")
    if settings.alpha:
        settled.append(f"alpha {settings.alpha:g}")
    how = f"95 % interval of {SAMPLES:,} bootstrap samples of groups; a tie is wrong"
    return f"{', '.join(settled)}; × is the weight of the D-LM; {how}"


def _sentence(pieces: Text) -> Text:
    """Pieces without the space that the first of them brings along."""
    return pieces[1:] if pieces.plain.startswith(" ") else pieces


def _terms(failed: Failure, candidate: int, temperature: int) -> str:
    """A candidate's score and what it is made of, short enough for a line."""
    terms = failed.terms
    shown = [("score", failed.scores)]
    if terms.translation is not None:
        shown.append(("y|x", terms.translation))
    if terms.conditional is not None and terms.free is not None:
        conditional, free = terms.conditional[temperature], terms.free[temperature]
        shown += [("PMI", conditional - free), ("y|c", conditional), ("y", free)]
    return "  ".join(f"{name} {values[candidate]:.2f}" for name, values in shown)
