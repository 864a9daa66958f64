"""Training batches from shards: which examples go into a batch, and in which order.

The order is a pure function of (seed, epoch): no state has to be saved to continue a run exactly, and every
process of a data-parallel run plans the same updates and takes its own share of each.

Examples may reach over sentence boundaries: sentences joined, and sentences in their context. Both need
corpora with documents; no passage and no context reaches beyond its document.

This module knows nothing of text, models or losses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from cadec_cli.arrays import Ints
from cadec_cli.data.shards import Shard, Side, Tokens
from cadec_cli.errors import CadecError, option
from cadec_cli.text.subwords import BOS, EOS, PAD

# The label of a position without one; 0 may be a token.
NO_LABEL = -1
# Examples that are sorted by length together; larger pools pad less and shuffle less.
POOL = 1 << 17


@dataclass(frozen=True)
class Batch:
    """Padded tensors: the inputs of the network, and the labels, which may be NO_LABEL."""

    inputs: tuple[Tensor, ...]
    labels: Tensor

    def to(self, device: torch.device) -> Batch:
        """Move to a device; from pinned memory without waiting."""
        if device.type == "cpu":
            return self
        return Batch(
            tuple(tensor.pin_memory().to(device, non_blocking=True) for tensor in self.inputs),
            self.labels.pin_memory().to(device, non_blocking=True),
        )


@dataclass(frozen=True)
class Update:
    """One step of the optimiser: the examples of each of its batches, and the number of its tokens."""

    batches: list[Ints]
    tokens: int


class Examples(Protocol):
    """A source of training examples."""

    def __len__(self) -> int:
        """The number of examples in an epoch."""

    @property
    def tokens(self) -> int:
        """The number of tokens with a label in an epoch."""

    def epoch(self, seed: int, epoch: int) -> None:
        """Choose this epoch's examples."""

    def lengths(self) -> Ints:
        """Lengths (examples, sides) of this epoch's examples."""

    def labels(self) -> Ints:
        """The number of labels of each of this epoch's examples."""

    def batch(self, examples: Ints) -> Batch:
        """Load examples by number."""


@dataclass(frozen=True)
class WeightedShard:
    """A shard and how often an epoch sees it: 2 is twice, 0.5 a different random half each epoch."""

    shard: Shard
    weight: float = 1.0


def _nothing_in(shards: Sequence[WeightedShard], wanted: str, limit: str) -> CadecError:
    """An error that names corpora without usable examples."""
    named = ", ".join(str(weighted.shard.directory) for weighted in shards)
    have = "has" if len(shards) == 1 else "have"
    if not any(len(weighted.shard) for weighted in shards):
        return CadecError(
            f"{named} {have} no sentences at all",
            f"was it held out with `cadec prepare text {option('dev-output')}`? A smaller "
            f"{option('dev-every')} holds out more",
        )
    return CadecError(f"{named} {have} no {wanted}", limit)


