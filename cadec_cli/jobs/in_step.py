"""Translates files with all their documents in step; results keep the order and layout of the files.

Finished sentences are in a journal beside the output, so that Ctrl-C, a crash or a full disk loses nothing.
Knows nothing of terminals: the caller passes `track` to show progress.

Text that arrives from a pipe or a terminal is a `StreamTranslation`: complete sentences do not wait for more
input. Everything available at a time is translated in step, like the documents of a file. A document may
arrive in several parts; each continues where the last one stopped.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from cadec_cli.decoding.confidence import FLAG_BELOW, FlaggedSentence, Judge, flagged_sentences, text_of
from cadec_cli.decoding.explain import ExplainedTranslation
from cadec_cli.decoding.state import DocumentState, PartialPath, State
from cadec_cli.decoding.translation import Translation
from cadec_cli.decoding.translator import Translator
from cadec_cli.errors import CadecError, Interrupted, option
from cadec_cli.fs.atomic import atomic_file
from cadec_cli.fs.locks import remove_if_unlocked
from cadec_cli.jobs.cue_checks import with_cue_problems
from cadec_cli.jobs.journal import Gap, Journal
from cadec_cli.jobs.json_lines import (
    journal_record,
    json_bytes,
    json_line,
    json_records,
    text_record,
    with_cues,
)
from cadec_cli.jobs.outputs import OutputPlan
from cadec_cli.method.context import Context
from cadec_cli.method.hypotheses import NBest
from cadec_cli.method.options import TranslationOptions, options_as_data
from cadec_cli.text.cast import last_turns
from cadec_cli.text.documents import Document, Sentence
from cadec_cli.text.formats import StreamedText, TextFile
from cadec_cli.text.formats.layout import RatedText
from cadec_cli.text.name_memory import NameMemory, NameSample

# (translations, how many there will be, if that is known) → the same translations, with progress shown
Track = Callable[[Iterable[Translation], int | None], Iterable[Translation]]


def no_progress(translations: Iterable[Translation], total: int | None) -> Iterable[Translation]:
    """Return the translations unchanged, without showing progress."""
    return translations


@dataclass(frozen=True)
class SegmentRecord:
    """The side output's data for a sentence, and where the sentence is."""

    file: int
    document: int  # of its file
    sentence: int
    place: str
    made: Any


# (an explained translation, its judge) → plain data
Segment = Callable[[ExplainedTranslation, Judge], Any]


@dataclass(frozen=True)
class SideOutput:
    """A file that is written beside the translation, such as a report.

    `segment(explained, judge)` turns an explained translation into plain data for the journal. It must be a
    top-level function, because it is sent to workers. `write` gets the records of all sentences, in order.
    `name` is what the journal calls it. Without `explains`, nothing is explained.
    """

    path: Path
    segment: Segment
    write: Callable[[Iterable[SegmentRecord]], None]
    name: str = "a report"
    explains: bool = True
    others: tuple[Path, ...] = ()  # that are written with it

    @property
    def paths(self) -> tuple[Path, ...]:
        """All files that are written."""
        return self.path, *self.others


def both(one: SideOutput | None, other: SideOutput | None) -> SideOutput | None:
    """Return two side outputs as one."""
    if one is None or other is None:
        return one or other
    first, second = one, other

    def write(records: Iterable[SegmentRecord]) -> None:
        every = list(records)
        first.write(replace(record, made=record.made[0]) for record in every)
        second.write(replace(record, made=record.made[1]) for record in every)

    return SideOutput(
        first.path,
        partial(_both_segments, first.segment, second.segment),
        write,
        f"{first.name} and {second.name}",
        first.explains or second.explains,
        (*first.others, *second.paths),
    )


def _both_segments(one: Segment, other: Segment, explained: ExplainedTranslation, judge: Judge) -> Any:
    return [one(explained, judge), other(explained, judge)]


def segment_maker(
    segment: Segment, translator: Translator, judge: Judge, *, explains: bool = True
) -> Callable[[Translation], Any]:
    """Return the function that makes a segment from a translation; the translator may explain it first."""
    if not explains:
        return lambda translation: segment(ExplainedTranslation(translation, None, ()), judge)
    return lambda translation: segment(translator.explain_translation(translation), judge)


# (number of the input, the file as it was read, the translations of all its sentences)
Written = Callable[[int, TextFile, Sequence[str]], None]


def ignore_file(number: int, file: TextFile, texts: Sequence[str]) -> None:
    """Do nothing with a file that is complete."""


