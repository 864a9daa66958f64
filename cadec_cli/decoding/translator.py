"""Documents to translations: n-best lists ahead in large batches, then a choice a sentence, in context.

    from cadec_cli.bundle.opening import Bundle
    from cadec_cli.bundle.loading import Models
    from cadec_cli.decoding.translator import Translator

    translator = Translator.load(Models(Bundle.open(path)))
    for translation in translator.translate(["Who are you?", "I saw you yesterday."]):
        print(translation.text)

Documents run in step: sentence i of every document at once. What is chosen is yielded at once; nothing but
the open end of each document is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from cadec_cli.bundle.loading import Models, default_options
from cadec_cli.decoding.candidates import candidates, lm_encoder
from cadec_cli.decoding.search.beam import BeamHypothesis, BeamOptions, BeamSearch
from cadec_cli.decoding.search.lattice import Candidate, Choice, LatticeSearch, settled
from cadec_cli.decoding.snapshot import DocumentState, Snapshot
from cadec_cli.decoding.translations import Chosen, Translation
from cadec_cli.decoding.units import Units, waves
from cadec_cli.engines.torch_lm import LMScorer
from cadec_cli.errors import CadecError
from cadec_cli.method.context import Context, Ids
from cadec_cli.method.hypotheses import GivenLists, Hypothesis, NBest, NBestSource
from cadec_cli.method.objectives import Objective, objective
from cadec_cli.method.options import TranslationOptions
from cadec_cli.models.doclm import DocumentLM
from cadec_cli.models.transformer import Transformer
from cadec_cli.text.pipeline import TextPipeline

# Sentences that the beam decodes at once where none waits for another.
BEAM_SENTENCES = 32


class Translator:
    """A bundle's models, ready to translate."""

    def __init__(
        self,
        generator: NBestSource,
        target: TextPipeline,
        *,
        language_model: DocumentLM | None = None,
        language_model_text: TextPipeline | None = None,
        translation_model: Transformer | None = None,
        options: TranslationOptions | None = None,
    ) -> None:
        self.options = options or TranslationOptions()
        self.objective: Objective = objective(
            "sentence" if self.options.search == "sentence" else self.options.objective, self.options.weight
        )
        if self.objective.uses_lm and language_model is None:
            raise CadecError("this bundle has no document language model", "use --search sentence")
        self._generator = generator
        self._target = target
        lm_text = language_model_text or target
        self._same_vocabulary = lm_text.checksum == target.checksum
        self.lm_ids = lm_encoder(target, lm_text)
        self._lm = language_model
        self._nmt = translation_model
        self._scorer = (
            LMScorer(
                language_model,
                temperatures=(self.options.temperature,),
                alpha=self.options.alpha,
                keep_keys=self.options.rolling,
            )
            if language_model is not None and self.objective.uses_lm
            else None
        )

    @classmethod
    def load(
        cls,
        models: Models,
        options: TranslationOptions | None = None,
        lists: GivenLists | None = None,
    ) -> Translator:
        """Take what the options need: no D-LM for the sentence level, no torch S-NMT but for the beam.

        With `lists` nothing is translated: the hypotheses are there already.
        """
        bundle = models.bundle
        chosen = options or default_options(bundle)
        needs_lm = chosen.search != "sentence" and chosen.objective != "sentence" and bundle.has_lm
        return cls(
            lists or models.generator,
            bundle.target,
            language_model=models.language_model if needs_lm else None,
            language_model_text=bundle.lm_pipeline if bundle.has_lm else None,
            translation_model=models.translation_model if chosen.search == "beam" else None,
            options=chosen,
        )

    def translate(self, document: Sequence[str]) -> Iterator[Translation]:
        """Translate one document, sentence by sentence."""
        return self.translate_documents([document])

    def translate_documents(
        self,
        documents: Sequence[Sequence[str]],
        *,
        start: Snapshot | None = None,
        checkpoint: Callable[[Snapshot], None] | None = None,
    ) -> Iterator[Translation]:
        """Translate several documents in step; each one's sentences come in order.

        `checkpoint` is called now and then, when all that has been yielded is complete up to there; a
        translation that is given such a snapshot as its `start` goes on exactly from it.
        """
        units = [Units(self._split(sentences)) for sentences in documents]
        state = start or Snapshot.at_start(len(documents))
        done = [
            min(state.taken, len(unit.texts)) - len(document.lists)
            for unit, document in zip(units, state.documents, strict=True)
        ]
        chosen = self._beam if self.options.search == "beam" else self._rerank
        for number, part in chosen(units, state, checkpoint or _ignore):
            parts = state.documents[number].parts
            parts.append(part)
            done[number] += 1
            if units[number].last_of_sentence(done[number] - 1):
                sentence = units[number].sentence(done[number] - 1)
                finished = Translation(number, sentence, documents[number][sentence], tuple(parts))
                parts.clear()
                yield finished

    def _split(self, sentences: Sequence[str]) -> Iterator[tuple[int, str]]:
        """Pieces that the model can read, with the number of their sentence."""
        for number, sentence in enumerate(sentences):
            if self._generator.fits(sentence):
                yield number, sentence
            elif self.options.long == "refuse":
                raise CadecError(
                    f"sentence {number + 1} is longer than the model reads: {sentence[:60]!r}…",
                    "--long split translates it in pieces",
                )
            else:
                for piece in self._generator.split(sentence):
                    yield number, piece

    def _rerank(
        self, units: Sequence[Units], state: Snapshot, checkpoint: Callable[[Snapshot], None]
    ) -> Iterator[tuple[int, Chosen]]:
        options = self.options
        width = options.paths if options.search == "lattice" else 1
        count = options.beam if options.search == "sentence" else options.nbest
        search = LatticeSearch(self.objective, self._scorer, width, options.context, options.rolling)
        for taken, wave in waves(units, state.taken):
            state.taken = taken
            state.forget_keys()
            checkpoint(state)
            lists = self._generator.generate([text for texts in wave for text in texts], count)
            scored = iter(zip(lists, candidates(lists, self.lm_ids, self._scorer), strict=True))
            columns = [[next(scored) for _ in texts] for texts in wave]
            for step in range(max(map(len, columns))):
                live = [number for number, column in enumerate(columns) if step < len(column)]
                self._advance(search, state, {number: columns[number][step] for number in live})
                for number in live:
                    document = state.documents[number]
                    at_end = taken + step + 1 == len(units[number].texts)
                    for part in _settle(document, at_end):
                        yield number, part

    def _advance(
        self, search: LatticeSearch, state: Snapshot, column: dict[int, tuple[NBest, Candidate | None]]
    ) -> None:
        """One sentence further in every document of the column."""
        filled = [(number, candidate) for number, (_, candidate) in column.items() if candidate is not None]
        beams = search.advance(
            [state.documents[number].beam for number, _ in filled], [candidate for _, candidate in filled]
        )
        for (number, _), beam in zip(filled, beams, strict=True):
            state.documents[number].beam = beam
        for number, (nbest, _) in column.items():
            state.documents[number].lists.append(nbest)

    def _beam(
        self, units: Sequence[Units], state: Snapshot, checkpoint: Callable[[Snapshot], None]
    ) -> Iterator[tuple[int, Chosen]]:
        if self._nmt is None:
            raise CadecError("this bundle has no torch model, which --search beam needs")
        if not self._same_vocabulary:
            raise CadecError("--search beam needs an S-NMT and a D-LM with the same target vocabulary")
        lm = self._lm if self.objective.uses_lm else None
        beam = BeamOptions(
            beam=self.options.beam, temperature=self.options.temperature, alpha=self.options.alpha
        )
        search = BeamSearch(self._nmt, lm, self.objective, beam)
        for taken, wave in waves(units, state.taken):
            state.taken = taken
            checkpoint(state)
            if self.options.context_from == "sentence":
                yield from self._beam_at_once(search, wave, state)
            else:
                yield from self._beam_in_step(search, wave, state)

    def _beam_in_step(
        self, search: BeamSearch, wave: list[list[str]], state: Snapshot
    ) -> Iterator[tuple[int, Chosen]]:
        for step in range(max(map(len, wave))):
            live = [number for number, texts in enumerate(wave) if step < len(texts)]
            contexts = [state.documents[number].beam[0].context for number in live]
            found = self._beam_step(search, [wave[number][step] for number in live], contexts)
            for number, part in zip(live, found, strict=True):
                if part.choice is not None:
                    self._remember(state, number, part.hypotheses[0].ids)
                yield number, part

    def _beam_at_once(
        self, search: BeamSearch, wave: list[list[str]], state: Snapshot
    ) -> Iterator[tuple[int, Chosen]]:
        """The fast approximation: contexts are the sentence-level translations, so no sentence waits."""
        flat = [(number, text) for number, texts in enumerate(wave) for text in texts]
        best = self._generator.generate([text for _, text in flat], self.options.beam)
        contexts = []
        for (number, _), nbest in zip(flat, best, strict=True):
            contexts.append(state.documents[number].beam[0].context)
            if nbest.hypotheses:
                self._remember(state, number, nbest.hypotheses[0].ids)
        for first in range(0, len(flat), BEAM_SENTENCES):
            some = slice(first, first + BEAM_SENTENCES)
            parts = self._beam_step(search, [text for _, text in flat[some]], contexts[some])
            for (number, _), part in zip(flat[some], parts, strict=True):
                yield number, part

    def _remember(self, state: Snapshot, number: int, ids: Ids) -> None:
        path = state.documents[number].beam[0]
        path.context = path.context.followed_by(ids).last(max(self.options.context, 1))

    def _beam_step(
        self, search: BeamSearch, texts: Sequence[str], contexts: Sequence[Context]
    ) -> list[Chosen]:
        sources = [self._generator.encode(text) for text in texts]
        filled = [index for index, source in enumerate(sources) if source]
        fitted = [
            contexts[index].last(self.options.context).fitted(self._beam_room(len(sources[index])))
            for index in filled
        ]
        results = search.search([sources[index] for index in filled], [context.tokens for context in fitted])
        found = dict(zip(filled, results, strict=True))
        return [_from_beam(text, found.get(index, []), self._target) for index, text in enumerate(texts)]

    def _beam_room(self, source_length: int) -> int:
        """Tokens of context that leave room for a translation."""
        positions = self._lm.config.positions if self._lm is not None else 1
        return max(1, positions - min(2 * source_length + 20, positions // 2))


def _settle(document: DocumentState, at_end: bool) -> Iterator[Chosen]:
    """Pair the choices that are settled with their lists; empty lists have none, and never wait."""
    choices = iter(settled(document.beam, at_end))
    while document.lists:
        nbest = document.lists[0]
        choice = next(choices, None) if nbest.hypotheses else None
        if nbest.hypotheses and choice is None:
            return
        document.lists.pop(0)
        yield Chosen(nbest.source, nbest.hypotheses, choice)


def _ignore(snapshot: Snapshot) -> None:
    pass


def _from_beam(source: str, found: Sequence[BeamHypothesis], target: TextPipeline) -> Chosen:
    if not found:
        return Chosen(source, (), None)
    hypotheses = tuple(
        Hypothesis(target.decode(item.ids), tuple(item.ids), item.translation) for item in found
    )
    return Chosen(
        source,
        hypotheses,
        Choice(
            0,
            tuple(item.score for item in found),
            tuple(item.conditional for item in found),
            tuple(item.free for item in found),
        ),
    )
