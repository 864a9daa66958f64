"""Building bundles: load and check all parts first, report all misfits at once, and only then write.

A bundle appears whole or not at all, and never with a converted model that disagrees with the original.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from cadec_cli.bundle import conversion_cache
from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.integrity import copy_files
from cadec_cli.bundle.manifest import (
    BACKWARD,
    DOCUMENT_KINDS,
    FORMALITY,
    MANIFEST,
    MAX_TEXT_LENGTH,
    Conversion,
    FileRecord,
    Manifest,
    conversion_part,
    record,
)
from cadec_cli.bundle.parts import (
    CHANGED_BY_VOCABULARY,
    Converted,
    OwnModelRequest,
    OwnParts,
    PretrainedLanguage,
    PretrainedTranslation,
    WrittenLanguage,
    backward_misfits,
    choose_vocabulary,
    import_language,
    import_translation,
    is_fitted,
    is_pretrained,
    load_own_parts,
    reuse_language,
    reuse_translation,
    write_backward,
)
from cadec_cli.engines.engine import Note, silence
from cadec_cli.engines.table import OWN_ENGINES
from cadec_cli.errors import CadecError, option
from cadec_cli.fs.atomic import atomic_directory
from cadec_cli.fs.paths import expand_user
from cadec_cli.fs.read import read_errors
from cadec_cli.method.lengths import LengthLimits, learnt_limits
from cadec_cli.method.objectives import ADDRESS, PAIRS, TARGET
from cadec_cli.method.options import DecodingDefaults, with_flags
from cadec_cli.method.searches import LISTS, search_kind
from cadec_cli.models.pretrained_settings import LanguageSettings
from cadec_cli.text.address import ADDRESS_LANGUAGES
from cadec_cli.text.formality import read_seeds
from cadec_cli.text.languages import iso_code, language_misfit
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.text.sentences import base_language
from cadec_cli.validation import showable, text_misfit
from cadec_cli.version import __version__
from converters import FIT, PretrainedRequest

if TYPE_CHECKING:
    from converters import Drift

MODEL_CARD = "MODEL_CARD.md"
# Hypotheses per sentence for a fitted D-LM: docs/benchmarks.md has accuracy against time.
SHORT_NBEST = 12
# Weights for a pretrained D-LM, where forms of address are known: docs/evaluation.md has what they bring.
VOTED_WEIGHTS = {"lm": 0.5, ADDRESS: 0.5}


@dataclass(frozen=True, kw_only=True)
class BundleRequest:
    """The parts to build a bundle from. Everything is optional, but there must be an S-NMT or a D-LM.

    A model is a model directory or a training run of ours, or a pretrained model of another toolkit: a path,
    or a name on the hub. Missing parts are taken from `base`.
    """

    base: Path | None = None  # an existing bundle, which may be the output
    source: Path | None = None  # text pipelines of models that were trained here
    target: Path | None = None
    lm_pipeline: Path | None = None
    nmt: Path | str | None = None
    lm: Path | str | None = None
    pretrained: PretrainedRequest = field(default_factory=PretrainedRequest)  # options of pretrained models
    back: Path | None = None  # a bundle whose S-NMT translates the other way
    documents: Mapping[str, Path] = field(default_factory=dict)  # models of several sentences, by kind
    name: str = ""
    defaults: DecodingDefaults | None = None
    chosen: frozenset[str] = frozenset()  # the fields of `defaults` that are the user's choice
    half: bool = False  # store weights in float16; they are float32 again when loaded
    compute_types: Sequence[str] = ()  # to convert the S-NMT to
    card: Path | None = None
    pairs: Sequence[tuple[str, str]] = ()  # sentence pairs from which the limits of lengths are learnt
    probes: Sequence[tuple[str, str]] = ()  # sentence pairs to verify conversions with, besides random ones


def build_bundle(output: Path, request: BundleRequest, note: Note = silence) -> list[Drift]:
    """Write a bundle; return how far each newly converted model is from the original.

    An existing bundle at `output` is replaced; any other directory is not. All misfits are one CadecError,
    and then nothing is changed. `note` reports assumptions, such as the newest checkpoint of an unfinished
    run. Learnt lengths are kept as long as the S-NMT is.
    """
    contents = _Checks(output, request, note).contents()
    with atomic_directory(output, "nothing was changed", marker=MANIFEST) as directory:
        return _write(directory, contents)


@dataclass
class Misfits:
    """The problems that prevent a bundle from being built."""

    problems: list[str] = field(default_factory=list)
    hint: str = ""

    def add(self, error: CadecError) -> None:
        """Add the message of an error, and its hint if it is the first."""
        self.problems.append(error.marked_message)
        self.hint = self.hint or error.marked_hint

    def check(self) -> None:
        """Raise a CadecError if there are problems."""
        if self.problems:
            raise CadecError(
                "this bundle can't be built: " + "; ".join(dict.fromkeys(self.problems)), self.hint
            )


_SAY_SOURCE = f"name it with {option('source-language')}, as in {option('source-language', 'en')}"
_SAY_TARGET = f"name it with {option('target-language')}, as in {option('target-language', 'fr')}"


@dataclass(frozen=True, kw_only=True)
class BundleContents:
    """The checked contents of a bundle; `kept` is the base, whose conversions are used if still valid."""

    own: OwnParts
    translation: PretrainedTranslation | None
    language: PretrainedLanguage | None
    source_language: str | None
    target_language: str
    name: str
    defaults: DecodingDefaults
    lengths: LengthLimits | None
    pairs: Sequence[tuple[str, str]]
    compute_types: Sequence[str]
    card: Path | None
    formality: bytes | None
    probes: Sequence[tuple[str, str]]
    kept: Bundle | None
    reverse: Bundle | None
    suggested: frozenset[str]  # the fields of `defaults` that may follow from what the D-LM is
    vocabulary: str | None  # `fit` or `full`, to be made so; None: the D-LM's files stay as they are

    @property
    def engines(self) -> dict[str, str]:
        """The engine of every model part."""
        engines = {part: engine.name for part, engine in OWN_ENGINES.items() if part in self.own.models}
        if self.translation is not None:
            engines["nmt"] = self.translation.engine
        if self.language is not None:
            engines["lm"] = self.language.engine
        return {part: engines[part] for part in OWN_ENGINES if part in engines}


class _Checks:
    """One request, loaded and checked: all problems are collected before any is raised."""

    def __init__(self, output: Path, request: BundleRequest, note: Note) -> None:
        nmt, lm = (None if one is None else str(expand_user(one)) for one in (request.nmt, request.lm))
        self.output = output
        self.request = replace(request, nmt=nmt, lm=lm, pretrained=replace(request.pretrained, note=note))
        self.nmt, self.lm, self.pretrained = nmt, lm, self.request.pretrained
        self.note = note
        self.kept = Bundle.open(request.base) if request.base is not None else None
        self.wrong = Misfits()

    def contents(self) -> BundleContents:
        """Return the checked contents of the bundle; misfits are one CadecError."""
        request, kept, wrong = self.request, self.kept, self.wrong
        self._check_paths()
        translation = self._translation()
        language = self._language(translation)
        wrong.problems += self._without_effect(language)
        wrong.check()
        own = self._own_parts(translation, language)
        wrong.problems += own.wrong
        wrong.hint = wrong.hint or own.hint
        card = request.card
        if card is None and kept is not None and MODEL_CARD in kept.manifest.files:
            card = kept.directory / MODEL_CARD
        self._check_use(own, translation, language, card)
        languages = self._languages(own, translation)
        reverse = self._reverse(languages)
        wrong.check()
        changed = self.nmt or request.source or request.target
        usual = kept.name if kept is not None else showable(self.output.resolve().name, MAX_TEXT_LENGTH)
        return BundleContents(
            own=own,
            translation=translation,
            language=language,
            source_language=languages[0],
            target_language=languages[1],
            name=request.name or usual,
            defaults=self._defaults(own),
            lengths=None if changed else _known_lengths(kept, languages),
            pairs=request.pairs,
            compute_types=request.compute_types,
            card=card,
            formality=_own_formality(kept),
            probes=request.probes,
            kept=kept,
            reverse=reverse,
            suggested=self._suggested - request.chosen,
            vocabulary=self._vocabulary(language),
        )

    def _defaults(self, own: OwnParts) -> DecodingDefaults:
        """Return the decoding defaults; a D-LM that was trained here reads the target language only."""
        request, kept = self.request, self.kept
        defaults = request.defaults or (kept.defaults if kept is not None else DecodingDefaults())
        return with_flags(defaults, {"reads": TARGET}) if "lm" in own.models else defaults

    @property
    def _suggested(self) -> frozenset[str]:
        """The fields of the decoding defaults that a new D-LM, or a new bundle, may decide."""
        new = {"nbest"} if self.kept is None else set()
        if self._is_pretrained("lm"):
            new |= {"reads", "weight"} if self.kept is None else {"reads"}
        return frozenset(new)

    @property
    def _reads_pairs(self) -> bool:
        """Tell whether the defaults say that the D-LM reads pairs."""
        return self.request.defaults is not None and self.request.defaults.reads != TARGET

    def _existing(self, part: str) -> Path | None:
        """Return the path of a part of the base; None if there is none."""
        kept = self.kept
        return kept.directory / part if kept is not None and part in kept.manifest.parts else None

    def _is_pretrained(self, part: str) -> bool:
        """Tell whether a model is given and is another toolkit's."""
        given = self.nmt if part == "nmt" else self.lm
        return given is not None and is_pretrained(part, given, self.pretrained)

    def _reuses(self, part: str) -> bool:
        """Tell whether a part is taken from the base unchanged, since it was not trained here."""
        given = self.nmt if part == "nmt" else self.lm
        kept = self.kept
        return (
            given is None and kept is not None and part in kept.manifest.parts and not kept.trained_here(part)
        )

    def _check_paths(self) -> None:
        """Raise a CadecError for models that are neither existing paths nor names on the hub."""
        for part, model in (("nmt", self.nmt), ("lm", self.lm)):
            if model is not None and not (Path(model).exists() or self._is_pretrained(part)):
                self.wrong.problems.append(f"no such file or directory: {model}")
        self.wrong.check()

    def _translation(self) -> PretrainedTranslation | None:
        """Return the S-NMT of another toolkit that is given, or that the base has."""
        compute_types = self.request.compute_types
        try:
            if self._is_pretrained("nmt"):
                return import_translation(str(self.nmt), self.pretrained, compute_types)
            if self.kept is not None and self._reuses("nmt"):
                return reuse_translation(self.kept, self.pretrained, compute_types)
        except CadecError as error:
            self.wrong.add(error)
        return None

    def _language(self, translation: PretrainedTranslation | None) -> PretrainedLanguage | None:
        """Return the D-LM of another toolkit that is given, or that the base has."""
        language = self._lm_language(translation)
        try:
            if self._is_pretrained("lm"):
                # If the S-NMT itself is wrong, its language is unknown, and the problem already reported.
                if language is None and not self.wrong.problems:
                    raise CadecError("the target language is not known", _SAY_TARGET)
                if self.pretrained.link and Path(str(self.lm)).resolve().is_relative_to(
                    self.output.resolve()
                ):
                    raise CadecError(
                        f"{self.lm} is in the bundle to be written, and can't be linked from there"
                    )
                return import_language(str(self.lm), self.pretrained, language)
            if self.kept is not None and self._reuses("lm"):
                return reuse_language(self.kept, self.pretrained)
        except CadecError as error:
            self.wrong.add(error)
        return None

    def _lm_language(self, translation: PretrainedTranslation | None) -> str | None:
        """Return the language of a pretrained D-LM, as far as it is known before loading; else None."""
        pipeline = self.request.target
        if translation is not None:
            return translation.languages()[1]
        if self.pretrained.target_language is not None:
            return self.pretrained.target_language
        if pipeline is not None and (pipeline / "pipeline.json").is_file():
            return TextPipeline.load(pipeline).language
        return self.kept.target_language if self.kept is not None else None

    def _without_effect(self, language: PretrainedLanguage | None) -> list[str]:
        """Return a problem for each option about a model that is not given."""
        said = self.pretrained
        wrong = []
        for name, value in (
            ("nmt-kind", said.kind),
            ("source-tokenizer", said.source_tokenizer),
            ("target-tokenizer", said.target_tokenizer),
        ):
            if value is not None and self.nmt is None:
                wrong.append(f"{option(name)} is about {option('nmt')}, which is not given")
        if said.for_beam and not self._is_pretrained("nmt"):
            wrong.append(f"{option('for-beam')} is about a pretrained {option('nmt')}, and none is given")
        if said.link and self.lm is None:
            wrong.append(f"{option('link')} is about {option('lm')}, which is not given")
        # If the D-LM itself is wrong, the problem is already reported.
        if language is None and not self._is_pretrained("lm"):
            if said.no_context is not None:
                wrong.append(f"{option('no-context')} is for a pretrained D-LM, and there is none")
            if said.template is not None or ("reads" in self.request.chosen and self._reads_pairs):
                name = option("reads") if said.template is None else option("template")
                wrong.append(f"{name} is for a pretrained D-LM, and there is none")
            if said.vocabulary is not None:
                wrong.append(f"{option('vocabulary')} is for a pretrained D-LM, and there is none")
            if said.link and self.lm is not None:
                wrong.append(f"{option('link')} is for a pretrained D-LM, and this one was trained here")
        return wrong

    def _own_parts(
        self, translation: PretrainedTranslation | None, language: PretrainedLanguage | None
    ) -> OwnParts:
        """Load the parts that were trained here, given or of the base."""
        request, wrong = self.request, self.wrong
        own_nmt = Path(self.nmt) if self.nmt is not None else self._existing("nmt")
        own_lm = Path(self.lm) if self.lm is not None else self._existing("lm")
        documents = {kind: request.documents.get(kind) or self._existing(kind) for kind in DOCUMENT_KINDS}
        given = OwnModelRequest(
            source=request.source or self._existing("source"),
            target=request.target or self._existing("target"),
            nmt=own_nmt if translation is None else None,
            lm=own_lm if language is None else None,
            lm_pipeline=request.lm_pipeline or self._existing("lm-pipeline"),
            half=request.half,
            compute_types=request.compute_types,
            documents={kind: place for kind, place in documents.items() if place is not None},
        )
        if translation is not None:  # it has its own tokenizers; pipelines are then only for the D-LM
            if request.source is not None:
                wrong.problems.append(
                    "a pretrained S-NMT brings its own tokenizer, so it needs no source pipeline"
                )
            given = replace(given, source=None)
            if self.nmt is None and self.kept is not None and given.lm is not None:
                given = replace(given, text=self.kept.target_text)
            elif given.lm is not None and given.target is None and given.lm_pipeline is None:
                wrong.hint = (
                    f"name the D-LM's pipeline with {option('target-pipeline')}; one that was trained on the "
                    "S-NMT's own tokens is added to a bundle that has the S-NMT: `cadec convert BUNDLE "
                    f"{option('lm', '…')}`"
                )
        if given.nmt is None and given.lm is None and not given.documents:
            return OwnParts()
        return load_own_parts(given, self.note)

    def _check_use(
        self,
        own: OwnParts,
        translation: PretrainedTranslation | None,
        language: PretrainedLanguage | None,
        card: Path | None,
    ) -> None:
        """Add a problem for each request that these parts can't serve."""
        request, problems = self.request, self.wrong.problems
        translates = translation is not None or self.nmt is not None or self._existing("nmt") is not None
        if problem := text_misfit(request.name, MAX_TEXT_LENGTH):
            problems.append(f"the bundle's name: {problem}")
        if card is not None and not card.is_file():
            problems.append(f"no such file: {card}")
        if not (own.models or problems or translation is not None or language is not None):
            problems.append("there is neither S-NMT nor D-LM")
        if request.compute_types and not translates:
            problems.append("there is no S-NMT to convert")
        if request.pairs and not translates:
            problems.append("there is no S-NMT to learn lengths for")
        if request.half and not own.models and not problems:
            problems.append("half precision is for models trained here")
        if request.probes and translation is not None:
            problems.append("a pretrained S-NMT is verified with probes of its own")

    def _languages(self, own: OwnParts, translation: PretrainedTranslation | None) -> tuple[str | None, str]:
        """Return the source and the target language, from the pipelines, a pretrained model or the user."""
        said, wrong = self.pretrained, self.wrong
        from_, to = translation.languages() if translation is not None else (None, None)
        source = own.source.language if own.source is not None else from_
        target = own.target.language if own.target is not None else None
        if target is not None and to is not None and iso_code(target) != iso_code(to):
            wrong.problems.append(f"the D-LM is for {target!r}, the S-NMT translates into {to!r}")
        target = to or target or said.target_language
        if target is None and self.kept is not None:
            target = self.kept.target_language
        for side, pipeline, language in (
            ("source", own.source, said.source_language),
            ("target", own.target, said.target_language),
        ):
            if pipeline is not None and language not in (None, pipeline.language):
                wrong.problems.append(
                    f"the {side} pipeline is for {pipeline.language!r}, not for {language!r}"
                )
        if translation is not None and source is None and not wrong.problems:
            wrong.problems.append("the source language of the S-NMT is not known")
            wrong.hint = wrong.hint or _SAY_SOURCE
        if target is None and not wrong.problems:
            wrong.problems.append("the target language is not known")
            wrong.hint = wrong.hint or _SAY_TARGET
        wrong.problems += [
            problem for code in (source, target) if code is not None and (problem := language_misfit(code))
        ]
        return source, target or ""

    def _vocabulary(self, language: PretrainedLanguage | None) -> str | None:
        """Return which tokens the D-LM is to predict; None if its files are right as they are."""
        if language is None or (self.nmt is None and self._existing("nmt") is None):
            return None
        if self.pretrained.vocabulary is not None or self._is_pretrained("lm"):
            return self.pretrained.vocabulary or FIT
        # A new S-NMT writes other pieces.
        fitted = self.kept is not None and is_fitted(self.kept)
        return FIT if fitted and (self.nmt is not None or self.request.target is not None) else None

    def _reverse(self, languages: tuple[str | None, str]) -> Bundle | None:
        """Return the bundle of the other direction that is given, or that the base holds."""
        held = self._existing(BACKWARD) is not None
        reverse = self.kept.backward if self.kept is not None and held else None
        try:
            reverse = Bundle.open(self.request.back) if self.request.back is not None else reverse
        except CadecError as error:
            self.wrong.add(error)
        if reverse is not None:
            self.wrong.problems += backward_misfits(reverse, *languages)
        return reverse


