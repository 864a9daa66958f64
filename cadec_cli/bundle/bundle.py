"""A bundle: a directory with everything that one translation direction needs.

bundle.json         the list of parts and files, with checksums and engines (manifest.py)
source/  target/    text pipelines of models trained here
nmt/                the S-NMT; a bundle for scoring has neither this nor source/
lm/                 the D-LM; a sentence-level bundle has none
lm-pipeline/        only if the D-LM's text pipeline is not the S-NMT's target pipeline
ct2/int8/ …         the S-NMT converted, by compute type; missing ones are converted into the cache
doc-nmt/  2-to-2/  repair/    models that read several sentences, trained here with source/ and target/
back/               a bundle with an S-NMT of the other direction, for objectives that need one
MODEL_CARD.md       if there is one

The engine of nmt/ or lm/ defines the files of the part and their content (engines/table.py). A
pretrained model of another toolkit brings its own tokenizer, and needs no text pipeline.

Opening a bundle reads and checks it; a model is loaded on request. Loaded text pipelines are kept. Networks
are not kept: the caller owns a network, and may move it to a device or make a smaller copy of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cadec_cli.bundle import conversion_cache
from cadec_cli.bundle.conversion_cache import converted_once
from cadec_cli.bundle.integrity import check_files
from cadec_cli.bundle.manifest import (
    BACKWARD,
    DOCUMENT_KINDS,
    MANIFEST,
    PART_NAMES,
    Manifest,
    conversion_part,
    read_manifest,
)
from cadec_cli.engines.compute_types import check_compute_type
from cadec_cli.engines.engine import Engine, Languages, ModelSettings, Note, language_token, silence
from cadec_cli.engines.table import ENGINES, OWN_ENGINES, language_engine, translation_engine
from cadec_cli.errors import CadecError, option
from cadec_cli.method.lengths import LengthLimits
from cadec_cli.method.options import DecodingDefaults
from cadec_cli.models.configs import OwnSettings, read_model_config, translation_misfits
from cadec_cli.text.languages import is_language, iso_code
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.text.token_text import PretrainedCorpusText

if TYPE_CHECKING:
    from cadec_cli.models.doclm import DocumentLM
    from cadec_cli.models.doctransformer import DocTransformer
    from cadec_cli.models.transformer import Transformer
    from converters import Drift


class Bundle:
    """A bundle on disk."""

    def __init__(self, directory: Path, manifest: Manifest) -> None:
        self.directory = directory
        self.manifest = manifest

    def __repr__(self) -> str:
        return f"Bundle({self.name!r}, {str(self.directory)!r})"

    @classmethod
    def open(
        cls, directory: Path, verify: bool = True, checksums: bool = True, *, for_lm: bool = False
    ) -> Bundle:
        """Open a bundle. Missing, truncated or modified files and parts that do not fit are one CadecError.

        Without `verify` only the names and sizes of files are checked. Without `checksums` it is also checked
        that the parts fit each other, but no checksum is computed. `for_lm` says that the D-LM will be
        loaded next: while checksums are computed, the libraries that it needs are imported.
        """
        manifest = read_manifest(directory)
        try:
            return cls._open_checked(directory, manifest, verify, checksums, for_lm)
        except CadecError:
            if read_manifest(directory) == manifest:
                raise
        # Another process replaced the bundle meanwhile: parts of both, the old and the new one, were read.
        return cls._open_checked(directory, read_manifest(directory), verify, checksums)

    @classmethod
    def _open_checked(
        cls, directory: Path, manifest: Manifest, verify: bool, checksums: bool, for_lm: bool = False
    ) -> Bundle:
        def import_libraries() -> None:
            if for_lm and "lm" in manifest.parts and manifest.engine("lm") in ENGINES:
                language_engine(manifest.engine("lm")).import_libraries(directory / "lm")

        check_files(directory, manifest, checksums=verify and checksums, meanwhile=import_libraries)
        bundle = cls(directory, manifest)
        if verify:
            bundle._check_parts()
        return bundle

    @property
    def name(self) -> str:
        """The bundle's display name."""
        return self.manifest.name

    @property
    def files(self) -> list[Path]:
        """The paths of all files that are read."""
        return [self.directory / name for name in (MANIFEST, *self.manifest.files)]

    @property
    def source_language(self) -> str | None:
        """The code of the language it translates from; None if it can't translate."""
        return self.manifest.source_language

    @property
    def target_language(self) -> str:
        """The code of the language it translates to, or scores."""
        return self.manifest.target_language

    @property
    def defaults(self) -> DecodingDefaults:
        """The default options for decoding."""
        return self.manifest.defaults

    @property
    def lengths(self) -> LengthLimits:
        """The limits on the length of translations in its own direction."""
        return self.manifest.lengths or LengthLimits()

    @property
    def has_lm(self) -> bool:
        """Tell whether there is a D-LM."""
        return "lm" in self.manifest.parts

    @property
    def has_translation(self) -> bool:
        """Tell whether there is an S-NMT."""
        return "nmt" in self.manifest.parts

    @property
    def document_kinds(self) -> tuple[str, ...]:
        """The kinds of models that read several sentences, as far as the bundle has them."""
        return tuple(kind for kind in DOCUMENT_KINDS if kind in self.manifest.parts)

    @property
    def has_backward(self) -> bool:
        """Tell whether there is an S-NMT of the other direction."""
        return self.backward is not None

    @cached_property
    def backward(self) -> Bundle | None:
        """The bundle of the other direction; this bundle if its S-NMT serves both; None if there is none."""
        if BACKWARD in self.manifest.parts:
            return self._nested_bundle(BACKWARD)
        if not self.has_translation:
            return None
        settings = self.settings("nmt")
        return self if settings.source_languages and settings.target_languages else None

    @cached_property
    def source(self) -> TextPipeline:
        """The source language's text pipeline."""
        return self._pipeline("source", self.source_language)

    @cached_property
    def target(self) -> TextPipeline:
        """The target language's text pipeline, the S-NMT's."""
        return self._pipeline("target", self.target_language)

    @property
    def source_text(self) -> TextPipeline | PretrainedCorpusText:
        """How the S-NMT tokenises the source language: with the text pipeline, or with its own tokenizer."""
        return self._texts[0]

    @property
    def target_text(self) -> TextPipeline | PretrainedCorpusText:
        """How the S-NMT tokenises the target language."""
        return self._texts[1]

    @cached_property
    def _texts(self) -> tuple[TextPipeline | PretrainedCorpusText, TextPipeline | PretrainedCorpusText]:
        part = self.part("nmt")
        texts = translation_engine(self.engine("nmt")).texts
        if texts is None:
            raise CadecError(
                f"the engine {self.engine('nmt')} of {self.directory} does not show how its model cuts text"
            )
        return texts(part)

    @cached_property
    def lm_text(self) -> TextPipeline | PretrainedCorpusText:
        """How a D-LM trained here tokenises text: as the S-NMT does, or with its own pipeline."""
        parts = self.manifest.parts
        if "lm-pipeline" in parts:
            return self._pipeline("lm-pipeline", self.target_language)
        return self.target if "target" in parts else self.target_text

    @property
    def translation_positions(self) -> int:
        """How many source pieces, EOS included, an S-NMT that was trained here has positions for."""
        return self._own_settings("nmt").positions

    @property
    def lm_positions(self) -> int:
        """How many tokens, context and boundaries included, a D-LM that was trained here can read."""
        return self._own_settings("lm").positions

    @property
    def context_positions(self) -> int | None:
        """How many tokens the D-LM can read; None without a D-LM, or if that is known only after loading."""
        return self.settings("lm").positions if self.has_lm else None

    def engine(self, part: str) -> str:
        """Return the name of the engine that runs a model part: `nmt` or `lm`."""
        self.path(part)
        return self.manifest.engine(part)

    def trained_here(self, part: str) -> bool:
        """Tell whether there is a model part, `nmt` or `lm`, and it was trained with cadec."""
        return self.manifest.trained_here(part)

    def settings(self, part: str) -> ModelSettings:
        """Return the settings of a model part, `nmt` or `lm`, without loading the model."""
        if part not in self._settings:
            self._settings[part] = self._engine_of(part).settings(self.path(part))
        return self._settings[part]

    @property
    def chooses_languages(self) -> bool:
        """Tell whether the S-NMT takes the languages as an input, and so serves several."""
        if not self.has_translation:
            return False
        settings = self.settings("nmt")
        return bool(settings.source_languages or settings.target_languages)

    @property
    def has_network(self) -> bool:
        """Tell whether the C-aware beam can step the S-NMT."""
        if not self.has_translation:
            return False
        return translation_engine(self.engine("nmt")).stepwise(self.part("nmt")) is not None

    def part(self, name: str) -> BundlePart:
        """Return a model as its engine sees it: nmt, lm, or a model that reads several sentences."""
        self.path(name)
        return BundlePart(self, name)

    def translation_network(self) -> Transformer:
        """Load the network of an S-NMT that was trained here. It belongs to the caller."""
        return cast("Transformer", self.network("nmt"))

    def document_network(self) -> DocTransformer:
        """Load the network of the DocTransformer. It belongs to the caller."""
        return cast("DocTransformer", self.network("doc-nmt"))

    def texts_of(self, part: str) -> tuple[TextPipeline, TextPipeline]:
        """Return the text pipelines of a translation model that was trained here: source, target."""
        return (self.target if part == "repair" else self.source), self.target

    def lm_network(self) -> DocumentLM:
        """Load the network of a D-LM that was trained here. It belongs to the caller."""
        return cast("DocumentLM", self.network("lm"))

    def conversion(self, compute_type: str = "int8", note: Note = silence) -> Path:
        """Return the directory of the converted S-NMT: the bundle's, else one in the user's cache.

        `note` reports a conversion, which takes a while. If the bundle has the weights only as conversions,
        one of these is taken, whatever its type: it can be run as any type.
        """
        check_compute_type(compute_type)
        self.path("nmt")
        if translation_engine(self.engine("nmt")).converted:
            held = self.manifest.translation_conversions
            if not held:
                raise CadecError(f"the S-NMT of {self.directory} has no converted weights")
            chosen = next(name for name in (compute_type, "float32", *held) if name in held)
            if chosen != compute_type:
                note(f"the S-NMT's weights are stored as {chosen} but run as {compute_type}")
            return self.directory / conversion_part(chosen)
        part = conversion_part(compute_type)
        if conversion_cache.is_current(self.manifest.conversions.get(part), self.manifest):
            return self.directory / part
        return self.cached_conversion("nmt", compute_type, note)

    def cached_conversion(self, part: str, compute_type: str, note: Note = silence) -> Path:
        """Return the directory of a model trained here, converted once into the user's cache."""

        def convert(directory: Path) -> None:
            note(f"converting {self.path(part)} to {compute_type}, once: {directory}")
            # All bundles share the cache: a conversion under these checksums must come from these files.
            check_files(self.directory, self.manifest, parts=conversion_cache.depends_on(part))
            note(str(self.convert_translation(compute_type, directory, part=part)))

        return converted_once(conversion_cache.cache_key(self.manifest, compute_type, part), convert, note)

    def convert_translation(
        self,
        compute_type: str,
        directory: Path,
        probes: Sequence[tuple[str, str]] = (),
        part: str = "nmt",
    ) -> Drift:
        """Convert a translation model that was trained here, and return how far the result is from torch.

        It is compared on random sentences and on `probes`, pairs of sentences. `part` is the S-NMT or a
        model of joined sentences.
        """
        source, target = self.texts_of(part)
        return conversion_cache.convert(
            self.network(part),
            source,
            target,
            compute_type=compute_type,
            directory=directory,
            probes=probes,
        )

    def path(self, part: str) -> Path:
        """Return the path of a part; a CadecError if the bundle does not have it."""
        if part not in self.manifest.parts:
            what = PART_NAMES.get(part, f"{part}/")
            models = ("nmt", "lm", *DOCUMENT_KINDS)
            raise CadecError(
                f"the bundle {self.directory} has no {what}",
                f"add one with `cadec convert {self.directory} --{part} …`" if part in models else "",
            )
        return self.directory / part

    def _nested_bundle(self, part: str) -> Bundle:
        """Open a part that is a bundle; its files were already checked. It must list exactly these files."""
        bundle = Bundle.open(self.path(part), verify=False)
        own = {f"{part}/{name}": entry for name, entry in bundle.manifest.files.items()}
        listed = {name: entry for name, entry in self.manifest.files.items() if name.startswith(f"{part}/")}
        listed.pop(f"{part}/{MANIFEST}", None)
        if own != listed or bundle.manifest.links or BACKWARD in bundle.manifest.parts:
            raise CadecError(
                f"{bundle.directory} is not the bundle that {self.directory} lists",
                "build it again with `cadec convert`",
            )
        return bundle

    def _engine_of(self, part: str) -> Engine:
        return ENGINES[self.engine(part)]

    @cached_property
    def _settings(self) -> dict[str, ModelSettings]:
        return {}

    def _own_settings(self, part: str) -> OwnSettings:
        return read_model_config(self.path(part))

    def _pipeline(self, part: str, language: str | None) -> TextPipeline:
        pipeline = TextPipeline.load(self.path(part), checked=True)
        if language is None or iso_code(pipeline.language) != iso_code(language):
            raise CadecError(
                f"{self.directory / part} is a pipeline for {pipeline.language!r}, not for {language!r}"
            )
        return pipeline

    def network(self, kind: str) -> Any:
        """Load the network of a part that was trained here. It belongs to the caller."""
        from cadec_cli.models.storage import load_model

        return load_model(self.path(kind), kind).model

    def _check_parts(self) -> None:
        """Raise a CadecError if parts, each sound in itself, do not fit each other."""
        wrong = []
        for part in OWN_ENGINES:
            if part in self.manifest.parts:
                wrong += [f"{part}/: {problem}" for problem in self._engine_of(part).check(self.part(part))]
        for kind in self.document_kinds:
            misfits = translation_misfits(self._own_settings(kind), *self.texts_of(kind))
            wrong += [f"{kind}/: {problem}" for problem in misfits]
        if BACKWARD in self.manifest.parts:
            self._nested_bundle(BACKWARD)._check_parts()  # raises an error of its own
        if not self.has_translation and not self.has_lm:
            wrong.append("it has neither S-NMT nor D-LM")
        for compute_type, made in self.manifest.translation_conversions.items():
            if made.depends_on != conversion_cache.dependencies(self.manifest):
                wrong.append(f"{conversion_part(compute_type)}/ was converted from another model than nmt/")
        if wrong:
            raise CadecError(
                f"the parts of the bundle {self.directory} do not fit each other: " + "; ".join(wrong),
                "build it again with `cadec convert`",
            )


