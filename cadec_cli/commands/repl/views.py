"""The REPL's output: translations, the document so far, n-best lists, explanations, options.

On a terminal, control characters are replaced and lines are folded to its width. In a pipe, a translation is
exactly its text, and a row of a table is one line.
"""

from __future__ import annotations

import dataclasses
import io
import sys
from collections.abc import Iterable, Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from cadec_cli.decoding.confidence import Confidence, Judge
from cadec_cli.decoding.explain import ExplainedRow, Explanation, TokenPMI
from cadec_cli.decoding.glossary.outcomes import TermOutcome
from cadec_cli.jobs.found_names import NameUse
from cadec_cli.session.session import Change, Entry
from cadec_cli.terminal.console import visible
from cadec_cli.terminal.views.translations import colour_tokens, differences, stdout_console
from cadec_cli.text.formats.layout import one_line

# The PMI from which a token is shown with its number.
_NOTABLE = 0.25


class Output:
    """Standard output, which may be a terminal or not."""

    def __init__(self, terminal: bool) -> None:
        self.terminal = terminal

    def blank(self) -> None:
        """Mark the end of a document, in a pipe."""
        sys.stdout.write("\n")
        sys.stdout.flush()

    def translation(self, text: str, sentence_level: str | None = None) -> None:
        """Print one translation, compared with that of the sentence level if it is given."""
        if not self.terminal:
            columns = [text] if sentence_level is None else [text, sentence_level]
            sys.stdout.write("\t".join(map(one_line, columns)) + "\n")
            sys.stdout.flush()
            return
        out = stdout_console()
        if sentence_level is None:
            out.print(Text(visible(text), "bold"), soft_wrap=True)
        elif sentence_level == text:
            out.print(Text(visible(text), "bold").append("  (= sentence level)", "not bold dim"))
        else:
            before, after = differences(visible(sentence_level), visible(text))
            out.print(_pairs([("in context", after), ("sentence level", before)]))

    def flag(self, confidence: Confidence | None, judge: Judge) -> None:
        """Print the reasons against a translation, if it is flagged; not in a pipe."""
        if self.terminal and confidence is not None and judge.is_flagged(confidence):
            reasons = visible("; ".join(confidence.reasons))
            stdout_console().print(Text(f"? {confidence.value:.2f} {reasons}", "dim"), soft_wrap=True)

    def show(self, *parts: RenderableType) -> None:
        """Print tables and texts."""
        if self.terminal:
            out = stdout_console()
            for part in parts:
                out.print(part)
            return
        drawn = io.StringIO()
        plain = Console(file=drawn, width=100_000, color_system=None, force_terminal=False, markup=False)
        for part in parts:
            plain.print(part, highlight=False)
        sys.stdout.writelines(f"{line.rstrip()}\n" for line in drawn.getvalue().splitlines())
        sys.stdout.flush()


def count_noun(number: int, noun: str) -> str:
    """Write a number with its noun: 1 sentence, 2 sentences."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def document(entries: Sequence[Entry], first: int, number: int, in_use: int) -> list[RenderableType]:
    """A document from its sentence `first` on; the newest `in_use` are the context of the next one."""
    table = _columns(("", "right"), ("", "left"), ("source", "left"), ("target", "left"))
    remaining = in_use
    rows = []
    for index, entry in reversed(list(enumerate(entries, 1))[first:]):
        used = remaining > 0 and bool(entry.context_ids)
        remaining -= len(entry.context_ids)
        target = Text(visible(entry.text), "" if used else "dim")
        if entry.edited is not None and entry.parts:
            target.append(" (edited)", "yellow")
        rows.append((Text(str(index), "dim"), Text("•" if used else ""), visible(entry.source), target))
    for place, used_, source, target in reversed(rows):
        table.add_row(place, used_, Text(source, "dim"), target)
    return [table, Text(f"document {number}; • is the context of the next sentence", "dim")]


def changes(changed: Sequence[Change]) -> Table:
    """Changed translations, with the numbers of their sentences."""
    table = _columns(("", "right"), ("before", "left"), ("now", "left"))
    for change in changed:
        before, after = differences(visible(change.before.text), visible(change.after.text))
        table.add_row(Text(str(change.number), "dim"), before, after)
    return table


def hypotheses(entry: Entry, count: int, sentence_level: str | None) -> list[RenderableType]:
    """The best hypotheses of a sentence; the chosen one and the sentence level's are always included."""
    part = entry.last_part
    assert part.choice is not None
    pmi = part.choice.pmi
    score = "C-score" if entry.options.weighted_objective.name == "c-score" else "score"
    table = _columns(
        ("", "right"), ("log p", "right"), ("PMI", "right"), (score, "right"), ("", "left"), ("", "left")
    )
    order = part.choice.ranking
    for rank, index in enumerate(order, 1):
        chosen = index == part.choice.index and entry.edited is None
        first = part.hypotheses[index].text == sentence_level
        if rank > count and not (chosen or first):
            continue
        known = (("chosen", chosen), ("sentence", first), ("broken", part.choice.is_broken(index)))
        marks = ", ".join(name for name, marked in known if marked)
        style = "bold green" if chosen else "yellow" if first else ""
        hypothesis = part.hypotheses[index]
        table.add_row(
            str(rank),
            f"{hypothesis.log_prob:.2f}",
            f"{pmi[index]:+.2f}" if pmi is not None else "–",
            f"{part.choice.shown_score(index):.2f}",
            Text(marks, style),
            Text(visible(hypothesis.text), style),
        )
    shown: list[RenderableType] = [table]
    if count < len(order):
        shown.append(Text(f"{count} of {len(order)}; /nbest {len(order)} shows all", "dim"))
    if len(entry.parts) > 1:
        shown.append(Text(f"of the last of {len(entry.parts)} parts: {visible(part.source)}", "dim"))
    if entry.edited is not None:
        shown.append(Text("the translation was edited: none of these is chosen", "dim"))
    return shown


