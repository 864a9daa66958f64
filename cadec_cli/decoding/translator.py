"""Documents to translations: n-best lists in large batches, then a choice per sentence, in context.

`Translator` makes lists and chooses from them; `choose` only chooses. Documents run in step: sentence i of
every document at once. A translation is yielded as soon as it is chosen, so only the unsettled end of each
document stays in memory.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Protocol

from cadec_cli.decoding.confidence import FLAG_BELOW, Judge
from cadec_cli.decoding.explain import ExplainedText, ExplainedTranslation, Explanation, explain
from cadec_cli.decoding.glossary.candidates import TermCandidates
from cadec_cli.decoding.glossary.document_names import DocumentNames, Surveys, name_given, name_unit
from cadec_cli.decoding.glossary.name_candidates import NameCandidates
from cadec_cli.decoding.manner.candidates import MannerCandidates
from cadec_cli.decoding.protection.defects import (
    defects,
    glossary_of,
    judge_for,
    least_defective,
    with_counted_terms,
    with_defects,
    with_names,
    with_terms,
)
from cadec_cli.decoding.protection.model import protect
from cadec_cli.decoding.protection.tag_placement import place_tags
from cadec_cli.decoding.search import Search, build
from cadec_cli.decoding.search.passages import PassageSearch
from cadec_cli.decoding.state import DocumentState, State
from cadec_cli.decoding.translation import Choice, TranslatedPart, Translation, join_first_hypotheses
from cadec_cli.decoding.units import WAVE, Splitter, Unit, Wave, batches, map_batch, waves
from cadec_cli.engines.protocols import AnyTerm, Models, Paced, Passage, SideBySide, TranslationModel
from cadec_cli.errors import UsageError, option
from cadec_cli.method.context import Context, Pair
from cadec_cli.method.hypotheses import Hypothesis, NBest
from cadec_cli.method.options import TranslationOptions
from cadec_cli.method.searches import LISTS, search_kind
from cadec_cli.text.address import ADDRESS_LANGUAGES
from cadec_cli.text.cast import Conversation, read_cast
from cadec_cli.text.documents import Document, Sentence
from cadec_cli.text.glossary.entries import Glossary
from cadec_cli.text.manner import FORMS, Manner
from cadec_cli.text.name_memory import NameMemory, NameSample
from cadec_cli.text.protected.core import Core, core_between
from cadec_cli.text.punctuation import restore_marks
from cadec_cli.text.sentences import base_language
from cadec_cli.text.token_text import TokenText

# Turns the units of some waves into the items that a search reads.
Preparation = Callable[[Sequence[Wave[Unit]]], Sequence[Wave[Any]]]
# (sentences of a batch that have their lists, sentences of the batch)
Listing = Callable[[int, int], None]
# Turns the choice for a unit, made for its core, into a part of the translation.
Finish = Callable[[Unit, TranslatedPart], TranslatedPart]


@dataclass(frozen=True)
class Listed:
    """The n-best list of a piece of a sentence, and its hypotheses as they would be written.

    A piece with nothing to translate has no hypotheses; its only text is the source.
    """

    nbest: NBest
    texts: tuple[str, ...]


class ListStore(Protocol):
    """Keeps n-best lists, so that a resumed translation need not make them again."""

    def recall(self, key: str) -> list[NBest] | None:
        """Return the lists that were kept with a key; None if there are none."""
        ...

    def keep(self, key: str, lists: list[NBest]) -> None:
        """Keep lists, which depend on nothing but the key, the models and the options."""
        ...


class Translator:
    """Models and options, ready to translate."""

    def __init__(
        self,
        models: Models,
        options: TranslationOptions | None = None,
        extra_terms: tuple[AnyTerm, ...] = (),
        *,
        language: str = "",
        target_language: str = "",
        listing: Listing = lambda done, total: None,
    ) -> None:
        """Load the models that the options need.

        The language is that of the source. If it is given, text in other scripts is copied unchanged. If that
        of the target is given, quotation marks are those of its language where the source has typographic
        ones.
        `listing` is called while the lists of the next sentences are made.
        """
        self.models = models
        self.options = options or TranslationOptions()
        self.language = language
        self._target_language = target_language if self.options.protect else ""
        self._glossary = glossary_of(self.options, language)
        begin = conversations(self.options, models.target_language)
        terms = with_counted_terms(extra_terms, self.options, manner=begin is not None)
        self.search = build(models, self.options, terms)
        self._from_lists = search_kind(self.options.search).needs == LISTS
        self._listing = listing
        self._surveys = Surveys()
        self._protected = protect(models.translation, language) if self.options.protect else None
        self._splitter = Splitter(
            self._fits,
            models.translation.split,
            language,
            protect=self.options.protect,
            cut=self.options.long != "refuse",
            glossary=self._glossary,
            conversation=begin,
        )

    def judge(self, below: float = FLAG_BELOW) -> Judge:
        """Return a judge of its translations, which flags confidences below a limit."""
        return judge_for(self.options, self.language, below)

    def translate(self, document: Document | Sequence[str | Sentence]) -> Iterator[Translation]:
        """Translate one document, given as a sequence of sentences; a bare string is a TypeError."""
        if isinstance(document, str):
            raise TypeError(
                f"translate() takes a sequence of sentences, not a string: translate([{document[:40]!r}])"
            )
        return self.translate_documents([document])

    def translate_documents(
        self,
        documents: Sequence[Document | Sequence[str | Sentence]],
        *,
        contexts: Sequence[Context] | None = None,
        before: Sequence[Sequence[str]] | None = None,
        start: State | None = None,
        checkpoint: Callable[[State], None] | None = None,
        store: ListStore | None = None,
        names: Sequence[NameSample] | None = None,
        growing: Sequence[NameMemory] | None = None,
    ) -> Iterator[Translation]:
        """Translate several documents in step; each one's sentences come in order.

        A document is a `Document` or a sequence of sentences. `contexts` has the context before each
        document, in the D-LM's ids; `before` has the source sentences before each, for models that read them
        and for a cast.
        `checkpoint` is called between waves with the state of the translation; passed as `start`, together
        with the same documents, that state resumes the translation exactly. `store` keeps the n-best lists of
        the sentences after that state.

        `names` has a sample of the text that each document is from, if it is not its own: one object for all
        documents of a text. `growing` has what is known of the names of documents of which these are only the
        next sentences; it grows by them.

        A string in the place of a document, or of all of them, is a TypeError: it would be translated letter
        by letter.
        """
        if isinstance(documents, str) or any(isinstance(document, str) for document in documents):
            raise TypeError(
                "translate_documents() takes a sequence of documents, each a sequence of sentences: "
                'translate_documents([["Who are you?", "I saw you."]])'
            )
        whole = [Document.of(document) for document in documents]
        earlier = before if before is not None else [()] * len(whole)
        units = [
            self._splitter.units(number, document, sources)
            for number, (document, sources) in enumerate(zip(whole, earlier, strict=True))
        ]
        state = start or State(0, {})
        found = self._names(whole, store, names, growing) if self.options.finds_names else None

        def finish(unit: Unit, part: TranslatedPart) -> TranslatedPart:
            unit = found.named(unit) if found is not None and not unit.source.given else unit
            return self._finish(unit, part, state.documents[unit.document])

        return _in_step(
            self.search,
            units,
            state,
            State.at_start(len(whole), contexts),
            wave=_wave_size(self.models, self.options),
            prepare=self._preparation(whole, units, before, store, found),
            finish=finish,
            checkpoint=checkpoint,
        )

    def new_names(self, sample: NameSample | None = None) -> NameMemory:
        """Return an empty memory for the names of a text; without a sample, of one that grows."""
        names = None if sample is None else sample.names
        return NameMemory(self.language, self.models.target_language, names)

    def _names(
        self,
        documents: Sequence[Document],
        store: ListStore | None,
        samples: Sequence[NameSample] | None,
        growing: Sequence[NameMemory] | None,
    ) -> DocumentNames:
        def cores(sample: NameSample) -> list[Core]:
            units = self._splitter.units(0, Document.of(sample.sentences, speakers=sample.speakers))
            return [unit.core for unit in units]

        if samples is None and growing is None:
            samples = [NameSample.of_documents([document], self.language) for document in documents]
        return DocumentNames(
            lambda cores: self._nbest_lists(cores, store),
            lambda core, nbest: _counted(core, nbest, self.options),
            self._name_candidates,
            cores,
            self.new_names,
            samples or (),
            growing,
            self._surveys,
        )

    @property
    def _name_candidates(self) -> NameCandidates:
        reader = self.models.reader
        return NameCandidates(
            self.models.translation,
            self.options.names_weight,
            self.models.target_language,
            reader.text if reader is not None else None,
        )

    def lists(self, sentences: Sequence[str]) -> list[list[Listed]]:
        """Return the n-best lists that sentences are chosen from, one per piece of each sentence."""
        units = self._splitter.units(0, Document.of(sentences))
        found: list[list[Listed]] = [[] for _ in sentences]
        for unit, nbest in zip(units, self._nbest([unit.core for unit in units]), strict=True):
            core = unit.core
            texts = tuple(
                core.before
                + place_tags(core, hypothesis.text, self.models.translation, self._target_language)
                + core.after
                for hypothesis in nbest.hypotheses
            )
            found[unit.number].append(Listed(nbest, texts or (unit.text,)))
        return found

    def rechoose(
        self, parts: Sequence[TranslatedPart], context: Context, names: NameMemory | None = None
    ) -> list[TranslatedPart]:
        """Choose again for the parts of one sentence, from the lists that they were chosen from.

        With `names`, candidates are made for names that the lists lack.
        """
        units = [self._unit_of(part) for part in parts]
        units = [replace(unit, core=replace(unit.core, names=())) for unit in units]
        lists = [self._shorten(unit, part.nbest) for unit, part in zip(units, parts, strict=True)]
        if names is not None and self.options.finds_names:
            units = [name_unit(unit, names) for unit in units]
            cores = [unit.core for unit in units]
            lists = self._name_candidates.complete(cores, lists, [names.found] * len(lists))
            lists = [
                with_names(unit.core, _counted(unit.core, nbest, self.options))
                for unit, nbest in zip(units, lists, strict=True)
            ]
        state = State(0, {})
        coming = iter(lists)
        found = _in_step(
            self.search,
            [[replace(unit, document=0) for unit in units]],
            state,
            State.at_start(1, [context]),
            prepare=lambda batch: map_batch(batch, lambda here: itertools.islice(coming, len(here))),
            finish=lambda unit, part: self._finish(unit, part, state.documents[0]),
        )
        return [part for one in found for part in one.parts]

    def with_hypothesis(self, part: TranslatedPart, index: int) -> TranslatedPart:
        """Return a part with another of its hypotheses chosen."""
        assert part.choice is not None
        other = replace(part, choice=replace(part.choice, index=index), placed=None)
        return _place_tags(other, self._unit_of(part).core, self.models.translation, self._target_language)

    def sentence_level(self, parts: Sequence[TranslatedPart], options: TranslationOptions) -> list[NBest]:
        """Return the S-NMT's own n-best lists for the parts of a sentence, translated with `options`."""
        if search_kind(options.search).needs == LISTS:
            return [part.nbest for part in parts]
        # The hypotheses of other searches were all made in context.
        cores = [self._unit_of(part).core for part in parts]
        return [
            replace(nbest, source=part.source, before=core.before, after=core.after)
            for part, core, nbest in zip(parts, cores, self._nbest(cores, options.beam), strict=True)
        ]

    def sentence_level_of(self, translation: Translation) -> str:
        """Return the S-NMT's own translation: the same text, tags included, if that was chosen."""
        if self._from_lists and not any(part.choice and part.choice.index for part in translation.parts):
            return translation.text
        lists = self.sentence_level(translation.parts, self.options)
        return join_first_hypotheses(map(self._with_marks, translation.parts, lists))

    def _with_marks(self, part: TranslatedPart, nbest: NBest) -> NBest:
        """Return a list whose first hypothesis has marks of the kind that the part's source has."""
        if not nbest.hypotheses or not self._target_language:
            return nbest
        first, *others = nbest.hypotheses
        text = restore_marks(self.text_read(part), first.text, self._target_language)
        return replace(nbest, hypotheses=(replace(first, text=text), *others))

    def explain(self, part: TranslatedPart) -> Explanation:
        """Explain the choice for a part token by token, compared with the first hypothesis."""
        if part.choice is None:
            return Explanation((), ())
        rows = [ExplainedText.of("chosen", part, part.choice.index)]
        if part.choice.index:
            rows.append(ExplainedText.of("first", part, 0))
        return explain(
            self.models.language,
            rows,
            part.choice.read,
            self.options.scoring_options,
            self.options.weighted_objective.readings,
            self.text_read(part),
            part.choice.sources,
        )

    def explain_translation(self, translation: Translation) -> ExplainedTranslation:
        """Explain a translation: beside the S-NMT's own and token by token, as far as the models allow."""
        alone = self.options.search == "sentence"
        has_pmi = self.options.weighted_objective.uses_lm and self.models.language is not None
        return ExplainedTranslation(
            translation,
            None if alone else self.sentence_level_of(translation),
            [self.explain(part) for part in translation.parts] if has_pmi else (),
        )

    def _nbest(self, cores: Sequence[Core], count: int | None = None) -> list[NBest]:
        """Make n-best lists, in one batch."""
        count = self.options.list_size if count is None else count
        if self._protected is not None:
            lists = self._protected.nbest(cores, count)
        else:
            lists = self.models.translation.nbest([core.text for core in cores], count)
        if self._glossary is not None:
            lists = self._with_terms(cores, lists)
        return self._with_manner(cores, lists) if any(core.manner for core in cores) else lists

    def _with_terms(self, cores: Sequence[Core], lists: Sequence[NBest]) -> list[NBest]:
        """Add candidates that respect the glossary where lists have none, and count terms and defects."""
        maker = TermCandidates(self.models.translation, self._list_text)
        completed = [
            maker.complete(core, nbest, self.options.glossary_weight)
            for core, nbest in zip(cores, lists, strict=True)
        ]
        return [_counted(core, nbest, self.options) for core, nbest in zip(cores, completed, strict=True)]

    def _with_manner(self, cores: Sequence[Core], lists: Sequence[NBest]) -> list[NBest]:
        """Add candidates said as is asked for where lists have none, and count terms and defects."""
        options = self.options
        maker = MannerCandidates(
            self.models.translation, self._list_text, options.manner_weight, options.glossary_weight
        )
        asked = [replace(nbest, manner=core.manner) for core, nbest in zip(cores, lists, strict=True)]
        completed = maker.complete(cores, asked)
        return [_counted(core, nbest, options) for core, nbest in zip(cores, completed, strict=True)]

    @property
    def _list_text(self) -> TokenText | None:
        """The vocabulary that candidates may need ids of, beside the translation model's."""
        return self.models.reader.text if self.models.reader is not None else None

    def _lists_of(
        self, units: Sequence[Unit], make: Callable[[Sequence[Unit]], list[NBest]]
    ) -> Iterator[NBest]:
        """Return what is chosen from, with the room of each unit; a translation that is given is alone."""
        made = iter(make([unit for unit in units if not unit.source.given]))
        for unit in units:
            nbest = _given_list(unit.source) if unit.source.given else next(made)
            yield nbest if unit.room is None else replace(nbest, room=unit.room)

    def _nbest_lists(self, cores: Sequence[Core], store: ListStore | None) -> list[NBest]:
        """Make n-best lists, as many at a time as the model takes, and report how many are made.

        Sentences of about one length are translated together, as engines batch them.
        """
        model = self.models.translation
        size = model.batch_size if isinstance(model, SideBySide) else WAVE
        order = sorted(range(len(cores)), key=lambda number: (len(cores[number].text), cores[number].text))
        made: dict[int, NBest] = {}
        for first in range(0, len(order), size):
            self._listing(first, len(order))
            here = order[first : first + size]
            made.update(zip(here, self._stored([cores[number] for number in here], store), strict=True))
        self._listing(len(order), len(order))
        return [made[number] for number in range(len(cores))]

    def _stored(self, cores: Sequence[Core], store: ListStore | None) -> list[NBest]:
        """Return the lists that the store has of these cores; if it has none, make them and store them."""
        if store is None:
            return self._nbest(cores)
        key = sha256(repr(cores).encode("utf-8", "surrogatepass")).hexdigest()
        lists = store.recall(key)
        if lists is None:
            lists = self._nbest(cores)
            store.keep(key, lists)
        return lists

    def text_read(self, part: TranslatedPart) -> str:
        """Return the source of a part as models read it, without what is put back around its translation."""
        return unit_of(part, self.options, self.language).text_read

    def _unit_of(self, part: TranslatedPart) -> Unit:
        return unit_of(part, self.options, self.language, self._glossary)

    def _shorten(self, unit: Unit, nbest: NBest) -> NBest:
        return _list_to_choose_from(unit, nbest, self.options)

    def _finish(self, unit: Unit, part: TranslatedPart, state: DocumentState) -> TranslatedPart:
        """Turn the translation of a unit's core into that of the unit."""
        if unit.source.given:
            return TranslatedPart(NBest(unit.text, ()), None, placed=unit.source.given, unit=unit)
        if part.choice is not None:
            if self._protected is not None and not self._from_lists:
                part = self._repair_broken(unit.core, part, state)
            nbest = replace(part.nbest, before=unit.core.before, after=unit.core.after)
            part = replace(part, nbest=nbest)
        return _finish(unit, part, self.models.translation, self._target_language)

    def _repair_broken(self, core: Core, part: TranslatedPart, state: DocumentState) -> TranslatedPart:
        """Replace a defective translation that was not chosen from a checked list by a better one, if any."""
        assert part.chosen_hypothesis is not None and part.choice is not None
        wrong = defects(core, part.chosen_hypothesis.text)
        if not wrong:
            return part
        own = least_defective(core, part.nbest)
        nbest, choice = part.nbest, replace(part.choice, index=own)
        if defects(core, nbest.hypotheses[own].text):
            other = self._nbest([core], self.options.beam)[0]
            index = least_defective(core, other) if other.hypotheses else 0
            if other.hypotheses and not defects(core, other.hypotheses[index].text):
                scores = tuple(one.log_prob for one in other.hypotheses)
                nbest, choice = other, replace(part.choice, index=index, scores=scores, terms={})
        if len(wrong) <= len(defects(core, nbest.hypotheses[choice.index].text)):
            return part
        self._replace_in_context(part, nbest, choice, state)
        return TranslatedPart(nbest, choice)

    def _replace_in_context(
        self, part: TranslatedPart, nbest: NBest, choice: Choice, state: DocumentState
    ) -> None:
        """Let the next sentences read the repaired translation instead of the broken one."""
        language = self.models.language if self.options.weighted_objective.uses_lm else None
        context = state.beam[0].context
        if language is None or not context.sentences or part.choice is None:
            return
        if context.sentences[-1] == part.nbest.ids_for(language.text)[part.choice.index]:
            instead = nbest.ids_for(language.text)[choice.index]
            state.beam[0].context = replace(
                context,
                sentences=(*context.sentences[:-1], instead),
                memory=None,
                remembered=0,
                pairs=(*context.pairs[:-1], Pair(nbest.source, nbest.hypotheses[choice.index].text)),
            )

    def _fits(self, sentence: str) -> bool:
        """Tell whether all models that read the source can read a sentence whole."""
        search = self.search
        # Stand-ins for long spans are short, but they are used only where lists are made.
        protected = self._protected if self._from_lists else None
        fits = (protected or self.models.translation).fits(sentence)
        return fits and (not isinstance(search, PassageSearch) or search.model.fits(sentence))

    def _preparation(
        self,
        documents: Sequence[Document],
        units: Sequence[Sequence[Unit]],
        before: Sequence[Sequence[str]] | None,
        store: ListStore | None,
        names: DocumentNames | None,
    ) -> Preparation:
        """Return the function that makes the search's input: n-best lists, passages or texts."""
        if names is not None:
            return lambda batch: map_batch(batch, lambda here: self._lists_of(here, names.lists))
        if self._from_lists:

            def make(here: Sequence[Unit]) -> list[NBest]:
                return self._nbest_lists([unit.core for unit in here], store)

            return lambda batch: map_batch(batch, lambda here: self._lists_of(here, make))
        search = self.search
        if not isinstance(search, PassageSearch):
            return lambda batch: map_batch(batch, lambda here: [unit.core.text for unit in here])
        earlier = [
            [self._splitter.core(text, speakers=document.speakers).text for text in sources]
            for document, sources in zip(documents, before or [()] * len(documents), strict=True)
        ]
        texts = [
            [*sources, *(unit.core.text for unit in of_document)]
            for sources, of_document in zip(earlier, units, strict=True)
        ]

        def passage(unit: Unit) -> Passage:
            return search.model.passage(texts[unit.document], len(earlier[unit.document]) + unit.piece)

        return lambda batch: map_batch(batch, lambda here: map(passage, here))