@dataclass(frozen=True)
class BundlePart:
    """A model of a bundle as its engine sees it; see `engines.engine.ModelPart`."""

    _bundle: Bundle
    name: str

    @property
    def bundle(self) -> Path:
        """The bundle's directory."""
        return self._bundle.directory

    @property
    def directory(self) -> Path:
        """The directory of the part's files."""
        return self._bundle.path(self.name)

    @property
    def files(self) -> Collection[str]:
        """The names of the part's files."""
        start = f"{self.name}/"
        return {name.removeprefix(start) for name in self._bundle.manifest.files if name.startswith(start)}

    @property
    def settings(self) -> Any:
        """The settings of the model, known without loading it."""
        if self.name in OWN_ENGINES:
            return self._bundle.settings(self.name)
        return self._bundle._own_settings(self.name)

    @property
    def languages(self) -> Languages:
        """The bundle's own languages."""
        return Languages(self._bundle.source_language, self._bundle.target_language)

    @property
    def limits(self) -> LengthLimits:
        """The limits on the length of translations between these languages."""
        return self._bundle.lengths

    @property
    def pipelines(self) -> tuple[TextPipeline, TextPipeline]:
        """The text pipelines of a translation model that was trained here: source, target."""
        return self._bundle.texts_of(self.name)

    @property
    def lm_text(self) -> TextPipeline | PretrainedCorpusText:
        """How a D-LM that was trained here tokenises text."""
        return self._bundle.lm_text

    @property
    def conversions(self) -> Collection[str]:
        """The compute types that the bundle holds converted weights for."""
        return self._bundle.manifest.translation_conversions.keys()

    def conversion(self, compute_type: str, note: Note) -> Path:
        """Return the directory of the converted weights: the bundle's own, else converted now."""
        if self.name == "nmt":
            return self._bundle.conversion(compute_type, note)
        return self._bundle.cached_conversion(self.name, compute_type, note)

    def network(self) -> Any:
        """Load the torch network of a model that was trained here."""
        return self._bundle.network(self.name)


