"""The parts of a bundle that other toolkits' models make: found by the converters, or taken from a bundle.

What a model is, and whether its conversion says the same as the original, the converters know; where its
files go is known here.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from cadec_cli.bundle import conversion
from cadec_cli.bundle.cache import Note
from cadec_cli.bundle.contents import copy_files
from cadec_cli.bundle.directions import chosen_languages
from cadec_cli.bundle.manifest import Conversion, Manifest, conversion_part
from cadec_cli.bundle.opening import Bundle
from cadec_cli.errors import CadecError
from cadec_cli.files import read_json
from cadec_cli.models.pretrained import (
    LANGUAGE_SETTINGS,
    NETWORK,
    TRANSLATION_SETTINGS,
    is_fine_tuning,
    write_settings,
)
from cadec_cli.user_directories import expand_user

if TYPE_CHECKING:
    from converters.language.huggingface import LanguageModelImport
    from converters.translation.found import NetworkImport, TranslationImport
    from converters.verify import Drift

DEFAULT_COMPUTE_TYPE = "int8"


@dataclass(frozen=True, kw_only=True)
class PretrainedModelRequest:
    """What looking at a pretrained model does not tell, or what its user wants otherwise."""

    nmt_kind: str | None = None
    source_language: str | None = None
    target_language: str | None = None
    source_tokenizer: Path | None = None
    target_tokenizer: Path | None = None
    no_context: str | None = None  # what the D-LM reads where there is no context: a way, or a file
    link: bool = False
    for_beam: bool = False  # keep the S-NMT's network, which the C-aware beam steps


def is_pretrained(part: str, given: Path | str, other: PretrainedModelRequest) -> bool:
    """Tell whether a model is another toolkit's: one that was trained here says so in its files."""
    if part == "nmt" and other.nmt_kind is not None:
        return True
    path = expand_user(given)
    if str(given).startswith("hf:") or (part == "lm" and is_fine_tuning(path)):
        return True
    if not path.exists():
        return _is_hub_name(str(given))
    if path.is_dir() and any((path / name).is_dir() for name in ("model", "checkpoints")):
        return False  # a training run
    config = path / "config.json"
    if path.is_dir() and config.is_file():
        stored = read_json(config)
        return not (isinstance(stored, dict) and "kind" in stored and "pipelines" in stored)
    return path.is_file() or part == "nmt" or any(path.glob("*.gguf"))


def _is_hub_name(given: str) -> bool:
    """Tell owner/name from a path that is not there."""
    owner, _, name = given.partition("/")
    return (
        bool(owner and name) and "/" not in name and owner not in (".", "..", "~") and not given.endswith("/")
    )


def import_translation(
    given: str, other: PretrainedModelRequest, compute_types: Sequence[str], note: Note
) -> PretrainedTranslation:
    """An S-NMT of another toolkit, read and checked."""
    from converters.translation.looking import open_translation

    found = open_translation(
        given,
        kind=other.nmt_kind,
        source_language=other.source_language,
        target_language=other.target_language,
        source_tokenizer=other.source_tokenizer,
        target_tokenizer=other.target_tokenizer,
        note=note,
    )
    return ImportedTranslation(found, compute_types, _network_of(found) if other.for_beam else None)


def _network_of(found: TranslationImport) -> NetworkImport:
    from converters.translation.found import NetworkImport

    if not isinstance(found, NetworkImport):
        raise CadecError(
            "only a translation model of Hugging Face can be kept for --search beam",
            "leave out --for-beam: rerank and lattice do not need it",
        )
    return found


def reuse_translation(
    bundle: Bundle, other: PretrainedModelRequest, compute_types: Sequence[str]
) -> PretrainedTranslation:
    """The S-NMT of a bundle, which may be given another of its directions as the usual one."""
    chosen = chosen_languages(bundle, other.source_language, other.target_language)
    return ReusedTranslation(bundle, compute_types, (chosen.source, chosen.target))


def import_language(
    given: str, other: PretrainedModelRequest, target_language: str | None, note: Note
) -> PretrainedLanguage:
    """A D-LM of another toolkit, read and checked."""
    from converters.language.huggingface import open_language_model, own_no_context
    from converters.language.no_context import TEXTS, no_context_texts

    texts = own_no_context(given) if other.no_context is None else None
    if texts is None:
        texts = no_context_texts(other.no_context or TEXTS, target_language)
    return ImportedLanguage(open_language_model(given, no_context=texts, note=note), other.link)


def reuse_language(bundle: Bundle, other: PretrainedModelRequest) -> PretrainedLanguage:
    """The D-LM of a bundle; what it reads where there is no context can be said anew."""
    from converters.language.no_context import no_context_texts

    if other.no_context is None:
        return ReusedLanguage(bundle)
    language = other.target_language or bundle.target_language
    return ReusedLanguage(bundle, no_context_texts(other.no_context, language))