def choose(
    lists: Sequence[Sequence[NBest]],
    models: Models,
    options: TranslationOptions,
    *,
    contexts: Sequence[Context] | None = None,
    extra_terms: tuple[AnyTerm, ...] = (),
    language: str = "",
    target_language: str = "",
    placing: Callable[[], TranslationModel | None] = lambda: None,
) -> Iterator[Translation]:
    """Choose from given n-best lists, those of several documents in step.

    Hypotheses translate the text between `before` and `after` of their list's source. `placing` returns the
    model that finds where tags belong; it is called only for sentences with tags. The languages are those of
    a `Translator`.
    """
    if search_kind(options.search).needs != LISTS:
        raise UsageError(
            f"{option('search', options.search)} does not choose from n-best lists", "rerank and lattice do"
        )
    glossary = glossary_of(options, language)
    begin = conversations(options, models.target_language)
    units = [
        [
            _unit(document, number, nbest, options, language, glossary, manner)
            for number, (nbest, manner) in enumerate(
                zip(of_document, _manners(of_document, begin), strict=True)
            )
        ]
        for document, of_document in enumerate(lists)
    ]
    if options.finds_names:
        units = [
            name_given(of_document, of_lists, NameMemory(language, models.target_language))
            for of_document, of_lists in zip(units, lists, strict=True)
        ]
    return _in_step(
        build(models, options, with_counted_terms(extra_terms, options, manner=begin is not None)),
        units,
        State(0, {}),
        State.at_start(len(lists), contexts),
        wave=_wave_size(models, options),
        prepare=lambda batch: map_batch(
            batch,
            lambda here: [
                with_names(unit.core, _list_to_choose_from(unit, lists[unit.document][unit.piece], options))
                for unit in here
            ],
        ),
        finish=lambda unit, part: _finish(
            unit, part, placing() if unit.core.tags else None, target_language if options.protect else ""
        ),
    )


