"""What a bundle knows of a pretrained model of another toolkit, beside its weights: JSON, checked when read.

No torch and no tokenizer here: these are the words in which converters tell engines how to use a model.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from cadec_cli.errors import CadecError
from cadec_cli.files import read_json
from cadec_cli.text.pretrained.settings import TextSettings as TextSettings

FORMAT_VERSION = 1
# Where a run of fine-tuning keeps the model that it started from; its run.json names that too.
ORIGIN = "origin"
TRANSLATION_SETTINGS = "translation-model.json"
LANGUAGE_SETTINGS = "language-model.json"

# Where, beside the settings of an S-NMT, its network is that torch steps.
NETWORK = "network"

# Stand for the model's own tokens of the two languages, in `source_begin`, `source_end` and `target_begin`.
SOURCE, TARGET = "{source}", "{target}"


@dataclass(frozen=True, kw_only=True)
class TranslationSettings:
    """An S-NMT of another toolkit, run by CTranslate2."""

    family: str  # marian, nllb, fairseq …: what the converter took it for
    origin: str  # the name it had where it came from
    licence: str | None  # as its authors state it
    weights: str  # a checksum of the original's weights
    positions: int  # source tokens, all that frames them included
    source: TextSettings
    target: TextSettings
    source_begin: tuple[str, ...] = ()  # tokens around every source sentence, and before every translation
    source_end: tuple[str, ...] = ()
    target_begin: tuple[str, ...] = ()
    source_languages: tuple[str, ...] = ()  # the model's own tokens, where it has any
    target_languages: tuple[str, ...] = ()
    start: int | None = None  # the id that its network in torch starts from, where it can be kept
    verified: str = ""  # how it was found to say the same as the original

    def __post_init__(self) -> None:
        if self.positions < 8:
            raise CadecError(f"a translation model with {self.positions} positions can't read a sentence")

    @property
    def directions(self) -> bool:
        """Tell whether it is told the languages, and so can serve many."""
        return bool(self.source_languages or self.target_languages)


@dataclass(frozen=True, kw_only=True)
class LanguageSettings:
    """A pretrained causal language model as a D-LM, run by transformers."""

    family: str  # gpt2, gemma3_text …: transformers' model_type
    origin: str
    licence: str | None
    weights: str
    positions: int  # tokens that it reads at most: within its positions and within its sliding window
    boundary: str  # the text that ends a sentence: one token, a line break
    start: str | None  # the token that begins every sequence; the boundary where there is none
    no_context: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    verified: str = ""

    def __post_init__(self) -> None:
        if self.positions < 16:
            raise CadecError(f"a language model with {self.positions} positions can't read a context")


def is_fine_tuning(directory: Path) -> bool:
    """Tell whether a directory is a training run that goes on with a pretrained language model."""
    if not (directory / "run.json").is_file():
        return False
    record = read_json(directory / "run.json")
    return isinstance(record, dict) and record.get("origin") == ORIGIN


Settings = TypeVar("Settings", TranslationSettings, LanguageSettings)


def write_settings(path: Path, settings: TranslationSettings | LanguageSettings) -> None:
    """Write settings beside the files they speak of."""
    value = {"format": FORMAT_VERSION, **dataclasses.asdict(settings)}
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", "utf-8")


def read_translation_settings(directory: Path) -> TranslationSettings:
    """The settings of an S-NMT; anything odd about them is a CadecError."""

    def parse(value: dict[str, Any]) -> TranslationSettings:
        texts: dict[str, Any] = {side: _text_settings(value.pop(side)) for side in ("source", "target")}
        lists = ("source_begin", "source_end", "target_begin", "source_languages", "target_languages")
        texts.update({name: _strings(value.pop(name)) for name in lists})
        return TranslationSettings(**texts, **value)

    return _read(directory / TRANSLATION_SETTINGS, parse)


def read_language_settings(directory: Path) -> LanguageSettings:
    """The settings of a D-LM; anything odd about them is a CadecError."""

    def parse(value: dict[str, Any]) -> LanguageSettings:
        texts = {
            str(language): tuple(_strings(text) for text in contexts)
            for language, contexts in value.pop("no_context").items()
        }
        return LanguageSettings(no_context=texts, **value)

    return _read(directory / LANGUAGE_SETTINGS, parse)


def _read(path: Path, parse: Callable[[dict[str, Any]], Settings]) -> Settings:
    value = read_json(path)
    if not isinstance(value, dict) or value.pop("format", None) != FORMAT_VERSION:
        raise CadecError(
            f"{path} is not of format {FORMAT_VERSION}", "upgrade cadec, or build the bundle anew"
        )
    try:
        settings = parse(value)
        _check_types(settings)
        return settings
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CadecError(
            f"{path} is damaged: {type(error).__name__} {error}", "build the bundle anew with `cadec convert`"
        ) from None


def _text_settings(value: Mapping[str, Any]) -> TextSettings:
    options = {str(name): _string(given) for name, given in value["options"].items()}
    return TextSettings(kind=_string(value["kind"]), files=_strings(value["files"]), options=options)


def _strings(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list):
        raise ValueError(f"{values!r} is not a list")
    return tuple(_string(value) for value in values)


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{value!r} is not a text")
    return value


def _check_types(settings: TranslationSettings | LanguageSettings) -> None:
    if type(settings.positions) is not int:
        raise ValueError(f"{settings.positions!r} positions")
    if isinstance(settings, TranslationSettings) and type(settings.start) not in (int, type(None)):
        raise ValueError(f"a start of {settings.start!r}")
    for name in ("family", "origin", "weights", "verified"):
        _string(getattr(settings, name))
    optional = ("licence", "start", "boundary") if isinstance(settings, LanguageSettings) else ("licence",)
    for name in optional:
        if getattr(settings, name) is not None:
            _string(getattr(settings, name))
