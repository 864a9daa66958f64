"""Our S-NMT and our DocTransformer in torch: stepped token by token for the beam, or scoring in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cadec_cli.engines.document_models import sentences_before
from cadec_cli.engines.protocols import Passage
from cadec_cli.errors import CadecError
from cadec_cli.method.lengths import LengthLimits
from cadec_cli.models.doctransformer import DocTransformer, SourceInContext
from cadec_cli.models.layers import Cache
from cadec_cli.models.output_layer import all_log_probs
from cadec_cli.models.transformer import Source, Transformer
from cadec_cli.text.subwords import BOS, EOS, PAD
from cadec_cli.text.token_text import TokenText


class TorchTranslationModel:
    """The S-NMT between the texts of two languages; `text` is the target's."""

    def __init__(
        self,
        network: Transformer,
        source: TokenText,
        text: TokenText,
        limits: LengthLimits | None = None,
    ) -> None:
        self.network = network
        self.text = text
        self.limits = limits or LengthLimits()
        self.positions = network.config.positions
        self._source = source

    def encode(self, sentence: str) -> list[int]:
        """A source sentence in ids, without EOS."""
        return self._source.encode(sentence)

    def steps(self, sources: Sequence[Sequence[int]]) -> NMTSteps:
        """Begin to translate sentences (ids without EOS)."""
        device = self.network.target_embedding.weight.device
        return NMTSteps(self.network, self.network.encode(with_ends(sources, device)))


class NMTSteps:
    """Sentences being translated: rows of the decoder, and the sources they attend to.

    Every translation starts with the tokens `begin`.
    """

    def __init__(self, network: Transformer, encoded: Source, begin: Sequence[int] = (BOS,)) -> None:
        self._network = network
        self._begin = list(begin)
        self._device = network.target_embedding.weight.device
        self._encoded = encoded
        self._cache = Cache()
        self._count = encoded.mask.size(0)

    def log_probs(self, tokens: Tensor | None) -> Tensor:
        """Append tokens (B, K), or the beginning, and return log p of every next one: (B·K, V)."""
        if tokens is None:
            rows = torch.tensor([self._begin], device=self._device).expand(self._count, -1)
        else:
            rows = tokens.reshape(-1, 1)
        hidden = self._network.hidden_states(rows, self._encoded, self._cache)  # (B·K, 1, D)
        return all_log_probs(self._network.output, hidden[:, -1].contiguous())

    def keep(self, rows: Tensor, *, same_sources: bool) -> None:
        """Continue with these rows; with `same_sources`, each row has the same source as before."""
        stay = same_sources and torch.equal(rows, torch.arange(len(rows), device=rows.device))
        if not stay:  # rows that are already in order need no copy
            self._cache = self._cache.rows(rows)
        if not same_sources:
            self._encoded = self._encoded.rows(rows)


def with_ends(sentences: Sequence[Sequence[int]], device: torch.device) -> Tensor:
    """Sentences with their EOS as one tensor, padded on the right."""
    return padded_rows([[*sentence, EOS] for sentence in sentences], device)


def padded_rows(rows: Sequence[Sequence[int]], device: torch.device, padding: int = PAD) -> Tensor:
    """Rows of ids as one tensor, padded on the right."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[padding] * (longest - len(row))] for row in rows], device=device)


# Sentences scored at once.
TOGETHER = 64


class TorchDocumentModel:
    """The DocTransformer between the texts of two languages; `text` is the target's."""

    def __init__(
        self,
        network: DocTransformer,
        source: TokenText,
        text: TokenText,
        limits: LengthLimits | None = None,
    ) -> None:
        self.network = network
        self.text = text
        self.limits = limits or LengthLimits()
        self.positions = network.config.positions
        self._source = source

    def passage(self, sentences: Sequence[str], place: int) -> Passage:
        """The source sentences before one, as many as the model was trained with."""
        return sentences_before(sentences, place, self.network.config.context_sentences)

    def last_passage(self, sentences: Sequence[str]) -> Passage:
        """The last of the given sentences, with the source sentences before it."""
        return self.passage(sentences, len(sentences) - 1)

    def fits(self, sentence: str) -> bool:
        """Tell whether the model can read the whole sentence."""
        return len(self.encode(sentence)) < self.positions

    def after(self, passages: Sequence[Passage]) -> StepwiseInContext:
        """The model in the form that the beam steps, for the last sentences of these passages."""
        return StepwiseInContext(self, tuple(passages))

    def encode(self, sentence: str) -> list[int]:
        """A source sentence in ids, without EOS."""
        return self._source.encode(sentence)

    def encode_in_context(
        self, sources: Sequence[Sequence[int]], passages: Sequence[Passage]
    ) -> SourceInContext:
        """Encode sentences (ids without EOS), each after the sentences before it in its passage."""
        device = self.network.target_embedding.weight.device
        contexts = [self._context(passage) for passage in passages]
        # Nothing but padding means no context; a tensor needs at least one column.
        return self.network.encode_in_context(
            with_ends(sources, device), padded_rows([context or [PAD] for context in contexts], device)
        )

    @torch.inference_mode()
    def log_probs(self, passages: Sequence[Passage], targets: Sequence[Sequence[str]]) -> list[float]:
        """log p(ỹ | x, preceding source sentences) of the last translation of each passage."""
        sources = [self.encode(passage.sentence) for passage in passages]
        written = [self.text.encode(target[-1]) for target in targets]
        for ids in (*sources, *written):
            if len(ids) >= self.positions:
                raise CadecError(f"a sentence has {len(ids):,} tokens, the DocTransformer reads fewer")
        order = sorted(range(len(passages)), key=lambda index: len(written[index]))
        scores = [0.0] * len(passages)
        for first in range(0, len(order), TOGETHER):
            part = order[first : first + TOGETHER]
            encoded = self.encode_in_context(
                [sources[index] for index in part], [passages[index] for index in part]
            )
            device = encoded.mask.device
            labels = with_ends([written[index] for index in part], device)
            read = padded_rows([[BOS, *written[index]] for index in part], device)
            logits = self.network.logits(self.network.hidden_states(read, encoded)).float()
            log_probs = logits.log_softmax(-1).gather(2, labels[:, :, None])[:, :, 0]
            totals = log_probs.masked_fill(labels == PAD, 0.0).sum(1).tolist()
            for index, total in zip(part, totals, strict=True):
                scores[index] = total
        return scores

    def _context(self, passage: Passage) -> list[int]:
        ids = [index for text in passage.sentences[: passage.place] for index in (*self.encode(text), EOS)]
        return ids[-self.positions :]


@dataclass(frozen=True)
class StepwiseInContext:
    """A translation model for given passages: it steps their last sentences, in order."""

    model: TorchDocumentModel
    passages: tuple[Passage, ...]

    @property
    def text(self) -> TokenText:
        """The text of the target language: its tokenizer and ids."""
        return self.model.text

    @property
    def positions(self) -> int:
        """The most tokens that it can read and write, the end included."""
        return self.model.positions

    @property
    def limits(self) -> LengthLimits:
        """The length limits of its translations."""
        return self.model.limits

    def encode(self, sentence: str) -> list[int]:
        """A source sentence in ids, without EOS."""
        return self.model.encode(sentence)

    def steps(self, sources: Sequence[Sequence[int]]) -> NMTSteps:
        """Begin to translate the sentences, each after its context."""
        return NMTSteps(self.model.network, self.model.encode_in_context(sources, self.passages))
