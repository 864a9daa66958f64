"""Results of contrastive tests for people: accuracies, the same by distance, failed groups; or as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cadec_cli.evaluation.contrastive.scoring import ContrastiveScorer, Failure, ScorerResult, SetResults
from cadec_cli.evaluation.contrastive.sets import SAMPLES, ContrastiveSet
from cadec_cli.method.objectives import LM_TERMS_OF, NMT, PAIRS, TARGET, pmi_of
from cadec_cli.terminal.console import visible
from cadec_cli.terminal.views.translations import colour_tokens, stdout_console

# The width if the output is not a terminal, so that no line is broken.
_UNBROKEN = 1000
# Characters of an accuracy with its interval, of an accuracy alone, and of the border between columns.
_ACCURACY, _FIGURE, _BORDER = 17, 5, 3


@dataclass(frozen=True)
class SharedSettings:
    """The settings that all scorers of a run share."""

    temperatures: Sequence[float]
    alpha: float
    context: int


def wide_console() -> Console:
    """Standard output; as wide as needed if it is not a terminal."""
    out = stdout_console()
    if not out.is_terminal:
        out.width = _UNBROKEN
    return out


def left_out(contrastive_set: ContrastiveSet) -> str:
    """Say how many groups of a set are left out, and why."""
    count = contrastive_set.left_out
    groups, have = ("group", "has") if count == 1 else ("groups", "have")
    return f"{contrastive_set.name}: {count:,} {groups} left out, which {have} equal candidates only"


def everything(
    results: Sequence[SetResults], settings: SharedSettings, width: int, *, failures: bool = True
) -> Iterator[RenderableType]:
    """Accuracies, accuracies by distance, and with `failures` the failed groups."""
    yield from accuracies(results, settings, width)
    yield from by_distance(results, settings, width)
    for of_set in results if failures else ():
        for result in of_set.scorers:
            for failed in result.failures:
                yield failure(of_set.contrastive_set, result.scorer, failed, settings)


def accuracies(results: Sequence[SetResults], settings: SharedSettings, width: int) -> Iterator[Table]:
    """One row per scorer, one column per set; several tables if the sets do not fit into one."""
    for side_by_side in _fitting(results, width - _longest_name(results), [_ACCURACY] * len(results)):
        table = _table("accuracy on contrastive sets, %", results)
        table.caption = _caption(settings)
        for of_set in side_by_side:
            table.add_column(_heading(of_set))
        for scorer, row in _rows(side_by_side):
            chances = [of_set.contrastive_set.chance for of_set in side_by_side]
            cells = (_accuracy(result, chance) for result, chance in zip(row, chances, strict=True))
            table.add_row(_label(scorer, settings), *cells)
        yield table


def by_distance(results: Sequence[SetResults], settings: SharedSettings, width: int) -> Iterator[Table]:
    """Accuracies by the distance of the sentence that decides the group, for sets that have distances."""
    sets = [of_set for of_set in results if of_set.scorers[0].accuracy.by_distance]
    needs = [len(of_set.scorers[0].accuracy.by_distance) * (_FIGURE + 1) for of_set in sets]
    for side_by_side in _fitting(sets, width - _longest_name(results), needs):
        table = _table("by distance of the antecedent, %", results)
        table.caption = "distance in sentences, and how many groups have it"
        for of_set in side_by_side:
            table.add_column(_distances(of_set))
        for scorer, row in _rows(side_by_side):
            table.add_row(_label(scorer, settings), *(_accuracies(result) for result in row))
        yield table


def failure(
    contrastive_set: ContrastiveSet, scorer: ContrastiveScorer, failed: Failure, settings: SharedSettings
) -> RenderableType:
    """A failed group: the source and its context, the true candidate and the winner, with their scores."""
    group, verdict = failed.group, failed.verdict
    title = Text(f"{visible(contrastive_set.name)}, group {visible(group.name)}", "bold")
    title.append(" · ", "dim").append(_label(scorer, settings))
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
    rows = failed.explanation.rows if failed.explanation is not None else ()
    compared = (("true", group.truth), ("tied" if verdict.tied else "won", verdict.rival))
    for number, (name, candidate) in enumerate(compared):
        text = (
            _sentence(colour_tokens(rows[number].tokens))
            if rows
            else Text(visible(group.candidates[candidate]))
        )
        text.append("\n" + _terms(failed, candidate), "dim")
        grid.add_row(name, text)
    return Group("", title, Padding(grid, (0, 0, 0, 2), expand=False))


def records(results: Sequence[SetResults], settings: SharedSettings) -> Iterator[dict[str, Any]]:
    """All results as plain data, one object per scorer and set."""
    for of_set in results:
        for result in of_set.scorers:
            yield record(of_set.contrastive_set, result, settings)


def record(contrastive_set: ContrastiveSet, result: ScorerResult, settings: SharedSettings) -> dict[str, Any]:
    """A result as plain data, with how it was obtained."""
    scorer, figure = result.scorer, result.accuracy
    return {
        "set": str(contrastive_set.path),
        "format": contrastive_set.layout,
        "objective": scorer.objective.name,
        "weight": scorer.objective.weights["lm"] if _has_weight(scorer) else None,
        "temperature": scorer.temperature,
        "alpha": settings.alpha if scorer.objective.uses_lm else None,
        "context": settings.context if scorer.objective.reads_context else None,
        **({"reads": list(scorer.objective.readings)} if PAIRS in scorer.objective.readings else {}),
        "groups": figure.groups,
        "left_out": contrastive_set.left_out,
        "right": figure.right,
        "ties": figure.ties,
        "accuracy": figure.share,
        "interval": [figure.low, figure.high],
        "samples": SAMPLES,
        "chance": contrastive_set.chance,
        "by_distance": {
            distance: {"groups": groups, "right": right, "accuracy": right / groups}
            for distance, (right, groups) in figure.by_distance.items()
        },
    }


def _rows(sets: Sequence[SetResults]) -> Iterator[tuple[ContrastiveScorer, tuple[ScorerResult, ...]]]:
    """Yield each scorer with its results for every set."""
    for row in zip(*(of_set.scorers for of_set in sets), strict=True):
        yield row[0].scorer, row


def _fitting(sets: Sequence[SetResults], room: int, needs: Sequence[int]) -> Iterator[list[SetResults]]:
    """Yield sets that fit side by side: as many as there is room for, at least one."""
    side_by_side: list[SetResults] = []
    left = room - _BORDER
    for of_set, need in zip(sets, needs, strict=True):
        if side_by_side and left < need + _BORDER:
            yield side_by_side
            side_by_side, left = [], room - _BORDER
        side_by_side.append(of_set)
        left -= need + _BORDER
    if side_by_side:
        yield side_by_side


def _longest_name(results: Sequence[SetResults]) -> int:
    return max(len(result.scorer.objective.name) for of_set in results for result in of_set.scorers)


def _table(title: str, results: Sequence[SetResults]) -> Table:
    table = Table(title=title, title_justify="left", caption_justify="left", title_style="bold")
    table.add_column("scorer", min_width=_longest_name(results))  # names are never broken
    return table


def _heading(of_set: SetResults) -> Text:
    heading = Text(visible(of_set.contrastive_set.name))
    groups, chance = len(of_set.contrastive_set.groups), of_set.contrastive_set.chance
    return heading.append(
        f"\n{groups:,} {'group' if groups == 1 else 'groups'}\nchance {100 * chance:.1f}", "dim"
    )


def _distances(of_set: SetResults) -> Text:
    counts = of_set.scorers[0].accuracy.by_distance
    heading = Text(f"{visible(of_set.contrastive_set.name)}\n" + _align_columns(counts))
    return heading.append("\n" + _align_columns(f"{groups}" for _, groups in counts.values()), "dim")


def _accuracies(result: ScorerResult) -> str:
    counts = result.accuracy.by_distance.values()
    return _align_columns(f"{100 * right / groups:.1f}" for right, groups in counts)


def _align_columns(values: Iterable[str]) -> str:
    """Values as columns within a column."""
    return " ".join(f"{value:>{_FIGURE}}" for value in values)


def _accuracy(result: ScorerResult, chance: float) -> Text:
    figure = result.accuracy
    better, worse = figure.low > chance, figure.high < chance
    text = Text(f"{100 * figure.share:5.1f}", "green" if better else "red" if worse else "")
    text.append(f"  {100 * figure.low:.1f}–{100 * figure.high:.1f}", "dim")
    if figure.ties:
        text.append(f"\n       {figure.ties:,} {'tie' if figure.ties == 1 else 'ties'}", "yellow")
    return text


def _label(scorer: ContrastiveScorer, settings: SharedSettings) -> Text:
    text = Text(scorer.objective.name)
    if _has_weight(scorer):
        text.append(f" × {scorer.objective.weights['lm']:g}", "dim")
    if PAIRS in scorer.objective.readings:
        text.append(f", {' and '.join(scorer.objective.readings)}", "dim")
    if len(settings.temperatures) > 1 and scorer.temperature is not None:
        text.append(f", T {scorer.temperature:g}", "dim")
    return text


def _has_weight(scorer: ContrastiveScorer) -> bool:
    """Tell whether an objective weighs the D-LM against the S-NMT."""
    return "lm" in scorer.objective.weights


def _caption(settings: SharedSettings) -> str:
    settled = [f"context of {settings.context} sentences"]
    if len(settings.temperatures) == 1:
        settled.append(f"T {settings.temperatures[0]:g}")
    if settings.alpha:
        settled.append(f"alpha {settings.alpha:g}")
    how = f"95 % interval of {SAMPLES:,} bootstrap samples of groups; a tie is wrong"
    return f"{', '.join(settled)}; × is the weight of the D-LM; {how}"


def _sentence(pieces: Text) -> Text:
    """Drop the leading space of the first piece."""
    return pieces[1:] if pieces.plain.startswith(" ") else pieces


def _terms(failed: Failure, candidate: int) -> str:
    """A candidate's score and its terms, short enough for one line; absent terms are left out."""
    terms = failed.terms
    shown = [("score", failed.scores)]
    if NMT in terms:
        shown.append(("y|x", terms[NMT]))
    if (pmi := pmi_of(terms)) is not None:
        shown.append(("PMI", pmi))
    names = zip((*LM_TERMS_OF[TARGET], *LM_TERMS_OF[PAIRS]), ("y|c", "y", "y|pairs, x", "y|x"), strict=True)
    shown += [(name, terms[term]) for term, name in names if term in terms]
    return "  ".join(f"{name} {values[candidate]:.2f}" for name, values in shown)
