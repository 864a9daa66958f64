"""The learning rate as a function of the update's number, which starts at 1."""

import math

from cadec_cli.training.options import TrainingOptions


def learning_rate(options: TrainingOptions, update: int) -> float:
    """Linear warm-up to the peak, then as the schedule says."""
    warmup = max(options.warmup, 1)
    if update < warmup:
        return options.learning_rate * update / warmup
    if options.schedule == "inverse-sqrt":
        return options.learning_rate * math.sqrt(warmup / update)
    if options.schedule == "cosine":
        done = min(1.0, (update - warmup) / max(options.max_updates - warmup, 1))
        return options.learning_rate * 0.5 * (1 + math.cos(math.pi * done))
    if options.schedule == "cooldown":
        # Constant, then straight down to 0 over the last fifth: the end may still be moved before that.
        left = (options.max_updates - update) / max(options.max_updates / 5, 1)
        return options.learning_rate * min(1.0, max(0.0, left))
    return options.learning_rate
