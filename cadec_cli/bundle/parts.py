"""The parts of a bundle that other toolkits' models make: found by the converters, or taken from a bundle.

What a model is, and whether its conversion says the same as the original, the converters know; where its
files go is known here.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import torch

from cadec_cli.bundle import conversion_cache
from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.conversion_cache import Note
from cadec_cli.bundle.directions import chosen_languages
from cadec_cli.bundle.integrity import copy_files, lm_misfits, model_config, translation_misfits
from cadec_cli.bundle.manifest import BACKWARD, MANIFEST, Conversion, Manifest, conversion_part
from cadec_cli.errors import CadecError, option
from cadec_cli.fs.paths import expand_user
from cadec_cli.fs.read import read_json
from cadec_cli.models.pretrained_settings import (
    LANGUAGE_SETTINGS,
    NETWORK,
    TRANSLATION_SETTINGS,
    is_fine_tuning,
    write_settings,
)
from cadec_cli.models.storage import StoredModel, load_model, model_directory, model_files, model_state
from cadec_cli.models.transformer import Transformer
from cadec_cli.text.languages import iso_code
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.text.token_text import CorpusText
from converters.own_networks import check_conversion

if TYPE_CHECKING:
    from converters.language.huggingface import LanguageModelImport
    from converters.translation.base import NetworkImport, TranslationImport
    from converters.verify import Drift


# The S-NMT of the other direction as a part of a bundle: a bundle of its own, without its D-LM.


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


# The parts of a bundle that were trained here: text pipelines and our networks, loaded, checked, written.


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
            wrong.append(error.marked_message)
    return wrong


def _try_load(wrong: list[str], given: Path | None, load: Callable[[Path], Loaded]) -> Loaded | None:
    try:
        return load(given) if given is not None else None
    except CadecError as error:
        wrong.append(error.marked_message)
        return None


def _loaded_model(wrong: list[str], directory: Path, kind: str) -> StoredModel | None:
    try:
        model_config(directory)
        return load_model(directory, kind)
    except CadecError as error:
        wrong.append(error.marked_message)
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
    from converters.detect import open_translation

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
    from converters.translation.base import NetworkImport

    if not isinstance(found, NetworkImport):
        raise CadecError(
            f"only a translation model of Hugging Face can be kept for {option('search', 'beam')}",
            f"leave out {option('for-beam')}: rerank and lattice do not need it",
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
            conversions[name] = conversion_cache.conversion_record(manifest, drift)
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
                f"convert the original model again, with {option('nmt')} and {option('compute-type')}",
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
