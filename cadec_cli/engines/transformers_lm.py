"""A pretrained causal language model as D-LM: it scores tries after their contexts, as `torch_lm` does.

A sentence is a line. c̃ is ⟨start⟩ c1 ⏎ c2 ⏎ … ck ⏎, and without context the start alone. Where neutral texts
are given, no context means the mean of log p after each of them instead: to a model of the web,
log p(y | ⟨start⟩) means "as the beginning of a page", which no sentence of a dialogue is.

It may also read pairs, each sentence before its translation, as a template says, and x before y. Neutral
texts are pairs as well then, if they are known in both languages: log p(y | neutral pairs, x).

There are two ways to the same scores. The fast one gives the network whole tries in one row, with a mask that
not every architecture supports. The slow one is the model's own forward pass over a padded batch of all
hypotheses. `choose_scoring` compares them and decides which to use.

A model that is fitted to an S-NMT predicts a part of its vocabulary, and has int8 weights on disk. The tries
of its rows attend to their own keys only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from cadec_cli.arrays import Floats
from cadec_cli.engines.growing_trees import NextTokens, Trees
from cadec_cli.engines.protocols import LanguageModel, trie_for
from cadec_cli.engines.threads import Cores
from cadec_cli.engines.trie_rows import (
    Block,
    Keys,
    Layout,
    distribute,
    edge_log_probs,
    in_order_of_blocks,
    rows_of,
)
from cadec_cli.errors import CadecError, option
from cadec_cli.method.context import Context, room
from cadec_cli.method.hypotheses import Ids
from cadec_cli.method.objectives import CONDITIONAL, FREE
from cadec_cli.method.options import ScoringOptions
from cadec_cli.method.trie import ScoredTrie, Trie
from cadec_cli.models.fitted_lm import load_int8, read_tokens
from cadec_cli.models.huggingface import Network, load_network
from cadec_cli.models.layers import Cache, Part
from cadec_cli.models.pretrained_settings import read_language_settings
from cadec_cli.text.tokenizers.line_text import PROBES, LineText, PairTemplate, as_line

# The most nats per token by which the two ways may differ.
TOLERANCE = 1e-3
# The most tokens that the test at loading reads.
QUICK = 32
_PLAIN = ScoringOptions()


class TwoWays(LanguageModel, Protocol):
    """A language model that can score in two ways."""

    network: Network
    fast: bool

    @property
    def text(self) -> LineText:
        """Its text: the tokenizer and ids of sentences."""
        ...


@dataclass(frozen=True)
class Probes:
    """Documents of two sentences with lists of hypotheses; the second follows a choice for the first."""

    contexts: tuple[Context, ...]
    first: tuple[tuple[Ids, ...], ...]  # hypotheses, by document
    second: tuple[tuple[Ids, ...], ...]

    @classmethod
    def of(cls, model: TwoWays, length: int = QUICK) -> Probes:
        """Two documents in the model's own tokens, the longer of at most `length` (and its positions)."""
        length = min(length, model.positions)
        size = max(1, min(5, length // 6))
        pieces = _pieces([token for probe in PROBES for token in model.text.encode(probe)], size)
        a, b, c, d = (pieces[place % len(pieces)] for place in (0, 3, 5, 8))
        first = ((a, (*a[:-1], *b[-1:]), b), (c, (*c[:1], *d[1:])))
        second = ((d, (*d[:-1], *c[-1:])), (b, a))
        # The context, two sentences and their boundaries, and the start.
        room = length - 2 * (size + 1) - 1
        long: list[Ids] = []
        while sum(len(ids) + 1 for ids in long) + size + 1 <= room:
            long.append(pieces[(2 * len(long) + 1) % len(pieces)])
        return cls((Context(tuple(long)), Context(tuple(long[:1]))), first, second)

    def scores(self, model: TwoWays) -> Floats:
        """log p of every token of every hypothesis, in the model's current way, with its cache."""
        one = model.score([trie_for(model, ids) for ids in self.first], self.contexts, _PLAIN, remember=True)
        after = [
            context.followed_by(ids[1], scored.memory_after(1))
            for context, ids, scored in zip(self.contexts, self.first, one, strict=True)
        ]
        two = model.score([trie_for(model, ids) for ids in self.second], after, _PLAIN)
        return np.concatenate([scored.edges[0] for scored in (*one, *two)])

    def alone(self, model: TwoWays) -> tuple[Floats, Floats]:
        """log p of the tokens of one hypothesis in the model's current way, and in a pass of its own.

        That pass ends before the sentence does: a model that looks ahead gives other scores.
        """
        ids, context = self.first[0][0], self.contexts[0]
        (scored,) = model.score([trie_for(model, self.first[0])], [context], _PLAIN)
        tokens = [model.text.start, *context.tokens(model.text.boundary)[1:], *ids[:-1]]
        with torch.inference_mode():
            row = torch.tensor([tokens], device=model.network.device)
            logits = model.network.own_logits(row, None, len(ids))[0, -len(ids) :].double()
            places, wanted = torch.arange(len(ids), device=row.device), torch.tensor(ids, device=row.device)
            (own,) = model.network.token_log_probs_of_logits(logits, places, wanted, (1.0,))
        return scored.tokens(0)[: len(ids)], own.cpu().numpy()


def choose_scoring(
    model: TwoWays, probes: Probes, note: Callable[[str], None], *, in_parts: bool = False
) -> float | None:
    """Use the fast way if it agrees with the slow one; return their largest difference, or None if slow.

    With `in_parts`, try first whether the parts of a row can attend to themselves only.
    """
    model.fast = False
    expected = probes.scores(model)
    ours, own = probes.alone(model)
    if not np.abs(ours - own).max() <= TOLERANCE:
        raise CadecError(
            "the language model gives a sentence another score in a batch than by itself, "
            f"by {np.abs(ours - own).max():.1g} nats per token",
            "is it causal? a model that looks at later tokens can't be a D-LM",
        )
    model.fast = True
    for parts in (True, False) if in_parts else (False,):
        model.network.attend_in_parts(parts)
        try:
            difference = float(np.abs(probes.scores(model) - expected).max())
        except Exception:  # an architecture that does not take such a mask can fail in any way
            difference = float("inf")
        if difference <= TOLERANCE:
            return difference
    model.fast = False
    note(
        f"this language model ({model.network.config.model_type}) can't score many hypotheses in one pass: "
        "each is scored by itself, which is slower"
    )
    return None


def check_vocabulary(model: TwoWays, origin: str) -> None:
    """Refuse a tokenizer with more ids than the network has rows."""
    if len(model.text) > model.network.vocabulary:
        raise CadecError(
            f"the tokenizer of {origin} has {len(model.text):,} tokens and its network only "
            f"{model.network.vocabulary:,}",
            "they do not belong together",
        )


def _pieces(tokens: Sequence[int], size: int) -> list[Ids]:
    """Cut tokens into sentences of `size` tokens."""
    return [tuple(tokens[start : start + size]) for start in range(0, len(tokens) - size, size)]


# Positions of one row of the fast way.
ROW = 640
# The most bytes of logits in memory at a time (glibc returns larger blocks to the system, and allocates them
# again each time), and of a padded batch of the slow way.
LOGIT_BYTES = 24 << 20
BATCH_LOGIT_BYTES = 256 << 20
# Tokens of a padded batch.
BATCH_TOKENS = 2048
# The most nats per token that int8 weights may change, on average.
MAX_LOST = 0.5

# Sources whose ids are remembered.
MOST_SOURCES = 1024

Job = tuple[Trie, Context]


class TransformersLanguageModel:
    """A pretrained language model with its text. `fast` tells whether its network supports our masks."""

    def __init__(
        self,
        network: Network,
        text: LineText,
        *,
        positions: int,
        no_context: Sequence[Sequence[str]] = (),
        source_texts: Sequence[Sequence[str]] = (),
        template: PairTemplate | None = None,
        fast: bool = True,
    ) -> None:
        """Make one; `source_texts` are the texts `no_context` in the source language, if they are known."""
        self.network = network
        self.text = text
        self.positions = positions
        self.fast = fast
        self._cores = Cores()
        self._sources: dict[str, Ids] = {}
        self._chunk = max(1, LOGIT_BYTES // (4 * network.predicted))
        self._template = template or PairTemplate()
        self._texts = [Context(tuple(tuple(text.encode(line)) for line in lines)) for lines in no_context]
        self._pairs = [self._in_pairs(*both) for both in zip(source_texts, self._texts, strict=False)]

    @property
    def batch_size(self) -> int:
        """One trie per core, if each core has a row of its own."""
        in_parts = self.fast and self.network.attends_in_parts and self.network.device.type == "cpu"
        return torch.get_num_threads() if in_parts else 1

    @property
    def wave_size(self) -> int:
        """Sentences that take about two seconds on two cores."""
        return 16 if self.network.attends_in_parts else 4

    @torch.inference_mode()
    def score(
        self,
        tries: Sequence[Trie],
        contexts: Sequence[Context],
        scoring_options: ScoringOptions,
        *,
        remember: bool = False,
    ) -> list[ScoredTrie]:
        """Score each trie after its context, which must fit, or after the texts that stand for no context."""
        jobs: list[Job] = []
        counts = []  # of jobs whose mean is a trie's score; 0 for a trie with its own context
        for trie, context in zip(tries, contexts, strict=True):
            texts = [] if context.sentences else self._no_context(trie, context.source)
            jobs += [(trie, text) for text in texts] or [(trie, context)]
            counts.append(len(texts))
        done = iter(self._score_jobs(jobs, scoring_options, remember))
        scored = []
        for trie, count in zip(tries, counts, strict=True):
            if count:
                edges = np.mean([next(done).edges for _ in range(count)], axis=0)
                scored.append(ScoredTrie(trie, edges))  # without memory: no context continues from it
            else:
                scored.append(next(done))
        return scored

    def trees(
        self, contexts: Sequence[Context], terms: Sequence[str], scoring_options: ScoringOptions
    ) -> Trees:
        """Begin to read beginnings after some contexts."""
        if not self.fast:
            raise CadecError(
                "this language model can't read several hypotheses in one pass, as "
                f"{option('search', 'beam')} does",
                f"use {option('search', 'rerank')} or lattice",
            )
        half = self.positions // 2
        free = [self._free_tokens(context.source, half) for context in contexts]
        before = {
            CONDITIONAL: [
                [self._tokens(context)] if context.sentences else own
                for context, own in zip(contexts, free, strict=True)
            ],
            FREE: free,
        }

        def hidden_states(tokens: Tensor, positions: Tensor, seen: Tensor, cache: Cache) -> Tensor:
            return self.network.hidden_states(tokens, positions, seen, cache)[0]

        return Trees(
            hidden_states,
            self._next_tokens,
            {term: before[term] for term in before if term in terms},
            positions=self.positions,
            scoring_options=scoring_options,
            device=self.network.device,
            cache=Cache(),
        )

    @property
    def _next_tokens(self) -> NextTokens:
        fitted = self.network.fitted
        if fitted is None:
            return NextTokens.of_logits(self.network.logits)
        return NextTokens(fitted.following, fitted.tokens, fitted.log_probs)

    def _tokens(self, context: Context) -> list[int]:
        return [self.text.start, *context.tokens(self.text.boundary)[1:]]

    def before_target(self, source: str) -> Ids:
        """What it reads before a translation of a source, as its template says."""
        known = self._sources.get(source)
        if known is None:
            lines = filter(None, self._template.lines(as_line(source)))
            ids = [token for line in lines for token in (*self.text.encode(line), self.text.boundary)]
            known = (*ids, *self.text.encode_beginning(self._template.beginning))
            if len(self._sources) >= MOST_SOURCES:
                self._sources.clear()
            self._sources[source] = known
        return known

    def _in_pairs(self, sources: Sequence[str], text: Context) -> Context:
        pairs = zip(sources, text.sentences, strict=True)
        return Context(tuple((*self.before_target(source), *ids) for source, ids in pairs))

    def _free_tokens(self, source: Ids | None, most: int) -> list[list[int]]:
        """The texts that stand for no context as tokens, each `most` tokens at most."""
        texts = [replace(text, source=source) for text in (self._texts if source is None else self._pairs)]
        return [self._tokens(text.truncate(most)) for text in texts or [Context(source=source)]]

    def _no_context(self, trie: Trie, source: Ids | None) -> list[Context]:
        """The texts that stand for no context, truncated to the room that there is."""
        texts = self._remembered_texts if source is None else self._remembered_pairs
        return [replace(text, source=source).truncate(room(self.positions, trie.depth)) for text in texts]

    @cached_property
    def _remembered_texts(self) -> list[Context]:
        return self._remember(self._texts)

    @cached_property
    def _remembered_pairs(self) -> list[Context]:
        return self._remember(self._pairs)

    def _remember(self, texts: Sequence[Context]) -> list[Context]:
        """Texts with their keys, which are computed once."""
        texts = [text.truncate(self.positions) for text in texts]
        if not self.fast:
            return texts
        remembered = []
        for text in texts:
            layout = self._layout([Block.of(Trie.of([], self.text.boundary), text, *self._ends)])
            cache = Cache()
            self._hidden_states(layout, cache)
            keys = Keys(cache, tuple(range(text.length)), text.length - 1)
            remembered.append(Context(text.sentences, keys.before_root(), text.length - 1))
        return remembered

    @property
    def _ends(self) -> tuple[int, int]:
        return self.text.start, self.text.boundary

    def _score_jobs(
        self, jobs: Sequence[Job], scoring_options: ScoringOptions, remember: bool
    ) -> list[ScoredTrie]:
        with self.network.quiet():
            scored = (
                self._tree(jobs, scoring_options, remember)
                if self.fast
                else self._flat(jobs, scoring_options)
            )
        if not all(np.isfinite(one.edges).all() for one in scored):
            raise CadecError(
                "the language model gives probabilities that are not numbers",
                f"its weights may be damaged; if they are not, try {option('compute-type', 'float32')}",
            )
        return scored

    def _tree(self, jobs: Sequence[Job], scoring_options: ScoringOptions, remember: bool) -> list[ScoredTrie]:
        """The fast way: whole tries, many in a row."""
        blocks = [Block.of(*job, *self._ends) for job in jobs]
        if not self.network.attends_in_parts:
            rows = rows_of(blocks, ROW)
            return [scored for row in rows for scored in self._score_row(row, scoring_options, remember)]
        # One core for each row: cores that share one wait for each other after every operation.
        numbers = distribute(blocks, ROW, self.batch_size)
        made = self._cores.map(
            lambda row: self._score_row([blocks[number] for number in row], scoring_options, remember),
            numbers,
        )
        return in_order_of_blocks(numbers, made)

    @torch.inference_mode()  # inference mode is per thread
    def _score_row(
        self, row: Sequence[Block], scoring_options: ScoringOptions, remember: bool
    ) -> list[ScoredTrie]:
        layout = self._layout(row)
        cache = layout.cache()
        hidden = self._hidden_states(layout, cache if remember or cache.layers else None)
        edges = layout.edges(
            hidden,
            self.network.token_log_probs,
            self._chunk,
            self.network.predicted,
            scoring_options,
        )
        return layout.scored_tries(edges, cache if remember else None)

    def _layout(self, blocks: Sequence[Block]) -> Layout:
        return Layout(blocks, self.network.device)

    def _hidden_states(self, layout: Layout, cache: Cache | None) -> Tensor:
        if self.network.attends_in_parts:
            return self.network.hidden_states_of_parts(
                layout.tokens, layout.positions, _parts(layout), cache
            )[0]
        seen = torch.zeros(layout.length, layout.cached_total + layout.length, dtype=torch.bool)
        for block, queries, held, own in zip(
            layout.blocks, layout.queries, layout.held, layout.own, strict=True
        ):
            mask = torch.from_numpy(block.mask())
            seen[queries, held] = mask[:, : block.context.remembered]
            seen[queries, own] = mask[:, block.context.remembered :]
        return self.network.hidden_states(layout.tokens, layout.positions, seen.to(layout.device), cache)[0]

    def _flat(self, jobs: Sequence[Job], scoring_options: ScoringOptions) -> list[ScoredTrie]:
        """The slow way: every distinct hypothesis after its context, padded on the right."""
        edges = [np.empty((len(scoring_options.temperatures), len(trie.edge_nodes))) for trie, _ in jobs]
        lines = [line for number, job in enumerate(jobs) for line in self._lines(number, *job)]
        for batch in _batches(lines, self.network.vocabulary):
            for line, log_probs in zip(batch, self._batch(batch, scoring_options), strict=True):
                edges[line.job][:, list(line.path)] = log_probs
        return [ScoredTrie(trie, own) for (trie, _), own in zip(jobs, edges, strict=True)]

    def _lines(self, number: int, trie: Trie, context: Context) -> list[_Line]:
        before = Block.of(trie, context.without_memory(), *self._ends).new
        found = {
            path: _Line(number, [*before, *trie.tokens[trie.node_path(index)[1:]]], len(before), path, trie)
            for index, path in enumerate(trie.paths)
            if path
        }
        return list(found.values())

    def _batch(self, lines: Sequence[_Line], scoring_options: ScoringOptions) -> list[Floats]:
        device = self.network.device
        length = max(len(line.tokens) for line in lines)
        tokens = torch.zeros(len(lines), length, dtype=torch.long)
        real = torch.zeros(len(lines), length, dtype=torch.bool)
        for row, line in enumerate(lines):
            tokens[row, : len(line.tokens)] = torch.tensor(line.tokens)
            real[row, : len(line.tokens)] = True
        wanted = length - min(line.before for line in lines) + 1
        made = self.network.own_logits(tokens.to(device), real.to(device), wanted)  # (B, kept, V)
        cut = length - made.size(1)
        rows = [
            row * made.size(1) + line.before - 1 - cut + place
            for row, line in enumerate(lines)
            for place in range(len(line.path))
        ]
        labels = [token for line in lines for token in line.trie.edge_tokens[list(line.path)]]
        log_probs = edge_log_probs(
            made.flatten(0, 1),
            np.array(rows),
            np.array(labels),
            self.network.token_log_probs_of_logits,
            self._chunk,
            self.network.predicted,
            scoring_options,
        )
        ends = np.cumsum([len(line.path) for line in lines])[:-1]
        return np.split(log_probs, ends, axis=1)


def _parts(layout: Layout) -> list[Part]:
    """Each block of a row with its cached and its new keys."""
    return [
        Part(queries, held, own, block.parents())
        for block, queries, held, own in zip(
            layout.blocks, layout.queries, layout.held, layout.own, strict=True
        )
    ]


@dataclass(frozen=True)
class _Line:
    """One hypothesis after its context."""

    job: int
    tokens: list[int]  # c̃ and the hypothesis
    before: int  # tokens of c̃
    path: tuple[int, ...]  # its edges
    trie: Trie


def _batches(lines: Sequence[_Line], vocabulary: int) -> Iterator[list[_Line]]:
    """Group lines of similar length into batches, within the limits of tokens and logits."""
    batch: list[_Line] = []
    for line in sorted(lines, key=lambda line: len(line.tokens)):
        longer = [*batch, line]
        kept = len(line.tokens) - min(one.before for one in longer) + 1
        too_many = len(longer) * len(line.tokens) > BATCH_TOKENS
        if batch and (too_many or len(longer) * kept * vocabulary * 4 > BATCH_LOGIT_BYTES):
            yield batch
            longer = [line]
        batch = longer
    if batch:
        yield batch


def load_language_model(
    directory: Path,
    *,
    language: str,
    source_language: str = "",
    device: torch.device,
    compute_type: str,
    note: Callable[[str], None],
) -> TransformersLanguageModel:
    """Load a D-LM of a bundle: on a GPU in bfloat16 unless the compute type is float32, on a CPU with int8
    weights if that is the compute type.

    Its settings may have texts in `language` that stand for no context, and the same in `source_language`.
    `note` is called with messages for the user.
    """
    settings = read_language_settings(directory)
    texts, sources = (settings.no_context.get(code, ()) for code in (language, source_language))
    fitted = settings.vocabulary is not None
    try_int8 = fitted and compute_type == "int8" and device.type == "cpu"
    # One core for each: small pieces of work that cores share take them longer than one core.
    text, ready = Cores().both(
        lambda: LineText.load(directory / "tokenizer.json", boundary=settings.boundary, start=settings.start),
        lambda: load_int8(directory) if try_int8 else None,
    )
    network = ready or load_network(directory)
    if fitted and ready is None:
        network.fit(read_tokens(directory, network.vocabulary))
    model = TransformersLanguageModel(
        network,
        text,
        positions=settings.positions,
        no_context=texts,
        source_texts=sources if [*map(len, sources)] == [*map(len, texts)] else (),
        template=PairTemplate(settings.template) if settings.template is not None else None,
    )
    check_vocabulary(model, str(directory))
    if ready is not None:
        return model
    probes = Probes.of(model)
    choose_scoring(model, probes, note, in_parts=fitted)
    if device.type == "cuda":
        model.network.to(device, torch.float32 if compute_type == "float32" else torch.bfloat16)
    elif compute_type == "int8":
        _to_int8(model, probes, directory, note)
    return model


def _to_int8(
    model: TransformersLanguageModel, probes: Probes, directory: Path, note: Callable[[str], None]
) -> None:
    """Use int8 weights, unless they change the scores too much; then reload the float32 weights."""
    before = probes.scores(model)
    try:
        model.network.to_int8()
        lost = float(np.abs(probes.scores(model) - before).mean())
    except Exception:  # an architecture that does more with its linears than call them can fail in any way
        lost = float("inf")
    if not lost <= MAX_LOST:
        why = "can't be run" if lost == float("inf") else f"loses too much ({lost:.2f} nats per token)"
        note(f"the language model {why} with int8 weights: using float32, which is slower")
        fitted, parts = model.network.fitted, model.network.attends_in_parts
        model.network = load_network(directory)
        model.network.attend_in_parts(parts)
        if fitted is not None:
            model.network.fit(fitted.tokens)
