"""The loss functions that the loop can be given."""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from cadec_cli.data.batches import NO_LABEL, Batch

# The loss of a batch, summed over its labels.
Loss = Callable[[nn.Module, Batch], Tensor]


def cross_entropy(label_smoothing: float = 0.0) -> Loss:
    """−log p(label), for any network that answers its inputs and a selection of positions with logits."""

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        select = batch.labels != NO_LABEL
        logits = model(*batch.inputs, select)  # (labels, V)
        return F.cross_entropy(
            logits.float(), batch.labels[select], reduction="sum", label_smoothing=label_smoothing
        )

    return loss
