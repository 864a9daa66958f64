"""The catalogue: translation models and language models by short names, and names of pairs of them.

`opus-mt-en-ru+gemma-3-270m` is a translation model with a language model for it. OPUS-MT has hundreds of
language pairs: one that is not listed is looked for under its usual name. `pull` makes a named bundle.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cadec_cli.bundle.find import path_of
from cadec_cli.engines.engine import Note, silence
from cadec_cli.errors import CadecError, option
from cadec_cli.method.options import DecodingDefaults
from converters import PretrainedRequest

if TYPE_CHECKING:
    from converters import Drift

JOINT = "+"
_OPUS = re.compile(r"opus-mt-([a-z]{2,3})-([a-z]{2,3})")


@dataclass(frozen=True)
class Entry:
    """A model that can be pulled; its languages are empty if it serves many."""

    name: str
    repository: str
    megabytes: int | None
    licence: str
    note: str = ""


@dataclass(frozen=True)
class TranslationEntry(Entry):
    """A translation model; if it serves many languages, the user names them."""

    sources: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()


@dataclass(frozen=True)
class LanguageEntry(Entry):
    """A language model, with its recommended temperature."""

    languages: tuple[str, ...] = ()
    temperature: float = 1.0


@dataclass(frozen=True)
class CatalogueMatch:
    """The models that a name stands for: a translation model, a language model, or both."""

    name: str
    translation: TranslationEntry | None
    language: LanguageEntry | None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries of the models."""
        return tuple(one for one in (self.translation, self.language) if one is not None)


@cache
def translation_models() -> Mapping[str, TranslationEntry]:
    """Return all listed translation models by name."""
    return {
        name: TranslationEntry(
            **_common(name, entry), sources=tuple(entry.get("from", ())), targets=tuple(entry.get("to", ()))
        )
        for name, entry in _read_catalogue()["translation"].items()
    }


@cache
def language_models() -> Mapping[str, LanguageEntry]:
    """Return all listed language models by name."""
    return {
        name: LanguageEntry(
            **_common(name, entry),
            languages=tuple(entry.get("languages", ())),
            temperature=entry["temperature"],
        )
        for name, entry in _read_catalogue()["language"].items()
    }


def find_models(name: str) -> CatalogueMatch:
    """Return the models that a name stands for; an unknown name is a CadecError."""
    parts = name.split(JOINT)
    if len(parts) > 2 or not all(parts):
        raise CadecError(f"{name!r} is not the name of one or two models", "as in opus-mt-en-ru+gemma-3-270m")
    translations = [entry for part in parts if (entry := _translation(part)) is not None]
    languages = [language_models()[part] for part in parts if part in language_models()]
    unknown = [part for part in parts if _translation(part) is None and part not in language_models()]
    if unknown:
        raise CadecError(
            f"there is no {unknown[0]} in the catalogue",
            "`cadec models list` shows what there is; `cadec convert` takes models from anywhere",
        )
    if len(translations) > 1 or len(languages) > 1:
        raise CadecError(f"{name}: a bundle has one translation model and one language model")
    chosen = CatalogueMatch(name, next(iter(translations), None), next(iter(languages), None))
    _check_languages(chosen)
    return chosen


def _translation(name: str) -> TranslationEntry | None:
    if name in translation_models():
        return translation_models()[name]
    if match := _OPUS.fullmatch(name):
        source, target = match.groups()
        return TranslationEntry(
            name, f"Helsinki-NLP/{name}", None, "see its model card", sources=(source,), targets=(target,)
        )
    return None


def _check_languages(chosen: CatalogueMatch) -> None:
    translation, language = chosen.translation, chosen.language
    if translation is None or language is None or not translation.targets or not language.languages:
        return
    if not set(translation.targets) & set(language.languages):
        raise CadecError(
            f"{language.name} reads {', '.join(language.languages)}, "
            f"{translation.name} writes {', '.join(translation.targets)}",
            "the language model must know the language that is translated into",
        )


def _common(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": name,
        "repository": entry["repository"],
        "megabytes": entry["megabytes"],
        "licence": entry["licence"],
        "note": entry.get("note", ""),
    }


@cache
def _read_catalogue() -> dict[str, dict[str, dict[str, Any]]]:
    file = resources.files(__package__) / "catalogue.json"
    stored: dict[str, dict[str, dict[str, Any]]] = json.loads(file.read_text("utf-8"))
    return stored


@dataclass(frozen=True)
class PullResult:
    """The bundle that `pull` made, and the drifts of its conversions."""

    directory: Path
    drifts: list[Drift]


def check_pull(wanted: CatalogueMatch, source: str | None, target: str | None) -> None:
    """Raise a CadecError for models or languages that can't be pulled, before anything is fetched."""
    translation = wanted.translation
    if translation is None:
        if target is None:
            raise CadecError(
                f"{wanted.name} is a language model: its language is not known",
                f"name it with {option('to')}, as in {option('to', 'ru')}",
            )
        return
    for flag, given, known in (
        (f"{option('from')}", source, translation.sources),
        (f"{option('to')}", target, translation.targets),
    ):
        if not known and given is None:
            raise CadecError(
                f"{translation.name} serves many languages",
                f"name one with {flag}, as in {option('from', 'en')} {option('to', 'ru')}",
            )
        if known and given is not None and given not in known:
            raise CadecError(f"{translation.name} does not know {given!r}", f"{flag} {' or '.join(known)}")


def bundle_name(wanted: CatalogueMatch, source: str | None, target: str | None) -> str:
    """Return the bundle's name: the given one, with the languages if the model serves many."""
    many = isinstance(wanted.translation, TranslationEntry) and not wanted.translation.targets
    return f"{wanted.name}-{source}-{target}" if many else wanted.name


def pull(
    wanted: CatalogueMatch,
    *,
    source: str | None = None,
    target: str | None = None,
    name: str = "",
    force: bool = False,
    for_beam: bool = False,
    note: Note = silence,
) -> PullResult:
    """Fetch the models of a name and build a bundle from them; a CadecError if it exists, unless `force`."""
    from cadec_cli.bundle.build import BundleRequest, build_bundle  # which imports torch

    check_pull(wanted, source, target)
    directory = path_of(name or bundle_name(wanted, source, target))
    if directory.exists() and not force:
        raise CadecError(
            f"{directory.name} is there already",
            f"use it with {option('bundle')}, or replace it with {option('force')}",
        )
    translation, language = wanted.translation, wanted.language
    defaults = DecodingDefaults()
    if language is not None:
        defaults = dataclasses.replace(defaults, temperature=language.temperature)
    drifts = build_bundle(
        directory,
        BundleRequest(
            nmt=translation.repository if translation is not None else None,
            lm=language.repository if language is not None else None,
            pretrained=PretrainedRequest(
                source_language=source if translation is not None and not translation.sources else None,
                target_language=target if translation is None or not translation.targets else None,
                for_beam=for_beam,
            ),
            name=directory.name,
            defaults=defaults,
        ),
        note,
    )
    return PullResult(directory, drifts)
