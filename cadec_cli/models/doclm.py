"""The D-LM: a decoder-only Transformer with learned positions over whole documents.

Its sequences start with the boundary EOS and have EOS after every sentence; it sees ids only.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from cadec_cli.models.configs import DocumentLMConfig
from cadec_cli.models.layers import Block, Cache, Mask, Network, initialise

__all__ = ["DocumentLM", "DocumentLMConfig"]


class DocumentLM(Network):
    """p(next token | all tokens before it)."""

    config: DocumentLMConfig

    def __init__(self, config: DocumentLMConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.position = nn.Embedding(config.positions, config.width)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(Block(config.shape, cross=False) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width) if config.pre_norm else None
        self.output = nn.Linear(config.width, config.vocabulary, bias=not config.tied)
        initialise(self, 2 * config.layers)
        nn.init.normal_(self.position.weight, std=0.02)
        nn.init.normal_(self.embedding.weight, std=0.02)
        if config.tied:
            self.output.weight = self.embedding.weight

    def forward(self, tokens: Tensor, select: Tensor | None = None) -> Tensor:
        """Score whole sequences at once: logits of the next token.

        tokens (B, T), padded on the right; select (B, T) picks the wanted positions, so that
        padding never reaches the output layer: logits are (selected, V), or (B, T, V) without it.
        """
        x = self.hidden_states(tokens)
        return self.logits(x if select is None else x[select])

    def hidden_states(
        self,
        tokens: Tensor,
        positions: Tensor | None = None,
        mask: Mask | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Run the network up to its last layer: (B, T) → (B, T, D).

        Without a mask attention is causal, cached positions come first, and all rows are of one length.
        With one, mask (B or 1, T, S + T) is True where a token may attend, and positions (B or 1, T) holds
        its position: a tree of continuations is one row, rows of several lengths are padded. The mask may
        also be the parts of a single row, which attend only as they say; then only the parts that are asked
        for are returned.
        """
        seen = cache.length if cache is not None else 0
        length = tokens.size(1)
        if positions is None:
            positions = torch.arange(seen, seen + length, device=tokens.device)[None]
        causal = mask is None and seen == 0
        if mask is None and seen and length > 1:
            mask = torch.ones(length, seen + length, dtype=torch.bool, device=tokens.device).tril(seen)[None]
        if isinstance(mask, Tensor):
            mask = mask[:, None]  # one for all heads
        x = self.dropout(self.embedding(tokens) + self.position(positions))
        asked = None
        for layer, block in enumerate(self.blocks):
            if isinstance(mask, tuple) and layer + 1 == len(self.blocks):
                mask = tuple(part for part in mask if part.asked)
                asked = torch.cat([torch.arange(length, device=x.device)[part.queries] for part in mask])
            x = block(x, mask, causal=causal and length > 1, cache=cache, layer=layer, asked=asked)
        y: Tensor = self.norm(x) if self.norm is not None else x
        return y

    def logits(self, hidden: Tensor) -> Tensor:
        """(…, D) → (…, V)."""
        y: Tensor = self.output(hidden)
        return y
