"""A bundle's models behind the protocols of `engines`, on the device and in the precision asked for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cadec_cli.bundle.bundle import Bundle
from cadec_cli.bundle.conversion_cache import Note, silence
from cadec_cli.bundle.directions import Languages, chosen_languages
from cadec_cli.bundle.manifest import FORMALITY, PRETRAINED_LM, PRETRAINED_NMT
from cadec_cli.engines.ctranslate2 import CTranslate2Model
from cadec_cli.engines.document_models import RepairModel, TwoToTwoModel, draft_model
from cadec_cli.errors import CadecError, option
from cadec_cli.method.hypotheses import TokenText
from cadec_cli.method.lengths import LengthLimits
from cadec_cli.method.objectives import BACK
from cadec_cli.method.options import TranslationOptions
from cadec_cli.models.devices import check_device, choose_device, ctranslate2_device
from cadec_cli.models.pretrained_settings import NETWORK
from cadec_cli.parallel import available_cores
from cadec_cli.text.formality import seed_sentences
from cadec_cli.text.languages import iso_code

if TYPE_CHECKING:
    from pathlib import Path

    import torch

    from cadec_cli.engines.protocols import ContextReader, DocumentModel, LanguageModel, StepwiseTranslation
    from cadec_cli.engines.torch_document import TorchDocumentModel
    from cadec_cli.models.pretrained_settings import TranslationSettings

# Entered while something is loaded, with what that is.
Loading = Callable[[str], AbstractContextManager[Any]]

# Compute types that mean int8 weights for networks in torch on a CPU.
_INT8 = ("int8",)


def load_models(
    bundle: Bundle,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    device: str = "auto",
    compute_type: str = "int8",
    threads: int = 0,
    note: Note = silence,
    loading: Loading = nullcontext,
) -> LoadedModels:
    """A bundle's models; `threads` are torch's as well as CTranslate2's, 0 is all cores.

    Nothing is loaded yet, and torch is not even imported unless a GPU is asked for.

    Languages are the bundle's own unless given. That a model has to be converted first, which takes its time,
    is said through `note`; `loading` is entered, with a name, while a model is loaded.
    """
    languages = chosen_languages(bundle, source_language, target_language)
    check_device(device)
    machine = Machine(device, compute_type, threads or available_cores())
    return LoadedModels(bundle, languages, machine, note, loading)


@dataclass(frozen=True)
class Machine:
    """What models compute with."""

    device: str  # "auto", "cpu" or "cuda"
    compute_type: str
    threads: int

    def for_torch(self) -> torch.device:
        """Tell torch how many threads there are, and return its device."""
        import torch

        torch.set_num_threads(self.threads)
        return choose_device(self.device)


class LoadedModels:
    """A bundle's models, each loaded when it is first asked for, and then kept."""

    def __init__(
        self,
        bundle: Bundle,
        languages: Languages,
        machine: Machine,
        note: Note = silence,
        loading: Loading = nullcontext,
    ) -> None:
        self.bundle = bundle
        self.languages = languages
        self._machine = machine
        self._note = note
        self._loading = loading
        self._documents: dict[str, DocumentModel] = {}

    @cached_property
    def translation(self) -> CTranslate2Model:
        """The S-NMT in CTranslate2."""
        if not self.bundle.has_translation:
            raise CadecError(f"{self.bundle.directory} has no S-NMT and can't translate")
        load = TRANSLATION_ENGINES[self.bundle.engine("nmt")]
        with self._loading("the S-NMT"):
            return load(self.bundle, self.languages, self._machine, self._note)

    @cached_property
    def language(self) -> LanguageModel | None:
        """The D-LM in torch: half precision on a GPU, int8 weights on a CPU, if the compute type says so."""
        if not self.bundle.has_lm:
            return None
        load = LANGUAGE_ENGINES[self.bundle.engine("lm")]
        with self._loading("the D-LM"):
            return load(self.bundle, self.languages, self._machine, self._note)

    @cached_property
    def reader(self) -> ContextReader | None:
        """The D-LM as far as contexts for it are to be written: of one trained here the bundle tells."""
        if not self.bundle.has_lm or self.bundle.engine("lm") == PRETRAINED_LM:
            return self.language
        _check_lm_language(self.bundle, self.languages)
        return _KnownReader(self.bundle.lm_text, self.bundle.lm_positions)

    @cached_property
    def backward(self) -> CTranslate2Model | None:
        """The S-NMT of the other direction, which a bundle may hold as a bundle of its own."""
        reverse = self.bundle.backward
        if reverse is None:
            return None
        settings = reverse.translation_settings
        many = settings is not None and settings.directions
        asked = (self.languages.target, self.languages.source) if many else ()
        languages = chosen_languages(reverse, *asked)
        with self._loading("the backward model"):
            return LoadedModels(reverse, languages, self._machine, self._note).translation

    def document(self, name: str) -> DocumentModel | None:
        """A model that reads several sentences, if the bundle has one of that name."""
        if name not in self.bundle.document_kinds:
            return None
        if name not in self._documents:
            load = DOCUMENT_ENGINES[name]
            with self._loading(f"the {name} model"):
                self._documents[name] = load(self)
        return self._documents[name]

    def seed(self, register: str) -> Sequence[str]:
        """Sentences of the target language that are formal, or informal: the bundle's own, else ours."""
        return seed_of(self.bundle, self.languages, register)

    def joined_model(self, part: str) -> CTranslate2Model:
        """A model of joined sentences in CTranslate2."""
        from cadec_cli.text.passages import JoinedText

        source, target = self.bundle.texts_of(part)
        return _in_ctranslate2(
            self.bundle.cached_conversion(part, self._machine.compute_type, self._note),
            JoinedText(source),
            JoinedText(target),
            self.bundle.positions_of(part),
            # Sentences and translations in a row are as long as these; nobody counted what DocRepair reads.
            LengthLimits() if part == "repair" else self.bundle.lengths,
            self._machine,
        )

    def document_transformer(self) -> TorchDocumentModel:
        """The DocTransformer in torch."""
        from cadec_cli.engines.torch_document import TorchDocumentModel

        network = self.bundle.document_network().to(self._machine.for_torch())
        return TorchDocumentModel(network, self.bundle.source, self.bundle.target, self.bundle.lengths)

    @cached_property
    def stepwise_translation(self) -> StepwiseTranslation:
        """The S-NMT in torch, for the C-aware beam: int8 weights on a CPU, if the compute type says so."""
        from cadec_cli.engines.torch_nmt import TorchTranslationModel
        from cadec_cli.models.int8.block import quantise

        if not self.bundle.has_network:
            raise CadecError(
                f"{self.bundle.directory} has no S-NMT that {option('search', 'beam')} could step "
                "token by token",
                f"use {option('search', 'rerank')}; or, with a model of Hugging Face, `cadec convert "
                f"{option('for-beam')}`",
            )
        with self._loading("the S-NMT's network"):
            if self.bundle.translation_settings is not None:
                return _pretrained_steps(self.bundle, self.languages, self._machine)
            device = self._machine.for_torch()
            network = self.bundle.translation_network().to(device)
            if device.type == "cpu" and self._machine.compute_type in _INT8:
                network = quantise(network)  # of float weights nothing is kept
            return TorchTranslationModel(network, self.bundle.source, self.bundle.target, self.bundle.lengths)


