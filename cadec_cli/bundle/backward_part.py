"""The S-NMT of the other direction as a part of a bundle: a bundle of its own, without its D-LM."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cadec_cli.bundle.contents import copy_files
from cadec_cli.bundle.layout import BACKWARD
from cadec_cli.bundle.manifest import MANIFEST
from cadec_cli.bundle.opening import Bundle
from cadec_cli.text.languages import iso_code

_LEFT_OUT = ("lm", "lm-pipeline", BACKWARD)


def backward_misfits(reverse: Bundle, source: str | None, target: str) -> list[str]:
    """Why a bundle can't be the backward model of one that translates from source to target."""
    if not reverse.has_translation:
        return [f"{reverse.directory} has no S-NMT, and so can't be a backward model"]
    settings = reverse.translation_settings
    if settings is not None and settings.directions:
        return []  # which it is told what to translate
    theirs = (reverse.source_language, reverse.target_language)
    if source is None or tuple(map(_code, theirs)) != (_code(target), _code(source)):
        return [f"{reverse.directory} translates {theirs[0]} → {theirs[1]}, not {target} → {source}"]
    return []


def write_backward(reverse: Bundle, directory: Path) -> None:
    """Copy all that translating takes, and no more."""
    manifest = reverse.manifest
    parts = {part: what for part, what in manifest.parts.items() if part not in _LEFT_OUT}
    files = {
        name: record
        for name, record in manifest.files.items()
        if any(name.startswith(f"{part}/") for part in parts)
    }
    copy_files(reverse.directory, manifest, parts, directory)
    engines = {part: engine for part, engine in manifest.engines.items() if part in parts}
    kept = replace(manifest, parts=parts, files=files, engines=engines, links={})
    (directory / MANIFEST).write_bytes(kept.content())


def _code(language: str | None) -> str:
    return iso_code(language) if language else ""