def explanation(explained: Explanation) -> list[RenderableType]:
    """The context, then each translation coloured by its tokens' PMI, and the numbers that matter."""
    names: list[tuple[str, Text]] = [
        (f"context {number}", Text(visible(sentence), "dim"))
        for number, sentence in enumerate(explained.lines, 1)
    ]
    if not explained.context:
        names.append(("context", Text("none: PMI is 0, the S-NMT decides alone", "dim")))
    for row in explained.rows:
        names.append((row.name, colour_tokens(_strip_first_space(row.tokens))))
        names.append(("", _numbers(row)))
    if len(explained.rows) == 1 and explained.rows[0].name == "chosen":
        names.append(("", Text("the sentence level says the same", "dim")))
    return [_pairs(names)]


def _strip_first_space(tokens: Sequence[TokenPMI]) -> list[TokenPMI]:
    """Drop the leading space of the first token."""
    first, *others = tokens
    return [dataclasses.replace(first, text=first.text.removeprefix(" ")), *others]


def _numbers(row: ExplainedRow) -> Text:
    text = Text(style="dim")
    if row.log_prob is not None:
        text.append(f"log p {row.log_prob:.2f}, ")
    text.append(f"PMI {row.pmi:+.2f}")
    notable = [
        f"{visible(token.text).strip() or '␣'} {token.pmi:+.2f}"
        for token in row.tokens
        if abs(token.pmi) >= _NOTABLE
    ]
    if notable:
        text.append(": " + ", ".join(notable))
    return text


def settings(rows: Iterable[tuple[str, str, str]]) -> Table:
    """Options with their values and meanings."""
    table = _columns(("name", "left"), ("value", "left"), ("", "left"))
    for name, value, text in rows:
        table.add_row(name, Text(value, "bold"), Text(text, "dim"))
    return table


def terms(outcomes: Iterable[TermOutcome]) -> Table:
    """The terms of a sentence, how they were translated, and what the glossary did."""
    table = _columns(("term", "left"), ("translation", "left"), ("", "left"))
    for one in outcomes:
        rendering = Text("–") if one.rendering is None else Text(visible(one.rendering), "bold")
        table.add_row(Text(visible(one.text)), rendering, Text(one.outcome, "dim"))
    return table


def found_names(uses: Iterable[NameUse]) -> Table:
    """Names that were found, their renderings, how often they occur, and where they are called otherwise."""
    table = _columns(("name", "left"), ("rendering", "left"), ("times", "right"), ("otherwise in", "left"))
    for one in uses:
        table.add_row(
            Text(visible(one.name)),
            Text(visible(", ".join(one.forms)), "bold"),
            str(one.times),
            Text(", ".join(one.otherwise), "dim"),
        )
    return table


def help_table(rows: Iterable[tuple[str, str]]) -> Table:
    """Commands with their help texts."""
    return _pairs([(usage, Text(text)) for usage, text in rows], "bold")


def _columns(*columns: tuple[str, str]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name, side in columns:
        table.add_column(name, justify="right" if side == "right" else "left", overflow="fold")
        if side == "right":
            table.columns[-1].no_wrap = True
    return table


def _pairs(rows: Iterable[tuple[str, Text]], style: str = "dim") -> Table:
    """Lines with names before them."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(style=style, no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(name, text)
    return table
