"""Translates files document by document with a pool of workers, each document independently.

A translation therefore does not depend on neighbouring documents, the number of workers or the shard.
Finished documents are kept on disk, and a file is written whole when all of its documents are finished. Only
files with a document in progress are in memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from cadec_cli.decoding.confidence import FlaggedSentence, Judge, flagged_sentences, text_of
from cadec_cli.decoding.translation import Translation
from cadec_cli.decoding.translator import Translator
from cadec_cli.errors import CadecError, Interrupted, option
from cadec_cli.fs.atomic import atomic_file
from cadec_cli.fs.locks import remove_if_unlocked
from cadec_cli.fs.paths import resolve_path
from cadec_cli.fs.read import sha256
from cadec_cli.jobs.done import DoneDocuments, FinishedFile, FinishedFiles, document_key
from cadec_cli.jobs.in_step import SegmentRecord, Written, ignore_file, output_pieces
from cadec_cli.jobs.json_lines import journal_record
from cadec_cli.jobs.outputs import OutputPlan
from cadec_cli.method.context import Context
from cadec_cli.parallel import Task, WorkerLostError, WorkerPool
from cadec_cli.text.documents import Document
from cadec_cli.text.formats import TextFile
from cadec_cli.text.name_memory import NameSample


@dataclass(frozen=True)
class DocumentTask:
    """A document to be translated by a worker."""

    document: Document
    first: bool  # of its file: the context before the file applies to it
    names: NameSample | None = None  # of its file


@dataclass(frozen=True)
class DocumentWorker:
    """Translates a document in a worker; `side_output` makes further data from each translation."""

    translator: Translator
    judge: Judge
    json_lines: bool = False
    before: Context = field(default_factory=Context)
    side_output: Callable[[Translation], Any] | None = None

    def __call__(self, task: DocumentTask) -> list[Any]:
        """Return one journal record per sentence."""
        context = self.before if task.first else Context()
        return [
            journal_record(translation, self.judge, json_lines=self.json_lines, beside=self.side_output)
            for translation in self.translator.translate_documents(
                [task.document], contexts=[context], names=None if task.names is None else [task.names]
            )
        ]


# (files or sentences, their number) → the same, with progress shown
Count = Callable[[Iterable[Any], int], Iterable[Any]]


@dataclass(frozen=True)
class Survey:
    """The amount of work, found by reading all files once."""

    order: tuple[int, ...]  # of the files: those with the longest documents first
    documents: tuple[int, ...]  # in each file
    digests: tuple[bytes, ...]  # of each file's documents
    sentences: Counter[str]  # by document key; a document that occurs twice counts twice

    @property
    def total(self) -> int:
        """The number of sentences."""
        return self.sentences.total()


def no_progress(items: Iterable[Any], total: int) -> Iterable[Any]:
    """Return the items unchanged, without showing progress."""
    return items


@dataclass(frozen=True)
class BulkTranslation:
    """Files, and how a pool translates them.

    `read(number)` reads a file, again at every call. `settings` is everything that the result depends on
    except the files. `before` has the sentences that precede the first document of each file. An existing
    file that this translation did not write is replaced only with `replace`.
    """

    plan: OutputPlan
    read: Callable[[int], TextFile]
    task: Task[DocumentTask, list[Any]]
    settings: Mapping[str, Any]
    json_lines: bool = False
    before: tuple[str, ...] = ()
    replace: bool = False
    side_output: Callable[[Iterable[SegmentRecord]], None] | None = None  # writes the records
    finished: FinishedFiles | None = None  # where finished files are recorded
    inputs: Sequence[Path] = ()  # recorded with them
    names: Callable[[Sequence[Document]], NameSample | None] = lambda documents: None  # of a file

    def survey(self, count: Count = no_progress) -> Survey:
        """Read all files once, so that errors in any of them are reported before the work."""
        sentences: Counter[str] = Counter()
        longest, documents, digests = [], [], []
        for number in count(range(len(self.plan.paths)), len(self.plan.paths)):
            file = self.read(number)
            keys = self.keys_of(file)
            for document, key in zip(file.documents, keys, strict=True):
                sentences[key] += len(document)
            longest.append(max(map(len, file.documents), default=0))
            documents.append(len(file.documents))
            digests.append(_digest_of(keys))
        order = sorted(range(len(longest)), key=lambda number: -longest[number])
        return Survey(tuple(order), tuple(documents), tuple(digests), sentences)

    def run(
        self,
        pool: WorkerPool,
        survey: Survey,
        *,
        resume: bool,
        count: Count = no_progress,
        resumed: Callable[[int], None] = lambda sentences: None,
        damaged: Callable[[str], None] = lambda message: None,
        doubted: Callable[[int, Sequence[FlaggedSentence]], None] | None = None,
        written: Written = ignore_file,
    ) -> None:
        """Translate what is not done yet, and write every file as soon as it is complete.

        `resumed` is called with the number of sentences that were already done, `damaged` with a message
        about a damaged journal, `doubted` with a file's number and its flagged sentences, and `written` with
        each file that is written. `Interrupted` says how many sentences are done.
        """
        with self._done_documents(resume) as done:
            if done.damage:
                damaged(done.damage)
            work = _Work(self, done, survey, doubted, written)
            work.refuse_foreign()
            if already := _sentences_done(done, survey):
                resumed(already)
            try:
                for _ in count(work.translated_by(pool), survey.total - already):
                    pass
                if self.side_output is not None:
                    self.side_output(work.segment_records())
            except KeyboardInterrupt:
                kept = _sentences_done(done, survey)
                raise Interrupted(
                    f"{kept:,} of {survey.total:,} sentences are done; {done.resume_hint}"
                ) from None
            if self.finished is not None:
                done.complete()
                self.finished.add(work.completed)
            done.finish()

    def unfinished_files(self) -> list[int]:
        """The numbers of the files that are not recorded as finished, or have changed since."""
        known = self.finished.read() if self.finished is not None else set()
        if not known:
            return list(range(len(self.plan.paths)))
        return [
            number
            for number, path in enumerate(self.plan.paths)
            if not os.path.lexists(path)
            or self.finished_file(number, _digest(path), self.source_of(number)) not in known
        ]

    def only(self, numbers: Sequence[int]) -> BulkTranslation:
        """The same translation, restricted to some of the files."""
        return replace(
            self,
            plan=self.plan.part(numbers, self.plan.journal),
            read=lambda number: self.read(numbers[number]),
            inputs=[self.inputs[number] for number in numbers],
        )

    def finished_file(self, number: int, digest: str, source: str) -> FinishedFile:
        """The record of a finished file."""
        assert self.finished is not None
        name = _relative(self.plan.paths[number], self.finished.path)
        return FinishedFile(name, digest, self.inputs[number].name, source)

    def source_of(self, number: int) -> str:
        """The checksum of an input; empty if finished files are not recorded."""
        return sha256(self.inputs[number]) if self.finished is not None else ""

    def _done_documents(self, resume: bool) -> DoneDocuments:
        assert self.plan.journal is not None, "what goes to a pipe is not done in bulk"
        if self.plan.starts_over:
            remove_if_unlocked(self.plan.journal)
        return (DoneDocuments.resume if resume else DoneDocuments.begin)(self.plan.journal, self.settings)

    def keys_of(self, file: TextFile) -> list[str]:
        """The keys of a file's documents."""
        sample = self.names(file.documents)
        return [
            document_key(
                document.texts,
                () if number else self.before,
                speakers=document.speakers,
                rooms=document.rooms,
                speaker_names=document.speaker_names,
                given=document.given,
                names="" if sample is None else sample.key,
            )
            for number, document in enumerate(file.documents)
        ]

    def may_write(self, path: Path, done: DoneDocuments) -> bool:
        """Tell whether an output's path is free, or has a file that this translation wrote."""
        return self.replace or not os.path.lexists(path) or done.is_own(self._name(path), _digest(path))

    def _name(self, path: Path) -> str:
        """An output's name in the journal: relative, so that both may be moved together."""
        assert self.plan.journal is not None
        return _relative(path, self.plan.journal)

    def write(self, number: int, content: bytes, done: DoneDocuments) -> str:
        """Write a file, unless it already has this content; return its checksum."""
        path = self.plan.paths[number]
        digest = hashlib.sha256(content).hexdigest()
        if _digest(path) == digest:
            done.note_output(self._name(path), digest)  # the content is the same, whoever wrote it
            return digest
        if not self.may_write(path, done):
            raise CadecError(
                f"{path} was created or changed in the meantime",
                f"move it away and use {option('resume')}",
            )
        done.note_output(self._name(path), digest)
        with atomic_file(path) as stream:
            stream.write(content)
        return digest


