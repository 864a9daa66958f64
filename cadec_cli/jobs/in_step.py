"""Files translated: all their documents in step, results in the order and the layout of the files.

What is done so far is in a journal beside the output, so that Ctrl-C, a crash or a full disk loses nothing.
Knows nothing of terminals: whoever shows how far it is hands in `track`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cadec_cli.decoding.confidence import FLAG_BELOW, FlaggedSentence, Judge, flagged_sentences
from cadec_cli.decoding.state import State
from cadec_cli.decoding.translation import Translation
from cadec_cli.decoding.translator import Translator
from cadec_cli.errors import CadecError, Interrupted, option
from cadec_cli.fs.atomic import atomic_file
from cadec_cli.fs.locks import remove_if_unlocked
from cadec_cli.jobs.journal import Gap, Journal
from cadec_cli.jobs.json_output import journal_record, json_line
from cadec_cli.jobs.output_names import OutputPlan
from cadec_cli.method.context import Context
from cadec_cli.method.options import TranslationOptions
from cadec_cli.text.documents import Document
from cadec_cli.text.formats import TextFile

# (translations, how many there will be, if that is known) → the same translations, counted aloud
Track = Callable[[Iterable[Translation], int | None], Iterable[Translation]]


def no_progress(translations: Iterable[Translation], total: int | None) -> Iterable[Translation]:
    """Nobody is looking."""
    return translations


@dataclass(frozen=True)
class SideOutput:
    """Something that is written beside the translation, such as a report.

    `of` makes plain data of every sentence, which the journal keeps; `write` gets that of all, in order.
    """

    of: Callable[[Translation], Any]
    write: Callable[[list[Any]], None]

    def attach(self, translations: Iterable[Translation]) -> Iterator[Translation]:
        """The same translations, in order; when the last is taken the companion is written."""
        made = []
        for translation in translations:
            made.append(self.of(translation))
            yield translation
        self.write(made)


@dataclass(frozen=True)
class FileTranslation:
    """Files, and what they are translated with; `origin` tells all else that the outcome depends on.

    Sentences with a confidence below `below` are flagged; `before` is the context of the first document of
    each file.
    """

    translator: Translator
    files: Sequence[TextFile]
    origin: tuple[tuple[str, str], ...] = ()
    plan: OutputPlan | None = None  # where they go, if that is files
    below: float = FLAG_BELOW
    before: Context = field(default_factory=Context)

    @cached_property
    def judge(self) -> Judge:
        """Who says which sentences are worth a look."""
        return self.translator.judge(self.below)

    @cached_property
    def documents(self) -> list[Document]:
        """The documents of all files."""
        return [document for file in self.files for document in file.documents]

    @cached_property
    def contexts(self) -> list[Context]:
        """What stands before each of the documents."""
        firsts = (number == 0 for file in self.files for number in range(len(file.documents)))
        return [self.before if first else Context() for first in firsts]

    @property
    def sentences(self) -> int:
        """How many there are."""
        return sum(map(len, self.documents))

    def in_order(self, track: Track = no_progress) -> Iterator[Translation]:
        """Translations document by document, although they are made in step; early ones wait."""
        tracked = track(self._from(None), self.sentences)
        return document_by_document(tracked, list(map(len, self.documents)))

    def restore(self, translations: Iterable[Translation]) -> Iterator[bytes]:
        """The files' bytes in their layout, one after the other, as early as translations allow."""
        texts = iter(translations)
        for file in self.files:
            count = sum(len(document) for document in file.documents)
            yield from file.restore(next(texts).text for _ in range(count))

    def to_files(
        self,
        *,
        json_lines: bool,
        resume: bool,
        track: Track = no_progress,
        resumed: Callable[[int], None] = lambda sentences: None,
        damaged: Callable[[str], None] = lambda message: None,
        companion: SideOutput | None = None,
    ) -> list[FlaggedSentence]:
        """Write the files that were planned, each whole or not at all; returns what is worth a look of all.

        `resumed` is told how many sentences were there already, `damaged` what of them was not as it was
        written. Interrupted, it says how many there are.
        """
        with self._journal(self._header(json_lines, companion), resume) as journal:
            if journal.damage:
                damaged(journal.damage)
            if journal.outputs:
                resumed(len(journal.outputs))
            try:
                self._translate(journal, json_lines, track, companion)
                outputs = {
                    key: done if companion is None else done[0] for key, done in journal.outputs.items()
                }
                self._write(outputs, json_lines)
                if companion is not None:
                    companion.write([journal.outputs[key][1] for key in sorted(outputs)])
            except KeyboardInterrupt:
                raise Interrupted(
                    f"{journal.kept:,} of {self.sentences:,} sentences are done; {journal.resume_hint}"
                ) from None
            journal.finish()
            return list(flagged_sentences(outputs, self.documents))

    def _journal(self, header: Mapping[str, Any], resume: bool) -> Journal | _InMemoryJournal:
        assert self.plan is not None, "nobody said where to"
        if self.plan.journal is None:
            return _InMemoryJournal()
        if self.plan.starts_over:
            remove_if_unlocked(self.plan.journal)
        return (Journal.resume if resume else Journal.begin)(self.plan.journal, header)

    def _translate(
        self,
        journal: Journal | _InMemoryJournal,
        json_lines: bool,
        track: Track,
        companion: SideOutput | None,
    ) -> None:
        translations = self._missing(journal)
        for translation in track(translations, self.sentences - len(journal.outputs)):
            beside = None if companion is None else companion.of
            done = journal_record(translation, self.judge, json_lines=json_lines, beside=beside)
            journal.add(translation.document, translation.sentence, done)

    def _missing(self, journal: Journal | _InMemoryJournal) -> Iterator[Translation]:
        """All that a journal does not have: what it lost, from where that began; then what comes after."""
        for gap in journal.gaps:
            lost = set(gap.lost)
            for translation in self._from(gap.start()):
                if (translation.document, translation.sentence) in lost:
                    lost.discard((translation.document, translation.sentence))
                    yield translation
                if not lost:
                    break
            if lost:
                raise CadecError(
                    f"{gap.path} has sentences that the input does not have",
                    f"start over with {option('force')}",
                )
        yield from self._from(journal.start, journal.checkpoint)

    def _from(
        self, start: State | None, checkpoint: Callable[[State], None] | None = None
    ) -> Iterator[Translation]:
        return self.translator.translate_documents(
            self.documents,
            contexts=self.contexts,
            start=start,
            checkpoint=checkpoint,
        )

    def _write(self, done: Mapping[tuple[int, int], Any], json_lines: bool) -> None:
        assert self.plan is not None
        first = 0
        for target, file in zip(self.plan.paths, self.files, strict=True):
            outputs = [
                done[first + number, sentence]
                for number, document in enumerate(file.documents)
                for sentence in range(len(document))
            ]
            first += len(file.documents)
            with atomic_file(target) as stream:
                for piece in output_pieces(file, outputs, json_lines=json_lines):
                    stream.write(piece)

    def _header(self, json_lines: bool, companion: SideOutput | None = None) -> dict[str, Any]:
        """All that the outcome depends on."""
        documents = [[one.texts for one in self.documents], [one.speakers for one in self.documents]]
        text = json.dumps(documents, ensure_ascii=False).encode("utf-8", "surrogatepass")
        before = hashlib.sha256(json.dumps(self.before.sentences).encode()).hexdigest()
        return {
            "input": hashlib.sha256(text).hexdigest(),
            "context before": before if self.before.sentences else None,
            **translation_settings(
                self.origin,
                self.translator.options,
                json_lines=json_lines,
                report=companion is not None,
                below=self.below,
            ),
        }


