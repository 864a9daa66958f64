"""A translation model of transformers, stepped token by token with its own cache, for the C-aware beam.

Ids are positions in the vocabulary of the converted model, which are the model's own ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from cadec_cli.engines.ctranslate2 import Framing
from cadec_cli.method.lengths import LengthLimits
from cadec_cli.models.huggingface import quiet_transformers, transformers_library
from cadec_cli.text.token_text import TokenText


class TransformersTranslationModel:
    """An S-NMT of Hugging Face between the texts of two languages; `text` is the target's."""

    def __init__(
        self,
        network: Any,
        source: TokenText,
        text: TokenText,
        *,
        framing: Framing,
        start: int,
        positions: int,
        limits: LengthLimits | None = None,
    ) -> None:
        self.network = network
        self.text = text
        self.limits = limits or LengthLimits()
        self._source = source
        self._begin, self._end = (
            _ids(source, tokens) for tokens in (framing.source_begin, framing.source_end)
        )
        self._target_begin = [start, *_ids(text, framing.target_begin)]
        # For the sentence itself and one token that ends it, as for our own models.
        self.positions = positions - max(framing.source_size, len(self._target_begin)) + 1

    def encode(self, sentence: str) -> list[int]:
        """A source sentence in ids, without its framing."""
        return self._source.encode(sentence)

    def steps(self, sources: Sequence[Sequence[int]]) -> TransformersSteps:
        """Begin to translate sentences, token by token."""
        return TransformersSteps(
            self.network,
            [[*self._begin, *source, *self._end] for source in sources],
            self._target_begin,
            len(self.text.vocabulary),
        )


class TransformersSteps:
    """Sentences being translated: rows of the decoder with their keys, and the encoded sources."""

    def __init__(
        self, network: Any, sources: Sequence[Sequence[int]], begin: Sequence[int], vocabulary: int
    ) -> None:
        self._network, self._begin, self._vocabulary = network, begin, vocabulary
        self._device = next(network.parameters()).device
        # If translations start with the last row's token, that is Marian's padding, which is never written.
        rows = network.get_input_embeddings().weight.shape[0]
        self._unwritten = begin[0] if begin[0] == rows - 1 else None
        longest = max(map(len, sources))
        padding = network.config.pad_token_id or 0
        tokens = [[*source, *[padding] * (longest - len(source))] for source in sources]
        real = [[1] * len(source) + [0] * (longest - len(source)) for source in sources]
        self._real = torch.tensor(real, device=self._device)
        with quiet_transformers():
            encoded = network.get_encoder()(
                input_ids=torch.tensor(tokens, device=self._device), attention_mask=self._real
            )
        self._encoded: Tensor = encoded.last_hidden_state
        library = transformers_library()
        self._cache: Any = library.EncoderDecoderCache(library.DynamicCache(), library.DynamicCache())

    def log_probs(self, tokens: Tensor | None) -> Tensor:
        """Append tokens (B, K), or the forced beginning; return log p of every next one: (B·K, V)."""
        if tokens is None:
            rows = torch.tensor([self._begin], device=self._device).expand(len(self._real), -1)
        else:
            rows = tokens.reshape(-1, 1)
        with quiet_transformers():
            made = self._network(
                encoder_outputs=(self._encoded,),
                attention_mask=self._real,
                decoder_input_ids=rows,
                past_key_values=self._cache,
                use_cache=True,
            )
        logits = made.logits[:, -1, : self._vocabulary].float()
        if self._unwritten is not None and self._unwritten < self._vocabulary:
            logits[:, self._unwritten] = -torch.inf
        return torch.log_softmax(logits, -1)

    def keep(self, rows: Tensor, *, same_sources: bool) -> None:
        """Continue with these rows (of B·K), in this order."""
        self._cache.reorder_cache(rows)
        if not same_sources:
            self._encoded = self._encoded.index_select(0, rows)
            self._real = self._real.index_select(0, rows)


def _ids(text: TokenText, tokens: Sequence[str]) -> list[int]:
    places = {token: index for index, token in enumerate(text.vocabulary)}
    return [places[token] for token in tokens]
