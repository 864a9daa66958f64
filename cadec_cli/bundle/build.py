"""Making bundles: all is loaded and checked first, all misfits are reported at once, then one is written.

A bundle appears whole or not at all, and never with a converted model that disagrees with the original.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path

from cadec_cli.bundle import conversion_cache
from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.conversion_cache import Note, silence
from cadec_cli.bundle.integrity import copy_files
from cadec_cli.bundle.manifest import (
    BACKWARD,
    DOCUMENT_KINDS,
    ENGINES,
    FORMALITY,
    MANIFEST,
    MAX_TEXT_LENGTH,
    PRETRAINED_LM,
    PRETRAINED_NMT,
    Conversion,
    Manifest,
    conversion_part,
    record,
)
from cadec_cli.bundle.parts import (
    OwnModelRequest,
    OwnParts,
    PretrainedLanguage,
    PretrainedModelRequest,
    PretrainedTranslation,
    backward_misfits,
    import_language,
    import_translation,
    is_pretrained,
    load_own_parts,
    reuse_language,
    reuse_translation,
    write_backward,
)
from cadec_cli.errors import CadecError, option
from cadec_cli.fs.atomic import atomic_directory
from cadec_cli.fs.paths import expand_user
from cadec_cli.fs.read import read_errors
from cadec_cli.method.lengths import LengthLimits, learnt_limits
from cadec_cli.method.options import DecodingDefaults
from cadec_cli.text.formality import read_seeds
from cadec_cli.text.languages import iso_code, language_misfit
from cadec_cli.text.pipeline import TextPipeline
from cadec_cli.validation import showable, text_misfit
from cadec_cli.version import __version__
from converters.verify import Drift

# Which pretrained models a bundle is asked to be made of: given anew, or those that it has already.


@dataclass
class Misfits:
    """All that keeps a bundle from being built."""

    problems: list[str] = field(default_factory=list)
    hint: str = ""

    def add(self, error: CadecError) -> None:
        """Remember why something failed."""
        self.problems.append(error.marked_message)
        self.hint = self.hint or error.marked_hint

    def check(self) -> None:
        """Refuse, if there is anything."""
        if self.problems:
            raise CadecError(
                "this bundle can't be built: " + "; ".join(dict.fromkeys(self.problems)), self.hint
            )


def check_paths(
    nmt: Path | str | None, lm: Path | str | None, other: PretrainedModelRequest, wrong: Misfits
) -> None:
    """Refuse models that are neither here nor names on the hub."""
    for part, model in (("nmt", nmt), ("lm", lm)):
        if model is not None and not (Path(model).exists() or is_pretrained(part, model, other)):
            wrong.problems.append(f"no such file or directory: {model}")
    wrong.check()


def pretrained_translation(
    nmt: Path | str | None,
    kept: Bundle | None,
    other: PretrainedModelRequest,
    compute_types: Sequence[str],
    wrong: Misfits,
    note: Note,
) -> PretrainedTranslation | None:
    """The pretrained S-NMT that is given, or that the bundle has; None where it is one of ours."""
    try:
        if nmt is not None and is_pretrained("nmt", nmt, other):
            return import_translation(str(nmt), other, compute_types, note)
        if nmt is None and kept is not None and kept.translation_settings is not None:
            return reuse_translation(kept, other, compute_types)
    except CadecError as error:
        wrong.add(error)
    return None


def pretrained_language(
    lm: Path | str | None,
    kept: Bundle | None,
    other: PretrainedModelRequest,
    written_in: str | None,
    output: Path,
    wrong: Misfits,
    note: Note,
) -> PretrainedLanguage | None:
    """The pretrained D-LM that is given, or that the bundle has; None where it is one of ours."""
    try:
        if lm is not None and is_pretrained("lm", lm, other):
            # Where the S-NMT itself is wrong, its language is not known, and that is said already.
            if written_in is None and not wrong.problems:
                raise CadecError(
                    "nothing says which language this is for",
                    f"say it with {option('target-language')}, as in {option('target-language', 'fr')}",
                )
            if other.link and Path(lm).resolve().is_relative_to(output.resolve()):
                raise CadecError(f"{lm} is in the bundle to be written, and can't be linked from there")
            return import_language(str(lm), other, written_in, note)
        if lm is None and kept is not None and kept.language_settings is not None:
            return reuse_language(kept, other)
    except CadecError as error:
        wrong.add(error)
    return None


def lm_language(
    translation: PretrainedTranslation | None,
    other: PretrainedModelRequest,
    kept: Bundle | None,
    pipeline: Path | None,
) -> str | None:
    """The language that a pretrained D-LM is to read, as far as it is known before anything is loaded."""
    if translation is not None:
        return translation.languages()[1]
    if other.target_language is not None:
        return other.target_language
    if pipeline is not None and (pipeline / "pipeline.json").is_file():
        return TextPipeline.load(pipeline).language
    return kept.target_language if kept is not None else None


def without_effect(
    other: PretrainedModelRequest,
    *,
    nmt: Path | str | None,
    lm: Path | str | None,
    language: PretrainedLanguage | None,
) -> list[str]:
    """What was asked for of a model that is not there."""
    wrong = []
    for flag, value in (
        (f"{option('nmt-kind')}", other.nmt_kind),
        (f"{option('source-tokenizer')}", other.source_tokenizer),
        (f"{option('target-tokenizer')}", other.target_tokenizer),
    ):
        if value is not None and nmt is None:
            wrong.append(f"{flag} is about {option('nmt')}, which is not given")
    if other.for_beam and (nmt is None or not is_pretrained("nmt", nmt, other)):
        wrong.append(f"{option('for-beam')} is about a pretrained {option('nmt')}, and none is given")
    if other.link and lm is None:
        wrong.append(f"{option('link')} is about {option('lm')}, which is not given")
    # Where the D-LM itself is wrong, that is said already.
    if language is None and (lm is None or not is_pretrained("lm", lm, other)):
        if other.no_context is not None:
            wrong.append(f"{option('no-context')} is for a pretrained D-LM, and there is none")
        if other.link and lm is not None:
            wrong.append(f"{option('link')} is for a pretrained D-LM, and this one was trained here")
    return wrong


# How long a bundle's translations may become, learnt from a text and its translation.


# Pairs of a text that are looked at, from all over it: more would not tell more.
_LOOKED_AT = 20_000


def lengths_of_pairs(bundle: Bundle, pairs: Sequence[tuple[str, str]]) -> LengthLimits:
    """What sentence pairs tell, in the tokens of the bundle's S-NMT."""
    source, target = bundle.source_text, bundle.target_text
    some = pairs[:: -(-len(pairs) // _LOOKED_AT) or 1]
    return learnt_limits((len(source.encode(one)), len(target.encode(other))) for one, other in some)


MODEL_CARD = "MODEL_CARD.md"


@dataclass(frozen=True)
class BundleRequest:
    """What a bundle is asked to be made of; `kept` is one whose conversions are used where still right."""

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

    @property
    def engines(self) -> dict[str, str]:
        """The engine of every model part."""
        engines = {kind: ENGINES[kind][0] for kind in self.own.models if kind in ENGINES}
        if self.translation is not None:
            engines["nmt"] = PRETRAINED_NMT
        if self.language is not None:
            engines["lm"] = PRETRAINED_LM
        return {part: engines[part] for part in ENGINES if part in engines}


def build_bundle(
    output: Path,
    *,
    base: Path | None = None,
    source: Path | None = None,
    target: Path | None = None,
    nmt: Path | str | None = None,
    lm: Path | str | None = None,
    lm_pipeline: Path | None = None,
    pretrained: PretrainedModelRequest | None = None,
    back: Path | None = None,
    documents: Mapping[str, Path] | None = None,
    name: str = "",
    defaults: DecodingDefaults | None = None,
    pairs: Sequence[tuple[str, str]] = (),
    half: bool = False,
    compute_types: Sequence[str] = (),
    card: Path | None = None,
    probes: Sequence[tuple[str, str]] = (),
    note: Note = silence,
) -> list[Drift]:
    """Write a bundle of pipelines and models; return how far each newly converted model is from the original.

    `base` is a bundle to take everything from that is not given; it may be `output` itself. A model is a
    model directory or that of a training run, or a pretrained one of another toolkit: what `converters` know,
    and `pretrained` says the rest. With `half`, weights are stored in float16: half the size, and float32
    again when loaded. `back` is a bundle with an S-NMT of the other direction. `documents` are models that
    read several sentences, by their kind. The S-NMT is converted to each
    of `compute_types`. Probes are sentence pairs to verify conversions with, besides random ones. How long
    translations may become is learnt from `pairs`, many true ones; what was learnt before stays as long as
    the S-NMT does.

    An existing bundle of that name is replaced; any other directory is not. `note` is told where a run is not
    finished, and its newest checkpoint is taken.
    """
    kept = Bundle.open(base) if base is not None else None
    other = pretrained or PretrainedModelRequest()
    wrong = Misfits()

    def existing(part: str) -> Path | None:
        return kept.directory / part if kept is not None and part in kept.manifest.parts else None

    nmt, lm = (None if model is None else str(expand_user(model)) for model in (nmt, lm))
    check_paths(nmt, lm, other, wrong)
    translation = pretrained_translation(nmt, kept, other, compute_types, wrong, note)
    language = pretrained_language(
        lm, kept, other, lm_language(translation, other, kept, target), output, wrong, note
    )
    wrong.problems += without_effect(other, nmt=nmt, lm=lm, language=language)
    wrong.check()
    own_nmt = Path(nmt) if nmt is not None else existing("nmt")
    own_lm = Path(lm) if lm is not None else existing("lm")
    given = OwnModelRequest(
        source=source or existing("source"),
        target=target or existing("target"),
        nmt=own_nmt if translation is None else None,
        lm=own_lm if language is None else None,
        lm_pipeline=lm_pipeline or existing("lm-pipeline"),
        half=half,
        compute_types=compute_types,
        documents={
            kind: place
            for kind in DOCUMENT_KINDS
            if (place := (documents or {}).get(kind) or existing(kind)) is not None
        },
    )
    if translation is not None:
        given = _add_to_pretrained(given, source, wrong)
        if nmt is None and kept is not None and given.lm is not None:
            given = replace(given, text=kept.target_text)
        elif given.lm is not None and given.target is None and given.lm_pipeline is None:
            wrong.hint = (
                f"name the D-LM's pipeline with {option('target-pipeline')}; one that was trained on "
                "the S-NMT's own "
                f"tokens is added to a bundle that has the S-NMT: `cadec convert BUNDLE {option('lm')} …`"
            )
    if given.nmt is None and given.lm is None and not given.documents:
        given = replace(given, source=None, target=None, lm_pipeline=None)
        own = OwnParts()
    else:
        own = load_own_parts(given, note)
    wrong.problems += own.wrong
    wrong.hint = wrong.hint or own.hint
    if card is None and kept is not None and MODEL_CARD in kept.manifest.files:
        card = kept.directory / MODEL_CARD
    if problem := text_misfit(name, MAX_TEXT_LENGTH):
        wrong.problems.append(f"the bundle's name: {problem}")
    if card is not None and not card.is_file():
        wrong.problems.append(f"no such file: {card}")
    if not (own.models or wrong.problems or translation is not None or language is not None):
        wrong.problems.append("there is neither S-NMT nor D-LM")
    if compute_types and given.nmt is None and translation is None:
        wrong.problems.append("there is no S-NMT to convert")
    if pairs and given.nmt is None and translation is None:
        wrong.problems.append("there is no S-NMT whose translations have a length")
    if half and not own.models and not wrong.problems:
        wrong.problems.append("half precision is for models trained here")
    if probes and translation is not None:
        wrong.problems.append("a pretrained S-NMT is verified with probes of its own")
    languages = _languages(own, translation, other, kept, wrong)
    reverse = kept.backward if kept is not None and BACKWARD in kept.manifest.parts else None
    try:
        reverse = Bundle.open(back) if back is not None else reverse
    except CadecError as error:
        wrong.add(error)
    if reverse is not None:
        wrong.problems += backward_misfits(reverse, *languages)
    wrong.check()
    return _build(
        output,
        BundleRequest(
            own=own,
            translation=translation,
            language=language,
            source_language=languages[0],
            target_language=languages[1],
            name=name
            or (kept.name if kept is not None else showable(output.resolve().name, MAX_TEXT_LENGTH)),
            defaults=defaults or (kept.defaults if kept is not None else DecodingDefaults()),
            lengths=None if nmt or source or target else _known_lengths(kept, languages),
            pairs=pairs,
            compute_types=compute_types,
            card=card,
            formality=_own_formality(kept),
            probes=probes,
            kept=kept,
            reverse=reverse,
        ),
    )


def _known_lengths(kept: Bundle | None, languages: tuple[str | None, str]) -> LengthLimits | None:
    """What was learnt of a direction is not known of another."""
    if kept is None or languages != (kept.source_language, kept.target_language):
        return None
    return kept.manifest.lengths


def _own_formality(kept: Bundle | None) -> bytes | None:
    """The seed sentences that lie beside a bundle's models, listed or not: they are taken in with this."""
    if kept is None or not (path := kept.directory / FORMALITY).is_file():
        return None
    read_seeds(path)
    with read_errors(path):
        return path.read_bytes()


def _add_to_pretrained(given: OwnModelRequest, source: Path | None, wrong: Misfits) -> OwnModelRequest:
    """A pretrained S-NMT brings its tokenizers; pipelines are then the D-LM's alone."""
    if source is not None:
        wrong.problems.append("a pretrained S-NMT brings its own tokenizer, so it needs no source pipeline")
    return replace(given, source=None)


def _languages(
    own: OwnParts,
    translation: PretrainedTranslation | None,
    other: PretrainedModelRequest,
    kept: Bundle | None,
    wrong: Misfits,
) -> tuple[str | None, str]:
    """From which language to which: as pipelines have it, as a pretrained model says, as the user says."""
    from_, to = translation.languages() if translation is not None else (None, None)
    source = own.source.language if own.source is not None else from_
    target = own.target.language if own.target is not None else None
    if target is not None and to is not None and iso_code(target) != iso_code(to):
        wrong.problems.append(f"the D-LM is for {target!r}, the S-NMT translates into {to!r}")
    target = to or target or other.target_language
    if target is None and kept is not None:
        target = kept.target_language
    if own.source is not None and other.source_language not in (None, own.source.language):
        wrong.problems.append(
            f"the source pipeline is for {own.source.language!r}, not for {other.source_language!r}"
        )
    if own.target is not None and other.target_language not in (None, own.target.language):
        wrong.problems.append(
            f"the target pipeline is for {own.target.language!r}, not for {other.target_language!r}"
        )
    if translation is not None and source is None and not wrong.problems:
        wrong.problems.append("nothing says which language the S-NMT translates from")
        wrong.hint = (
            wrong.hint or f"say it with {option('source-language')}, as in {option('source-language', 'en')}"
        )
    if target is None and not wrong.problems:
        wrong.problems.append("nothing says which language this is for")
        wrong.hint = (
            wrong.hint or f"say it with {option('target-language')}, as in {option('target-language', 'fr')}"
        )
    wrong.problems += [
        problem for code in (source, target) if code is not None and (problem := language_misfit(code))
    ]
    return source, target or ""


def _build(output: Path, ingredients: BundleRequest) -> list[Drift]:
    hint = "nothing was changed"
    with atomic_directory(output, hint, marker=MANIFEST) as part:
        ingredients.own.write(part)
        translation = ingredients.translation
        if translation is not None:
            translation.write(part)
        links = ingredients.language.write(part) if ingredients.language is not None else {}
        if ingredients.reverse is not None:
            write_backward(ingredients.reverse, part / BACKWARD)
        if ingredients.card is not None:
            shutil.copyfile(ingredients.card, part / MODEL_CARD)
        if ingredients.formality is not None:
            (part / FORMALITY).write_bytes(ingredients.formality)
        # Converted is what was stored, which `half` has rounded, not what was given.
        written = _manifest(part, ingredients, links, {})
        if translation is not None:
            conversions, drifts = translation.convert(written, part)
        else:
            conversions, drifts = _conversions(part, Bundle(part, written), ingredients)
        manifest = _manifest(part, ingredients, links, conversions)
        if ingredients.pairs:
            manifest = replace(manifest, lengths=lengths_of_pairs(Bundle(part, manifest), ingredients.pairs))
        (part / MANIFEST).write_bytes(manifest.content())
        Bundle.open(part)
    return drifts


def _conversions(
    part: Path, bundle: Bundle, ingredients: BundleRequest
) -> tuple[dict[str, Conversion], list[Drift]]:
    """Convert to all that is wanted or was there before, but what is there and still right is copied."""
    kept = ingredients.kept
    trained_here = kept is not None and kept.translation_settings is None
    existing = kept.manifest.translation_conversions if kept is not None and trained_here else {}
    conversions: dict[str, Conversion] = {}
    drifts = []
    for compute_type in dict.fromkeys([*existing, *ingredients.compute_types]):
        name = conversion_part(compute_type)
        if kept is not None and conversion_cache.is_current(existing.get(compute_type), bundle.manifest):
            copy_files(kept.directory, kept.manifest, [name], part)
            conversions[name] = existing[compute_type]
            continue
        drift = bundle.convert_translation(compute_type, part / name, ingredients.probes)
        conversions[name] = conversion_cache.conversion_record(bundle.manifest, drift)
        drifts.append(drift)
    return conversions, drifts


def _manifest(
    part: Path,
    ingredients: BundleRequest,
    links: Mapping[str, str],
    conversions: Mapping[str, Conversion],
) -> Manifest:
    files = {
        path.relative_to(part).as_posix(): record(path) for path in sorted(part.rglob("*")) if path.is_file()
    }
    pipelines = (name for name in ("source", "target", "lm-pipeline") if (part / name).is_dir())
    engines = ingredients.engines
    return Manifest(
        name=ingredients.name,
        source_language=ingredients.source_language,
        target_language=ingredients.target_language,
        parts={
            **dict.fromkeys(pipelines, "pipeline"),
            **{kind: kind for kind in engines},
            **{kind: kind for kind in DOCUMENT_KINDS if kind in ingredients.own.models},
            **({BACKWARD: "bundle"} if ingredients.reverse is not None else {}),
            **dict.fromkeys(conversions, "ctranslate2"),
        },
        engines=engines,
        files=files,
        links=links,
        conversions=conversions,
        defaults=ingredients.defaults,
        lengths=ingredients.lengths,
        versions={"cadec": __version__, "ctranslate2": version("ctranslate2")},
    )
