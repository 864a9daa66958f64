"""Making bundles: all is loaded and checked first, all misfits are reported at once, then one is written.

A bundle appears whole or not at all, and never with a converted model that disagrees with torch.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

import torch

from cadec_cli.bundle import conversion
from cadec_cli.bundle.cache import Note, silence
from cadec_cli.bundle.manifest import ENGINES, MANIFEST, Conversion, Manifest, conversion_part, record
from cadec_cli.bundle.opening import Bundle, lm_misfits, model_config, translation_misfits
from cadec_cli.errors import CadecError
from cadec_cli.files import atomic_directory
from cadec_cli.method.options import DecodingDefaults
from cadec_cli.models.storage import StoredModel, load_model, model_directory, model_files, model_state
from cadec_cli.models.transformer import Transformer
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.version import __version__
from converters.ctranslate2_models import check_conversion
from converters.verify import Drift

MODEL_CARD = "MODEL_CARD.md"

Loaded = TypeVar("Loaded")


@dataclass(frozen=True)
class _Ingredients:
    """What a bundle is asked to be made of; `kept` is one whose conversions are used where still right."""

    source: Path | None
    target: Path | None
    nmt: Path | None
    lm: Path | None
    lm_pipeline: Path | None
    name: str
    defaults: DecodingDefaults
    half: bool
    compute_types: Sequence[str]
    card: Path | None
    probes: Sequence[tuple[str, str]]
    kept: Bundle | None
    note: Note


@dataclass(frozen=True)
class _Checked:
    """Ingredients that fit each other, loaded."""

    source: TextPipeline | None
    target: TextPipeline
    lm_pipeline: TextPipeline
    models: Mapping[str, tuple[Path, StoredModel]]


def build_bundle(
    output: Path,
    *,
    base: Path | None = None,
    source: Path | None = None,
    target: Path | None = None,
    nmt: Path | None = None,
    lm: Path | None = None,
    lm_pipeline: Path | None = None,
    name: str = "",
    defaults: DecodingDefaults | None = None,
    half: bool = False,
    compute_types: Sequence[str] = (),
    card: Path | None = None,
    probes: Sequence[tuple[str, str]] = (),
    note: Note = silence,
) -> list[Drift]:
    """Write a bundle of pipelines and models; return how far each newly converted model is from torch.

    `base` is a bundle to take everything from that is not given; it may be `output` itself. A model is a
    model directory or that of a training run. With `half`, weights are stored in float16: half the size, and
    float32 again when loaded. The S-NMT is converted to each of `compute_types`. Probes are sentence pairs to
    verify conversions with, besides random ones.

    An existing bundle of that name is replaced; any other directory is not. `note` is told where a run is not
    finished, and its newest checkpoint is taken.
    """
    kept = Bundle.open(base) if base is not None else None

    def existing(part: str) -> Path | None:
        return kept.directory / part if kept is not None and part in kept.manifest.parts else None

    if card is None and kept is not None and MODEL_CARD in kept.manifest.files:
        card = kept.directory / MODEL_CARD
    ingredients = _Ingredients(
        source=source or existing("source"),
        target=target or existing("target"),
        nmt=nmt or existing("nmt"),
        lm=lm or existing("lm"),
        lm_pipeline=lm_pipeline or existing("lm-pipeline"),
        name=name or (kept.name if kept is not None else output.resolve().name),
        defaults=defaults or (kept.defaults if kept is not None else DecodingDefaults()),
        half=half,
        compute_types=compute_types,
        card=card,
        probes=probes,
        kept=kept,
        note=note,
    )
    return _build(output, ingredients)


def _build(output: Path, ingredients: _Ingredients) -> list[Drift]:
    checked = _check(ingredients)
    hint = "nothing was changed"
    with atomic_directory(output, hint, marker=MANIFEST) as part:
        _write_pipelines(part, checked)
        for kind, (directory, stored) in checked.models.items():
            _write_model(part / kind, directory, stored, ingredients.half)
        if ingredients.card is not None:
            shutil.copyfile(ingredients.card, part / MODEL_CARD)
        # Converted is what was stored, which `half` has rounded, not what was given.
        stored_parts = Bundle(part, _manifest(part, ingredients, checked, {}))
        conversions, drifts = _conversions(part, stored_parts, ingredients)
        manifest = _manifest(part, ingredients, checked, conversions)
        (part / MANIFEST).write_bytes(manifest.content())
        Bundle.open(part)
    return drifts


def _check(ingredients: _Ingredients) -> _Checked:
    wrong: list[str] = []
    misfits: list[str] = []
    source = _loaded(wrong, ingredients.source, TextPipeline.load)
    target = _loaded(wrong, ingredients.target, TextPipeline.load)
    lm_pipeline = _loaded(wrong, ingredients.lm_pipeline, TextPipeline.load)
    models: dict[str, tuple[Path, StoredModel]] = {}
    for kind, given in (("nmt", ingredients.nmt), ("lm", ingredients.lm)):
        directory = _loaded(wrong, given, lambda path: model_directory(path, ingredients.note))
        if directory is not None and (stored := _loaded_model(wrong, directory, kind)) is not None:
            models[kind] = (directory, stored)
    if ingredients.nmt is None and ingredients.lm is None:
        wrong.append("there is neither S-NMT nor D-LM")
    if ingredients.nmt is not None and ingredients.source is None:
        wrong.append("an S-NMT needs a source pipeline")
    if ingredients.target is None and (ingredients.lm_pipeline is None or ingredients.nmt is not None):
        wrong.append("there is no target pipeline")
    if ingredients.card is not None and not ingredients.card.is_file():
        wrong.append(f"no such file: {ingredients.card}")
    if "nmt" in models and source is not None and target is not None:
        directory, _ = models["nmt"]
        misfits += _named(directory, translation_misfits(model_config(directory), source, target))
    target = target or lm_pipeline
    own_pipeline = target
    if "lm" in models and target is not None:
        directory, stored = models["lm"]
        own_pipeline = _lm_pipeline(stored, target, lm_pipeline)
        misfits += _named(directory, lm_misfits(model_config(directory), own_pipeline))
        if own_pipeline.language != target.language:
            wrong.append(
                f"the D-LM is for {own_pipeline.language!r}, the target pipeline for {target.language!r}"
            )
    wrong += misfits
    wrong += _storing_misfits(ingredients, models, source, target)
    if wrong:
        raise CadecError(
            "this bundle can't be built: " + "; ".join(dict.fromkeys(wrong)),
            "a model goes with the text pipelines that prepared its training data" if misfits else "",
        )
    assert target is not None and own_pipeline is not None
    return _Checked(source if "nmt" in models else None, target, own_pipeline, models)


def _storing_misfits(
    ingredients: _Ingredients,
    models: Mapping[str, tuple[Path, StoredModel]],
    source: TextPipeline | None,
    target: TextPipeline | None,
) -> list[str]:
    wrong: list[str] = []
    if ingredients.compute_types and ingredients.nmt is None:
        wrong.append("there is no S-NMT to convert")
    if ingredients.half:
        for directory, stored in models.values():
            for name, tensor in model_state(stored.model).items():
                if not torch.isfinite(tensor.half()).all():
                    wrong.append(f"{directory}: {name} has values too large for float16")
    network = models["nmt"][1].model if "nmt" in models else None
    if not isinstance(network, Transformer) or source is None or target is None:
        return wrong  # nothing to convert, or what is missing was reported already
    for compute_type in ingredients.compute_types:
        try:
            check_conversion(network, source.subwords.pieces, target.subwords.pieces, compute_type)
        except CadecError as error:
            wrong.append(error.message)
    return wrong


def _loaded(wrong: list[str], given: Path | None, load: Callable[[Path], Loaded]) -> Loaded | None:
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


def _lm_pipeline(stored: StoredModel, target: TextPipeline, other: TextPipeline | None) -> TextPipeline:
    """The pipeline that the D-LM was trained with; where neither is, the one to complain about."""
    checksums = set(stored.pipelines.values())
    if other is None or target.checksum in checksums:
        return target
    return other


def _named(directory: Path, problems: Sequence[str]) -> list[str]:
    return [f"{directory}: {problem}" for problem in problems]


def _write_pipelines(part: Path, checked: _Checked) -> None:
    if checked.source is not None:
        checked.source.save(part / "source")
    checked.target.save(part / "target")
    if checked.lm_pipeline.checksum != checked.target.checksum:
        checked.lm_pipeline.save(part / "lm-pipeline")


def _write_model(output: Path, directory: Path, stored: StoredModel, half: bool) -> None:
    output.mkdir()
    if not half:
        for name in ("config.json", "model.safetensors"):
            shutil.copyfile(directory / name, output / name)
        return
    state = {name: tensor.half() for name, tensor in model_state(stored.model).items()}
    for name, content in model_files(stored.model, stored.pipelines, state).items():
        (output / name).write_bytes(content)


def _conversions(
    part: Path, bundle: Bundle, ingredients: _Ingredients
) -> tuple[dict[str, Conversion], list[Drift]]:
    """Convert to all that is wanted or was there before, but what is there and still right is copied."""
    kept = ingredients.kept
    existing = kept.manifest.translation_conversions if kept is not None else {}
    conversions: dict[str, Conversion] = {}
    drifts = []
    for compute_type in dict.fromkeys([*existing, *ingredients.compute_types]):
        name = conversion_part(compute_type)
        if kept is not None and conversion.is_current(existing.get(compute_type), bundle.manifest):
            shutil.copytree(kept.directory / name, part / name)
            conversions[name] = existing[compute_type]
            continue
        drift = bundle.convert_translation(compute_type, part / name, ingredients.probes)
        conversions[name] = conversion.described(bundle.manifest, drift)
        drifts.append(drift)
    return conversions, drifts


def _manifest(
    part: Path,
    ingredients: _Ingredients,
    checked: _Checked,
    conversions: Mapping[str, Conversion],
) -> Manifest:
    files = {
        path.relative_to(part).as_posix(): record(path) for path in sorted(part.rglob("*")) if path.is_file()
    }
    pipelines = (name for name in ("source", "target", "lm-pipeline") if (part / name).is_dir())
    return Manifest(
        name=ingredients.name,
        source_language=checked.source.language if checked.source is not None else None,
        target_language=checked.target.language,
        parts={
            **dict.fromkeys(pipelines, "pipeline"),
            **{kind: kind for kind in checked.models},
            **dict.fromkeys(conversions, "ctranslate2"),
        },
        engines={kind: ENGINES[kind][0] for kind in checked.models},
        files=files,
        conversions=conversions,
        defaults=ingredients.defaults,
        versions={"cadec": __version__, "ctranslate2": version("ctranslate2")},
    )
