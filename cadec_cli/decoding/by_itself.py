"""A document translated by itself: what a worker of a pool does, wherever it is at work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cadec_cli.decoding.confidence import Judge
from cadec_cli.decoding.records import journal_record
from cadec_cli.decoding.translations import Translation
from cadec_cli.decoding.translator import Translator
from cadec_cli.method.context import Context


@dataclass(frozen=True)
class DocumentTask:
    """A document as it is handed to who translates it."""

    texts: tuple[str, ...]
    first: bool  # of its file: what comes before all files comes before it
    speakers: bool = False  # it is of subtitles


@dataclass(frozen=True)
class DocumentWorker:
    """What a worker of a pool does to a document; `side_output` is what else to make of each sentence."""

    translator: Translator
    judge: Judge
    json_lines: bool = False
    before: Context = field(default_factory=Context)
    side_output: Callable[[Translation], Any] | None = None

    def __call__(self, document: DocumentTask) -> list[Any]:
        """What is kept of its sentences."""
        context = self.before if document.first else Context()
        return [
            journal_record(translation, self.judge, json_lines=self.json_lines, beside=self.side_output)
            for translation in self.translator.translate_documents(
                [document.texts], contexts=[context], speakers=[document.speakers]
            )
        ]