def _own_translation(bundle: Bundle, languages: Languages, machine: Machine, note: Note) -> CTranslate2Model:
    return _in_ctranslate2(
        bundle.ctranslate2_model(machine.compute_type, note),
        bundle.source,
        bundle.target,
        bundle.translation_positions,
        bundle.lengths,
        machine,
    )


def _in_ctranslate2(
    model: Path,
    source: TokenText,
    target: TokenText,
    positions: int,
    limits: LengthLimits,
    machine: Machine,
) -> CTranslate2Model:
    device, index = ctranslate2_device(machine.device)
    return CTranslate2Model(
        model,
        source,
        target,
        positions=positions,
        limits=limits,
        device=device,
        device_index=index,
        compute_type=machine.compute_type,
        threads=machine.threads,
    )


def _pretrained_translation(
    bundle: Bundle, languages: Languages, machine: Machine, note: Note
) -> CTranslate2Model:
    from cadec_cli.engines.ctranslate2 import framing_for

    settings = bundle.translation_settings
    assert settings is not None, "the engine says that there are some"
    model = bundle.ctranslate2_model(machine.compute_type, note)
    device, index = ctranslate2_device(machine.device)
    return CTranslate2Model(
        model,
        *_pretrained_texts(bundle, settings, languages, model),
        framing=framing_for(settings, languages.source, languages.target),
        positions=settings.positions,
        limits=_lengths_in(bundle, languages),
        device=device,
        device_index=index,
        compute_type=machine.compute_type,
        threads=machine.threads,
    )


def _pretrained_steps(bundle: Bundle, languages: Languages, machine: Machine) -> StepwiseTranslation:
    from cadec_cli.engines.ctranslate2 import framing_for
    from cadec_cli.engines.transformers_nmt import TransformersTranslationModel
    from cadec_cli.models.huggingface import load_translation_network, quiet_transformers

    settings = bundle.translation_settings
    assert settings is not None and settings.start is not None, "the bundle says that it has a network"
    source, target = _pretrained_texts(bundle, settings, languages, bundle.ctranslate2_model())
    with quiet_transformers():
        network = load_translation_network(bundle.path("nmt") / NETWORK).to(machine.for_torch())
    return TransformersTranslationModel(
        network,
        source,
        target,
        framing=framing_for(settings, languages.source, languages.target),
        start=settings.start,
        positions=settings.positions,
        limits=_lengths_in(bundle, languages),
    )