class SentencePairs:
    """Examples for the S-NMT: the pairs of parallel shards; pairs longer than `max_length` are left out."""

    def __init__(self, shards: Sequence[WeightedShard], max_length: int) -> None:
        self._shards = [weighted.shard for weighted in shards]
        self._weights = [weighted.weight for weighted in shards]
        for shard in self._shards:
            if len(shard.sides) != 2:
                raise CadecError(f"{shard.directory} is not a parallel corpus")
        self._all_lengths = [self.measure(shard).astype(np.int32) for shard in self._shards]
        self._fitting = [
            np.flatnonzero((lengths <= max_length).all(axis=1) & (lengths > 1).all(axis=1))
            for lengths in self._all_lengths
        ]
        self.epoch(0, 0)
        if not len(self):
            raise _nothing_in(shards, "sentence pairs that fit", f"max_length is {max_length} tokens")

    def __len__(self) -> int:
        return len(self._sentence)

    @property
    def tokens(self) -> int:
        """Target tokens, EOS included."""
        return int(self.labels().sum())

    def epoch(self, seed: int, epoch: int) -> None:
        """Choose this epoch's pairs."""
        random = np.random.default_rng([seed, epoch, 1])
        chosen = [
            _repeat_by_weight(fitting, weight, random)
            for fitting, weight in zip(self._fitting, self._weights, strict=True)
        ]
        self._shard = np.repeat(np.arange(len(chosen)), [len(part) for part in chosen])
        self._sentence = np.concatenate(chosen)

    def lengths(self) -> Ints:
        """Source and target lengths, EOS included."""
        return self._of_located(self._all_lengths)

    def labels(self) -> Ints:
        """Target lengths, EOS included."""
        labels: Ints = self.lengths()[:, -1]
        return labels

    def _of_located(self, tables: Sequence[npt.NDArray[np.signedinteger[Any]]]) -> Ints:
        """Select the rows of this epoch's examples from tables with one row per sentence of each shard."""
        rows = np.empty((len(self), tables[0].shape[1]), np.int64)
        for number, table in enumerate(tables):
            own = self._shard == number
            rows[own] = table[self._sentence[own]]
        return rows

    def measure(self, shard: Shard) -> Ints:
        """Source and target lengths of all examples that a shard holds, EOS included."""
        return np.stack([side.lengths for side in shard.sides], axis=1)

    def tokens_of(self, shard: Shard, sentence: int) -> tuple[Tokens, Tokens]:
        """Source and target of an example, each with its EOS."""
        source, target = shard.sides
        return source.sentence(sentence), target.sentence(sentence)

    def locate(self, examples: Ints) -> list[tuple[Shard, int]]:
        """The shard and the sentence of an example of this epoch."""
        places = zip(self._shard[examples], self._sentence[examples], strict=True)
        return [(self._shards[shard], int(sentence)) for shard, sentence in places]

    def batch(self, examples: Ints) -> Batch:
        """source (B, S): x EOS; target (B, T): BOS y; labels (B, T): y EOS."""
        pairs = [self.tokens_of(*place) for place in self.locate(examples)]
        sources, targets = zip(*pairs, strict=True)
        labels = pad_rows(targets)
        shifted = torch.cat([torch.full((len(labels), 1), BOS), labels[:, :-1]], dim=1)
        # Of a target shorter than its row, the EOS would be read too: harmless, but it is padding.
        shifted[:, 1:][labels[:, 1:] == PAD] = PAD
        return Batch((pad_rows(sources), shifted), labels.masked_fill(labels == PAD, NO_LABEL))


