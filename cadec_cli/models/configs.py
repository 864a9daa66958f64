"""The sizes of the networks: stored in config.json, set by presets and by flags of `cadec train`.

Each size and its help text are defined only here. A field without a default has no flag: the data decides it.
`read_model_config` reads the config.json of a model that was trained here. The functions for misfits compare
its text pipelines with those it was trained with. Nothing here imports torch, so help texts are quick.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from cadec_cli.errors import CadecError
from cadec_cli.fs.read import read_json
from cadec_cli.validation import Bound, Number, OneOf, Truth, Whole, field_misfits, misfits

if TYPE_CHECKING:
    from cadec_cli.text.pipeline import TextPipeline
    from cadec_cli.text.token_text import CorpusText

# The files of a model that was trained here, as a regular expression.
OWN_FILES = r"config\.json|model\.safetensors"
TRAINED_HERE = "trained with cadec"

# The number of sentences joined into one, for the networks that read them so, by name in models.storage.
PASSAGE_SENTENCES = {"2-to-2": 2, "repair": 4}

ACTIVATIONS = ("relu", "gelu", "swish")

# The bounds of sizes: beyond the largest networks of this kind, and small enough to be built. `storage`
# checks that the file has all the weights before it allocates any memory.
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
# The most numbers in a table of positions, which no file need contain.
MAX_IN_POSITIONS = 1 << 26


def size(default: Any, text: str, choices: tuple[str, ...] = ()) -> Any:
    """A size that the user can set: its default, its help text, and its choices, if they are a list."""
    return field(default=default, metadata={"help": text, "choices": choices})


@dataclass(frozen=True)
class Shape:
    """The sizes of a block."""

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
        """The sizes of its blocks."""
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
        """The sizes of its blocks."""
        return Shape(self.width, self.heads, self.inner, self.dropout, self.pre_norm, self.activation)


@dataclass(frozen=True)
class DocTransformerConfig(TransformerConfig):
    """Sizes of a DocTransformer: those of its S-NMT, and those of its context encoder."""

    context_layers: int = size(1, "number of layers of the context encoder")
    context_sentences: int = size(3, "number of source sentences before the current one that are read")

    def __post_init__(self) -> None:
        super().__post_init__()
        context = {"context_layers": _LAYERS, "context_sentences": Whole(1, 1000)}
        check_sizes("DocTransformer", self, context)


# kind of a model directory → its configuration; the networks are in models.storage.
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


@dataclass(frozen=True)
class OwnSettings:
    """The config.json of a model that was trained here: its sizes, and checksums of its pipelines."""

    kind: str
    sizes: Mapping[str, Any]
    pipelines: Mapping[str, str]  # language → checksum

    origin: ClassVar[str] = TRAINED_HERE
    licence: ClassVar[str | None] = None
    source_languages: ClassVar[tuple[str, ...]] = ()
    target_languages: ClassVar[tuple[str, ...]] = ()

    @property
    def positions(self) -> int:
        """The number of tokens that it can read, boundaries included."""
        positions: int = self.sizes["positions"]
        return positions

    def details(self) -> dict[str, str]:
        """The sizes that `cadec info` shows."""
        shown = ("layers", "encoder_layers", "width")
        return {name: str(self.sizes[name]) for name in shown if name in self.sizes}


def read_model_config(directory: Path) -> OwnSettings:
    """Read a model directory's config.json; invalid sizes for a network of its kind are a CadecError."""
    path = directory / "config.json"
    stored = read_json(path, strict=True)
    if (
        not isinstance(stored, dict)
        or not isinstance(stored.get("config"), dict)
        or not isinstance(stored.get("pipelines"), dict)
        or not isinstance(stored.get("kind"), str)
        or stored["kind"] not in CONFIGURATIONS
    ):
        raise CadecError(f"{path} does not describe a model")
    configuration = CONFIGURATIONS[stored["kind"]]
    if wrong := field_misfits(stored["config"], configuration):
        raise CadecError(f"{path} does not fit: {'; '.join(wrong)}")
    try:
        sizes = configuration(**stored["config"])
    except CadecError as error:
        raise CadecError(f"{path}: {error.marked_message}", error.marked_hint) from None
    return OwnSettings(stored["kind"], dataclasses.asdict(sizes), stored["pipelines"])


def translation_misfits(stored: OwnSettings, source: TextPipeline, target: TextPipeline) -> list[str]:
    """The reasons why a translation model can't be used with these pipelines; empty if it can."""
    wrong = []
    for side, pipeline in (("source", source), ("target", target)):
        wrong += _pipeline_misfits(stored, pipeline, side)
        wrong += _size_misfits(stored, pipeline, f"{side}_vocabulary")
    return wrong


def lm_misfits(stored: OwnSettings, text: CorpusText) -> list[str]:
    """The reasons why a D-LM can't be used with this text pipeline or tokenizer; empty if it can."""
    return [*_pipeline_misfits(stored, text, "its own"), *_size_misfits(stored, text, "vocabulary")]


def _pipeline_misfits(stored: OwnSettings, pipeline: CorpusText, side: str) -> list[str]:
    trained = stored.pipelines
    if pipeline.language not in trained:
        known = ", ".join(map(repr, sorted(trained))) or "no language"
        return [f"the model was trained for {known}, the {side} pipeline is for {pipeline.language!r}"]
    if trained[pipeline.language] != pipeline.checksum:
        return [f"the model was trained with another text pipeline for {pipeline.language!r}"]
    return []


def _size_misfits(stored: OwnSettings, pipeline: CorpusText, key: str) -> list[str]:
    size = stored.sizes.get(key)
    if size == len(pipeline):
        return []
    return [f"{key.replace('_', ' ')} of {size} in the model, of {len(pipeline)} in the pipeline"]
