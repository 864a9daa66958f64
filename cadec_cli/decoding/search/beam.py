"""C-aware beam search: the S-NMT and the D-LM step together, and any objective scores the tokens.

If the two models share the target vocabulary, both step token by token; otherwise the D-LM follows word by
word (`word_steps`). Several sentences are decoded in step, each after its own context.

Shapes: B sentences, K live hypotheses of each, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

import torch
from torch import Tensor

from cadec_cli.decoding.preceding_context import context_policy
from cadec_cli.decoding.scorer import read_context
from cadec_cli.decoding.state import State
from cadec_cli.decoding.translation import Choice, TranslatedPart
from cadec_cli.decoding.units import Wave
from cadec_cli.engines.protocols import (
    AnyTerm,
    GrowingLanguage,
    LanguageModel,
    LanguageSteps,
    Models,
    StepwiseLanguage,
    StepwiseTranslation,
    TranslationModel,
    pairs_reader,
)
from cadec_cli.engines.threads import Cores, computes_on_cpu, cores_for, is_small
from cadec_cli.engines.word_steps import Words, WordSteps
from cadec_cli.errors import CadecError, option
from cadec_cli.method.context import Context, ContextPolicy, Pair
from cadec_cli.method.hypotheses import Hypothesis, Ids, NBest
from cadec_cli.method.lengths import LengthLimits
from cadec_cli.method.objectives import LM_TERMS, LM_TERMS_OF, NMT, PAIRS, TARGET, Objective
from cadec_cli.method.options import ScoringOptions, TranslationOptions
from cadec_cli.text.token_text import TokenText

# What is read before a sentence, by what the D-LM reads: target, or pairs.
Contexts = Mapping[str, Context]

# Sentences decoded at once if none waits for another.
TOGETHER = 32
# Sentences decoded at once by a core word by word: all that the D-LM has read of them is in one row.
WORDS_TOGETHER = 4


def beam(models: Models, options: TranslationOptions, extra_terms: Sequence[AnyTerm]) -> BeamDecoding:
    """Build the search from the options."""
    objective = options.weighted_objective
    language = models.language if objective.uses_lm else None
    search = BeamSearch(
        models.stepwise_translation, language, objective, options.scoring_options, BeamOptions(options.beam)
    )
    quick = models.translation if options.context_from == "sentence" else None
    return BeamDecoding(search, context_policy(models, options), quick)


@dataclass(frozen=True)
class BeamDecoding:
    """Translates documents with the beam, each sentence after the choices before it.

    With `quick`, the contexts are that model's sentence-level translations instead, so that no sentence
    waits for another.
    """

    search: BeamSearch
    policy: ContextPolicy
    quick: TranslationModel | None = None

    def run(self, waves: Iterable[Wave[str]], state: State) -> Iterator[tuple[int, TranslatedPart]]:
        """Translate the sentences of all documents, in step."""
        for wave in waves:
            yield from self._in_step(wave, state) if self.quick is None else self._at_once(wave, state)

    def _in_step(self, wave: Wave[str], state: State) -> Iterator[tuple[int, TranslatedPart]]:
        for step in wave.steps():
            contexts = [state.documents[number].beam[0].context for number in step]
            parts = self._translate_batch(list(step.values()), contexts)
            for number, part in zip(step, parts, strict=True):
                if part.choice is not None:
                    self._remember(state, number, part.nbest, part.choice.index)
                yield number, part

    def _at_once(self, wave: Wave[str], state: State) -> Iterator[tuple[int, TranslatedPart]]:
        assert self.quick is not None
        flat = list(wave)
        best = self.quick.nbest([text for _, text in flat], self.search.options.beam)
        contexts = []
        for (number, _), nbest in zip(flat, best, strict=True):
            contexts.append(state.documents[number].beam[0].context)
            if nbest.hypotheses:
                self._remember(state, number, nbest, 0)
        for first in range(0, len(flat), TOGETHER):
            together = slice(first, first + TOGETHER)
            parts = self._translate_batch([text for _, text in flat[together]], contexts[together])
            for (number, _), part in zip(flat[together], parts, strict=True):
                yield number, part

    def _remember(self, state: State, number: int, nbest: NBest, index: int) -> None:
        partial = state.documents[number].beam[0]
        ids = nbest.ids_for(self.search.read)[index]
        pair = Pair(nbest.source, nbest.hypotheses[index].text)
        partial.context = self.policy.trim(partial.context.followed_by(ids, pair=pair))

    def _translate_batch(self, texts: Sequence[str], contexts: Sequence[Context]) -> list[TranslatedPart]:
        sources = [self.search.translation.encode(text) for text in texts]
        filled = [index for index, source in enumerate(sources) if source]
        read = {index: self._read(contexts[index], texts[index], len(sources[index])) for index in filled}
        size = max(1, len(filled)) if self.search.by_token else WORDS_TOGETHER * self.search.cores
        found: dict[int, list[BeamHypothesis]] = {}
        for first in range(0, len(filled), size):
            part = filled[first : first + size]
            here = [sources[index] for index in part], [read[index] for index in part]
            results = self.search.search_on_cores(*here)
            found.update(zip(part, results, strict=True))
        return [
            self._part(text, found[index], self._translations(contexts[index], read[index], text))
            if index in found
            else TranslatedPart(NBest(text, ()), None)
            for index, text in enumerate(texts)
        ]

    def _read(self, before: Context, source: str, source_length: int) -> Contexts:
        """The parts of a context that are read, such that a translation still fits after each."""
        language = self.search.language
        if language is None:
            return {}
        positions = language.positions
        # The D-LM may cut the same text into more tokens than the S-NMT, but seldom into twice as many.
        longest = (1 if self.search.by_token else 2) * self.search.limits.most(source_length)
        room = max(1, positions - min(longest, positions // 2))
        return {
            reads: read_context(language, reads, self.policy, before, room, source)
            for reads in self.search.objective.readings
        }

    def _translations(self, before: Context, read: Contexts, source: str) -> Context:
        """The translations of a context that are read."""
        if TARGET in read or not read:
            return read.get(TARGET, Context())
        return self.policy.translations(before, read[PAIRS], source)

    def _part(self, source: str, found: Sequence[BeamHypothesis], context: Context) -> TranslatedPart:
        text = self.search.translation.text
        hypotheses = tuple(Hypothesis(text.decode(one.ids), one.terms[NMT], one.ids) for one in found)
        nbest = NBest(source, hypotheses, text.identity)
        if not hypotheses:
            return TranslatedPart(nbest, None)
        names = [name for name in found[0].terms if name != NMT]
        terms = {name: tuple(one.terms[name] for one in found) for name in names}
        scores = tuple(one.score for one in found)
        sources = self.policy.sources(context) if PAIRS in self.search.objective.readings else ()
        return TranslatedPart(nbest, Choice(0, scores, terms, context.sentences, context.pinned, sources))


@dataclass(frozen=True)
class BeamOptions:
    """The beam size, and how long translations may become: by default, what the translation model allows."""

    beam: int = 4
    limits: LengthLimits | None = None

    def __post_init__(self) -> None:
        if self.beam < 1:
            raise CadecError(f"invalid beam options: beam must be at least 1, not {self.beam}")


@dataclass(frozen=True)
class BeamHypothesis:
    """A finished translation with its terms, summed over its tokens and the end of the sentence."""

    ids: Ids  # without the boundary
    score: float  # the objective of the terms
    terms: Mapping[str, float]


@dataclass(frozen=True)
class _SeveralSteps:
    """The D-LM's streams, by what it reads."""

    streams: Mapping[str, LanguageSteps]

    def log_probs(self) -> dict[str, Any]:
        """log p of every next token by term."""
        return {
            own: log_probs[name]
            for reads, one in self.streams.items()
            for log_probs in (one.log_probs(),)
            for name, own in zip(LM_TERMS_OF[TARGET], LM_TERMS_OF[reads], strict=True)
            if name in log_probs
        }

    def step(self, tokens: Tensor, parents: Tensor) -> None:
        """Append a token (B, K) to the hypotheses numbered by `parents`."""
        for one in self.streams.values():
            one.step(tokens, parents)

    def keep(self, sentences: Tensor) -> None:
        """Continue with these sentences only, in rising order."""
        for one in self.streams.values():
            one.keep(sentences)


