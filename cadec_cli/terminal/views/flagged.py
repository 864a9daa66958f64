"""Sentences that are worth a look, listed on standard error: results on standard output stay as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.text import Text

from cadec_cli.decoding.confidence import FlaggedSentence
from cadec_cli.jobs.in_step import FileTranslation
from cadec_cli.jobs.streaming import StreamTranslation
from cadec_cli.terminal import console

# Letters of a sentence that are shown: enough to find it by.
_SHOWN = 60


def show(
    flagged: Sequence[FlaggedSentence], work: FileTranslation | StreamTranslation, inputs: Sequence[Path]
) -> None:
    """List them, the documents in order; asked for, so not silenced by --quiet."""
    counts = [len(file.documents) for file in work.files] if isinstance(work, FileTranslation) else []
    show_of_files(flagged, work.sentences, inputs, counts)


def show_of_files(
    flagged: Sequence[FlaggedSentence], sentences: int, inputs: Sequence[Path], documents: Sequence[int]
) -> None:
    """The same, of so many sentences in so many documents of each input."""
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
