"""Models of other toolkits: how CTranslate2 and transformers run them, and how torch steps them.

They bring their own tokenizers, and settings in JSON (`models.pretrained_settings`). The weights of a
translation model are in the bundle's conversions only, unless its network was kept for the C-aware beam.
"""

from __future__ import annotations

import contextlib
import gc
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cadec_cli.engines.engine import (
    LanguageEngine,
    Languages,
    Machine,
    ModelPart,
    Note,
    StepwiseLoader,
    TranslationEngine,
)
from cadec_cli.fs.read import read_json
from cadec_cli.method.lengths import LengthLimits
from cadec_cli.models.devices import ctranslate2_device
from cadec_cli.models.pretrained_settings import (
    LANGUAGE_SETTINGS,
    NETWORK,
    TRANSLATION_SETTINGS,
    read_language_settings,
    read_translation_settings,
)
from cadec_cli.text.token_text import PretrainedCorpusText, TokenText
from cadec_cli.validation import quote_value

if TYPE_CHECKING:
    from cadec_cli.engines.protocols import LanguageModel, StepwiseTranslation, TranslationModel

# The files of a network as transformers stores it.
_INDEX = "model.safetensors.index.json"
_TRANSFORMERS = rf"config\.json|[^/]+\.safetensors|{re.escape(_INDEX)}"


def _load_translation(
    part: ModelPart, languages: Languages, machine: Machine, note: Note
) -> TranslationModel:
    from cadec_cli.engines.ctranslate2 import CTranslate2Model, framing_for

    settings = part.settings
    model = part.conversion(machine.compute_type, note)
    device, index = ctranslate2_device(machine.device)
    return CTranslate2Model(
        model,
        *_tokenizers(part, languages, model),
        framing=framing_for(settings, languages.source, languages.target),
        positions=settings.positions,
        limits=_limits(part, languages),
        device=device,
        device_index=index,
        compute_type=machine.compute_type,
        threads=machine.threads,
    )


def _stepwise(part: ModelPart) -> StepwiseLoader | None:
    """The loader for stepping, if the network was kept when the model was converted."""
    kept = part.settings.start is not None and f"{NETWORK}/config.json" in part.files
    return _load_stepwise if kept else None


def _load_stepwise(
    part: ModelPart, languages: Languages, machine: Machine, note: Note
) -> StepwiseTranslation:
    from cadec_cli.engines.ctranslate2 import framing_for
    from cadec_cli.engines.transformers_nmt import TransformersTranslationModel
    from cadec_cli.models.huggingface import load_translation_network, quiet_transformers

    settings = part.settings
    source, target = _tokenizers(part, languages, part.conversion("int8", lambda _: None))
    with quiet_transformers():
        network = load_translation_network(part.directory / NETWORK).to(machine.for_torch())
    return TransformersTranslationModel(
        network,
        source,
        target,
        framing=framing_for(settings, languages.source, languages.target),
        start=settings.start,
        positions=settings.positions,
        limits=_limits(part, languages),
        int8=machine.compute_type == "int8",
    )


def _limits(part: ModelPart, languages: Languages) -> LengthLimits:
    """The limits for translations. Those of a bundle are for its own languages only."""
    return part.limits if languages == part.languages else LengthLimits()


def _tokenizers(part: ModelPart, languages: Languages, model: Path) -> tuple[TokenText, TokenText]:
    """The tokenizers of both sides, with the vocabularies of the converted model."""
    from cadec_cli.engines.ctranslate2 import read_vocabularies
    from cadec_cli.text.tokenizers import load_text

    source, target = read_vocabularies(model)
    return (
        load_text(part.directory, part.settings.source, source, languages.source_code),
        load_text(part.directory, part.settings.target, target, languages.target_code),
    )


def _texts(part: ModelPart) -> tuple[PretrainedCorpusText, PretrainedCorpusText]:
    languages = part.languages
    source, target = _tokenizers(part, languages, part.conversion("int8", lambda _: None))
    return (
        PretrainedCorpusText(languages.source_code, source, "translation model"),
        PretrainedCorpusText(languages.target_code, target, "translation model"),
    )


def _check_translation(part: ModelPart) -> list[str]:
    named = {*part.settings.source.files, *part.settings.target.files}
    wrong = [f"there is no {name}" for name in named if name not in part.files]
    wrong += _unlisted_weights(part, f"{NETWORK}/{_INDEX}")
    if not part.conversions:
        wrong.append("there are no weights for CTranslate2")
    return wrong


def _unlisted_weights(part: ModelPart, index: str) -> list[str]:
    """The problems of an index, which names the files of a network's weights: all must be listed."""
    if index not in part.files:
        return []
    stored = read_json(part.directory / index, strict=True)
    named = stored.get("weight_map") if isinstance(stored, dict) else None
    if not isinstance(named, dict):
        return [f"{index} names no files"]
    place = index.removesuffix(_INDEX)
    unlisted = {f"{place}{file}" for file in named.values()} - set(part.files)
    return [f"{index} names {quote_value(file)}, which is not listed" for file in unlisted]


def _prepare(part: ModelPart, compute_type: str, note: Note) -> None:
    part.conversion(compute_type, note)


PRETRAINED_TRANSLATION = TranslationEngine(
    name="ctranslate2-pretrained",
    # The settings name the files of the tokenizers, which can have any name. No other file is read.
    files=rf"{re.escape(TRANSLATION_SETTINGS)}|[^/]+|{NETWORK}/({_TRANSFORMERS})",
    settings=read_translation_settings,
    check=_check_translation,
    load=_load_translation,
    prepare=_prepare,
    stepwise=_stepwise,
    texts=_texts,
    converted=True,
)


def _load_language(part: ModelPart, languages: Languages, machine: Machine, note: Note) -> LanguageModel:
    with _no_collection():
        from cadec_cli.engines.transformers_lm import load_language_model

        return load_language_model(
            part.directory,
            language=languages.target_code,
            source_language=languages.source_code,
            device=machine.for_torch(),
            compute_type=machine.compute_type,
            note=note,
        )


def _import_libraries(directory: Path) -> None:
    with _no_collection(), contextlib.suppress(ImportError):  # loading says what is missing
        import cadec_cli.engines.transformers_lm  # noqa: F401
        from cadec_cli.models.fitted_lm import needs_transformers

        if needs_transformers(directory):
            import transformers.modeling_utils  # noqa: F401


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Collect no garbage: loading leaves hardly any, and looking for it takes a sixth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _check_language(part: ModelPart) -> list[str]:
    return _unlisted_weights(part, _INDEX)


PRETRAINED_LANGUAGE = LanguageEngine(
    name="transformers",
    files=rf"{re.escape(LANGUAGE_SETTINGS)}|tokenizer\.json|{_TRANSFORMERS}",
    links=r"[^/]+\.safetensors",
    settings=read_language_settings,
    check=_check_language,
    load=_load_language,
    import_libraries=_import_libraries,
)
