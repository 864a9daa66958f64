"""The catalogue: translation models and language models by short names, and names of pairs of them.

`opus-mt-en-ru+gemma-3-270m` is a translation model and a language model for it. Of OPUS-MT there are hundreds
of pairs: one that is not listed is looked for under the name that it must have.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from cadec_cli.errors import CadecError

JOINT = "+"
_OPUS = re.compile(r"opus-mt-([a-z]{2,3})-([a-z]{2,3})")


@dataclass(frozen=True)
class Entry:
    """A model that can be had; languages are empty where it serves many."""

    name: str
    repository: str
    megabytes: int | None
    licence: str
    note: str = ""


@dataclass(frozen=True)
class TranslationEntry(Entry):
    """A translation model; of one that serves many languages the user says which."""

    sources: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()


@dataclass(frozen=True)
class LanguageEntry(Entry):
    """A language model, and the temperature that goes well with it."""

    languages: tuple[str, ...] = ()
    temperature: float = 1.0


@dataclass(frozen=True)
class CatalogueMatch:
    """What a name stands for: a translation model, a language model, or both."""

    name: str
    translation: TranslationEntry | None
    language: LanguageEntry | None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The models themselves."""
        return tuple(one for one in (self.translation, self.language) if one is not None)


@cache
def translation_models() -> Mapping[str, TranslationEntry]:
    """All translation models that are listed."""
    return {
        name: TranslationEntry(
            **_common(name, entry), sources=tuple(entry.get("from", ())), targets=tuple(entry.get("to", ()))
        )
        for name, entry in _read_catalogue()["translation"].items()
    }


@cache
def language_models() -> Mapping[str, LanguageEntry]:
    """All language models that are listed."""
    return {
        name: LanguageEntry(
            **_common(name, entry),
            languages=tuple(entry.get("languages", ())),
            temperature=entry["temperature"],
        )
        for name, entry in _read_catalogue()["language"].items()
    }


def find_models(name: str) -> CatalogueMatch:
    """What a name stands for; one that stands for nothing is a CadecError that says what there is."""
    parts = name.split(JOINT)
    if len(parts) > 2 or not all(parts):
        raise CadecError(
            f"{name!r} is not the name of one model, or of two", "as in opus-mt-en-ru+gemma-3-270m"
        )
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