def conversations(options: TranslationOptions, language: str) -> Callable[[], Conversation] | None:
    """Return what begins to follow a document's speakers.

    None if the options ask for no manner, or if no forms of the target's language are known; then the seed is
    all that shows how people are to be addressed.
    """
    if not options.asks_for_manner:
        return None
    cast = read_cast(options.cast) if options.cast else None
    if base_language(language) not in ADDRESS_LANGUAGES:
        if cast is not None or not options.reads_context:
            asked = option("cast") if cast is not None else option("formality", options.formality)
            raise UsageError(
                f"{asked} is not possible in {language or 'a language that is not named'!r}",
                f"forms of address are known in {', '.join(ADDRESS_LANGUAGES)}",
            )
        return None
    return lambda: Conversation(cast, language, FORMS.get(options.formality, ""))


def _manners(lists: Sequence[NBest], begin: Callable[[], Conversation] | None) -> list[Manner | None]:
    """Return how the sentences of given lists are to be said; names in their affixes are speakers'."""
    if begin is None:
        return [None] * len(lists)
    conversation = begin()
    return [conversation.follow(Sentence(nbest.source), speakers=bool(nbest.before))[0] for nbest in lists]


def _wave_size(models: Models, options: TranslationOptions) -> int:
    """Return the size of waves: small with a slow D-LM, unless it would often read its window again."""
    language: object = models.language if options.weighted_objective.uses_lm else None
    return language.wave_size if isinstance(language, Paced) and not options.rolling else WAVE


