"""What a bundle is made of, told from its files: nothing is loaded that computes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.integrity import model_config
from cadec_cli.bundle.manifest import DOCUMENT_KINDS, PART_NAMES, conversion_part
from cadec_cli.method.lengths import LengthLimits
from cadec_cli.models.pretrained_settings import LanguageSettings, TranslationSettings

# What is said of models that were trained here; a card says more.
TRAINED_HERE = "trained with cadec"
_WHAT = {**PART_NAMES, "pipeline": "text pipeline", "bundle": "backward S-NMT"}


@dataclass(frozen=True)
class PartDescription:
    """One part: where it is, what runs it, whose it is."""

    part: str
    what: str
    size: int  # bytes, those of linked files included
    checksum: str
    engine: str | None = None
    origin: str | None = None
    licence: str | None = None
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class BundleDescription:
    """All that is known of a bundle without running it."""

    name: str
    directory: str
    identity: str
    source_language: str | None
    target_language: str
    parts: tuple[PartDescription, ...]
    links: Mapping[str, str]
    defaults: Mapping[str, Any]
    lengths: LengthLimits | None  # that were learnt
    versions: Mapping[str, str]
    card: bool

    @property
    def size(self) -> int:
        """Bytes of all parts."""
        return sum(part.size for part in self.parts)


def describe(bundle: Bundle) -> BundleDescription:
    """Look at a bundle."""
    manifest = bundle.manifest
    return BundleDescription(
        name=manifest.name,
        directory=str(bundle.directory),
        identity=manifest.identity,
        source_language=manifest.source_language,
        target_language=manifest.target_language,
        parts=tuple(_part(bundle, part, what) for part, what in manifest.parts.items()),
        links=dict(manifest.links),
        defaults=dataclasses.asdict(manifest.defaults),
        lengths=manifest.lengths,
        versions=dict(manifest.versions),
        card="MODEL_CARD.md" in manifest.files,
    )


def _part(bundle: Bundle, part: str, what: str) -> PartDescription:
    manifest = bundle.manifest
    described = PartDescription(
        part=part,
        what=_WHAT.get(what, what),
        size=sum(one.size for name, one in manifest.files.items() if name.startswith(f"{part}/")),
        checksum=manifest.digest(part),
    )
    if part in ("nmt", "lm"):
        settings = bundle.translation_settings if part == "nmt" else bundle.language_settings
        described = dataclasses.replace(described, engine=manifest.engine(part))
        if settings is None:
            return dataclasses.replace(described, origin=TRAINED_HERE, details=_sizes(bundle, part))
        details = _details(settings)
        if part == "nmt":
            details["beam"] = (
                "its network is here, so the beam search can step it" if bundle.has_network else "no"
            )
        return dataclasses.replace(
            described, origin=settings.origin, licence=settings.licence, details=details
        )
    if part in DOCUMENT_KINDS:
        return dataclasses.replace(described, origin=TRAINED_HERE, details=_sizes(bundle, part))
    for compute_type, made in manifest.translation_conversions.items():
        if part == conversion_part(compute_type):
            drift = f"{made.mean_drift:.2g} per token, at most {made.largest_drift:.2g}"
            return dataclasses.replace(described, what="S-NMT for CTranslate2", details={"drift": drift})
    return described


def _sizes(bundle: Bundle, part: str) -> dict[str, str]:
    sizes = model_config(bundle.path(part))["config"]
    return {name: str(sizes[name]) for name in ("layers", "encoder_layers", "width") if name in sizes}


def _details(settings: TranslationSettings | LanguageSettings) -> dict[str, str]:
    told = {"family": settings.family, "positions": str(settings.positions), "weights": settings.weights}
    if isinstance(settings, TranslationSettings):
        for side, languages in (("from", settings.source_languages), ("to", settings.target_languages)):
            if languages:
                told[side] = f"{len(languages)} languages: {' '.join(languages)}"
    else:
        told["boundary"] = repr(settings.boundary)
        texts = ", ".join(sorted(settings.no_context))
        told["no context"] = f"the mean over texts in {texts}" if texts else "the start alone"
    if settings.verified:
        told["verified"] = settings.verified
    return told