@dataclass(frozen=True)
class FileTranslation:
    """Files, and what they are translated with; `origin` is everything else that the result depends on.

    Sentences with a confidence below `below` are flagged; `before` is the context of the first document of
    each file. A side output is complete as soon as the last translation has been taken.
    """

    translator: Translator
    files: Sequence[TextFile]
    origin: tuple[tuple[str, str], ...] = ()
    plan: OutputPlan | None = None  # None if they go to standard output
    below: float = FLAG_BELOW
    before: Context = field(default_factory=Context)
    side_output: SideOutput | None = None
    clock: Callable[[], float] = time.monotonic  # by which the journal is written

    @cached_property
    def judge(self) -> Judge:
        """The judge that flags sentences."""
        return self.translator.judge(self.below)

    @cached_property
    def documents(self) -> list[Document]:
        """The documents of all files."""
        return [document for file in self.files for document in file.documents]

    @cached_property
    def contexts(self) -> list[Context]:
        """The context before each document."""
        firsts = (number == 0 for file in self.files for number in range(len(file.documents)))
        return [self.before if first else Context() for first in firsts]

    @property
    def sentences(self) -> int:
        """The number of sentences."""
        return sum(map(len, self.documents))

    def in_order(self, track: Track = no_progress) -> Iterator[Translation]:
        """Translations document by document, although they are made in step; early ones wait."""
        tracked = track(self._from(None), self.sentences)
        in_order = document_by_document(tracked, list(map(len, self.documents)))
        return attach(self.side_output, in_order, self.translator, self.judge, self._places.__getitem__)

    @cached_property
    def _names(self) -> list[NameSample]:
        """The names that recur in the file of each document."""
        language = self.translator.language
        of_files = [NameSample.of_documents(file.documents, language) for file in self.files]
        return [sample for file, sample in zip(self.files, of_files, strict=True) for _ in file.documents]

    @cached_property
    def _places(self) -> list[tuple[int, int]]:
        """The number of each document's file, and the document's number in that file."""
        return [
            (number, document)
            for number, file in enumerate(self.files)
            for document in range(len(file.documents))
        ]

    def restore(self, translations: Iterable[Translation], written: Written = ignore_file) -> Iterator[bytes]:
        """The files' bytes in their layout, one after the other, as early as translations allow.

        `written` is called with each file once all its bytes were taken.
        """
        for number, file, own in self._by_file(translations):
            texts: list[str] = []
            yield from file.restore(_collect(map(self._rated, own), texts))
            written(number, file, texts)

    def json_lines(
        self, translations: Iterable[Translation], written: Written = ignore_file
    ) -> Iterator[bytes]:
        """The translations as JSON lines, those of subtitles with the problems of their cues."""
        for number, file, own in self._by_file(translations):
            texts: list[str] = []
            for translation, found in with_cue_problems(file, own, _text):
                texts.append(translation.text)
                for record in with_cues(json_records(translation, self.judge), found):
                    yield json_line(record)
            written(number, file, texts)

    def _by_file(
        self, translations: Iterable[Translation]
    ) -> Iterator[tuple[int, TextFile, Iterator[Translation]]]:
        """Yield the files with their numbers and translations, which have to be taken one after the other."""
        coming = iter(translations)
        for number, file in enumerate(self.files):
            count = sum(len(document) for document in file.documents)
            yield number, file, itertools.islice(coming, count)

    def _rated(self, translation: Translation) -> str:
        return rated_text(text_record(translation, self.judge))

    def to_files(
        self,
        *,
        json_lines: bool,
        resume: bool,
        track: Track = no_progress,
        resumed: Callable[[int], None] = lambda sentences: None,
        damaged: Callable[[str], None] = lambda message: None,
        written: Written = ignore_file,
    ) -> list[FlaggedSentence]:
        """Write the planned files, each whole or not at all; return the flagged sentences.

        `resumed` is called with the number of sentences that were already done, `damaged` with a message
        about a damaged journal, `written` with each file that is written. `Interrupted` says how many
        sentences are done.
        """
        with self._journal(self._header(json_lines), resume) as journal:
            if journal.damage:
                damaged(journal.damage)
            if journal.outputs:
                resumed(len(journal.outputs))
            try:
                self._translate(journal, json_lines, track)
                side_output = self.side_output
                outputs = {
                    key: done if side_output is None else done[0] for key, done in journal.outputs.items()
                }
                self._write(outputs, json_lines, written)
                if side_output is not None:
                    side_output.write(
                        self._record(document, sentence, journal.outputs[document, sentence][1])
                        for document, sentence in sorted(outputs)
                    )
            except KeyboardInterrupt:
                raise Interrupted(
                    f"{journal.kept:,} of {self.sentences:,} sentences are done; {journal.resume_hint}"
                ) from None
            journal.finish()
            return list(flagged_sentences(outputs, self.documents))

    def _journal(self, header: Mapping[str, Any], resume: bool) -> Journal | _InMemoryJournal:
        assert self.plan is not None, "the files have no place to go to"
        if self.plan.journal is None:
            return _InMemoryJournal()
        if self.plan.starts_over:
            remove_if_unlocked(self.plan.journal)
        return (Journal.resume if resume else Journal.begin)(self.plan.journal, header, self.clock)

    def _record(self, document: int, sentence: int, made: Any) -> SegmentRecord:
        file, number = self._places[document]
        place = self.files[file].documents[number].sentences[sentence].place
        return SegmentRecord(file, number, sentence, place, made)

    def _translate(self, journal: Journal | _InMemoryJournal, json_lines: bool, track: Track) -> None:
        translations = self._missing(journal)
        beside = None
        if self.side_output is not None:
            beside = segment_maker(
                self.side_output.segment,
                self.translator,
                self.judge,
                explains=self.side_output.explains,
            )
        for translation in track(translations, self.sentences - len(journal.outputs)):
            done = journal_record(translation, self.judge, json_lines=json_lines, beside=beside)
            journal.add(translation.document, translation.sentence, done)

    def _missing(self, journal: Journal | _InMemoryJournal) -> Iterator[Translation]:
        """Translate what the journal lacks: first its gaps, then everything after its last snapshot."""
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
        yield from self._from(journal.start, journal)

    def _from(
        self, start: State | None, journal: Journal | _InMemoryJournal | None = None
    ) -> Iterator[Translation]:
        return self.translator.translate_documents(
            self.documents,
            contexts=self.contexts,
            start=start,
            checkpoint=None if journal is None else journal.checkpoint,
            store=journal,
            names=self._names if self.translator.options.finds_names else None,
        )

    def _write(self, done: Mapping[tuple[int, int], Any], json_lines: bool, written: Written) -> None:
        assert self.plan is not None
        first = 0
        for number, (target, file) in enumerate(zip(self.plan.paths, self.files, strict=True)):
            outputs = [
                done[first + position, sentence]
                for position, document in enumerate(file.documents)
                for sentence in range(len(document))
            ]
            first += len(file.documents)
            with atomic_file(target) as stream:
                for piece in output_pieces(file, outputs, json_lines=json_lines):
                    stream.write(piece)
            written(number, file, list(map(text_of, outputs)))

    def _header(self, json_lines: bool) -> dict[str, Any]:
        """Everything that the result depends on."""
        documents: list[Any] = [
            [one.texts for one in self.documents],
            [one.speakers for one in self.documents],
        ]
        if any(one.given for one in self.documents):
            documents.append([one.given for one in self.documents])
        if any(one.rooms for one in self.documents):
            documents.append([one.rooms for one in self.documents])
        if any(one.speaker_names for one in self.documents):
            documents.append([one.speaker_names for one in self.documents])
        text = json.dumps(documents, ensure_ascii=False).encode("utf-8", "surrogatepass")
        before = hashlib.sha256(json.dumps(self.before.sentences).encode()).hexdigest()
        return {
            "input": hashlib.sha256(text).hexdigest(),
            "context before": before if self.before.sentences else None,
            **translation_settings(
                self.origin,
                self.translator.options,
                json_lines=json_lines,
                beside=self.side_output.name if self.side_output is not None else "",
                below=self.below,
            ),
        }


