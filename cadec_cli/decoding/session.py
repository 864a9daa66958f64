"""A session: documents that grow sentence by sentence, with what was chosen, picked and corrected.

What a person decides becomes context: a sentence is always translated after the target sentences as they
stand. Knows nothing of terminals, commands and files.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from cadec_cli.decoding.explaining import Explained, Explanation, explain
from cadec_cli.decoding.state import part_json
from cadec_cli.decoding.translations import TranslatedPart
from cadec_cli.decoding.translator import Translator
from cadec_cli.engines.protocols import Models
from cadec_cli.errors import CadecError
from cadec_cli.method.context import Context, room
from cadec_cli.method.hypotheses import Hypothesis, Ids, NBest
from cadec_cli.method.options import TranslationOptions
from cadec_cli.method.searches import search_kind
from cadec_cli.text.sentences import split_sentences


@dataclass(frozen=True)
class Direction:
    """From which language to which, by which models: two with the same identity say the same."""

    source: str = ""
    target: str = ""
    identity: str = ""


@dataclass(frozen=True)
class Entry:
    """A sentence of a document and its translation as it stands.

    `parts` is what the models said, one but for over-long sentences, none where only the text is known.
    `context_ids` is the translation as context, and `read` the context that its last part was chosen in, or
    would have been, had the S-NMT not decided alone; both in the D-LM's ids.
    """

    source: str
    parts: tuple[TranslatedPart, ...]
    context_ids: tuple[Ids, ...]
    read: tuple[Ids, ...]
    options: TranslationOptions
    edited: str | None = None

    @property
    def text(self) -> str:
        """The translation: a person's own words go before the models'."""
        return self.edited if self.edited is not None else " ".join(part.text for part in self.parts)

    @property
    def last_part(self) -> TranslatedPart:
        """The part whose hypotheses can be ranked and picked; it has a choice."""
        if not self.parts:
            raise CadecError("only the text of this translation is known, not its hypotheses")
        if self.parts[-1].choice is None:
            raise CadecError("there was nothing to translate in this sentence")
        return self.parts[-1]

    @cached_property
    def json(self) -> str:
        """The entry as JSON, made once: a session is saved at every change, and may be long."""
        data = {
            "source": self.source,
            "target": self.text,
            "edited": self.edited is not None,
            "context_ids": self.context_ids,
            "read": self.read,
            "options": dataclasses.asdict(self.options),
            "parts": [part_json(part) for part in self.parts],
        }
        return json.dumps(data, ensure_ascii=False)


class Session:
    """Models at work on documents; the last one is the current."""

    def __init__(
        self,
        models: Models,
        options: TranslationOptions,
        *,
        direction: Direction | None = None,
        documents: Sequence[Sequence[Entry]] = (),
    ) -> None:
        self.models = models
        self.options = options
        self.direction = direction or Direction()
        self.documents = [list(document) for document in documents] or [[]]
        self._translator = self._translating(options)

    @property
    def current(self) -> list[Entry]:
        """The sentences of the current document."""
        return self.documents[-1]

    @property
    def last(self) -> Entry:
        """The newest sentence of the current document."""
        if not self.current:
            raise CadecError("there is no sentence yet in this document")
        return self.current[-1]

    @property
    def in_use(self) -> Context:
        """What the D-LM will read before the next sentence."""
        if not search_kind(self.options.search).reads_context:
            return Context()
        return self._read(context_after(self.current, self.options), 1, self.options)

    def configure(self, options: TranslationOptions) -> None:
        """Translate with other options from now on; those that can't be used change nothing."""
        if options != self.options:
            self._translator = self._translating(options)
            self.options = options

    def _translating(self, options: TranslationOptions) -> Translator:
        return Translator(self.models, options, language=self.direction.source)

    def sentences(self, line: str) -> list[str]:
        """The sentences of a line; what no encoding can write is replaced."""
        clean = line.encode("utf-8", "replace").decode("utf-8")
        return split_sentences(clean, self.direction.source)

    def translate(self, sentences: Sequence[str]) -> Iterator[Entry]:
        """Go on with the current document; each sentence is part of it when it is yielded."""
        current = self.current
        before = context_after(current, self.options)
        sources = [part.source for entry in current for part in entry.parts]
        for translation in self._translator.translate_documents(
            [sentences], contexts=[before], before=[sources]
        ):
            entry = self._entry(translation.source, translation.parts, current, self.options)
            current.append(entry)
            yield entry

    def pick(self, rank: int) -> Entry:
        """Take another hypothesis of the newest sentence: the first is the one with the best score.

        Of an over-long sentence the last part is meant.
        """
        entry = self.last
        part = entry.last_part
        assert part.choice is not None
        order = part.choice.ranking
        if not 1 <= rank <= len(order):
            raise CadecError(
                f"there is no hypothesis {rank}", f"there are 1 to {len(order)}; /nbest shows them"
            )
        choice = dataclasses.replace(part.choice, index=order[rank - 1])
        parts = (*entry.parts[:-1], dataclasses.replace(part, choice=choice))
        self.current[-1] = self._entry(entry.source, parts, self.current[:-1], entry.options)
        return self.current[-1]

    def edit(self, text: str) -> Entry:
        """Put a person's own words in the place of the newest translation."""
        entry = self.last
        text = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
        ids = self._encoded(text)
        if not text or (self.models.language is not None and not ids):
            raise CadecError("a translation can't be empty", "/undo removes the sentence")
        before = context_after(self.current[:-1], entry.options)
        read = self._read(before, max(map(len, ids), default=1), entry.options).sentences
        self.current[-1] = dataclasses.replace(entry, edited=text, context_ids=ids, read=read)
        return self.current[-1]

    def undo(self) -> Entry | None:
        """Remove the newest sentence; from an empty document, go back to the one before."""
        if self.current:
            return self.current.pop()
        if len(self.documents) == 1:
            raise CadecError("there is nothing to undo")
        self.documents.pop()
        return None

    def new(self) -> None:
        """Begin a new document, unless the current one is still empty."""
        if self.current:
            self.documents.append([])

    def sentence_level(self, entry: Entry) -> list[NBest]:
        """What the S-NMT alone says of each part, best first; empty where there is nothing to translate."""
        return self._translator.sentence_level(entry.parts, entry.options)

    def explain(self) -> Explanation:
        """What the context does to the newest translation and to the sentence level's, token by token.

        Of an over-long sentence that nobody edited, the last part.
        """
        entry = self.last
        if not entry.context_ids:
            if self.models.language is None:
                return explain(None, (), Context(), entry.options.reading)
            raise CadecError("there was nothing to translate in this sentence")
        rows = self._to_explain(entry)
        return explain(self.models.language, rows, Context(entry.read), entry.options.reading)

    def _to_explain(self, entry: Entry) -> list[Explained]:
        alone = self.sentence_level(entry)
        if entry.edited is not None:
            text = entry.edited
            rows = [Explained("edited", NBest(entry.source, (Hypothesis(text, 0.0),)), None)]
            alone = alone if len(alone) == 1 else []  # an edit is of the whole, not of a part
        else:
            part = entry.last_part
            assert part.choice is not None
            text = part.text
            rows = [Explained.of("chosen", part, part.choice.index)]
        if alone and alone[-1].hypotheses and alone[-1].hypotheses[0].text != text:
            rows.append(Explained.of("sentence level", TranslatedPart(alone[-1], None), 0))
        return rows

    def _entry(
        self,
        source: str,
        parts: Sequence[TranslatedPart],
        before: Sequence[Entry],
        options: TranslationOptions,
    ) -> Entry:
        language = self.models.language
        context = context_after(before, options)
        context_ids: list[Ids] = []
        read: tuple[Ids, ...] = ()
        for part in parts:
            if part.choice is None or language is None:
                continue
            ids = part.nbest.ids_for(language.text)
            context_ids.append(ids[part.choice.index])
            read = part.choice.context
            if not options.maximised.uses_lm:
                # The S-NMT decided alone. Whoever asks why sees what stood before, and a window rolls on.
                seen = self._read(context, max(map(len, ids)), options)
                read = seen.sentences
                context = (seen if options.policy.rolling else context).followed_by(context_ids[-1])
        return Entry(source, tuple(parts), tuple(context_ids), read, options)

    def _encoded(self, text: str) -> tuple[Ids, ...]:
        language = self.models.language
        ids = tuple(language.text.encode(text)) if language is not None else ()
        return (ids,) if ids else ()

    def _read(self, before: Context, longest: int, options: TranslationOptions) -> Context:
        """What the D-LM reads of a context before something of that length."""
        language = self.models.language
        if language is None:
            return Context()
        return options.policy.read(before, room(language.positions, longest)).forgotten()


def context_after(entries: Sequence[Entry], options: TranslationOptions) -> Context:
    """The context after some entries: if it rolls, since the window began, else all of it."""
    if not options.policy.rolling:
        return Context(tuple(ids for entry in entries for ids in entry.context_ids))
    newest = next((entry for entry in reversed(entries) if entry.context_ids), None)
    return Context((*newest.read, newest.context_ids[-1]) if newest is not None else ())