def unit_of(
    part: TranslatedPart, options: TranslationOptions, language: str, glossary: Glossary | None = None
) -> Unit:
    """Return the unit of a part; make one for a part that was read from a file."""
    return part.unit or _unit(0, 0, part.nbest, options, language, glossary, part.nbest.manner)


def _unit(
    document: int,
    number: int,
    nbest: NBest,
    options: TranslationOptions,
    language: str,
    glossary: Glossary | None,
    manner: Manner | None,
) -> Unit:
    """Make the unit of a list, whose `before` and `after` are the text around the translated part."""
    core = Core.whole(nbest.source)
    if options.protect:
        core = core_between(nbest.source, nbest.before, nbest.after, language)
    core = core.with_mentions(glossary).with_manner(manner)
    return Unit(document, number, number, Sentence(nbest.source), nbest.source, core)


def _given_list(sentence: Sentence) -> NBest:
    """Return a given translation as a list, so that the next sentences are chosen after it."""
    return NBest(sentence.text, (Hypothesis(sentence.given, 0.0, defects=0, respected=0),))


def _list_to_choose_from(unit: Unit, nbest: NBest, options: TranslationOptions) -> NBest:
    """Return a given list as a search reads it: of the core, as long as wanted, defects counted."""
    hypotheses = nbest.hypotheses[: options.list_size]
    nbest = replace(nbest, source=unit.text_read, hypotheses=hypotheses, manner=unit.core.manner)
    return _counted(unit.core, nbest, options)


