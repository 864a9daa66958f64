"""Documents to translations: n-best lists ahead in large batches, then a choice per sentence, in context.

Generating lists and choosing from lists are two things: `Translator` does both, `choose` only the second.
Documents run in step: sentence i of every document at once. What is chosen is yielded at once; only the
open end of each document is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cadec_cli.decoding.explaining import Explained, Explanation, explain
from cadec_cli.decoding.search import Search, build
from cadec_cli.decoding.search.passages import PassageSearch
from cadec_cli.decoding.state import State
from cadec_cli.decoding.translations import TranslatedPart, Translation, joined_first
from cadec_cli.decoding.waves import Item, Pieces, Wave, waves
from cadec_cli.engines.protocols import KnownAhead, Models, Passage
from cadec_cli.errors import CadecError
from cadec_cli.method.context import Context
from cadec_cli.method.hypotheses import NBest
from cadec_cli.method.options import TranslationOptions
from cadec_cli.method.searches import LISTS, search_kind


class Translator:
    """Models and options, ready to translate."""

    def __init__(
        self, models: Models, options: TranslationOptions | None = None, ahead: tuple[KnownAhead, ...] = ()
    ) -> None:
        """Take what the options need: no D-LM for the sentence level, no stepped S-NMT but for the beam."""
        self.models = models
        self.options = options or TranslationOptions()
        self._search = build(models, self.options, ahead)
        self._translation = models.translation

    def translate(self, document: Sequence[str]) -> Iterator[Translation]:
        """Translate one document, sentence by sentence."""
        return self.translate_documents([document])

    def translate_documents(
        self,
        documents: Sequence[Sequence[str]],
        *,
        contexts: Sequence[Context] | None = None,
        before: Sequence[Sequence[str]] | None = None,
        start: State | None = None,
        checkpoint: Callable[[State], None] | None = None,
    ) -> Iterator[Translation]:
        """Translate several documents in step; each one's sentences come in order.

        `contexts` is what stands before each document, in the D-LM's ids; `before` is that in the source,
        for models that read it. `checkpoint` is called now and
        then, when all that has been yielded is complete up to there; a translation that is given such a state
        as its `start` goes on exactly from it.
        """
        pieces = [Pieces(self._split(sentences)) for sentences in documents]
        state = start or State.at_start(len(documents), contexts)
        return _in_step(
            self._search,
            pieces,
            state,
            prepare=self._preparation(pieces, before),
            source=lambda document, sentence: documents[document][sentence],
            checkpoint=checkpoint,
        )

    def sentence_level(self, parts: Sequence[TranslatedPart], options: TranslationOptions) -> list[NBest]:
        """What the S-NMT alone says of the parts of a sentence that was translated with some options."""
        if search_kind(options.search).needs == LISTS:
            return [part.nbest for part in parts]
        # Hypotheses that were not chosen from lists are in context, all of them.
        return self._translation.nbest([part.source for part in parts], options.beam)

    def sentence_level_of(self, translation: Translation) -> str:
        """What the S-NMT alone would have said."""
        return joined_first(self.sentence_level(translation.parts, self.options))

    def explain(self, part: TranslatedPart) -> Explanation:
        """Why a part was translated as it was: token by token, beside the first hypothesis."""
        if part.choice is None:
            return Explanation((), ())
        rows = [Explained.of("chosen", part, part.choice.index)]
        if part.choice.index:
            rows.append(Explained.of("first", part, 0))
        return explain(self.models.language, rows, Context(part.choice.context), self.options.reading)

    def _split(self, sentences: Sequence[str]) -> Iterator[tuple[int, str]]:
        """Pieces that the model can read, with the number of their sentence."""
        for number, sentence in enumerate(sentences):
            if self._fits(sentence):
                yield number, sentence
            elif self.options.long == "refuse":
                raise CadecError(
                    f"sentence {number + 1} is longer than the model reads: {sentence[:60]!r}…",
                    "--long split translates it in pieces",
                )
            else:
                for piece in self._pieces(sentence):
                    yield number, piece

    def _fits(self, sentence: str) -> bool:
        """Tell whether all models that read the source can read a sentence whole."""
        search = self._search
        return self._translation.fits(sentence) and (
            not isinstance(search, PassageSearch) or search.model.fits(sentence)
        )

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
        self, pieces: Sequence[Pieces[str]], before: Sequence[Sequence[str]] | None
    ) -> Callable[[Wave[str]], Wave[Any]]:
        """What the search wants to be made of the pieces of a wave."""
        if search_kind(self.options.search).needs == LISTS:
            return self._with_lists
        search = self._search
        if not isinstance(search, PassageSearch):
            return _as_it_is
        whole = [
            [*before[number], *document.items] if before is not None else document.items
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
    ahead: tuple[KnownAhead, ...] = (),
) -> Iterator[Translation]:
    """Choose from n-best lists that are there already: those of several documents, in step."""
    if search_kind(options.search).needs != LISTS:
        raise CadecError(
            f"--search {options.search} does not choose from n-best lists", "rerank and lattice do"
        )
    shortened = [
        [NBest(nbest.source, nbest.hypotheses[: options.list_size], nbest.vocabulary) for nbest in document]
        for document in lists
    ]
    return _in_step(
        build(models, options, ahead),
        [Pieces(enumerate(document)) for document in shortened],
        State.at_start(len(lists), contexts),
        prepare=_as_it_is,
        source=lambda document, sentence: lists[document][sentence].source,
    )


def _in_step(
    search: Search,
    documents: Sequence[Pieces[Item]],
    state: State,
    *,
    prepare: Callable[[Wave[Item]], Wave[Any]],
    source: Callable[[int, int], str],
    checkpoint: Callable[[State], None] | None = None,
) -> Iterator[Translation]:
    """Let a search go through documents, wave by wave, and put the parts of sentences together."""

    def prepared() -> Iterator[Wave[Any]]:
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
    for number, part in search.run(prepared(), state):
        parts = state.documents[number].parts
        parts.append(part)
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


def _as_it_is(wave: Wave[Any]) -> Wave[Any]:
    return wave
