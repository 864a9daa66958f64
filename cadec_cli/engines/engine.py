"""The interface of engines: the functions that an engine provides, and the data that cadec passes to them.

An engine is one record. `TranslationEngine` runs the `nmt` part of a bundle, `LanguageEngine` the `lm` part.
The manifest of a bundle names the engine of each part; `engines.table` finds it, among ours or among those
that installed packages add. An engine gets a `ModelPart`: files that were checked against the manifest.

Nothing heavy is imported here. A loader imports what it needs when it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from cadec_cli.errors import CadecError, option
from cadec_cli.method.lengths import LengthLimits
from cadec_cli.text.languages import iso_code, own_token

if TYPE_CHECKING:
    import torch

    from cadec_cli.engines.protocols import (
        ContextReader,
        LanguageModel,
        StepwiseTranslation,
        TranslationModel,
    )
    from cadec_cli.text.pipeline import TextPipeline
    from cadec_cli.text.token_text import PretrainedCorpusText

# Called with a message for the user about slow work, assumptions and unusual circumstances.
Note = Callable[[str], None]


def silence(message: str) -> None:
    """Ignore a message: the `Note` of callers that have no user to inform."""


@dataclass(frozen=True)
class Languages:
    """The two languages of a translation, as the user or the bundle names them. Scoring needs no source."""

    source: str | None
    target: str

    @property
    def source_code(self) -> str:
        """The shortest code of the source language, as tokenisers expect it; empty without a source."""
        return iso_code(self.source) if self.source else ""

    @property
    def target_code(self) -> str:
        """The shortest code of the target language."""
        return iso_code(self.target)

    def __str__(self) -> str:
        return " → ".join(filter(None, (self.source, self.target)))


@dataclass(frozen=True)
class Machine:
    """The hardware settings of a model: a device by its name, a compute type, a number of threads."""

    device: str  # auto, cpu, cuda, cuda:1
    compute_type: str
    threads: int

    def for_torch(self) -> torch.device:
        """Set torch's number of threads, and return its device."""
        import torch

        from cadec_cli.models.devices import choose_device

        torch.set_num_threads(self.threads)
        return choose_device(self.device)


class ModelSettings(Protocol):
    """The settings that are known before a model is loaded. An engine may add its own."""

    @property
    def origin(self) -> str:
        """Where the model comes from, in words or as a name."""
        ...

    @property
    def licence(self) -> str | None:
        """The licence, as the authors state it."""
        ...

    @property
    def positions(self) -> int | None:
        """The most tokens that the model can read; None if only the loaded model knows."""
        ...

    @property
    def source_languages(self) -> tuple[str, ...]:
        """The model's own names of its source languages, if the user must choose one."""
        ...

    @property
    def target_languages(self) -> tuple[str, ...]:
        """The model's own names of its target languages, if the user must choose one."""
        ...

    def details(self) -> dict[str, str]:
        """More that `cadec info` shows: texts by a short name."""
        ...


@dataclass(frozen=True)
class PlainSettings:
    """The settings of a model without a settings file, and a base for engines that add a few."""

    origin: str = "unknown"
    licence: str | None = None
    positions: int | None = None
    source_languages: tuple[str, ...] = ()
    target_languages: tuple[str, ...] = ()

    @classmethod
    def read(cls, directory: Path) -> PlainSettings:
        """Return the defaults, without reading a file."""
        return cls()

    def details(self) -> dict[str, str]:
        """Return nothing more to show."""
        return {}


