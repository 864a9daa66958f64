"""Sentences that are worth a look, listed on standard error: results on standard output stay as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.text import Text

from cadec_cli import console
from cadec_cli.decoding.doubts import Doubt
from cadec_cli.decoding.file_translation import FileTranslation

# Letters of a sentence that are shown: enough to find it by.
_SHOWN = 60


def show(doubts: Sequence[Doubt], work: FileTranslation, inputs: Sequence[Path]) -> None:
    """List them, the documents in order; asked for, so not silenced by --quiet."""
    places = list(_places(work, inputs))
    for doubt in doubts:
        line = Text(f"{doubt.confidence:.2f}  ", "yellow")
        line.append(f"{places[doubt.document][doubt.sentence]}: ", "bold")
        line.append(f"{_short(doubt.source)} → {_short(doubt.text)}")
        console.stderr.print(line)
        if doubt.reasons:
            console.stderr.print(Text(f"      {console.visible('; '.join(doubt.reasons))}", "dim"))
    total = f"{work.sentences:,} {'sentence' if work.sentences == 1 else 'sentences'}"
    worth = "is" if len(doubts) == 1 else "are"
    summary = f"{len(doubts):,} of {total} {worth} worth a look" if doubts else f"no doubts about {total}"
    console.stderr.print(Text(summary, "yellow" if doubts else "dim"))


def _places(work: FileTranslation, inputs: Sequence[Path]) -> Iterator[list[str]]:
    """Where each sentence of each document is found: no more than is needed."""
    for path, file in zip(inputs, work.files, strict=True):
        name = f"{console.visible(path.name)}, " if len(work.files) > 1 else ""
        for document in file.documents:
            yield [name + sentence.place for sentence in document.sentences]


def _short(text: str) -> str:
    shown = console.visible(" ".join(text.split()))
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1].rstrip()}…"