def _lengths_in(bundle: Bundle, languages: Languages) -> LengthLimits:
    """How long translations may become: what is known is known of the bundle's own languages alone."""
    own = languages == Languages(bundle.source_language, bundle.target_language)
    return bundle.lengths if own else LengthLimits()


def _pretrained_texts(
    bundle: Bundle, settings: TranslationSettings, languages: Languages, model: Path
) -> tuple[TokenText, TokenText]:
    """The tokenizers of either side, for what CTranslate2 has of the vocabularies."""
    from cadec_cli.engines.ctranslate2 import read_vocabularies
    from cadec_cli.text.tokenizers import load_text

    source, target = read_vocabularies(model)
    files = bundle.path("nmt")
    return (
        load_text(files, settings.source, source, languages.source_code),
        load_text(files, settings.target, target, languages.target_code),
    )


@dataclass(frozen=True)
class _KnownReader:
    """What a bundle tells of its D-LM."""

    text: TokenText
    positions: int


def _check_lm_language(bundle: Bundle, languages: Languages) -> None:
    if languages.target_code != iso_code(bundle.lm_text.language):
        raise CadecError(
            f"the D-LM of {bundle.directory} is for {bundle.lm_text.language!r}, "
            f"not for {languages.target!r}",
            f"translate with {option('search', 'sentence')}, which needs none",
        )


def _own_language(bundle: Bundle, languages: Languages, machine: Machine, note: Note) -> LanguageModel:
    import torch

    from cadec_cli.engines.torch_lm import TorchLanguageModel
    from cadec_cli.models.int8.block import quantise

    _check_lm_language(bundle, languages)
    device = machine.for_torch()
    network = bundle.lm_network()
    if device.type == "cuda":
        half = "float16" in machine.compute_type
        network = network.to(device, torch.bfloat16 if half else torch.float32)
    elif machine.compute_type in _INT8:
        network = quantise(network)  # of float weights nothing is kept
    return TorchLanguageModel(network, bundle.lm_text)


def _pretrained_language(bundle: Bundle, languages: Languages, machine: Machine, note: Note) -> LanguageModel:
    from cadec_cli.engines.transformers_lm import load_language_model

    return load_language_model(
        bundle.path("lm"),
        language=languages.target_code,
        device=machine.for_torch(),
        compute_type=machine.compute_type,
        note=note,
    )


# engine → how its model is loaded; the names are those of bundle.manifest.ENGINES
TRANSLATION_ENGINES: Mapping[str, Callable[[Bundle, Languages, Machine, Note], CTranslate2Model]] = {
    "ctranslate2": _own_translation,
    PRETRAINED_NMT: _pretrained_translation,
}
LANGUAGE_ENGINES: Mapping[str, Callable[[Bundle, Languages, Machine, Note], LanguageModel]] = {
    "torch": _own_language,
    PRETRAINED_LM: _pretrained_language,
}
# kinds whose models are converted for CTranslate2
_JOINED = ("2-to-2", "repair")
# kind → how its model is loaded; the names are those of bundle.manifest.DOCUMENT_KINDS
DOCUMENT_ENGINES: Mapping[str, Callable[[LoadedModels], DocumentModel]] = {
    "doc-nmt": lambda models: models.document_transformer(),
    "2-to-2": lambda models: TwoToTwoModel(models.joined_model("2-to-2")),
    "repair": lambda models: RepairModel(models.joined_model("repair"), draft_model(models.translation)),
}


def seed_of(bundle: Bundle, languages: Languages, register: str) -> Sequence[str]:
    """Sentences of the target language that are formal, or informal: the bundle's own, else ours."""
    own = bundle.directory / FORMALITY
    listed = FORMALITY in bundle.manifest.files
    if not listed and own.exists():
        raise CadecError(
            f"{own} is not listed in the bundle",
            f"if it is yours, `cadec convert {bundle.directory}` takes it in",
        )
    return seed_sentences(register, languages.target_code, own if listed else None)


def convert_in_advance(
    bundle: Bundle, options: TranslationOptions, compute_type: str, note: Note = silence
) -> None:
    """Have all that translating with these options will need converted already, and load nothing of it.

    For those who are about to start several processes, which would all do it, or wait for one another.
    """
    bundle.ctranslate2_model(compute_type, note)
    if options.search in bundle.document_kinds and options.search in _JOINED:
        bundle.cached_conversion(options.search, compute_type, note)
    if options.weighted_objective.uses(BACK) and bundle.backward is not None:
        bundle.backward.ctranslate2_model(compute_type, note)


def default_options(bundle: Bundle) -> TranslationOptions:
    """What the bundle's makers found best."""
    options = TranslationOptions(**dataclasses.asdict(bundle.defaults))
    return options if bundle.has_lm else dataclasses.replace(options, search="sentence")
