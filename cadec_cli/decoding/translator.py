"""Documents to translations: n-best lists ahead in large batches, then a choice per sentence, in context.

Generating lists and choosing from lists are two things: `Translator` does both, `choose` only the second.
Documents run in step: sentence i of every document at once. What is chosen is yielded at once; only the
open end of each document is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cadec_cli.decoding.confidence import FLAG_BELOW, Judge
from cadec_cli.decoding.explain import ExplainedText, Explanation, explain
from cadec_cli.decoding.protection.defects import defects, judge_for, least_defective, with_defect_term
from cadec_cli.decoding.protection.model import protect
from cadec_cli.decoding.protection.tag_placement import place_tags
from cadec_cli.decoding.search import Search, build
from cadec_cli.decoding.search.passages import PassageSearch
from cadec_cli.decoding.state import DocumentState, State
from cadec_cli.decoding.translation import Choice, TranslatedPart, Translation, joined_first
from cadec_cli.decoding.waves import Item, Pieces, Wave, waves
from cadec_cli.engines.protocols import AnyTerm, Models, Passage, TranslationModel
from cadec_cli.errors import CadecError, UsageError, option
from cadec_cli.method.context import Context
from cadec_cli.method.hypotheses import NBest
from cadec_cli.method.options import TranslationOptions
from cadec_cli.method.searches import LISTS, search_kind
from cadec_cli.text.protected.core import Core, core_between, core_of, parts_of


@dataclass(frozen=True)
class Listed:
    """A piece of a sentence as a search sees it, and its hypotheses as they would be written.

    A piece with nothing to translate has no hypotheses, and is written as it is.
    """

    nbest: NBest
    texts: tuple[str, ...]


class Translator:
    """Models and options, ready to translate."""

    def __init__(
        self,
        models: Models,
        options: TranslationOptions | None = None,
        extra_terms: tuple[AnyTerm, ...] = (),
        *,
        language: str = "",
    ) -> None:
        """Take what the options need: no D-LM for the sentence level, no stepped S-NMT but for the beam.

        The language is the source's, if it is known: text in other scripts is then left as it is.
        """
        self.models = models
        self.options = options or TranslationOptions()
        self.language = language
        self.search = build(models, self.options, with_defect_term(extra_terms, self.options, language))
        self._translation = models.translation
        if self.options.protect:
            self._translation = protect(models.translation, language)

    def judge(self, below: float = FLAG_BELOW) -> Judge:
        """Who says how far its translations can be trusted, and flags confidences below a limit."""
        return judge_for(self.options, self.language, below)

    def translate(self, document: Sequence[str]) -> Iterator[Translation]:
        """Translate one document, given as a sequence of sentences; a bare string is a TypeError."""
        if isinstance(document, str):
            raise TypeError(
                f"translate() takes a sequence of sentences, not a string: translate([{document[:40]!r}])"
            )
        return self.translate_documents([document])

    def translate_documents(
        self,
        documents: Sequence[Sequence[str]],
        *,
        contexts: Sequence[Context] | None = None,
        before: Sequence[Sequence[str]] | None = None,
        speakers: Sequence[bool] | None = None,
        start: State | None = None,
        checkpoint: Callable[[State], None] | None = None,
    ) -> Iterator[Translation]:
        """Translate several documents in step; each one's sentences come in order.

        `contexts` is what stands before each document, in the D-LM's ids; `before` is that in the source,
        for models that read it. `speakers` tells which documents are of subtitles, where a name before a
        colon says who is speaking; none are, unless it is given. `checkpoint` is called now and then, when
        all that has been yielded is complete up to there; a translation that is given such a state as its
        `start` goes on exactly from it.

        A string in the place of a document, or of all of them, is a TypeError: it would be translated letter
        by letter.
        """
        if isinstance(documents, str) or any(isinstance(document, str) for document in documents):
            raise TypeError(
                "translate_documents() takes a sequence of documents, each a sequence of sentences: "
                'translate_documents([["Who are you?", "I saw you."]])'
            )
        speakers = speakers or [False] * len(documents)
        pieces = [Pieces(self._split(*document)) for document in zip(documents, speakers, strict=True)]
        cores = [
            document.with_items(self._core(text, named).text for text in document.items)
            for document, named in zip(pieces, speakers, strict=True)
        ]
        state = start or State.at_start(len(documents), contexts)
        return _in_step(
            self.search,
            cores,
            state,
            prepare=self._preparation(cores, before, speakers),
            source=lambda document, sentence: documents[document][sentence],
            finish=lambda document, piece, part: self._finish(
                pieces[document].items[piece],
                self._core(pieces[document].items[piece], speakers[document]),
                part,
                state.documents[document],
            ),
            checkpoint=checkpoint,
        )

    def lists(self, sentences: Sequence[str]) -> list[list[Listed]]:
        """The n-best lists that sentences are chosen from: of each sentence those of its pieces."""
        pieces = list(self._split(sentences, speakers=False))
        cores = [self._core(text, speakers=False) for _, text in pieces]
        made = self._translation.nbest([core.text for core in cores], self.options.list_size)
        found: list[list[Listed]] = [[] for _ in sentences]
        for (sentence, source), core, nbest in zip(pieces, cores, made, strict=True):
            texts = tuple(
                core.before + self._written(core, hypothesis.text) + core.after
                for hypothesis in nbest.hypotheses
            )
            found[sentence].append(Listed(nbest, texts or (source,)))
        return found

    def _written(self, core: Core, text: str) -> str:
        return place_tags(core, text, self.models.translation) if core.tags or core.capitals else text

    def rechoose(self, parts: Sequence[TranslatedPart], context: Context) -> list[TranslatedPart]:
        """The parts of one sentence, chosen again from the lists that they were chosen from."""
        lists = [
            replace(
                part.nbest,
                source=self._core_of_part(part).text,
                hypotheses=part.hypotheses[: self.options.list_size],
            )
            for part in parts
        ]
        state = State.at_start(1, [context])
        found = _in_step(
            self.search,
            [Pieces(enumerate(lists))],
            state,
            prepare=_identity,
            source=lambda document, piece: parts[piece].source,
            finish=lambda document, piece, part: self._finish(
                parts[piece].source, self._core_of_part(parts[piece]), part, state.documents[document]
            ),
        )
        return [part for one in found for part in one.parts]

    def with_hypothesis(self, part: TranslatedPart, index: int) -> TranslatedPart:
        """A part with another of its hypotheses, and in it what the source has inside."""
        assert part.choice is not None
        other = TranslatedPart(part.nbest, replace(part.choice, index=index))
        return _place_tags(other, self._core_of_part(part), self.models.translation)

    def sentence_level(self, parts: Sequence[TranslatedPart], options: TranslationOptions) -> list[NBest]:
        """What the S-NMT alone says of the parts of a sentence that was translated with some options."""
        if search_kind(options.search).needs == LISTS:
            return [part.nbest for part in parts]
        # Hypotheses that were not chosen from lists are in context, all of them.
        cores = [self._core_of_part(part) for part in parts]
        lists = self._translation.nbest([core.text for core in cores], options.beam)
        return [
            replace(nbest, source=part.source, before=core.before, after=core.after)
            for part, core, nbest in zip(parts, cores, lists, strict=True)
        ]

    def sentence_level_of(self, translation: Translation) -> str:
        """What the S-NMT alone would have said: the very same, tags included, where its first was chosen."""
        from_lists = search_kind(self.options.search).needs == LISTS
        if from_lists and not any(part.choice and part.choice.index for part in translation.parts):
            return translation.text
        return joined_first(self.sentence_level(translation.parts, self.options))

    def explain(self, part: TranslatedPart) -> Explanation:
        """Why a part was translated as it was: token by token, beside the first hypothesis."""
        if part.choice is None:
            return Explanation((), ())
        rows = [ExplainedText.of("chosen", part, part.choice.index)]
        if part.choice.index:
            rows.append(ExplainedText.of("first", part, 0))
        return explain(self.models.language, rows, Context(part.choice.context), self.options.scoring_options)

    def _core(self, text: str, speakers: bool) -> Core:
        """What of a text is translated; all of it, where nothing is protected."""
        return core_of(text, self.language, speakers=speakers) if self.options.protect else Core("", text, "")

    def _core_of_part(self, part: TranslatedPart) -> Core:
        """What of a part was translated: it is known what stands around that."""
        if not self.options.protect:
            return Core("", part.source, "")
        return core_between(part.source, part.nbest.before, part.nbest.after, self.language)

    def _finish(self, source: str, core: Core, part: TranslatedPart, state: DocumentState) -> TranslatedPart:
        """A core's translation as that of the text that it is the core of."""
        if part.chosen_hypothesis is None:
            return replace(part, nbest=replace(part.nbest, source=source))
        if self.options.protect and search_kind(self.options.search).needs != LISTS:
            part = self._repair_broken(part, state)
        nbest = replace(part.nbest, source=source, before=core.before, after=core.after)
        return _place_tags(TranslatedPart(nbest, part.choice), core, self.models.translation)

    def _repair_broken(self, part: TranslatedPart, state: DocumentState) -> TranslatedPart:
        """A translation that was not chosen from checked lists, and is broken: by one that was, if better."""
        assert part.chosen_hypothesis is not None and part.choice is not None
        wrong = defects(part.source, part.chosen_hypothesis.text, self.language)
        if not wrong:
            return part
        own = least_defective(part.nbest, self.language)
        nbest, choice = part.nbest, replace(part.choice, index=own)
        if defects(part.source, nbest.hypotheses[own].text, self.language):
            other = self._translation.nbest([part.source], self.options.beam)[0]
            index = least_defective(other, self.language) if other.hypotheses else 0
            if other.hypotheses and not defects(part.source, other.hypotheses[index].text, self.language):
                scores = tuple(one.log_prob for one in other.hypotheses)
                nbest, choice = other, Choice(index, scores, {}, part.choice.context)
        if len(wrong) <= len(defects(part.source, nbest.hypotheses[choice.index].text, self.language)):
            return part
        self._replace_in_context(part, nbest, choice, state)
        return TranslatedPart(nbest, choice)

    def _replace_in_context(
        self, part: TranslatedPart, nbest: NBest, choice: Choice, state: DocumentState
    ) -> None:
        """What comes next is to read what was chosen in the end."""
        language = self.models.language if self.options.weighted_objective.uses_lm else None
        context = state.beam[0].context
        if language is None or not context.sentences or part.choice is None:
            return
        if context.sentences[-1] == part.nbest.ids_for(language.text)[part.choice.index]:
            instead = nbest.ids_for(language.text)[choice.index]
            state.beam[0].context = replace(
                context, sentences=(*context.sentences[:-1], instead), memory=None, remembered=0
            )

    def _split(self, sentences: Sequence[str], speakers: bool) -> Iterator[tuple[int, str]]:
        """Pieces that the model can read, with the number of their sentence."""
        for number, sentence in enumerate(sentences):
            if not self._core(sentence, speakers).text or self._fits(sentence):
                protected = self.options.protect
                for part in parts_of(sentence, speakers=speakers) if protected else [sentence]:
                    yield number, part
            elif self.options.long == "refuse":
                raise CadecError(
                    f"sentence {number + 1} is longer than the model reads: {sentence[:60]!r}…",
                    f"{option('long', 'split')} translates it in pieces",
                )
            else:
                for piece in self._pieces(sentence):
                    yield number, piece

    def _fits(self, sentence: str) -> bool:
        """Tell whether all models that read the source can read a sentence whole."""
        search = self.search
        # Stand-ins are short, but only lists are made with them.
        listed = search_kind(self.options.search).needs == LISTS
        model = self._translation if listed else self.models.translation
        return model.fits(sentence) and (not isinstance(search, PassageSearch) or search.model.fits(sentence))

    def _pieces(self, sentence: str) -> Iterator[str]:
        """A sentence that does not fit, cut until all of it does, or can't be cut any more."""
        for piece in self._translation.split(sentence):
            halves = [piece] if self._fits(piece) else _halves(piece)
            if len(halves) == 1:
                yield piece
            else:
                for half in halves:
                    yield from self._pieces(half)

    def _preparation(
        self,
        pieces: Sequence[Pieces[str]],
        before: Sequence[Sequence[str]] | None,
        speakers: Sequence[bool],
    ) -> Callable[[Wave[str]], Wave[Any]]:
        """What the search wants to be made of the pieces of a wave."""
        if search_kind(self.options.search).needs == LISTS:
            return self._with_lists
        search = self.search
        if not isinstance(search, PassageSearch):
            return _identity
        whole = [
            [*(self._core(text, speakers[number]).text for text in before[number]), *document.items]
            if before is not None
            else document.items
            for number, document in enumerate(pieces)
        ]
        starts = [len(texts) - len(document) for texts, document in zip(whole, pieces, strict=True)]

        def with_passages(wave: Wave[str]) -> Wave[Passage]:
            made = [
                [
                    search.model.passage(whole[number], starts[number] + wave.taken + place)
                    for place in range(len(texts))
                ]
                for number, texts in enumerate(wave.documents)
            ]
            return Wave(wave.taken, made, wave.ends)

        return with_passages

    def _with_lists(self, wave: Wave[str]) -> Wave[NBest]:
        """The n-best lists of a wave, all generated at once."""
        texts = [text for texts in wave.documents for text in texts]
        lists = iter(self._translation.nbest(texts, self.options.list_size))
        return Wave(wave.taken, [[next(lists) for _ in texts] for texts in wave.documents], wave.ends)


