"""The sizes of the networks: what config.json keeps, what presets set, and what are flags of `cadec train`.

Each size and its help text stand here, once. A field without a default is the data's to say, so it is no
flag. No torch: help texts do not wait for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cadec_cli.errors import CadecError
from cadec_cli.validation import Bound, Number, OneOf, Truth, Whole, misfits

# How many sentences are joined for the networks that read several as one, by their names in models.storage.
PASSAGE_SENTENCES = {"2-to-2": 2, "repair": 4}

ACTIVATIONS = ("relu", "gelu", "swish")

# What sizes may be: beyond the largest networks of this kind, and small enough to be built. Whether there
# are weights for all of it, `storage` asks before any memory is taken.
_LAYERS, _WIDTH = Whole(1, 512), Whole(1, 1 << 16)
_VOCABULARY = Whole(1, 1 << 22)
_SHAPE: Mapping[str, Bound] = {
    "width": _WIDTH,
    "heads": Whole(1, 1 << 10),
    "inner": Whole(1, 1 << 18),
    "positions": Whole(1, 1 << 20),
    "dropout": Number(0, 1, below=True),
    "pre_norm": Truth(),
    "tied": Truth(),
    "activation": OneOf(ACTIVATIONS),
}
_TRANSLATION: Mapping[str, Bound] = {
    "source_vocabulary": _VOCABULARY,
    "target_vocabulary": _VOCABULARY,
    "encoder_layers": _LAYERS,
    "decoder_layers": _LAYERS,
    "shared_embeddings": Truth(),
    **_SHAPE,
}
# Numbers in a table of positions, which need not be in any file.
MAX_IN_POSITIONS = 1 << 26


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
        check_sizes("D-LM", self, {"vocabulary": _VOCABULARY, "layers": _LAYERS, **_SHAPE})

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
        check_sizes("S-NMT", self, _TRANSLATION)
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
        context = {"context_layers": _LAYERS, "context_sentences": Whole(1, 1000)}
        check_sizes("DocTransformer", self, context)


# kind of a model directory → its configuration; what computes with one is in models.storage.
CONFIGURATIONS: Mapping[str, type[DocumentLMConfig] | type[TransformerConfig]] = {
    "nmt": TransformerConfig,
    "lm": DocumentLMConfig,
    "doc-nmt": DocTransformerConfig,
    "2-to-2": TransformerConfig,
    "repair": TransformerConfig,
}


def check_sizes(what: str, config: DocumentLMConfig | TransformerConfig, bounds: Mapping[str, Bound]) -> None:
    """Refuse a configuration that can't be built, naming everything that is wrong with it."""
    wrong = misfits(config, bounds)
    if not wrong and config.width % config.heads:
        wrong.append(f"width {config.width} is not a multiple of heads {config.heads}")
    if not wrong and config.positions * config.width > MAX_IN_POSITIONS:
        wrong.append(f"positions {config.positions:,} are too many for a width of {config.width:,}")
    if wrong:
        raise CadecError(f"this {what} can't be built: " + "; ".join(wrong))