def _known_lengths(kept: Bundle | None, languages: tuple[str | None, str]) -> LengthLimits | None:
    """Return the base's learnt lengths; None if the languages have changed."""
    if kept is None or languages != (kept.source_language, kept.target_language):
        return None
    return kept.manifest.lengths


def _own_formality(kept: Bundle | None) -> bytes | None:
    """Return the content of a bundle's own file of seed sentences, listed or not: building adds it."""
    if kept is None or not (path := kept.directory / FORMALITY).is_file():
        return None
    read_seeds(path)
    with read_errors(path):
        return path.read_bytes()


# How many sentence pairs are used, spread over the text: more would not change the result.
_LOOKED_AT = 20_000


def lengths_of_pairs(bundle: Bundle, pairs: Sequence[tuple[str, str]]) -> LengthLimits:
    """Learn the limits of lengths from sentence pairs, in the tokens of the bundle's S-NMT."""
    source, target = bundle.source_text, bundle.target_text
    some = pairs[:: -(-len(pairs) // _LOOKED_AT) or 1]
    return learnt_limits((len(source.encode(one)), len(target.encode(other))) for one, other in some)


def _write(directory: Path, contents: BundleContents) -> list[Drift]:
    """Write everything; every file is hashed once."""
    known: dict[str, FileRecord] = {}
    contents.own.write(directory)
    if contents.translation is not None:
        known.update(contents.translation.write(directory))
    language = WrittenLanguage({})
    if contents.language is not None:
        language = contents.language.write(directory)
    known.update(language.known)
    if contents.reverse is not None:
        known.update(write_backward(contents.reverse, directory / BACKWARD))
    if contents.card is not None:
        shutil.copyfile(contents.card, directory / MODEL_CARD)
    if contents.formality is not None:
        (directory / FORMALITY).write_bytes(contents.formality)
    # The stored weights are converted, which `half` has rounded, not the given ones.
    stored = _manifest(directory, contents, language.links, {}, known)
    if contents.translation is not None:
        converted = contents.translation.convert(stored, directory)
    else:
        converted = _convert(directory, Bundle(directory, stored), contents)
    known = {**stored.files, **converted.known}
    manifest = _manifest(directory, contents, language.links, converted.conversions, known)
    if contents.vocabulary is not None:
        choose_vocabulary(Bundle(directory, manifest), contents.vocabulary)
        known = {name: one for name, one in manifest.files.items() if name not in CHANGED_BY_VOCABULARY}
        manifest = _manifest(directory, contents, language.links, converted.conversions, known)
    manifest = replace(manifest, defaults=_suggest_defaults(Bundle(directory, manifest), contents.suggested))
    if contents.pairs:
        lengths = lengths_of_pairs(Bundle(directory, manifest), contents.pairs)
        manifest = replace(manifest, lengths=lengths)
    (directory / MANIFEST).write_bytes(manifest.content())
    Bundle.open(directory, checksums=False)
    return converted.drifts


def _suggest_defaults(bundle: Bundle, fields: Collection[str]) -> DecodingDefaults:
    """Return the decoding defaults of a bundle, some fields of which follow from what its D-LM is."""
    defaults = bundle.defaults
    settings = bundle.settings("lm") if "lm" in bundle.manifest.parts else None
    if not isinstance(settings, LanguageSettings):
        return defaults
    in_pairs = settings.template is not None
    if "nbest" in fields and settings.vocabulary is not None:
        defaults = replace(defaults, nbest=SHORT_NBEST)
    if "reads" in fields:
        defaults = with_flags(defaults, {"reads": PAIRS if in_pairs else TARGET})
    votes = base_language(bundle.target_language) in ADDRESS_LANGUAGES
    from_lists = search_kind(defaults.search).needs == LISTS and defaults.objective == "c-score"
    if "weight" in fields and votes and from_lists and defaults.reads == TARGET:
        defaults = with_flags(defaults, {"weight": VOTED_WEIGHTS})
    return defaults


def _convert(directory: Path, bundle: Bundle, contents: BundleContents) -> Converted:
    """Convert to every compute type asked for or held before; conversions that are still valid are copied."""
    kept = contents.kept if contents.kept is not None and contents.kept.trained_here("nmt") else None
    existing = kept.manifest.translation_conversions if kept is not None else {}
    conversions: dict[str, Conversion] = {}
    drifts = []
    copied: dict[str, FileRecord] = {}
    for compute_type in dict.fromkeys([*existing, *contents.compute_types]):
        name = conversion_part(compute_type)
        if kept is not None and conversion_cache.is_current(existing.get(compute_type), bundle.manifest):
            copied.update(copy_files(kept.directory, kept.manifest, [name], directory))
            conversions[name] = existing[compute_type]
            continue
        drift = bundle.convert_translation(compute_type, directory / name, contents.probes)
        conversions[name] = conversion_cache.conversion_record(bundle.manifest, drift)
        drifts.append(drift)
    return Converted(conversions, drifts, copied)


def _manifest(
    directory: Path,
    contents: BundleContents,
    links: Mapping[str, str],
    conversions: Mapping[str, Conversion],
    known: Mapping[str, FileRecord],
) -> Manifest:
    """Return the manifest of all files written so far; files whose checksums are known are not read."""
    names = (
        path.relative_to(directory).as_posix() for path in sorted(directory.rglob("*")) if path.is_file()
    )
    pipelines = (name for name in ("source", "target", "lm-pipeline") if (directory / name).is_dir())
    engines = contents.engines
    return Manifest(
        name=contents.name,
        source_language=contents.source_language,
        target_language=contents.target_language,
        parts={
            **dict.fromkeys(pipelines, "pipeline"),
            **{kind: kind for kind in engines},
            **{kind: kind for kind in DOCUMENT_KINDS if kind in contents.own.models},
            **({BACKWARD: "bundle"} if contents.reverse is not None else {}),
            **dict.fromkeys(conversions, "ctranslate2"),
        },
        engines=engines,
        files={name: known.get(name) or record(directory / name) for name in names},
        links=links,
        conversions=conversions,
        defaults=contents.defaults,
        lengths=contents.lengths,
        versions={"cadec": __version__, "ctranslate2": version("ctranslate2")},
    )
