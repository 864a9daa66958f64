"""A bundle: a directory with all that one translation direction needs.

bundle.json         what there is, with checksums, and the engines that run it (manifest.py)
source/  target/    text pipelines of models trained here
nmt/                the S-NMT; a bundle for scoring does without, and without source/
lm/                 the D-LM; a sentence-level bundle does without
lm-pipeline/        only where the D-LM has another text pipeline than the S-NMT's target side
ct2/int8/ …         the S-NMT for CTranslate2, by compute type; missing ones are converted into the cache
doc-nmt/  2-to-2/  repair/    models that read several sentences, trained here with source/ and target/
back/               a bundle with an S-NMT of the other direction, for objectives that ask for one
MODEL_CARD.md       if there is one

A pretrained model of another toolkit brings its own tokenizer and needs no text pipeline: nmt/ then holds the
tokenizers of an S-NMT whose weights are in ct2/ alone, lm/ a D-LM as transformers reads it; either with
settings in JSON (models.pretrained).

Opening reads and checks; what is in it is loaded when asked for. Text pipelines are then kept, networks are
not: whoever loads one owns it, may move it to a device or make a smaller copy of it, and let it go.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cadec_cli.bundle import conversion_cache
from cadec_cli.bundle.conversion_cache import Note, converted_once, silence
from cadec_cli.bundle.integrity import check_files, lm_misfits, model_config, translation_misfits
from cadec_cli.bundle.manifest import (
    BACKWARD,
    DOCUMENT_KINDS,
    MANIFEST,
    PART_NAMES,
    PRETRAINED_LM,
    PRETRAINED_NMT,
    Manifest,
    conversion_part,
    read_manifest,
)
from cadec_cli.engines.compute_types import check_compute_type
from cadec_cli.errors import CadecError
from cadec_cli.fs.read import read_json
from cadec_cli.method.lengths import LengthLimits
from cadec_cli.method.options import DecodingDefaults
from cadec_cli.models.pretrained_settings import (
    NETWORK,
    LanguageSettings,
    TranslationSettings,
    read_language_settings,
    read_translation_settings,
)
from cadec_cli.text.languages import iso_code
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.text.token_text import PretrainedCorpusText
from cadec_cli.validation import quote_value

if TYPE_CHECKING:
    from cadec_cli.models.doclm import DocumentLM
    from cadec_cli.models.doctransformer import DocTransformer
    from cadec_cli.models.transformer import Transformer
    from cadec_cli.text.tokenizers.vocabulary import TextSettings
    from converters.verify import Drift


class Bundle:
    """A bundle on disk."""

    def __init__(self, directory: Path, manifest: Manifest) -> None:
        self.directory = directory
        self.manifest = manifest

    def __repr__(self) -> str:
        return f"Bundle({self.name!r}, {str(self.directory)!r})"

    @classmethod
    def open(cls, directory: Path, verify: bool = True) -> Bundle:
        """Open a bundle. Whatever is missing, truncated, modified or does not fit is one CadecError.

        Without `verify` only names and sizes of the files are checked.
        """
        manifest = read_manifest(directory)
        try:
            return cls._open_checked(directory, manifest, verify)
        except CadecError:
            if read_manifest(directory) == manifest:
                raise
        # Another process has put a new bundle in its place, of which some was read and some of the old one.
        return cls._open_checked(directory, read_manifest(directory), verify)

    @classmethod
    def _open_checked(cls, directory: Path, manifest: Manifest, verify: bool) -> Bundle:
        check_files(directory, manifest, checksums=verify)
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
        """All that is read of it."""
        return [self.directory / name for name in (MANIFEST, *self.manifest.files)]

    @property
    def source_language(self) -> str | None:
        """The code of the language it translates from; none where it can't translate."""
        return self.manifest.source_language

    @property
    def target_language(self) -> str:
        """The code of the language it translates to, or scores."""
        return self.manifest.target_language

    @property
    def defaults(self) -> DecodingDefaults:
        """How to decode unless asked otherwise."""
        return self.manifest.defaults

    @property
    def lengths(self) -> LengthLimits:
        """How long translations in its own direction may become."""
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
        """The models there are that read several sentences."""
        return tuple(kind for kind in DOCUMENT_KINDS if kind in self.manifest.parts)

    @property
    def has_backward(self) -> bool:
        """Tell whether there is an S-NMT of the other direction."""
        return self.backward is not None

    @cached_property
    def backward(self) -> Bundle | None:
        """The bundle of the other direction, itself where its S-NMT serves both."""
        if BACKWARD in self.manifest.parts:
            return self._nested_bundle(BACKWARD)
        settings = self.translation_settings
        both = settings is not None and settings.source_languages and settings.target_languages
        return self if both else None

    @cached_property
    def source(self) -> TextPipeline:
        """The source language's text pipeline."""
        return self._pipeline("source", self.source_language)

    @cached_property
    def target(self) -> TextPipeline:
        """The target language's text pipeline, the S-NMT's."""
        return self._pipeline("target", self.target_language)

    @cached_property
    def source_text(self) -> TextPipeline | PretrainedCorpusText:
        """How the S-NMT reads the source language: with the text pipeline, or a pretrained tokenizer."""
        settings = self.translation_settings
        if settings is None:
            return self.source
        return self._pretrained_text(0, settings.source, self.source_language or "")

    @cached_property
    def target_text(self) -> TextPipeline | PretrainedCorpusText:
        """How the S-NMT writes the target language, likewise."""
        settings = self.translation_settings
        if settings is None:
            return self.target
        return self._pretrained_text(1, settings.target, self.target_language)

    @cached_property
    def lm_text(self) -> TextPipeline | PretrainedCorpusText:
        """What a D-LM trained here was trained with: the S-NMT's own text, or a pipeline of its own."""
        parts = self.manifest.parts
        if "lm-pipeline" in parts:
            return self._pipeline("lm-pipeline", self.target_language)
        return self.target if "target" in parts else self.target_text

    @cached_property
    def translation_positions(self) -> int:
        """How many source pieces, EOS included, the S-NMT has positions for."""
        return self._positions("nmt")

    @cached_property
    def lm_positions(self) -> int:
        """How many tokens, context and boundaries included, the D-LM has positions for."""
        return self._positions("lm")

    @property
    def context_positions(self) -> int | None:
        """The same of any D-LM, as far as it is known before that is loaded."""
        if not self.has_lm:
            return None
        return self.lm_positions if self.language_settings is None else self.language_settings.positions

    def engine(self, part: str) -> str:
        """The name of the engine that runs a model part: `nmt` or `lm`."""
        self.path(part)
        return self.manifest.engine(part)

    @cached_property
    def translation_settings(self) -> TranslationSettings | None:
        """What is known of a pretrained S-NMT; None where it was trained here, or there is none."""
        pretrained = self.has_translation and self.engine("nmt") == PRETRAINED_NMT
        return read_translation_settings(self.path("nmt")) if pretrained else None

    @cached_property
    def language_settings(self) -> LanguageSettings | None:
        """What is known of a pretrained D-LM; None where it was trained here, or there is none."""
        pretrained = self.has_lm and self.engine("lm") == PRETRAINED_LM
        return read_language_settings(self.path("lm")) if pretrained else None

    @property
    def has_network(self) -> bool:
        """Tell whether there is a network of the S-NMT that torch can step."""
        if not self.has_translation:
            return False
        settings = self.translation_settings
        return settings is None or (
            settings.start is not None and f"nmt/{NETWORK}/config.json" in self.manifest.files
        )

    def translation_network(self) -> Transformer:
        """The S-NMT in torch, ready to evaluate: loaded anew at each call, and the caller's to keep."""
        return cast("Transformer", self._network("nmt"))

    def document_network(self) -> DocTransformer:
        """The DocTransformer in torch, likewise."""
        return cast("DocTransformer", self._network("doc-nmt"))

    def texts_of(self, part: str) -> tuple[TextPipeline, TextPipeline]:
        """The text pipelines of a translation model that was trained here: what it reads, and writes."""
        return (self.target if part == "repair" else self.source), self.target

    def positions_of(self, part: str) -> int:
        """How many tokens a model that was trained here has positions for."""
        return self._positions(part)

    def lm_network(self) -> DocumentLM:
        """The D-LM in torch, likewise."""
        return cast("DocumentLM", self._network("lm"))

    def ctranslate2_model(self, compute_type: str = "int8", note: Note = silence) -> Path:
        """The S-NMT for CTranslate2: the bundle's own, else converted once, into the user's cache.

        That a conversion takes place, which takes its time, is said through `note`. Of a pretrained model
        there is what the bundle holds: CTranslate2 computes with it in any type.
        """
        check_compute_type(compute_type)
        if self.translation_settings is not None:
            held = self.manifest.translation_conversions
            if not held:
                raise CadecError(f"the S-NMT of {self.directory} has no weights for CTranslate2")
            chosen = next(name for name in (compute_type, "float32", *held) if name in held)
            if chosen != compute_type:
                note(f"the S-NMT's weights are stored as {chosen} but run as {compute_type}")
            return self.directory / conversion_part(chosen)
        self.path("nmt")
        part = conversion_part(compute_type)
        if conversion_cache.is_current(self.manifest.conversions.get(part), self.manifest):
            return self.directory / part
        return self.cached_conversion("nmt", compute_type, note)

    def cached_conversion(self, part: str, compute_type: str, note: Note = silence) -> Path:
        """A translation model that was trained here, converted once, into the user's cache."""

        def convert(directory: Path) -> None:
            note(f"converting {self.path(part)} to {compute_type}, once: {directory}")
            # All bundles share the cache: what goes there under these checksums is made of these files.
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
        """Convert the S-NMT for CTranslate2 into a directory, and report how far it is from torch.

        Probes are sentence pairs to verify it with, besides random ones. Models of joined sentences are
        parts that can be converted too.
        """
        source, target = self.texts_of(part)
        return conversion_cache.convert(
            self._network(part),
            source,
            target,
            compute_type=compute_type,
            directory=directory,
            probes=probes,
        )

    def path(self, part: str) -> Path:
        """Where a part is, which must be there."""
        if part not in self.manifest.parts:
            what = PART_NAMES.get(part, f"{part}/")
            models = ("nmt", "lm", *DOCUMENT_KINDS)
            raise CadecError(
                f"the bundle {self.directory} has no {what}",
                f"add one with `cadec convert {self.directory} --{part} …`" if part in models else "",
            )
        return self.directory / part

    def _nested_bundle(self, part: str) -> Bundle:
        """A part that is a bundle: its files were checked with all others, and are the ones it lists."""
        bundle = Bundle.open(self.path(part), verify=False)
        own = {f"{part}/{name}": entry for name, entry in bundle.manifest.files.items()}
        listed = {name: entry for name, entry in self.manifest.files.items() if name.startswith(f"{part}/")}
        listed.pop(f"{part}/{MANIFEST}", None)
        if own != listed or bundle.manifest.links or BACKWARD in bundle.manifest.parts:
            raise CadecError(
                f"{bundle.directory} is not the bundle that {self.directory} lists",
                "build it anew with `cadec convert`",
            )
        return bundle

    def _pretrained_text(self, side: int, settings: TextSettings, language: str) -> PretrainedCorpusText:
        from cadec_cli.engines.ctranslate2 import read_vocabularies
        from cadec_cli.text.tokenizers import load_text

        vocabulary = read_vocabularies(self.ctranslate2_model())[side]
        code = iso_code(language) if language else ""
        tokenizer = load_text(self.path("nmt"), settings, vocabulary, code)
        return PretrainedCorpusText(code, tokenizer, "translation model")

    def _positions(self, part: str) -> int:
        return model_config(self.path(part))["config"]["positions"]  # type: ignore[no-any-return]

    def _pipeline(self, part: str, language: str | None) -> TextPipeline:
        pipeline = TextPipeline.load(self.path(part), checked=True)
        if language is None or iso_code(pipeline.language) != iso_code(language):
            raise CadecError(
                f"{self.directory / part} is a pipeline for {pipeline.language!r}, not for {language!r}"
            )
        return pipeline

    def _network(self, kind: str) -> Any:
        from cadec_cli.models.storage import load_model

        return load_model(self.path(kind), kind).model

    def _unlisted_weights(self, place: str) -> list[str]:
        """What is wrong with the index of a network of transformers, which names the files of its weights."""
        name = f"{place}/model.safetensors.index.json"
        if name not in self.manifest.files:
            return []
        index = read_json(self.directory / name, strict=True)
        named = index.get("weight_map") if isinstance(index, dict) else None
        if not isinstance(named, dict):
            return [f"{name} names no files"]
        files = {f"{place}/{file}" for file in named.values()}
        return [
            f"{name} names {quote_value(file)}, which is not listed"
            for file in files - self.manifest.files.keys()
        ]

    def _check_parts(self) -> None:
        """Refuse parts that are sound in themselves but not made for one another."""
        wrong = []
        if (settings := self.translation_settings) is not None:
            for name in {*settings.source.files, *settings.target.files}:
                if f"nmt/{name}" not in self.manifest.files:
                    wrong.append(f"nmt/: there is no {name}")
            wrong += self._unlisted_weights(f"nmt/{NETWORK}")
            if not self.manifest.translation_conversions:
                wrong.append("nmt/: there are no weights for CTranslate2")
        elif self.has_translation:
            wrong += [
                f"nmt/: {problem}"
                for problem in translation_misfits(model_config(self.path("nmt")), self.source, self.target)
            ]
        if self.has_lm and self.language_settings is not None:
            wrong += self._unlisted_weights("lm")
        elif self.has_lm:
            wrong += [
                f"lm/: {problem}" for problem in lm_misfits(model_config(self.path("lm")), self.lm_text)
            ]
        for kind in self.document_kinds:
            stored, texts = model_config(self.path(kind)), self.texts_of(kind)
            wrong += [f"{kind}/: {problem}" for problem in translation_misfits(stored, *texts)]
        if BACKWARD in self.manifest.parts:
            self._nested_bundle(BACKWARD)._check_parts()  # which raises what is wrong
        if not self.has_translation and not self.has_lm:
            wrong.append("it has neither S-NMT nor D-LM")
        for compute_type, made in self.manifest.translation_conversions.items():
            if made.depends_on != conversion_cache.dependencies(self.manifest):
                wrong.append(f"{conversion_part(compute_type)}/ was converted from another model than nmt/")
        if wrong:
            raise CadecError(
                f"the parts of the bundle {self.directory} do not fit each other: " + "; ".join(wrong),
                "build it anew with `cadec convert`",
            )
