"""Translations on a terminal: compared with the sentence level, explained token by token.

Text goes through Rich as plain text, never as markup, and control characters are made visible: what a
subtitle holds can't command the terminal.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from cadec_cli.console import SafeConsole, visible
from cadec_cli.decoding.explaining import Explanation, TokenPMI
from cadec_cli.decoding.translations import Translation
from cadec_cli.text.differences import changed_words

# PMI of a token that has the full colour.
_STRONG = 2.0


@dataclass(frozen=True)
class TranslationView:
    """A translation with what a person wants to see beside it."""

    translation: Translation
    sentence_level: str | None
    explanations: Sequence[Explanation]


def show(translations: Iterable[TranslationView], *, compare: bool) -> None:
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
    """What the columns of a comparison are."""
    return _row("", [Text(name, "bold") for name in ("source", "sentence level", "in context")], width)


def show_repairs(translations: Iterable[Translation]) -> None:
    """Show drafts and what became of them, side by side, as they come."""
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
