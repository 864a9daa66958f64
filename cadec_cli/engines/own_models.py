"""Models trained with cadec: how CTranslate2 and torch run them, and those that read several sentences.

Their texts are the bundle's pipelines. CTranslate2 runs a translation model after a conversion; torch runs
the language model, steps the translation model for the C-aware beam, and runs the DocTransformer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
from cadec_cli.errors import CadecError, option
from cadec_cli.method.lengths import LengthLimits
from cadec_cli.models.configs import OWN_FILES, lm_misfits, read_model_config, translation_misfits
from cadec_cli.models.devices import ctranslate2_device
from cadec_cli.text.languages import iso_code
from cadec_cli.text.token_text import TokenText

if TYPE_CHECKING:
    from cadec_cli.engines.ctranslate2 import CTranslate2Model
    from cadec_cli.engines.protocols import (
        ContextReader,
        DocumentModel,
        LanguageModel,
        StepwiseTranslation,
        TranslationModel,
    )
    from cadec_cli.text.pipeline import TextPipeline

# Compute types that mean int8 weights for networks in torch on a CPU.
_INT8 = ("int8",)


def _load_translation(
    part: ModelPart, languages: Languages, machine: Machine, note: Note
) -> TranslationModel:
    return load_converted(
        part.conversion(machine.compute_type, note), part, *part.pipelines, part.limits, machine
    )


def load_converted(
    model: Path,
    part: ModelPart,
    source: TokenText,
    target: TokenText,
    limits: LengthLimits,
    machine: Machine,
) -> CTranslate2Model:
    """Load a translation model that was trained here and converted."""
    from cadec_cli.engines.ctranslate2 import CTranslate2Model

    device, index = ctranslate2_device(machine.device)
    return CTranslate2Model(
        model,
        source,
        target,
        positions=part.settings.positions,
        limits=limits,
        device=device,
        device_index=index,
        compute_type=machine.compute_type,
        threads=machine.threads,
    )


def _prepare(part: ModelPart, compute_type: str, note: Note) -> None:
    part.conversion(compute_type, note)


def _check_translation(part: ModelPart) -> list[str]:
    return translation_misfits(part.settings, *part.pipelines)


def _texts(part: ModelPart) -> tuple[TextPipeline, TextPipeline]:
    return part.pipelines


def _stepwise(part: ModelPart) -> StepwiseLoader:
    return _load_stepwise


def _load_stepwise(
    part: ModelPart, languages: Languages, machine: Machine, note: Note
) -> StepwiseTranslation:
    """The S-NMT in torch; on a CPU with int8 weights if that is the compute type."""
    from cadec_cli.engines.torch_nmt import TorchTranslationModel
    from cadec_cli.models.int8.block import quantise

    device = machine.for_torch()
    network = part.network().to(device)
    if device.type == "cpu" and machine.compute_type in _INT8:
        network = quantise(network)  # the float weights can be freed
    return TorchTranslationModel(network, *part.pipelines, part.limits)


OWN_TRANSLATION = TranslationEngine(
    name="ctranslate2",
    files=OWN_FILES,
    settings=read_model_config,
    check=_check_translation,
    load=_load_translation,
    prepare=_prepare,
    stepwise=_stepwise,
    texts=_texts,
)


@dataclass(frozen=True)
class _KnownReader:
    """The text and positions of a D-LM trained here, known from its configuration."""

    text: TokenText
    positions: int


def _reader(part: ModelPart, languages: Languages) -> ContextReader:
    _check_language(part, languages)
    return _KnownReader(part.lm_text, part.settings.positions)


def _check_language(part: ModelPart, languages: Languages) -> None:
    if languages.target_code != iso_code(part.lm_text.language):
        raise CadecError(
            f"the D-LM of {part.bundle} is for {part.lm_text.language!r}, not for {languages.target!r}",
            f"translate with {option('search', 'sentence')}, which needs no D-LM",
        )


def _load_language(part: ModelPart, languages: Languages, machine: Machine, note: Note) -> LanguageModel:
    """The D-LM in torch; in half precision on a GPU or int8 on a CPU, if that is the compute type."""
    import torch

    from cadec_cli.engines.torch_lm import TorchLanguageModel
    from cadec_cli.models.int8.block import quantise

    _check_language(part, languages)
    device = machine.for_torch()
    network = part.network()
    if device.type == "cuda":
        half = "float16" in machine.compute_type
        network = network.to(device, torch.bfloat16 if half else torch.float32)
    elif machine.compute_type in _INT8:
        network = quantise(network)  # the float weights can be freed
    return TorchLanguageModel(network, part.lm_text)


def _check_lm(part: ModelPart) -> list[str]:
    return lm_misfits(part.settings, part.lm_text)


OWN_LANGUAGE = LanguageEngine(
    name="torch",
    files=OWN_FILES,
    settings=read_model_config,
    check=_check_lm,
    load=_load_language,
    reader=_reader,
)


# Models that read several sentences. A manifest names no engine for them: each kind has only one.

Drafts = Callable[[], "TranslationModel"]


def load_joined(part: ModelPart, machine: Machine, note: Note) -> TranslationModel:
    """A model that reads several sentences joined into one."""
    from cadec_cli.text.pipeline import JoinedText

    source, target = part.pipelines
    # Joined sentences have the length ratios of single ones. Those of DocRepair were never measured.
    limits = LengthLimits() if part.name == "repair" else part.limits
    model = part.conversion(machine.compute_type, note)
    return load_converted(model, part, JoinedText(source), JoinedText(target), limits, machine)


def _load_two_to_two(part: ModelPart, machine: Machine, note: Note, drafts: Drafts) -> DocumentModel:
    from cadec_cli.engines.document_models import TwoToTwoModel

    return TwoToTwoModel(load_joined(part, machine, note))


def _load_repair(part: ModelPart, machine: Machine, note: Note, drafts: Drafts) -> DocumentModel:
    from cadec_cli.engines.document_models import RepairModel, draft_model

    return RepairModel(load_joined(part, machine, note), draft_model(drafts()))


def _load_document_transformer(
    part: ModelPart, machine: Machine, note: Note, drafts: Drafts
) -> DocumentModel:
    from cadec_cli.engines.torch_nmt import TorchDocumentModel

    network = part.network().to(machine.for_torch())
    return TorchDocumentModel(network, *part.pipelines, part.limits)


# kind → how its model is loaded; `drafts` gives the S-NMT, whose translations a DocRepair model repairs
DOCUMENT_LOADERS: Mapping[str, Callable[[ModelPart, Machine, Note, Drafts], DocumentModel]] = {
    "doc-nmt": _load_document_transformer,
    "2-to-2": _load_two_to_two,
    "repair": _load_repair,
}
# The kinds that are converted before they are loaded.
CONVERTED_KINDS = ("2-to-2", "repair")