def chosen_languages(bundle: Bundle, source: str | None = None, target: str | None = None) -> Languages:
    """Return the languages that a user asks for, else the bundle's; a CadecError if its models lack them."""
    usual = Languages(bundle.source_language, bundle.target_language)
    chosen = Languages(source or usual.source, target or usual.target)
    if chosen == usual:
        return usual
    if bundle.has_translation:
        settings = bundle.settings("nmt")
        if not bundle.chooses_languages:
            raise CadecError(
                f"the S-NMT of {bundle.directory} translates {usual} and nothing else",
                f"leave out {option('from')} and {option('to')}, or use another bundle",
            )
        language_token(chosen.source, settings.source_languages, "source")  # refuses unknown languages
        language_token(chosen.target, settings.target_languages, "target")
        _refuse_others(settings, chosen, usual)
    elif source is not None:
        raise CadecError(f"{bundle.directory} has no S-NMT, so it has no source language")
    return chosen


def _refuse_others(settings: ModelSettings, chosen: Languages, usual: Languages) -> None:
    """Check a language that the model does not take as input: only the usual target, any real source."""
    if not settings.target_languages and chosen.target != usual.target:
        raise CadecError(
            f"{settings.origin} translates into {usual.target} and no other language",
            f"leave out {option('to')}",
        )
    if not settings.source_languages and chosen.source not in (None, usual.source):
        assert chosen.source is not None
        if not is_language(chosen.source):
            raise CadecError(f"there is no language {chosen.source!r}", "give its code, e.g. en")
