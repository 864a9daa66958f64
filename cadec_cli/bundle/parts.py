"""The parts that a bundle is built from: trained here, of another toolkit, or taken from another bundle.

The converters recognise a model of another toolkit, and verify its conversion against the original. This
module knows where the files of each part go. Checksums that were computed while files were copied are
returned, so that no file is hashed twice.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from cadec_cli.bundle import conversion_cache
from cadec_cli.bundle.bundle import Bundle, chosen_languages
from cadec_cli.bundle.integrity import copy_files
from cadec_cli.bundle.manifest import BACKWARD, MANIFEST, Conversion, FileRecord, Manifest, conversion_part
from cadec_cli.engines.engine import Note, silence
from cadec_cli.engines.pretrained_models import PRETRAINED_LANGUAGE, PRETRAINED_TRANSLATION
from cadec_cli.errors import CadecError, option
from cadec_cli.fs.paths import expand_user
from cadec_cli.fs.read import read_json
from cadec_cli.models.configs import lm_misfits, read_model_config, translation_misfits
from cadec_cli.models.pretrained_settings import (
    FITTED,
    LANGUAGE_SETTINGS,
    NETWORK,
    TRANSLATION_SETTINGS,
    LanguageSettings,
    is_fine_tuning,
    write_settings,
)
from cadec_cli.text.languages import iso_code
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.text.token_text import CorpusText
from converters import (
    FIT,
    PretrainedRequest,
    check_network,
    fit_language_model,
    network_to_keep,
    no_context_texts,
    open_language,
    open_translation,
    unfit_language_model,
)

if TYPE_CHECKING:
    from cadec_cli.models.storage import StoredModel
    from converters import Drift, LanguageModelImport, NetworkImport, TranslationImport

_LEFT_OUT = ("lm", "lm-pipeline", BACKWARD)


def backward_misfits(reverse: Bundle, source: str | None, target: str) -> list[str]:
    """Return why a bundle can't be the backward model of one that translates from source to target."""
    if not reverse.has_translation:
        return [f"{reverse.directory} has no S-NMT, and so can't be a backward model"]
    if reverse.chooses_languages:
        return []
    theirs = (reverse.source_language, reverse.target_language)
    if source is None or tuple(map(_code, theirs)) != (_code(target), _code(source)):
        return [f"{reverse.directory} translates {theirs[0]} → {theirs[1]}, not {target} → {source}"]
    return []


def write_backward(reverse: Bundle, directory: Path) -> dict[str, FileRecord]:
    """Write a bundle as the backward model of another, with only the parts that translating needs."""
    manifest = reverse.manifest
    parts = {part: what for part, what in manifest.parts.items() if part not in _LEFT_OUT}
    files = {
        name: record
        for name, record in manifest.files.items()
        if any(name.startswith(f"{part}/") for part in parts)
    }
    copied = copy_files(reverse.directory, manifest, parts, directory)
    engines = {part: engine for part, engine in manifest.engines.items() if part in parts}
    kept = replace(manifest, parts=parts, files=files, engines=engines, links={})
    (directory / MANIFEST).write_bytes(kept.content())
    return {f"{BACKWARD}/{name}": record for name, record in copied.items()}


def _code(language: str | None) -> str:
    return iso_code(language) if language else ""


Loaded = TypeVar("Loaded")


@dataclass(frozen=True)
class OwnModelRequest:
    """The directories of the parts that were trained here, each of them optional."""

    source: Path | None
    target: Path | None
    nmt: Path | None
    lm: Path | None
    lm_pipeline: Path | None
    half: bool
    compute_types: Sequence[str]
    documents: Mapping[str, Path] = field(default_factory=dict)  # by kind: models that read several sentences
    text: CorpusText | None = None  # a pretrained S-NMT's target text, on which a D-LM may have been trained


@dataclass(frozen=True)
class OwnParts:
    """Parts that were loaded and checked; `wrong` lists what does not fit."""

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
    """Load the given parts, and check that they fit together."""
    from cadec_cli.models.storage import model_directory

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
        misfits += _prefix_directory(
            directory, translation_misfits(read_model_config(directory), source, target)
        )
    target = target or lm_pipeline
    for kind in given.documents.keys() & models.keys():
        directory, _ = models[kind]
        read = target if kind == "repair" else source
        if read is None or target is None:
            wrong.append(f"a {kind} model needs the text pipelines that it was trained with")
        else:
            misfits += _prefix_directory(
                directory, translation_misfits(read_model_config(directory), read, target)
            )
    lm_text = target
    if shared and given.text is not None:
        directory, _ = models["lm"]
        target = lm_text = None
        misfits += _prefix_directory(directory, lm_misfits(read_model_config(directory), given.text))
    elif "lm" in models and target is not None:
        directory, stored = models["lm"]
        lm_text = _lm_pipeline(stored, target, lm_pipeline)
        misfits += _prefix_directory(directory, lm_misfits(read_model_config(directory), lm_text))
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
    import torch

    from cadec_cli.models.storage import model_state
    from cadec_cli.models.transformer import Transformer

    wrong: list[str] = []
    if given.half:
        for directory, stored in models.values():
            for name, tensor in model_state(stored.model).items():
                if not torch.isfinite(tensor.half()).all():
                    wrong.append(f"{directory}: {name} has values too large for float16")
    network = models["nmt"][1].model if "nmt" in models else None
    if not isinstance(network, Transformer) or source is None or target is None:
        return wrong  # nothing to convert, or missing parts that were reported already
    for compute_type in given.compute_types:
        try:
            check_network(network, source.subwords.pieces, target.subwords.pieces, compute_type)
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
    from cadec_cli.models.storage import load_model

    try:
        read_model_config(directory)
        return load_model(directory, kind)
    except CadecError as error:
        wrong.append(error.marked_message)
        return None