def choose(
    lists: Sequence[Sequence[NBest]],
    models: Models,
    options: TranslationOptions,
    *,
    contexts: Sequence[Context] | None = None,
    extra_terms: tuple[AnyTerm, ...] = (),
    language: str = "",
    placing: Callable[[], TranslationModel | None] = lambda: None,
) -> Iterator[Translation]:
    """Choose from n-best lists that are there already: those of several documents, in step.

    Hypotheses are of what is between `before` and `after` of their list's source. `placing` gives the model
    that knows where tags belong; it is asked only if there are some.
    """
    if search_kind(options.search).needs != LISTS:
        raise UsageError(
            f"{option('search', options.search)} does not choose from n-best lists", "rerank and lattice do"
        )
    cores = [
        [
            core_between(nbest.source, nbest.before, nbest.after, language)
            if options.protect
            else Core("", nbest.source, "")
            for nbest in document
        ]
        for document in lists
    ]
    shortened = [
        [
            replace(
                nbest,
                source=core.text or nbest.source,
                hypotheses=nbest.hypotheses[: options.list_size],
            )
            for nbest, core in zip(document, of_document, strict=True)
        ]
        for document, of_document in zip(lists, cores, strict=True)
    ]

    def finished(document: int, sentence: int, part: TranslatedPart) -> TranslatedPart:
        core = cores[document][sentence]
        whole = replace(part, nbest=replace(part.nbest, source=lists[document][sentence].source))
        return _place_tags(whole, core, placing() if core.tags else None)

    return _in_step(
        build(models, options, with_defect_term(extra_terms, options, language)),
        [Pieces(enumerate(document)) for document in shortened],
        State.at_start(len(lists), contexts),
        prepare=_identity,
        source=lambda document, sentence: lists[document][sentence].source,
        finish=finished,
    )


