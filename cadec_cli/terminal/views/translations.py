"""Translations on a terminal: compared with the sentence level, explained token by token.

Text goes through Rich as plain text, never as markup, and control characters are made visible: subtitles
can't send commands to the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from cadec_cli.decoding.confidence import FlaggedSentence
from cadec_cli.decoding.explain import ExplainedTranslation, Explanation, TokenPMI
from cadec_cli.decoding.translation import Translation
from cadec_cli.jobs.in_step import FileTranslation, StreamTranslation
from cadec_cli.reports.page import changed_words
from cadec_cli.terminal import console
from cadec_cli.terminal.console import SafeConsole, visible

# The PMI from which a token has the full colour.
_STRONG = 2.0


def show(translations: Iterable[ExplainedTranslation], *, compare: bool) -> None:
    """Show translations to a person, as they come."""
    out = stdout_console()
    if compare:
        out.print(heading(out.width))
    document = 0
    for shown in translations:
        translation = shown.translation
        if translation.document != document:
            out.print()
            document = translation.document
        if shown.sentence_level is not None:
            out.print(comparison(translation, shown.sentence_level, out.width))
        else:
            out.print(visible(translation.text))
        for part in shown.explanations:
            for line in explanation(part):
                out.print(line)


def comparison(translation: Translation, sentence_level: str, width: int) -> Table:
    """A row: source, sentence level, in context; words that differ are coloured."""
    before, after = visible(sentence_level), visible(translation.text)
    left, right = differences(before, after)
    source = Text(visible(translation.source), "dim")
    return _row(f"{translation.sentence + 1}", [source, left, right], width)


def heading(width: int) -> Table:
    """The headings of a comparison's columns."""
    return _row("", [Text(name, "bold") for name in ("source", "sentence level", "in context")], width)


def show_repairs(translations: Iterable[Translation]) -> None:
    """Show drafts and their repaired versions side by side, as they come."""
    out = stdout_console()
    out.print(_row("", [Text(name, "bold") for name in ("draft", "repaired")], out.width))
    document = 0
    for translation in translations:
        if translation.document != document:
            out.print()
            document = translation.document
        sides = differences(visible(translation.source), visible(translation.text))
        out.print(_row(f"{translation.sentence + 1}", sides, out.width))


def _row(number: str, columns: Sequence[Text], width: int) -> Table:
    """Texts side by side, with a number before them."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", justify="right", width=max(3, len(number)))
    for _ in columns:
        table.add_column(width=max(16, (width - max(1, len(number)) - 8) // len(columns)), overflow="fold")
    table.add_row(number, *columns)
    return table


def explanation(explained: Explanation) -> list[Text]:
    """One line per translation: the chosen one and the S-NMT's first, every token coloured by its PMI."""
    lines = []
    for row in explained.rows:
        line = Text(f"    {row.name:>6}  ", "dim")
        line.append(f"log p {row.log_prob:7.2f}  PMI {row.pmi:+6.2f}  ", "dim")
        line.append(colour_tokens(row.tokens))
        lines.append(line)
    return lines


def colour_tokens(tokens: Sequence[TokenPMI]) -> Text:
    """The tokens of a sentence as text, each coloured by its PMI."""
    text = Text()
    for token in tokens:
        text.append(visible(token.text), _colour(token.pmi))
    return text


def _colour(pmi: float) -> str:
    """Green where the context makes a token likelier, red where it makes it less likely."""
    if abs(pmi) < _STRONG / 8:
        return ""
    strength = min(1.0, abs(pmi) / _STRONG)
    shade = int(255 - 175 * strength)
    return f"rgb({shade},255,{shade})" if pmi > 0 else f"rgb(255,{shade},{shade})"


def differences(before: str, after: str) -> tuple[Text, Text]:
    """Two sentences as text, the words that differ coloured."""
    left, right = Text(), Text()
    old, new = changed_words(before, after)
    for stretch in old:
        left.append(stretch.text, "red" if stretch.changed else "")
    for stretch in new:
        right.append(stretch.text, "bold green" if stretch.changed else "")
    return left, right


def stdout_console() -> SafeConsole:
    """A console for results; colour only where standard output is a terminal."""
    return SafeConsole(highlight=False, markup=False, emoji=False)


# Characters of a sentence that are shown: enough to find it.
_SHOWN = 60


def show_flagged(
    flagged: Sequence[FlaggedSentence], work: FileTranslation | StreamTranslation, inputs: Sequence[Path]
) -> None:
    """List flagged sentences, the documents in order; --quiet does not silence a requested list."""
    counts = [len(file.documents) for file in work.files] if isinstance(work, FileTranslation) else []
    show_flagged_of_files(flagged, work.sentences, inputs, counts)


def show_flagged_of_files(
    flagged: Sequence[FlaggedSentence], sentences: int, inputs: Sequence[Path], documents: Sequence[int]
) -> None:
    """Do the same, given the number of all sentences, and of the documents in each input."""
    names = list(_names(inputs, documents)) if documents and len(inputs) > 1 else []
    for doubt in flagged:
        line = Text(f"{doubt.confidence:.2f}  ", "yellow")
        name = f"{names[doubt.document]}, " if names else ""
        line.append(f"{name}{doubt.place}: ", "bold")
        line.append(f"{_short(doubt.source)} → {_short(doubt.text)}")
        console.stderr.print(line)
        if doubt.reasons:
            console.stderr.print(Text(f"      {console.visible('; '.join(doubt.reasons))}", "dim"))
    total = f"{sentences:,} {'sentence' if sentences == 1 else 'sentences'}"
    worth = "is" if len(flagged) == 1 else "are"
    summary = f"{len(flagged):,} of {total} {worth} worth a look" if flagged else f"no doubts about {total}"
    console.stderr.print(Text(summary, "yellow" if flagged else "dim"))


def _names(inputs: Sequence[Path], documents: Sequence[int]) -> Iterator[str]:
    """The name of the file that each document is in."""
    for path, count in zip(inputs, documents, strict=True):
        yield from [console.visible(path.name)] * count


def _short(text: str) -> str:
    shown = console.visible(" ".join(text.split()))
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1].rstrip()}…"