def _trained_with(stored: StoredModel, text: CorpusText) -> bool:
    return text.checksum in stored.pipelines.values()


def _lm_pipeline(stored: StoredModel, target: TextPipeline, other: TextPipeline | None) -> TextPipeline:
    """Return the pipeline that the D-LM was trained with; if it is neither, the one to name in the error."""
    checksums = set(stored.pipelines.values())
    if other is None or target.checksum in checksums:
        return target
    return other


def _prefix_directory(directory: Path, problems: Sequence[str]) -> list[str]:
    return [f"{directory}: {problem}" for problem in problems]


def _write_model(output: Path, directory: Path, stored: StoredModel, half: bool) -> None:
    from cadec_cli.models.storage import model_files, model_state

    output.mkdir()
    if not half:
        for name in ("config.json", "model.safetensors"):
            shutil.copyfile(directory / name, output / name)
        return
    state = {name: tensor.half() for name, tensor in model_state(stored.model).items()}
    for name, content in model_files(stored.model, stored.pipelines, state).items():
        (output / name).write_bytes(content)


DEFAULT_COMPUTE_TYPE = "int8"


def is_pretrained(part: str, given: Path | str, request: PretrainedRequest | None = None) -> bool:
    """Tell whether a model is another toolkit's. A model trained here is recognised by its files."""
    if part == "nmt" and request is not None and request.kind is not None:
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
    """Tell whether a text is owner/name, and not a path that does not exist."""
    owner, _, name = given.partition("/")
    return (
        bool(owner and name) and "/" not in name and owner not in (".", "..", "~") and not given.endswith("/")
    )


def import_translation(
    given: str, request: PretrainedRequest, compute_types: Sequence[str]
) -> PretrainedTranslation:
    """Read and check an S-NMT of another toolkit."""
    found = open_translation(given, request)
    return ImportedTranslation(found, compute_types, network_to_keep(found) if request.for_beam else None)


def reuse_translation(
    bundle: Bundle, request: PretrainedRequest, compute_types: Sequence[str]
) -> PretrainedTranslation:
    """Take the S-NMT of a bundle, if asked for with another of its directions as the default."""
    chosen = chosen_languages(bundle, request.source_language, request.target_language)
    return ReusedTranslation(bundle, compute_types, (chosen.source, chosen.target))


def import_language(given: str, request: PretrainedRequest, language: str | None) -> PretrainedLanguage:
    """Read and check a D-LM of another toolkit, to be used for `language`."""
    return ImportedLanguage(open_language(given, request, language), request.link)


def reuse_language(bundle: Bundle, request: PretrainedRequest) -> PretrainedLanguage:
    """Take the D-LM of a bundle, if asked for with other texts that stand for no context, or a template."""
    changed: dict[str, Any] = {}
    if request.no_context is not None:
        language = request.target_language or bundle.target_language
        changed["no_context"] = no_context_texts(request.no_context, language)
    if request.template is not None:
        changed["template"] = request.template
    return ReusedLanguage(bundle, changed)


@dataclass(frozen=True)
class Converted:
    """Written conversions, by directory, with their drifts from the original, and known checksums."""

    conversions: Mapping[str, Conversion]
    drifts: list[Drift]
    known: Mapping[str, FileRecord] = field(default_factory=dict)


class PretrainedTranslation(Protocol):
    """An S-NMT that becomes part of a bundle: first its files are written, then its converted weights."""

    @property
    def engine(self) -> str:
        """The name of the engine that runs it."""
        ...

    def languages(self) -> tuple[str | None, str | None]:
        """Return the source and the target language, unless the user names others."""
        ...

    def write(self, directory: Path) -> Mapping[str, FileRecord]:
        """Write its tokenizers and settings; return known checksums."""
        ...

    def convert(self, manifest: Manifest, directory: Path) -> Converted:
        """Write its converted weights. The manifest lists all files written so far."""
        ...