class PretrainedTranslation(Protocol):
    """An S-NMT on its way into a bundle: first its files, then its weights for CTranslate2."""

    def languages(self) -> tuple[str | None, str | None]:
        """From which language to which, unless its user says otherwise."""
        ...

    def write(self, directory: Path) -> None:
        """Write its tokenizers and settings."""
        ...

    def convert(self, manifest: Manifest, directory: Path) -> tuple[dict[str, Conversion], list[Drift]]:
        """Write its weights; the manifest is of all that is written so far."""
        ...


@dataclass(frozen=True)
class ImportedTranslation:
    """An S-NMT that a converter has found."""

    found: TranslationImport
    compute_types: Sequence[str]
    network: NetworkImport | None = None  # to be kept

    def languages(self) -> tuple[str | None, str | None]:
        """As the model or its user says."""
        return self.found.languages

    def write(self, directory: Path) -> None:
        """Write its tokenizers and settings."""
        place = directory / "nmt"
        place.mkdir()
        for name, path in self.found.files.items():
            shutil.copyfile(path, place / name)
        write_settings(place / TRANSLATION_SETTINGS, self.found.settings)
        if self.network is not None:
            self.network.write_network(place / NETWORK)

    def convert(self, manifest: Manifest, directory: Path) -> tuple[dict[str, Conversion], list[Drift]]:
        """Convert and verify."""
        conversions, drifts = {}, []
        for compute_type in dict.fromkeys(self.compute_types or [DEFAULT_COMPUTE_TYPE]):
            name = conversion_part(compute_type)
            (directory / name).parent.mkdir(exist_ok=True)
            drift = self.found.convert(directory / name, compute_type)
            conversions[name] = conversion.conversion_record(manifest, drift)
            drifts.append(drift)
        return conversions, drifts


@dataclass(frozen=True)
class ReusedTranslation:
    """An S-NMT of a bundle that is there already: its original is not, so it is taken as it is."""

    bundle: Bundle
    compute_types: Sequence[str]
    direction: tuple[str | None, str]

    def __post_init__(self) -> None:
        missing = set(self.compute_types) - self.bundle.manifest.translation_conversions.keys()
        if missing:
            raise CadecError(
                f"the S-NMT of {self.bundle.directory} can't be converted to {', '.join(sorted(missing))}: "
                "the bundle does not hold the original weights",
                "convert the original model again, with --nmt and --compute-type",
            )

    def languages(self) -> tuple[str | None, str | None]:
        """As they were, or as they were asked for."""
        return self.direction

    def write(self, directory: Path) -> None:
        """Copy its tokenizers and settings."""
        copy_files(self.bundle.directory, self.bundle.manifest, ["nmt"], directory)

    def convert(self, manifest: Manifest, directory: Path) -> tuple[dict[str, Conversion], list[Drift]]:
        """Copy its weights."""
        held = self.bundle.manifest.translation_conversions
        for compute_type in held:
            name = conversion_part(compute_type)
            copy_files(self.bundle.directory, self.bundle.manifest, [name], directory)
        return {conversion_part(compute_type): made for compute_type, made in held.items()}, []


class PretrainedLanguage(Protocol):
    """A D-LM on its way into a bundle."""

    def write(self, directory: Path) -> Mapping[str, str]:
        """Write all of it; return the files that are links, and where to."""
        ...


@dataclass(frozen=True)
class ImportedLanguage:
    """A D-LM that a converter has found."""

    found: LanguageModelImport
    link: bool

    def write(self, directory: Path) -> Mapping[str, str]:
        """Write or link it."""
        (directory / "lm").mkdir()
        links = self.found.write(directory / "lm", link=self.link)
        return {f"lm/{name}": str(place) for name, place in links.items()}


@dataclass(frozen=True)
class ReusedLanguage:
    """A D-LM of a bundle that is there already; its links stay links."""

    bundle: Bundle
    no_context: Mapping[str, tuple[tuple[str, ...], ...]] | None = None  # None where it stays as it was

    def write(self, directory: Path) -> Mapping[str, str]:
        """Copy it."""
        copy_files(self.bundle.directory, self.bundle.manifest, ["lm"], directory)
        settings = self.bundle.language_settings
        if self.no_context is not None and settings is not None:
            changed = dataclasses.replace(settings, no_context=self.no_context)
            write_settings(directory / "lm" / LANGUAGE_SETTINGS, changed)
        links = self.bundle.manifest.links
        return {name: place for name, place in links.items() if name.startswith("lm/")}
