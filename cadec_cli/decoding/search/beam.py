"""C-aware beam search: the S-NMT and the D-LM stepped together, with any objective as the score of a token.

It sees token ids only, of a vocabulary that the S-NMT's target side and the D-LM share. Several sentences
are decoded in step, each after its own context; choosing contexts is the caller's business.

Shapes: B sentences, K live hypotheses of each, N rows of the D-LM (up to two a sentence), V vocabulary.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cadec_cli.errors import CadecError
from cadec_cli.method.objectives import Objective
from cadec_cli.models.doclm import DocumentLM
from cadec_cli.models.layers import Cache, RoomyCache
from cadec_cli.models.transformer import Source, Transformer
from cadec_cli.text.specials import BOS, EOS, PAD

# Contexts read in one row: there attention looks at all of them and a mask hides the others, which with many
# would take more time than padding.
TOGETHER = 4


@dataclass(frozen=True)
class BeamOptions:
    """How to search.

    With `length_penalty` hypotheses are ranked by score / (length with EOS) ** length_penalty; 0 is off.
    `hypotheses` is how many are wanted of a sentence (none given: as many as the beam is wide). The search of
    a sentence ends when so many are finished and one of them has headed the candidates; with 1, a sentence
    ends once its best candidate does, which is fastest, but an objective with an LM could still have
    raised another one above it.
    """

    beam: int = 4
    hypotheses: int | None = None
    temperature: float = 1.0
    alpha: float = 0.0
    length_penalty: float = 0.0
    max_length_ratio: float = 2.0  # tokens of a translation, for each of the source
    max_length_extra: int = 12  # and on top of that

    def __post_init__(self) -> None:
        wrong = []
        if self.beam < 1:
            wrong.append(f"beam must be at least 1, not {self.beam}")
        if not 1 <= self.wanted <= self.beam:
            wrong.append(f"hypotheses must be between 1 and the beam ({self.beam}), not {self.hypotheses}")
        if not 0 < self.temperature < math.inf:
            wrong.append(f"temperature must be above 0, not {self.temperature}")
        if not 0 <= self.alpha < math.inf:
            wrong.append(f"alpha must be 0 or more, not {self.alpha}")
        if not self.max_length_ratio >= 0 or self.max_length_extra < 1:
            wrong.append("max_length_ratio must be 0 or more and max_length_extra at least 1")
        if wrong:
            raise CadecError("this beam search can't be done: " + "; ".join(wrong))

    @property
    def wanted(self) -> int:
        """Hypotheses to return of a sentence."""
        return self.beam if self.hypotheses is None else self.hypotheses


@dataclass(frozen=True)
class BeamHypothesis:
    """A finished translation with its terms, summed over its tokens, the end of the sentence included."""

    ids: tuple[int, ...]  # without EOS
    score: float  # what the objective makes of the terms; no length penalty in it
    translation: float
    conditional: float  # 0 where the objective does not use it
    free: float  # likewise


@dataclass(frozen=True)
class _Beams:
    """The live hypotheses of the sentences still being decoded, best first."""

    sentences: list[int]  # (B) as the caller numbered them
    ids: Tensor  # (B, K, t)
    sums: Tensor  # (4, B, K): score, translation, conditional, free


@dataclass(frozen=True)
class _Candidates:
    """The best continuations of each sentence, 2 × beam of them, best first."""

    parents: Tensor  # (B, 2·beam) which live hypothesis is continued
    tokens: Tensor  # (B, 2·beam) with what
    sums: Tensor  # (4, B, 2·beam)


class LMStreams:
    """The D-LM's two streams, after the context and without it, of all sentences as one batch.

    A row holds one context and, behind it, all live hypotheses of its sentence as a tree: a step appends a
    node for each of them, and a mask tells every node its ancestors. So nothing is reordered or copied when
    beams change, and a context is held once for all of them. A sentence without context has one row for
    both streams: its PMI is 0 exactly.
    """

    def __init__(
        self, lm: DocumentLM, contexts: Sequence[Sequence[int]], uses_conditional: bool, uses_free: bool
    ) -> None:
        self.lm = lm
        self.device = lm.embedding.weight.device
        contexts = contexts if uses_conditional else [[EOS]] * len(contexts)
        lengths = torch.tensor([len(context) for context in contexts], device=self.device)
        sentences = torch.arange(len(contexts), device=self.device)
        self.conditional = sentences if uses_conditional else None  # (B) row of each sentence
        self.free: Tensor | None = None  # (B)
        self.owners = sentences  # (N) sentence of each row
        self.lengths = lengths  # (N) of its context
        if uses_free:
            # Every context starts with EOS, which is all that the free stream sees: it takes that from there.
            apart = (lengths > 1).nonzero()[:, 0]
            self.free = sentences.clone()
            self.free[apart] = len(contexts) + torch.arange(len(apart), device=self.device)
            self.owners = torch.cat([sentences, apart])
            self.lengths = torch.cat([lengths, torch.ones_like(apart)])
        hidden, cache, starts = self._read(contexts)
        slots = torch.arange(int(lengths.max()), device=self.device)  # (S)
        self._context = slots < self.lengths[:, None]  # (N, S)
        where = starts[self.owners][:, None] + torch.where(self._context, slots, 0)  # (N, S) in what was read
        self.start = hidden[where.gather(1, self.lengths[:, None] - 1)]  # (N, 1, D) after the contexts
        self._cache = cache.laid_out(where)
        self._ancestors = torch.zeros(
            len(contexts), 1, 0, dtype=torch.bool, device=self.device
        )  # (B, K, nodes)
        self._depth = 0

    def _read(self, contexts: Sequence[Sequence[int]]) -> tuple[Tensor, RoomyCache, Tensor]:
        """Read a few contexts at a time, behind one another in one row: no time is lost on padding.

        Returns (all tokens, D), a cache of one row with all of them and where in it each context starts.
        """
        cache = RoomyCache()
        hidden = []
        for first in range(0, len(contexts), TOGETHER):
            part = contexts[first : first + TOGETHER]
            tokens = torch.tensor([token for context in part for token in context])
            places = torch.tensor([place for context in part for place in range(len(context))])
            numbers = torch.tensor([number for number, context in enumerate(part) for _ in context])
            order = torch.arange(len(tokens))
            mask = (numbers[:, None] == numbers) & (order[:, None] >= order)
            tokens, places, mask = (tensor[None].to(self.device) for tensor in (tokens, places, mask))
            read = Cache()
            hidden.append(self.lm.hidden(tokens, places, mask, read)[0])
            for layer, (keys, values) in enumerate(read.layers):
                cache.extend(layer, keys, values)
        starts = [0, *itertools.accumulate(map(len, contexts))]
        return torch.cat(hidden), cache, torch.tensor(starts, device=self.device)

    def step(self, tokens: Tensor, parents: Tensor) -> Tensor:
        """Append a node for each token, (B, K), to those numbered by parents: (N, K, D) of every row."""
        count, width = tokens.shape
        nodes = self._ancestors.size(2)
        before = self._ancestors.gather(1, parents[:, :, None].expand(-1, -1, nodes))
        itself = torch.eye(width, dtype=torch.bool, device=self.device).expand(count, -1, -1)
        self._ancestors = torch.cat([before, itself], 2)  # (B, K, nodes + K)
        context = self._context[:, None].expand(-1, width, -1)
        mask = torch.cat([context, self._ancestors[self.owners]], 2)  # (N, K, S + nodes + K)
        positions = (self.lengths + self._depth)[:, None].expand(-1, width)
        self._depth += 1
        return self.lm.hidden(tokens[self.owners], positions, mask, self._cache)

    def keep(self, sentences: Tensor) -> None:
        """Go on with these sentences only, in rising order."""
        rows = torch.isin(self.owners, sentences).nonzero()[:, 0]
        new_row = torch.zeros_like(self.owners)
        new_row[rows] = torch.arange(len(rows), device=self.device)
        self.conditional = None if self.conditional is None else new_row[self.conditional[sentences]]
        self.free = None if self.free is None else new_row[self.free[sentences]]
        self.owners = torch.searchsorted(sentences, self.owners[rows])
        self.lengths = self.lengths[rows]
        self._context = self._context[rows]
        self._ancestors = self._ancestors[sentences]
        self._cache = self._cache.rows(rows)


class BeamSearch:
    """Beam search by an objective; without terms of the LM it is the plain one."""

    def __init__(
        self,
        translation_model: Transformer,
        language_model: DocumentLM | None,
        objective: Objective,
        options: BeamOptions | None = None,
    ) -> None:
        if objective.uses_lm and language_model is None:
            raise CadecError(f"the objective {objective.name} needs a language model")
        self.translation_model = translation_model
        self.language_model = language_model if objective.uses_lm else None
        self.objective = objective
        self.options = options or BeamOptions()
        self.device = translation_model.target_embedding.weight.device

    @torch.inference_mode()
    def search(
        self, sources: Sequence[Sequence[int]], contexts: Sequence[Sequence[int]]
    ) -> list[list[BeamHypothesis]]:
        """Translate sentences (ids without EOS), each after its context; the hypotheses of each, best first.

        A context starts and ends with EOS, and is just that when there is nothing before the sentence. All
        sentences are decoded at once: it is the caller who decides how many that are.
        """
        if not sources:
            return []
        limits = [
            self._length_limit(source, context) for source, context in zip(sources, contexts, strict=True)
        ]
        finished: list[list[BeamHypothesis]] = [[] for _ in sources]
        topped = [False] * len(sources)  # a finished hypothesis has been the best candidate
        beams = _Beams(
            list(range(len(sources))),
            torch.empty(len(sources), 1, 0, dtype=torch.long, device=self.device),
            torch.zeros(4, len(sources), 1, device=self.device),
        )
        encoded = self._encode(sources)
        cache = Cache()
        streams = self._streams(contexts)
        tokens = torch.full((len(sources), 1), BOS, device=self.device)
        lm_hidden = streams.start if streams is not None else None  # (N, 1, D)
        for length in range(max(limits) + 1):
            hidden = self.translation_model.hidden(tokens.view(-1, 1), encoded, cache)  # (B·K, 1, D)
            terms = self._terms(hidden, streams, lm_hidden)
            at_limit = torch.tensor([limits[sentence] <= length for sentence in beams.sentences])
            candidates = self._candidates(beams, terms, at_limit)
            self._collect(beams, candidates, finished, topped)
            alive = [
                row
                for row, sentence in enumerate(beams.sentences)
                if length < limits[sentence] and not self._is_done(finished[sentence], topped[sentence])
            ]
            if not alive:
                break
            count, width = beams.sums.shape[1:]
            kept = torch.tensor(alive, device=self.device)
            beams, parents = self._survivors(beams, candidates, kept)
            tokens = beams.ids[:, :, -1]  # (B, K)
            rows = (kept[:, None] * width + parents).flatten()
            cache = cache.rows(rows)
            if tokens.shape != (count, width):  # else every row still has the source it had
                encoded = encoded.rows(rows)
            if streams is not None:
                if len(alive) < count:
                    streams.keep(kept)
                lm_hidden = streams.step(tokens, parents)
        return [self._ranked(hypotheses) for hypotheses in finished]

    def _length_limit(self, source: Sequence[int], context: Sequence[int]) -> int:
        """Most tokens that a translation may have, such that all positions exist."""
        limit = int(self.options.max_length_ratio * len(source)) + self.options.max_length_extra
        room = self.translation_model.config.positions
        if len(source) + 1 > room:
            raise CadecError(
                f"a sentence of {len(source)} tokens is too long for a model of {room} positions"
            )
        limit = min(limit, room - 1)
        if self.language_model is not None:
            if not context or context[0] != EOS or context[-1] != EOS:
                raise ValueError("a context starts and ends with EOS")
            room = self.language_model.config.positions
            if not self.objective.uses_conditional:
                context = [EOS]
            if len(context) >= room:
                raise CadecError(
                    f"a context of {len(context)} tokens leaves no room in an LM of {room} positions",
                    "use fewer sentences of context",
                )
            limit = min(limit, room - len(context))
        return limit

    def _encode(self, sources: Sequence[Sequence[int]]) -> Source:
        longest = max(map(len, sources)) + 1
        rows = [[*source, EOS, *[PAD] * (longest - len(source) - 1)] for source in sources]
        return self.translation_model.encode(torch.tensor(rows, device=self.device))

    def _streams(self, contexts: Sequence[Sequence[int]]) -> LMStreams | None:
        if self.language_model is None:
            return None
        return LMStreams(
            self.language_model, contexts, self.objective.uses_conditional, self.objective.uses_free
        )

    def _terms(
        self, hidden: Tensor, streams: LMStreams | None, lm_hidden: Tensor | None
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Log-probabilities of every next token, (B·K, V) each: translation, conditional, free."""
        translation = torch.log_softmax(self.translation_model.logits(hidden[:, -1]).float(), -1)
        if streams is None or lm_hidden is None or self.language_model is None:
            return translation, None, None
        logits = self.language_model.logits(lm_hidden).float()  # (N, K, V)
        log_probs = torch.log_softmax(logits.div_(self.options.temperature), -1)
        if self.options.alpha:
            uniform = torch.tensor(self.options.alpha / logits.size(-1), device=self.device).log()
            log_probs = torch.logaddexp(log_probs, uniform) - math.log1p(self.options.alpha)
        conditional, free = (
            None if rows is None else log_probs[rows].flatten(0, 1)
            for rows in (streams.conditional, streams.free)
        )
        return translation, conditional, free

    def _candidates(
        self, beams: _Beams, terms: tuple[Tensor, Tensor | None, Tensor | None], at_limit: Tensor
    ) -> _Candidates:
        count, width = beams.sums.shape[1:]
        translation, conditional, free = terms
        scores = self.objective.score(
            translation, 0.0 if conditional is None else conditional, 0.0 if free is None else free
        )  # (B·K, V)
        if at_limit.any():  # a sentence that may not grow must end
            unsaid = torch.ones(scores.size(-1), dtype=torch.bool, device=self.device)
            unsaid[EOS] = False
            scores = scores.masked_fill(
                at_limit.to(self.device).repeat_interleave(width)[:, None] & unsaid, -torch.inf
            )
        # The best of a sentence are among the best of its rows; topk of short rows is the faster way.
        best, tokens = scores.topk(min(2 * self.options.beam, scores.size(-1)))  # (B·K, ≤ 2·beam)
        totals = (beams.sums[0].flatten()[:, None] + best).view(count, -1)
        best, columns = totals.topk(min(2 * self.options.beam, totals.size(1)))
        per_row = tokens.size(1)
        parents = columns // per_row  # (B, ≤ 2·beam)
        tokens = tokens.view(count, -1).gather(1, columns)
        rows = torch.arange(count, device=self.device)[:, None]
        flat = rows * width + parents
        parts = [best]
        for number, term in enumerate((translation, conditional, free), 1):
            before = beams.sums[number][rows, parents]
            parts.append(before if term is None else before + term[flat, tokens])
        return _Candidates(parents, tokens, torch.stack(parts))

    def _collect(
        self, beams: _Beams, candidates: _Candidates, finished: list[list[BeamHypothesis]], topped: list[bool]
    ) -> None:
        """Take down the candidates that end, among the best `beam` only: others may yet be overtaken."""
        ends = (candidates.tokens == EOS) & candidates.sums[0].isfinite()  # (B, 2·beam)
        for row, column in ends[:, : self.options.beam].nonzero().tolist():
            sentence = beams.sentences[row]
            ids = beams.ids[row, candidates.parents[row, column]].tolist()
            finished[sentence].append(BeamHypothesis(tuple(ids), *candidates.sums[:, row, column].tolist()))
            topped[sentence] |= column == 0

    def _survivors(self, beams: _Beams, candidates: _Candidates, kept: Tensor) -> tuple[_Beams, Tensor]:
        """Go on with the best `beam` candidates that do not end: (the new beams, their parents (B′, K))."""
        rows = kept[:, None]
        ends = candidates.tokens[kept] == EOS
        columns = ends.int().argsort(dim=1, stable=True)[:, : self.options.beam]  # (B′, K)
        parents, tokens = candidates.parents[rows, columns], candidates.tokens[rows, columns]
        sums = candidates.sums[:, rows, columns]
        # Where the vocabulary is smaller than the beam, ended ones are left among them: they are dead.
        sums[0].masked_fill_(tokens == EOS, -torch.inf)
        ids = torch.cat([beams.ids[rows, parents], tokens[:, :, None]], 2)
        return _Beams([beams.sentences[row] for row in kept.tolist()], ids, sums), parents

    def _is_done(self, finished: Sequence[BeamHypothesis], topped: bool) -> bool:
        # As CTranslate2 does it: when all scores are sums of negative numbers nothing below a finished best
        # candidate can rise above it; a length penalty changes that, and there the count alone decides.
        if self.options.length_penalty:
            return len(finished) >= self.options.beam
        return topped and len(finished) >= self.options.wanted

    def _ranked(self, hypotheses: list[BeamHypothesis]) -> list[BeamHypothesis]:
        penalty = self.options.length_penalty
        ranked = sorted(hypotheses, key=lambda made: -made.score / (len(made.ids) + 1) ** penalty)
        return ranked[: self.options.wanted]
