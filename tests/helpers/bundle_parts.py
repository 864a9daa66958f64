"""Tiny models with random weights, and directories of them: what bundles and conversions are tested with."""

from pathlib import Path

import torch

from cadec_cli.models.doclm import DocumentLM, DocumentLMConfig
from cadec_cli.models.storage import Model, save_model
from cadec_cli.models.transformer import Transformer, TransformerConfig
from cadec_cli.text.pipeline import TextPipeline


def shaken(model: Model, seed: int = 1) -> Model:
    """Make every weight random, so that a bias or a norm that was left out, or put elsewhere, is noticed."""
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            centre = 1 if parameter.dim() == 1 else 0
            parameter.copy_(centre + torch.randn(parameter.shape, generator=rng) * 0.25)
    return model.eval()


def tiny_nmt(
    source: int, target: int, pre_norm: bool = False, tied: bool = True, activation: str = "relu"
) -> Transformer:
    config = TransformerConfig(
        source,
        target,
        encoder_layers=2,
        decoder_layers=1,
        width=16,
        heads=2,
        inner=24,
        positions=40,
        pre_norm=pre_norm,
        tied=tied,
        activation=activation,
    )
    model = shaken(Transformer(config))
    assert isinstance(model, Transformer)
    return model


def tiny_lm(
    vocabulary: int, pre_norm: bool = True, tied: bool = True, activation: str = "gelu", seed: int = 1
) -> DocumentLM:
    config = DocumentLMConfig(
        vocabulary,
        layers=2,
        width=16,
        heads=2,
        inner=24,
        positions=48,
        pre_norm=pre_norm,
        tied=tied,
        activation=activation,
    )
    model = shaken(DocumentLM(config), seed)
    assert isinstance(model, DocumentLM)
    return model


def checksums(*pipelines: TextPipeline) -> dict[str, str]:
    """What a model remembers of the pipelines it was trained with."""
    return {pipeline.language: pipeline.checksum for pipeline in pipelines}


def write_parts(directory: Path, english: TextPipeline, russian: TextPipeline) -> None:
    """Pipelines en/ and ru/, models nmt/ and lm/, as training leaves them."""
    english.save(directory / "en")
    russian.save(directory / "ru")
    save_model(directory / "nmt", tiny_nmt(len(english), len(russian)), checksums(english, russian))
    save_model(directory / "lm", tiny_lm(len(russian)), checksums(russian))
