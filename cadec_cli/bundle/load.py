"""A bundle's models behind the protocols of `engines`, on the device and in the precision asked for.

The engine of a model loads it; this module knows no engine by name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cadec_cli.bundle.bundle import Bundle, chosen_languages
from cadec_cli.bundle.manifest import FORMALITY
from cadec_cli.engines.engine import Languages, Machine, Note, silence
from cadec_cli.engines.own_models import CONVERTED_KINDS, DOCUMENT_LOADERS, load_joined
from cadec_cli.engines.table import language_engine, translation_engine
from cadec_cli.errors import CadecError, option
from cadec_cli.method.objectives import BACK
from cadec_cli.method.options import TranslationOptions
from cadec_cli.models.devices import check_device
from cadec_cli.parallel import available_cores
from cadec_cli.text.formality import seed_sentences, seed_sources

if TYPE_CHECKING:
    from cadec_cli.engines.protocols import (
        ContextReader,
        DocumentModel,
        LanguageModel,
        StepwiseTranslation,
        TranslationModel,
    )

# A context manager that is entered while a model is loaded, with the model's name and size.
Loading = Callable[[str], AbstractContextManager[Any]]


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
    """Return a bundle's models, each of which is loaded when it is first used.

    Languages are the bundle's own unless given. `threads` applies to every engine; 0 means all cores. `note`
    reports a model that has to be converted first, which takes a while; `loading` is entered with a name
    while a model is loaded. Torch is not imported here unless a GPU is asked for.
    """
    languages = chosen_languages(bundle, source_language, target_language)
    check_device(device)
    machine = Machine(device, compute_type, threads or available_cores())
    return LoadedModels(bundle, languages, machine, note, loading)


class LoadedModels:
    """A bundle's models. Each is loaded when it is first used, and then kept."""

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
    def translation(self) -> TranslationModel:
        """The S-NMT."""
        if not self.bundle.has_translation:
            raise CadecError(f"{self.bundle.directory} has no S-NMT and can't translate")
        engine = translation_engine(self.bundle.engine("nmt"))
        with self._loading(f"the S-NMT{self._size(f'ct2/{self._machine.compute_type}', 'nmt')}"):
            return engine.load(self.bundle.part("nmt"), self.languages, self._machine, self._note)

    @cached_property
    def language(self) -> LanguageModel | None:
        """The D-LM, if there is one."""
        if not self.bundle.has_lm:
            return None
        engine = language_engine(self.bundle.engine("lm"))
        with self._loading(f"the D-LM{self._size('lm')}"):
            return engine.load(self.bundle.part("lm"), self.languages, self._machine, self._note)

    @cached_property
    def reader(self) -> ContextReader | None:
        """The D-LM's tokenizer and context length. The D-LM is loaded only if its engine needs that."""
        read = language_engine(self.bundle.engine("lm")).reader if self.bundle.has_lm else None
        return self.language if read is None else read(self.bundle.part("lm"), self.languages)

    @cached_property
    def backward(self) -> TranslationModel | None:
        """The S-NMT of the other direction, which a bundle may hold as a bundle of its own."""
        reverse = self.bundle.backward
        if reverse is None:
            return None
        asked = (self.languages.target, self.languages.source) if reverse.chooses_languages else ()
        languages = chosen_languages(reverse, *asked)
        with self._loading("the backward model"):
            return LoadedModels(reverse, languages, self._machine, self._note).translation

    @property
    def source_language(self) -> str:
        """The shortest code of the source language."""
        return self.languages.source_code

    @property
    def target_language(self) -> str:
        """The shortest code of the target language."""
        return self.languages.target_code

    def document(self, name: str) -> DocumentModel | None:
        """Return the model of several sentences with that name; None if the bundle has none."""
        if name not in self.bundle.document_kinds:
            return None
        if name not in self._documents:
            with self._loading(f"the {name} model{self._size(name)}"):
                self._documents[name] = DOCUMENT_LOADERS[name](
                    self.bundle.part(name), self._machine, self._note, lambda: self.translation
                )
        return self._documents[name]

    def joined_model(self, part: str) -> TranslationModel:
        """Load a model of joined sentences as a translation model."""
        return load_joined(self.bundle.part(part), self._machine, self._note)

    @cached_property
    def stepwise_translation(self) -> StepwiseTranslation:
        """The S-NMT as the C-aware beam steps it."""
        load = None
        if self.bundle.has_translation:
            load = translation_engine(self.bundle.engine("nmt")).stepwise(self.bundle.part("nmt"))
        if load is None:
            raise CadecError(
                f"{self.bundle.directory} has no S-NMT that {option('search', 'beam')} could step "
                "token by token",
                f"use {option('search', 'rerank')}; or, with a model of Hugging Face, `cadec convert "
                f"{option('for-beam')}`",
            )
        with self._loading(f"the S-NMT's network{self._size('nmt')}"):
            return load(self.bundle.part("nmt"), self.languages, self._machine, self._note)

    def _size(self, *parts: str) -> str:
        """Return the size of the weights in the first of some parts that the bundle has, for a message."""
        files = self.bundle.manifest.files.items()
        sizes = (
            max((file.size for name, file in files if name.startswith(f"{part}/")), default=0)
            for part in parts
        )
        return f", {next(filter(None, sizes), 0) / 1e6:,.0f} MB"

    def seed(self, register: str) -> Sequence[str]:
        """Return formal or informal sentences of the target language: the bundle's own, else ours."""
        return seed_of(self.bundle, self.languages, register)

    def seed_sources(self, register: str) -> Sequence[str]:
        """Return what our own sentences translate; of a bundle's own it is not known."""
        own = FORMALITY in self.bundle.manifest.files
        return () if own else seed_sources(register, self.languages.source_code)


def seed_of(bundle: Bundle, languages: Languages, register: str) -> Sequence[str]:
    """Return formal or informal sentences of the target language: the bundle's own, else ours."""
    own = bundle.directory / FORMALITY
    listed = FORMALITY in bundle.manifest.files
    if not listed and own.exists():
        raise CadecError(
            f"{own} is not listed in the bundle",
            f"if you wrote it, `cadec convert {bundle.directory}` adds it to the bundle",
        )
    return seed_sentences(register, languages.target_code, own if listed else None)


def convert_in_advance(
    bundle: Bundle, options: TranslationOptions, compute_type: str, note: Note = silence
) -> None:
    """Convert every model that translating with these options needs, and load none.

    Call it before several processes start: they would otherwise all convert, or wait for one another.
    """
    _prepare(bundle, compute_type, note)
    if options.search in bundle.document_kinds and options.search in CONVERTED_KINDS:
        bundle.cached_conversion(options.search, compute_type, note)
    if options.weighted_objective.uses(BACK) and bundle.backward is not None:
        _prepare(bundle.backward, compute_type, note)


def _prepare(bundle: Bundle, compute_type: str, note: Note) -> None:
    translation_engine(bundle.engine("nmt")).prepare(bundle.part("nmt"), compute_type, note)


def default_options(bundle: Bundle) -> TranslationOptions:
    """Return the bundle's default options; without a D-LM the search is `sentence`."""
    options = TranslationOptions(**dataclasses.asdict(bundle.defaults))
    return options if bundle.has_lm else dataclasses.replace(options, search="sentence")
