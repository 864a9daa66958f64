"""Fine-tuning of a pretrained language model on documents: how it differs from training our own D-LM.

The model is read from a directory with the files that a bundle has (config.json, weights, tokenizer.json,
language-model.json). The result is a directory of the same form: a bundle can be built from it, and
transformers can load it.

Corpora with one side are documents of a language. Those with two are pairs, which the model reads in turn, a
source sentence and its translation, to predict the translations.

All weights of the layers are trained. The token tables are not, unless the options say so: they are most of a
small multilingual model, nearly all their rows belong to tokens that never occur in the documents, and half
of their gradient would only push those tokens away.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cadec_cli.errors import CadecError
from cadec_cli.fs.atomic import atomic_directory
from cadec_cli.fs.read import sha256
from cadec_cli.models.pretrained_settings import (
    LANGUAGE_SETTINGS,
    ORIGIN,
    read_language_settings,
    write_settings,
)
from cadec_cli.text.token_text import tokenizer_checksum
from cadec_cli.text.tokenizers.line_text import PLAIN, LineText
from cadec_cli.training.kinds import Kind
from cadec_cli.training.presets import FineTuningOptions, WindowOptions

if TYPE_CHECKING:
    from torch import Tensor

    from cadec_cli.data.batches import Examples, WeightedShard
    from cadec_cli.data.shards import SideInfo
    from cadec_cli.models.storage import Model

# Appended to the name of the original model, once, however often it is fine-tuned.
TUNED = ", fine-tuned"


def fine_tuning_kind(origin: Path) -> Kind:
    """The kind that fine-tunes the pretrained language model in a directory."""
    settings = read_language_settings(origin)
    text = LineText.load(origin / "tokenizer.json", boundary=settings.boundary, start=settings.start)
    return Kind(
        name="lm",
        help="",
        config=FineTuningOptions,
        data_options=WindowOptions,
        lengths=("window",),
        examples=partial(_examples, text.start),
        network=partial(_network, origin, tokenizer_checksum(text)),
        learns=_learning,
        start_from=_weights,
        presets="fine-tuning",
        positions=settings.positions,
        judged={"predict": "all"},
        kept=ORIGIN,
        save=partial(_save, origin),
    )


def _examples(
    start: int, shards: Sequence[WeightedShard], options: WindowOptions, sizes: Mapping[str, Any]
) -> Examples:
    from cadec_cli.data.batches import PairWindows, SentenceWindows, tokens_seen

    windows = PairWindows if len(shards[0].shard.sides) == 2 else SentenceWindows
    return windows(
        shards,
        options.window,
        options.stride,
        options.min_document_tokens,
        start=start,
        among=tokens_seen(shards) if sizes["predict"] == "seen" else None,
    )


def _network(origin: Path, checksum: str, sizes: Mapping[str, Any], sides: Sequence[SideInfo]) -> Model:
    from cadec_cli.models.pretrained_lm import PretrainedLM

    FineTuningOptions(**sizes)  # refuses invalid values
    if any(side.pipeline_checksum != checksum for side in sides):
        raise CadecError(
            "the corpora were not prepared with the tokenizer of the pretrained model",
            "prepare them with `cadec prepare text -p` and the model",
        )
    return PretrainedLM.shaped_as(origin)


def _learning(network: Model, sizes: Mapping[str, Any]) -> Collection[str]:
    from cadec_cli.models.pretrained_lm import PretrainedLM

    assert isinstance(network, PretrainedLM)
    frozen = network.tables if sizes["learn"] == "layers" else frozenset()
    return network.read_by_text - frozen


def _weights(network: Model, origin: Path, sides: Sequence[SideInfo]) -> Mapping[str, Tensor]:
    from cadec_cli.models.huggingface import load_network
    from cadec_cli.models.storage import model_state

    return {f"model.{name}": weight for name, weight in model_state(load_network(origin).model).items()}


def _save(origin: Path, directory: Path, network: Model, pipelines: Mapping[str, str]) -> None:
    from cadec_cli.models.pretrained_lm import PretrainedLM

    assert isinstance(network, PretrainedLM)
    settings = read_language_settings(origin)
    with atomic_directory(directory, marker=LANGUAGE_SETTINGS) as part:
        network.save(part)
        shutil.copyfile(origin / "tokenizer.json", part / "tokenizer.json")
        weights = part / "model.safetensors"
        weights.chmod((part / "config.json").stat().st_mode)  # it was created readable by its owner only
        tuned = dataclasses.replace(
            settings,
            origin=f"{settings.origin.removesuffix(TUNED)}{TUNED}",
            weights=sha256(weights),
            no_context={},  # it has learnt how documents begin
            verified="",
            template=PLAIN if len(pipelines) == 2 else settings.template,
        )
        write_settings(part / LANGUAGE_SETTINGS, tuned)