@dataclass(frozen=True)
class ImportedTranslation:
    """An S-NMT that a converter has opened."""

    found: TranslationImport
    compute_types: Sequence[str]
    network: NetworkImport | None = None  # stored in the bundle for the beam search
    engine: str = PRETRAINED_TRANSLATION.name

    def languages(self) -> tuple[str | None, str | None]:
        """Return the languages that the model or its user names."""
        return self.found.languages

    def write(self, directory: Path) -> Mapping[str, FileRecord]:
        """Write its tokenizers and settings."""
        place = directory / "nmt"
        place.mkdir()
        for name, path in self.found.files.items():
            shutil.copyfile(path, place / name)
        write_settings(place / TRANSLATION_SETTINGS, self.found.settings)
        if self.network is not None:
            self.network.write_network(place / NETWORK)
        return {}

    def convert(self, manifest: Manifest, directory: Path) -> Converted:
        """Convert its weights and verify them."""
        conversions, drifts = {}, []
        for compute_type in dict.fromkeys(self.compute_types or [DEFAULT_COMPUTE_TYPE]):
            name = conversion_part(compute_type)
            (directory / name).parent.mkdir(exist_ok=True)
            drift = self.found.convert(directory / name, compute_type)
            conversions[name] = conversion_cache.conversion_record(manifest, drift)
            drifts.append(drift)
        return Converted(conversions, drifts)


@dataclass(frozen=True)
class ReusedTranslation:
    """An S-NMT of an existing bundle, copied unchanged, since the bundle does not hold its original."""

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

    @property
    def engine(self) -> str:
        """The engine that the bundle names."""
        return self.bundle.engine("nmt")

    def languages(self) -> tuple[str | None, str | None]:
        """Return the direction that was asked for, else the bundle's."""
        return self.direction

    def write(self, directory: Path) -> Mapping[str, FileRecord]:
        """Copy its tokenizers and settings."""
        return copy_files(self.bundle.directory, self.bundle.manifest, ["nmt"], directory)

    def convert(self, manifest: Manifest, directory: Path) -> Converted:
        """Copy its weights."""
        made = {
            conversion_part(compute_type): conversion
            for compute_type, conversion in self.bundle.manifest.translation_conversions.items()
        }
        return Converted(made, [], copy_files(self.bundle.directory, self.bundle.manifest, made, directory))


@dataclass(frozen=True)
class WrittenLanguage:
    """The links among a D-LM's files, with their targets, and known checksums."""

    links: Mapping[str, str]
    known: Mapping[str, FileRecord] = field(default_factory=dict)


class PretrainedLanguage(Protocol):
    """A D-LM that becomes part of a bundle."""

    @property
    def engine(self) -> str:
        """The name of the engine that runs it."""
        ...

    def write(self, directory: Path) -> WrittenLanguage:
        """Write all its files."""
        ...


@dataclass(frozen=True)
class ImportedLanguage:
    """A D-LM that a converter has opened."""

    found: LanguageModelImport
    link: bool
    engine: str = PRETRAINED_LANGUAGE.name

    def write(self, directory: Path) -> WrittenLanguage:
        """Write or link it."""
        (directory / "lm").mkdir()
        links = self.found.write(directory / "lm", link=self.link)
        return WrittenLanguage({f"lm/{name}": str(place) for name, place in links.items()})


@dataclass(frozen=True)
class ReusedLanguage:
    """A D-LM of an existing bundle; its links stay links."""

    bundle: Bundle
    changed: Mapping[str, Any] = field(default_factory=dict)  # its settings, as far as they are new

    @property
    def engine(self) -> str:
        """The engine that the bundle names."""
        return self.bundle.engine("lm")

    def write(self, directory: Path) -> WrittenLanguage:
        """Copy its files, with new settings if there are any."""
        known = copy_files(self.bundle.directory, self.bundle.manifest, ["lm"], directory)
        if self.changed:
            settings = self.bundle.settings("lm")
            if not isinstance(settings, LanguageSettings):
                raise CadecError(
                    f"the D-LM of {self.bundle.directory} has neither texts that stand for no context nor a "
                    "template for pairs"
                )
            write_settings(
                directory / "lm" / LANGUAGE_SETTINGS, dataclasses.replace(settings, **self.changed)
            )
            del known[f"lm/{LANGUAGE_SETTINGS}"]
        links = self.bundle.manifest.links
        return WrittenLanguage(
            {name: place for name, place in links.items() if name.startswith("lm/")}, known
        )


# The files of a bundle that `choose_vocabulary` writes or removes.
CHANGED_BY_VOCABULARY = (f"lm/{FITTED}", f"lm/{LANGUAGE_SETTINGS}")


def is_fitted(bundle: Bundle) -> bool:
    """Tell whether the D-LM of a bundle is fitted to its S-NMT."""
    return f"lm/{FITTED}" in bundle.manifest.files


def choose_vocabulary(bundle: Bundle, vocabulary: str, note: Note = silence) -> None:
    """Fit the pretrained D-LM of a bundle to its S-NMT, or let it predict all tokens (`full`)."""
    place = bundle.directory / "lm"
    if vocabulary == FIT:
        fit_language_model(place, bundle.target_text, iso_code(bundle.target_language), note)
    else:
        unfit_language_model(place)