@dataclass(eq=False)
class _OpenFile:
    """A file with documents that are being translated."""

    number: int
    file: TextFile
    keys: Sequence[str]
    source: str  # the checksum of what was read
    missing: set[str] = field(default_factory=set)
    names: NameSample | None = None

    @property
    def documents(self) -> Iterator[tuple[str, Document]]:
        """Its documents with their keys."""
        return zip(self.keys, self.file.documents, strict=True)

    def new_documents(self, known: Mapping[str, Any]) -> list[tuple[str, DocumentTask]]:
        """Its documents that are missing and not being translated yet, the longest first."""
        new = {
            key: DocumentTask(document, first=number == 0, names=self.names)
            for number, (key, document) in enumerate(self.documents)
            if key in self.missing and key not in known
        }
        return sorted(new.items(), key=lambda item: -len(item[1].document))


@dataclass(eq=False)
class _Work:
    """One run: the documents that are being translated, and the files that wait for them."""

    translation: BulkTranslation
    done: DoneDocuments
    survey: Survey
    flagged: Callable[[int, Sequence[FlaggedSentence]], None] | None
    written: Written
    waiting: dict[str, list[_OpenFile]] = field(default_factory=dict)
    in_progress: dict[int, str] = field(default_factory=dict)
    completed: list[FinishedFile] = field(default_factory=list)

    def refuse_foreign(self) -> None:
        """Refuse to begin if an output's path has a file that this translation did not write."""
        paths = self.translation.plan.paths
        foreign = [
            path
            for number, path in enumerate(paths)
            if not self.translation.may_write(path, self.done) and not self._is_there(number, path)
        ]
        if foreign:
            others = f" and {len(foreign) - 1:,} more" if len(foreign) > 1 else ""
            raise CadecError(
                f"{foreign[0]}{others}: exists already, and is not as this translation wrote it",
                f"{option('resume')} {option('force')} replaces "
                f"{'it' if len(foreign) == 1 else 'them'} and keeps finished translations",
            )

    def _is_there(self, number: int, path: Path) -> bool:
        """Tell whether a file without a record is what we would write: the record may be damaged."""
        opened = self._open(number)
        return not opened.missing and _digest(path) == hashlib.sha256(self._content(opened)[1]).hexdigest()

    def translated_by(self, pool: WorkerPool) -> Iterator[None]:
        """Translate all documents with the pool; yield once per sentence."""
        documents = self._documents()
        first = next(documents, None)
        if first is None:  # everything is done: no worker needs to start
            return
        results = pool.run(self.translation.task, itertools.chain([first], documents))
        # A caller that stops early ends the pool's work at once, not at garbage collection.
        closing = contextlib.closing(cast("Generator[Any, None, None]", results))
        lost: list[CadecError] = []
        with closing, self._name_culprits():
            for number, sentences in results:
                if isinstance(sentences, WorkerLostError):
                    lost.append(self._culprit(sentences, number))
                    continue
                key = self.in_progress.pop(number)
                self.done.add(key, sentences)
                for file in self.waiting.pop(key):
                    file.missing.discard(key)
                    if not file.missing:
                        self._complete(file)
                yield from itertools.repeat(None, self.survey.sentences[key])
        if lost:
            others = f" (and {len(lost) - 1:,} more)" if len(lost) > 1 else ""
            raise CadecError(
                f"{lost[0].marked_message}{others}",
                f"{lost[0].marked_hint}; everything else is done, and {option('resume')} tries this again",
            )
        if self.waiting or next(documents, None) is not None:
            raise RuntimeError("a pool has left documents undone")

    @contextlib.contextmanager
    def _name_culprits(self) -> Iterator[None]:
        """Name the document in errors about lost workers: the pool knows only its number."""
        try:
            yield
        except WorkerLostError as error:
            if error.number is None:
                raise
            raise self._culprit(error, error.number) from None

    def _culprit(self, error: WorkerLostError, number: int) -> CadecError:
        key = self.in_progress[number]
        opened = self.waiting[key][0]
        path = self.translation.plan.paths[opened.number]
        which = f"document {opened.keys.index(key) + 1} of the input of {path}"
        return CadecError(f"{which}: {error.marked_message}", error.marked_hint)

    def _documents(self) -> Iterator[DocumentTask]:
        """The documents to translate, file by file; a document that occurs twice is translated once."""
        handed_out = itertools.count()
        for number in self.survey.order:
            opened = self._open(number)
            if not opened.missing:
                self._complete(opened)
                continue
            new = opened.new_documents(self.waiting)
            for key in opened.missing:
                self.waiting.setdefault(key, []).append(opened)
            for key, document in new:
                self.in_progress[next(handed_out)] = key
                yield document

    def _open(self, number: int) -> _OpenFile:
        """Read a file again; a CadecError if it has changed since the survey."""
        source = self.translation.source_of(number)  # first: a later change then does not match the record
        file = self.translation.read(number)
        keys = self.translation.keys_of(file)
        if _digest_of(keys) != self.survey.digests[number]:
            raise CadecError(
                f"the input of {self.translation.plan.paths[number]} has changed in the meantime",
                f"run the same command with {option('resume')} to translate it as it is now",
            )
        missing = {key for key in keys if key not in self.done}
        names = self.translation.names(file.documents) if missing else None
        return _OpenFile(number, file, keys, source, missing, names)

    def _complete(self, opened: _OpenFile) -> None:
        """Write a file whose documents are all done, and report it."""
        outputs, content = self._content(opened)
        digest = self.translation.write(opened.number, content, self.done)
        if self.translation.finished is not None:
            self.completed.append(self.translation.finished_file(opened.number, digest, opened.source))
        self.written(opened.number, opened.file, list(map(text_of, outputs.values())))
        if self.flagged is not None:
            self.flagged(opened.number, list(flagged_sentences(outputs, opened.file.documents)))

    def _content(self, opened: _OpenFile) -> tuple[dict[tuple[int, int], Any], bytes]:
        """The records of a file's sentences, and the content of the output."""
        with_beside = self.translation.side_output is not None
        outputs = {
            (number, sentence): _in_document(done[0] if with_beside else done, number)
            for number, (key, document) in enumerate(opened.documents)
            for sentence, done in enumerate(self.done.sentences(key, len(document)))
        }
        pieces = output_pieces(opened.file, list(outputs.values()), json_lines=self.translation.json_lines)
        return outputs, b"".join(pieces)

    def segment_records(self) -> Iterator[SegmentRecord]:
        """The side output's records of all sentences, in the order of the files."""
        for number in range(len(self.translation.plan.paths)):
            opened = self._open(number)
            for position, (key, document) in enumerate(opened.documents):
                yield from self._document_records(number, position, key, document)

    def _document_records(
        self, number: int, position: int, key: str, document: Document
    ) -> Iterator[SegmentRecord]:
        for sentence, (_, made) in enumerate(self.done.sentences(key, len(document))):
            yield SegmentRecord(number, position, sentence, document.sentences[sentence].place, made)


def _in_document(output: Any, number: int) -> Any:
    """A sentence's record with the number of its document, which only the file determines."""
    return [{**record, "document": number} for record in output] if isinstance(output, list) else output


def _sentences_done(done: DoneDocuments, survey: Survey) -> int:
    return sum(count for key, count in survey.sentences.items() if key in done)


def _digest_of(keys: Sequence[str]) -> bytes:
    return hashlib.sha256("".join(keys).encode()).digest()


def _relative(path: Path, record: Path) -> str:
    """A file's path relative to its record, so that both may be moved together."""
    return os.path.relpath(resolve_path(path), resolve_path(record).parent)


def _digest(path: Path) -> str:
    """The checksum of a file; empty if there is no regular file."""
    return sha256(path) if path.is_file() else ""
