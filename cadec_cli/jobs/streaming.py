"""Translates text as it arrives, from a pipe or a terminal: complete sentences do not wait for more input.

Everything available at a time is translated in step, like the documents of a file. A document may arrive in
several parts; each continues where the last one stopped. Knows nothing of pipes and terminals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from cadec_cli.decoding.confidence import FLAG_BELOW, Judge
from cadec_cli.decoding.state import DocumentState, PartialPath, State
from cadec_cli.decoding.translation import Translation
from cadec_cli.decoding.translator import Translator
from cadec_cli.jobs.in_step import SideOutput, Track, Written, attach, document_by_document, no_progress
from cadec_cli.method.context import Context
from cadec_cli.text.documents import Sentence
from cadec_cli.text.formats import TextFile
from cadec_cli.text.formats.stream import StreamedText


@dataclass(eq=False)
class _OpenDocument:
    """A document that is still arriving: the state of its translation, and the new sentences."""

    number: int
    state: DocumentState
    done: int = 0
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
                        current = _OpenDocument(begun, DocumentState([PartialPath(context=context)]))
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
        made = self.translator.translate_documents([document.came for document in documents], start=state)
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
            document.came = []