def attach(
    side_output: SideOutput | None,
    translations: Iterable[Translation],
    translator: Translator,
    judge: Judge,
    place: Callable[[int], tuple[int, int]],
) -> Iterator[Translation]:
    """Yield the translations unchanged, and write the side output after the last one.

    `place` returns the number of a document's file, and its number in that file.
    """
    if side_output is None:
        yield from translations
        return
    make = segment_maker(side_output.segment, translator, judge, explains=side_output.explains)
    records = []
    for one in translations:
        records.append(SegmentRecord(*place(one.document), one.sentence, one.place, make(one)))
        yield one
    side_output.write(records)


def translation_settings(
    origin: Iterable[tuple[str, str]],
    options: TranslationOptions,
    *,
    json_lines: bool,
    beside: str,
    below: float,
) -> dict[str, Any]:
    """Everything that the result depends on except the input; `beside` is the name of the side output."""
    return {
        **dict(origin),
        "options": options_as_data(options),
        "output format": ("json" if json_lines else "text") + (f" with {beside}" if beside else ""),
        "limit for flags": below,
    }


def output_pieces(file: TextFile, outputs: Sequence[Any], *, json_lines: bool) -> Iterator[bytes]:
    """A file's bytes, made from the records of its sentences: in its layout, or as JSON lines."""
    if not json_lines:
        yield from file.restore(map(rated_text, outputs))
        return
    for of_sentence, found in with_cue_problems(file, outputs, text_of):
        yield from map(json_line, with_cues(of_sentence, found))