class DocumentWindows:
    """Examples for the D-LM: windows that slide over documents, not aligned to sentences (DESIGN.md §2).

    The first window of a document starts at its opening boundary; the positions of the next ones change
    with every epoch. The inputs of a window are w0 … wn-1, its labels w1 … wn.
    """

    def __init__(
        self,
        shards: Sequence[WeightedShard],
        window: int,
        stride: int,
        min_document_tokens: int = 0,
        *,
        texts: Sequence[Side | PairText] | None = None,
    ) -> None:
        """Cut the windows from `texts`, one for each shard; by default, from its only side."""
        if not 1 <= stride <= window:
            raise CadecError(f"the stride ({stride}) must be between 1 and the window ({window})")
        self._window, self._stride = window, stride
        self._weights = [weighted.weight for weighted in shards]
        self._texts = [_only_side(weighted.shard) for weighted in shards] if texts is None else texts
        self._documents: list[tuple[Ints, Ints]] = []
        for weighted, text in zip(shards, self._texts, strict=True):
            ends = text.ends[weighted.shard.document_ends - 1].astype(np.int64)
            # From the boundary before the first sentence up to the one after the last, both included.
            starts = np.concatenate([[np.int64(0)], ends[:-1] - 1])
            long_enough = ends - starts > max(min_document_tokens, 2)
            self._documents.append((starts[long_enough], ends[long_enough]))
        self.epoch(0, 0)
        if not len(self):
            raise _nothing_in(
                shards, "documents that are long enough", f"min_document_tokens is {min_document_tokens}"
            )

    def __len__(self) -> int:
        return len(self._start)

    @property
    def tokens(self) -> int:
        """The number of tokens with a label; those in two windows are counted twice."""
        return int(self.labels().sum())

    def epoch(self, seed: int, epoch: int) -> None:
        """Lay this epoch's windows."""
        random = np.random.default_rng([seed, epoch, 2])
        parts = []
        for number, ((starts, ends), weight) in enumerate(zip(self._documents, self._weights, strict=True)):
            start, length = self._windows(number, starts, ends, random)
            kept = _repeat_by_weight(np.arange(len(start)), weight, random)
            parts.append((np.full(len(kept), number), start[kept], length[kept]))
        self._shard, self._start, self._length = (
            np.concatenate(column) for column in zip(*parts, strict=True)
        )

    def lengths(self) -> Ints:
        """Tokens in each window."""
        return self._length[:, None]

    def labels(self) -> Ints:
        """Tokens with a label in each window: all of them."""
        return self._length

    def batch(self, examples: Ints) -> Batch:
        """tokens (B, T) and labels (B, T), shifted by one."""
        windows = [
            self._texts[shard].cut(start, start + length + 1)
            for shard, start, length in zip(
                self._shard[examples], self._start[examples], self._length[examples], strict=True
            )
        ]
        return Batch(
            (pad_rows([window[:-1] for window in windows]),),
            pad_rows([window[1:] for window in windows], NO_LABEL),
        )

    def _windows(
        self, shard: int, starts: Ints, ends: Ints, random: np.random.Generator
    ) -> tuple[Ints, Ints]:
        """The starts and the lengths of the windows of a shard's documents, in ascending order."""
        start, last = self._starts(starts, ends, random, self._window)
        return start, np.minimum(self._window, last - start)

    def _starts(self, starts: Ints, ends: Ints, random: np.random.Generator, reach: int) -> tuple[Ints, Ints]:
        """Starts such that each label is within `reach` of one; with each, where its document ends."""
        stride = self._stride
        shift = random.integers(1, stride + 1, len(starts))  # where the second window starts
        rest = ends - starts - 1 - reach  # labels that the first window does not reach
        count = 1 + (rest > 0) + np.maximum(0, -(-(rest - shift) // stride)) * (rest > 0)
        document = np.repeat(np.arange(len(starts)), count)
        number = np.arange(len(document)) - np.repeat(np.cumsum(count) - count, count)  # within the document
        offset = np.where(number == 0, 0, shift[document] + (number - 1) * stride)
        return starts[document] + offset, ends[document] - 1


class SentenceWindows(DocumentWindows):
    """Windows for a pretrained language model, as in later use: whole sentences after its start token.

    Each begins with a sentence, if that is not too long, after the token `start`. `among` has the only ids
    that the network distinguishes, in ascending order: labels are then positions in it, and the network reads
    it too.
    """

    def __init__(
        self,
        shards: Sequence[WeightedShard],
        window: int,
        stride: int,
        min_document_tokens: int = 0,
        *,
        start: int,
        among: Ints | None = None,
        texts: Sequence[Side | PairText] | None = None,
    ) -> None:
        self._begin, self._among = start, among
        super().__init__(shards, window, stride, min_document_tokens, texts=texts)

    def batch(self, examples: Ints) -> Batch:
        """tokens (B, T) and labels (B, T); between them `among`, if it is given."""
        plain = super().batch(examples)
        (tokens,) = plain.inputs
        tokens[:, 0] = self._begin
        if self._among is None:
            return plain
        labels = plain.labels.numpy()
        places = torch.from_numpy(np.where(labels < 0, NO_LABEL, np.searchsorted(self._among, labels)))
        return Batch((tokens, torch.from_numpy(self._among)), places)

    def _windows(
        self, shard: int, starts: Ints, ends: Ints, random: np.random.Generator
    ) -> tuple[Ints, Ints]:
        # Windows that move to the start of a sentence still reach the next window's first start.
        start, last = self._starts(starts, ends, random, self._stride)
        sentence_ends = self._texts[shard].ends
        # The boundary at or before each start; the very first boundary does not end a sentence.
        before = np.searchsorted(sentence_ends, start + 1, side="right") - 1
        boundary = np.where(before < 0, 0, sentence_ends[np.maximum(before, 0)] - 1)
        # A sentence longer than the overlap of windows stays cut, so that no part of it is skipped.
        begin = np.where(start - boundary <= self._window - self._stride, boundary, start)
        end = np.minimum(begin + self._window, last)
        new = np.diff(np.maximum.accumulate(end), prepend=0) > 0  # others repeat the windows before them
        return begin[new], (end - begin)[new]


class PairText:
    """A parallel shard as one text: a source sentence and its translation in turn, each with its boundary.

    Positions are counted as on a side, from the boundary before everything; `ends` has those of the pairs.
    """

    def __init__(self, shard: Shard) -> None:
        if len(shard.sides) != 2:
            raise CadecError(f"{shard.directory} is not a parallel corpus")
        self._source, self._target = shard.sides
        self.ends: Ints = self._source.ends + self._target.ends - 1

    def cut(self, start: int | np.int64, end: int | np.int64) -> Tokens:
        """The tokens between two positions."""
        first, last, before = self._pairs(start, end)
        boundary = np.array([self._target.info.boundary], self._target.tokens.dtype)
        parts = [boundary]
        for pair in range(first, last + 1):
            parts += [self._source.sentence(pair), self._target.sentence(pair)]
        return np.concatenate(parts)[start - before : end - before]

    def targets(self, start: int | np.int64, end: int | np.int64) -> npt.NDArray[np.bool_]:
        """Tell which tokens between two positions belong to translations, boundaries after them included."""
        first, last, before = self._pairs(start, end)
        parts = [np.zeros(1, bool)]
        for pair in range(first, last + 1):
            parts += [np.zeros(self._length(self._source, pair), bool)]
            parts += [np.ones(self._length(self._target, pair), bool)]
        return np.concatenate(parts)[start - before : end - before]

    def targets_before(self, positions: Ints) -> Ints:
        """The number of tokens of translations before each position."""
        pair, starts = self._pair_at(positions)
        whole = np.where(pair > 0, self._target.ends[pair - 1], 1) - 1
        own: Ints = whole + np.maximum(0, positions - starts - self._source_lengths(pair))
        return own

    def end_of_targets(self, positions: Ints) -> Ints:
        """The end of the last translation, or part of one, before each position."""
        pair, starts = self._pair_at(positions - 1)
        ends: Ints = np.where(positions - starts <= self._source_lengths(pair), starts, positions)
        return ends

    def _pairs(self, start: int | np.int64, end: int | np.int64) -> tuple[int, int, int]:
        """The first and the last pair between two positions, and the position of the boundary before."""
        first, last = (int(np.searchsorted(self.ends, place, side="right")) for place in (start, end - 1))
        return first, last, int(self.ends[first - 1]) - 1 if first else 0

    def _pair_at(self, positions: Ints) -> tuple[Ints, Ints]:
        """The pair at each position, at the end the last one, and where it starts."""
        pair = np.minimum(np.searchsorted(self.ends, positions, side="right"), len(self.ends) - 1)
        return pair, np.where(pair > 0, self.ends[pair - 1], 1)

    def _source_lengths(self, pairs: Ints) -> Ints:
        ends = self._source.ends
        lengths: Ints = ends[pairs] - np.where(pairs > 0, ends[pairs - 1], 1)
        return lengths

    @staticmethod
    def _length(side: Side, sentence: int) -> int:
        return int(side.ends[sentence] - (side.ends[sentence - 1] if sentence else 1))


class PairWindows(SentenceWindows):
    """Windows for a pretrained language model that reads pairs: source and target sentences in turn.

    Each begins with a source sentence and ends with a target sentence, if they are not too long. Only the
    target sentences, with their boundaries, are labels.
    """

    def __init__(
        self,
        shards: Sequence[WeightedShard],
        window: int,
        stride: int,
        min_document_tokens: int = 0,
        *,
        start: int,
        among: Ints | None = None,
    ) -> None:
        self._pairs = [PairText(weighted.shard) for weighted in shards]
        super().__init__(
            shards, window, stride, min_document_tokens, start=start, among=among, texts=self._pairs
        )

    def labels(self) -> Ints:
        """Tokens of target sentences in each window, the first token left out."""
        labels = np.zeros(len(self), np.int64)
        for number, text in enumerate(self._pairs):
            own = self._shard == number
            first = self._start[own] + 1
            labels[own] = text.targets_before(first + self._length[own]) - text.targets_before(first)
        return labels

    def batch(self, examples: Ints) -> Batch:
        """tokens (B, T) and labels (B, T), only in target sentences; between them `among`, if it is given."""
        batch = super().batch(examples)
        for row, shard, start, length in zip(
            batch.labels,
            self._shard[examples],
            self._start[examples],
            self._length[examples],
            strict=True,
        ):
            target = self._pairs[shard].targets(start + 1, start + 1 + length)
            row[:length][torch.from_numpy(~target)] = NO_LABEL
        return batch

    def _windows(
        self, shard: int, starts: Ints, ends: Ints, random: np.random.Generator
    ) -> tuple[Ints, Ints]:
        start, length = super()._windows(shard, starts, ends, random)
        text = self._pairs[shard]
        end = text.end_of_targets(start + 1 + length)  # a source sentence at the end has no label
        some = text.targets_before(end) > text.targets_before(start + 1)
        return start[some], (end - start - 1)[some]


def _only_side(shard: Shard) -> Side:
    if len(shard.sides) != 1:
        raise CadecError(f"{shard.directory} is a parallel corpus, not a monolingual one")
    return shard.sides[0]


def tokens_seen(shards: Sequence[WeightedShard]) -> Ints:
    """The ids that occur in corpora, in ascending order."""
    sides = [side for weighted in shards for side in weighted.shard.sides]
    seen = np.zeros(max(side.info.vocabulary_size for side in sides), bool)
    for side in sides:
        for first in range(0, len(side.tokens), POOL):  # the corpus is mapped, and may be larger than memory
            seen[side.cut(first, first + POOL)] = True
    return np.flatnonzero(seen)


def plan_updates(
    examples: Examples, *, batch_tokens: int, update_tokens: int, seed: int, epoch: int
) -> Iterator[Update]:
    """Yield an epoch's updates: shuffled, bucketed by length, padded batches of at most `batch_tokens` each,
    as many to an update as reach `update_tokens` labels. An example longer than a batch is one of its own.
    """
    examples.epoch(seed, epoch)
    lengths, labels = examples.lengths(), examples.labels()
    random = np.random.default_rng([seed, epoch, 3])
    order = random.permutation(len(lengths))
    pending: list[Ints] = []
    tokens = 0
    for first in range(0, len(order), POOL):
        pool = order[first : first + POOL]
        batches = _batches(pool[_by_length(lengths[pool])], lengths, batch_tokens)
        for number in random.permutation(len(batches)):
            pending.append(batches[number])
            tokens += int(labels[batches[number]].sum())
            if tokens >= update_tokens:
                yield Update(pending, tokens)
                pending, tokens = [], 0
    if pending:
        yield Update(pending, tokens)


def in_order(examples: Examples, batch_tokens: int) -> list[Ints]:
    """All examples in batches sorted by length, always in the same order; for evaluation."""
    examples.epoch(0, 0)
    lengths = examples.lengths()
    return _batches(_by_length(lengths), lengths, batch_tokens)


def padding_share(examples: Examples, batches: Sequence[Ints]) -> float:
    """The share of padding in the tensors of these batches, all sides together."""
    lengths = examples.lengths()
    filled = sum(int(lengths[batch].sum()) for batch in batches)
    size = sum(int(lengths[batch].max(axis=0).sum()) * len(batch) for batch in batches)
    return 1 - filled / size


def _by_length(lengths: Ints) -> Ints:
    """Sort by the last side, ties by the first; up and down in turn, so that neighbours differ little.

    With more than two sides, by the longest first: it would be padded the most.
    """
    last, first = lengths[:, -1], lengths[:, 0]
    if lengths.shape[1] > 2:
        return np.lexsort((first, last, lengths.max(axis=1)))
    return np.lexsort((np.where(last % 2 == 0, first, -first), last))


def _batches(sorted_examples: Ints, lengths: Ints, batch_tokens: int) -> list[Ints]:
    batches = []
    start = longest = 0
    for position, length in enumerate(lengths[sorted_examples].max(axis=1).tolist()):
        grown = max(longest, length)
        if position > start and grown * (position + 1 - start) > batch_tokens:
            batches.append(sorted_examples[start:position])
            start, grown = position, length
        longest = grown
    if start < len(sorted_examples):
        batches.append(sorted_examples[start:])
    return batches


def _repeat_by_weight(items: Ints, weight: float, random: np.random.Generator) -> Ints:
    whole = int(weight)
    part = items[random.random(len(items)) < weight - whole] if weight > whole else items[:0]
    return np.concatenate([np.tile(items, whole), part])


def pad_rows(rows: Sequence[npt.NDArray[np.generic]], fill: int = PAD) -> Tensor:
    """Rows of ids as one tensor, padded on the right."""
    table = np.full((len(rows), max(map(len, rows))), fill, np.int64)
    for row, tokens in zip(table, rows, strict=True):
        row[: len(tokens)] = tokens
    return torch.from_numpy(table)


class JoinedSentences(SentencePairs):
    """Pairs of passages: each sentence with up to `sentences` − 1 before it, both sides likewise.

    A passage is x1 BOS x2 … EOS: the separator of two sentences is the token that a target begins with.
    """

    def __init__(self, shards: Sequence[WeightedShard], max_length: int, sentences: int) -> None:
        if sentences < 1:
            raise CadecError(f"a passage can't have {sentences} sentences")
        self._count = sentences
        self._firsts: dict[Shard, Ints] = {}
        super().__init__(shards, max_length)

    def measure(self, shard: Shard) -> Ints:
        """Lengths of the passages that end with each sentence."""
        self._firsts[shard] = first_before(shard, self._count - 1)
        firsts = self._firsts[shard]
        return np.stack([side.ends - side.starts[firsts] for side in shard.sides], axis=1)

    def tokens_of(self, shard: Shard, sentence: int) -> tuple[Tokens, Tokens]:
        """The passage that ends with a sentence."""
        first = int(self._firsts[shard][sentence])
        source, target = (_join_tokens(side.between(first, sentence)) for side in shard.sides)
        return source, target


class PairsInContext(SentencePairs):
    """Examples for the DocTransformer: sentence pairs, with up to `sentences` of the source before each."""

    def __init__(
        self, shards: Sequence[WeightedShard], max_length: int, sentences: int, max_context: int
    ) -> None:
        if sentences < 1 or max_context < 1:
            raise CadecError("a DocTransformer without context is an S-NMT", "train it with `train nmt`")
        self._count, self._most = sentences, max_context
        self._firsts: dict[Shard, Ints] = {}
        super().__init__(shards, max_length)

    def measure(self, shard: Shard) -> Ints:
        """Lengths of source and target; those of the contexts are stored."""
        self._firsts[shard] = first_before(shard, self._count)
        return super().measure(shard)

    def lengths(self) -> Ints:
        """Source, context and target lengths, EOS included."""
        source, target = super().lengths().T
        context = self._of_located([self._context_lengths(shard)[:, None] for shard in self._shards])
        return np.stack([source, context[:, 0], target], axis=1)

    def _context_lengths(self, shard: Shard) -> Ints:
        starts = shard.sides[0].starts
        lengths: Ints = np.minimum(starts - starts[self._firsts[shard]], self._most)
        return lengths

    def context_of(self, shard: Shard, sentence: int) -> Tokens:
        """The source sentences before a sentence, each with its EOS; a long context is cut at its start."""
        first = int(self._firsts[shard][sentence])
        return shard.sides[0].between(first, sentence - 1)[-self._most :]

    def batch(self, examples: Ints) -> Batch:
        """source (B, S), context (B, C), target (B, T); the first and the last as for the S-NMT."""
        plain = super().batch(examples)
        source, target = plain.inputs
        contexts = [self.context_of(*place) for place in self.locate(examples)]
        if not any(map(len, contexts)):
            return Batch((source, source.new_zeros(len(source), 1), target), plain.labels)
        return Batch((source, pad_rows(contexts), target), plain.labels)


def first_before(shard: Shard, sentences: int) -> Ints:
    """For each sentence, the first sentence of its context, which stays within the document."""
    document_starts = np.concatenate([[np.int64(0)], shard.document_ends[:-1]])
    sizes = np.diff(shard.document_ends, prepend=np.int64(0))
    firsts: Ints = np.maximum(np.repeat(document_starts, sizes), np.arange(len(shard)) - sentences)
    return firsts


def _join_tokens(tokens: Tokens) -> Tokens:
    joined = tokens.copy()
    joined[:-1][joined[:-1] == EOS] = BOS
    return joined
