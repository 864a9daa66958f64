"""Tiny models with random weights, and directories of them: what bundles and conversions are tested with."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch

from cadec_cli.bundle.build import BundleRequest, build_bundle
from cadec_cli.bundle.manifest import Manifest, read_manifest, record
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
    source: int,
    target: int,
    pre_norm: bool = False,
    tied: bool = True,
    activation: str = "relu",
    *,
    decoder_layers: int = 1,
    positions: int = 40,
    seed: int = 1,
) -> Transformer:
    config = TransformerConfig(
        source,
        target,
        encoder_layers=2,
        decoder_layers=decoder_layers,
        width=16,
        heads=2,
        inner=24,
        positions=positions,
        pre_norm=pre_norm,
        tied=tied,
        activation=activation,
    )
    model = shaken(Transformer(config), seed)
    assert isinstance(model, Transformer)
    return model


def tiny_lm(
    vocabulary: int,
    pre_norm: bool = True,
    tied: bool = True,
    activation: str = "gelu",
    seed: int = 1,
    *,
    positions: int = 48,
) -> DocumentLM:
    config = DocumentLMConfig(
        vocabulary,
        layers=2,
        width=16,
        heads=2,
        inner=24,
        positions=positions,
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


def write_bundle(directory: Path, english: TextPipeline, russian: TextPipeline) -> Path:
    """A bundle en-ru/ of such parts: both models, the S-NMT in int8 too, and a card."""
    write_parts(directory, english, russian)
    (directory / "card.md").write_text("# en-ru\n")
    build_bundle(
        directory / "en-ru",
        BundleRequest(
            source=directory / "en",
            target=directory / "ru",
            nmt=directory / "nmt",
            lm=directory / "lm",
            compute_types=["int8"],
            card=directory / "card.md",
        ),
    )
    return directory / "en-ru"


def sign_again(directory: Path, manifest: Manifest | None = None) -> None:
    """Make the manifest, or another, agree with the files, as whoever swaps them knowingly would."""
    manifest = manifest or read_manifest(directory)
    files = {name: record(directory / name) for name in manifest.files}
    (directory / "bundle.json").write_bytes(replace(manifest, files=files).content())


def write_manifest(directory: Path, value: Mapping[str, object]) -> None:
    """Write a bundle.json by hand, whatever it says, with the checksum that belongs to it."""
    unsigned = {key: value[key] for key in value if key != "checksum"}
    canonical = json.dumps(unsigned, sort_keys=True, separators=(",", ":")).encode()
    signed = {**unsigned, "checksum": hashlib.sha256(canonical).hexdigest()}
    (directory / "bundle.json").write_text(json.dumps(signed))
