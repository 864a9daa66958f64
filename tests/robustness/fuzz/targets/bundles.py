"""Bundles and their parts: manifests, models trained here, text pipelines, conversions in the cache."""

import hashlib
import json
from contextlib import AbstractContextManager
from pathlib import Path

from tests.robustness.fuzz.packing import SAFETENSORS
from tests.robustness.fuzz.target import Files, Target
from tests.robustness.fuzz.targets import parts
from tests.robustness.fuzz.targets.parts import copied

SENTENCE = "Tom wants it."


def resealed(files: Files, name: str) -> None:
    """Make the manifest tell the truth again, as somebody would who means harm."""
    try:
        manifest = json.loads(files["bundle.json"])
        listed = manifest["files"]
    except (ValueError, RecursionError, TypeError, KeyError):
        return
    if isinstance(listed, dict) and isinstance(listed.get(name), dict):
        content = files[name]
        listed[name] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
    manifest.pop("checksum", None)
    compact = json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()
    manifest["checksum"] = hashlib.sha256(compact).hexdigest()
    files["bundle.json"] = json.dumps(manifest, indent=2).encode()


def opened(directory: Path) -> None:
    """All that a command may ask of a bundle before it loads a network."""
    from cadec_cli.bundle.bundle import Bundle
    from cadec_cli.bundle.describe import describe
    from cadec_cli.bundle.load import default_options

    bundle = Bundle.open(directory)
    described = describe(bundle)
    assert described.size >= 0
    str(described).encode("utf-8", "surrogatepass")
    default_options(bundle)
    assert bundle.translation_positions > 0 and bundle.lm_positions > 0


def loaded(directory: Path) -> None:
    """A bundle translates, or says why it can't."""
    import dataclasses

    from cadec_cli.bundle.bundle import Bundle
    from cadec_cli.bundle.load import default_options, load_models
    from cadec_cli.session.session import Session
    from tests.helpers.session_parts import direction_of

    bundle = Bundle.open(directory)
    models = load_models(bundle, compute_type="float32", threads=1)
    options = dataclasses.replace(default_options(bundle), beam=2, nbest=2)
    session = Session(models, options, direction=direction_of(bundle))
    (entry,) = session.translate([SENTENCE])
    entry.text.encode()


def model(directory: Path) -> None:
    from cadec_cli.models.storage import load_model

    stored = load_model(directory)
    assert sum(parameter.numel() for parameter in stored.model.parameters()) < 10**7


def pipeline(directory: Path) -> None:
    from cadec_cli.text.pipeline import TextPipeline

    found = TextPipeline.load(directory)
    ids = found.encode("The captain took it — «really»? \U0001f600")
    assert all(0 <= index < len(found) for index in ids)
    found.decode(ids).encode()
    assert len(found.vocabulary) == len(found)
    assert len(found.checksum) == 64


def cache_seed(directory: Path) -> None:
    from cadec_cli.bundle.conversion_cache import converted_once

    with _cache_in(directory):
        converted_once("key", _converted)


def cached(directory: Path) -> None:
    """What is there and sound is taken; what is not is made again."""
    from cadec_cli.bundle.conversion_cache import converted_once

    with _cache_in(directory):
        place = converted_once("key", _converted)
        assert {(place / name).read_bytes() for name in ("model.bin", "config.json")} == {b"weights", b"{}"}


def _converted(directory: Path) -> None:
    from cadec_cli.fs.atomic import atomic_directory

    with atomic_directory(directory, marker="cadec.json") as part:
        (part / "model.bin").write_bytes(b"weights")
        (part / "config.json").write_bytes(b"{}")


def _cache_in(directory: Path) -> AbstractContextManager[object]:
    import os
    from unittest.mock import patch

    return patch.dict(os.environ, {"CADEC_CACHE": str(directory)})


SMALL = ("bundle.json", "nmt/config.json", "lm/config.json", "source/pipeline.json", "target/truecaser.json")
PIPELINE = ("pipeline.json", "truecaser.json", "subwords.model")
OPENING = tuple(f"cadec_cli/bundle/{name}.py" for name in ("manifest", "bundle", "integrity"))

TARGETS = {
    "manifest": Target(OPENING, copied(parts.bundle), opened, ("bundle.json",), resealed=resealed),
    "bundle's small files": Target(
        ("cadec_cli/bundle/bundle.py",), copied(parts.bundle), opened, SMALL, resealed=resealed
    ),
    "bundle that is loaded": Target(
        ("cadec_cli/models/storage.py",),
        copied(parts.bundle),
        loaded,
        (*SMALL, "source/subwords.model", "lm/model.safetensors", "ct2/float32/config.json"),
        packed={"lm/model.safetensors": SAFETENSORS},
        resealed=resealed,
        share=0.5,
    ),
    "CTranslate2 model of a bundle": Target(
        ("cadec_cli/engines/ctranslate2.py",),
        copied(parts.bundle),
        loaded,
        (
            "ct2/float32/model.bin",
            "ct2/float32/config.json",
            "ct2/float32/source_vocabulary.json",
            "ct2/float32/target_vocabulary.json",
        ),
        resealed=resealed,
        share=0.5,
    ),
    "model configuration": Target(
        ("cadec_cli/models/configs.py",), copied(parts.bundle, "lm"), model, ("config.json",)
    ),
    "S-NMT configuration": Target(
        ("cadec_cli/models/storage.py",), copied(parts.bundle, "nmt"), model, ("config.json",)
    ),
    "safetensors": Target(
        ("cadec_cli/models/storage.py",),
        copied(parts.bundle, "lm"),
        model,
        ("model.safetensors",),
        packed={"model.safetensors": SAFETENSORS},
    ),
    "text pipeline": Target(
        ("cadec_cli/text/pipeline.py",), copied(parts.bundle, "source"), pipeline, PIPELINE[:2]
    ),
    "SentencePiece": Target(
        ("cadec_cli/text/subwords.py",), copied(parts.bundle, "source"), pipeline, PIPELINE[2:], share=1.5
    ),
    "conversion cache": Target(
        ("cadec_cli/bundle/conversion_cache.py",),
        cache_seed,
        cached,
        ("ctranslate2/key/cadec.json", "ctranslate2/key/model.bin"),
        writes=True,
    ),
}
