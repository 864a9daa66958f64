"""The parts of a bundle that were trained here: text pipelines and our networks, loaded, checked, written.

All misfits are found before anything is written, and reported at once by whoever asks.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import torch

from cadec_cli.bundle.cache import Note
from cadec_cli.bundle.fitting import lm_misfits, model_config, translation_misfits
from cadec_cli.errors import CadecError
from cadec_cli.models.storage import StoredModel, load_model, model_directory, model_files, model_state
from cadec_cli.models.transformer import Transformer
from cadec_cli.text.corpus_text import CorpusText
from cadec_cli.text.pipeline import TextPipeline
from converters.ctranslate2_models import check_conversion

Loaded = TypeVar("Loaded")


@dataclass(frozen=True)
class OwnModelRequest:
    """Where the parts are that a bundle is asked to be made of: directories, each of them optional."""

    source: Path | None
    target: Path | None
    nmt: Path | None
    lm: Path | None
    lm_pipeline: Path | None
    half: bool
    compute_types: Sequence[str]
    documents: Mapping[str, Path] = field(default_factory=dict)  # by kind: models that read several sentences
    text: CorpusText | None = None  # what a pretrained S-NMT writes, which a D-LM may have been trained with


@dataclass(frozen=True)
class OwnParts:
    """Parts that were loaded and fit each other, unless there is something `wrong` with them."""

    source: TextPipeline | None = None
    target: TextPipeline | None = None
    lm_pipeline: TextPipeline | None = None
    models: Mapping[str, tuple[Path, StoredModel]] = field(default_factory=dict)
    half: bool = False
    wrong: Sequence[str] = ()
    hint: str = ""

    def write(self, directory: Path) -> None:
        """Write pipelines and models into a bundle."""
        if self.source is not None:
            self.source.save(directory / "source")
        if self.target is not None:
            self.target.save(directory / "target")
            if self.lm_pipeline is not None and self.lm_pipeline.checksum != self.target.checksum:
                self.lm_pipeline.save(directory / "lm-pipeline")
        for kind, (given, stored) in self.models.items():
            _write_model(directory / kind, given, stored, self.half)


def load_own_parts(given: OwnModelRequest, note: Note) -> OwnParts:
    """Load what is given, and see whether it fits together."""
    wrong: list[str] = []
    misfits: list[str] = []
    source = _try_load(wrong, given.source, TextPipeline.load)
    target = _try_load(wrong, given.target, TextPipeline.load)
    lm_pipeline = _try_load(wrong, given.lm_pipeline, TextPipeline.load)
    models: dict[str, tuple[Path, StoredModel]] = {}
    for kind, place in (("nmt", given.nmt), ("lm", given.lm), *given.documents.items()):
        directory = _try_load(wrong, place, lambda path: model_directory(path, note))
        if directory is not None and (stored := _loaded_model(wrong, directory, kind)) is not None:
            models[kind] = (directory, stored)
    if given.nmt is not None and given.source is None:
        wrong.append("an S-NMT trained here needs a source pipeline")
    shared = "lm" in models and given.text is not None and _trained_with(models["lm"][1], given.text)
    if given.target is None and (given.lm_pipeline is None or given.nmt is not None) and not shared:
        wrong.append(
            "there is no target pipeline"
            if given.nmt is not None
            else "there is no text pipeline for the D-LM"
        )
    if "nmt" in models and source is not None and target is not None:
        directory, _ = models["nmt"]
        misfits += _prefix_directory(directory, translation_misfits(model_config(directory), source, target))
    target = target or lm_pipeline
    for kind in given.documents.keys() & models.keys():
        directory, _ = models[kind]
        read = target if kind == "repair" else source
        if read is None or target is None:
            wrong.append(f"a {kind} model needs the text pipelines that it was trained with")
        else:
            misfits += _prefix_directory(
                directory, translation_misfits(model_config(directory), read, target)
            )
    lm_text = target
    if shared and given.text is not None:
        directory, _ = models["lm"]
        target = lm_text = None
        misfits += _prefix_directory(directory, lm_misfits(model_config(directory), given.text))
    elif "lm" in models and target is not None:
        directory, stored = models["lm"]
        lm_text = _lm_pipeline(stored, target, lm_pipeline)
        misfits += _prefix_directory(directory, lm_misfits(model_config(directory), lm_text))
        if lm_text.language != target.language:
            wrong.append(f"the D-LM is for {lm_text.language!r}, the target pipeline for {target.language!r}")
    wrong += misfits
    wrong += _storing_misfits(given, models, source, target)
    return OwnParts(
        source if models.keys() & {"nmt", "doc-nmt", "2-to-2"} else None,
        target,
        lm_text,
        models,
        given.half,
        list(dict.fromkeys(wrong)),
        "a model goes with the text pipelines that prepared its training data" if misfits else "",
    )


def _storing_misfits(
    given: OwnModelRequest,
    models: Mapping[str, tuple[Path, StoredModel]],
    source: TextPipeline | None,
    target: TextPipeline | None,
) -> list[str]:
    wrong: list[str] = []
    if given.half:
        for directory, stored in models.values():
            for name, tensor in model_state(stored.model).items():
                if not torch.isfinite(tensor.half()).all():
                    wrong.append(f"{directory}: {name} has values too large for float16")
    network = models["nmt"][1].model if "nmt" in models else None
    if not isinstance(network, Transformer) or source is None or target is None:
        return wrong  # nothing to convert, or what is missing was reported already
    for compute_type in given.compute_types:
        try:
            check_conversion(network, source.subwords.pieces, target.subwords.pieces, compute_type)
        except CadecError as error:
            wrong.append(error.message)
    return wrong


def _try_load(wrong: list[str], given: Path | None, load: Callable[[Path], Loaded]) -> Loaded | None:
    try:
        return load(given) if given is not None else None
    except CadecError as error:
        wrong.append(error.message)
        return None


def _loaded_model(wrong: list[str], directory: Path, kind: str) -> StoredModel | None:
    try:
        model_config(directory)
        return load_model(directory, kind)
    except CadecError as error:
        wrong.append(error.message)
        return None


def _trained_with(stored: StoredModel, text: CorpusText) -> bool:
    return text.checksum in stored.pipelines.values()


def _lm_pipeline(stored: StoredModel, target: TextPipeline, other: TextPipeline | None) -> TextPipeline:
    """The pipeline that the D-LM was trained with; where neither is, the one to complain about."""
    checksums = set(stored.pipelines.values())
    if other is None or target.checksum in checksums:
        return target
    return other


def _prefix_directory(directory: Path, problems: Sequence[str]) -> list[str]:
    return [f"{directory}: {problem}" for problem in problems]


def _write_model(output: Path, directory: Path, stored: StoredModel, half: bool) -> None:
    output.mkdir()
    if not half:
        for name in ("config.json", "model.safetensors"):
            shutil.copyfile(directory / name, output / name)
        return
    state = {name: tensor.half() for name, tensor in model_state(stored.model).items()}
    for name, content in model_files(stored.model, stored.pipelines, state).items():
        (output / name).write_bytes(content)