def translation_settings(
    origin: Iterable[tuple[str, str]],
    options: TranslationOptions,
    *,
    json_lines: bool,
    report: bool,
    below: float,
) -> dict[str, Any]:
    """All that the outcome depends on but the input."""
    return {
        **dict(origin),
        "options": dataclasses.asdict(options),
        "output format": ("json" if json_lines else "text") + (" with a report" if report else ""),
        "limit for flags": below,
    }


def output_pieces(file: TextFile, outputs: Sequence[Any], *, json_lines: bool) -> Iterator[bytes]:
    """A file's bytes, of what is kept of its sentences: in its layout, or as JSON lines."""
    if json_lines:
        yield from (json_line(record) for of_sentence in outputs for record in of_sentence)
    else:
        yield from file.restore(output["text"] for output in outputs)


def document_by_document(
    translations: Iterable[Translation], lengths: Sequence[int]
) -> Iterator[Translation]:
    """Translations that were made in step, in the order of the documents; early ones wait."""
    arrived = [0] * len(lengths)
    waiting: list[list[Translation]] = [[] for _ in lengths]
    current = 0
    for translation in translations:
        arrived[translation.document] += 1
        waiting[translation.document].append(translation)
        while current < len(lengths):
            yield from waiting[current]
            waiting[current].clear()
            if arrived[current] < lengths[current]:
                break
            current += 1


class _InMemoryJournal:
    """What is done so far, where it can't be kept on disk: a journal for what goes down a pipe."""

    start: State | None = None
    gaps: tuple[Gap, ...] = ()
    damage = ""
    kept = 0
    resume_hint = "what goes to a pipe or a device can't be resumed"

    def __init__(self) -> None:
        self.outputs: dict[tuple[int, int], Any] = {}

    def add(self, document: int, sentence: int, output: Any) -> None:
        self.outputs[document, sentence] = output

    def checkpoint(self, state: State) -> None:
        self.kept = len(self.outputs)

    def finish(self) -> None:
        pass

    def __enter__(self) -> _InMemoryJournal:
        return self

    def __exit__(self, *_: object) -> None:
        pass
