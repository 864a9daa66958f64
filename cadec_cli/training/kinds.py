"""The kinds of models that can be trained: one entry for each, with everything specific to it.

`cadec train KIND` and its flags come from this table. It depends on neither the loop nor the command line.
Help texts come from it too, so its functions import torch only when they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cadec_cli.errors import CadecError, option
from cadec_cli.models.configs import (
    PASSAGE_SENTENCES,
    DocTransformerConfig,
    DocumentLMConfig,
    TransformerConfig,
)
from cadec_cli.training.presets import FineTuningOptions, PairOptions, WindowOptions

if TYPE_CHECKING:
    from torch import Tensor

    from cadec_cli.data.batches import Examples, WeightedShard
    from cadec_cli.data.shards import Shard, SideInfo
    from cadec_cli.models.storage import Model
    from cadec_cli.text.pipeline import TextPipeline
    from cadec_cli.training.loop import Loss


def label_loss(label_smoothing: float) -> Loss:
    """The loss of most kinds: −log p of the labels. Dev figures are taken without smoothing."""
    from cadec_cli.training.loop import cross_entropy

    return cross_entropy(label_smoothing)


def all_learn(network: Model, sizes: Mapping[str, Any]) -> Collection[str]:
    """Let every parameter learn."""
    return {name for name, _ in network.named_parameters()}


def all_weights(network: Model, directory: Path, sides: Sequence[SideInfo]) -> Mapping[str, Tensor]:
    """Start with the weights of another run, of the same sizes and text pipelines."""
    from cadec_cli.models.storage import kind_of

    return _weights_of(network, directory, sides, (kind_of(network),))


def sentence_weights(network: Model, directory: Path, sides: Sequence[SideInfo]) -> Mapping[str, Tensor]:
    """Start with the weights of an S-NMT, which have the same names here, or of a run of the same kind."""
    from cadec_cli.models.storage import kind_of

    return _weights_of(network, directory, sides, ("nmt", kind_of(network)))


def _weights_of(
    network: Model, directory: Path, sides: Sequence[SideInfo], kinds: Sequence[str]
) -> Mapping[str, Tensor]:
    from cadec_cli.models.storage import check_pipeline, load_model, model_state

    stored = load_model(directory)
    if stored.kind not in kinds:
        named = " or ".join(map(repr, kinds))
        raise CadecError(f"{directory} is a model of kind {stored.kind!r}, not {named}")
    for side in sides:
        check_pipeline(stored, side.language, side.pipeline_checksum, directory)
    theirs, ours = (asdict(model.config) for model in (stored.model, network))
    compared = [name for name in theirs if name in ours and name != "dropout"]
    other = [f"{name} {theirs[name]}" for name in compared if theirs[name] != ours[name]]
    if other:
        raise CadecError(
            f"{directory} is a network of other sizes: {', '.join(other)}", "give the same sizes as flags"
        )
    return model_state(stored.model)


@dataclass(frozen=True)
class Kind:
    """A kind of model that can be trained. Defaults are what most kinds need."""

    name: str  # cadec train NAME; "kind" in run.json
    help: str  # of the command, with an example
    config: type[Any]  # sizes of the network; the data decides fields without a default
    data_options: type[Any]  # how examples are made from the data
    lengths: tuple[str, ...]  # data options that must not exceed the network's `positions`
    # Examples, given shards, data options and the network's sizes.
    examples: Callable[[Sequence[WeightedShard], Any, Mapping[str, Any]], Examples]
    network: Callable[[Mapping[str, Any], Sequence[SideInfo]], Model]  # given sizes and the corpora's sides
    loss: Callable[[float], Loss] = label_loss  # given the label smoothing
    # The names of the parameters that are trained, given the network and its sizes.
    learns: Callable[[Model, Mapping[str, Any]], Collection[str]] = all_learn
    # The weights to start from, read from a model in a directory, by their names in the new network. Those
    # that are missing start from random values.
    start_from: Callable[[Model, Path, Sequence[SideInfo]], Mapping[str, Tensor]] = all_weights
    # BLEU of dev corpora, decoded by the target language's pipeline; None for kinds that do not translate.
    bleu: Callable[[Model, Sequence[Shard], TextPipeline], float] | None = None
    presets: str = ""  # another kind whose presets it shares
    origin: str = ""  # the kind of model that --start-from must name, if it is required
    positions: int | None = None  # fixed by a pretrained network; otherwise one of the sizes
    judged: Mapping[str, Any] = field(default_factory=dict)  # sizes that differ for the dev data
    kept: str = ""  # the directory in the run that keeps a copy of the original model, if the kind needs one
    # Writes the finished model, given the checksums of the pipelines it was trained with.
    save: Callable[[Path, Model, Mapping[str, str]], None] | None = None
    # The options for fine-tuning a pretrained model (fine_tuning.py), if this kind can.
    fine_tuning: type[Any] | None = None

    @property
    def preset_family(self) -> str:
        """The first part of the file names of its presets."""
        return self.presets or self.name


def _sentence_pairs(
    shards: Sequence[WeightedShard], options: PairOptions, sizes: Mapping[str, Any]
) -> Examples:
    from cadec_cli.data.batches import SentencePairs

    return SentencePairs(shards, options.max_length)


def _passages(
    name: str,
) -> Callable[[Sequence[WeightedShard], PairOptions, Mapping[str, Any]], Examples]:
    """Passages with the number of sentences that this network reads joined."""

    def examples(shards: Sequence[WeightedShard], options: PairOptions, sizes: Mapping[str, Any]) -> Examples:
        from cadec_cli.data.batches import JoinedSentences

        return JoinedSentences(shards, options.max_length, PASSAGE_SENTENCES[name])

    return examples


def _pairs_in_context(
    shards: Sequence[WeightedShard], options: PairOptions, sizes: Mapping[str, Any]
) -> Examples:
    from cadec_cli.data.batches import PairsInContext

    return PairsInContext(shards, options.max_length, sizes["context_sentences"], sizes["positions"])


def _two_sided(
    name: str, config: type[TransformerConfig]
) -> Callable[[Mapping[str, Any], Sequence[SideInfo]], Model]:
    """A network from one language to another (or the same), by its name in models.storage.NETWORKS."""

    def network(sizes: Mapping[str, Any], sides: Sequence[SideInfo]) -> Model:
        from cadec_cli.models.storage import NETWORKS

        _refuse_pretrained_tokens(sides, f"`cadec train lm {option('start-from')}` reads such pairs")
        source, target = (side.vocabulary_size for side in sides)
        _, made = NETWORKS[name]
        return made(config(source_vocabulary=source, target_vocabulary=target, **sizes))

    return network


def _what_is_new(network: Model, sizes: Mapping[str, Any]) -> Collection[str]:
    from cadec_cli.models.doctransformer import is_new

    return {name for name, _ in network.named_parameters() if is_new(name)}


def _greedy_bleu(network: Model, dev: Sequence[Shard], target: TextPipeline) -> float:
    from cadec_cli.models.transformer import Transformer
    from cadec_cli.training.loop import corpus_bleu

    assert isinstance(network, Transformer)
    return corpus_bleu(network, dev, target)


def _windows(shards: Sequence[WeightedShard], options: WindowOptions, sizes: Mapping[str, Any]) -> Examples:
    from cadec_cli.data.batches import DocumentWindows

    return DocumentWindows(shards, options.window, options.stride, options.min_document_tokens)


def _refuse_pretrained_tokens(sides: Sequence[SideInfo], remedy: str) -> None:
    if any(side.text == "language model" for side in sides):
        raise CadecError("these corpora are in the tokens of a pretrained language model", remedy)


def _document_lm(sizes: Mapping[str, Any], sides: Sequence[SideInfo]) -> Model:
    from cadec_cli.models.doclm import DocumentLM

    _refuse_pretrained_tokens(
        sides, f"name it with {option('start-from')}; or prepare them with a text pipeline"
    )
    return DocumentLM(DocumentLMConfig(vocabulary=sides[0].vocabulary_size, **sizes))


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            name="lm",
            help="""Train a D-LM, the document language model of the target language.

            With --start-from it starts from another D-LM, or from a pretrained language model: a directory
            of Hugging Face, a GGUF file, or hf:NAME on the hub.

            Example: cadec train lm --data plays --data jokes=0.5 --dev plays-dev -o runs/lm --preset small

            Example: cadec train lm --start-from hf:google/gemma-3-270m --data plays --dev dev -o runs/gemma
            """,
            config=DocumentLMConfig,
            data_options=WindowOptions,
            lengths=("window",),
            examples=_windows,
            network=_document_lm,
            fine_tuning=FineTuningOptions,
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
            network=_two_sided("nmt", TransformerConfig),
            bleu=_greedy_bleu,
        ),
        Kind(
            name="doc-nmt",
            help="""Train a DocTransformer: an S-NMT that also reads the preceding source sentences.

            As in Zhang et al. 2018, it starts from an S-NMT of the same sizes, whose weights do not change:
            only the parts that read the context are trained. The corpora need documents.

            Example: cadec train doc-nmt --start-from runs/nmt --data pseudo --dev pseudo-dev -o runs/doc-nmt
            """,
            config=DocTransformerConfig,
            data_options=PairOptions,
            lengths=("max_length",),
            examples=_pairs_in_context,
            network=_two_sided("doc-nmt", DocTransformerConfig),
            learns=_what_is_new,
            start_from=sentence_weights,
            presets="nmt",
            origin="an S-NMT",
        ),
        Kind(
            name="2-to-2",
            help="""Train a 2-to-2 model: the preceding and the current sentence, translated as one.

            As in Tiedemann & Scherrer 2017. It may start from an S-NMT of the same sizes. The corpora
            need documents.

            Example: cadec train 2-to-2 --start-from runs/nmt --data pseudo --dev pseudo-dev -o runs/2-to-2
            """,
            config=TransformerConfig,
            data_options=PairOptions,
            lengths=("max_length",),
            examples=_passages("2-to-2"),
            network=_two_sided("2-to-2", TransformerConfig),
            start_from=sentence_weights,
            presets="nmt",
        ),
        Kind(
            name="repair",
            help="""Train a DocRepair model: from four sentence-level translations in a row to better ones.

            As in Voita et al. 2019. The corpora are round trips, from `cadec augment round-trip`.

            Example: cadec train repair --data round-trips --dev round-trips-dev -o runs/repair
            """,
            config=TransformerConfig,
            data_options=PairOptions,
            lengths=("max_length",),
            examples=_passages("repair"),
            network=_two_sided("repair", TransformerConfig),
            presets="nmt",
        ),
    )
}
