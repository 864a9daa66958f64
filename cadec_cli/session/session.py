"""A session: documents that grow sentence by sentence, with the choices and corrections of a person.

A sentence is always translated in the context of the current translations, corrected or not. This module
knows nothing of terminals, commands and files. `cadec_cli.Session` is its public interface.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cadec_cli.decoding.confidence import Judge
from cadec_cli.decoding.explain import ExplainedText, Explanation, explain
from cadec_cli.decoding.glossary.document_names import learn
from cadec_cli.decoding.preceding_context import context_policy
from cadec_cli.decoding.protection.defects import glossary_of
from cadec_cli.decoding.scorer import read_context
from cadec_cli.decoding.state import part_json
from cadec_cli.decoding.translation import TranslatedPart
from cadec_cli.decoding.translator import Translator, unit_of
from cadec_cli.engines.protocols import Models
from cadec_cli.errors import CadecError
from cadec_cli.jobs.found_names import NameUse, name_uses
from cadec_cli.method.context import SENTENCES_WITH_LISTS, Context, ContextPolicy, Pair, room
from cadec_cli.method.hypotheses import Hypothesis, Ids, NBest
from cadec_cli.method.objectives import PAIRS
from cadec_cli.method.options import TranslationOptions, options_record
from cadec_cli.method.retrieval import NOTHING, EarlierSentences
from cadec_cli.method.searches import LISTS, PASSAGES, search_kind
from cadec_cli.text.documents import Document, Sentence
from cadec_cli.text.languages import iso_code
from cadec_cli.text.name_memory import NameMemory
from cadec_cli.text.protected.core import Core
from cadec_cli.text.sentences import split_sentences


@dataclass(frozen=True)
class Direction:
    """The languages, as a person or a bundle names them, and the identity of the models.

    Models with the same identity give the same translations.
    """

    source: str = ""
    target: str = ""
    identity: str = ""


@dataclass(frozen=True)
class Entry:
    """A sentence of a document and its current translation.

    `parts` is the models' output: one part, several for an over-long sentence, none if only the text is
    known. `context_ids` is the translation as context; `read` is the context of its last part, even if the
    S-NMT decided without it. Both are in the D-LM's ids, and the first `pinned` sentences of `read` are a
    seed; if the D-LM read pairs, `sources` are their sources. `picked` and `edited` are a person's decisions.
    `speakers` is True in subtitles.
    """

    source: str
    parts: tuple[TranslatedPart, ...]
    context_ids: tuple[Ids, ...]
    read: tuple[Ids, ...]
    options: TranslationOptions
    edited: str | None = None
    pinned: int = 0
    picked: bool = False
    speakers: bool = False
    sources: tuple[str, ...] = ()

    @property
    def is_user_choice(self) -> bool:
        """Tell whether a person chose the translation."""
        return self.picked or self.edited is not None

    @property
    def text(self) -> str:
        """The translation: the person's text if it was edited, else the models'."""
        return self.edited if self.edited is not None else " ".join(part.text for part in self.parts)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """The sentence as context for terms that read both languages: a pair for every part.

        What a person has decided is certain, so that its pair has no list.
        """
        if self.edited is not None or not self.parts:
            return (Pair(self.source, self.text),)
        return tuple(
            Pair(
                part.source if part.unit is None else part.unit.text_read,
                part.chosen_hypothesis.text,
                None if self.picked else part.nbest,
            )
            for part in self.parts
            if part.chosen_hypothesis is not None
        )

    @property
    def last_part(self) -> TranslatedPart:
        """The last part, whose hypotheses can be picked; a CadecError if it has none."""
        if not self.parts:
            raise CadecError("only the text of this translation is known, not its hypotheses")
        if self.parts[-1].choice is None:
            raise CadecError("there was nothing to translate in this sentence")
        return self.parts[-1]

    @property
    def data(self) -> dict[str, Any]:
        """The entry as plain data."""
        return {
            "source": self.source,
            "target": self.text,
            "edited": self.edited is not None,
            "context_ids": self.context_ids,
            "read": self.read,
            "pinned": self.pinned,
            "picked": self.picked,
            "speakers": self.speakers,
            "options": options_record(self.options),
            "parts": [part_json(part) for part in self.parts],
            **({"sources": self.sources} if self.sources else {}),
        }


@dataclass(frozen=True)
class Change:
    """A sentence, counted from 1, whose translation changed when it was chosen again."""

    number: int
    before: Entry
    after: Entry


class Session:
    """Models and documents; the last document is the current one. Its sentences are counted from 1.

    `after` is the text before the first document, as sentences of the target language.
    """

    def __init__(
        self,
        models: Models,
        options: TranslationOptions,
        *,
        direction: Direction | None = None,
        documents: Sequence[Sequence[Entry]] = (),
        after: Sequence[str] = (),
    ) -> None:
        self.models = models
        self.options = options
        self.direction = direction or Direction()
        self.language = iso_code(self.direction.source) if self.direction.source else ""
        self._translator = self._translating(options)
        # By formality, what the text is about, and memory: what is encoded and read once.
        self._policies: dict[tuple[str, str, Sequence[str]], ContextPolicy] = {}
        self._known: tuple[list[Entry], NameMemory] = [], self._translator.new_names()
        self.changed: int | None = None  # the sentence of the current document that a person changed last
        self.begin(documents, after)

    def begin(self, documents: Sequence[Sequence[Entry]], after: Sequence[str] = ()) -> None:
        """Replace the documents, and the text before the first one, as far as the D-LM can read it."""
        self.documents = [[*map(self._with_units, document)] for document in documents] or [[]]
        self.changed = None
        self._remembered: tuple[Sequence[Entry], EarlierSentences] = ((), NOTHING)
        encoded = [(text, ids) for text in after for ids in self._encode(text)]
        if self.models.reader is not None:
            fitting = Context(tuple(ids for _, ids in encoded)).truncate(self.models.reader.positions)
            encoded = encoded[len(encoded) - len(fitting.sentences) :]
        self.after = tuple(text for text, _ in encoded)
        pairs = tuple(Pair("", text) for text in self.after)
        self._after = Context(tuple(ids for _, ids in encoded), pairs=pairs)

    def _with_units(self, entry: Entry) -> Entry:
        """Return an entry that may be from a file with the units that its parts translate."""
        same = entry.options.glossary == self.options.glossary  # an earlier one may be gone
        glossary = glossary_of(self.options, self.language) if same else None
        parts = (
            dataclasses.replace(part, unit=unit_of(part, entry.options, self.language, glossary))
            for part in entry.parts
        )
        return dataclasses.replace(entry, parts=tuple(parts))

    @property
    def current(self) -> list[Entry]:
        """The sentences of the current document."""
        return self.documents[-1]

    @property
    def last(self) -> Entry:
        """The newest sentence of the current document."""
        return self.sentence()

    @property
    def in_use(self) -> Context:
        """The context that the D-LM will read before the next sentence."""
        if not search_kind(self.options.search).reads_context:
            return Context()
        return self._read(self._before(None), 1, self.options)

    @property
    def judge(self) -> Judge:
        """The judge of translations with the current options."""
        return self._translator.judge()

    def sentence(self, number: int | None = None) -> Entry:
        """Return a sentence of the current document; without a number, the newest."""
        return self.current[self._place(number)]

    def configure(self, options: TranslationOptions) -> None:
        """Translate with other options from now on; if they can't be used, the old ones stay."""
        if options != self.options:
            self._translator = self._translating(options)
            self.options = options

    def _translating(self, options: TranslationOptions) -> Translator:
        target = iso_code(self.direction.target) if self.direction.target else ""
        return Translator(self.models, options, language=self.language, target_language=target)

    def sentences(self, line: str) -> list[str]:
        """Split a line into sentences; characters that UTF-8 can't encode are replaced."""
        clean = line.encode("utf-8", "replace").decode("utf-8")
        return split_sentences(clean, self.language)

    def translate(
        self, sentences: Sequence[str | Sentence], *, speakers: bool | None = None
    ) -> Iterator[Entry]:
        """Continue the current document; each sentence is added to it before it is yielded.

        `speakers` tells whether they come from subtitles; None means the same as the sentence before them.
        """
        current = self.current
        if speakers is None:
            speakers = bool(current) and current[-1].speakers
        before = self._before(None)
        sources = [part.source for entry in current for part in entry.parts]
        document = Document.of(sentences, speakers=speakers)
        names = self.names()
        self._known = [], self._translator.new_names()  # of no use if this is interrupted
        for translation in self._translator.translate_documents(
            [document], contexts=[before], before=[sources], growing=[names]
        ):
            entry = self._entry(
                translation.source, translation.parts, self._before(None), self.options, speakers
            )
            current.append(entry)
            yield entry
        if self.options.finds_names:
            self._known = self._entries_before(None), names

    def names(self, number: int | None = None) -> NameMemory:
        """Return what the sentences up to a number tell of names, or all of them, and a person's decisions.

        Names are those of all documents; the numbers are those of the current one.
        """
        if not self.options.finds_names:
            return self._translator.new_names()
        entries = self._entries_before(number)
        known, memory = self._known
        if len(known) > len(entries) or any(
            one is not other for one, other in zip(known, entries, strict=False)
        ):
            known, memory = [], self._translator.new_names()
        for entry in entries[len(known) :]:
            learn_entry(memory, entry)
        self._known = entries, memory
        return memory

    def name_uses(self) -> list[NameUse]:
        """Return the names of all documents, what they are called, and which sentences differ.

        What is known of a name now counts for the sentences before, too.
        """
        memory = self.names()
        records = []
        for document, entries in enumerate(self.documents, 1):
            of_document = f" of document {document}" if len(self.documents) > 1 else ""
            for number, entry in enumerate(entries, 1):
                found = [
                    (mention.entry.source, mention.entry.targets, mention.rendering(entry.text))
                    for core in _cores(entry)
                    for mention in core.with_names(memory.glossary(core.text)).names
                ]
                records.append((f"sentence {number}{of_document}", found))
        return name_uses(records)

    def _entries_before(self, number: int | None) -> list[Entry]:
        return [entry for document in self.documents[:-1] for entry in document] + self.current[:number]

    def pick(self, rank: int, number: int | None = None) -> Entry:
        """Take the hypothesis of a rank, 1 for the best score; without a number, of the newest sentence.

        Of an over-long sentence, only the last part changes.
        """
        place = self._place(number)
        entry = self.current[place]
        part = entry.last_part
        assert part.choice is not None
        order = part.choice.ranking
        if not 1 <= rank <= len(order):
            raise CadecError(
                f"there is no hypothesis {rank}", f"there are 1 to {len(order)}; /nbest shows them"
            )
        parts = (*entry.parts[:-1], self._translator.with_hypothesis(part, order[rank - 1]))
        before = self._before(place, entry.options)
        picked = self._entry(entry.source, parts, before, entry.options, entry.speakers)
        return self._replace(place, dataclasses.replace(picked, picked=True))

    def edit(self, text: str, number: int | None = None) -> Entry:
        """Replace a translation by a person's own text; without a number, the newest one."""
        place = self._place(number)
        text = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
        ids = self._encode(text)
        if not text or (self.models.reader is not None and not ids):
            raise CadecError("a translation can't be empty", "undo removes the sentence")
        entry = dataclasses.replace(self.current[place], edited=text, context_ids=ids, picked=False)
        return self._replace(place, self._reread(entry, place))

    def redo(self, number: int) -> list[Change]:
        """Choose the translations after a sentence again (0: all of them), in order, from the same lists.

        The current options are used; a person's decisions stay. After an error nothing has changed. Returns
        the translations that changed.
        """
        if not 0 <= number <= len(self.current):
            raise CadecError(f"there is no sentence {number}", f"there are 1 to {len(self.current)}")
        kept = list(self.current)
        changes = []
        try:
            names = self.names(number)
            self._known = [], self._translator.new_names()
            for entry in kept[number:]:
                if entry.is_user_choice and self.options.finds_names:
                    learn_entry(names, entry)  # which counts for the sentences before it, too
            for place in range(number, len(kept)):
                self.current[place] = self._retranslate(place, names)
                if self.current[place].text != kept[place].text:
                    changes.append(Change(place + 1, kept[place], self.current[place]))
        except BaseException:
            self.current[:] = kept
            raise
        self.changed = None
        return changes

    def _retranslate(self, place: int, names: NameMemory) -> Entry:
        """Choose a translation again in the current context; a person's decision stays.

        `names` is what is known of names before this sentence, and what a person decided; it grows by it.
        """
        entry, options = self.current[place], self.options
        if entry.edited is not None:
            return self._reread(entry, place)
        before = self._before(place)
        needs = search_kind(options.search).needs
        # else the S-NMT read another text, or its lists lack candidates
        alike = _lists_like(options) == _lists_like(entry.options)
        if alike and needs == LISTS == search_kind(entry.options.search).needs:
            if self.options.finds_names and not entry.picked:
                learn_entry(names, entry)
            parts = self._translator.rechoose(entry.parts, before, None if entry.picked else names)
            if entry.picked:
                parts = [*map(self._with_choice_of, parts, entry.parts)]
            chosen = self._entry(entry.source, parts, before, options, entry.speakers)
            return dataclasses.replace(chosen, picked=entry.picked)
        if entry.picked or needs == PASSAGES:  # picked from other hypotheses, or depends on the source alone
            return entry
        document = Document.of([entry.source], speakers=entry.speakers)
        sources = [part.source for earlier in self.current[:place] for part in earlier.parts]
        (again,) = self._translator.translate_documents(
            [document], contexts=[before], before=[sources], growing=[names]
        )
        return self._entry(entry.source, again.parts, before, options, entry.speakers)

    def _with_choice_of(self, part: TranslatedPart, other: TranslatedPart) -> TranslatedPart:
        """Return a part with the hypothesis chosen in `other`, the same part in another context."""
        if part.choice is None or other.choice is None:
            return part
        if other.choice.index >= len(part.hypotheses):  # the new list is shorter
            return other
        return self._translator.with_hypothesis(part, other.choice.index)

    def _place(self, number: int | None) -> int:
        """Return the index of a sentence in the current document; without a number, of the newest."""
        count = len(self.current)
        if not count:
            raise CadecError("there is no sentence yet in this document")
        if number is not None and not 1 <= number <= count:
            raise CadecError(f"there is no sentence {number}", f"there are 1 to {count}; /context shows them")
        return (number or count) - 1

    def _replace(self, place: int, entry: Entry) -> Entry:
        self.current[place] = entry
        self.changed = place + 1
        return entry

    def _reread(self, entry: Entry, place: int) -> Entry:
        """Return an entry with its current context."""
        longest = max(map(len, entry.context_ids), default=1)
        seen = self._read(self._before(place, entry.options), longest, entry.options, entry.source)
        sources: tuple[str, ...] = ()
        if PAIRS in entry.options.weighted_objective.readings and self.models.reader is not None:
            sources = self._policy(entry.options).sources(seen)
        return dataclasses.replace(entry, read=seen.sentences, pinned=seen.pinned, sources=sources)

    def _before(self, place: int | None, options: TranslationOptions | None = None) -> Context:
        """Return the context before a sentence of the current document; without a place, before the next."""
        start = self._after if len(self.documents) == 1 else Context()
        options = options or self.options
        entries = self.current[:place]
        if not options.policy.retrieve or options.policy.rolling:
            return context_after(entries, options, start)
        split, window = len(entries), max(options.context, 1)
        while split and window > 0:
            split -= 1
            window -= len(entries[split].context_ids)
        if not split:
            return context_after(entries, options, start)
        last = context_after(entries[split:], options)
        # Terms read the texts of more sentences than the D-LM.
        first = split
        while first and sum(len(entry.pairs) for entry in entries[first:]) < SENTENCES_WITH_LISTS:
            first -= 1
        pairs = tuple(pair for entry in entries[first:] for pair in entry.pairs)
        return dataclasses.replace(last, pairs=pairs, earlier=self._remember(entries[:split]))

    def _remember(self, entries: Sequence[Entry]) -> EarlierSentences:
        """Return the index of the first sentences of a document; that of the last call is continued."""
        known, index = self._remembered
        kept = len(known) <= len(entries)
        if not kept or any(one is not other for one, other in zip(known, entries, strict=False)):
            known, index = (), NOTHING
        index = index.add(
            (pair.source, ids, "")
            for entry in entries[len(known) :]
            for pair, ids in zip(entry.pairs, entry.context_ids, strict=False)
        )
        self._remembered = entries, index
        return index

    def undo(self) -> Entry | None:
        """Remove the newest sentence, or an empty document; returns the sentence."""
        self.changed = None
        if self.current:
            return self.current.pop()
        if len(self.documents) == 1:
            raise CadecError("there is nothing to undo")
        self.documents.pop()
        return None

    def new(self) -> None:
        """Begin a new document, unless the current one is empty."""
        if self.current:
            self.documents.append([])
            self.changed = None

    def sentence_level(self, entry: Entry) -> list[NBest]:
        """Return the sentence-level n-best list of each part; empty if there is nothing to translate."""
        return self._translator.sentence_level(entry.parts, entry.options)

    def explain(self) -> Explanation:
        """Explain the context's effect on the newest translation and the sentence level's, token by token.

        Of an over-long sentence that was not edited, only the last part is explained.
        """
        entry = self.last
        if not entry.context_ids:
            if self.models.reader is None:
                return explain(None, (), Context(), entry.options.scoring_options)
            raise CadecError("there was nothing to translate in this sentence")
        rows = self._to_explain(entry)
        read = Context(entry.read, pinned=entry.pinned)
        edited = entry.edited is not None or not entry.parts
        source = entry.source if edited else self._translator.text_read(entry.parts[-1])
        readings = entry.options.weighted_objective.readings
        scoring_options = entry.options.scoring_options
        return explain(self.models.language, rows, read, scoring_options, readings, source, entry.sources)

    def _to_explain(self, entry: Entry) -> list[ExplainedText]:
        alone = self.sentence_level(entry)
        if entry.edited is not None:
            text = entry.edited
            rows = [ExplainedText("edited", NBest(entry.source, (Hypothesis(text, 0.0),)), None)]
            alone = alone if len(alone) == 1 else []  # an edit replaces the whole sentence
        else:
            part = entry.last_part
            assert part.choice is not None
            text = part.text
            rows = [ExplainedText.of("chosen", part, part.choice.index)]
        if alone and alone[-1].hypotheses and alone[-1].hypotheses[0].text != text:
            rows.append(ExplainedText.of("sentence level", TranslatedPart(alone[-1], None), 0))
        return rows

    def _entry(
        self,
        source: str,
        parts: Sequence[TranslatedPart],
        context: Context,
        options: TranslationOptions,
        speakers: bool,
    ) -> Entry:
        reader = self.models.reader
        context_ids: list[Ids] = []
        read: tuple[Ids, ...] = ()
        pinned = 0
        sources: tuple[str, ...] = ()
        for part in parts:
            if part.choice is None or reader is None:
                continue
            ids = part.nbest.ids_for(reader.text)
            context_ids.append(ids[part.choice.index])
            read, pinned, sources = part.choice.context, part.choice.pinned, part.choice.sources
            if not options.weighted_objective.uses_lm:
                # The S-NMT decided alone. Explanations still show the context, and a rolling window moves.
                seen = self._read(context, max(map(len, ids)), options)
                read = seen.sentences
                context = (seen if options.policy.rolling else context).followed_by(context_ids[-1])
        return Entry(
            source,
            tuple(parts),
            tuple(context_ids),
            read,
            options,
            pinned=pinned,
            speakers=speakers,
            sources=sources,
        )

    def _encode(self, text: str) -> tuple[Ids, ...]:
        reader = self.models.reader
        ids = tuple(reader.text.encode(text)) if reader is not None else ()
        return (ids,) if ids else ()

    def _read(self, before: Context, longest: int, options: TranslationOptions, source: str = "") -> Context:
        """Return the part of a context that the D-LM reads before a translation of `longest` tokens."""
        reader = self.models.reader
        if reader is None:
            return Context()
        policy = self._policy(options)
        fits = room(reader.positions, longest)
        if options.weighted_objective.readings == (PAIRS,) and self.models.language is not None:
            read = read_context(self.models.language, PAIRS, policy, before, fits, source)
            return policy.translations(before, read, source)
        return policy.read(before, fits, source).without_memory()

    def _policy(self, options: TranslationOptions) -> ContextPolicy:
        """Return the options' policy, with the seed and with the memory.

        The seed is encoded and the memory read once. A memory of earlier sentences may be gone.
        """
        if options.memory != self.options.memory:
            options = dataclasses.replace(options, memory=())
        key = options.formality, options.about, options.memory
        if key not in self._policies:
            self._policies[key] = context_policy(self.models, options)
        made = self._policies[key]
        return dataclasses.replace(
            options.policy,
            seed=made.seed,
            seed_sources=made.seed_sources,
            translation_memory=made.translation_memory,
        )


