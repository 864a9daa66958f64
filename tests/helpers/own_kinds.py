"""Two kinds of models that the package does not know; run as a program, this is cadec with them in its table.

`lm-frozen` is a D-LM whose embeddings do not learn. `lm-adapted` is a D-LM inside a larger network, of which
only the rest learns; it starts from a D-LM.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from cadec_cli.data.shards import SideInfo
from cadec_cli.models.configs import DocumentLMConfig, size
from cadec_cli.models.doclm import DocumentLM
from cadec_cli.models.layers import Network
from cadec_cli.models.storage import NETWORKS, Model, check_pipeline, load_model, model_state
from cadec_cli.training.kinds import KINDS, Kind


def all_but(network: Model, *beginnings: str) -> set[str]:
    return {name for name, _ in network.named_parameters() if not name.startswith(beginnings)}


FROZEN = replace(
    KINDS["lm"],
    name="lm-frozen",
    help="Train a D-LM but for its embeddings.\n\nExample: cadec train lm-frozen --data docs -o runs/lm",
    learns=lambda network, _: all_but(network, "embedding.", "position."),
    presets="lm",
)


@dataclass(frozen=True)
class AdaptedConfig(DocumentLMConfig):
    narrow: int = size(8, "width of the adapter")


class AdaptedLM(Network):
    config: AdaptedConfig

    def __init__(self, config: AdaptedConfig) -> None:
        super().__init__()
        self.config = config
        self.lm = DocumentLM(config)
        self.down = nn.Linear(config.width, config.narrow)
        self.up = nn.Linear(config.narrow, config.width)

    def forward(self, tokens: Tensor, select: Tensor) -> Tensor:
        x = self.lm.hidden_states(tokens)
        return self.lm.logits((x + self.up(self.down(x).relu()))[select])


def adapted(sizes: Mapping[str, Any], sides: Sequence[SideInfo]) -> Model:
    return AdaptedLM(AdaptedConfig(vocabulary=sides[0].vocabulary_size, **sizes))


def lm_weights(network: Model, directory: Path, sides: Sequence[SideInfo]) -> Mapping[str, Tensor]:
    stored = load_model(directory, "lm")
    check_pipeline(stored, sides[0].language, sides[0].pipeline_checksum, directory)
    return {f"lm.{name}": tensor for name, tensor in model_state(stored.model).items()}


ADAPTED: Kind = replace(
    KINDS["lm"],
    name="lm-adapted",
    help="Train an adapter on a D-LM.\n\nExample: cadec train lm-adapted --start-from lm -o runs/adapted",
    config=AdaptedConfig,
    network=adapted,
    learns=lambda network, _: all_but(network, "lm."),
    start_from=lm_weights,
    presets="lm",
)


if __name__ == "__main__":
    KINDS.update({kind.name: kind for kind in (FROZEN, ADAPTED)})
    NETWORKS["lm-adapted"] = (AdaptedConfig, AdaptedLM)

    from cadec_cli.main import run  # the commands are made from the table, so it must be complete

    run()