def _counted(core: Core, nbest: NBest, options: TranslationOptions) -> NBest:
    """Count what the search needs to know of every hypothesis: its defects, and its terms."""
    if options.glossary:
        return with_terms(core, nbest, protect=options.protect)
    return with_defects(core, nbest) if options.protect else nbest


def _finish(
    unit: Unit, part: TranslatedPart, model: TranslationModel | None, target_language: str
) -> TranslatedPart:
    """Turn the translation of a unit's core into that of the unit; the model finds where tags belong."""
    whole = replace(part, nbest=replace(part.nbest, source=unit.text), unit=unit)
    return _place_tags(whole, unit.core, model, target_language)


def _place_tags(
    part: TranslatedPart, core: Core, model: TranslationModel | None, target_language: str
) -> TranslatedPart:
    """Give a translation the tags and the case of its source, and marks of the same kind."""
    chosen = part.chosen_hypothesis
    if chosen is None:
        return part
    placed = place_tags(core, chosen.text, model, target_language)
    return part if placed == chosen.text else replace(part, placed=placed)


def _in_step(
    search: Search,
    documents: Sequence[Sequence[Unit]],
    state: State,
    at_start: State,
    *,
    wave: int = WAVE,
    prepare: Preparation,
    finish: Finish,
    checkpoint: Callable[[State], None] | None = None,
) -> Iterator[Translation]:
    """Run a search over documents, wave by wave, and put the parts of each sentence together.

    `state` is kept up to date; documents that it lacks begin as in `at_start`. `wave` is the size of waves.
    """
    # A search settles the units of a document in their order: these come next.
    taken = itertools.islice(waves(documents, wave), state.taken)
    read = Counter(number for before in taken for number, _ in before)
    coming = {
        number: iter(documents[number][read[number] - len(document.lists) :])
        for number, document in state.documents.items()
    }

    def prepare_waves() -> Iterator[Wave[Any]]:
        for batch, done in batches(documents, wave, state.taken):
            prepared: Sequence[Wave[Any]] = ()
            for place in range(done, len(batch)):
                state.forget()
                if checkpoint is not None:
                    checkpoint(state)
                for number in batch[place].documents.keys() - state.documents.keys():
                    state.documents[number] = at_start.documents[number]
                    coming[number] = iter(documents[number])
                prepared = prepared or prepare(batch)
                yield prepared[place]
                for number in batch[place].ending:
                    del state.documents[number], coming[number]
                state.taken += 1

    for number, part in search.run(prepare_waves(), state):
        unit = next(coming[number])
        parts = state.documents[number].parts
        parts.append(finish(unit, part))
        if unit.ends_sentence:
            finished = Translation(number, unit.number, unit.source.text, tuple(parts), unit.source.place)
            parts.clear()
            yield finished