def _lists_like(options: TranslationOptions) -> tuple[object, ...]:
    """Return what lists depend on, beside the models: their hypotheses, and the candidates among them."""
    return options.protect, options.glossary, options.formality, options.cast


def learn_entry(memory: NameMemory, entry: Entry) -> None:
    """Let a memory of names learn from a sentence; what a person has decided is certain."""
    cores = _cores(entry)
    if entry.edited is not None:
        for core in cores:
            memory.read(core.text)
        memory.learn(" ".join(core.text for core in cores), [(entry.text, 1.0)], sure=True)
        return
    for part in entry.parts:
        assert part.unit is not None, "the parts of a session's sentences have units"
        core = part.unit.core
        chosen = part.chosen_hypothesis
        if entry.picked and chosen is not None:
            memory.read(core.text)
            memory.learn(core.text, [(chosen.text, 1.0)], sure=True)
        else:
            learn(memory, core, part.nbest)


def _cores(entry: Entry) -> list[Core]:
    """Return what was translated of a sentence; all of it if only the text is known."""
    cores = [part.unit.core for part in entry.parts if part.unit is not None] or [Core.whole(entry.source)]
    return [core for core in cores if not core.capitals]


def context_after(
    entries: Sequence[Entry], options: TranslationOptions, start: Context | None = None
) -> Context:
    """Return the context after entries, with `start` before them.

    A rolling window is as long as at the newest entry, and has the current translations.
    """
    start = start or Context()
    everything = (*start.sentences, *(ids for entry in entries for ids in entry.context_ids))
    pairs = (*start.pairs, *(pair for entry in entries for pair in entry.pairs))
    newest = next((entry for entry in reversed(entries) if entry.context_ids), None)
    if options.policy.rolling and newest is not None:
        everything = everything[-(len(newest.read) - newest.pinned + 1) :]
    return Context(everything, pairs=pairs)
