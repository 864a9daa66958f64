"""The seam for engines: what cadec asks of the code that runs a model, and what it gives to that code.

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

# Called with a message for the user: what takes long, what is assumed, what is unusual.
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
        """The shortest code of the source language, which tokenisers expect; empty where there is none."""
        return iso_code(self.source) if self.source else ""

    @property
    def target_code(self) -> str:
        """The shortest code of the target language."""
        return iso_code(self.target)

    def __str__(self) -> str:
        return " → ".join(filter(None, (self.source, self.target)))


@dataclass(frozen=True)
class Machine:
    """What a model computes with: a device by its name, a compute type, a number of threads."""

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
    """What is known of a model before it is loaded. An engine may know more of its own models."""

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
        """How many tokens the model can read; None where only the loaded model knows."""
        ...

    @property
    def source_languages(self) -> tuple[str, ...]:
        """The model's own names of the languages it can read, if it has to be told which one it reads."""
        ...

    @property
    def target_languages(self) -> tuple[str, ...]:
        """The model's own names of the languages it can write, if it has to be told which one to write."""
        ...

    def details(self) -> dict[str, str]:
        """What else `cadec info` shows, by a short name."""
        ...


@dataclass(frozen=True)
class PlainSettings:
    """Settings of a model that needs none, and of one whose engine reads a few of its own."""

    origin: str = "unknown"
    licence: str | None = None
    positions: int | None = None
    source_languages: tuple[str, ...] = ()
    target_languages: tuple[str, ...] = ()

    @classmethod
    def read(cls, directory: Path) -> PlainSettings:
        """Read nothing."""
        return cls()

    def details(self) -> dict[str, str]:
        """Nothing more is known."""
        return {}


class ModelPart(Protocol):
    """One model of a bundle, as its engine sees it. All files that are listed were checked."""

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
        """Where the part's files are."""
        ...

    @property
    def files(self) -> Collection[str]:
        """The names of the part's files, relative to `directory`."""
        ...

    @property
    def settings(self) -> Any:
        """What the engine's own `settings` returned for this part."""
        ...

    @property
    def languages(self) -> Languages:
        """The bundle's own languages."""
        ...

    @property
    def limits(self) -> LengthLimits:
        """How long translations between the bundle's own languages may become."""
        ...

    @property
    def pipelines(self) -> tuple[TextPipeline, TextPipeline]:
        """The text pipelines of a translation model that was trained here: source, target."""
        ...

    @property
    def lm_text(self) -> TextPipeline | PretrainedCorpusText:
        """How a language model that was trained here cuts its text."""
        ...

    @property
    def conversions(self) -> Collection[str]:
        """The compute types that the bundle holds converted weights for."""
        ...

    def conversion(self, compute_type: str, note: Note) -> Path:
        """The converted weights: the bundle's own, or converted now and cached, which `note` reports."""
        ...

    def network(self) -> Any:
        """The network in torch of a model that was trained here. It belongs to the caller."""
        ...


def no_problems(part: ModelPart) -> list[str]:
    """Accept any part."""
    return []


@dataclass(frozen=True, kw_only=True)
class Engine:
    """What every engine says of itself; see the two kinds below.

    `files` is a regular expression for the names of all files that the part may have: a bundle with any
    other file is refused. `links` is one for those that may be symbolic links to outside. `settings` reads
    what is known of the model from the part's directory; it loads no model, and raises a CadecError for
    settings that can't be right. `check` returns all that is wrong with a part, in words.
    """

    part: ClassVar[str]  # of a bundle

    name: str  # as the manifest has it
    files: str
    links: str = ""
    settings: Callable[[Path], ModelSettings] = PlainSettings.read
    check: Callable[[ModelPart], Sequence[str]] = no_problems


StepwiseLoader = Callable[[ModelPart, Languages, Machine, Note], "StepwiseTranslation"]


def no_steps(part: ModelPart) -> StepwiseLoader | None:
    """Say that a model can't be stepped."""
    return None


def nothing_to_prepare(part: ModelPart, compute_type: str, note: Note) -> None:
    """Do nothing: the model can be loaded as it is."""


@dataclass(frozen=True, kw_only=True)
class TranslationEngine(Engine):
    """An engine of translation models.

    `load` returns the model for two languages. `prepare` does ahead what loading would otherwise do first,
    such as a conversion, so that several processes need not wait for one another. `stepwise` returns a
    loader of the model as the C-aware beam steps it, or None where this model can't be stepped. `texts` are
    the tokenizers of both sides, to count or prepare tokens with; None where the engine shows none. With
    `converted`, the part holds no weights: the bundle's conversions are all there is of them.
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

    `load` returns the model for the target language. `reader` returns how the model cuts text and how much
    it reads, if that is known without loading it.
    """

    part: ClassVar[str] = "lm"

    load: Callable[[ModelPart, Languages, Machine, Note], LanguageModel]
    reader: Callable[[ModelPart, Languages], ContextReader] | None = None


def language_token(language: str | None, tokens: Sequence[str], side: str) -> str:
    """A model's own name of a language, empty where it has none. An unknown language is a CadecError."""
    if not tokens:
        return ""
    if language is None:
        raise CadecError(
            f"the model serves {len(tokens)} {side} languages, and none was named",
            f"say {option(f'{side}-language')}",
        )
    return own_token(language, tokens)