@dataclass(frozen=True)
class _Beams:
    """The live hypotheses of the sentences still being decoded, best first."""

    sentences: list[int]  # (B) as the caller numbered them
    ids: Tensor  # (B, K, t)
    sums: Tensor  # (1 + terms, B, K): score, then the objective's terms


@dataclass(frozen=True)
class _Candidates:
    """The best continuations of each sentence, 2 × beam of them, best first."""

    parents: Tensor  # (B, 2·beam) which live hypothesis is continued
    tokens: Tensor  # (B, 2·beam) with what
    sums: Tensor  # (1 + terms, B, 2·beam)


class BeamSearch:
    """Beam search that maximises an objective; without LM terms it is ordinary beam search."""

    def __init__(
        self,
        translation: StepwiseTranslation,
        language: LanguageModel | None,
        objective: Objective,
        scoring_options: ScoringOptions | None = None,
        options: BeamOptions | None = None,
    ) -> None:
        if objective.uses_lm and language is None:
            raise CadecError(f"the objective {objective.name} needs a language model")
        if objective.uses(*LM_TERMS_OF[PAIRS]):
            pairs_reader(language)
        unknown = [term for term in objective.terms if term != NMT and term not in LM_TERMS]
        if unknown:
            raise CadecError(
                f"{option('search', 'beam')} can't compute {', '.join(unknown)} token by token",
                "rerank and lattice can use such terms",
            )
        self.translation = translation
        self.language = language if objective.uses_lm else None
        self.objective = objective
        self.reading = scoring_options or ScoringOptions()
        self.options = options or BeamOptions()
        self.limits = self.options.limits or translation.limits
        self._end = translation.text.boundary
        self._cores = Cores()
        self._networks = [translation, *([language] if self.language is not None else [])]
        self._small = is_small(*self._networks)
        self._words: Words | None = None
        if self.language is not None and not self._by_token(self.language):
            if not isinstance(self.language, GrowingLanguage):
                raise CadecError(
                    f"{option('search', 'beam')} needs a D-LM that can be stepped, and this one can't",
                    f"use {option('search', 'rerank')} or lattice",
                )
            self._words = Words(translation.text, self.language.text)

    @property
    def read(self) -> TokenText:
        """The vocabulary of contexts: the D-LM's, or the S-NMT's if there is no D-LM."""
        return self.translation.text if self.language is None else self.language.text

    @property
    def by_token(self) -> bool:
        """Tell whether both models step token by token, in one vocabulary."""
        return self._words is None

    @property
    def cores(self) -> int:
        """The cores that sentences are divided among."""
        if self.by_token:
            return 1 if self._small else cores_for(*self._networks)
        return torch.get_num_threads() if self._on_cpu else 1

    @property
    def _on_cpu(self) -> bool:
        return all(computes_on_cpu(model) for model in self._networks)

    def _by_token(self, language: LanguageModel) -> TypeGuard[StepwiseLanguage]:
        same = language.text.identity == self.translation.text.identity
        return same and isinstance(language, StepwiseLanguage)

    def search_on_cores(
        self, sources: Sequence[Sequence[int]], contexts: Sequence[Context | Contexts]
    ) -> list[list[BeamHypothesis]]:
        """The same as `search`, with the sentences divided among the cores.

        A single sentence gets all cores. Small networks use one core for everything: a step of theirs takes
        as long with half the sentences, so that dividing them costs more than it gains. Word by word a single
        sentence gets one core: its rows are so few that several cores wait longer than they compute.
        """
        count = self.cores
        # Every core gets long and short sentences, so that all have about the same work.
        order = sorted(range(len(sources)), key=lambda number: -len(sources[number]))
        parts = [order[first::count] for first in range(min(count, len(order)))]
        found = self._cores.map(
            lambda part: self.search(
                [sources[number] for number in part], [contexts[number] for number in part]
            ),
            parts,
            small=self._small or (not self.by_token and self._on_cpu),
        )
        by_number = {
            number: hypotheses
            for part, of_part in zip(parts, found, strict=True)
            for number, hypotheses in zip(part, of_part, strict=True)
        }
        return [by_number[number] for number in range(len(sources))]

    @torch.inference_mode()
    def search(
        self, sources: Sequence[Sequence[int]], contexts: Sequence[Context | Contexts]
    ) -> list[list[BeamHypothesis]]:
        """Translate sentences (ids without the end), each after its context; the best hypotheses come first.

        If the D-LM reads pairs, there are several contexts, by what it reads.
        All sentences are decoded at once, so the caller decides how many that are.
        """
        if not sources:
            return []
        by_reading = [one if isinstance(one, Mapping) else {TARGET: one} for one in contexts]
        limits = [self._length_limit(source, read) for source, read in zip(sources, by_reading, strict=True)]
        finished: list[list[BeamHypothesis]] = [[] for _ in sources]
        topped = [False] * len(sources)  # a finished hypothesis has been the best candidate
        steps = self.translation.steps(sources)
        log_probs = steps.log_probs(None)
        device = log_probs.device
        beams = _Beams(
            list(range(len(sources))),
            torch.empty(len(sources), 1, 0, dtype=torch.long, device=device),
            torch.zeros(1 + len(self.objective.terms), len(sources), 1, device=device),
        )
        streams = self._streams(by_reading, device)
        for length in range(max(limits) + 1):
            terms = {NMT: log_probs} | (streams.log_probs() if streams is not None else {})
            at_limit = torch.tensor([limits[sentence] <= length for sentence in beams.sentences])
            candidates = self._candidates(beams, terms, at_limit)
            self._collect(beams, candidates, finished, topped)
            alive = [
                row
                for row, sentence in enumerate(beams.sentences)
                if length < limits[sentence]
                and not (topped[sentence] and len(finished[sentence]) >= self.options.beam)
            ]
            if not alive:
                break
            count, width = beams.sums.shape[1:]
            kept = torch.tensor(alive, device=device)
            beams, parents = self._survivors(beams, candidates, kept)
            tokens = beams.ids[:, :, -1]  # (B, K)
            rows = (kept[:, None] * width + parents).flatten()
            steps.keep(rows, same_sources=tokens.shape == (count, width))
            if streams is not None:
                if len(alive) < count:
                    streams.keep(kept)
                streams.step(tokens, parents)
            log_probs = steps.log_probs(tokens)
        return [
            sorted(hypotheses, key=lambda made: -made.score)[: self.options.beam] for hypotheses in finished
        ]

    def _length_limit(self, source: Sequence[int], contexts: Contexts) -> int:
        """How many tokens a translation may have without exceeding the positions of a model."""
        limit = self.limits.most(len(source))
        room = self.translation.positions
        if len(source) + 1 > room:
            raise CadecError(
                f"a sentence of {len(source)} tokens is too long for a model of {room} positions"
            )
        limit = min(limit, room - 1)
        if self.language is not None:
            room = self.language.positions
            length = max(
                (one.length for reads, one in contexts.items() if self.objective.uses(LM_TERMS_OF[reads][0])),
                default=1,
            )
            if length >= room:
                raise CadecError(
                    f"a context of {length} tokens leaves no room in an LM of {room} positions",
                    "use fewer sentences of context",
                )
            if self._words is None:  # otherwise lengths differ, and tokens that do not fit are not scored
                limit = min(limit, room - length)
        return limit

    def _streams(self, contexts: Sequence[Contexts], device: torch.device) -> LanguageSteps | None:
        if self.language is None:
            return None
        streams = {
            reads: self._stream(reads, [of_sentence[reads] for of_sentence in contexts], device)
            for reads in self.objective.readings
        }
        return streams[TARGET] if streams.keys() == {TARGET} else _SeveralSteps(streams)

    def _stream(self, reads: str, contexts: Sequence[Context], device: torch.device) -> LanguageSteps:
        """The D-LM's terms of one way to read, by the names that they have if it reads the target."""
        language = self.language
        assert language is not None
        names = zip(LM_TERMS_OF[TARGET], LM_TERMS_OF[reads], strict=True)
        terms = [name for name, own in names if self.objective.uses(own)]
        if self._by_token(language):
            tokens = [context.tokens(language.text.boundary) for context in contexts]
            return language.steps(tokens, terms, self.reading)
        assert self._words is not None and isinstance(language, GrowingLanguage)
        trees = language.trees(contexts, terms, self.reading)
        return WordSteps(self._words, trees, terms, len(contexts), device)

    def _candidates(self, beams: _Beams, terms: Mapping[str, Tensor], at_limit: Tensor) -> _Candidates:
        count, width = beams.sums.shape[1:]
        device = beams.sums.device
        scores: Tensor = self.objective.score(terms)  # (B·K, V)
        if at_limit.any():  # a sentence that may not grow must end
            unsaid = torch.ones(scores.size(-1), dtype=torch.bool, device=device)
            unsaid[self._end] = False
            scores = scores.masked_fill(
                at_limit.to(device).repeat_interleave(width)[:, None] & unsaid, -torch.inf
            )
        # The best of a sentence are among the best of its rows, and topk of short rows is faster.
        best, tokens = scores.topk(min(2 * self.options.beam, scores.size(-1)))  # (B·K, ≤ 2·beam)
        totals = (beams.sums[0].flatten()[:, None] + best).view(count, -1)
        best, columns = totals.topk(min(2 * self.options.beam, totals.size(1)))
        per_row = tokens.size(1)
        parents = columns // per_row  # (B, ≤ 2·beam)
        tokens = tokens.view(count, -1).gather(1, columns)
        rows = torch.arange(count, device=device)[:, None]
        flat = rows * width + parents
        parts = [best]
        for number, name in enumerate(self.objective.terms, 1):
            parts.append(beams.sums[number][rows, parents] + terms[name][flat, tokens])
        return _Candidates(parents, tokens, torch.stack(parts))

    def _collect(
        self, beams: _Beams, candidates: _Candidates, finished: list[list[BeamHypothesis]], topped: list[bool]
    ) -> None:
        """Record the candidates that end, among the best `beam` only: the others may still be overtaken."""
        ends = (candidates.tokens == self._end) & candidates.sums[0].isfinite()  # (B, 2·beam)
        for row, column in ends[:, : self.options.beam].nonzero().tolist():
            sentence = beams.sentences[row]
            ids = beams.ids[row, candidates.parents[row, column]].tolist()
            score, *sums = candidates.sums[:, row, column].tolist()
            terms = dict(zip(self.objective.terms, sums, strict=True))
            finished[sentence].append(BeamHypothesis(tuple(ids), score, terms))
            topped[sentence] |= column == 0

    def _survivors(self, beams: _Beams, candidates: _Candidates, kept: Tensor) -> tuple[_Beams, Tensor]:
        """Keep the best `beam` candidates that do not end: the new beams, and their parents (B′, K)."""
        rows = kept[:, None]
        ends = candidates.tokens[kept] == self._end
        columns = ends.int().argsort(dim=1, stable=True)[:, : self.options.beam]  # (B′, K)
        parents, tokens = candidates.parents[rows, columns], candidates.tokens[rows, columns]
        sums = candidates.sums[:, rows, columns]
        # If the vocabulary is smaller than the beam, some of these have ended: no score may continue them.
        sums[0].masked_fill_(tokens == self._end, -torch.inf)
        ids = torch.cat([beams.ids[rows, parents], tokens[:, :, None]], 2)
        return _Beams([beams.sentences[row] for row in kept.tolist()], ids, sums), parents
