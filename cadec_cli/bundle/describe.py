"""Describes the parts of a bundle from its files. No model is loaded."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.manifest import DOCUMENT_KINDS, PART_NAMES, conversion_part
from cadec_cli.engines.table import OWN_ENGINES
from cadec_cli.method.lengths import LengthLimits
from cadec_cli.method.options import options_as_data
from cadec_cli.models.configs import TRAINED_HERE

_WHAT = {**PART_NAMES, "pipeline": "text pipeline", "bundle": "backward S-NMT"}


@dataclass(frozen=True)
class PartDescription:
    """One part: where it is, which engine runs it, where it comes from."""

    part: str
    what: str
    size: int  # bytes, including linked files
    checksum: str
    engine: str | None = None
    origin: str | None = None
    licence: str | None = None
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class BundleDescription:
    """Everything known of a bundle without loading its models."""

    name: str
    directory: str
    identity: str
    source_language: str | None
    target_language: str
    parts: tuple[PartDescription, ...]
    links: Mapping[str, str]
    defaults: Mapping[str, Any]
    lengths: LengthLimits | None  # learnt from sentence pairs, if any
    versions: Mapping[str, str]
    card: bool

    @property
    def size(self) -> int:
        """The size of all parts in bytes."""
        return sum(part.size for part in self.parts)


def describe(bundle: Bundle) -> BundleDescription:
    """Return the description of a bundle."""
    manifest = bundle.manifest
    return BundleDescription(
        name=manifest.name,
        directory=str(bundle.directory),
        identity=manifest.identity,
        source_language=manifest.source_language,
        target_language=manifest.target_language,
        parts=tuple(_part(bundle, part, what) for part, what in manifest.parts.items()),
        links=dict(manifest.links),
        defaults=options_as_data(manifest.defaults),
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
    if part in OWN_ENGINES:
        settings = bundle.settings(part)
        details = settings.details()
        if part == "nmt" and not bundle.trained_here(part):
            details["beam"] = (
                "its network is here, so the beam search can step it" if bundle.has_network else "no"
            )
        return dataclasses.replace(
            described,
            engine=manifest.engine(part),
            origin=settings.origin,
            licence=settings.licence,
            details=details,
        )
    if part in DOCUMENT_KINDS:
        details = bundle.part(part).settings.details()
        return dataclasses.replace(described, origin=TRAINED_HERE, details=details)
    for compute_type, made in manifest.translation_conversions.items():
        if part == conversion_part(compute_type):
            drift = f"{made.mean_drift:.2g} per token, at most {made.largest_drift:.2g}"
            return dataclasses.replace(described, what="S-NMT for CTranslate2", details={"drift": drift})
    return described
