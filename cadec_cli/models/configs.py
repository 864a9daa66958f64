"""The sizes of the networks: what config.json keeps, what presets set, and what are flags of `cadec train`.

Each size and its help text stand here, once. A field without a default is the data's to say, so it is no
flag. No torch: help texts do not wait for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cadec_cli.errors import CadecError

# How many sentences are joined for the networks that read several as one, by their names in models.storage.
PASSAGE_SENTENCES = {"2-to-2": 2, "repair": 4}

ACTIVATIONS = ("relu", "gelu", "swish")


def size(default: Any, text: str, choices: tuple[str, ...] = ()) -> Any:
    """A size that can be chosen, with its help and what it may be, where that is a list."""
    return field(default=default, metadata={"help": text, "choices": choices})


@dataclass(frozen=True)
class Shape:
    """What a block needs to know."""

    width: int
    heads: int
    inner: int
    dropout: float
    pre_norm: bool
    activation: str


@dataclass(frozen=True)
class DocumentLMConfig:
    """Sizes of a D-LM."""

    vocabulary: int
    layers: int = size(12, "number of layers")
    width: int = size(768, "width of the model")
    heads: int = size(12, "attention heads per layer")
    inner: int = size(3072, "width of the feed-forward layers")
    positions: int = size(512, "longest sequence, in tokens")
    dropout: float = size(0.1, "dropout rate")
    pre_norm: bool = size(True, "normalise before each sublayer instead of after it")
    tied: bool = size(True, "share one table between input and output embeddings")
    activation: str = size(
        "gelu", f"activation of the feed-forward layers: {', '.join(ACTIVATIONS)}", ACTIVATIONS
    )

    def __post_init__(self) -> None:
        sizes = {
            "vocabulary": self.vocabulary,
            "layers": self.layers,
            "width": self.width,
            "heads": self.heads,
            "inner": self.inner,
            "positions": self.positions,
        }
        check_shape("D-LM", self.shape, sizes)

    @property
    def shape(self) -> Shape:
        """What its blocks are built from."""
        return Shape(self.width, self.heads, self.inner, self.dropout, self.pre_norm, self.activation)


@dataclass(frozen=True)
class TransformerConfig:
    """Sizes of an S-NMT."""

    source_vocabulary: int
    target_vocabulary: int
    encoder_layers: int = size(6, "number of encoder layers")
    decoder_layers: int = size(6, "number of decoder layers")
    width: int = size(512, "width of the model")
    heads: int = size(8, "attention heads per layer")
    inner: int = size(2048, "width of the feed-forward layers")
    positions: int = size(512, "longest sentence, in tokens")
    dropout: float = size(0.1, "dropout rate")
    pre_norm: bool = size(False, "normalise before each sublayer instead of after it")
    tied: bool = size(True, "share one table between target and output embeddings")
    shared_embeddings: bool = size(
        False, "share one table between both languages (they must have one vocabulary)"
    )
    activation: str = size(
        "relu", f"activation of the feed-forward layers: {', '.join(ACTIVATIONS)}", ACTIVATIONS
    )

    def __post_init__(self) -> None:
        sizes = {
            "source_vocabulary": self.source_vocabulary,
            "target_vocabulary": self.target_vocabulary,
            "encoder_layers": self.encoder_layers,
            "decoder_layers": self.decoder_layers,
            "width": self.width,
            "heads": self.heads,
            "inner": self.inner,
            "positions": self.positions,
        }
        check_shape("S-NMT", self.shape, sizes)
        if self.shared_embeddings and self.source_vocabulary != self.target_vocabulary:
            raise CadecError("shared_embeddings needs one vocabulary for both languages")

    @property
    def shape(self) -> Shape:
        """What its blocks are built from."""
        return Shape(self.width, self.heads, self.inner, self.dropout, self.pre_norm, self.activation)


@dataclass(frozen=True)
class DocTransformerConfig(TransformerConfig):
    """Sizes of a DocTransformer: those of its S-NMT, and of what reads the sentences before."""

    context_layers: int = size(1, "number of layers of the context encoder")
    context_sentences: int = size(3, "number of source sentences before the current one that are read")

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes = {"context_layers": self.context_layers, "context_sentences": self.context_sentences}
        check_shape("DocTransformer", self.shape, sizes)


def check_shape(what: str, shape: Shape, sizes: dict[str, int]) -> None:
    """Refuse a configuration that can't be built, naming everything that is wrong with it."""
    wrong = [f"{name} must be at least 1, not {value}" for name, value in sizes.items() if value < 1]
    if shape.heads >= 1 and shape.width % shape.heads:
        wrong.append(f"width {shape.width} is not a multiple of heads {shape.heads}")
    if not 0 <= shape.dropout < 1:
        wrong.append(f"dropout must be in [0, 1), not {shape.dropout}")
    if shape.activation not in ACTIVATIONS:
        wrong.append(f"activation must be one of {', '.join(ACTIVATIONS)}, not {shape.activation!r}")
    if wrong:
        raise CadecError(f"this {what} can't be built: " + "; ".join(wrong))
