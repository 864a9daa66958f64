"""The kinds of models that can be trained: all that tells one kind's training from another's, an entry each.

`cadec train KIND` and its flags come from this table. It knows neither the loop nor the command line. The
help reads it too, so its functions import torch only when they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cadec_cli.errors import CadecError
from cadec_cli.models.configs import DocumentLMConfig, TransformerConfig
from cadec_cli.training.options import PairOptions, WindowOptions

if TYPE_CHECKING:
    from torch import Tensor

    from cadec_cli.data.batches import Examples, WeightedShard
    from cadec_cli.data.shards import Shard, SideInfo
    from cadec_cli.models.storage import Model
    from cadec_cli.text.pipeline import TextPipeline
    from cadec_cli.training.loss import Loss


def label_loss(label_smoothing: float) -> Loss:
    """The loss of most kinds: −log p of the labels. Dev figures are taken without smoothing."""
    from cadec_cli.training.loss import cross_entropy

    return cross_entropy(label_smoothing)


def all_learn(parameter: str) -> bool:
    """Let every parameter learn."""
    return True


def all_weights(network: Model, directory: Path, sides: Sequence[SideInfo]) -> Mapping[str, Tensor]:
    """Start where another training of the same network ended: same sizes, same text pipelines."""
    from cadec_cli.models.storage import check_pipeline, kind_of, load_model, model_state

    stored = load_model(directory, kind_of(network))
    for side in sides:
        check_pipeline(stored, side.language, side.pipeline_checksum, directory)
    theirs, ours = (asdict(model.config) for model in (stored.model, network))
    other = [f"{name} {theirs[name]}" for name in ours if name != "dropout" and theirs[name] != ours[name]]
    if other:
        raise CadecError(
            f"{directory} is a network of other sizes: {', '.join(other)}", "give the same sizes as flags"
        )
    return model_state(stored.model)


@dataclass(frozen=True)
class Kind:
    """A kind of model that can be trained. What has a default is what most kinds do."""

    name: str  # cadec train NAME; "kind" in run.json
    help: str  # of the command, with an example
    config: type[Any]  # sizes of the network; fields without a default are the data's to say
    data_options: type[Any]  # how examples are made of the data
    lengths: tuple[str, ...]  # data options that must not exceed the network's `positions`
    examples: Callable[[Sequence[WeightedShard], Any], Examples]  # of shards and data options
    network: Callable[[Mapping[str, Any], Sequence[SideInfo]], Model]  # of sizes and the corpora's sides
    loss: Callable[[float], Loss] = label_loss  # of the label smoothing
    learns: Callable[[str], bool] = all_learn  # which parameters, by name; the others stay as they are
    # Which weights of the model in a directory go where, for --start-from. Names are the new network's; what
    # is not named keeps its fresh weights.
    start_from: Callable[[Model, Path, Sequence[SideInfo]], Mapping[str, Tensor]] = all_weights
    # BLEU of dev corpora, decoded by the target language's pipeline; None for kinds that do not translate.
    bleu: Callable[[Model, Sequence[Shard], TextPipeline], float] | None = None
    presets: str = ""  # another kind whose presets it shares

    @property
    def preset_family(self) -> str:
        """The start of its presets' file names."""
        return self.presets or self.name


def _sentence_pairs(shards: Sequence[WeightedShard], options: PairOptions) -> Examples:
    from cadec_cli.data.batches import SentencePairs

    return SentencePairs(shards, options.max_length)


def _transformer(sizes: Mapping[str, Any], sides: Sequence[SideInfo]) -> Model:
    from cadec_cli.models.transformer import Transformer

    source, target = (side.vocabulary_size for side in sides)
    return Transformer(TransformerConfig(source_vocabulary=source, target_vocabulary=target, **sizes))


def _greedy_bleu(network: Model, dev: Sequence[Shard], target: TextPipeline) -> float:
    from cadec_cli.models.transformer import Transformer
    from cadec_cli.training.greedy import corpus_bleu

    assert isinstance(network, Transformer)
    return corpus_bleu(network, dev, target)


def _windows(shards: Sequence[WeightedShard], options: WindowOptions) -> Examples:
    from cadec_cli.data.batches import DocumentWindows

    return DocumentWindows(shards, options.window, options.stride, options.min_document_tokens)


def _document_lm(sizes: Mapping[str, Any], sides: Sequence[SideInfo]) -> Model:
    from cadec_cli.models.doclm import DocumentLM

    return DocumentLM(DocumentLMConfig(vocabulary=sides[0].vocabulary_size, **sizes))


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            name="lm",
            help="""Train a D-LM, the document language model of the target language.

            Example: cadec train lm --data plays --data jokes=0.5 --dev plays-dev -o runs/lm --preset small
            """,
            config=DocumentLMConfig,
            data_options=WindowOptions,
            lengths=("window",),
            examples=_windows,
            network=_document_lm,
        ),
        Kind(
            name="nmt",
            help="""Train an S-NMT, the sentence-level translation model.

            Example: cadec train nmt --data pairs --dev pairs-dev -o runs/nmt --preset small
            """,
            config=TransformerConfig,
            data_options=PairOptions,
            lengths=("max_length",),
            examples=_sentence_pairs,
            network=_transformer,
            bleu=_greedy_bleu,
        ),
    )
}
