"""A causal language model of transformers as a network to train, stored in the same way as ours.

It uses its own forward pass and its own masks. Padding on the right needs no mask: attention only looks back,
and padded positions are never scored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from cadec_cli.models import huggingface
from cadec_cli.models.huggingface import quiet_transformers, transformers_library
from cadec_cli.models.layers import Network
from cadec_cli.models.pretrained_settings import check_configuration


@dataclass(frozen=True)
class PretrainedLMConfig:
    """The configuration that transformers builds the network from."""

    architecture: Mapping[str, Any]  # config.json


class PretrainedLM(Network):
    """p(next token | all tokens before it)."""

    config: PretrainedLMConfig

    def __init__(self, config: PretrainedLMConfig) -> None:
        super().__init__()
        self.config = config
        self.model = huggingface.new_model(transformers_config(config)).float()
        self._computing = huggingface.Network(self.model)

    @classmethod
    def shaped_as(cls, directory: Path) -> PretrainedLM:
        """A network with the shape of the model in a directory, and random weights."""
        with quiet_transformers():
            architecture = huggingface.load_config(directory).to_dict()
        return cls(PretrainedLMConfig(architecture))

    @property
    def tables(self) -> frozenset[str]:
        """The names of the weights of the token tables: the input and output embeddings."""
        parts = (self.model.get_input_embeddings(), self.model.get_output_embeddings())
        own = {id(weight) for part in parts if part is not None for weight in part.parameters()}
        return frozenset(name for name, weight in self.named_parameters() if id(weight) in own)

    @property
    def read_by_text(self) -> frozenset[str]:
        """The names of the weights that a text uses: a model's weights for pictures would learn nothing."""
        decoder = self.model.get_decoder() if hasattr(self.model, "get_decoder") else None
        parts = (decoder or self.model.base_model, self.model.get_output_embeddings())
        own = {id(weight) for part in parts if part is not None for weight in part.parameters()}
        return frozenset(name for name, weight in self.named_parameters() if id(weight) in own)

    def forward(self, tokens: Tensor, *more: Tensor) -> Tensor:
        """Logits (selected, V) of the next token.

        Arguments: tokens (B, T), padded on the right; optionally the ids (C) of the only tokens to predict,
        then logits are (selected, C); last, select (B, T), which picks the wanted positions.
        """
        *among, select = more
        hidden: Tensor = self.model.base_model(input_ids=tokens, use_cache=False).last_hidden_state
        wanted = hidden[select]
        if not among:
            return self._computing.logits(wanted)
        output = self.model.get_output_embeddings()
        bias = None if getattr(output, "bias", None) is None else output.bias[among[0]]
        return self._computing.scale_logits(F.linear(wanted, output.weight[among[0]], bias))

    def save(self, directory: Path) -> None:
        """Write config.json and the weights as transformers does, into a directory that exists."""
        with quiet_transformers():
            self.model.save_pretrained(str(directory), max_shard_size="10TB")  # in one file
        (directory / "generation_config.json").unlink(missing_ok=True)  # cadec does not generate with it


def transformers_config(config: PretrainedLMConfig) -> Any:
    """The configuration as an object of transformers."""
    check_configuration(config.architecture, "this model")
    with quiet_transformers():
        return transformers_library().AutoConfig.for_model(**dict(config.architecture))
