"""The output layer of a language model over a part of its vocabulary.

    p(t | h) = exp l_t / Σ_{u ∈ V} exp l_u                for a token t of the part V
    p(t | h) = exp l_t / (exp l_t + Σ_{u ∈ V} exp l_u)    for any other

A token outside V, such as a piece of a foreign name, is scored as if V had this one token more. So log p of
a token depends on nothing but the text before it: not on the other hypotheses of a list, and not on other
lists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from cadec_cli.models.int8 import kernels
from cadec_cli.models.int8.linear import WideOutput
from cadec_cli.models.output_layer import all_log_probs

# Logits of the architecture from the products of the output layer: its scale and its softcap.
Finish = Callable[[Tensor], Tensor]
# The logits (edges) of any tokens (edges) after rows (edges, D) of the last layer.
Single = Callable[[Tensor, Tensor], Tensor]


class FittedOutput:
    """Log-probabilities of tokens over `tokens` (rising ids).

    With int8 weights and no `finish`, one compiled pass over the products gives them, and no logits are made.
    """

    def __init__(self, tokens: Tensor, output: nn.Module, single: Single, finish: Finish | None) -> None:
        self.tokens = tokens  # (N)
        self._output = output  # (rows, D) → (rows, N)
        self._single, self._finish = single, finish

    def __len__(self) -> int:
        return len(self.tokens)

    def to(self, device: torch.device, dtype: torch.dtype) -> None:
        """Move it to a device, and compute in another precision."""
        self.tokens = self.tokens.to(device)
        self._output.to(device, dtype)

    def to_int8(self, make: Callable[[nn.Linear], nn.Module]) -> None:
        """Give the output layer int8 weights."""
        if isinstance(self._output, nn.Linear):
            self._output = make(self._output)

    def log_probs(
        self, hidden: Tensor, rows: Tensor, tokens: Tensor, temperatures: Sequence[float]
    ) -> Tensor:
        """log p of each token after its row of a last layer: (temperatures, edges). See `TokenLogProbs`."""
        if self._finish is None and isinstance(self._output, WideOutput) and kernels.takes(hidden):
            return self._in_one_pass(hidden, rows, tokens, temperatures)
        logits = self._logits(self._output(hidden))

        def others(wanted: Tensor) -> Tensor:
            return self._logits(self._single(hidden[rows[wanted]], tokens[wanted]))

        return self._normalised(logits, others, rows, tokens, temperatures)

    def _logits(self, product: Tensor) -> Tensor:
        return (product if self._finish is None else self._finish(product)).float()

    def _in_one_pass(
        self, hidden: Tensor, rows: Tensor, tokens: Tensor, temperatures: Sequence[float]
    ) -> Tensor:
        """The same without logits; each part of the output layer is read while it is in a core's cache."""
        output = self._output
        assert isinstance(output, WideOutput)
        rounded = output.round_rows(hidden)
        places, inside = self.places(tokens)
        places = torch.where(inside, places, -1)
        outside = (~inside).nonzero()[:, 0]
        of = rows[outside]
        own = self._single(hidden[of], tokens[outside]).float() if len(outside) else None
        every = [kernels.SomeLogits(rounded, temperature, rows, places) for temperature in temperatures]
        first = 0
        for part in output.linears:
            product = part(rounded)
            for some in every:
                some.add(product, part.bias, first)
            first += part.out_features
        found = []
        for some, temperature in zip(every, temperatures, strict=True):
            log_probs = some.log_probs
            if own is not None:
                single = own / temperature
                log_probs[outside] = single - torch.logaddexp(some.totals[of], single)
            found.append(log_probs)
        return torch.stack(found)

    def log_probs_of_logits(
        self, logits: Tensor, rows: Tensor, tokens: Tensor, temperatures: Sequence[float]
    ) -> Tensor:
        """The same from logits (rows, V) of the whole vocabulary."""
        fitted = logits.index_select(1, self.tokens)
        return self._normalised(
            fitted, lambda wanted: logits[rows[wanted], tokens[wanted]], rows, tokens, temperatures
        )

    def following(self, hidden: Tensor, temperature: float) -> Tensor:
        """log p of every token of the part after each row of a last layer: (rows, D) → (rows, N)."""
        if self._finish is None and isinstance(self._output, WideOutput) and kernels.takes(hidden):
            rounded = self._output.round_rows(hidden)
            product = torch.cat([part(rounded)[: rounded.rows] for part in self._output.linears], 1)
            return kernels.log_softmax(product, rounded, self._output.bias, temperature)
        if self._finish is None:
            return all_log_probs(self._output, hidden, temperature)
        return (self._logits(self._output(hidden)) / temperature).log_softmax(-1)

    def places(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The place of each token in the part, and whether it is there at all (else the place is any)."""
        places = torch.searchsorted(self.tokens, tokens).clamp_(max=len(self.tokens) - 1)
        return places, self.tokens[places] == tokens

    def _normalised(
        self,
        logits: Tensor,
        others: Callable[[Tensor], Tensor],
        rows: Tensor,
        tokens: Tensor,
        temperatures: Sequence[float],
    ) -> Tensor:
        """`others` gives the logits of the edges of the given numbers, whose tokens are not in the part."""
        places, inside = self.places(tokens)
        outside = (~inside).nonzero()[:, 0]
        own = others(outside) if len(outside) else None
        found = []
        for temperature in temperatures:
            scaled = logits if temperature == 1 else logits / temperature
            normalised = scaled.log_softmax(-1)
            log_probs = normalised[rows, places]
            if own is not None:
                of = rows[outside]
                total = scaled[of, 0] - normalised[of, 0]  # log Σ exp
                single = own / temperature
                log_probs[outside] = single - torch.logaddexp(total, single)
            found.append(log_probs)
        return torch.stack(found)