def _text(translation: Translation) -> str:
    return translation.text


def _collect(texts: Iterable[str], into: list[str]) -> Iterator[str]:
    """Yield texts, and keep them."""
    for text in texts:
        into.append(text)
        yield text


def rated_text(record: Mapping[str, Any]) -> str:
    """Return the text of a sentence's record, with its confidence for layouts that write it down."""
    return RatedText.of(record["text"], record.get("confidence"), record.get("flags", ()))


def document_by_document(
    translations: Iterable[Translation], lengths: Sequence[int]
) -> Iterator[Translation]:
    """Put translations that were made in step into document order; early ones are held back."""
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
    """A journal in memory, for output to a pipe, beside which no file can be kept."""

    start: State | None = None
    gaps: tuple[Gap, ...] = ()
    damage = ""
    kept = 0
    resume_hint = "output to a pipe or a device can't be resumed"

    def __init__(self) -> None:
        self.outputs: dict[tuple[int, int], Any] = {}

    def add(self, document: int, sentence: int, output: Any) -> None:
        self.outputs[document, sentence] = output

    def checkpoint(self, state: State) -> None:
        self.kept = len(self.outputs)

    def recall(self, key: str) -> None:
        return None

    def keep(self, key: str, lists: list[NBest]) -> None:
        pass

    def finish(self) -> None:
        pass

    def __enter__(self) -> _InMemoryJournal:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@dataclass(eq=False)
class _OpenDocument:
    """A document that is still arriving: the state of its translation, and the new sentences."""

    number: int
    state: DocumentState
    names: NameMemory
    done: int = 0
    before: tuple[str, ...] = ()  # sentences of the last speakers, who may be addressed
    came: list[Sentence] = field(default_factory=list)


@dataclass
class StreamTranslation:
    """A stream, and what it is translated with; it is shown and written like a `FileTranslation`.

    `file` is how it is written; `before` is the context of the first document; sentences with a confidence
    below `below` are flagged. A search that is not greedy needs a stream of whole documents.
    """

    translator: Translator
    text: StreamedText
    file: TextFile
    below: float = FLAG_BELOW
    before: Context = field(default_factory=Context)
    side_output: SideOutput | None = None
    sentences: int = 0  # so far
    plan: None = None  # it goes to standard output

    @cached_property
    def judge(self) -> Judge:
        """The judge that flags sentences."""
        return self.translator.judge(self.below)

    def in_order(self, track: Track = no_progress) -> Iterator[Translation]:
        """Translations document by document, as the text arrives; their number is not known."""
        tracked = track(self._translations(), None)
        return attach(self.side_output, tracked, self.translator, self.judge, lambda document: (0, document))

    def restore(self, translations: Iterable[Translation], written: Written | None = None) -> Iterator[bytes]:
        """The bytes of the text in its layout, as early as translations allow; `written` is not called."""
        return self.file.restore(translation.text for translation in translations)

    def json_lines(
        self, translations: Iterable[Translation], written: Written | None = None
    ) -> Iterator[bytes]:
        """The translations as JSON lines, as they come; `written` is not called."""
        return json_bytes(translations, self.judge)

    def _translations(self) -> Iterator[Translation]:
        current: _OpenDocument | None = None
        begun = 0
        for lines in self.text.to_translate():
            here: list[_OpenDocument] = []
            for line in lines:
                if line.ends_before:
                    current = None
                if line.sentences:
                    if current is None:
                        context = Context() if begun else self.before
                        state = DocumentState([PartialPath(context=context)])
                        current = _OpenDocument(begun, state, self.translator.new_names())
                        begun += 1
                    if current not in here[-1:]:
                        here.append(current)
                    current.came += line.sentences
                if line.ends_after:
                    current = None
            if here:
                yield from self._translate_batch(here)

    def _translate_batch(self, documents: Sequence[_OpenDocument]) -> Iterator[Translation]:
        """Translate the new sentences of some documents, in step."""
        state = State(0, dict(enumerate(document.state for document in documents)))
        made = self.translator.translate_documents(
            [document.came for document in documents],
            before=[document.before for document in documents] if self.translator.options.cast else None,
            start=state,
            growing=[document.names for document in documents],
        )
        for translation in document_by_document(made, [len(document.came) for document in documents]):
            document = documents[translation.document]
            self.sentences += 1
            yield replace(
                translation,
                document=document.number,
                sentence=document.done + translation.sentence,
            )
        for document in documents:
            document.done += len(document.came)
            texts = [*document.before, *(sentence.text for sentence in document.came)]
            document.before = last_turns(texts)
            document.came = []
