"""Add-α smoothing of a D-LM's probabilities, for the scorer and for the beam: p ← (p + α/|V|) / (1 + α)."""

import math

import torch
from torch import Tensor


def smooth(log_probs: Tensor, alpha: float, vocabulary: int) -> Tensor:
    """log p, smoothed; an α of 0 changes nothing."""
    if not alpha:
        return log_probs
    uniform = torch.tensor(alpha / vocabulary, device=log_probs.device, dtype=log_probs.dtype).log()
    return torch.logaddexp(log_probs, uniform) - math.log1p(alpha)
