"""Whether parts that are sound in themselves were made for one another: a model and its text pipelines.

It reads what a model directory says of itself, never its weights.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cadec_cli.bounds import field_misfits
from cadec_cli.errors import CadecError
from cadec_cli.files import read_json
from cadec_cli.models.configs import CONFIGURATIONS
from cadec_cli.text.corpus_text import CorpusText
from cadec_cli.text.pipeline import TextPipeline


def model_config(directory: Path) -> Mapping[str, Any]:
    """A model directory's config.json, with sizes that a network of its kind can have."""
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
        raise CadecError(f"{path}: {error.message}", error.hint) from None
    return {**stored, "config": dataclasses.asdict(sizes)}


def translation_misfits(stored: Mapping[str, Any], source: TextPipeline, target: TextPipeline) -> list[str]:
    """Why an S-NMT, as its config.json describes it, can't be used with these pipelines."""
    wrong = []
    for side, pipeline in (("source", source), ("target", target)):
        wrong += _pipeline_misfits(stored, pipeline, side)
        wrong += _size_misfits(stored, pipeline, f"{side}_vocabulary")
    return wrong


def lm_misfits(stored: Mapping[str, Any], pipeline: CorpusText) -> list[str]:
    """Why a D-LM, as its config.json describes it, can't be used with this pipeline."""
    return [*_pipeline_misfits(stored, pipeline, "its own"), *_size_misfits(stored, pipeline, "vocabulary")]


def _pipeline_misfits(stored: Mapping[str, Any], pipeline: CorpusText, side: str) -> list[str]:
    trained = stored["pipelines"]
    if pipeline.language not in trained:
        known = ", ".join(map(repr, sorted(trained))) or "no language"
        return [f"the model was trained for {known}, the {side} pipeline is for {pipeline.language!r}"]
    if trained[pipeline.language] != pipeline.checksum:
        return [f"the model was trained with another text pipeline for {pipeline.language!r}"]
    return []


def _size_misfits(stored: Mapping[str, Any], pipeline: CorpusText, key: str) -> list[str]:
    size = stored["config"].get(key)
    if size == len(pipeline):
        return []
    return [f"{key.replace('_', ' ')} of {size} in the model, of {len(pipeline)} in the pipeline"]