class ModelPart(Protocol):
    """One model of a bundle, as its engine sees it. All listed files have been checked."""

    @property
    def name(self) -> str:
        """The part: nmt, lm, or the kind of a model that reads several sentences."""
        ...

    @property
    def bundle(self) -> Path:
        """The bundle's directory, for messages."""
        ...

    @property
    def directory(self) -> Path:
        """The directory of the part's files."""
        ...

    @property
    def files(self) -> Collection[str]:
        """The names of the part's files, relative to `directory`."""
        ...

    @property
    def settings(self) -> Any:
        """The result of the engine's `settings` for this part."""
        ...

    @property
    def languages(self) -> Languages:
        """The bundle's own languages."""
        ...

    @property
    def limits(self) -> LengthLimits:
        """The length limits of translations between the bundle's own languages."""
        ...

    @property
    def pipelines(self) -> tuple[TextPipeline, TextPipeline]:
        """The text pipelines of a translation model that was trained here: source, target."""
        ...

    @property
    def lm_text(self) -> TextPipeline | PretrainedCorpusText:
        """The text pipeline or tokenizer of a language model that was trained here."""
        ...

    @property
    def conversions(self) -> Collection[str]:
        """The compute types that the bundle holds converted weights for."""
        ...

    def conversion(self, compute_type: str, note: Note) -> Path:
        """The directory of converted weights: the bundle's, or a new cached one, which `note` reports."""
        ...

    def network(self) -> Any:
        """The network in torch of a model that was trained here. The caller may change it."""
        ...


def no_problems(part: ModelPart) -> list[str]:
    """Accept any part."""
    return []


@dataclass(frozen=True, kw_only=True)
class Engine:
    """The fields that all engines have; see the two kinds below.

    `files` is a regular expression for the names of all files that the part may have: a bundle with any
    other file is refused. `links` is one for files that may be symbolic links to outside the bundle.
    `settings` reads the model's settings from the part's directory; it loads no model, and raises a
    CadecError for invalid settings. `check` returns the problems of a part, in words.
    """

    part: ClassVar[str]  # of a bundle

    name: str  # in the manifest
    files: str
    links: str = ""
    settings: Callable[[Path], ModelSettings] = PlainSettings.read
    check: Callable[[ModelPart], Sequence[str]] = no_problems


StepwiseLoader = Callable[[ModelPart, Languages, Machine, Note], "StepwiseTranslation"]


def no_steps(part: ModelPart) -> StepwiseLoader | None:
    """Return None: the model can't be stepped."""
    return None


def nothing_to_prepare(part: ModelPart, compute_type: str, note: Note) -> None:
    """Do nothing: the model can be loaded as it is."""


@dataclass(frozen=True, kw_only=True)
class TranslationEngine(Engine):
    """An engine of translation models.

    `load` returns the model for two languages. `prepare` does slow work before loading, such as a
    conversion, so that several processes need not wait for each other. `stepwise` returns a loader for the
    form of the model that the C-aware beam steps, or None if this model can't be stepped. `texts` returns the
    tokenizers of both sides, to count or prepare tokens with; it is None if the engine offers none. With
    `converted`, the part holds no weights: only the bundle's conversions have them.
    """

    part: ClassVar[str] = "nmt"

    load: Callable[[ModelPart, Languages, Machine, Note], TranslationModel]
    prepare: Callable[[ModelPart, str, Note], None] = nothing_to_prepare
    stepwise: Callable[[ModelPart], StepwiseLoader | None] = no_steps
    texts: (
        Callable[[ModelPart], tuple[TextPipeline | PretrainedCorpusText, TextPipeline | PretrainedCorpusText]]
        | None
    ) = None
    converted: bool = False


@dataclass(frozen=True, kw_only=True)
class LanguageEngine(Engine):
    """An engine of language models.

    `load` returns the model for the target language. `reader` returns the model's tokenizer and its
    positions, if they are known without loading it. `import_libraries` imports what `load` will need for
    the model in a directory, if that takes long.
    """

    part: ClassVar[str] = "lm"

    load: Callable[[ModelPart, Languages, Machine, Note], LanguageModel]
    reader: Callable[[ModelPart, Languages], ContextReader] | None = None
    import_libraries: Callable[[Path], None] = lambda directory: None


def language_token(language: str | None, tokens: Sequence[str], side: str) -> str:
    """A model's own name of a language; empty if it has no names. An unknown language is a CadecError."""
    if not tokens:
        return ""
    if language is None:
        raise CadecError(
            f"the model has {len(tokens)} {side} languages, and none was chosen",
            f"choose one with {option(f'{side}-language')}",
        )
    return own_token(language, tokens)
