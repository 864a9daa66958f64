"""Sentences that are worth a look, listed on standard error: results on standard output stay as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.text import Text

from cadec_cli import console
from cadec_cli.decoding.doubts import Doubt
from cadec_cli.decoding.file_translation import FileTranslation
from cadec_cli.decoding.streaming import StreamTranslation

# Letters of a sentence that are shown: enough to find it by.
_SHOWN = 60


def show(doubts: Sequence[Doubt], work: FileTranslation | StreamTranslation, inputs: Sequence[Path]) -> None:
    """List them, the documents in order; asked for, so not silenced by --quiet."""
    names = list(_names(work, inputs)) if isinstance(work, FileTranslation) and len(inputs) > 1 else []
    for doubt in doubts:
        line = Text(f"{doubt.confidence:.2f}  ", "yellow")
        name = f"{names[doubt.document]}, " if names else ""
        line.append(f"{name}{doubt.place}: ", "bold")
        line.append(f"{_short(doubt.source)} → {_short(doubt.text)}")
        console.stderr.print(line)
        if doubt.reasons:
            console.stderr.print(Text(f"      {console.visible('; '.join(doubt.reasons))}", "dim"))
    total = f"{work.sentences:,} {'sentence' if work.sentences == 1 else 'sentences'}"
    worth = "is" if len(doubts) == 1 else "are"
    summary = f"{len(doubts):,} of {total} {worth} worth a look" if doubts else f"no doubts about {total}"
    console.stderr.print(Text(summary, "yellow" if doubts else "dim"))


def _names(work: FileTranslation, inputs: Sequence[Path]) -> Iterator[str]:
    """The name of the file that each document is in."""
    for path, file in zip(inputs, work.files, strict=True):
        yield from [console.visible(path.name)] * len(file.documents)


def _short(text: str) -> str:
    shown = console.visible(" ".join(text.split()))
    return shown if len(shown) <= _SHOWN else f"{shown[: _SHOWN - 1].rstrip()}…"