def _place_tags(part: TranslatedPart, core: Core, model: TranslationModel | None) -> TranslatedPart:
    """A translation with what its source has inside: tags, or capitals throughout."""
    if part.chosen_hypothesis is None or not (core.tags or core.capitals):
        return part
    return replace(part, placed=place_tags(core, part.chosen_hypothesis.text, model))


def _in_step(
    search: Search,
    documents: Sequence[Pieces[Item]],
    state: State,
    *,
    prepare: Callable[[Wave[Item]], Wave[Any]],
    source: Callable[[int, int], str],
    finish: Callable[[int, int, TranslatedPart], TranslatedPart] = lambda document, piece, part: part,
    checkpoint: Callable[[State], None] | None = None,
) -> Iterator[Translation]:
    """Let a search go through documents, wave by wave, and put the parts of sentences together."""

    def prepare_waves() -> Iterator[Wave[Any]]:
        for wave in waves(documents, state.taken):
            state.taken = wave.taken
            state.forget()
            if checkpoint is not None:
                checkpoint(state)
            yield prepare(wave)

    done = [
        min(state.taken, len(pieces)) - len(document.lists)
        for pieces, document in zip(documents, state.documents, strict=True)
    ]
    for number, part in search.run(prepare_waves(), state):
        parts = state.documents[number].parts
        parts.append(finish(number, done[number], part))
        done[number] += 1
        if documents[number].last_of_sentence(done[number] - 1):
            sentence = documents[number].sentence(done[number] - 1)
            finished = Translation(number, sentence, source(number, sentence), tuple(parts))
            parts.clear()
            yield finished


def _halves(text: str) -> list[str]:
    """A text cut at the space nearest to its middle; itself where there is none."""
    spaces = [place for place, character in enumerate(text) if character == " " and 0 < place < len(text) - 1]
    if not spaces:
        return [text]
    middle = min(spaces, key=lambda place: abs(place - len(text) // 2))
    return [text[:middle].strip(), text[middle:].strip()]


def _identity(wave: Wave[Any]) -> Wave[Any]:
    return wave
