"""Log-probabilities from the last layer of a network; compiled operations compute them for int8 outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeGuard

import torch
from torch import Tensor, nn

from cadec_cli.models.int8 import kernels
from cadec_cli.models.int8.linear import Int8Linear, LevelInt8Linear

# From a last layer (rows, D), row numbers in rising order (edges), tokens (edges) and temperatures: log p of
# each token after its row, at each temperature: (temperatures, edges)
TokenLogProbs = Callable[[Tensor, Tensor, Tensor, Sequence[float]], Tensor]


def all_log_probs(output: nn.Module, hidden: Tensor, temperature: float = 1.0) -> Tensor:
    """log p of every token after each position of a last layer: (…, D) → (…, V)."""
    if is_compiled(output) and kernels.takes(hidden):  # so that no logits are written twice
        rounded = output.round_rows(hidden.reshape(-1, hidden.size(-1)))
        made = kernels.log_softmax(output(rounded), rounded, output.bias, temperature)
        return made.view(*hidden.shape[:-1], -1)
    logits: Tensor = output(hidden).float()
    if temperature != 1:
        logits.div_(temperature)
    return torch.log_softmax(logits, -1)


def output_log_probs(output: nn.Module) -> TokenLogProbs:
    """Return a function from a last layer to the log-probabilities of given tokens, by an output layer."""
    by_torch = logit_log_probs(output)
    if not is_compiled(output):
        return by_torch

    def token_log_probs(
        hidden: Tensor, rows: Tensor, tokens: Tensor, temperatures: Sequence[float]
    ) -> Tensor:
        if not kernels.takes(hidden):
            return by_torch(hidden, rows, tokens, temperatures)
        rounded = output.round_rows(hidden)
        product = output(rounded)
        return torch.stack(
            [
                kernels.log_probs(product, rounded, output.bias, temperature, rows, tokens)
                for temperature in temperatures
            ]
        )

    return token_log_probs


def logit_log_probs(logits: Callable[[Tensor], Tensor]) -> TokenLogProbs:
    """The same for a function from a last layer (rows, D) to logits (rows, V)."""

    def token_log_probs(
        hidden: Tensor, rows: Tensor, tokens: Tensor, temperatures: Sequence[float]
    ) -> Tensor:
        made = logits(hidden).float()  # (rows, V)
        found = []
        for number, temperature in enumerate(temperatures, 1):
            scaled = made
            if temperature != 1:
                scaled = made.div_(temperature) if number == len(temperatures) else made / temperature
            # Every other way to a log-sum-exp in torch takes at least three times as long.
            found.append(scaled.log_softmax(-1)[rows, tokens])
        return torch.stack(found)

    return token_log_probs


def is_compiled(output: nn.Module) -> TypeGuard[Int8Linear]:
    """Tell whether compiled operations can turn the products of an output layer into log-probabilities."""
    return type(output) in (Int8Linear, LevelInt8Linear) and kernels.available()
